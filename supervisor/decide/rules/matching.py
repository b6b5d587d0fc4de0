"""Whether a pattern matches a command: strictly for what it would allow, generously for all else. Pure.

Called from ``shell_rules`` for the patterns of a command's own program. Strictly means that every argument has
its place in the pattern, and that nothing which is only known at run time could turn the command into another one.
Generously means that the words of the pattern stand somewhere in the command, in this order, with whatever between.
"""

import fnmatch
from collections.abc import Mapping, Sequence

from supervisor.decide.rules.arguments import Arguments, GivenOption, arguments_of
from supervisor.decide.rules.checks import CHECKS
from supervisor.decide.rules.own_names import DECLARES, is_harmless
from supervisor.decide.rules.path_names import Standing, certain_path, paths_named
from supervisor.decide.rules.path_patterns import could_fit, fits
from supervisor.model.reading import Command, Word
from supervisor.model.rule import CommandPattern, OptionPattern, WordPattern


def strictly(
    pattern: CommandPattern,
    command: Command,
    before: Command | None,
    options: Mapping[str, bool],
    standing: Standing,
) -> bool:
    """Whether the command is nothing else than what the pattern says. ``before`` is the command before it."""
    programs, words, rest, _, forbidden, _, known, checks = pattern
    if command.path not in programs and not _is_installed(programs, command):
        return False
    if words and not _worth_a_look(words[0], command):
        return False
    if command.assignments and steering_assignments(command):
        return False
    if not rest or words or known or forbidden:
        given = arguments_of(command, {**options, **known} if known else options)
        if not _words_strictly(pattern, given, standing) or not _options_strictly(pattern, given):
            return False
    return not checks or all(CHECKS[check](command, before) for check in checks)


def _is_installed(programs: tuple[str, ...], command: Command) -> bool:
    """Whether it is a program that is meant by its name, from where programs are installed."""
    return command.standard_path and any("/" not in program for program in programs)


def _worth_a_look(first: WordPattern, command: Command) -> bool:
    """Whether the first word of a pattern stands anywhere; most patterns of a program are ruled out by that."""
    if first.globs or first.paths or first.anything:
        return True
    return not first.exact.isdisjoint([word.text for word in command.argv])


def steering_assignments(command: Command) -> list[str]:
    """The variables set for this command that can change what it runs. For ``read``, ``IFS`` only parts its input."""
    if not command.assignments:
        return []
    if not command.name:
        return [one.name for one in command.assignments if one.steers]
    return [
        one.name
        for one in command.assignments
        if not is_harmless(one) and (one.name, command.name) != ("IFS", "read") and command.name not in DECLARES
    ]


def rules_out(pattern: CommandPattern, texts: Sequence[str]) -> bool:
    """Whether words with these texts, in lower case, certainly lack the first word of the pattern.

    Most patterns of a program are ruled out by that. ``texts`` hold no shell patterns.
    """
    if not pattern.words:
        return False
    first = pattern.words[0]
    return not (first.anything or first.globs or first.paths) and first.exact.isdisjoint(texts)


def generously(pattern: CommandPattern, command: Command, standing: Standing) -> bool:
    """Whether the command could be what the pattern says."""
    for option in pattern.required:
        if not _is_set(command, option):
            return False
    for option in pattern.forbidden:
        if command.has_option(*option.names):
            return False
    words = iter(command.words)
    for wanted in pattern.words:
        if wanted.paths and _could_name(wanted, command, standing):
            continue
        for word in words:
            if _could_be(wanted, word):
                break
        else:
            return False
    return True


def glob(pattern: str, text: str) -> bool:
    """Whether ``*`` in a pattern can stand for something that makes it the text."""
    first, *others = pattern.split("*")
    if not others:
        return text == first
    last = others.pop()
    position, end = len(first), len(text) - len(last)
    if position > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in others:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


def _words_strictly(pattern: CommandPattern, given: Arguments, standing: Standing) -> bool:
    wanted, rest = pattern.words, pattern.rest
    for index, (word, certain, shielded) in enumerate(given.words):
        if word.maybe_option and not shielded and _option_would_harm(pattern, index):
            return False
        if index < len(wanted) or (wanted and wanted[-1].repeated and not rest):
            place = wanted[min(index, len(wanted) - 1)]
            if not certain or not _is(place, word, standing):
                return False
        elif not rest:
            return False
    return len(given.words) >= len(wanted)


def _option_would_harm(pattern: CommandPattern, at: int) -> bool:
    return pattern.only is not None or any(_matters(option, at) for option in pattern.forbidden)


def _is(place: WordPattern, word: Word, standing: Standing) -> bool:
    """Whether a word is certain to fit its place."""
    if place.anything:
        return place.repeated or not (word.splits or word.glob)
    if word.static and (word.text in place.exact or any(glob(one, word.text) for one in place.globs)):
        return True
    if not place.paths:
        return False
    path = certain_path(word, standing)
    return path is not None and fits(path, place.paths, standing)


def _options_strictly(pattern: CommandPattern, given: Arguments) -> bool:
    required, forbidden, only = pattern.required, pattern.forbidden, pattern.only
    if not given.options:
        return not required
    if only is None and not required and not forbidden:
        return True
    for option in required:
        if not any(_gives(one, option) for one in given.options):
            return False
    for one in given.options:
        name, value, at, unknown = one
        if (unknown or (value is not None and value.splits)) and _option_would_harm(pattern, at):
            return False
        for option in forbidden:
            if _matters(option, at) and _forbids(option, name):
                return False
        listed = only is None or name in only
        for option in required:
            if name in option.names:
                listed = True
                if not _gives(one, option):
                    return False
        if not listed:
            return False
    return True


def _gives(one: GivenOption, option: OptionPattern) -> bool:
    if one.name not in option.names:
        return False
    if not option.values:
        return True
    return one.value is not None and one.value.static and any(glob(value, one.value.text) for value in option.values)


def _matters(option: OptionPattern, at: int) -> bool:
    return option.before is None or at <= option.before


def _forbids(option: OptionPattern, name: str) -> bool:
    if name in option.names:
        return True
    return name[:2] == "--" and len(name) > 2 and any(one.startswith(name) for one in option.names)


def _is_set(command: Command, option: OptionPattern) -> bool:
    if not command.has_option(*option.names):
        return False
    if not option.values:
        return True
    texts = [one.value if one.value is not None else one.text[2:] for one in command.options]
    texts += [word.text for word in command.words]
    return any(glob(value, text) for value in option.values for text in texts)


def is_patterned(text: str) -> bool:
    """Whether a shell may take a text for a pattern."""
    return "*" in text or "?" in text or "[" in text


def _could_be(wanted: WordPattern, word: Word) -> bool:
    """Whether a word could fit its place; one with a shell pattern, if it means what stands there."""
    if wanted.anything:
        return True
    text = word.text.lower()
    if text in wanted.exact or (wanted.globs and any(glob(one, text) for one in wanted.globs)):
        return True
    if not is_patterned(text):
        return False
    return bool(fnmatch.filter([sample.replace("*", "") for sample in (*wanted.exact, *wanted.globs)], text))


def _could_name(wanted: WordPattern, command: Command, standing: Standing) -> bool:
    """Whether any argument could name a path that fits, also as part of an option."""
    return any(
        could_fit(path, wanted.paths, standing) for word in command.argv[1:] for path in paths_named(word, standing)
    )
