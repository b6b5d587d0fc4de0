"""From the pieces of a word to the words the shell will make of it. Pure. Called from ``walk``."""

import re
from collections.abc import Mapping
from functools import lru_cache

from supervisor.model.reading import Option, Word
from supervisor.shell.braces import expand_braces
from supervisor.shell.pieces import Piece, RawWord, text_of

_PLAIN = re.compile(r"[^*?\[{]*")
_GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)


def words_of(raw: RawWord, values: Mapping[str, str]) -> list[Word]:
    """The words of an argument list that this word stands for: usually one, with braces several."""
    pieces = raw.pieces
    if len(pieces) == 1 and not pieces[0].expands and (pieces[0].quoted or _PLAIN.fullmatch(pieces[0].text)):
        return [_plain(text_of(pieces[0].text))]
    pieces = _resolved(pieces, values)
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
            options.append(_option(text, not word.static))
    return tuple(options), tuple(rest)


# The same few words and options stand in nearly every text; making them anew is a good part of reading it.
@lru_cache(maxsize=2048)
def _plain(text: str) -> Word:
    return Word(text=text)


@lru_cache(maxsize=2048)
def _option(text: str, dynamic: bool) -> Option:
    name, equals, value = text.partition("=")
    names: tuple[str, ...] = (name,)
    if text[1] != "-":
        names = tuple(dict.fromkeys((text, name, *("-" + letter for letter in text[1:]))))
    return Option(text=text, names=names, value=value if equals else None, dynamic=dynamic)


def _resolved(pieces: list[Piece], values: Mapping[str, str]) -> list[Piece]:
    if not values:
        return pieces
    return [
        Piece(values[piece.variable], quoted=True) if piece.variable is not None and piece.variable in values else piece
        for piece in pieces
    ]


def _word(pieces: list[Piece]) -> Word:
    unquoted = "".join(piece.text if not piece.quoted and not piece.expands else "\0" for piece in pieces)
    glob = _GLOB.search(unquoted)
    first = next((piece for piece in pieces if piece.text), None)
    leads = first is not None and (first.expands or (not first.quoted and first.text[0] in "*?[" and glob is not None))
    return Word(
        text=text_of("".join(piece.text for piece in pieces)),
        dynamic=any(piece.expands for piece in pieces),
        glob=glob is not None,
        splits=any(piece.splits for piece in pieces),
        leading=leads,
    )
