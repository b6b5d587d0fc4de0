"""The parts of a word in shell source, and the source as bytes. Pure. Made by ``scan``, read by ``words``."""

from dataclasses import dataclass, field
from typing import NamedTuple


def source_of(text: str) -> str:
    """The text with one character per byte."""
    return text if text.isascii() else text.encode("utf-8").decode("latin-1")


def text_of(source: str) -> str:
    """The inverse of ``source_of``; bytes that are no text become replacement characters."""
    return source if source.isascii() else source.encode("latin-1").decode("utf-8", "replace")


class Piece(NamedTuple):
    """A stretch of a word. ``variable`` names a plain ``$name``; ``number`` marks an arithmetic result."""

    text: str
    quoted: bool = False
    expands: bool = False
    splits: bool = False
    variable: str | None = None
    number: bool = False


@dataclass(slots=True)
class RawWord:
    """A word in the source: its pieces, and the scripts and sums that run when it is expanded."""

    start: int
    end: int = 0
    pieces: list[Piece] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    sums: list[str] = field(default_factory=list)

    @classmethod
    def literal(cls, text: str) -> "RawWord":
        """A word that is wholly quoted."""
        return cls(0, len(text), [Piece(text, quoted=True)])
