"""A real Prometheus scrapes `opsladder run` before, while and after it is killed in the middle of a chain."""

import signal
from pathlib import Path

import pytest
from cycles import Place, until
from test_service_daemon import OFTEN, configure, free_port, serving

from supervisor.model.cycle import Chain, CycleStatus
from tests.web.prometheus import Prometheus, eventually, running_prometheus

pytestmark = pytest.mark.xdist_group("prometheus")

NO_LONGER_DUE = '[[schedules]]\nname = "often"\n'
COST = "sum(opsladder_cost_usd_total)"
# How often any counter was found smaller than before, or gone and then begun anew.
GONE_BACK = 'sum(resets({__name__=~"opsladder_.+_total"}[1h]))'
ENDED = 'sum(opsladder_sessions_total{status!="active"})'


def ran(place: Place) -> list[Chain]:
    return [chain for chain in place.chains() if chain.cycle.status is not CycleStatus.SKIPPED]


def is_at_work_on_tier_2(place: Place) -> bool:
    return (place.work / "reached").exists() and [s.tier for s in ran(place)[0].sessions if s.messages] == [1, 2]


def spent(place: Place) -> float:
    """What the records say that every session has cost, whichever cycle it belongs to."""
    costs = [session.cost_usd for chain in place.chains() for session in chain.sessions]
    assert None not in costs
    return sum(cost for cost in costs if cost is not None)


def has_told(prometheus: Prometheus, expression: str, expected: float) -> bool:
    return prometheus.number(expression) == pytest.approx(expected, abs=1e-9)


def test_prometheus_knows_the_cost_of_a_chain_that_outlived_its_service_to_the_cent_and_counts_nothing_twice(
    tmp_path: Path, standin: Path
) -> None:
    place = Place(tmp_path, standin, ways="climbs busy")
    configure(place, OFTEN)
    port = free_port()
    home = tmp_path / "prometheus"
    home.mkdir()
    with running_prometheus(f"127.0.0.1:{port}", home) as prometheus:
        with serving(place, OPSLADDER_WEB__PORT=str(port)) as service:
            until(lambda: is_at_work_on_tier_2(place), what="tier 2 is at work")
            first = ran(place)[0].sessions[0].cost_usd
            assert first
            eventually(lambda: has_told(prometheus, COST, first))
            service.process.kill()
            service.done()
        eventually(lambda: prometheus.number("up") == 0)

        place.go_on()
        configure(place, NO_LONGER_DUE)
        with serving(place, OPSLADDER_WEB__PORT=str(port)) as service:
            until(lambda: ran(place)[0].cycle.status is CycleStatus.RESOLVED, what="the cycle has gone on")
            eventually(lambda: has_told(prometheus, 'opsladder_cycles_total{status="resolved"}', 1))
            cost, by_tier = (
                prometheus.number(COST),
                prometheus.values("sum by (tier) (opsladder_cost_usd_total)", "tier"),
            )
            sessions, gone_back = prometheus.number(ENDED), prometheus.number(GONE_BACK)
            service.process.send_signal(signal.SIGTERM)
            done = service.done()

    assert done.exit_code == 0, done.err
    chain = ran(place)[0]
    assert [(s.tier, s.status.value) for s in chain.sessions] == [
        (1, "completed"),
        (2, "interrupted"),
        (2, "completed"),
    ]
    assert f"{cost:.2f}" == f"{chain.cost_usd:.2f}" != "0.00"
    assert cost == pytest.approx(spent(place), abs=1e-9)
    for tier in (1, 2):
        assert by_tier[str(tier)] == pytest.approx(sum(s.cost_usd or 0.0 for s in chain.sessions if s.tier == tier))
    assert sessions == len(chain.sessions)
    assert gone_back == 0
    place.assert_nothing_left()
