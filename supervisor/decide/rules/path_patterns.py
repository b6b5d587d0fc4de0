"""Whether a path fits a pattern. Pure. Called from ``matching``, ``off_limits`` and ``file_tools``.

In a pattern ``*`` stands for anything within a directory, ``**`` also for what is below; ``<work>`` is the agent's
directory, ``~`` its home, and a pattern that begins with ``**/`` is at home anywhere.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Final

from supervisor.decide.rules.path_names import NamedPath, Standing

_TOKEN: Final = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]", re.DOTALL)
_UP_TO_WILDCARD: Final = re.compile(r"[*?]")
_PARTS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_WILD: Final = frozenset({"*", "**"})
_ANYWHERE: Final = "**/"


def fits(path: str, patterns: Sequence[str], standing: Standing) -> bool:
    """Whether a path that is wholly known fits one of the patterns."""
    return any(_regex(placed(pattern, standing)).fullmatch(path) for pattern in patterns)


def could_fit(path: NamedPath, patterns: Sequence[str], standing: Standing) -> bool:
    """Whether a path could fit one of the patterns, once its own wildcards are filled in."""
    if not path.glob:
        return fits(path.text, patterns, standing)
    return any(
        _resembles(path.text, pattern) if pattern.startswith(_ANYWHERE) else _meet(path.text, placed(pattern, standing))
        for pattern in patterns
    )


def placed(pattern: str, standing: Standing) -> str:
    """A pattern with the directories it leaves open filled in."""
    if pattern.startswith("<work>"):
        return standing.work_dir.rstrip("/") + pattern[len("<work>") :]
    if pattern[0] == "~":
        return standing.home.rstrip("/") + pattern[1:]
    return "/" + pattern if pattern.startswith(_ANYWHERE) else pattern


def beginning(pattern: str) -> str:
    """What stands before the first wildcard."""
    return _UP_TO_WILDCARD.split(pattern, maxsplit=1)[0]


@lru_cache(maxsize=128)
def in_one(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression that fits whatever one of these placed patterns fits. Made once: compiling it takes a while."""
    loose = [_expression(pattern[len("/**/") :]) for pattern in patterns if pattern.startswith("/**/")]
    others = [_expression(pattern) for pattern in patterns if not pattern.startswith("/**/")]
    # The beginning that all loose ones share is looked for once.
    return re.compile("|".join([*others, *([f"(?:.*/)?(?:{'|'.join(loose)})"] if loose else [])]) or r"(?!)", re.DOTALL)


@lru_cache(maxsize=4096)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(_expression(pattern), re.DOTALL)


def _expression(pattern: str) -> str:
    # What fits a directory's contents fits the directory itself.
    below = pattern.endswith("/**")
    tokens = _TOKEN.findall(pattern[: -len("/**")] if below else pattern)
    return "".join(_PARTS.get(token) or re.escape(token) for token in tokens) + ("(?:/.*)?" if below else "")


@lru_cache(maxsize=4096)
def _resembles(path: str, pattern: str) -> bool:
    """Whether a name with wildcards is meant for what a pattern without a place is about.

    Nearly every ``*`` could turn into a secret's name. It counts only when it is written with some letters of it:
    ``id_*`` does, ``*.log`` and a bare ``*`` do not.
    """
    below = pattern.endswith("/**")
    sample = pattern.removeprefix(_ANYWHERE).removesuffix("/**").replace("*", "").replace("?", "x").split("/")
    parts = path.strip("/").split("/")
    starts = range(len(parts) - len(sample) + 1) if below else [len(parts) - len(sample)]
    return any(start >= 0 and all(map(_is_meant, parts[start:], sample)) for start in starts)


def _is_meant(part: str, sample: str) -> bool:
    return bool(part.strip("*?")) and _regex(part).fullmatch(sample) is not None


@lru_cache(maxsize=4096)
def _meet(word: str, pattern: str) -> bool:
    """Whether some path fits both. As in a shell, a wildcard of the word stands for no leading dot."""
    return any(_both(one, other) for one, other in product(_written_out(word), _written_out(pattern)))


def _written_out(pattern: str) -> Iterator[list[str]]:
    """The pattern with each ``**/`` present and left out, and with what is below and without."""
    if pattern.endswith("/**"):
        yield from _written_out(pattern[: -len("/**")])
    tokens = _TOKEN.findall(pattern)
    choices = [(("**", "/"), ()) if token == _ANYWHERE else ((token,),) for token in tokens]
    for chosen in product(*choices):
        yield [token for part in chosen for token in part]


def _both(word: list[str], pattern: list[str]) -> bool:
    if not _literally_alike(word, pattern) or not _literally_alike(word[::-1], pattern[::-1]):
        return False
    reached = {(0, 0)}
    todo = [(0, 0)]
    while todo:
        i, j = todo.pop()
        if i == len(word) and j == len(pattern):
            return True
        for state in _steps(word, i, pattern, j):
            if state not in reached:
                reached.add(state)
                todo.append(state)
    return False


def _literally_alike(left: list[str], right: list[str]) -> bool:
    for a, b in zip(left, right, strict=False):
        if a in _WILD or b in _WILD:
            return True
        if a != b and "?" not in (a, b):
            return False
    return True


def _steps(word: list[str], i: int, pattern: list[str], j: int) -> Iterator[tuple[int, int]]:
    a = word[i] if i < len(word) else ""
    b = pattern[j] if j < len(pattern) else ""
    leading_dot = b == "." and (j == 0 or pattern[j - 1] == "/")
    if a in _WILD:
        yield i + 1, j
        if b and (b != "/" or a == "**") and not leading_dot:
            yield i, j + 1
    if b in _WILD:
        yield i, j + 1
        if a and (a != "/" or b == "**"):
            yield i + 1, j
    alike = a == b or (b == "?" and a != "/") or (a == "?" and b != "/" and not leading_dot)
    if a and b and a not in _WILD and b not in _WILD and alike:
        yield i + 1, j + 1
