"""A sample of the kill loop: a supervisor that is killed loses nothing, and nothing happens twice.

``make kills`` runs hundreds: at every commit, and at random instants, several times in one cycle.
"""

import random
import time
from itertools import count
from pathlib import Path

import pytest
from climber import bash, report
from cycles import Place, scripted_api, until
from killing import MOVES, discrepancies, kill_at_commit, kill_at_instant, new_place, settle

from supervisor.model.session import CostBasis, SessionStatus, Tokens
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario, Script

SEED = 20261116
INSTANTS = 3
# Beginning and ending of a cycle of two tiers, and of each tier its record, its process and its end.
CHANGES = 8


def test_killed_after_any_change_of_a_status_the_cycle_goes_on_and_nothing_happens_twice(tmp_path, standin):
    whole = new_place(tmp_path / "whole", standin)
    assert whole.cycle().exit_code == 0
    found, killed = {}, 0

    for number in count(1):
        place = new_place(tmp_path / str(number), standin, whole.state / "probe.json")
        if not kill_at_commit(place, number, before=False, of=MOVES):
            break
        killed += 1
        settle(place)
        if problems := discrepancies(place):
            found[number] = problems

    assert found == {}
    assert killed == CHANGES


@pytest.mark.parametrize("number", [4, 5, 6, 7], ids=["tier_1_ends", "tier_2_is_recorded", "it_starts", "it_ends"])
def test_killed_before_a_change_of_a_status_a_handoff_is_neither_lost_nor_left(tmp_path, standin, number):
    place = new_place(tmp_path / "place", standin)

    assert kill_at_commit(place, number, "--fresh-session", before=True, of=MOVES)
    settle(place)

    assert discrepancies(place) == []
    assert {s.continuity for s in place.chains()[0].sessions[1:]} == {"handoff"}


def test_killed_at_any_instant_and_again_the_cycle_goes_on_and_nothing_happens_twice(tmp_path, standin):
    whole = new_place(tmp_path / "whole", standin)
    for _ in range(2):
        begun = time.monotonic()
        assert whole.cycle().exit_code == 0
    seconds = time.monotonic() - begun
    instants = random.Random(SEED)
    found = {}

    for number in range(INSTANTS):
        place = new_place(tmp_path / str(number), standin, whole.state / "probe.json")
        kills = [instants.uniform(0.2, 1.0) for _ in range(2)]
        for instant in kills:
            kill_at_instant(place, seconds * instant)
        settle(place)
        if problems := discrepancies(place):
            found[tuple(kills)] = problems

    assert found == {}


def real_place(root: Path, cli: Path, api: ScriptedApi) -> Place:
    tier = f'[[tiers]]\nname = "one"\nmodel = "haiku"\nprompt = "tier1.md"\nallow = ["{root / "work" / "step"} *"]\n'
    return Place(root, cli, base_url=api.base_url, config=tier)


def stepping(root: Path) -> Scenario:
    """Two steps and a report; a session that goes on with it has only the report to give."""
    program = root / "work" / "step"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$1" >> ran\n')
    program.chmod(0o755)
    steps = (bash(f"{program} one"), bash(f"{program} two"), report(False))
    return Scenario(
        title="steps", scripts=(Script(tier=1, turns=steps), Script(tier=1, attempt=2, turns=(report(False),)))
    )


@pytest.mark.parametrize("commit", [6, 10], ids=["before_anything_is_recorded", "in_mid_work"])
def test_what_a_real_cli_says_after_its_supervisor_was_killed_is_recorded_and_paid_for(tmp_path, cli, commit):
    with scripted_api(stepping(tmp_path), fallback=(1,)) as api:
        place = real_place(tmp_path, cli, api)

        assert kill_at_commit(place, commit, before=False)
        # Nobody ends it, so it goes on: it is refused every tool, and says that it has nothing more to say.
        until(lambda: not place.processes(), what="the orphan has left")
        done = place.cycle("--json")

        assert done.exit_code == 0, done.err
        [chain] = place.chains()
        cut_off, after = chain.sessions
        assert (cut_off.status, after.status) == (SessionStatus.INTERRUPTED, SessionStatus.COMPLETED)
        assert (after.continuity, after.reason, after.resumes) == ("resume", "interrupted", 1)
        assert {call.session_id for call in api.calls} == {cut_off.session_id, after.session_id}
        for session in chain.sessions:
            assert session.tokens == sum(api.account(session.session_id).values(), start=Tokens())
        assert (cut_off.cost_basis, after.cost_basis) == (CostBasis.ESTIMATED, CostBasis.REPORTED)
        ran = (place.work / "ran").read_text().split() if (place.work / "ran").exists() else []
        assert len(ran) == len(set(ran))
        place.assert_nothing_left()


def test_a_real_cli_is_ended_by_the_next_cycle_and_only_the_answer_it_waited_for_is_unknown(tmp_path, cli):
    with scripted_api(stepping(tmp_path), fallback=(1,)) as api:
        place = real_place(tmp_path, cli, api)

        assert kill_at_commit(place, 9, before=True)
        done = place.cycle("--json")

        assert done.exit_code == 0, done.err
        [chain] = place.chains()
        cut_off, _ = chain.sessions
        known, spent = cut_off.tokens, sum(api.account(cut_off.session_id).values(), start=Tokens())
        last = [call.tokens for call in api.calls if call.session_id == cut_off.session_id][-1]
        assert spent.covers(known)
        assert known.covers(spent - last)
        place.assert_nothing_left()
