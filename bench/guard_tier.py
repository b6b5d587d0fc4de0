"""Tier 1 with the shipped rules, as the guard judges it: without records, cooldowns and approvals. Reads one file.

Used by the parts of ``guard``. The script is one an investigator would write: every command in it is allowed.
"""

from pathlib import Path

from supervisor.decide.rules.permission import permission
from supervisor.model.permission import Decision, ToolCall
from supervisor.model.reading import Reading
from supervisor.model.rule import OffLimits
from supervisor.settings import Settings
from supervisor.shell import read_shell

SCRIPT = Path(__file__).with_name("investigation.sh").read_text(encoding="utf-8")
_WORK_DIR = "/srv/shop"


class TierOne:
    """Decides about shell commands."""

    def __init__(self, settings: Settings) -> None:
        self._rules = settings.rules_for(1)
        self._limits = OffLimits(paths=settings.own_paths(), pids=frozenset({1}), work_dir=_WORK_DIR, home="/root")

    def decide(self, call: ToolCall, reading: Reading | None = None) -> Decision:
        """The whole decision; only its second half if the text has been read already."""
        found = reading or read_shell(str(call.input.get("command")))
        return permission(call, found, self._rules, self._limits, dry_run=False)


def bash(text: str) -> ToolCall:
    return ToolCall(tool_use_id="bench", tool="Bash", input={"command": text}, cwd=_WORK_DIR)
