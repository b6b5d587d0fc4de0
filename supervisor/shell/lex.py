"""Split one simple command into assignments, words and redirections. Pure. Called from ``walk``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from supervisor.model.reading import OpaqueKind
from supervisor.shell.pieces import RawWord, exact_word, literal_word, text_of
from supervisor.shell.scan import ARGUMENTS, Scanner
from supervisor.shell.unreadable import Unreadable

_BLANK = re.compile(r"(?:[ \t]|\\\n)*")
# A number right before &> is no descriptor but an argument.
_REDIRECT = re.compile(r"(?:([0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})(?!&))?(&>>|&>|<<<|<<-?|<&|>&|>>|>\||<>|<|>)")
_MAY_REDIRECT = frozenset("<>&{0123456789")
_MAY_BE_NO_WORD = _MAY_REDIRECT | frozenset("|;()\n#")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([A-Za-z0-9_@*+-]*)\])?\+?=")
DECLARATIONS = frozenset({"declare", "typeset", "local", "export", "readonly"})


@dataclass(slots=True)
class RawRedirect:
    operator: str
    descriptor: str | None
    target: RawWord


@dataclass(slots=True)
class RawAssignment:
    name: str
    subscript: str | None
    values: list[RawWord]
    is_array: bool


@dataclass(slots=True)
class SimpleCommand:
    """The parts of one simple command, still as raw words."""

    assignments: list[RawAssignment] = field(default_factory=list)
    words: list[RawWord] = field(default_factory=list)
    redirects: list[RawRedirect] = field(default_factory=list)
    first: str = ""  # the first word as it is written


def lex_command(scanner: Scanner, start: int, end: int, bodies: Mapping[int, RawWord]) -> SimpleCommand:
    """Read the source from start to end as one simple command, and refuse if it is not exactly one.

    ``bodies`` holds the text of here-documents by the position of their operator.
    """
    command = SimpleCommand()
    begun = scanner.begun.get(start)
    if begun is not None and begun[0] <= end and begun[1][0].text not in DECLARATIONS:
        position, words = begun
        command.first = words[0].text
        command.words = [exact_word(word.text) for word in words]
        position = _arguments(scanner, position, end, command)
    else:
        position = start
    _lex(scanner, start, _skip(scanner.source, position, end), end, bodies, command)
    return command


def _lex(
    scanner: Scanner, start: int, position: int, end: int, bodies: Mapping[int, RawWord], command: SimpleCommand
) -> None:
    source = scanner.source
    while position < end:
        redirect = _REDIRECT.match(source, position) if source[position] in _MAY_REDIRECT else None
        if redirect and not (redirect.group(2) in ("<", ">") and source.startswith("(", redirect.end())):
            position = _redirect(scanner, redirect, end, bodies, command)
        elif redirect and redirect.group(1):
            raise _misread(source, start, end, "a process substitution stands right after a number")
        elif source[position] in "|&;()\n#":
            raise _misread(source, start, end, "an operator or a comment stands inside a command")
        else:
            position = _word(scanner, position, command)
            if command.words and not _declares(command):
                position = _arguments(scanner, position, end, command)
        if position > end:
            raise _misread(source, start, end, "a word runs past the end of its command")
        position = _skip(source, position, end)


def _arguments(scanner: Scanner, position: int, end: int, command: SimpleCommand) -> int:
    """Take the words that follow, up to where something else than a word may stand; returns where that is."""
    source, words = scanner.source, command.words
    while position < end:
        several = ARGUMENTS.match(source, position)
        if several and several.end() <= end:
            words += [literal_word(text) for text in several[0].split()]
            position = several.end()
            continue
        position = _skip(source, position, end)
        if position == end or source[position] in _MAY_BE_NO_WORD:
            break
        word = scanner.word(position)
        if not word.size:
            break
        words.append(word)
        position += word.size
    return position


def lex_words(scanner: Scanner, start: int, end: int) -> list[RawWord]:
    """Read the source from start to end as plain words (the values of a loop)."""
    command = SimpleCommand()
    _lex(scanner, start, _skip(scanner.source, start, end), end, {}, command)
    if command.redirects:
        raise _misread(scanner.source, start, end, "a redirection stands in a list of words")
    if command.assignments:
        raise Unreadable(
            OpaqueKind.UNSUPPORTED, text_of(scanner.source[start:end]), "a loop value looks like an assignment"
        )
    return command.words


def _redirect(
    scanner: Scanner, found: re.Match[str], end: int, bodies: Mapping[int, RawWord], command: SimpleCommand
) -> int:
    source = scanner.source
    descriptor, operator = found.groups()
    start = _skip(source, found.end(), end)
    target = scanner.word(start)
    if not target.size:
        raise _misread(source, found.start(), end, "a redirection has no target")
    if operator in ("<<", "<<-"):
        body = bodies.get(found.start(2))
        if body is None:
            raise _misread(source, found.start(), end, "a here-document stands where none was found")
        operator, end_of_word, target = "<<", start + target.size, body
    else:
        end_of_word = start + target.size
    command.redirects.append(RawRedirect(operator, descriptor, target))
    return end_of_word


def _word(scanner: Scanner, position: int, command: SimpleCommand) -> int:
    source = scanner.source
    if command.words and not _declares(command):
        return _plain_word(scanner, position, command)
    assignment = _ASSIGNMENT.match(source, position)
    if assignment and not command.words:
        name, subscript = assignment.groups()
        if source.startswith("(", assignment.end()):
            values, position = scanner.array(assignment.end() + 1)
            command.assignments.append(RawAssignment(name, subscript, values, is_array=True))
            return position
        value = scanner.word(assignment.end())
        command.assignments.append(RawAssignment(name, subscript, [value], is_array=False))
        return assignment.end() + value.size
    if assignment and source.startswith("(", assignment.end()):
        values, position = scanner.array(assignment.end() + 1)
        command.assignments.append(RawAssignment(assignment.group(1), assignment.group(2), values, is_array=True))
        return position
    return _plain_word(scanner, position, command)


def _plain_word(scanner: Scanner, position: int, command: SimpleCommand) -> int:
    word = scanner.word(position)
    end = position + word.size
    if end == position:
        raise _misread(scanner.source, position, position + 20, "nothing readable stands here")
    if not command.words:
        command.first = scanner.source[position:end]
    command.words.append(word)
    return end


def _declares(command: SimpleCommand) -> bool:
    first = command.words[0].pieces
    return len(first) == 1 and first[0].text in DECLARATIONS


def _skip(source: str, position: int, end: int) -> int:
    if position < end and source[position] == " ":  # by far the most often, and only one of them
        position += 1
    if position < end and source[position] not in " \t\\":
        return position
    blank = _BLANK.match(source, position, end)
    return blank.end() if blank else position


def _misread(source: str, start: int, end: int, problem: str) -> Unreadable:
    return Unreadable(OpaqueKind.MISREAD, text_of(source[start:end]), problem)
