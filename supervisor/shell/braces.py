"""Brace expansion of a word's pieces: ``{rm,-rf,/}`` is three words. Pure. Called from ``words``."""

import re
from collections.abc import Iterator

from supervisor.model.reading import OpaqueKind
from supervisor.shell.pieces import Piece, text_of
from supervisor.shell.unreadable import Unreadable

_ACTIVE = re.compile(r"([{},])")
_NUMBERS = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_LETTERS = re.compile(r"([a-z])\.\.([a-z])(?:\.\.(-?\d+))?|([A-Z])\.\.([A-Z])(?:\.\.(-?\d+))?")
_MOST_WORDS = 256
_MOST_BRACES = 64

_Atom = Piece | str


def expand_braces(pieces: list[Piece]) -> list[list[Piece]]:
    """Every word the pieces stand for."""
    atoms = list(_atoms(pieces))
    opened, closed = atoms.count("{"), atoms.count("}")
    if opened > _MOST_BRACES:
        raise _refused(pieces, "it has too many braces")
    if opened != closed and opened and closed and ("," in atoms or _mentions_range(pieces)):
        raise _refused(pieces, "its braces do not pair")
    return [[atom if isinstance(atom, Piece) else Piece(atom) for atom in one] for one in _expand(atoms, pieces)]


def _atoms(pieces: list[Piece]) -> Iterator[_Atom]:
    for piece in pieces:
        if piece.quoted or piece.expands:
            yield piece
        else:
            for part in _ACTIVE.split(piece.text):
                if part:
                    yield part if part in "{}," else Piece(part)


def _expand(atoms: list[_Atom], pieces: list[Piece]) -> list[list[_Atom]]:
    for start, atom in enumerate(atoms):
        if atom != "{":
            continue
        end = _closing(atoms, start)
        if end is None:
            continue
        choices = _choices(atoms[start + 1 : end], pieces)
        if choices is None:
            continue
        tails = _expand(atoms[end + 1 :], pieces)
        words = [atoms[:start] + choice + tail for choice in choices for tail in tails]
        if len(words) > _MOST_WORDS:
            raise _refused(pieces, "it expands to too many words")
        return words
    return [atoms]


def _closing(atoms: list[_Atom], start: int) -> int | None:
    depth = 0
    for index in range(start, len(atoms)):
        if atoms[index] == "{":
            depth += 1
        elif atoms[index] == "}":
            depth -= 1
            if depth == 0:
                return index
    return None


def _choices(inside: list[_Atom], pieces: list[Piece]) -> list[list[_Atom]] | None:
    parts: list[list[_Atom]] = [[]]
    depth = 0
    for atom in inside:
        depth += (atom == "{") - (atom == "}")
        if atom == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(atom)
    if len(parts) > 1:
        return [word for part in parts for word in _expand(part, pieces)]
    if len(inside) == 1 and isinstance(inside[0], Piece) and not inside[0].quoted and not inside[0].expands:
        values = _range(inside[0].text, pieces)
        return None if values is None else [[Piece(value)] for value in values]
    if _mentions_range([atom for atom in inside if isinstance(atom, Piece)]):
        raise _refused(pieces, "a brace range is not plain")
    return None


def _range(text: str, pieces: list[Piece]) -> list[str] | None:
    numbers = _NUMBERS.fullmatch(text)
    letters = _LETTERS.fullmatch(text)
    if numbers:
        first, last, step = numbers.groups()
        width = max(len(first), len(last)) if re.match(r"-?0\d", first) or re.match(r"-?0\d", last) else 0
        span = _steps(int(first), int(last), step, pieces)
        return [f"{value:0{width}d}" for value in span]
    if letters:
        first, last, step = (letters.group(1) or letters.group(4), letters.group(2) or letters.group(5), None)
        step = letters.group(3) or letters.group(6)
        return [chr(value) for value in _steps(ord(first), ord(last), step, pieces)]
    if ".." in text and re.fullmatch(r"\w\.\.\w(\.\..*)?", text):
        raise _refused(pieces, "a brace range mixes kinds of characters")
    return None


def _steps(first: int, last: int, step: str | None, pieces: list[Piece]) -> range:
    stride = max(1, abs(int(step))) if step else 1
    span = range(first, last + 1, stride) if first <= last else range(first, last - 1, -stride)
    if len(span) > _MOST_WORDS:
        raise _refused(pieces, "it expands to too many words")
    return span


def _mentions_range(pieces: list[Piece]) -> bool:
    return any(".." in piece.text for piece in pieces if not piece.quoted and not piece.expands)


def _refused(pieces: list[Piece], problem: str) -> Unreadable:
    return Unreadable(OpaqueKind.UNSUPPORTED, text_of("".join(piece.text for piece in pieces)), problem)
