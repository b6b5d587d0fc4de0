"""The exposition: every name of the contract, from the records alone, whatever has been pruned or restarted."""

import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from supervisor import __version__
from supervisor.claude import probe
from supervisor.metrics import exposition
from supervisor.model.cycle import CycleStatus
from supervisor.model.outcome import Failure
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.runtime import Abilities
from supervisor.model.session import CostBasis, Tokens
from supervisor.settings import Settings
from supervisor.store import Store, open_store
from tests.store.explain import statements, whole_tables_read
from tests.store.store_examples import NOON, add_session, begin, end
from tests.web.served import NOW, settings_in

# Every family with its type and labels. Dashboards and rules of other people rely on them.
CONTRACT = {
    "opsladder_cycles": ("counter", {"schedule", "status"}),
    "opsladder_sessions": ("counter", {"tier", "status", "continuity"}),
    "opsladder_cost_usd": ("counter", {"tier", "model"}),
    "opsladder_tokens": ("counter", {"tier", "kind"}),
    "opsladder_session_duration_seconds": ("histogram", {"tier", "le"}),
    "opsladder_session_failures": ("counter", {"tier", "failure"}),
    "opsladder_escalations": ("counter", {"from_tier", "decision", "reason"}),
    "opsladder_fallbacks": ("counter", {"reason"}),
    "opsladder_guard_decisions": ("counter", {"tier", "decision"}),
    "opsladder_context_used_ratio": ("gauge", {"tier"}),
    "opsladder_active_sessions": ("gauge", {"tier"}),
    "opsladder_approvals_pending": ("gauge", set()),
    "opsladder_budget_spent_usd": ("gauge", set()),
    "opsladder_budget_limit_usd": ("gauge", set()),
    "opsladder_paused": ("gauge", set()),
    "opsladder_last_success_timestamp_seconds": ("gauge", {"schedule"}),
    "opsladder_last_cycle_timestamp_seconds": ("gauge", {"schedule"}),
    "opsladder_next_fire_timestamp_seconds": ("gauge", {"schedule"}),
    "opsladder_missed_fires": ("counter", {"schedule"}),
    "opsladder_build_info": ("gauge", {"version", "claude_version"}),
}
CHAIN = ((1, "haiku", 0.03), (2, "sonnet", 0.47), (3, "opus", 2.00))
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path, '[[schedules]]\nname = "default"\n[[schedules]]\nname = "night"\n')


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings.database_url()) as opened:
        yield opened


def climb(store: Store, *, schedule: str = "default", failure: Failure | None = None) -> int:
    """Record a chain of three tiers at noon that costs 2.50, with an answer of the guard on each. Gives its cycle."""
    cycle = begin(store, schedule)
    parent = None
    for tier, model, cost in CHAIN:
        session = add_session(store, cycle, parent, tier=tier, model=model)
        store.record_call(
            session=session.id,
            cycle=cycle.id,
            call=ToolCall(tool_use_id="toolu_1", tool="Bash", input={}),
            text="",
            decision=Decision(verdict=Verdict.ALLOW, rule="r", sentence="s"),
            now=NOON,
        )
        store.activate_session(session.id, pid=1, pid_started=1.0, now=NOON)
        parent = end(
            store,
            session,
            ended_at=NOON + timedelta(seconds=40),
            cost_usd=cost,
            cost_basis=CostBasis.REPORTED,
            tokens=Tokens(input=1, output=2, cache_read=3, cache_write=4),
            context_tokens=50_000,
            context_window=200_000,
            failure=failure,
        )
    store.finish_cycle(cycle.id, status=CycleStatus.RESOLVED, reason=None, detail=None, now=NOON)
    return cycle.id


def text_of(store: Store | None, settings: Settings, accept: str = "", **given: object) -> str:
    body, _ = exposition(store, settings, **{"now": NOW, "next_fires": {}} | given).encoded(accept)
    return body.decode()


def samples(store: Store | None, settings: Settings, **given: object) -> Samples:
    families = parse_text(text_of(store, settings, **given))
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def one(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((f"opsladder_{name}", frozenset(labels.items())))


def test_every_family_of_the_contract_is_there_with_its_type_and_labels(store: Store, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "[budget]\nper_day_usd = 20")
    climb(store)
    found = {
        family.name: (family.type, {label for sample in family.samples for label in sample.labels})
        for family in parse_text(text_of(store, settings, next_fires={"default": NOW}))
    }
    assert found == CONTRACT


def test_a_chain_is_counted_to_the_cent(store: Store, settings: Settings) -> None:
    climb(store)
    found = samples(store, settings)
    for tier, model, cost in CHAIN:
        assert one(found, "cost_usd_total", tier=str(tier), model=model) == cost
    assert one(found, "cycles_total", schedule="default", status="resolved") == 1
    assert one(found, "sessions_total", tier="2", status="completed", continuity="resume") == 1
    assert one(found, "tokens_total", tier="3", kind="cache_write") == 4
    assert one(found, "escalations_total", from_tier="2", decision="resume", reason="next_tier") == 1
    assert one(found, "guard_decisions_total", tier="1", decision="allow") == 1
    assert one(found, "context_used_ratio", tier="1") == 0.25
    assert one(found, "last_success_timestamp_seconds", schedule="default") == pytest.approx(NOON.timestamp())
    assert one(found, "budget_spent_usd") == 2.5


def test_the_classes_of_durations_are_cumulative(store: Store, settings: Settings) -> None:
    climb(store)
    found = samples(store, settings)
    counts = {le: one(found, "session_duration_seconds_bucket", tier="1", le=le) for le in ("30.0", "60.0", "+Inf")}
    assert counts == {"30.0": 0, "60.0": 1, "+Inf": 1}
    assert one(found, "session_duration_seconds_count", tier="1") == 1
    assert one(found, "session_duration_seconds_sum", tier="1") == 40


def test_counters_outlive_the_records_and_the_process(store: Store, settings: Settings) -> None:
    cycle = climb(store)
    before = {key: value for key, value in samples(store, settings).items() if key[0].endswith(("_total", "_bucket"))}
    assert store.delete_messages(cycle, up_to={"tool_calls": 3}, now=NOW)
    assert store.delete_records(cycle)
    with open_store(settings.database_url()) as later:
        after = samples(later, settings)
    assert {key: after[key] for key in before} == before


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("cycles_total", {"schedule": "night", "status": "blocked"}),
        ("cycles_total", {"schedule": "night", "status": "skipped"}),
        ("sessions_total", {"tier": "3", "status": "timed_out", "continuity": "handoff"}),
        ("cost_usd_total", {"tier": "2", "model": "sonnet"}),
        ("tokens_total", {"tier": "1", "kind": "output"}),
        ("session_duration_seconds_bucket", {"tier": "3", "le": "+Inf"}),
        ("session_duration_seconds_sum", {"tier": "3"}),
        ("session_failures_total", {"tier": "2", "failure": "guard_bypassed"}),
        ("escalations_total", {"from_tier": "2", "decision": "handoff", "reason": "context_threshold"}),
        ("escalations_total", {"from_tier": "1", "decision": "blocked", "reason": "dry_run"}),
        ("fallbacks_total", {"reason": "poisoned"}),
        ("guard_decisions_total", {"tier": "3", "decision": "defer"}),
        ("missed_fires_total", {"schedule": "night"}),
        ("active_sessions", {"tier": "2"}),
        ("approvals_pending", {}),
        ("paused", {}),
    ],
)
def test_what_can_be_named_beforehand_begins_at_0(settings: Settings, name: str, labels: dict[str, str]) -> None:
    assert one(samples(None, settings), name, **labels) == 0


@pytest.mark.parametrize("status", ["running", "paused"])
def test_a_status_in_which_no_cycle_ends_is_not_among_them(settings: Settings, status: str) -> None:
    assert one(samples(None, settings), "cycles_total", schedule="night", status=status) is None


@pytest.mark.parametrize(
    "name",
    [
        "context_used_ratio",
        "last_success_timestamp_seconds",
        "last_cycle_timestamp_seconds",
        "next_fire_timestamp_seconds",
        "budget_limit_usd",
    ],
)
def test_what_is_unknown_is_left_out(store: Store, settings: Settings, name: str) -> None:
    found = samples(store, settings, next_fires={"default": None})
    assert [key for key in found if key[0] == f"opsladder_{name}"] == []


def test_what_the_configuration_no_longer_names_is_still_counted(store: Store, tmp_path: Path) -> None:
    climb(store, schedule="gone")
    one_tier = '[[tiers]]\nname = "observe"\nmodel = "other"\nprompt = "tier1.md"\n[escalation]\nmax_tier = 1'
    found = samples(store, settings_in(tmp_path, one_tier))
    assert one(found, "cycles_total", schedule="gone", status="resolved") == 1
    assert one(found, "cost_usd_total", tier="3", model="opus") == 2
    assert one(found, "cost_usd_total", tier="1", model="other") == 0
    assert one(found, "session_duration_seconds_count", tier="3") == 1


def test_how_long_ago_a_schedule_succeeded_is_not_told_of_one_that_is_gone(store: Store, tmp_path: Path) -> None:
    climb(store, schedule="gone")
    climb(store, schedule="kept")
    found = samples(store, settings_in(tmp_path, '[[schedules]]\nname = "kept"'))
    told = {dict(labels)["schedule"] for name, labels in found if name == "opsladder_last_success_timestamp_seconds"}
    assert told == {"kept"}


def test_the_gauges_say_how_things_are_now(store: Store, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "[budget]\nper_day_usd = 12.5")
    cycle = begin(store)
    store.activate_session(add_session(store, cycle, tier=2).id, pid=1, pid_started=1.0, now=NOON)
    store.pause(by="ada", reason=None, now=NOON)
    found = samples(store, settings, next_fires={"default": NOW})
    assert one(found, "active_sessions", tier="2") == 1
    assert one(found, "paused") == 1
    assert one(found, "budget_limit_usd") == 12.5
    assert one(found, "next_fire_timestamp_seconds", schedule="default") == NOW.timestamp()


def test_what_was_spent_before_midnight_is_not_of_today(store: Store, settings: Settings) -> None:
    climb(store)
    assert one(samples(store, settings, now=NOW + timedelta(days=1)), "budget_spent_usd") == 0


def test_the_version_of_the_cli_comes_from_its_last_probe(store: Store, tmp_path: Path) -> None:
    binary = tmp_path / "claude"
    binary.write_text("#!/bin/sh\nexit 1\n")
    binary.chmod(0o755)
    settings = settings_in(tmp_path, OPSLADDER_CLAUDE__BIN=str(binary))
    unprobed = samples(store, settings)
    able = dict.fromkeys((ability.name for ability in fields(Abilities)), True)
    runtime = {"id": "x", "host": "h", "path": str(binary), "version": "2.1.325", "abilities": able}
    document = {"schema": probe._SCHEMA, "key": probe._key(binary), "runtime": runtime}
    (settings.state.dir / "probe.json").write_text(json.dumps(document))
    probed = samples(store, settings)
    assert one(unprobed, "build_info", version=__version__, claude_version="unknown") == 1
    assert one(probed, "build_info", version=__version__, claude_version="2.1.325") == 1


def test_openmetrics_says_the_same(store: Store, settings: Settings) -> None:
    climb(store)
    families = parse_openmetrics(text_of(store, settings, "application/openmetrics-text; version=1.0.0"))
    found = {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}
    assert found == samples(store, settings)


def test_no_label_grows_with_the_records(store: Store, settings: Settings) -> None:
    climb(store)
    before = set(samples(store, settings))
    for _ in range(5):
        climb(store)
    assert set(samples(store, settings)) == before


def test_a_scrape_is_a_fixed_number_of_queries_that_read_no_table_of_records(store: Store, settings: Settings) -> None:
    climb(store)
    with statements() as few:
        text_of(store, settings)
    for _ in range(20):
        climb(store)
    with statements() as many:
        text_of(store, settings)
    assert len(few) == len(many) < 10
    scans = whole_tables_read(many, settings.state.dir / "opsladder.db")
    # Every tally is wanted, and the newest turn of the switch is the first row that is read.
    assert {step.split()[1] for step in scans} == {"tallies", "switch"}
