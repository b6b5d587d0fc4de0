"""The operator's side of the guard: approvals, the switch, budgets and services, as a person types them."""

import datetime as dt
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from climber import bash, report
from rich.cells import cell_len

from supervisor.cli.person import who
from supervisor.climb.owner import this_process
from supervisor.model.cycle import CycleStatus
from supervisor.model.guarding import ApprovalStatus, NewApproval
from supervisor.model.outcome import Failure
from supervisor.model.session import SessionStatus, Tokens
from supervisor.rehearsal.scenario import Scenario, Script, Turn
from supervisor.store import Store, open_store
from tests.cli.command_line import DEADLINE_SECONDS, CommandLine, Onlooker, command_line, scripted_api
from tests.cli.conftest import HOSTILE
from tests.store.store_examples import add_session, begin, end

TIER = '[[tiers]]\nname = "one"\nmodel = "claude-haiku-4-5"\nprompt = "tier1.md"\n'
ASKS = TIER + 'approve = ["> <work>/mark"]\n'
REPAIRS = TIER + 'rule_sets = ["read-only", "remedies"]\n'
LEAVE_A_MARK = bash("echo ran >> mark")
FINE = report(False)


@contextmanager
def place(directory: Path, cli: Path, config: str, *sessions: tuple[Turn, ...]) -> Iterator[CommandLine]:
    """`opsladder` with this configuration, on the real CLI; its first session plays the first turns, and so on."""
    scripts = (Script(tier=1, attempt=number, turns=turns) for number, turns in enumerate(sessions, start=1))
    with scripted_api(Scenario(title="test", scripts=tuple(scripts)), tiers=(1,)) as base_url:
        opsladder = command_line(directory, base_url=base_url, OPSLADDER_CLAUDE__BIN=str(cli))
        (opsladder.work / "opsladder.toml").write_text(config)
        yield opsladder


def marks(opsladder: CommandLine) -> int:
    """How often the call that leaves a mark has run."""
    mark = opsladder.work / "mark"
    return len(mark.read_text().splitlines()) if mark.exists() else 0


def too_wide(opsladder: CommandLine, out: str) -> list[str]:
    paths = (line for line in out.splitlines() if str(opsladder.directory) not in line)
    return [line for line in paths if cell_len(line) > 80]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, new_cli: Path) -> Iterator[Onlooker]:
    """A cycle that was let look, was refused something, and now waits for a person. Nobody answers it here."""
    turns = (bash("ls"), bash("rm -r /etc"), LEAVE_A_MARK)
    with place(tmp_path_factory.mktemp("asked"), new_cli, ASKS, turns) as opsladder:
        yield Onlooker(directory=opsladder.directory, env=opsladder.env)


def test_a_cycle_that_needs_approval_exits_4_and_says_what_to_type(asked: CommandLine) -> None:
    done = asked.run("cycle")

    assert done.exit_code == 4
    assert (
        "A PERSON IS NEEDED: Tier 1 asks for approval 1: Bash: echo ran >> mark (`opsladder approve 1` or " in done.out
    )
    assert "cycle 1 paused (approval), $" in done.out
    assert done.out.splitlines()[-1].startswith("to go on: `opsladder approvals` ")
    assert marks(asked) == 0


def test_approvals_say_what_is_wanted_why_until_when_and_what_happens_next(asked: CommandLine) -> None:
    asked.run("cycle")
    done = asked.run("approvals")

    assert (done.exit_code, done.err) == (0, "")
    text = " ".join(done.out.split())
    for said in (
        "Approval 1: tier 1 of cycle 1 (default)",
        "wants Bash: echo ran >> mark",
        "concerns no service that could be told from it",
        "why `echo ran >> mark` needs a person's approval by the rule tier one: > <work>/mark.",
        "before `opsladder session 1` shows what led to it",
        "`opsladder approve 1` runs exactly this call, once, and the tier goes on",
        "`opsladder deny 1 --reason TEXT` tells the model why, and the tier goes on",
    ):
        assert said in text
    assert text.count("a person's approval") == 1
    assert re.search(r"until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, \d\dm\d\ds from now; then it is refused", text)
    assert too_wide(asked, done.out) == []


def test_approvals_are_one_document(asked: CommandLine) -> None:
    asked.run("cycle")
    done = asked.run("approvals", "--json")

    assert (done.exit_code, done.err, done.document["schema"]) == (0, "", "opsladder.approvals/1")
    [question] = done.document["approvals"]
    known = {name: question[name] for name in ("id", "status", "cycle_id", "session_id", "tier", "tool", "text")}
    assert list(known.values()) == [1, "waiting", 1, 1, 1, "Bash", "echo ran >> mark"]
    assert (question["input"]["command"], question["services"]) == ("echo ran >> mark", [])
    assert question["rule"] == "tier one: > <work>/mark"
    assert question["expires_at"].endswith("Z")
    assert (question["decided_by"], question["used_by"]) == (None, None)


def test_a_session_shows_beside_each_call_what_the_guard_decided(asked: CommandLine) -> None:
    asked.run("cycle")
    out = asked.run("session", "1").out

    lines = [line[9:] for line in out.splitlines()]
    first, second, third = (number for number, line in enumerate(lines) if line.startswith("      runs  "))
    assert re.match(r"     guard  ✓ allow \(read-only: ls\|.*…\)$", lines[first + 1])
    assert lines[second].endswith("Bash: rm -r /etc")
    assert re.match(r"     guard  ✗ deny.*: `rm -r /etc` ", lines[second + 1])
    assert re.match(r"     guard  ‖ defer: `echo ran >> mark` needs a person's", lines[third + 1])
    assert "1 tool call, 1 denied, 1 deferred" in out
    assert too_wide(asked, out) == []
    guard = asked.run("session", "1", "--json").document["guard"]
    assert [call["decision"] for call in guard] == ["allow", "deny", "defer"]


def test_the_tree_of_a_paused_cycle_says_how_it_goes_on(asked: CommandLine) -> None:
    asked.run("cycle")
    out = asked.run("chain", "1").out

    assert out.startswith("Cycle 1 default ‖ paused (approval)")
    assert "\n→ To go on: `opsladder approvals` " in out
    assert too_wide(asked, out) == []


def test_the_doctor_warns_of_calls_and_cycles_that_wait(asked: CommandLine) -> None:
    asked.run("cycle")
    done = asked.run("doctor", "--json")

    assert (done.exit_code, done.document["ok"]) == (0, True)
    found = {finding["check"]: finding for finding in done.document["findings"]}
    assert (found["approvals"]["grade"], found["approvals"]["detail"]) == (
        "warning",
        "1 tool call waits for a person: 1",
    )
    assert "opsladder approvals" in found["approvals"]["remedy"]
    assert found["paused"]["grade"] == "warning"
    assert found["paused"]["detail"].startswith("cycle 1 of default is paused (approval)")


REFUSALS = {
    "unknown": (("approve", "99"), 1, "There is no approval 99. `opsladder approvals` lists those that wait."),
    "unknown_to_deny": (("deny", "99", "--reason", "no"), 1, "There is no approval 99. `opsladder approvals` lists"),
    "zero": (("approve", "0"), 1, "`opsladder approvals` lists those that wait."),
    "larger_than_any_database_holds": (("deny", "9" * 30), 1, "`opsladder approvals` lists those that wait."),
    "not_a_number": (("approve", "first"), 2, "integer"),
    "none": (("approve",), 2, "ID"),
}


@pytest.mark.parametrize(("arguments", "code", "said"), REFUSALS.values(), ids=REFUSALS.keys())
def test_an_answer_to_nothing_is_refused(asked: CommandLine, arguments: tuple[str, ...], code: int, said: str) -> None:
    asked.run("cycle")
    done = asked.run(*arguments)

    assert (done.exit_code, done.out) == (code, "")
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["approve", "deny"])
def test_an_answer_before_anything_has_run_is_refused_and_creates_nothing(opsladder: CommandLine, command: str) -> None:
    done = opsladder.run(command, "1")

    assert (done.exit_code, done.out) == (1, "")
    assert done.err.startswith("opsladder: No cycle has run yet.")
    assert not opsladder.state.exists()


def test_an_approved_call_runs_once_and_a_second_approval_runs_nothing(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, ASKS, (LEAVE_A_MARK,), (FINE,)) as opsladder:
        assert opsladder.run("cycle").exit_code == 4
        skipped = opsladder.run("cycle")
        approved = opsladder.run("approve", "1")
        again = opsladder.run("approve", "1")
        denied = opsladder.run("deny", "1", "--reason", "too late")

    assert skipped.exit_code == 5
    assert "Cycle 1 of this schedule is paused and comes first." in skipped.out
    assert (approved.exit_code, approved.err) == (0, "")
    assert approved.out.splitlines()[0] == "Approved. Cycle 1 goes on."
    assert "\ncycle 1 of default goes on\ntier 1 claude-haiku-4-5: resume (approved)\n" in approved.out
    assert approved.out.splitlines()[-1].startswith("cycle 1 healthy, $")
    assert marks(opsladder) == 1
    for late in (again, denied):
        assert (late.exit_code, late.out) == (1, "")
        assert late.err.startswith(f"opsladder: Approval 1 was given already by {who()} at ")
        assert late.err.endswith(", and the call was let through, once. Nothing was changed.\n")
    assert opsladder.run("approvals").out == "Nothing waits for a person's approval.\n"
    went_on = opsladder.run("session", "2").out
    assert re.search(r"guard  ✓ allow Bash: echo ran >> mark \(approved\): \S+\s+approved\s+this\s+call\.", went_on)
    assert "Paused (approval), then gone on from." in opsladder.run("chain", "1").out


def test_a_refusal_reaches_the_model_with_its_reason_and_json_is_the_chain(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, ASKS, (LEAVE_A_MARK,), (FINE,)) as opsladder:
        paused = opsladder.run("cycle", "--json")
        denied = opsladder.run("deny", "1", "--reason", "not on a Friday", "--json")

    assert (paused.exit_code, paused.document["cycle"]["reason"]) == (4, "approval")
    assert (denied.exit_code, denied.err) == (0, "")
    assert (denied.document["schema"], denied.document["cycle"]["status"]) == ("opsladder.chain/1", "healthy")
    assert [s["reason"] for s in denied.document["sessions"]] == ["first_tier", "denied"]
    assert marks(opsladder) == 0
    events = opsladder.run("session", "2", "--json").document["events"]
    [given] = [event["text"] for event in events if event["kind"] == "tool_result"]
    assert f"{who()} refused this call: not on a Friday." in given


def test_of_two_approvals_at_the_same_time_exactly_one_goes_on(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, ASKS, (LEAVE_A_MARK,), (FINE,)) as opsladder:
        assert opsladder.run("cycle").exit_code == 4
        with opsladder.started("approve", "1") as (one, ones), opsladder.started("approve", "1") as (two, twos):
            codes = one.wait(DEADLINE_SECONDS), two.wait(DEADLINE_SECONDS)

    assert sorted(codes) == [0, 1]
    lost = (ones if codes[0] else twos).read_text()
    assert lost.startswith("opsladder: Approval 1 was given already by ")
    assert marks(opsladder) == 1


def test_a_call_that_nobody_answered_in_time_is_refused_and_the_cycle_can_go_on(tmp_path: Path, new_cli: Path) -> None:
    config = ASKS + "[guard]\napproval_minutes = 0.0001\n"
    with place(tmp_path, new_cli, config, (LEAVE_A_MARK,), (FINE,)) as opsladder:
        assert opsladder.run("cycle").exit_code == 4
        late = opsladder.run("approve", "1")
        waiting = opsladder.run("approvals")
        on = opsladder.run("cycle")

    assert (late.exit_code, late.out) == (1, "")
    assert late.err.startswith("opsladder: Approval 1 had to be given by ")
    assert late.err.endswith("`opsladder cycle default` goes on with cycle 1.\n")
    assert waiting.out.splitlines() == [
        "Nothing waits for a person's approval.",
        "Cycle 1 of default is paused (approval). To go on: `opsladder cycle default`.",
    ]
    assert (on.exit_code, marks(opsladder)) == (0, 0)
    assert "tier 1 claude-haiku-4-5: resume (denied)" in on.out


@pytest.mark.parametrize(("answer", "done", "ran"), [("approve", "Approved", 1), ("deny", "Refused", 0)])
def test_an_answer_given_while_everything_is_paused_is_kept(
    tmp_path: Path, new_cli: Path, answer: str, done: str, ran: int
) -> None:
    with place(tmp_path, new_cli, ASKS, (LEAVE_A_MARK,), (FINE,)) as opsladder:
        assert opsladder.run("cycle").exit_code == 4
        opsladder.run("pause", "--reason", "the database moves")
        answered = opsladder.run(answer, "1")
        listed = opsladder.run("chains", "--json")
        before = marks(opsladder)
        ended = opsladder.run("unpause")
        on = opsladder.run("cycle")

    assert (answered.exit_code, answered.err, before) == (5, "", 0)
    assert answered.out.splitlines() == [
        f"{done}. The answer is kept: opsladder is paused by {who()} (the database moves), so nothing runs now.",
        "Cycle 1 goes on after `opsladder unpause`, with `opsladder cycle default`.",
    ]
    assert [chain["cycle"]["status"] for chain in listed.document["chains"]] == ["paused"]
    assert ended.out.splitlines()[1:] == ["Cycle 1 was held up: `opsladder cycle default` goes on with it."]
    assert (on.exit_code, marks(opsladder)) == (0, ran)


def test_an_answer_given_while_everything_is_paused_is_one_document_too(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, ASKS, (LEAVE_A_MARK,)) as opsladder:
        assert opsladder.run("cycle").exit_code == 4
        opsladder.run("pause")
        approved = opsladder.run("approve", "1", "--json")

    assert approved.exit_code == 5
    assert (approved.document["schema"], approved.document["status"]) == ("opsladder.approval/1", "approved")


def test_a_call_that_nobody_answered_is_not_held_up_by_the_switch(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, ASKS, (LEAVE_A_MARK,)) as opsladder:
        assert opsladder.run("cycle").exit_code == 4
        opsladder.run("pause")
        ended = opsladder.run("unpause")

    assert ended.out == "Runs and tool calls go through again.\n"


def test_a_pause_skips_cycles_and_says_who_and_why_until_it_is_ended(tmp_path: Path, new_cli: Path) -> None:
    with place(tmp_path, new_cli, TIER, (FINE,)) as opsladder:
        paused = opsladder.run("pause", "--reason", "the database moves")
        skipped = opsladder.run("cycle")
        document = opsladder.run("cycle", "--json")
        doctor = opsladder.run("doctor")
        ended = opsladder.run("unpause")
        ran = opsladder.run("cycle")
        idle = opsladder.run("unpause")

    assert (paused.exit_code, paused.err) == (0, "")
    assert paused.out.startswith(f"Paused by {who()} (the database moves).\n")
    assert "`opsladder unpause`" in paused.out
    assert (skipped.exit_code, document.exit_code) == (5, 5)
    assert f"skipped (switch), nothing ran: opsladder is paused by {who()} (the database moves)." in skipped.out
    assert (document.document["cycle"]["status"], document.document["cycle"]["reason"]) == ("skipped", "switch")
    assert document.document["sessions"] == []
    assert doctor.exit_code == 0
    assert re.search(rf"^!   switch      paused by {who()} at .* UTC:", doctor.out, re.MULTILINE)
    assert doctor.out.endswith("\nA cycle would be skipped, because opsladder is paused.\n")
    assert (ended.exit_code, ended.out) == (0, "Runs and tool calls go through again.\n")
    assert ran.exit_code == 0
    assert (idle.exit_code, idle.out) == (0, "Nothing was paused.\n")


def test_a_secret_in_a_reason_is_not_kept(opsladder: CommandLine) -> None:
    done = opsladder.run("pause", "--reason", "rotating sk-ant-api03-" + "x7Q" * 20)

    assert done.out.startswith(f"Paused by {who()} (rotating ")
    assert "x7Q" not in done.out
    assert b"x7Qx7Q" not in b"".join(file.read_bytes() for file in opsladder.state.iterdir() if file.is_file())


def test_a_used_up_budget_pauses_until_more_is_approved(tmp_path: Path, new_cli: Path) -> None:
    config = TIER + '[budget]\nper_cycle_usd = 0.05\n[[schedules]]\nname = "first"\n[[schedules]]\nname = "nightly"\n'
    dear = bash("echo dear", usage=Tokens(input=100_000, output=10))
    with place(tmp_path, new_cli, config, (dear, LEAVE_A_MARK, FINE), (FINE,)) as opsladder:
        stopped = opsladder.run("cycle", "nightly")
        waits = opsladder.run("cycle", "nightly")
        listed = opsladder.run("approvals")
        shown = [opsladder.run(*page) for page in (("chain", "1"), ("session", "1"), ("chains",), ("notify", "list"))]
        on = opsladder.run("cycle", "nightly", "--approve-budget", "--json")

    assert stopped.exit_code == 4
    assert "cycle 1 paused (budget), " in stopped.out
    # With its schedule: without one the command would go on with the first schedule's.
    way_on = "`opsladder cycle nightly --approve-budget` now, or `opsladder cycle nightly` from tomorrow (UTC) on"
    assert stopped.out.splitlines()[-1] == f"to go on: {way_on}"
    printed = " ".join(" ".join(done.out for done in (stopped, waits, listed, *shown)).split())
    assert set(re.findall(r"`(opsladder cycle .*?)`", printed)) == {
        "opsladder cycle nightly --approve-budget",
        "opsladder cycle nightly",
    }
    assert waits.exit_code == 5
    assert listed.out.splitlines()[1] == f"Cycle 1 of nightly is paused (budget). To go on: {way_on}."
    assert (on.exit_code, on.document["cycle"]["id"], on.document["cycle"]["status"]) == (0, 1, "healthy")
    assert len(on.document["sessions"]) == 2


def test_services_show_their_health_and_how_much_of_each_limit_is_used(tmp_path: Path, new_cli: Path) -> None:
    restart = bash("systemctl restart web")
    with place(tmp_path, new_cli, REPAIRS, (restart, restart, bash("docker restart web"), FINE)) as opsladder:
        ran = opsladder.run("cycle")
        shown = opsladder.run("services")
        document = opsladder.run("services", "--json")

    assert ran.exit_code == 0
    assert "A PERSON IS NEEDED: Tier 1 was kept from acting: web is in cooldown" in ran.out
    assert (shown.exit_code, shown.err, document.err) == (0, "", "")
    head, row, note = shown.out.splitlines()
    assert re.split(r" {2,}", head.rstrip()) == ["service", "status", "since (UTC)", "streak", "restarts", "redeploys"]
    assert re.fullmatch(r"web {6}✓ healthy  \d{4}-\d\d-\d\d \d\d:\d\d  0       2 of 2    0 of 1 *", row)
    assert re.fullmatch(r"! web is in cooldown: no restart before [\d-]+ [\d:]+ UTC, \dh\d\dm from now\.", note)
    assert too_wide(opsladder, shown.out) == []
    assert document.document["schema"] == "opsladder.services/1"
    [web] = document.document["services"]
    assert (web["name"], web["status"], web["healthy_streak"], web["last_cycle"]) == ("web", "healthy", 0, 1)
    restarts = web["cooldowns"]["restart"]
    assert (restarts["used"], restarts["left"], restarts["max"], restarts["per_seconds"]) == (2, 0, 2, 4 * 3600)
    assert restarts["next_at"].endswith("Z")
    assert web["cooldowns"]["redeploy"]["next_at"] is None


EMPTY = {
    "services": (("services",), "No service was reported or acted on yet.\n"),
    "services_json": (("services", "--json"), '{"schema": "opsladder.services/1", "services": []}\n'),
    "approvals": (("approvals",), "Nothing waits for a person's approval.\n"),
    "approvals_json": (("approvals", "--json"), '{"schema": "opsladder.approvals/1", "approvals": []}\n'),
}


@pytest.mark.parametrize(("arguments", "said"), EMPTY.values(), ids=EMPTY.keys())
def test_looking_before_anything_is_known_says_so_and_creates_nothing(
    opsladder: CommandLine, arguments: tuple[str, ...], said: str
) -> None:
    done = opsladder.run(*arguments)

    assert (done.exit_code, done.out, done.err) == (0, said, "")
    assert not opsladder.state.exists()


def question(opsladder: CommandLine, *, paused: bool = True, **changes: Any) -> Store:
    """A record with a call that waits for a person, written without any CLI."""
    opsladder.state.mkdir(mode=0o700)
    now = dt.datetime.now(dt.UTC)
    store = open_store(f"sqlite:///{opsladder.state}/opsladder.db")
    cycle = begin(store, now=now, owner=this_process())
    session = add_session(store, cycle, created_at=now)
    values: dict[str, Any] = {
        "session_id": session.id,
        "cycle_id": cycle.id,
        "tier": 3,
        "tool_use_id": "toolu_1",
        "tool": "Write",
        "input": {"file_path": "/etc/web.conf", "content": "port = 1\n", "mode": 7},
        "input_hash": "0" * 64,
        "text": "/etc/web.conf",
        "rule": "default",
        "sentence": "No rule knows it.",
        "services": ("web", "db"),
        "created_at": now,
        "expires_at": now + dt.timedelta(minutes=30),
    }
    store.request_approval(NewApproval(**{**values, **changes}))
    if paused:
        end(store, session, SessionStatus.PAUSED, failure=Failure.APPROVAL, ended_at=now)
        store.finish_cycle(cycle.id, status=CycleStatus.PAUSED, reason="approval", detail="It waits.", now=now)
    return store


def test_a_person_sees_the_whole_call_and_not_only_its_file(opsladder: CommandLine) -> None:
    question(opsladder).close()

    rows = opsladder.run("approvals").out.splitlines()

    assert rows[1:7] == [
        "  wants     Write: /etc/web.conf",
        "  with      content = port = 1",
        "  with      mode = 7",
        "  concerns  web, db",
        "  why       No rule knows it.",
        "  rule      default",
    ]


def test_nothing_that_a_model_wants_reaches_the_terminal_as_a_command(opsladder: CommandLine) -> None:
    question(opsladder, text=HOSTILE, sentence=HOSTILE, input={"command": HOSTILE}, services=(HOSTILE,)).close()

    out = opsladder.run("approvals").out

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)
    assert r"\x1b[31mred" in out
    assert too_wide(opsladder, out) == []


ANSWERED = {
    "approved": ({"approved": True}, "Approval 1 was given already by ada at "),
    "denied": ({"approved": False}, "Approval 1 was refused already by ada at "),
}


@pytest.mark.parametrize(("said", "told"), ANSWERED.values(), ids=ANSWERED.keys())
@pytest.mark.parametrize("command", ["approve", "deny"])
def test_an_answer_stands_and_what_it_waits_for_is_said(
    opsladder: CommandLine, command: str, said: dict[str, bool], told: str
) -> None:
    with question(opsladder) as store:
        store.decide_approval(1, by="ada", reason=None, now=dt.datetime.now(dt.UTC), **said)
        done = opsladder.run(command, "1")

        assert (done.exit_code, done.out) == (1, "")
        assert done.err.startswith(f"opsladder: {told}")
        assert done.err.endswith("Nothing was changed. `opsladder cycle default` goes on with cycle 1.\n")
        assert store.approval(1).decided_by == "ada"


def test_a_cycle_whose_schedule_is_gone_cannot_go_on_and_the_way_out_is_said(opsladder: CommandLine) -> None:
    (opsladder.work / "opsladder.toml").write_text('[[schedules]]\nname = "renamed"\n')
    with question(opsladder) as store:
        done = opsladder.run("approve", "1")

        assert (done.exit_code, done.out) == (2, "")
        assert done.err.endswith("Configure it again, or end the cycle with `opsladder stop 1`.\n")
        assert store.approval(1).status is ApprovalStatus.WAITING

    findings = opsladder.run("doctor", "--json").document["findings"]
    assert [f["remedy"] for f in findings if f["check"] == "paused"] == [
        "Configure it again, if the cycle is to go on. `opsladder stop 1` ends it."
    ]
    assert opsladder.run("stop", "1").exit_code == 0


@pytest.mark.parametrize(
    ("command", "told", "status"), [("approve", "Approved", "approved"), ("deny", "Refused", "denied")]
)
def test_a_run_that_waits_in_its_hook_gets_the_answer_while_it_runs(
    opsladder: CommandLine, command: str, told: str, status: str
) -> None:
    with question(opsladder, paused=False) as store:
        done = opsladder.run(command, "1")
        assert (done.exit_code, done.out, done.err) == (0, f"{told}. Cycle 1 is running.\n", "")
        answer = store.approval(1)

    assert (answer.status.value, answer.decided_by) == (status, who())


def test_an_answer_to_a_running_cycle_is_one_document(opsladder: CommandLine) -> None:
    question(opsladder, paused=False).close()

    done = opsladder.run("deny", "1", "--reason", "no", "--json")

    assert (done.exit_code, done.err) == (0, "")
    assert json.loads(done.out)["schema"] == "opsladder.approval/1"
    assert (done.document["status"], done.document["reason"]) == ("denied", "no")


def test_a_pause_names_the_cycles_that_still_run(opsladder: CommandLine) -> None:
    question(opsladder, paused=False).close()

    assert "Cycle 1 of default still runs, without tools from now on.\n" in opsladder.run("pause").out
