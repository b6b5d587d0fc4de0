"""The report an agent ends with."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.decide.report import SCHEMA, find_report, read_report
from supervisor.model.document import report_document
from supervisor.model.report import Health, InvalidReport, Report

FULL = {
    "summary": "web is down",
    "services": [{"name": "web", "status": "down", "detail": "502"}, {"name": "db", "status": "healthy"}],
    "actions": [{"service": "web", "kind": "restart", "command": "systemctl restart web", "succeeded": False}],
    "events": [{"level": "critical", "service": "web", "message": "no answer"}],
    "escalation": {"needed": True, "reason": "restart did not help"},
}
SHORT = {"summary": "fine", "escalation": {"needed": False}}


def fenced(document: object) -> str:
    return f"Here is my report.\n```json\n{json.dumps(document)}\n```\n"


def test_structured_output_is_read():
    report = find_report(FULL, None)

    assert isinstance(report, Report)
    assert report.affected == ("web",)
    assert report.broken == ("web",)
    assert report.services[1].status is Health.HEALTHY
    assert report.actions[0].succeeded is False


def test_structured_output_outranks_the_text():
    assert find_report(SHORT, fenced(FULL)).summary == "fine"


def test_of_several_fenced_blocks_the_last_counts():
    assert find_report(None, fenced(FULL) + "\nand finally\n" + fenced(SHORT)).summary == "fine"


def test_a_fence_without_a_language_is_read_too():
    assert isinstance(find_report(None, f"```\n{json.dumps(SHORT)}\n```"), Report)


INVALID_TEXTS = {
    "none": None,
    "empty": "",
    "prose": "All is well.",
    "unfenced": json.dumps(SHORT),
    "not_json": "```json\n{summary: fine}\n```",
    "a_list": "```json\n[1]\n```",
    "deeply_nested": "```json\n" + "[" * 100_000 + "\n```",
}


@pytest.mark.parametrize("text", INVALID_TEXTS.values(), ids=INVALID_TEXTS.keys())
def test_a_text_without_a_report_is_no_report(text):
    found = find_report(None, text)

    assert isinstance(found, InvalidReport)
    assert found.problems


VIOLATIONS = {
    "no_summary": ({**SHORT, "summary": None}, "summary"),
    "blank_summary": ({**SHORT, "summary": "  "}, "summary"),
    "no_escalation": ({"summary": "x"}, "escalation"),
    "needed_is_a_string": ({"summary": "x", "escalation": {"needed": "false"}}, "escalation.needed"),
    "needed_without_a_reason": ({"summary": "x", "escalation": {"needed": True}}, "escalation.reason"),
    "unknown_health": ({**SHORT, "services": [{"name": "w", "status": "fine"}]}, "services[0].status"),
    "service_without_a_name": ({**SHORT, "services": [{"status": "down"}]}, "services[0].name"),
    "services_is_an_object": ({**SHORT, "services": {"web": "down"}}, "services"),
    "service_is_a_string": ({**SHORT, "services": ["web"]}, "services[0]"),
    "action_without_outcome": ({**SHORT, "actions": [{"service": "w", "kind": "restart"}]}, "actions[0].succeeded"),
    "unknown_level": ({**SHORT, "events": [{"level": "bad", "message": "m"}]}, "events[0].level"),
}


@pytest.mark.parametrize(("document", "place"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_a_violation_is_named_by_its_place(document, place):
    found = read_report(document)

    assert isinstance(found, InvalidReport)
    assert any(problem.startswith(place) for problem in found.problems)


def test_all_violations_are_said_at_once():
    found = read_report({"services": [{"status": "odd"}], "escalation": {"needed": 1}})

    assert len(found.problems) == 4


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.sampled_from([*FULL, "other"]), json_values))
def test_no_document_makes_reading_fail(document):
    assert isinstance(read_report(document), Report | InvalidReport)


def test_a_report_survives_being_written_and_read():
    report = read_report(FULL)

    assert read_report(report_document(report)) == report


def test_the_schema_given_to_the_cli_asks_for_what_is_required_here():
    assert SCHEMA["required"] == ["summary", "escalation"]
    assert set(SCHEMA["properties"]) == set(FULL)
