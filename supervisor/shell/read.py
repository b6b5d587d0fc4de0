"""Read a shell text into every command it could run. Pure. Called by the guard for each shell command of an agent."""

from supervisor.model.reading import Command, Opaque, OpaqueKind, Reading, Role
from supervisor.shell.arithmetic import Numbers
from supervisor.shell.launch import launch
from supervisor.shell.place import Call, Place
from supervisor.shell.unreadable import Unreadable
from supervisor.shell.walk import walk_script
from supervisor.shell.words import options_and_words

LONGEST_TEXT = 65_536
_MOST_COMMANDS = 2_000
_MOST_SCRIPTS = 300
_DEEPEST_SCRIPT = 20
_SHOWN = 200
_WRAPPER = Role.WRAPPER  # asked for at every command, and an enum is slow to look up in


def read_shell(text: str) -> Reading:
    """Every simple command the text could run, and everything in it that cannot be seen through.

    Never raises. A text is safe to judge by its commands only if nothing in it is opaque.
    """
    reader = _Reader()
    try:
        text = _unix_lines(text)
        reader.script(text, Place())
        reader.finish()
    except Unreadable as unreadable:
        reader.opaque.append(unreadable.opaque)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in here, the guard has to refuse and not to crash
        reader.refuse(OpaqueKind.INTERNAL, text, f"reading it failed with {type(error).__name__}")
    return Reading(commands=tuple(reader.commands), opaque=tuple(reader.opaque))


class _Reader:
    """The desk: collects the findings and keeps the bounds."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.opaque: list[Opaque] = []
        self._scripts = 0
        self._depth = 0
        self._shells: dict[int, Numbers] = {}

    def report(self, call: Call, place: Place, role: Role = Role.PLAIN) -> None:
        words, assignments, redirects, _ = call
        if len(self.commands) >= _MOST_COMMANDS:
            raise Unreadable(OpaqueKind.TOO_MANY, "", "it holds too many commands")
        path = words[0].text if words else ""
        options, others = options_and_words(words[1:])
        if role is _WRAPPER and _does_something(call, path):
            role = Role.CARRIER
        # By position, in the order of the fields: by name it takes three times as long.
        command = Command(
            path.rpartition("/")[2],
            path,
            words,
            others,
            options,
            redirects,
            assignments,
            place.via,
            place.host,
            place.container,
            place.user,
            role,
        )
        self.commands.append(command)

    def refuse(self, kind: OpaqueKind, text: str, sentence: str) -> None:
        if len(self.opaque) < _MOST_COMMANDS:
            self.opaque.append(Opaque(kind=kind, text=text[:_SHOWN], sentence=sentence))

    def script(self, text: str, place: Place) -> None:
        self._scripts += 1
        if self._scripts > _MOST_SCRIPTS:
            raise Unreadable(OpaqueKind.TOO_MANY, text[:_SHOWN], "it holds too many scripts")
        if self._depth >= _DEEPEST_SCRIPT:
            raise Unreadable(OpaqueKind.TOO_DEEP, text[:_SHOWN], "scripts are nested too deeply in it")
        self._depth += 1
        self._shells[id(place.numbers)] = place.numbers
        try:
            walk_script(self, text, place)
        except Unreadable as unreadable:
            if unreadable.opaque.kind is OpaqueKind.TOO_MANY:
                raise
            self.refuse(unreadable.opaque.kind, unreadable.opaque.text, unreadable.opaque.sentence)
        finally:
            self._depth -= 1

    def finish(self) -> None:
        """Once all is read: refuse sums over variables that may hold something else than numbers."""
        for numbers in self._shells.values():
            for name, text in numbers.doubtful():
                self.refuse(
                    OpaqueKind.EVALUATED_VALUE,
                    text,
                    f"a sum evaluates {name}, which may hold something else than a number",
                )

    def run(self, call: Call, place: Place) -> None:
        before = len(self.commands)
        try:
            launch(self, call, place)
        except Unreadable as unreadable:
            if unreadable.opaque.kind is OpaqueKind.TOO_MANY:
                raise
            if len(self.commands) == before:
                self.report(call, place)
            self.refuse(unreadable.opaque.kind, unreadable.opaque.text, unreadable.opaque.sentence)


def _does_something(call: Call, path: str) -> bool:
    """A wrapper that also writes a file, steers what it starts or is not the usual program is no mere wrapper."""
    unusual = "/" in path and not path.startswith(("/bin/", "/usr/", "/sbin/", "/snap/bin/"))
    writes = any(one.writes and one.target.text != "/dev/null" for one in call.redirects)
    return unusual or writes or any(one.steers for one in call.assignments)


def _unix_lines(text: str) -> str:
    """The text with Unix line ends, where that cannot change what bash makes of it in a way that hides a command."""
    if len(text) > LONGEST_TEXT:
        raise Unreadable(OpaqueKind.TOO_LONG, text[:_SHOWN], f"it is longer than {LONGEST_TEXT} characters")
    if "\r" in text:
        if "\\\r" in text or "<<" in text or "\r" in text.replace("\r\n", ""):
            raise Unreadable(OpaqueKind.CONTROL_CHARACTER, text[:_SHOWN], "a carriage return stands in it")
        text = text.replace("\r\n", "\n")
    return text
