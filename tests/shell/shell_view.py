"""How the shell tests write down what was read: one line per command."""

from supervisor.model.reading import Command, Reading, Role, Word
from supervisor.shell import read_shell


def word(one: Word) -> str:
    """The text; in angle brackets if the shell may make something else of it."""
    return one.text if one.static else f"<{one.text}>"


def line(command: Command) -> str:
    """``[where] program arguments [redirections]``, for example ``host=web1 uptime``."""
    places = (("host", command.host), ("container", command.container), ("user", command.user))
    parts = [f"{name}={value}" for name, value in places if value is not None]
    parts += [f"{one.name}={word(one.value)}" for one in command.assignments]
    parts += [word(one) for one in command.argv]
    parts += [f"{one.operator}{word(one.target)}" for one in command.redirects if one.operator not in ("<<", "<<<")]
    return " ".join(parts)


def lines(text: str) -> list[str]:
    """Every command but mere wrappers; the text has to be clear."""
    reading = read_shell(text)
    assert reading.opaque == (), [(one.kind, one.text, one.sentence) for one in reading.opaque]
    return acting(reading)


def acting(reading: Reading) -> list[str]:
    return [line(command) for command in reading.commands if command.role is not Role.WRAPPER]


def kinds(text: str) -> set[str]:
    return {one.kind.value for one in read_shell(text).opaque}
