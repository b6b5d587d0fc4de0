"""`opsladder run` on the real CLI, both versions: fired by a schedule, killed in the middle of a tier, gone on with."""

import signal
from pathlib import Path

import pytest
from climber import bash, newest_user_text, report
from cycles import Place, scripted_api, until
from test_service_daemon import configure, free_port, serving

from supervisor.model.cycle import Chain, CycleStatus, Trigger
from supervisor.model.permission import Verdict
from supervisor.model.session import ContinuityKind, CostBasis, Reason, SessionStatus, Tokens
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.scenario import Scenario, Script
from supervisor.settings import load_settings

DUE = '[[schedules]]\nname = "often"\nevery = "2s"\nmisfire = "skip"\n'
NO_LONGER_DUE = '[[schedules]]\nname = "often"\n'
TIERS = """
[[tiers]]
name = "observe"
model = "haiku"
prompt = "tier1.md"
allow = ["tee ..."]

[[tiers]]
name = "mend"
model = "sonnet"
prompt = "tier2.md"
allow = ["tee ...", "touch ..."]
"""
# Of a run that was cut off, the CLI has said what each answer cost but for the length of the last one: so it is one.
CUT = Tokens(input=2000, output=1)
SCENARIO = Scenario(
    title="killed in the middle of the second tier",
    scripts=(
        Script(tier=1, turns=(bash("echo seen | tee -a ran"), report(True))),
        Script(
            tier=2,
            turns=(
                bash("echo tried | tee -a ran", usage=CUT),
                bash("echo cut-off | tee -a ran && touch begun && tail -f /dev/null", usage=CUT),
            ),
        ),
        Script(tier=2, attempt=2, turns=(bash("echo mended | tee -a ran"), report(False))),
    ),
)
TURNS_BEFORE = 2
COMMANDS = ["seen", "tried", "cut-off", "mended"]


def cycle_of(place: Place) -> Chain | None:
    """The one cycle that ran; while it did, others of its schedule were skipped."""
    ran = [chain for chain in place.chains() if chain.cycle.status is not CycleStatus.SKIPPED]
    assert len(ran) <= 1
    return ran[0] if ran else None


def is_cut_off(place: Place) -> bool:
    """Whether the second tier is in the middle of a call, and what came before is on record."""
    chain = cycle_of(place)
    return chain is not None and (place.work / "begun").exists() and chain.sessions[-1].messages >= TURNS_BEFORE


def is_resolved(place: Place) -> bool:
    chain = cycle_of(place)
    return chain is not None and chain.cycle.status is CycleStatus.RESOLVED


def owed(place: Place, api: ScriptedApi, session_id: str | None) -> float:
    """What the API would charge for a session."""
    prices = load_settings(place.root / "opsladder.toml", place.env, cwd=place.root).models
    return sum(prices.cost(model, tokens) or 0.0 for model, tokens in api.account(session_id).items())


def test_killed_in_the_middle_of_a_tier_it_goes_on_in_that_conversation_and_does_nothing_twice(
    tmp_path: Path, cli: Path
) -> None:
    with scripted_api(SCENARIO, fallback=(1, 2, 2)) as api:
        place = Place(tmp_path, cli, base_url=api.base_url)
        port = str(free_port())
        configure(place, DUE, more=TIERS)
        with serving(place, OPSLADDER_WEB__PORT=port) as service:
            until(lambda: is_cut_off(place), what="the second tier is at work")
            service.process.kill()
            service.done()
        left_running = place.processes()

        configure(place, NO_LONGER_DUE, more=TIERS)
        with serving(place, OPSLADDER_WEB__PORT=port) as service:
            until(lambda: is_resolved(place), what="the cycle has gone on")
            service.process.send_signal(signal.SIGTERM)
            done = service.done()

        assert left_running != []
        assert done.exit_code == 0, done.err
        place.assert_nothing_left()
        chain = cycle_of(place)
        assert chain is not None
        assert chain.cycle.trigger is Trigger.SCHEDULE
        looked, cut, mended = chain.sessions
        assert [s.tier for s in chain.sessions] == [1, 2, 2]
        assert [s.status for s in (looked, cut, mended)] == [
            SessionStatus.COMPLETED,
            SessionStatus.INTERRUPTED,
            SessionStatus.COMPLETED,
        ]
        assert (cut.continuity, cut.reason) == (ContinuityKind.RESUME, Reason.NEXT_TIER)
        assert (mended.continuity, mended.reason) == (ContinuityKind.RESUME, Reason.INTERRUPTED)
        assert mended.resumed_from == cut.session_id
        told = newest_user_text(next(c.body for c in api.calls if c.session_id == mended.session_id and not c.side))
        assert "nobody knows how it ended" in told

        assert (place.work / "ran").read_text().split() == COMMANDS
        with place.store() as store:
            calls = [call for session in chain.sessions for call in store.calls(session.id)]
        asked = [call for call in calls if call.tool == "Bash"]
        assert [call.verdict for call in asked] == [Verdict.ALLOW] * len(COMMANDS)
        assert len({call.tool_use_id for call in asked}) == len(COMMANDS)

        assert (looked.cost_basis, cut.cost_basis) == (CostBasis.REPORTED, CostBasis.ESTIMATED)
        for session in chain.sessions:
            assert session.cost_usd == pytest.approx(owed(place, api, session.session_id), abs=1e-9), session
            assert session.tokens == sum(api.account(session.session_id).values(), start=Tokens())
