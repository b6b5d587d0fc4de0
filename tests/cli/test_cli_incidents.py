"""Incidents as a person sees them, and how kept sessions are dropped."""

import datetime as dt
import re
from dataclasses import replace
from pathlib import Path

import pytest
from make import FINE, NEEDED
from rich.cells import cell_len

from supervisor.model.cycle import CycleStatus
from supervisor.model.report import Action, Health, Report, ServiceState
from supervisor.model.session import CostBasis
from supervisor.store import Store, open_store
from tests.cli.command_line import CommandLine, Onlooker, Ran, command_line
from tests.cli.conftest import HOSTILE
from tests.store.store_examples import add_session, begin, end

WINDOW = dt.timedelta(hours=4)
RESTARTED = Action(service="web", kind="restart", command="systemctl restart web", succeeded=True)
REDEPLOYED = Action(service="web", kind="redeploy", command="", succeeded=False)


class Past:
    """Cycles a quarter of an hour apart, up to now."""

    def __init__(self, store: Store, start: dt.datetime) -> None:
        self.store = store
        self.now = start

    def cycle(
        self, *reports: Report, schedule: str = "default", trouble: tuple[str, ...] = (), **ended: object
    ) -> None:
        """A cycle whose tiers from the first on reported this, each at 0.25 USD, kept for its incident."""
        store = self.store
        self.now += dt.timedelta(minutes=15)
        cycle, parent = begin(store, schedule, now=self.now), None
        for tier, report in enumerate(reports, start=1):
            parent = add_session(store, cycle, parent, tier=tier, created_at=self.now)
            known = {"cost_usd": 0.25, "cost_basis": CostBasis.REPORTED, "ended_at": self.now}
            parent = end(store, parent, report=report, **known)
        how = {"status": CycleStatus.RESOLVED, "reason": None, "detail": "it works again"} | ended
        store.finish_cycle(cycle.id, now=self.now, **how)
        judged = store.judge_cycle(cycle.id, trouble=trouble, reopen_within=WINDOW, now=self.now)
        if judged.incident is not None:
            for session in store.chain(cycle.id).sessions:
                store.keep_session(schedule, judged.incident.id, session.tier, session.id, self.now)


def with_a_past(directory: Path) -> CommandLine:
    """`opsladder` that has seen two incidents.

    | incident | cycles | |
    | 1 | 1, 2, 6 | of default: web and db, closed by 3 and 5, back with 6, not in 7; records 1-3, 7, 8 |
    | 2 | 4 | of nightly: names that are hostile; record 5 |
    """
    opsladder = command_line(directory)
    opsladder.state.mkdir(mode=0o700)
    start = dt.datetime.now(dt.UTC).replace(microsecond=0) - dt.timedelta(hours=2, minutes=1)
    with open_store(f"sqlite:///{opsladder.state}/opsladder.db") as store:
        past = Past(store, start)
        past.cycle(
            NEEDED,
            replace(FINE, actions=(RESTARTED,)),
            trouble=("web",),
            status=CycleStatus.UNRESOLVED,
            reason="top_tier",
        )
        past.cycle(replace(NEEDED, actions=(REDEPLOYED,)), trouble=("web", "db"))
        past.cycle(FINE)
        hostile = Action(service=HOSTILE, kind=HOSTILE, command=HOSTILE, succeeded=False)
        past.cycle(
            Report(
                summary=HOSTILE,
                escalation_needed=True,
                escalation_reason=HOSTILE,
                services=(ServiceState(name=HOSTILE, status=Health.DOWN),),
                actions=(hostile,),
            ),
            schedule="nightly",
            trouble=(HOSTILE, *(f"service{number}" for number in range(30))),
            status=CycleStatus.FAILED,
            reason="wall_clock",
            detail=HOSTILE,
        )
        past.cycle(FINE)
        past.cycle(NEEDED, FINE, trouble=("web",))
        past.cycle(FINE)
    return opsladder


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Onlooker:
    opsladder = with_a_past(tmp_path_factory.mktemp("incidents"))
    return Onlooker(directory=opsladder.directory, env=opsladder.env)


@pytest.fixture
def opsladder(tmp_path: Path) -> CommandLine:
    return with_a_past(tmp_path)


def printed(ran: Ran) -> str:
    """What was printed, in one line, when all went well and fits 80 columns without anything a terminal would obey."""
    assert (ran.exit_code, ran.err) == (0, "")
    assert [line for line in ran.out.splitlines() if cell_len(line) > 80] == []
    assert "\x1b" not in ran.out
    return " ".join(ran.out.split())


def test_incidents_are_listed_with_what_they_are_about_and_where_they_stand(seen: CommandLine) -> None:
    text = printed(seen.run("incidents"))

    assert text.startswith("incident status opened (UTC) lasted cycles cost schedule ")
    first, second = text.index(" 1 ✗ open "), text.index(" 2 ✗ open ")
    assert first < second
    assert re.search(r" 1 ✗ open \d{4}-\d\d-\d\d \d\d:\d\d 1h4\dm 3 \$1\.2500 default web, db ", text)
    assert "web, db (came back once, 1 cycle without it since)" in text
    assert re.search(r" 2 ✗ open \S+ \S+ 1h0\dm 1 \$0\.2500 nightly ", text)
    assert "[bold]no markup" in text
    assert "and 21 more" in text


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ((), [1, 2]),
        (("--limit", "1"), [1]),
        (("--status", "open"), [1, 2]),
        (("--status", "closed"), []),
    ],
    ids=["all", "one", "open", "closed"],
)
def test_a_listing_is_one_document_of_those_that_are_wanted(
    seen: CommandLine, arguments: tuple[str, ...], numbers: list[int]
) -> None:
    done = seen.run("incidents", "--json", *arguments)

    assert (done.exit_code, done.err, done.document["schema"]) == (0, "", "opsladder.incidents/1")
    assert [incident["id"] for incident in done.document["incidents"]] == numbers


def test_an_incident_is_shown_with_its_timeline_actions_cost_and_kept_sessions(seen: CommandLine) -> None:
    ran = seen.run("incident", "1")
    text = printed(ran)

    assert re.match(r"Incident 1 default ✗ open \$1\.2500 1h4\dm services web, db opened \S+ \S+ UTC ", text)
    assert "again its trouble came back once after it was closed" in text
    assert re.search(r"trouble last seen \S+ \S+ UTC; closes after 1 more cycle without it", text)
    assert "cost $1.2500 in 3 cycles, 5 records" in text
    assert "kept record 7 (tier 1), record 8 (tier 2), to be resumed; `opsladder reset --incident 1` drops them" in text
    assert re.search(
        r"Cycle 1 ✗ unresolved \(top_tier\) tiers 1-2 \$0\.5000 it works again ✓ tier 2 restart web: ", text
    )
    assert "✓ tier 2 restart web: systemctl restart web" in text
    assert re.search(r"Cycle 2 ✓ resolved tier 1 \$0\.2500 it works again ✗ tier 1 redeploy web \(failed\)", text)
    assert [line.split()[3] for line in ran.out.splitlines() if " Cycle " in line] == ["1", "2", "6"]


def test_hostile_words_of_an_agent_are_shown_and_not_obeyed(seen: CommandLine) -> None:
    text = printed(seen.run("incident", "2"))

    assert "\\x1b[31mred" in text
    assert "[bold]no markup[/bold]" in text


def test_an_incident_is_one_document(seen: CommandLine) -> None:
    done = seen.run("incident", "1", "--json")

    assert (done.exit_code, done.err, done.document["schema"]) == (0, "", "opsladder.incident/1")
    incident = done.document["incident"]
    assert (incident["status"], incident["services"], incident["reopened"]) == ("open", ["web", "db"], 1)
    assert (incident["healthy_streak"], incident["last_cycle"], incident["closed_at"]) == (1, 7, None)
    assert incident["opened_at"].endswith("Z")
    assert incident["total"] == {"cycles": 3, "sessions": 5, "cost_usd": 1.25, "cost_is_exact": True}
    assert [kept["id"] for kept in done.document["kept_sessions"]] == [7, 8]
    assert [chain["cycle"]["id"] for chain in done.document["chains"]] == [1, 2, 6]
    assert {chain["cycle"]["incident"] for chain in done.document["chains"]} == {1}


def test_a_closed_incident_says_since_when_and_keeps_nothing(opsladder: CommandLine) -> None:
    with open_store(f"sqlite:///{opsladder.state}/opsladder.db") as store:
        Past(store, dt.datetime.now(dt.UTC)).cycle(FINE)

    text = printed(opsladder.run("incident", "1"))

    assert text.startswith("Incident 1 default ✓ closed ")
    assert re.search(r"closed \S+ \S+ UTC, after 2 cycles without its trouble", text)
    assert " kept " not in text
    assert "1 ✓ closed" in printed(opsladder.run("incidents", "--status", "closed"))


@pytest.mark.parametrize(
    ("arguments", "said", "left"),
    [
        ((), "Dropped 3 kept sessions. The next cycle begins a fresh conversation.", [[], []]),
        (("default",), "Dropped 2 kept sessions of default. ", [[], [5]]),
        (("--incident", "2"), "Dropped 1 kept session of incident 2. ", [[7, 8], []]),
        (("nightly", "--incident", "2"), "Dropped 1 kept session of incident 2. ", [[7, 8], []]),
        (("nightly",), "Dropped 1 kept session of nightly. ", [[7, 8], []]),
    ],
    ids=["all", "of_a_schedule", "of_an_incident", "of_both", "of_a_schedule_that_is_no_longer_configured"],
)
def test_kept_sessions_are_dropped_and_counted(
    opsladder: CommandLine, arguments: tuple[str, ...], said: str, left: list[list[int]]
) -> None:
    assert said in printed(opsladder.run("reset", *arguments))

    documents = [opsladder.run("incident", number, "--json").document for number in ("1", "2")]
    assert [[kept["id"] for kept in document["kept_sessions"]] for document in documents] == left
    assert "nothing was dropped" in printed(opsladder.run("reset", *arguments))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("incidents", "--status", "ajar"), 2, "There is no status 'ajar'. An incident is open or closed."),
        (("incident", "9"), 1, "There is no incident 9. `opsladder incidents` lists them."),
        (("incident", "99999999999999999999"), 1, "`opsladder incidents` lists them."),
        (("reset", "weekly"), 2, 'There is no schedule "weekly". There is: default.'),
        (("reset", "--incident", "9"), 1, "There is no incident 9. `opsladder incidents` lists them."),
        (("reset", "default", "--incident", "2"), 2, "Incident 2 is of the schedule nightly, not of default."),
    ],
    ids=["status", "incident", "number", "schedule", "incident_to_reset", "incident_of_another_schedule"],
)
def test_what_does_not_exist_is_a_clear_error_and_changes_nothing(
    seen: CommandLine, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = seen.run(*arguments)

    assert (done.exit_code, done.out) == (code, "")
    assert said in done.err
    assert [kept["id"] for kept in seen.run("incident", "2", "--json").document["kept_sessions"]] == [5]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("incidents",), 0, "No incident was found yet."),
        (("incidents", "--status", "open"), 0, "No incident is open."),
        (("incidents", "--json"), 0, '{"schema": "opsladder.incidents/1", "incidents": []}'),
        (("reset",), 0, "No session was kept, so nothing was dropped."),
        (("reset", "default"), 0, "No session of default was kept, so nothing was dropped."),
        (("incident", "1"), 1, "No cycle has run yet."),
        (("reset", "--incident", "1"), 1, "No cycle has run yet."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_looking_where_nothing_ran_says_so_and_makes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    nothing = command_line(tmp_path)
    done = nothing.run(*arguments)

    assert done.exit_code == code
    assert said in done.out + done.err
    assert not nothing.state.exists()
