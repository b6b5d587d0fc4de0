"""Decide whether a tool call may run. Pure. Called from ``guard`` for every call, before it runs.

A shell command is judged by every simple command it could run; the strictest answer counts. What cannot be seen through
is never allowed. ``deny`` beats ``approve`` beats ``allow``, and what ``off_limits`` shuts, no rule opens.
"""

from collections.abc import Iterator
from typing import Final

from supervisor.decide.rules.file_tools import judge_tool
from supervisor.decide.rules.off_limits import command_touches, decodes, is_known_to_be_harmless
from supervisor.decide.rules.shell_rules import Text, judge_command
from supervisor.decide.rules.shell_text import first_function, leaves_behind, own_values, steering_names
from supervisor.decide.rules.shut_paths import OFF_LIMITS, Shut, shut
from supervisor.decide.rules.verdicts import Finding, by_default, refused, shown, strictest
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.reading import Command, Opaque, OpaqueKind, Reading
from supervisor.model.rule import Effect, OffLimits, TierRules

_VERDICTS: Final = {Effect.ALLOW: Verdict.ALLOW, Effect.APPROVE: Verdict.DEFER, Effect.DENY: Verdict.DENY}
_REPORT_TOOL: Final = "StructuredOutput"
_SHELL_TOOL: Final = "Bash"
_NOTHING: Final = Finding(effect=Effect.ALLOW, rule="nothing", sentence="Nothing would run.", read_only=True)
_IN_FOREGROUND: Final = "A run leaves no process behind: run it in the foreground, with `timeout` if it may hang."


def permission(
    call: ToolCall, reading: Reading | None, rules: TierRules, off_limits: OffLimits, *, dry_run: bool
) -> Decision:
    """The answer to a call. ``reading`` is what its shell text was found to run, ``None`` for other tools."""
    if call.tool == _REPORT_TOOL:
        return Decision(verdict=Verdict.ALLOW, rule="report", sentence="A run ends with its report.", read_only=True)
    if call.tool == _SHELL_TOOL:
        findings = list(_shell(call, reading, rules, off_limits))
    else:
        findings = list(judge_tool(call, rules, shut(rules, off_limits, (), call.cwd)))
    finding = strictest(findings or [_NOTHING])
    read_only = finding.effect is Effect.ALLOW and all(one.read_only for one in findings)
    if dry_run and not read_only and finding.effect is not Effect.DENY:
        return _not_in_a_dry_run(call)
    return Decision(
        verdict=_VERDICTS[finding.effect], rule=finding.rule, sentence=finding.sentence, read_only=read_only
    )


def _shell(call: ToolCall, reading: Reading | None, rules: TierRules, off_limits: OffLimits) -> Iterator[Finding]:
    text = call.input.get("command")
    if not isinstance(text, str) or reading is None:
        yield refused("default", "A shell call needs a command that can be read.")
        return
    if call.input.get("run_in_background"):
        yield refused("background", _IN_FOREGROUND)
    if call.input.get("dangerouslyDisableSandbox"):
        yield refused("sandbox", "The sandbox stays as it is: call again without dangerouslyDisableSandbox.")
    if leaves_behind(text, reading.commands):
        yield refused("background", _IN_FOREGROUND)
    for value in own_values(text):
        yield refused(OFF_LIMITS, f"{value} belongs to the supervisor's environment. Do without it.")
    for name in steering_names(text):
        yield by_default(rules.default, text, f"Setting {name} can change what the programs run.")
    for opaque in reading.opaque:
        if _is_named_by_a_rule(opaque, reading.commands, rules):
            continue
        why = f"It cannot be seen through: {opaque.sentence}. Write the commands out plainly."
        yield by_default(rules.opaque, opaque.text or text, why, rule=f"opaque: {opaque.kind}")
    yield from _commands(text, reading, rules, shut(rules, off_limits, reading.commands, call.cwd))


def _commands(text: str, reading: Reading, rules: TierRules, area: Shut) -> list[Finding]:
    around = Text(rules=rules, area=area, function=_own_function(text, rules), decodes=decodes(reading.commands))
    findings: list[Finding] = []
    before: Command | None = None
    for command in reading.commands:
        judged = judge_command(command, before, around)
        if not is_known_to_be_harmless(command, area):
            findings += command_touches(command, area, changes=any(not one.read_only for one in judged))
        findings += judged
        before = command
    return findings


def _is_named_by_a_rule(opaque: Opaque, commands: tuple[Command, ...], rules: TierRules) -> bool:
    """Whether it is a file that an operator has a rule for, by its whole path: then the rule decides."""
    return opaque.kind is OpaqueKind.SCRIPT_FILE and any(
        rules.knows_path(command.path) and opaque.text == " ".join(word.text for word in command.argv)
        for command in commands
    )


def _own_function(text: str, rules: TierRules) -> str | None:
    """A function that the text defines; never one with the name of a program that rules know."""
    name = first_function(text)
    return name if name is not None and not rules.knows_program(name) else None


def _not_in_a_dry_run(call: ToolCall) -> Decision:
    text = call.input.get("command") or call.input.get("file_path") or call.input.get("notebook_path") or ""
    what = f"{text}" if call.tool == _SHELL_TOOL else f"{call.tool} {text}".strip()
    sentence = (
        f"This is a dry run: `{shown(what)}` would have run now. Put it into your report instead, and go on looking."
    )
    return Decision(verdict=Verdict.DENY, rule="dry_run", sentence=sentence)
