"""What a cycle's end means for incidents, and what the next cycle can go on from. On a real store, without a CLI."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from make import FINE, NEEDED, RUNTIME

from supervisor.climb.incident import delta, earlier_session, open_incident, settle_incident
from supervisor.climb.ladder import Ladder
from supervisor.model.cycle import Chain, CycleStatus, EventKind
from supervisor.model.incident import IncidentStatus
from supervisor.model.report import Action, Health, Level, Report, ServiceState
from supervisor.model.session import SessionStatus
from supervisor.prompts import Prompts
from supervisor.settings import load_settings
from supervisor.store import open_store
from tests.store.store_examples import NOON, add_session, begin, end, minutes

KNOWN = "correct-horse-battery"
MENDED = replace(
    FINE,
    summary="web was restarted and answers",
    actions=(Action(service="web", kind="restart", command="systemctl restart web", succeeded=True),),
)


@pytest.fixture
def ladder(tmp_path: Path) -> Iterator[Ladder]:
    env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "ANTHROPIC_API_KEY": KNOWN}
    settings = load_settings(None, env, cwd=tmp_path)
    settings.state.dir.mkdir()
    with open_store(settings.database_url()) as store:
        prompts = Prompts(settings.prompt_dirs)
        yield Ladder(settings=settings, store=store, runtime=RUNTIME, prompts=prompts, clock=lambda: NOON)


def ended(
    ladder: Ladder,
    *reports: Report | None,
    status: CycleStatus = CycleStatus.RESOLVED,
    dry_run: bool = False,
    schedule: str = "default",
) -> Chain:
    """A cycle that has ended, whose tiers from the first on reported this; ``None`` is a tier that failed."""
    store = ladder.store
    cycle = begin(store, schedule, dry_run=dry_run)
    parent = None
    for tier, report in enumerate(reports, start=1):
        parent = add_session(store, cycle, parent, tier=tier, session_id=f"cli-{cycle.id}-{tier}")
        how = SessionStatus.FAILED if report is None else SessionStatus.COMPLETED
        parent = end(store, parent, how, report=report, ended_at=NOON)
    store.finish_cycle(
        cycle.id, status=status, reason="why" if status is CycleStatus.BLOCKED else None, detail=None, now=NOON
    )
    return store.chain(cycle.id)


def test_trouble_opens_an_incident_and_keeps_each_tier_s_session_for_it(ladder):
    chain = ended(ladder, NEEDED, MENDED)

    incident = settle_incident(ladder, chain)

    assert incident is not None
    assert (incident.status, incident.services) == (IncidentStatus.OPEN, ("web",))
    assert ladder.store.cycle(chain.cycle.id).incident == incident.id
    assert ladder.store.kept_sessions("default", incident.id) == list(chain.sessions)
    [event] = ladder.store.events(cycle_id=chain.cycle.id)
    assert (event.kind, event.level) == (EventKind.NOTICE, Level.WARNING)
    assert event.data == {"incident": incident.id, "what": "opened"}


def test_only_work_that_was_done_and_still_stands_is_kept(ladder):
    chain = ended(ladder, NEEDED, None, MENDED)
    begin(ladder.store, retry_of=chain.sessions[1].id)

    incident = settle_incident(ladder, ladder.store.chain(chain.cycle.id))

    assert [s.tier for s in ladder.store.kept_sessions("default", incident.id)] == [1]


def test_settling_a_cycle_again_changes_nothing_and_keeps_what_was_not_kept_yet(ladder):
    chain = ended(ladder, NEEDED)
    incident = settle_incident(ladder, chain)
    ladder.store.drop_sessions()

    assert settle_incident(ladder, chain) == incident
    assert len(ladder.store.events(cycle_id=chain.cycle.id)) == 1
    assert earlier_session(ladder, "default") == chain.sessions[0]


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"reports": (None,), "status": CycleStatus.FAILED}, id="no_report"),
        pytest.param({"reports": (FINE,), "dry_run": True}, id="dry_run"),
        pytest.param({"reports": (FINE,), "status": CycleStatus.PAUSED}, id="paused"),
    ],
)
def test_a_cycle_that_tells_nothing_changes_nothing(ladder, told):
    opened = settle_incident(ladder, ended(ladder, NEEDED))
    chain = ended(ladder, *told.pop("reports"), **told)

    assert settle_incident(ladder, chain) is None
    assert ladder.store.open_incidents("default") == [opened]
    assert ladder.store.events(cycle_id=chain.cycle.id) == []


def test_after_two_healthy_cycles_there_is_nothing_left_to_go_on_from(ladder):
    incident = settle_incident(ladder, ended(ladder, NEEDED))
    assert settle_incident(ladder, ended(ladder, FINE)) is None
    assert earlier_session(ladder, "default") is not None
    last = ended(ladder, FINE)

    assert settle_incident(ladder, last) is None

    assert ladder.store.incident(incident.id).status is IncidentStatus.CLOSED
    assert ladder.store.kept_sessions("default", incident.id) == []
    assert (open_incident(ladder, "default"), earlier_session(ladder, "default")) == (None, None)
    [event] = ladder.store.events(cycle_id=last.cycle.id)
    assert (event.kind, event.level, event.data["what"]) == (EventKind.DECISION, Level.INFO, "closed")


def test_how_soon_trouble_has_to_be_back_is_a_setting(ladder):
    at = NOON
    moving = replace(ladder, clock=lambda: at)
    for report in (NEEDED, FINE, FINE):
        settle_incident(moving, ended(moving, report))
    at = NOON + minutes(ladder.settings.continuity.reopen_minutes - 1)
    assert settle_incident(moving, ended(moving, NEEDED)).id == 1
    for _ in range(2):
        settle_incident(moving, ended(moving, FINE))
    at += minutes(ladder.settings.continuity.reopen_minutes)
    assert settle_incident(moving, ended(moving, NEEDED)).id == 2


def test_the_next_cycle_goes_on_in_the_first_tier_s_session_of_the_last_trouble(ladder):
    def down(name: str) -> Report:
        return replace(NEEDED, services=(ServiceState(name=name, status=Health.DOWN),))

    assert earlier_session(ladder, "default") is None
    at = NOON
    moving = replace(ladder, clock=lambda: at)
    settle_incident(moving, ended(moving, down("db"), MENDED))
    at += minutes(15)
    chain = ended(moving, down("web"), MENDED)
    settle_incident(moving, chain)

    assert earlier_session(ladder, "default") == chain.sessions[0]
    assert earlier_session(ladder, "nightly") is None
    ladder.store.drop_sessions(incident=open_incident(ladder, "default").id)
    assert earlier_session(ladder, "default") is None


def test_the_delta_says_what_those_above_did_since_and_how_it_ended(ladder):
    before = ended(ladder, NEEDED, replace(MENDED, summary="long ago"))
    settle_incident(ladder, before)
    chain = ended(ladder, NEEDED, MENDED)
    incident = settle_incident(ladder, chain)
    ended(ladder, NEEDED, status=CycleStatus.BLOCKED)
    ended(ladder, NEEDED, MENDED, dry_run=True)
    ended(ladder, NEEDED, replace(MENDED, summary="elsewhere"), schedule="nightly")
    begin(ladder.store)

    facts = delta(ladder, incident, chain.sessions[0])

    assert (facts.services, facts.opened_at, facts.checked_at) == (("web",), NOON, NOON)
    assert (facts.cycles, facts.last_cycle) == (2, "blocked (why)")
    assert (facts.actions, facts.left_out) == (MENDED.actions, 0)
    assert facts.summary == "web was restarted and answers"


def test_a_delta_of_nothing_is_one_too(ladder):
    chain = ended(ladder, NEEDED, status=CycleStatus.UNRESOLVED)
    facts = delta(ladder, settle_incident(ladder, chain), chain.sessions[0])

    assert (facts.last_cycle, facts.actions, facts.summary) == ("unresolved", (), "")


def test_a_delta_is_short_and_holds_no_secrets(ladder):
    long = "x " * 500
    many = tuple(
        Action(service=f"{KNOWN}{number}", kind=long, command=f"{KNOWN} {long}", succeeded=False)
        for number in range(25)
    )
    services = tuple(ServiceState(name=f"{number}{long}", status=Health.DOWN) for number in range(25))
    chain = ended(
        ladder, replace(NEEDED, services=services), Report(summary=KNOWN + long, escalation_needed=False, actions=many)
    )
    facts = delta(ladder, settle_incident(ladder, chain), chain.sessions[0])

    assert KNOWN not in str(facts)
    assert (len(facts.actions), facts.left_out, len(facts.services)) == (10, 15, 5)
    assert facts.actions[-1].service == "[masked]24"
    texts = [facts.summary, *facts.services, *(text for a in facts.actions for text in (a.service, a.kind, a.command))]
    assert max(map(len, texts)) <= 200
