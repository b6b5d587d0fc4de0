"""What the rules say of a tool call, and which services it acts on. Reads the rules. Used by climb.warden.

Apart, because loading it takes a while: it is loaded while the CLI makes its first call to the model.
"""

from supervisor.decide.remedy import remedies
from supervisor.decide.rules.permission import permission
from supervisor.model.permission import Decision, Remedies, ToolCall, Verdict
from supervisor.model.rule import OffLimits, TierRules
from supervisor.shell import read_shell

_SHELL_TOOL = "Bash"


def rule_on(call: ToolCall, rules: TierRules, off_limits: OffLimits, *, dry_run: bool) -> tuple[Decision, Remedies]:
    """The rules' word on a call, and what it would restart or redeploy if it is not refused."""
    command = call.input.get("command")
    reading = read_shell(command) if call.tool == _SHELL_TOOL and isinstance(command, str) else None
    ruled = permission(call, reading, rules, off_limits, dry_run=dry_run)
    if reading is None or ruled.verdict is Verdict.DENY:
        return ruled, Remedies()
    return ruled, remedies(reading)
