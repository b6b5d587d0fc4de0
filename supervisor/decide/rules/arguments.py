"""Tell the options of a command from its words, as far as that is certain. Pure. Called from ``matching``.

Nobody knows every option of every program. What follows an option that is not known may be its value or a word; such a
word is marked uncertain, and a rule that allows something may not rest on it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from supervisor.model.reading import Command, Word


class GivenOption(NamedTuple):
    """One option as it was set.

    ``at`` is how many words stand before it; ``value`` is ``None`` if there is none. ``unknown``: which option it is
    will only be known at run time.
    """

    name: str
    value: Word | None
    at: int
    unknown: bool = False


class GivenWord(NamedTuple):
    """One word that is no option. ``shielded``: it stands after ``--``, so it cannot turn out to be one either."""

    word: Word
    certain: bool
    shielded: bool = False


class Arguments(NamedTuple):
    """The arguments of one command."""

    options: tuple[GivenOption, ...]
    words: tuple[GivenWord, ...]


def arguments_of(command: Command, takes_value: Mapping[str, bool]) -> Arguments:
    """Part the arguments by a table of options: whether each takes a value."""
    options: list[GivenOption] = []
    words: list[GivenWord] = []
    pending: str | None = None  # an option that waits for its value
    certain = True
    given = command.argv[1:]
    for index, word in enumerate(given):
        text = word.text
        if pending is not None:
            options.append(GivenOption(pending, word, len(words)))
            pending = None
            # A value that may become several words leaves words behind.
            certain = not (word.splits or word.glob)
        elif text == "--" and word.static:
            words += [GivenWord(rest, certain=True, shielded=True) for rest in given[index + 1 :]]
            break
        elif len(text) < 2 or text[0] != "-" or word.leading:
            words.append(GivenWord(word, certain))
            certain = True
        elif text in takes_value and not _has_value(text, takes_value):
            # Nearly every option.
            certain = True
            if takes_value[text]:
                pending = text
            else:
                options.append(GivenOption(text, None, len(words)))
        else:
            pending, certain = _read(word, takes_value, options, len(words))
    if pending is not None:
        options.append(GivenOption(pending, None, len(words)))
    return Arguments(tuple(options), tuple(words))


def _read(word: Word, takes_value: Mapping[str, bool], options: list[GivenOption], at: int) -> tuple[str | None, bool]:
    """Put down the options in one word that is not just one of the table.

    Returns the one whose value follows, and whether the next word is certain.
    """
    text = word.text
    if _has_value(text, takes_value):
        name, _, value = text.partition("=")
        options.append(GivenOption(name, _part(word, value), at, unknown=not word.static and "$" in name))
        return None, True
    if text[1] == "-":
        options.append(GivenOption(text, None, at, unknown=not word.static))
        return None, False
    known = True
    for index in range(1, len(text)):
        letter = "-" + text[index]
        takes = takes_value.get(letter)
        if takes:
            attached = text[index + 1 :]
            if not attached:
                return letter, True
            options.append(GivenOption(letter, _part(word, attached), at))
            return None, True
        known = known and takes is not None
        options.append(GivenOption(letter, None, at, unknown=not word.static))
    if len(text) > 2 and not known:
        # Perhaps it is no bundle but one option that is spelt with one dash.
        options.append(GivenOption(text, None, at))
    return None, known


def _has_value(text: str, takes_value: Mapping[str, bool]) -> bool:
    return "=" in text and (text[1] == "-" or text.partition("=")[0] in takes_value)


def _part(word: Word, text: str) -> Word:
    return Word(text=text, dynamic=word.dynamic, glob=word.glob, splits=word.splits)
