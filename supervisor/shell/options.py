"""Tell the options of a wrapper from what it wraps. Pure. Called from the modules that know particular wrappers.

An option that is not in the wrapper's table is refused, because whether the next word is its value or the wrapped
command would be a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from supervisor.model.reading import OpaqueKind, Word
from supervisor.shell.unreadable import Unreadable

_NONE, _REQUIRED, _ATTACHED = "none", "required", "attached"


@dataclass(frozen=True, slots=True)
class Table:
    """The options of one program, each with how it takes a value."""

    kinds: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The options in order, and the words they leave. ``dashed`` is where ``--`` stood among those words, if it did."""

    options: tuple[tuple[str, Word | None], ...]
    rest: tuple[Word, ...]
    dashed: int | None = None

    def has(self, *names: str) -> bool:
        return bool(self.options) and any(name in names for name, _ in self.options)

    def value(self, *names: str) -> Word | None:
        """The value of the last of these options that was given."""
        for name, value in reversed(self.options):
            if name in names:
                return value
        return None


def table(short: str = "", long: str = "") -> Table:
    """``short`` as in getopt: ``u:`` takes a value, ``d?`` only an attached one. ``long`` likewise: ``user= tty``."""
    kinds: dict[str, str] = {}
    for index, letter in enumerate(short):
        if letter not in ":? ":
            mark = short[index + 1 : index + 2]
            kinds["-" + letter] = {":": _REQUIRED, "?": _ATTACHED}.get(mark, _NONE)
    for name in long.split():
        kinds["--" + name.rstrip("=?")] = {"=": _REQUIRED, "?": _ATTACHED}.get(name[-1], _NONE)
    return Table(kinds)


def find_options(words: Sequence[Word], known: Table, *, program: str, permute: bool = False) -> Found:
    """Read options from the front; with ``permute`` also from between the other words."""
    options: list[tuple[str, Word | None]] = []
    rest: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        text = word.text
        if text == "--" and word.static:
            return Found(options=tuple(options), rest=(*rest, *words[index + 1 :]), dashed=len(rest))
        if word.maybe_option:
            raise Unreadable(
                OpaqueKind.WRAPPER_ARGUMENT, text, f"{program} may take this for an option, or for what it has to run"
            )
        if len(text) < 2 or text[0] != "-":
            if not permute:
                return Found(options=tuple(options), rest=tuple(words[index:]))
            rest.append(word)
            index += 1
            continue
        following = words[index + 1] if index + 1 < len(words) else None
        found, used_following = _read(word, following, known, program)
        options += found
        index += 1 + used_following
    return Found(options=tuple(options), rest=tuple(rest))


def positional(word: Word, program: str) -> str:
    """The text of a word that a wrapper takes for itself, once it is certain that it is one word and no option."""
    if word.maybe_option or word.glob:
        raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, word.text, f"an argument of {program} may become several words")
    return word.text


def _read(word: Word, following: Word | None, known: Table, program: str) -> tuple[list[tuple[str, Word | None]], bool]:
    text = word.text
    if text[1] == "-":
        name, equals, value = text.partition("=")
        kind = known.kinds.get(name)
        if kind is None:
            raise _unknown(name, program)
        if equals or kind != _REQUIRED:
            return [(name, _part(word, value) if equals else None)], False
        return [(name, _following(following, name, program))], True
    found: list[tuple[str, Word | None]] = []
    for index in range(1, len(text)):
        name = "-" + text[index]
        kind = known.kinds.get(name)
        attached = text[index + 1 :]
        if kind is None:
            raise _unknown(text, program)
        if kind == _NONE:
            found.append((name, None))
        elif attached or kind == _ATTACHED:
            return [*found, (name, _part(word, attached) if attached else None)], False
        else:
            return [*found, (name, _following(following, name, program))], True
    return found, False


def _part(word: Word, text: str) -> Word:
    return Word(text=text, dynamic=word.dynamic, glob=word.glob, splits=word.splits)


def _following(word: Word | None, name: str, program: str) -> Word:
    if word is None:
        raise Unreadable(OpaqueKind.UNKNOWN_WRAPPER_OPTION, name, f"the option {name} of {program} lacks its value")
    if word.splits or word.glob:
        raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, word.text, f"a value for {program} may become several words")
    return word


def _unknown(name: str, program: str) -> Unreadable:
    return Unreadable(OpaqueKind.UNKNOWN_WRAPPER_OPTION, name, f"{program} has an option here that is not known")
