"""Decide whether a tool call ran that had not been let through. Pure. Called from climb.warden for each tool result."""

import re

from supervisor.model.events import ToolResult
from supervisor.model.permission import Decision, Verdict

# How the CLI words what it answers itself, without the call having begun (2.1.225 and 2.1.325): a call that does not
# fit the tool, and one that its own deny rules or the missing permission hold back. A command cannot word its failure
# like this, nor like a refusal: the output of one that failed stands behind "Exit code".
_NEVER_BEGAN = ("<tool_use_error>", "Permission to use ", "Claude requested permissions ")
# What the hook or the server say by themselves when there is no decision.
_UNDECIDED = "This call is refused, because "
# A refusal reaches the model as our sentence, on 2.1.325 behind these words.
_BY_HOOK = re.compile(r"PreToolUse:\S+ hook error: ")
_TELLING = 60


def ran_unasked(result: ToolResult, answer: Decision | None, *, ending: bool = False) -> str | None:
    """What is wrong with a result, or ``None``. ``answer`` is what the guard said about the call, if it was asked.

    While a run is ``ending`` an interrupted CLI says, in its own words, that a call failed which it never began.
    """
    if (answer is not None and answer.verdict is Verdict.ALLOW) or (ending and result.is_error):
        return None
    if answer is None:
        if result.is_error and _said(result).startswith((*_NEVER_BEGAN, _UNDECIDED)):
            return None
        return "a tool call ran about which the CLI had not asked."
    if result.is_error and _said(result).startswith((answer.sentence[:_TELLING], _UNDECIDED)):
        return None
    return "a tool call ran that had been refused."


def _said(result: ToolResult) -> str:
    return _BY_HOOK.sub("", result.text, count=1)
