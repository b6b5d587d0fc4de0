"""Cut off in the middle of a call, or of a run's time: a call that a person approved runs once at the most."""

import datetime as dt
import re

import pytest
from climber import bash, report
from cycles import Place, scripted_api, until
from killing import MOVES, kill_at_commit

from supervisor.model.guarding import ApprovalStatus
from supervisor.model.session import Tokens
from supervisor.rehearsal.scenario import Scenario, Script


def tier(name: str, prompt: str, more: str) -> str:
    return f'[[tiers]]\nname = "{name}"\nmodel = "haiku"\nprompt = "{prompt}"\n{more}\n'


# Where the run that uses the approval is cut: at which commit of which kind.
CUTS = {
    "just_started": (4, MOVES, False),
    "before_the_answer_is_recorded": (1, "INSERT INTO tool_calls", True),
    "before_the_answer_is_given": (1, "INSERT INTO tool_calls", False),
    "when_it_is_over": (1, "UPDATE tool_calls", False),
}


# Every cut on the newest CLI, the most telling two on the other: each takes several runs.
CASES = [("new_cli", cut) for cut in CUTS] + [("old_cli", cut) for cut in ("just_started", "when_it_is_over")]


@pytest.mark.parametrize(("which", "cut"), CASES, ids=lambda value: value)
def test_a_supervisor_killed_around_an_approved_call_never_has_it_run_twice(tmp_path, which, cut, request):
    cli = request.getfixturevalue(which)
    number, of, before = CUTS[cut]
    program = tmp_path / "work" / "once"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho done >> ran\n")
    program.chmod(0o755)
    scenario = Scenario(
        title="approved",
        scripts=(
            Script(tier=1, turns=(bash(str(program)), report(False))),
            Script(tier=1, attempt=2, turns=(report(False),)),
        ),
    )
    with scripted_api(scenario, fallback=(1,)) as api:
        config = tier("one", "tier1.md", f'approve = ["{program}"]')
        place = Place(tmp_path, cli, base_url=api.base_url, config=config)
        assert place.cycle().exit_code == 4
        with place.store() as store:
            now = dt.datetime.now(dt.UTC)
            [asked] = store.pending_approvals(now)
            store.decide_approval(asked.id, approved=True, by="ada", reason=None, now=now)

        assert kill_at_commit(place, number, before=before, of=of)
        done = place.cycle("--json")

        assert done.exit_code == 0, done.err
        with place.store() as store:
            assert store.approval(asked.id).status is ApprovalStatus.USED
            [chain] = [c for c in place.chains() if c.cycle.id == asked.cycle_id]
            calls = [c for s in chain.sessions for c in store.calls(s.id) if c.verdict == "allow"]
        ran = (place.work / "ran").read_text().count("done") if (place.work / "ran").exists() else 0
        assert ran <= len(calls) <= 1
        # Cut off before the approval was used up, it is used; afterwards, whether the call ran is known or asked.
        assert ran == 1 or before or calls[0].outcome is None
        for session in chain.sessions:
            spent = sum(api.account(session.session_id).values(), start=Tokens())
            assert spent.covers(session.tokens or Tokens())
        place.assert_nothing_left()


def test_a_run_that_passes_its_time_goes_on_in_another_and_knows_what_it_had_begun(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy", config=tier("one", "tier1.md", "timeout_minutes = 0.05"))
    started = place.start("--json")
    until(lambda: len([c for c in place.chains() if len(c.sessions) == 2]), what="another run has begun")
    place.go_on()
    done = started.done()

    assert done.exit_code == 0, done.err
    one, two = done.document["sessions"]
    assert (one["status"], one["failure"]) == ("timed_out", "wall_clock")
    assert (two["status"], two["continuity"], two["parent_session_id"]) == ("completed", "handoff", one["id"])
    [chain] = place.chains()
    assert [s.resumes for s in chain.sessions] == [0, 1]
    [prompt] = [e.text for e in place.events(chain.sessions[1]) if e.kind == "prompt"]
    assert re.search(r"nobody knows how it ended:\s+- Bash: sleep 1", prompt)
    place.assert_nothing_left()


def test_a_run_that_passes_its_time_again_and_again_is_given_up(tmp_path, standin):
    limits = "[continuity]\nmax_resumes = 1\n"
    place = Place(tmp_path, standin, ways="busy", config=limits + tier("one", "tier1.md", "timeout_minutes = 0.05"))

    done = place.cycle("--json")

    assert done.exit_code == 1, done.err
    assert (done.document["cycle"]["status"], done.document["cycle"]["reason"]) == ("failed", "wall_clock")
    assert [s["status"] for s in done.document["sessions"]] == ["timed_out", "timed_out"]
    place.assert_nothing_left()
