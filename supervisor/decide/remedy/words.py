"""The arguments and the names that restarts are recognised by. Pure. Used by ``decide.remedy`` and its neighbours."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from supervisor.model.permission import ActionKind
from supervisor.model.reading import Command, Word

# What is done, and to which service; no name means that nobody can tell beforehand.
Hit = tuple[ActionKind, str | None]
Hits = Iterator[Hit]
Reader = Callable[[Command], Hits]
# Makes the name of a service from the text of a word.
Shape = Callable[[str], str | None]
Options = list[tuple[str, Word | None]]

# Signals that let a service go on: nothing was taken down by them.
_GENTLE_SIGNALS = frozenset({"0", "1", "10", "12", "18", "28", "HUP", "USR1", "USR2", "CONT", "WINCH"})
# Flags of their own, though options that take a value begin like them.
_NO_ABBREVIATIONS = frozenset({"--become", "--start"})
_UNITS_OF_MANY = (".target", ".slice", ".scope")
_CONFIG_ENDINGS = (".nomad.hcl", ".nomad", ".hcl", ".yaml", ".yml", ".json", ".toml")

# The letters that Kubernetes makes the ends of names from, and the plain digits of its older versions.
_SAFE = "bcdfghjklmnpqrstvwxz0-9"


def each_of(*texts: str) -> frozenset[str]:
    """The words of a table row: ``each_of("-n --namespace")``."""
    return frozenset(" ".join(texts).split())


def split_verb(
    arguments: Sequence[Word], valued: frozenset[str], verbs: Iterable[str]
) -> tuple[Options, Word | None, Sequence[Word]]:
    """The options before the verb, the verb, and everything after it.

    A word behind an unknown option may be its value. It is passed over when a later word is one of ``verbs``.
    """
    options, words, rest = parse(arguments, valued, until_word=True)
    if not words:
        return options, None, rest
    verb = words[0]
    before = arguments[-len(rest) - 2].text if len(arguments) > len(rest) + 1 else ""
    behind_option = len(before) > 1 and before[0] == "-" and before != "--" and "=" not in before
    if behind_option and verb.static and verb.text not in verbs:
        more, later, after_it = split_verb(rest, valued, verbs)
        if later is not None and (not later.static or later.text in verbs):
            return options + more, later, after_it
    return options, verb, rest


def parse(
    arguments: Sequence[Word],
    valued: frozenset[str] = frozenset(),
    *,
    flags: frozenset[str] | None = None,
    abbreviated: bool = False,
    until_word: bool = False,
) -> tuple[Options, list[Word], Sequence[Word]]:
    """Options with their values, the other words, and what was left unread behind the first of them.

    With ``flags``, every option but those takes a value. An option or a value that may become several words counts as
    a word too, so that nothing it could name is lost.
    """
    options: Options = []
    words: list[Word] = []
    position = 0
    only_words = False
    while position < len(arguments):
        word = arguments[position]
        position += 1
        text = word.text
        if only_words or len(text) < 2 or text[0] != "-":
            words.append(word)
            if until_word:
                break
        elif text == "--":
            only_words = True
        else:
            if word.splits or word.glob:
                words.append(word)
            for written, value in _options_in(word, valued, flags):
                name = _whole_name(written, valued) if abbreviated else written
                if value is None and _takes_value(name, valued, flags) and position < len(arguments):
                    value = arguments[position]
                    position += 1
                options.append((name, value))
                if value is not None and (value.splits or value.glob):
                    words.append(value)
            if until_word and words:
                break
    return options, words, arguments[position:]


def values_of(options: Options, *names: str) -> list[Word]:
    """The values given to any of these options."""
    return [value for name, value in options if name in names and value is not None]


def has(options: Options, *names: str) -> bool:
    """Whether one of these options may be set."""
    return any(name in names and (value is None or value.text != "false") for name, value in options)


def surely(options: Options, *names: str) -> bool:
    """Whether one of these options is set, and nothing after it may switch it off."""
    given = [value for name, value in options if name in names]
    return bool(given) and all(value is None or (value.static and value.text == "true") for value in given)


def name_in(word: Word, shape: Shape) -> str | None:
    """The name that a word gives, when its text is known."""
    return shape(word.text) if word.static else None


def named(kind: ActionKind, words: Sequence[Word], shape: Shape | None = None) -> Hits:
    """One hit for each word that is to name a service; with no word at all, one that names none."""
    if not words:
        yield kind, None
    for word in words:
        yield kind, name_in(word, shape or service_name)


def service_name(text: str) -> str | None:
    """The name a service is known by, however it was written; ``None`` when it may stand for several."""
    name = posixpath.basename(text.rstrip("/")).lower().removesuffix(".service").removesuffix(".socket")
    if name in ("", "all") or name.endswith(_UNITS_OF_MANY):
        return None
    return name if _matches(r"[a-z0-9_][a-z0-9_.@:+%\\-]*", name) else None


def container_name(text: str) -> str | None:
    """The name of a container without its replica number (``shop-web-1``, ``shop_web_1``, ``web.1.<task>``)."""
    name = service_name(text)
    if name is None or _matches(r"[0-9a-f]{12,64}", name):
        return name
    return _cut(r"[-_]\d{1,3}$|\.\d+\.[a-z0-9]{25}$", name)


def pod_name(text: str) -> str | None:
    """The name of what owns a pod: without the ends that a deployment, daemon set or stateful set gave it."""
    name = service_name(text)
    if name is None:
        return None
    return _cut(rf"-(?:[{_SAFE}]{{6,10}}|(?=[a-z]*\d)[a-z0-9]{{8,10}})-[a-z0-9]{{5}}$|-[{_SAFE}]{{5}}$|-\d+$", name)


def replica_set_name(text: str) -> str | None:
    """The name of the deployment that a replica set belongs to."""
    name = service_name(text)
    return None if name is None else _cut(rf"-(?:[{_SAFE}]{{6,10}}|(?=[a-z]*\d)[a-z0-9]{{8,10}})$", name)


def name_of_container(command: Command) -> str | None:
    """The service whose container a command runs in."""
    if command.container is None:
        return None
    return (pod_name if {"kubectl", "oc"} & set(command.via) else container_name)(command.container)


def file_name(text: str) -> str | None:
    """The stem of one local file of a known format; ``None`` for a directory, an address or standard input."""
    name = posixpath.basename(text)
    for ending in _CONFIG_ENDINGS:
        if name.endswith(ending) and "://" not in text:
            return service_name(name.removesuffix(ending))
    return None


def is_gentle(signal: Word | None) -> bool:
    """Whether a signal is one that takes nothing down."""
    if signal is None or not signal.static:
        return False
    return signal.text.upper().lstrip("-").removeprefix("SIG") in _GENTLE_SIGNALS


def all_gentle(signals: Sequence[Word]) -> bool:
    """Whether signals were named at all, and only such that take nothing down."""
    return bool(signals) and all(is_gentle(signal) for signal in signals)


def is_signal(word: Word) -> bool:
    """``-9``, ``-KILL`` or ``-SIGKILL``."""
    return _matches(r"-(?:\d+|(?:SIG)?[A-Z]{3,}[0-9]*(?:[+-]\d+)?)", word.text)


def some_maybe_option(words: Sequence[Word]) -> bool:
    """Whether one of the words may turn out to be an option."""
    return any(word.maybe_option for word in words)


def _options_in(word: Word, valued: frozenset[str], flags: frozenset[str] | None) -> Iterator[tuple[str, Word | None]]:
    """The options of one token: ``--name=value``, ``-name``, or a bundle of letters, the last perhaps with a value."""
    text = word.text
    name, equals, value = text.partition("=")
    if text[1] == "-" or name in valued:
        yield name, _part(word, value) if equals else None
        return
    for position, letter in enumerate(text[1:], start=2):
        attached = text[position:]
        if letter in "$`*?[" and not word.static:
            return
        if attached and _takes_value("-" + letter, valued, flags):
            yield "-" + letter, _part(word, attached.removeprefix("="))
            return
        yield "-" + letter, None


def _takes_value(name: str, valued: frozenset[str], flags: frozenset[str] | None) -> bool:
    return name in valued if flags is None else name not in flags


def _whole_name(name: str, valued: frozenset[str]) -> str:
    """The option that an abbreviation stands for, as far as it is one that takes a value."""
    if name in valued or name in _NO_ABBREVIATIONS or name[:2] != "--":
        return name
    return next((one for one in sorted(valued) if one.startswith(name)), name)


def _part(word: Word, text: str) -> Word:
    return Word(text=text, dynamic=word.dynamic, glob=word.glob, splits=word.splits)


# Patterns stay texts until they are needed: most calls restart nothing, and ``re`` keeps what it has compiled.
def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _cut(pattern: str, name: str) -> str:
    return re.sub(pattern, "", name, count=1) or name
