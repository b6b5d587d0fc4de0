"""A cycle as plain lines, for logs, cron mail and pipes. Prints to stdout. A watcher of ``climb``."""

from supervisor.cli import words
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


def say(progress: Progress) -> None:
    """Print what happened, one line each."""
    match progress:
        case CycleStarted(cycle=cycle):
            _line(f"cycle {cycle.id} of {cycle.schedule} started{' (dry run)' if cycle.dry_run else ''}")
        case TierDecided(step=step, model=model):
            _line(f"tier {step.tier} {model}: {step.continuity.kind.value} ({step.continuity.reason.value})")
        case TierActivity(session=session, doing=doing):
            _line(f"tier {session.tier} {session.model}: {words.one_line(doing, 160)}")
        case TierEnded(session=session):
            summary = session.report.summary if session.report else session.detail or "no report"
            _line(
                f"tier {session.tier} {session.model}: {session.status.value}, {words.session_cost(session)}, "
                f"{words.duration(session.duration_seconds)}, {words.context(session)}, record {session.id}: "
                f"{words.one_line(summary, 400)}"
            )
        case Notice(text=text):
            _line(f"A PERSON IS NEEDED: {text}")
        case CycleEnded(chain=chain, finish=finish):
            reason = f" ({finish.reason})" if finish.reason else ""
            _line(
                f"cycle {chain.cycle.id} {finish.status.value}{reason}, "
                f"{words.money(chain.cost_usd, exact=chain.cost_is_exact) if chain.sessions else 'nothing ran'}: "
                f"{words.one_line(finish.detail, 400)}"
            )
        case TierStarted():
            pass


def _line(text: str) -> None:
    print(text, flush=True)
