"""The steps wrappers have in common: going on with the wrapped words, or with a text as a script. Pure."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from supervisor.model.reading import Assignment, OpaqueKind, Word
from supervisor.shell.arithmetic import Numbers
from supervisor.shell.options import Found
from supervisor.shell.place import NO_FEED, Call, Desk, Feed, Place
from supervisor.shell.unreadable import Unreadable

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def deeper(
    place: Place, program: str, *, user: str | None = None, host: str | None = None, container: str | None = None
) -> Place:
    """The place of what a wrapper starts: another process, so nothing is known of its variables."""
    return Place(
        via=(*place.via, program),
        depth=place.depth + 1,
        user=user or (place.user if host is None and container is None else None),
        host=host or place.host,
        container=container or (place.container if host is None else None),
        feed=NO_FEED,
        values={},
        numbers=Numbers(),
    )


def run_words(desk: Desk, words: Sequence[Word], call: Call, place: Place, *, extra: Sequence[Assignment] = ()) -> None:
    """Go on with the words a wrapper would start, on the same standard input."""
    desk.run(Call(words=tuple(words), assignments=tuple(extra), feed=call.feed), place)


def run_text(desk: Desk, text: Word, place: Place, feed: Feed) -> None:
    """Read a text that a wrapper gives to a shell."""
    if not text.static:
        raise Unreadable(OpaqueKind.DYNAMIC_SCRIPT, text.text, "a shell is given text that is only known at run time")
    desk.script(text.text, place if place.feed is feed else replace(place, feed=feed))


def joined(words: Sequence[Word]) -> Word:
    """The words as one text, as ``eval`` and ``ssh`` make it."""
    text = " ".join(word.text for word in words)
    return Word(text=text, dynamic=any(not word.static for word in words))


def take_assignments(words: Sequence[Word], program: str) -> tuple[list[Assignment], Sequence[Word]]:
    """Part leading ``NAME=value`` words from the rest."""
    found: list[Assignment] = []
    for index, word in enumerate(words):
        match = _ASSIGNMENT.fullmatch(word.text)
        if match is None or word.leading:
            return found, words[index:]
        if word.splits:
            raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, word.text, f"a value for {program} may become several words")
        found.append(Assignment(name=match.group(1), value=Word(text=match.group(2), dynamic=word.dynamic)))
    return found, ()


def variables_set(found: Found, options: Collection[str]) -> list[Assignment]:
    """The variables that options like ``docker exec -e NAME=value`` give to what is started."""
    given = [value for name, value in found.options if name in options and value is not None]
    matches = [(_ASSIGNMENT.fullmatch(value.text), value) for value in given]
    return [
        Assignment(name=match[1], value=Word(text=match[2], dynamic=value.dynamic))
        if match is not None
        # Taken over from outside, or named only at run time.
        else Assignment(name=value.text, value=Word(text="", dynamic=True))
        for match, value in matches
    ]


def run_shell(desk: Desk, call: Call, place: Place) -> None:
    """A wrapper that was given no command starts a shell."""
    desk.run(Call(words=(Word(text="sh"),), feed=call.feed), place)
