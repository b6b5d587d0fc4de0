"""What only the text of a shell command tells, not the commands in it. Pure. Called from ``permission``.

Where a text cannot be told apart with certainty, the answers here err towards refusing.
"""

import re
from collections.abc import Sequence
from typing import Final

from supervisor.decide.rules.own_names import steers
from supervisor.model.reading import Command

# Each begins with fixed characters, which are found many times faster than a choice or a border of a word.
_SET_UNSEEN: Final = (
    *(re.compile(rf"{word}(?<!\w{word})(?=\s+([A-Za-z_]\w*))") for word in ("for", "select", "coproc")),
    re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[^\]]*\])?:?="),
)
_OWN_VALUE: Final = re.compile(r"\$\{?[!#]?(?:ANTHROPIC|CLAUDE_|CLAUDECODE|OPSLADDER)\w*")
_QUOTED: Final = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?:(?<=\s)|^)\#[^\n]*""", re.DOTALL | re.MULTILINE)
_IN_BACKGROUND: Final = re.compile(r"&(?<![&<>|]&)(?![&>])")
_STARTS_TEXT: Final = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "busybox", "eval", "ssh", "autossh", "su", "runuser", "watch"}
    | {"flock", "script", "parallel", "tmux", "trap"}
)
_DETACH: Final = frozenset({"coproc", "disown", "setsid"})
_CONSTRUCTS: Final = frozenset({"for", "while", "until", "select", "function"})
_FUNCTION: Final = re.compile(r"\s*([A-Za-z_]\w*)[ \t]*\(\)\s*\{\s([^{}\\`#]*?[;\n]\s*)\}[ \t]*[;\n]")
_NOT_IN_A_FUNCTION: Final = ("(", ")", "<<")


def steering_names(text: str) -> list[str]:
    """The variables that steer other programs and are set by a loop or an expansion in this text."""
    found = [match for pattern in _SET_UNSEEN for match in pattern.finditer(text)]
    names: list[str] = []
    read_to = 0
    for match in sorted(found, key=re.Match.start):
        if match.start() >= read_to:
            read_to = max(match.end(), match.end(1))
            names.append(match[1])
    return [name for name in names if steers(name)]


def own_values(text: str) -> list[str]:
    """Where the text asks for a variable that holds something of the supervisor's."""
    return _OWN_VALUE.findall(text)


def leaves_behind(text: str, commands: Sequence[Command]) -> bool:
    """Whether something may still run when the text is done."""
    for command in commands:
        if command.name in _DETACH and _detaches(command):
            return True
    if "&" not in text:
        return False
    # What a shell is given in quotes can hold an ampersand of its own.
    nested = any(command.name in _STARTS_TEXT or not in_the_same_shell(command) for command in commands)
    looked_at = text if nested else _QUOTED.sub(_substitutions, text)
    return _IN_BACKGROUND.search(looked_at) is not None


def in_the_same_shell(command: Command) -> bool:
    """Whether nothing but loops and functions of the text itself stands around the command."""
    return command.host is None and command.container is None and _CONSTRUCTS.issuperset(command.via)


def first_function(text: str) -> str | None:
    """The name of a function that the text certainly defines, because it begins with nothing else."""
    found = _FUNCTION.match(text)
    if found is None or any(mark in found[2] for mark in _NOT_IN_A_FUNCTION):
        return None
    return found[1] if _quotes_are_closed(found[2]) else None


def _detaches(command: Command) -> bool:
    return command.name != "setsid" or not command.has_option("-w", "--wait")


def _substitutions(quoted: re.Match[str]) -> str:
    return quoted[0] if quoted[0][0] == '"' and ("$(" in quoted[0] or "`" in quoted[0]) else ""


def _quotes_are_closed(text: str) -> bool:
    mark = ""
    for character in text:
        if not mark and character in "'\"":
            mark = character
        elif character == mark:
            mark = ""
    return not mark
