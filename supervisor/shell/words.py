"""From the pieces of a word to the words the shell will make of it. Pure. Called from ``walk``."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from supervisor.model.reading import Option, Word
from supervisor.shell.braces import expand_braces
from supervisor.shell.pieces import Piece, RawWord, plain_word, text_of

_GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)


def words_of(raw: RawWord, values: Mapping[str, str]) -> list[Word]:
    """The words of an argument list that this word stands for: usually one, with braces several."""
    if raw.known is not None:
        return [raw.known]
    pieces = _resolved(raw.pieces, values)
    for piece in pieces:
        if not piece.quoted or piece.expands:
            break
    else:
        return [plain_word(text_of("".join([piece.text for piece in pieces])))]
    if not any("{" in piece.text for piece in pieces if not piece.quoted and not piece.expands):
        return [_word(pieces)]
    found = expand_braces(pieces)
    return [_word(one) for one in found if any(piece.text or piece.quoted for piece in one)]


def value_of(raw: RawWord, values: Mapping[str, str]) -> Word:
    """The word as a value: neither braces, nor patterns, nor blanks make it several words."""
    word = _word(_resolved(raw.pieces, values))
    return Word(text=word.text, dynamic=word.dynamic, leading=word.leading and word.dynamic)


def options_and_words(arguments: tuple[Word, ...]) -> tuple[tuple[Option, ...], tuple[Word, ...]]:
    """The arguments of a program, parted into options and the rest, wherever they stand."""
    options: list[Option] = []
    rest: list[Word] = []
    for index, word in enumerate(arguments):
        text = word.text
        if len(text) < 2 or text[0] != "-":
            rest.append(word)
        elif text == "--":
            rest += arguments[index + 1 :]
            break
        else:
            option = _option(text)
            unknown = word.dynamic or word.glob or word.splits
            options.append(replace(option, dynamic=True) if unknown else option)
    return tuple(options), tuple(rest)


@lru_cache(maxsize=2048)
def _option(text: str) -> Option:
    name, equals, value = text.partition("=")
    names: tuple[str, ...] = (name,)
    if text[1] != "-":
        names = tuple(dict.fromkeys((text, name, *("-" + letter for letter in text[1:]))))
    return Option(text=text, names=names, value=value if equals else None)


def _resolved(pieces: list[Piece], values: Mapping[str, str]) -> list[Piece]:
    if not values:
        return pieces
    return [
        Piece(values[piece.variable], quoted=True) if piece.variable is not None and piece.variable in values else piece
        for piece in pieces
    ]


def _word(pieces: list[Piece]) -> Word:
    text = unquoted = ""
    first: Piece | None = None
    dynamic = splits = False
    for piece in pieces:
        text += piece.text
        unquoted += "\0" if piece.quoted or piece.expands else piece.text
        dynamic = dynamic or piece.expands
        splits = splits or piece.splits
        if first is None and piece.text:
            first = piece
    glob = _GLOB.search(unquoted) is not None
    leads = first is not None and (first.expands or (not first.quoted and first.text[0] in "*?[" and glob))
    return Word(text=text_of(text), dynamic=dynamic, glob=glob, splits=splits, leading=leads)
