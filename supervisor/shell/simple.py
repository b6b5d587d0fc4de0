"""From a lexed simple command to a call the desk can run. Pure. Called from ``walk``, which finds the commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from supervisor.model.reading import Assignment, OpaqueKind, Redirect, Word
from supervisor.shell.arithmetic import is_number
from supervisor.shell.builtins import EVALUATES, evaluated
from supervisor.shell.lex import DECLARATIONS, RawAssignment, RawRedirect, SimpleCommand
from supervisor.shell.pieces import Piece, RawWord, text_of
from supervisor.shell.place import NO_FEED, Call, Desk, Feed, Place, Source
from supervisor.shell.scan import Scanner
from supervisor.shell.variables import SAFE_VALUE, CertainNames
from supervisor.shell.words import value_of, words_of

_DECODERS = frozenset({"base64", "base32", "basenc", "xxd", "uudecode", "openssl", "gpg", "od", "rev", "tr"})
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>", "<>"})
_READS_INPUT = frozenset({"<", "<>", "<&", "<<", "<<<"})
_CONDITION = Word(text="[[")
_SPECIAL = EVALUATES | DECLARATIONS
_PIPED = {decoded: Feed(source=Source.PIPED, decoded=decoded) for decoded in (False, True)}


class Statements:
    """Turns the statements of one script into calls, and keeps what they tell about its variables."""

    def __init__(self, desk: Desk, place: Place) -> None:
        self.values = dict(place.values)
        self.alone = False
        self.assigned: list[RawAssignment] = []  # what the last statement did, if it did nothing else
        self._desk = desk
        self._place = place
        self._decoded = False
        # Its values are those of now: whoever reads a script from here copies them, and is done before the next one.
        self._here = replace(place, values=self.values)

    @contextmanager
    def repeating(self, construct: str) -> Iterator[None]:
        """What is taken meanwhile may run any number of times, because it stands inside of ``construct``."""
        outside = self._place
        self._place = replace(outside, via=(*outside.via, construct))
        self._here = replace(self._place, values=self.values)
        try:
            yield
        finally:
            self._place = outside
            self._here = replace(outside, values=self.values)

    def take(self, command: SimpleCommand, *, piped: bool) -> None:
        """Hand over one simple command, and every script its words run."""
        for raw in command.words:
            if raw.known is None and (raw.scripts or raw.sums):
                self.expand(raw)
        for redirect in command.redirects:
            self.expand(redirect.target)
        for assignment in command.assignments:
            self._assign(assignment)
        words = self._words(command.words)
        redirects = tuple([self._redirect(redirect) for redirect in command.redirects])
        assignments = [Assignment(name=one.name, value=self._value(one)) for one in command.assignments]
        program = words[0].text if words else ""
        if program in DECLARATIONS:
            assignments += _declared(words)
        self.assigned = [] if words or redirects else command.assignments
        if program in EVALUATES:
            for problem in evaluated(words, self._place.numbers):
                self._desk.refuse(OpaqueKind.EVALUATED_VALUE, " ".join(word.text for word in words), problem)
        call = Call(words=words, assignments=tuple(assignments), redirects=redirects, feed=self._feed(redirects, piped))
        self._decoded = (piped and self._decoded) or program.rpartition("/")[2] in _DECODERS
        self._desk.run(call, self._here)

    def take_plain(self, words: tuple[Word, ...], *, piped: bool) -> bool:
        """Hand over a command that is nothing but these words; ``False`` if there is more to do about it."""
        program = words[0].text
        if program in _SPECIAL:
            return False
        self.assigned = []
        feed = _PIPED[self._decoded] if piped else self._place.feed if self.alone else NO_FEED
        self._decoded = (piped and self._decoded) or program.rpartition("/")[2] in _DECODERS
        self._desk.run(Call(words, (), (), feed), self._here)
        return True

    def expand(self, raw: RawWord) -> None:
        """Read the scripts and sums that run when this word is expanded."""
        for script in raw.scripts:
            here = self._here
            self._desk.script(text_of(script), here if here.feed is NO_FEED else replace(here, feed=NO_FEED))
        for text in raw.sums:
            self.evaluate(text)

    def evaluate(self, text: str) -> None:
        """Take note of a sum and read the scripts in it."""
        expanded = Scanner(text).body()
        problem = self._place.numbers.evaluate(text, expanded)
        if problem is not None:
            self._desk.refuse(OpaqueKind.EVALUATED_VALUE, text_of(text), problem)
        self.expand(expanded)

    def condition(self, raw: RawWord, text: str) -> None:
        """The inside of ``[[ … ]]``: scripts in it run, and numeric comparisons evaluate both sides."""
        self.expand(raw)
        word = Word(text=text.strip(), dynamic=any(piece.expands for piece in raw.pieces))
        # What a substitution looks like inside must not be taken for a part of the condition.
        shape = "".join("$()" if _substitutes(piece) else piece.text for piece in raw.pieces)
        for problem in evaluated((_CONDITION, replace(word, text=shape.strip())), self._place.numbers):
            self._desk.refuse(OpaqueKind.EVALUATED_VALUE, text.strip(), problem)
        self._desk.report(Call(words=(_CONDITION, word)), self._here)

    def loop_values(self, name: str, raw: list[RawWord]) -> list[str] | None:
        """The values a loop goes through, if they are certain; takes note of what its variable may hold."""
        for one in raw:
            self.expand(one)
        self._place.numbers.assign(name, number=bool(raw) and all(_counts(one) for one in raw))
        words = [word for one in raw for word in words_of(one, self.values)]
        if all(word.static and SAFE_VALUE.fullmatch(word.text) for word in words):
            return [word.text for word in words]
        return None

    def forget(self) -> None:
        """A new statement begins: what the last one assigned no longer matters to ``bind``."""
        self.assigned = []

    def bind(self, certain: CertainNames, *, in_background: bool) -> None:
        """Remember what the last statement assigned, if it stands on its own and the values are certain."""
        for assignment in self.assigned:
            value = self._value(assignment)
            plain = not assignment.is_array and assignment.subscript is None and not in_background
            if plain and value.static and SAFE_VALUE.fullmatch(value.text) and certain.keeps(assignment.name):
                self.values[assignment.name] = value.text

    def _assign(self, assignment: RawAssignment) -> None:
        for raw in assignment.values:
            self.expand(raw)
        if assignment.subscript is not None:
            self.evaluate(assignment.subscript)
        self._place.numbers.assign(assignment.name, number=all(is_number(raw) for raw in assignment.values))

    def _words(self, raw: list[RawWord]) -> tuple[Word, ...]:
        words: list[Word] = []
        for one in raw:
            if one.known is not None:
                words.append(one.known)
            else:
                words += words_of(one, self.values)
        return tuple(words)

    def _value(self, assignment: RawAssignment) -> Word:
        parts = [value_of(raw, self.values) for raw in assignment.values]
        text = " ".join(part.text for part in parts)
        return Word(text=text, dynamic=any(part.dynamic for part in parts))

    def _redirect(self, redirect: RawRedirect) -> Redirect:
        found = words_of(redirect.target, self.values) if not redirect.operator.startswith("<<") else []
        target = found[0] if len(found) == 1 else value_of(redirect.target, self.values)
        if len(found) > 1:
            target = replace(target, dynamic=True, splits=True)
        duplicates = (target.static and target.text.rstrip("-").isdigit()) or target.text == "-"
        writes = redirect.operator in _WRITES or (redirect.operator == ">&" and not duplicates)
        return Redirect(operator=redirect.operator, target=target, writes=writes, descriptor=redirect.descriptor)

    def _feed(self, redirects: tuple[Redirect, ...], piped: bool) -> Feed:
        for redirect in reversed(redirects):
            if redirect.operator in _READS_INPUT and redirect.descriptor in (None, "0"):
                is_text = redirect.operator in ("<<", "<<<")
                return Feed(source=Source.TEXT, text=redirect.target) if is_text else Feed(source=Source.FILE)
        if piped:
            return _PIPED[self._decoded]
        return self._place.feed if self.alone else NO_FEED


def _substitutes(piece: Piece) -> bool:
    return piece.expands and piece.text.startswith(("$(", "`", "<(", ">(")) and not piece.number


def _counts(raw: RawWord) -> bool:
    return is_number(raw) or all(word.static and word.text.lstrip("-").isdigit() for word in words_of(raw, {}))


def _declared(words: tuple[Word, ...]) -> list[Assignment]:
    found = []
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if equals and name.rstrip("+").isidentifier():
            found.append(Assignment(name=name.rstrip("+"), value=Word(text=value, dynamic=word.dynamic)))
    return found
