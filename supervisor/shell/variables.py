"""Which variables have a value that is certain: assigned once, to a literal, and touched by nothing else. Pure."""

import re
from collections.abc import Iterator

# Each is looked for on its own, by fixed characters: one expression for all tries every one at every place of the text,
# and takes longer to be made than most texts to be read.
_UNCERTAIN_WORDS = (
    *("eval", "source", "mapfile", "declare", "local", "export"),
    *("getopts", "let", "select", "coproc", "wait", "trap", "IFS", "alias", "shopt", "env"),
)
# Where what they have in common is missing, none of them has to be looked for.
_UNCERTAIN_KIN = {"read": ("read", "readarray", "readonly"), "set": ("set", "unset", "typeset")}
_UNCERTAIN_MARKS = ("((", "$[")
_UNCERTAIN = (
    (("printf",), r"printf\s+-v"),
    (("${",), r"\$\{[^}A-Za-z_#]"),
    ((". ", ".\t", ".\n", ".\r", ".\f", ".\v"), r"\.(?:(?<=^\.)|(?<=[\s;&|(]\.))\s"),
)
_SET_BY_SHELL = re.compile(
    r"BASH.*|COMP.*|DIRSTACK|EPOCH.*|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTNAME|HOSTTYPE|LINENO|MACHTYPE|MAPFILE|OLDPWD|OPT.*"
    r"|OSTYPE|PIPESTATUS|PPID|PWD|RANDOM|READLINE.*|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_"
)
_LOOP = re.compile(r"for(?<!\wfor)(?=\s+(\w+)\s+in\b)", re.ASCII)
_WORD_CHARACTER = re.compile(r"\w", re.ASCII)
_BLANKS = frozenset(" \t\n\r\f\v")
_AFTER_OPTION = _BLANKS | frozenset(";|&)'\"")
SAFE_VALUE = re.compile(r"[A-Za-z0-9_./:@%+,=-]+", re.ASCII)


class CertainNames:
    """Answers for one script whether a variable, once assigned, keeps that value to the end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._hopeless: bool | None = None

    def keeps(self, name: str, *, by_loop: bool = False) -> bool:
        """Every mention of the name is a plain use, but for the one that assigns it."""
        if self._hopeless is None:
            self._hopeless = _is_hopeless(self._source)
        if self._hopeless or _SET_BY_SHELL.fullmatch(name) or not (name.isascii() and name.isidentifier()):
            return False
        others = assigned = 0
        for before, after in _mentions(name, self._source):
            if before[-1:] == "$" or (before == "${" and after == "}"):
                continue
            # An option of one letter is no mention: nothing can be assigned to it.
            if before[-1:] == "-" and before[:-1] in _BLANKS and (not after or after in _AFTER_OPTION):
                continue
            others += 1
            assigned += after == "="
        if by_loop:
            assigned = _LOOP.findall(self._source).count(name)
        return others == 1 and assigned == 1


def _mentions(name: str, source: str) -> Iterator[tuple[str, str]]:
    """The two characters before and the one after wherever the name stands as a word of its own."""
    start = source.find(name)
    while start >= 0:
        end = start + len(name)
        before, after = source[max(0, start - 2) : start], source[end : end + 1]
        if not _WORD_CHARACTER.match(after) and not _WORD_CHARACTER.match(before[-1:]):
            yield before, after
        start = source.find(name, end)


def _is_hopeless(source: str) -> bool:
    """Whether something in the script may change variables without naming them plainly."""
    for mark in _UNCERTAIN_MARKS:
        if mark in source:
            return True
    for word in _UNCERTAIN_WORDS:
        if word in source and any(_mentions(word, source)):
            return True
    for common, words in _UNCERTAIN_KIN.items():
        if common in source and any(any(_mentions(word, source)) for word in words):
            return True
    for marks, pattern in _UNCERTAIN:
        if any(mark in source for mark in marks) and re.search(pattern, source, re.ASCII):
            return True
    return False
