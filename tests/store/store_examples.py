"""Records to put into a store under test. No I/O of its own."""

from datetime import UTC, datetime, timedelta

from supervisor.model.cycle import Cycle, EventKind, NewEvent, Trigger
from supervisor.model.session import ContinuityKind, Reason, Session, SessionStatus
from supervisor.store import NewSession, Owner, SessionEnd, Store
from supervisor.store.tallies import TallyName

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
OWNER = Owner(host="ops1", pid=4242, started=1772366400.25)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def begin(store: Store, schedule: str = "default", **fields: object) -> Cycle:
    given = {"trigger": Trigger.MANUAL, "dry_run": False, "owner": OWNER, "now": NOON} | fields
    return store.begin_cycle(schedule=schedule, **given)


def new_session(cycle: Cycle, parent: Session | None = None, **fields: object) -> NewSession:
    given = {
        "tier": 1,
        "model": "haiku",
        "session_id": "4f9c9a2e-0000-4000-8000-000000000001",
        "continuity": ContinuityKind.FRESH if parent is None else ContinuityKind.RESUME,
        "reason": Reason.FIRST_TIER if parent is None else Reason.NEXT_TIER,
        "work_dir": "/srv/ops",
        "runtime_id": "ops1:2.1.325",
        "created_at": NOON,
    } | fields
    return NewSession(cycle_id=cycle.id, parent_session_id=None if parent is None else parent.id, **given)


def add_session(store: Store, cycle: Cycle, parent: Session | None = None, **fields: object) -> Session:
    return store.create_session(new_session(cycle, parent, **fields))


def end(store: Store, session: Session, status: SessionStatus = SessionStatus.COMPLETED, **fields: object) -> Session:
    """Let a session end, which has to run first."""
    given = {"ended_at": NOON} | fields
    if store.session(session.id).status is SessionStatus.CREATED:
        store.activate_session(session.id, pid=1, pid_started=1.0, now=given["ended_at"])
    return store.finish_session(session.id, SessionEnd(status=status, **given))


def text_event(text: str, **fields: object) -> NewEvent:
    return NewEvent(kind=EventKind.TEXT, at=NOON, text=text, **fields)


def tallied(store: Store, name: TallyName) -> dict[tuple[str, ...], float]:
    """A tally's values by the values of its labels, in the order of the labels' names."""
    return {tuple(t.labels[label] for label in sorted(t.labels)): t.value for t in store.tallies() if t.name is name}
