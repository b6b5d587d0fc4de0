"""The command line and the environment of a CLI run. Pure. Called from climb.launch.

Nothing of an earlier run is restored by resuming it, so everything is said again on every run. The prompt is not here:
it goes in on stdin.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from supervisor.claude.marks import MARK, is_session_mark
from supervisor.errors import ClaudeNotUsable
from supervisor.model.runtime import Runtime

# Without these the CLI adds two paragraphs on commit messages to every request (about 640 bytes).
_SETTINGS: Mapping[str, object] = {"attribution": {"commit": "", "pr": ""}, "includeCoAuthoredBy": False}

_QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
# A command that passes its timeout would go on in the background, count as having succeeded, and be killed in the
# middle of its work once the run is over; like this it is ended then and there, and the model reads that it was.
_IN_THE_FOREGROUND = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What one run is told. ``tools`` are names, or rules such as ``Bash(git log *)`` for a tool used in part."""

    session_id: str
    resume_session_id: str | None
    model: str
    tools: tuple[str, ...]
    disallowed_tools: tuple[str, ...]
    max_turns: int | None
    max_budget_usd: float | None
    system_prompt: str
    append_system_prompt: bool
    report_schema: str | None
    settings_json: str | None


def arguments(runtime: Runtime, spec: RunSpec) -> list[str]:
    """What follows the binary's name. A flag that this binary does not know is left out."""
    can = runtime.abilities
    line = ["-p", "--output-format", "stream-json", "--verbose"]
    if can.partial_messages:
        line.append("--include-partial-messages")
    line += ["--model", spec.model]
    if can.tools:
        line += ["--tools", ",".join(dict.fromkeys(rule.partition("(")[0].strip() for rule in spec.tools))]
    if spec.tools and spec.settings_json is None:
        # In a guarded run the hook's word is the only permission there is: a CLI that never asks is refused by itself.
        line += ["--allowedTools", ",".join(spec.tools)]
    if spec.disallowed_tools:
        line += ["--disallowedTools", ",".join(spec.disallowed_tools)]
    if can.setting_sources:
        line += ["--setting-sources", ""]
    if can.strict_mcp_config:
        line.append("--strict-mcp-config")
    line += _system_prompt(runtime, spec)
    if can.json_schema and spec.report_schema is not None:
        line += ["--json-schema", spec.report_schema]
    if spec.max_turns is not None:
        line += ["--max-turns", str(spec.max_turns)]
    if can.max_budget_usd and spec.max_budget_usd is not None:
        line += ["--max-budget-usd", f"{spec.max_budget_usd:.6f}".rstrip("0").rstrip(".")]
    return line + _settings(runtime, spec) + _session(runtime, spec)


def environment(
    base: Mapping[str, str], *, tier: int, dry_run: bool, state_dir: str, run_marker: str
) -> dict[str, str]:
    """The environment of a run over an allow-listed base, which has the last word on the quietening switches only."""
    inherited = {name: value for name, value in base.items() if not is_session_mark(name)}
    return {
        **_QUIET,
        **inherited,
        **_IN_THE_FOREGROUND,
        "CLAUDEOPS_TIER": str(tier),
        "CLAUDEOPS_DRY_RUN": "true" if dry_run else "false",
        "CLAUDEOPS_STATE_DIR": state_dir,
        MARK: run_marker,
    }


def _system_prompt(runtime: Runtime, spec: RunSpec) -> list[str]:
    can = runtime.abilities
    if not spec.system_prompt:
        return []
    if can.system_prompt and not spec.append_system_prompt:
        return ["--system-prompt", spec.system_prompt]
    return ["--append-system-prompt", spec.system_prompt] if can.append_system_prompt else []


def _settings(runtime: Runtime, spec: RunSpec) -> list[str]:
    if not runtime.abilities.settings:
        if spec.settings_json is not None:
            # Settings carry rules that protect the host: better no run than one without them.
            raise ClaudeNotUsable(
                f"{runtime.path} ({runtime.version}) takes no --settings, and this run must not go without.",
                remedy="Use a newer Claude CLI.",
            )
        return []
    given = json.loads(spec.settings_json) if spec.settings_json is not None else {}
    return ["--settings", json.dumps({**_SETTINGS, **given}, separators=(",", ":"))]


def _session(runtime: Runtime, spec: RunSpec) -> list[str]:
    can = runtime.abilities
    own_id = ["--session-id", spec.session_id] if can.session_id else []
    if spec.resume_session_id is None:
        return own_id
    if not can.fork_session:
        # The CLI goes on under the old id, and accepts no other.
        return ["--resume", spec.resume_session_id]
    # Fork: a tier that goes wrong must not damage its parent's transcript.
    return ["--resume", spec.resume_session_id, "--fork-session", *own_id]
