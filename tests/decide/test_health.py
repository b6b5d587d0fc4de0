"""What a cycle says of its services: the last word, of all tiers, and whether all was well from the beginning."""

import pytest

from supervisor.decide.health import Found, found_in
from supervisor.model.report import Health, Report, ServiceState

GOOD, BAD, SLOW = Health.HEALTHY, Health.DOWN, Health.DEGRADED


def report(**services: Health) -> Report:
    states = tuple(ServiceState(name=name, status=status) for name, status in services.items())
    return Report(summary="", escalation_needed=False, services=states)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([], {}, id="nobody reported"),
        pytest.param([report(web=GOOD)], {"web": (GOOD, True)}, id="well"),
        pytest.param([report(web=BAD)], {"web": (BAD, False)}, id="down"),
        pytest.param([report(web=BAD), report(web=GOOD)], {"web": (GOOD, False)}, id="put right"),
        pytest.param([report(web=GOOD), report(web=SLOW)], {"web": (SLOW, False)}, id="a closer look"),
        pytest.param([report(web=GOOD), report(web=BAD), report(web=GOOD)], {"web": (GOOD, False)}, id="for a while"),
        pytest.param([report(web=GOOD), report(web=GOOD)], {"web": (GOOD, True)}, id="well twice"),
        pytest.param(
            [report(web=BAD, db=GOOD, cache=SLOW), report(web=GOOD)],
            {"web": (GOOD, False), "db": (GOOD, True), "cache": (SLOW, False)},
            id="only a lower tier named them",
        ),
        pytest.param([report(Web=BAD), report(web=GOOD)], {"web": (GOOD, False)}, id="written otherwise"),
        pytest.param([report(Web=BAD, web=GOOD)], {"web": (GOOD, False)}, id="both in one report"),
    ],
)
def test_the_last_word_counts_and_so_does_every_trouble(
    reports: list[Report], expected: dict[str, tuple[Health, bool]]
) -> None:
    assert found_in(reports) == {
        name: Found(status=status, well_throughout=well) for name, (status, well) in expected.items()
    }
