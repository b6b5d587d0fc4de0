"""The names of variables that tie a process to a run or a session. Pure. Used by claude.command and claude.tree."""

MARK = "OPSLADDER_RUN"

# Seen in the environment of commands that 2.1.225 and 2.1.325 start. A CLI that inherits them takes itself for a part
# of that session and keeps its transcript differently.
_NAMES = frozenset(
    {"AI_AGENT", "CLAUDECODE", "CLAUDE_EFFORT", "CLAUDE_PID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_EXECPATH"}
)
_PREFIXES = (
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_",
    "CLAUDE_CODE_SESSION_",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_RESUME_",
)


def is_session_mark(name: str) -> bool:
    """Whether a variable says to which CLI session its process belongs."""
    return name in _NAMES or name.startswith(_PREFIXES)
