"""The parts of a word in shell source, and the source as bytes. Pure. Made by ``scan``, read by ``words``."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from supervisor.model.reading import Word

_ACTIVE = re.compile(r"[*?\[{]")


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
    """A word in the source: its pieces, and the scripts and sums that run when it is expanded.

    ``size`` is how much of the source it takes up. ``known`` is what the shell makes of it, if that is one word for
    certain; a word that has it is shared by all its places and not to be changed.
    """

    size: int = 0
    pieces: list[Piece] = field(default_factory=list)
    scripts: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    known: Word | None = None

    @classmethod
    def quoted(cls, text: str) -> "RawWord":
        """A word that is wholly quoted."""
        return cls(len(text), [Piece(text, quoted=True)])


# The same few words stand in nearly every text; making them anew is a good part of reading it.
@lru_cache(maxsize=2048)
def literal_word(text: str) -> RawWord:
    """A word without quotes and expansions."""
    known = None if _ACTIVE.search(text) else plain_word(text_of(text))
    return RawWord(len(text), [Piece(text)], known=known)


@lru_cache(maxsize=2048)
def exact_word(text: str) -> RawWord:
    """A word that stands for exactly this text, whether for want of anything else or because it is quoted."""
    return RawWord(len(text), [Piece(text, quoted=True)], known=plain_word(text))


@lru_cache(maxsize=2048)
def plain_word(text: str) -> Word:
    """The word that is exactly this text."""
    return Word(text=text)
