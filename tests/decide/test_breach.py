"""Which tool results show a call that ran without the guard's word."""

import pytest

from supervisor.decide.breach import ran_unasked
from supervisor.model.events import ToolResult
from supervisor.model.permission import Decision, Verdict

REFUSAL = "This command is not among those that tier 1 may run: rm -rf /srv."
ALLOWED = Decision(verdict=Verdict.ALLOW, rule="x", sentence="Allowed.")
DENIED = Decision(verdict=Verdict.DENY, rule="x", sentence=REFUSAL)
DEFERRED = Decision(verdict=Verdict.DEFER, rule="x", sentence=REFUSAL)


def result(text, *, is_error=False):
    return ToolResult(tool_use_id="toolu_1", text=text, size=len(text), is_error=is_error, parent_tool_use_id=None)


CASES = {
    "allowed": (result("done"), ALLOWED, False),
    "allowed_and_failed": (result("no such file", is_error=True), ALLOWED, False),
    "never_asked": (result("done"), None, True),
    "never_asked_and_failed": (result("no such file", is_error=True), None, True),
    "malformed_call": (result("<tool_use_error>InputValidationError", is_error=True), None, False),
    "output_that_looks_malformed": (result("<tool_use_error>InputValidationError"), None, True),
    "the_clis_own_refusal": (result("Permission to use Bash has been denied.", is_error=True), None, False),
    "refused": (result(REFUSAL, is_error=True), DENIED, False),
    "refused_in_the_newer_words": (result(f"PreToolUse:Bash hook error: {REFUSAL}", is_error=True), DENIED, False),
    "refused_for_another_reason": (result("Exit code 1\n" + REFUSAL, is_error=True), DENIED, True),
    "guard_not_reached": (
        result("This call is refused, because the guard gave no answer.", is_error=True),
        None,
        False,
    ),
    "output_that_looks_like_a_refusal": (
        result("Exit code 1\nThis call is refused, because the guard gave no answer.", is_error=True),
        None,
        True,
    ),
    "refused_and_run": (result("done"), DENIED, True),
    "refused_run_and_failed": (result("no such file", is_error=True), DENIED, True),
    "put_off_and_run": (result("done"), DEFERRED, True),
}


@pytest.mark.parametrize(("said", "answer", "is_breach"), CASES.values(), ids=CASES.keys())
def test_a_call_that_ran_without_leave_is_noticed(said, answer, is_breach):
    assert (ran_unasked(said, answer) is not None) == is_breach


INTERRUPTED = result("The user doesn't want to take this action right now.", is_error=True)


@pytest.mark.parametrize("answer", [None, DENIED, DEFERRED], ids=["undecided", "refused", "put_off"])
def test_what_an_interrupted_cli_says_of_a_call_that_it_never_began_is_no_breach(answer):
    assert ran_unasked(INTERRUPTED, answer) is not None
    assert ran_unasked(INTERRUPTED, answer, ending=True) is None
    assert ran_unasked(result("done"), answer, ending=True) is not None
