"""The corpus of commands and tool calls, and the shipped rules asked about them. Reads files. For the corpus tests."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from supervisor.decide.rules.permission import permission
from supervisor.model.permission import Decision, ToolCall
from supervisor.model.rule import OffLimits, TierRules
from supervisor.settings import load_settings
from supervisor.shell import read_shell

CORPUS = Path(__file__).parent / "corpus"
TIERS = (1, 2, 3)
OFF_LIMITS = OffLimits(
    paths=("/var/lib/opsladder", "/etc/opsladder", "/run/opsladder"),
    pids=frozenset({4242}),
    work_dir="/srv/ops",
    home="/home/ops",
)
_LONGEST_LABEL = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One call of the corpus. ``verdicts`` are for the tiers in turn, where its file says them."""

    tool: str
    input: Mapping[str, object]
    why: str
    verdicts: tuple[str, ...]
    label: str


def examples(name: str) -> Iterator[Example]:
    """The calls of one file of the corpus; a command is a call of ``Bash``."""
    for group in tomllib.loads((CORPUS / f"{name}.toml").read_text())["group"]:
        calls = [
            *(("Bash", {"command": command}, command) for command in group.get("commands", ())),
            *((call["tool"], call["input"], f"{call['tool']} {call['input']}") for call in group.get("calls", ())),
        ]
        for tool, tool_input, text in calls:
            verdicts = tuple(group.get("verdicts", ()))
            yield Example(tool=tool, input=tool_input, why=group["why"], verdicts=verdicts, label=_label(text))


def commands(name: str) -> list[str]:
    """The texts of one file that holds commands only."""
    return [str(example.input["command"]) for example in examples(name)]


@cache
def shipped_rules(tier: int) -> TierRules:
    """The rules of a tier when nobody configured anything."""
    return load_settings(None, {"HOME": OFF_LIMITS.home}, cwd=Path(OFF_LIMITS.work_dir)).rules_for(tier)


def decide(tool: str, tool_input: Mapping[str, object], *, tier: int = 1, dry_run: bool = False) -> Decision:
    """The shipped answer to a call, asked as the guard asks it."""
    call = ToolCall(tool_use_id="toolu_1", tool=tool, input=tool_input, cwd=OFF_LIMITS.work_dir)
    text = tool_input.get("command")
    reading = read_shell(text) if tool == "Bash" and isinstance(text, str) else None
    return permission(call, reading, shipped_rules(tier), OFF_LIMITS, dry_run=dry_run)


def decide_command(text: str, *, tier: int = 1, dry_run: bool = False) -> Decision:
    """The shipped answer to a shell command."""
    return decide("Bash", {"command": text}, tier=tier, dry_run=dry_run)


def _label(text: str) -> str:
    """A short name that every terminal can show."""
    return ascii(text)[1:-1].strip()[:_LONGEST_LABEL]
