"""Shell builtins that evaluate text they are given: names with subscripts and sums. Pure. Called from ``simple``."""

import re
from collections.abc import Iterator
from itertools import pairwise

from supervisor.model.reading import Word
from supervisor.shell.arithmetic import Numbers
from supervisor.shell.pieces import source_of
from supervisor.shell.scan import Scanner

_DECLARE = frozenset({"declare", "typeset", "local", "export", "readonly"})
_NAME_TAKERS = frozenset(
    {"read", "mapfile", "readarray", "getopts", "unset", "wait", "printf", "let", "test", "[", "[["}
)
EVALUATES = _DECLARE | _NAME_TAKERS | {"command", "builtin"}
_NUMERIC_TEST = re.compile(r"(\S+)\s+-(?:eq|ne|lt|le|gt|ge)\s+(\S+)")
_HIDDEN = "a literal holds a substitution that this builtin would run"
_UNKNOWN = "this builtin evaluates a name that is only known at run time"


def evaluated(words: tuple[Word, ...], numbers: Numbers) -> Iterator[str]:
    """What is wrong with giving these words to a builtin that evaluates them; nothing for any other command."""
    name, arguments = words[0].text, words[1:]
    if name in ("command", "builtin") and len(words) > 1:
        yield from evaluated(arguments, numbers)
        return
    if name not in _NAME_TAKERS and name not in _DECLARE:
        return
    if name != "printf" and any("[" in word.text and _hides(word) for word in arguments):
        yield _HIDDEN
    if name in _DECLARE:
        yield from _declaration(arguments, numbers)
    elif name == "let":
        for word in arguments:
            expanded = Scanner(source_of(word.text)).body() if word.static else None
            problem = numbers.evaluate(word.text, expanded) if expanded else _UNKNOWN
            if problem is not None:
                yield problem
    elif name == "[[" and arguments:
        yield from _comparison(arguments[0], numbers)
    elif name in ("test", "["):
        for word, following in pairwise(arguments):
            if word.text == "-v" and not following.static:
                yield _UNKNOWN
    elif name == "printf":
        if arguments and arguments[0].text.startswith("-v"):
            yield from _names(arguments[:2], numbers)
            if any("[" in word.text and _hides(word) for word in arguments[:2]):
                yield _HIDDEN
    else:
        yield from _names(arguments, numbers)


def _names(arguments: tuple[Word, ...], numbers: Numbers) -> Iterator[str]:
    for word in arguments:
        if not word.static:
            numbers.all_tainted = True
            if word.maybe_option or "[" in word.text:
                yield _UNKNOWN
        numbers.assign(word.text.partition("[")[0], number=False)


def _declaration(arguments: tuple[Word, ...], numbers: Numbers) -> Iterator[str]:
    integer = any(word.text.startswith("-") and "i" in word.text for word in arguments)
    for word in arguments:
        name, equals, value = word.text.partition("=")
        if word.leading or "$" in name or "`" in name or (word.splits and not equals):
            numbers.all_tainted = True
            yield _UNKNOWN
        elif equals:
            numbers.all_tainted = numbers.all_tainted or word.splits
            numbers.assign(name.rstrip("+"), number=value.isdigit())
            if integer and not value.isdigit():
                yield "it declares a number from text that is none"


def _comparison(inside: Word, numbers: Numbers) -> Iterator[str]:
    compared = _NUMERIC_TEST.findall(inside.text)
    if compared and ("$(" in inside.text or "`" in inside.text):
        yield "it evaluates the output of a command as a number"
        return
    for sides in compared:
        for side in sides:
            expanded = Scanner(source_of(side.strip("\"'"))).body()
            problem = numbers.evaluate(side, expanded)
            if problem is not None:
                yield problem
    if re.search(r"(?:^|\s)-v\s", inside.text) and inside.dynamic:
        yield _UNKNOWN


def _hides(word: Word) -> bool:
    return not word.dynamic and ("$(" in word.text or "`" in word.text)
