"""A cycle as plain lines, for logs, cron mail and pipes. Prints to stdout. A watcher of ``climb``."""

import logging
from typing import Final

from supervisor.cli import words
from supervisor.cli.reader import stop_writing
from supervisor.model.progress import (
    CycleEnded,
    CycleStarted,
    Notice,
    Progress,
    TierActivity,
    TierDecided,
    TierEnded,
    TierStarted,
)

logger = logging.getLogger(__name__)

# What a tier is said to do between a tool's result and its next word: worth a place in a picture, not a line in a log.
_NOTHING_YET: Final = "thinking"


class PlainLines:
    """Prints what happened, one line each, and nothing twice in a row."""

    def __init__(self) -> None:
        self._doing: tuple[int, str] | None = None

    def __call__(self, progress: Progress) -> None:
        match progress:
            case CycleStarted(cycle=cycle, goes_on=goes_on):
                dry = " (dry run)" if cycle.dry_run else ""
                _line(f"cycle {cycle.id} of {cycle.schedule} {'goes on' if goes_on else 'started'}{dry}")
            case TierDecided(step=step, model=model):
                _line(f"tier {step.tier} {model}: {step.continuity.kind.value} ({step.continuity.reason.value})")
            case TierActivity(session=session, doing=doing):
                if doing != _NOTHING_YET and self._doing != (session.id, doing):
                    self._doing = (session.id, doing)
                    _line(f"tier {session.tier} {session.model}: {words.one_line(doing, 160)}")
            case TierEnded(session=session):
                summary = session.report.summary if session.report else session.detail or "no report"
                _line(
                    f"tier {session.tier} {session.model}: {session.status.value}, {words.session_cost(session)}, "
                    f"{words.duration(session.duration_seconds)}, {words.context(session)}, record {session.id}: "
                    f"{words.one_line(summary, 400)}"
                )
            case Notice(text=text, needs_a_person=needed):
                _line(f"{'A PERSON IS NEEDED' if needed else 'WARNING'}: {words.one_line(text, 1_000)}")
            case CycleEnded(chain=chain, finish=finish, rehearsed=rehearsed):
                reason = f" ({finish.reason})" if finish.reason else ""
                cost = words.money(chain.cost_usd, exact=chain.cost_is_exact) if chain.sessions else "nothing ran"
                detail = words.one_line(finish.detail, 400)
                _line(f"cycle {chain.cycle.id} {finish.status.value}{reason}, {cost}: {detail}")
                way_on = words.way_on(chain.cycle)
                if way_on:
                    _line(f"a {words.REHEARSAL_ENDS}" if rehearsed else f"to go on: {way_on}")
            case TierStarted():
                pass


def _line(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        stop_writing()
    except OSError as error:
        # A cycle does not end in the middle of a repair because its output cannot be kept: the records are elsewhere.
        stop_writing()
        logger.warning("Standard output cannot be written", extra={"why": error.strerror})
