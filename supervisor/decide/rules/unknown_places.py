"""What a word may name whose beginning is only known at run time. Pure. Called from ``shut_paths``.

Nobody knows where ``$d/shadow`` is. But a text that assigns ``d`` somewhere says what it may be, and the end of the
word says whether it is meant for something shut.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from supervisor.model.reading import Command, Word

Values = Mapping[str, Sequence[str]]

_VARIABLE: Final = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_LEADING: Final = re.compile(r"(?:\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`|\$[A-Za-z_0-9@*#?!-]+)+")
_MOST_READINGS: Final = 64
_LETTERS_THAT_TELL: Final = 4


def values_in(commands: Sequence[Command]) -> Values:
    """Every value that a text gives to a variable, whether or not it gets there."""
    found: dict[str, list[str]] = {}
    for command in commands:
        for assignment in command.assignments:
            if assignment.value.static and assignment.value.text:
                found.setdefault(assignment.name, []).append(assignment.value.text)
    return found


def read_as(word: Word, values: Values) -> Iterator[Word]:
    """The word with each value that its variables may have, as far as the text tells; without any, nothing."""
    texts = [word.text]
    for name in dict.fromkeys(match[1] or match[2] for match in _VARIABLE.finditer(word.text)):
        if name in values:
            texts = [_with(text, name, value) for text in texts for value in values[name]][:_MOST_READINGS]
    for text in texts:
        if text != word.text:
            yield Word(text=text, dynamic="$" in text or "`" in text, glob=word.glob)


def ends_like(word: Word, patterns: Sequence[str]) -> bool:
    """Whether what follows an unknown beginning is the end of a path that one of the patterns means."""
    leading = _LEADING.match(word.text)
    if leading is None or word.text[leading.end() : leading.end() + 1] != "/":
        return False
    tail = [part for part in word.text[leading.end() :].split("/") if part]
    return bool(tail) and any(_is_end(pattern, tail) for pattern in patterns)


def _with(text: str, name: str, value: str) -> str:
    return _VARIABLE.sub(lambda match: value if name in (match[1], match[2]) else match[0], text)


def _is_end(pattern: str, tail: list[str]) -> bool:
    below = pattern.endswith("/**")
    parts = [part for part in pattern.removesuffix("/**").split("/") if part]
    if not parts or not _tells(parts[-1]):
        return False
    if below:
        return fnmatchcase(tail[0], parts[-1])
    # Of a pattern without a place, every part counts: config.json is everywhere, .docker/config.json is not.
    wanted = parts[1:] if parts[0] == "**" else parts[-min(len(parts), len(tail)) :]
    return len(tail) >= len(wanted) and all(map(fnmatchcase, tail[-len(wanted) :], wanted))


def _tells(part: str) -> bool:
    return part[0] not in "*?" and len(part.strip("*?")) >= _LETTERS_THAT_TELL
