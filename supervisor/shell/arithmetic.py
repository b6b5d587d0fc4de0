"""Shell arithmetic, which runs code: evaluating ``a[$(reboot)]`` as a number reboots. Pure. Called from ``walk``.

So a variable may take part in a sum only if this text gives it nothing but numbers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from supervisor.shell.pieces import Piece, RawWord, text_of

_ALLOWED = re.compile(r"[A-Za-z0-9_ \t\n+*/%<>=!&|^~?:,()\[\]#@.-]*")
_ADJACENT = re.compile(r"[A-Za-z0-9_][ \t\n]+[A-Za-z0-9_]")
_NAME = re.compile(r"(?<![A-Za-z0-9_#])[A-Za-z_][A-Za-z0-9_]*")
_SET = re.compile(r"(?<![A-Za-z0-9_#])([A-Za-z_][A-Za-z0-9_]*)[ \t]*(?:\[[^\]]*\][ \t]*)?(?:[-+*/%&|^]|<<|>>)?=(?!=)")
_NUMBER = re.compile(r"-?[0-9]+")
_DEFAULTED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?-[0-9]+\}")
_COUNTS = re.compile(r"\s*(?:date (?:-u )?\+%s|nproc|seq(?: -?[0-9]+){1,3}|id -u)\s*")
_ALWAYS_NUMBERS = frozenset(
    {"SECONDS", "RANDOM", "SRANDOM", "EPOCHSECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID"}
)


def is_number(raw: RawWord) -> bool:
    """Whether the word can only be a number when the shell has expanded it."""
    scripts = iter(raw.scripts)
    for piece in raw.pieces:
        if not piece.expands:
            if piece.text and not _NUMBER.fullmatch(piece.text):
                return False
        elif not piece.number and not _counts(piece, scripts):
            return False
    return bool(raw.pieces)


@dataclass(slots=True)
class Numbers:
    """What one shell's variables hold, as far as sums care."""

    used: dict[str, str] = field(default_factory=dict)
    numeric: set[str] = field(default_factory=set)
    tainted: set[str] = field(default_factory=set)
    all_tainted: bool = False

    def assign(self, name: str, *, number: bool) -> None:
        (self.numeric if number else self.tainted).add(name)

    def evaluate(self, text: str, expanded: RawWord) -> str | None:
        """Take note of a sum; returns what is wrong with it, if that is certain already."""
        literal = "".join("\0" if piece.expands else piece.text for piece in expanded.pieces)
        plain = literal.replace("\0", "")
        if not _ALLOWED.fullmatch(plain) or _ADJACENT.search(literal):
            return "this is not a plain sum"
        self.numeric.update(_SET.findall(literal))
        names = _NAME.findall(literal)
        scripts = iter(expanded.scripts)
        for piece in expanded.pieces:
            if not piece.expands or piece.number:
                continue
            defaulted = _DEFAULTED.fullmatch(piece.text)
            if piece.variable is not None:
                names.append(piece.variable)
            elif defaulted:
                names.append(defaulted.group(1))
            elif not _counts(piece, scripts):
                return "a sum evaluates text that is only known at run time"
        for name in names:
            self.used.setdefault(name, text_of(text))
        return None

    def doubtful(self) -> Iterator[tuple[str, str]]:
        """The variables in sums that may hold something else than a number, each with its sum."""
        for name, text in self.used.items():
            certain = name in self.numeric and name not in self.tainted and not self.all_tainted
            if not certain and name not in _ALWAYS_NUMBERS:
                yield name, text


def _counts(piece: Piece, scripts: Iterator[str]) -> bool:
    if piece.variable is not None or not piece.text.startswith(("$(", "`")):
        return False
    script = next(scripts, None)
    return script is not None and _COUNTS.fullmatch(script) is not None
