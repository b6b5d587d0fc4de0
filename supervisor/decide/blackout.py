"""Windows of wall-clock time in which a schedule starts nothing. Pure. Used by decide.firing and settings.values.

Two forms: ``"02:00-03:00"`` is every day, ``"Sat 22:00-Sun 06:00"`` every week. Both may run over midnight, the second
also over the end of the week. The beginning belongs to a window, the end does not.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME: Final = r"([01][0-9]|2[0-3]):([0-5][0-9])"
_FORM: Final = rf"(?:([a-z]{{3}}) +)?{_TIME} *- *(?:([a-z]{{3}}) +)?{_TIME}"
_DAY: Final = 24 * 60
_WEEK: Final = 7 * _DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Blackout:
    """One window, in minutes from the beginning of a day or week (``period``)."""

    start: int
    end: int
    period: int

    def covers(self, wall: datetime) -> bool:
        """Whether a time on the wall lies in the window."""
        minute = (wall.weekday() * _DAY + wall.hour * 60 + wall.minute) % self.period
        return (minute - self.start) % self.period < (self.end - self.start) % self.period


def read_blackout(text: str) -> Blackout:
    """The window that a text names; ``ValueError`` with a sentence when it names none."""
    found = re.fullmatch(_FORM, text.strip(), re.IGNORECASE)
    if found is None or (found[1] is None) != (found[4] is None):
        raise ValueError('should be a window like "02:00-03:00" or "Sat 22:00-Sun 06:00"')
    day, hour, minute, last_day, last_hour, last_minute = found.groups()
    start = _day(day) * _DAY + int(hour) * 60 + int(minute)
    end = _day(last_day) * _DAY + int(last_hour) * 60 + int(last_minute)
    if start == end:
        raise ValueError("begins and ends at the same time, so it would be never or always")
    return Blackout(start=start, end=end, period=_DAY if day is None else _WEEK)


def _day(name: str | None) -> int:
    if name is None:
        return 0
    if name.lower() not in _DAYS:
        raise ValueError(f"has no day: {name} is none of Mon, Tue, Wed, Thu, Fri, Sat, Sun")
    return _DAYS.index(name.lower())
