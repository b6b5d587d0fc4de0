"""From the text of a pattern to its parts. Pure. Called from ``settings`` when rules are read.

A pattern is one line. Over commands it reads like the command itself:

    docker|podman ps ...             a program, alternatives, a word, any further words
    /opt/shop/bin/shopctl status      a program of your own, by its whole path
    systemctl list-* ...             a * inside a word stands for any characters, alone for any one word
    docker restart *+                one word or more
    journalctl !--rotate ...         without this option; before a word: without it up to there
    top -b ...                       with this option; -x|--long for either
    kubectl get --raw=/healthz* ...  with this option and such a value
    ping [-c= -W= -4] *              with no other options than these; = for those that take a value
    mkdir [-p] <work>/**|/tmp/**+    words that name paths: * within a directory, ** also below
    sed ?sed-read ...                a check by name that looks at the whole command

Over paths, whatever the tool: ``Read(/var/log/**)`` and ``Grep`` are tools of the CLI, ``> /tmp/**`` is a redirection,
``path(/etc/shadow)`` is anything that names the path, ``change(/etc/fstab)`` the same unless it only reads.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from supervisor.model.rule import (
    CommandPattern,
    Effect,
    OptionPattern,
    PathPattern,
    Pattern,
    ToolPattern,
    Touch,
    WordPattern,
)

# Only their names: loading the checks themselves would slow every start down.
CHECK_NAMES = frozenset(
    {"kept-files", "kube-kind", "local-file", "no-environ"}
    | {"awk-read", "http-read", "jq-read", "no-equals", "no-input", "own-names", "plain-mode", "plain-names"}
    | {"sed-read", "sql-read"}
)
_TOOL = re.compile(r"((?:[A-Z]|mcp__)[A-Za-z0-9_-]*)(?:\((.+)\))?")
_ON_PATHS = re.compile(r"(path|change)\((.+)\)")
_OPTION = re.compile(r"-[^\s=|]+")
_ANY_WORDS = "..."
_PATH_STARTS = ("/", "~/", "<work>")


class PatternMistake(ValueError):
    """A pattern that says nothing, or nothing clear."""


@lru_cache(maxsize=2048)
def parse_pattern(text: str, effect: Effect) -> Pattern:
    """The parts of a pattern; raises ``PatternMistake`` with what is wrong."""
    text = text.strip()
    if not text:
        raise PatternMistake("should not be empty")
    if (tool := _TOOL.fullmatch(text)) is not None:
        return ToolPattern(tool=tool[1], paths=_paths(tool[2]) if tool[2] else ())
    if (on_paths := _ON_PATHS.fullmatch(text)) is not None:
        if effect is Effect.ALLOW:
            raise PatternMistake("path(…) and change(…) can only be denied or need approval")
        return PathPattern(touch=Touch(on_paths[1]), paths=_paths(on_paths[2]))
    if text[0] == ">":
        return PathPattern(touch=Touch.REDIRECT, paths=_paths(text[1:]))
    return _command(text, effect)


def _paths(text: str) -> tuple[str, ...]:
    paths = tuple(part.strip() for part in text.split("|"))
    for path in paths:
        if not path.startswith((*_PATH_STARTS, "**/")) and path != "~":
            raise PatternMistake(f"a path begins with /, ~/, **/ or <work>, unlike {path or 'nothing'}")
    return paths


def _command(text: str, effect: Effect) -> CommandPattern:
    program, *tokens = _tokens(text)
    if program[0] in "-!?[":
        raise PatternMistake("a pattern begins with a program, a tool or a path")
    if any("*" in name[:-1] or name in ("", "*") for name in program.split("|")):
        raise PatternMistake("a program is named, at most with a * at the end of its name")
    words: list[WordPattern] = []
    required: list[OptionPattern] = []
    forbidden: list[tuple[tuple[str, ...], int]] = []
    only: dict[str, bool] | None = None
    checks: list[str] = []
    rest = False
    for token in tokens:
        if token == _ANY_WORDS:
            rest = True
        elif token[0] == "[" and token[-1] == "]":
            only = {**(only or {}), **dict(_listed(token[1:-1]))}
        elif token[0] == "!":
            forbidden.append((_option_names(token[1:]), len(words)))
        elif token[0] == "?":
            checks.append(_check(token[1:]))
        elif token[0] == "-" and len(token) > 1:
            required.append(_required(token))
        elif rest or (words and words[-1].repeated):
            raise PatternMistake(f"nothing can be told of {token} once any further words may stand before it")
        else:
            words.append(_word(token if effect is Effect.ALLOW else _folded(token)))
    if only is not None and effect is not Effect.ALLOW:
        raise PatternMistake("only what is allowed can list its options; what is denied is denied with any")
    return CommandPattern(
        programs=tuple(program.split("|")),
        words=tuple(words),
        rest=rest,
        required=tuple(required),
        forbidden=tuple(OptionPattern(names=names, before=at if at < len(words) else None) for names, at in forbidden),
        only=only,
        known=_known(only, required),
        checks=tuple(checks),
    )


def _known(only: dict[str, bool] | None, required: list[OptionPattern]) -> dict[str, bool]:
    """What the pattern itself tells about options: those it asks for take a value if it asks for one."""
    asked = {name: bool(option.values) for option in required for name in option.names}
    return {**asked, **(only or {})}


def _tokens(text: str) -> Iterator[str]:
    """Split at blanks, but keep ``[-a -b]`` whole."""
    open_list: list[str] = []
    for token in text.split():
        if open_list or (token[0] == "[" and token[:2] in ("[-", "[]", "[")):
            open_list.append(token)
            if token[-1] == "]":
                yield " ".join(open_list)
                open_list = []
        else:
            yield token
    if open_list:
        raise PatternMistake("a list of options is not closed by ]")


def _listed(text: str) -> Iterator[tuple[str, bool]]:
    for token in text.split():
        name = token.removesuffix("=")
        if not _OPTION.fullmatch(name):
            raise PatternMistake(f"{token} is not an option")
        yield name, name != token


def _option_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split("|"))
    for name in names:
        if not _OPTION.fullmatch(name):
            raise PatternMistake(f"{name or 'nothing'} is not an option")
    return names


def _required(token: str) -> OptionPattern:
    names, equals, values = token.partition("=")
    return OptionPattern(names=_option_names(names), values=tuple(values.split("|")) if equals else ())


def _check(name: str) -> str:
    if name not in CHECK_NAMES:
        raise PatternMistake(f"there is no check {name or 'without a name'}; there is {', '.join(sorted(CHECK_NAMES))}")
    return name


def _folded(token: str) -> str:
    """What is denied is denied however it is capitalised, but for paths."""
    return "|".join(part if part.startswith(_PATH_STARTS) else part.lower() for part in token.split("|"))


def _word(token: str) -> WordPattern:
    repeated = len(token) > 1 and token[-1] == "+"
    parts = (token[:-1] if repeated else token).split("|")
    if "" in parts:
        raise PatternMistake(f"{token} has an empty alternative")
    if parts == ["*"]:
        return WordPattern(anything=True, repeated=repeated)
    paths = tuple(part for part in parts if part.startswith(_PATH_STARTS) or part == "~")
    others = [part for part in parts if part not in paths]
    return WordPattern(
        exact=frozenset(part for part in others if "*" not in part),
        globs=tuple(part for part in others if "*" in part),
        paths=paths,
        repeated=repeated,
    )
