"""What is kept of a run holds no secrets, and everything that is needed to read it back."""

import datetime as dt

import pytest

from supervisor.climb.entries import doing, ending, entry
from supervisor.decide.masking import Masker
from supervisor.model.cycle import NewEvent
from supervisor.model.events import ApiRetry, StreamEvent, Text, ToolResult, ToolUse, Unreadable
from supervisor.model.report import Action, Health, Level, Report, ReportedEvent, ServiceState
from supervisor.model.session import SessionStatus
from supervisor.store import SessionEnd

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KNOWN = "correct-horse-battery"
ID = "toolu_01AbCdEfGhIjKlMnOpQrStUv"
MASKER = Masker(values=[KNOWN])


def kept(event: StreamEvent) -> NewEvent:
    found = entry(event, session=1, now=NOW, masker=MASKER)
    assert found is not None
    return found


def call(name: str = "Bash", **given: object) -> ToolUse:
    return ToolUse(message_id="m", model="x", tool_use_id=ID, name=name, input=given, parent_tool_use_id=None)


EVENTS = {
    "text": Text(message_id="m", model="x", text=f"I see {KNOWN}.", parent_tool_use_id=None),
    "command": call(command=f"login {KNOWN}"),
    "named_field": call("Odd", pin="p", auth_token="hunter2 " + KNOWN),
    "long_input": call("Odd", content="x" * 9_975 + KNOWN, more="y" * 5_000),
    "result": ToolResult(tool_use_id=ID, text=f"{KNOWN}\n", size=9, is_error=False, parent_tool_use_id=None),
    "retry": ApiRetry(attempt=1, max_retries=2, error_status=401, delay_seconds=1.0, error=f"bad key {KNOWN}"),
    "unreadable": Unreadable(why=f"an unknown kind: {KNOWN}", raw=f'{{"x": "{KNOWN}"}}', size=9),
}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_what_is_kept_of_an_event_holds_no_secret(event):
    found = kept(event)

    assert "[masked]" in f"{found.text} {found.data}"
    # Not even the first half, where a long input was cut.
    assert KNOWN[:8] not in f"{found.text} {found.data}"


def test_ids_are_no_secrets():
    assert kept(call(command="ls")).data["tool_use_id"] == ID
    assert kept(EVENTS["result"]).data == {"tool_use_id": ID, "is_error": False, "size": 9}


def test_what_is_shown_of_a_call_is_masked():
    assert doing(kept(EVENTS["command"])) == "Bash: login [masked]"
    assert doing(kept(EVENTS["text"])) == "I see [masked]."


def test_a_call_that_hands_in_the_report_is_shown_as_that():
    handing_in = entry(call("StructuredOutput", summary="s"), session=1, now=NOW, masker=MASKER)

    assert doing(handing_in) == "writing its report"


def test_what_is_kept_of_an_ending_holds_no_secret_and_its_figures():
    report = Report(
        summary=KNOWN,
        escalation_needed=True,
        escalation_reason=KNOWN,
        services=(ServiceState(name="web", status=Health.DOWN, detail=KNOWN),),
        actions=(Action(service="web", kind="restart", command=f"webctl {KNOWN}", succeeded=False),),
        events=(ReportedEvent(level=Level.WARNING, message=KNOWN, service="web"),),
    )
    end = SessionEnd(
        status=SessionStatus.COMPLETED, ended_at=NOW, detail=f"said {KNOWN}", report=report, session_id=ID, cost_usd=0.5
    )

    found = ending(end, MASKER)

    assert KNOWN not in repr(found)
    assert (found.session_id, found.cost_usd, found.detail) == (ID, 0.5, "said [masked]")
    assert found.report is not None
    assert found.report.affected == ("web",)
    assert found.report.actions[0].command == "webctl [masked]"
