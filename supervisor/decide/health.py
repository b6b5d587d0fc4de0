"""Decide what a cycle says of each service. Pure. Called from climb.health.

A service that a lower tier found in trouble and a higher one put right is well now, but its cycle was not a healthy
one: two of those would end the cooldowns of a service that is being restarted all the time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from supervisor.model.report import Health, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How a cycle left a service, and whether none of its tiers had found it in trouble."""

    status: Health
    well_throughout: bool


def found_in(reports: Iterable[Report]) -> dict[str, Found]:
    """By name: the last word of a cycle's reports, oldest first, on every service that any of them names."""
    found: dict[str, Found] = {}
    for report in reports:
        for service in report.services:
            name = service.name.lower()
            before = found.get(name)
            well = service.status is Health.HEALTHY and (before is None or before.well_throughout)
            found[name] = Found(status=service.status, well_throughout=well)
    return found
