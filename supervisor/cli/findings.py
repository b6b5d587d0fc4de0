"""What `opsladder doctor` found out, one thing at a time. No I/O. Used by ``doctor`` and ``doctor_guard``."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from supervisor.errors import OpsladderError


class Grade(StrEnum):
    """How a finding weighs."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    check: str
    grade: Grade
    detail: str
    remedy: str | None = None


def attempt(check: str, look: Callable[[], Finding]) -> Finding:
    """What ``look`` finds; that it could not look is a problem too."""
    try:
        return look()
    except OpsladderError as error:
        return problem(check, error)


def ok(check: str, detail: str) -> Finding:
    return Finding(check=check, grade=Grade.OK, detail=detail)


def problem(check: str, error: OpsladderError) -> Finding:
    return Finding(check=check, grade=Grade.PROBLEM, detail=error.message, remedy=error.remedy)
