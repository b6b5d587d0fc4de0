"""Kill a supervisor, let the next ones settle what it left, and say what does not add up. Starts processes.

Used by ``kill_loop`` and its test. A round is one place: ``kill_at_commit`` or ``kill_at_instant`` ends a supervisor in
it, ``settle`` runs cycles until nothing is left to do, ``discrepancies`` compares the records with what the stand-in
itself kept of what it did and said.
"""

import contextlib
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cycles import Place, until
from standin_cli import MESSAGE_USD, STEPS

from supervisor.decide.lifecycle import CYCLE_MOVES, CYCLE_STARTS, SESSION_MOVES, SESSION_STARTS
from supervisor.model.cycle import Chain, CycleStatus, EventKind
from supervisor.model.history import Transition
from supervisor.model.session import UNFINISHED, ContinuityKind, CostBasis
from supervisor.store import Store
from supervisor.store.records import CostBy

_SETTLING = 6
_NEXT_TO_NOTHING = 1e-9
_WAITING_OR_RUNNING = frozenset({CycleStatus.RUNNING, CycleStatus.PAUSED})

# A change of a status has its entry in the history.
MOVES = "INSERT INTO transitions"
# The process ends itself at its n-th commit with such a statement: just before it, or when it is made and nobody knows.
_DEADLY = """
import itertools, os, signal
from contextlib import contextmanager
from sqlalchemy import Engine, event
from supervisor.store.engine import Database
writing, numbers = Database.writing, itertools.count(1)
@event.listens_for(Engine, "before_cursor_execute")
def note(connection, cursor, statement, *rest):
    if statement.startswith({of!r}):
        connection.info["fits"] = True
@contextmanager
def deadly(self):
    with writing(self) as connection:
        connection.info["fits"] = False
        yield connection
        last = connection.info["fits"] and next(numbers) == {number}
        if last and {before}:
            os.kill(os.getpid(), signal.SIGKILL)
    if last:
        os.kill(os.getpid(), signal.SIGKILL)
Database.writing = deadly
"""


def standin_program(root: Path) -> Path:
    """The stand-in as a program of its own, which does what ``STANDIN`` says."""
    program = root / "standin"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {Path(__file__).parent / "standin_cli.py"} "$@"\n')
    program.chmod(0o755)
    return program


def new_place(root: Path, standin: Path, probe: Path | None = None) -> Place:
    """A place where two tiers climb, with calls that must not be made twice. ``probe`` spares it a look at the CLI."""
    root.mkdir(parents=True)
    place = Place(root, standin, ways="climbs mends")
    if probe is not None:
        (place.state / probe.name).write_bytes(probe.read_bytes())
    return place


def kill_at_commit(place: Place, number: int, *arguments: str, before: bool, of: str = "") -> bool:
    """Run a cycle that is killed at its n-th commit of a statement that begins so; whether it came that far."""
    prelude = _DEADLY.format(number=number, before=before, of=of)
    done = place.cycle("--json", *arguments, prelude=prelude)
    assert done.exit_code in (0, -signal.SIGKILL), done.err
    return done.exit_code != 0


def kill_at_instant(place: Place, seconds: float, *arguments: str) -> bool:
    """Run a cycle that is killed after so many seconds; whether it still ran then."""
    started = place.start("--json", *arguments)
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.process.wait(seconds)
    started.process.kill()
    return started.done().exit_code == -signal.SIGKILL


def settle(place: Place) -> None:
    """Run cycles as a timer would, until none waits. Bounded: work that never settles is a finding."""
    for _ in range(_SETTLING):
        done = place.cycle("--json")
        assert "Traceback" not in done.err, done.err
        if not [c for c in place.chains() if c.cycle.status in _WAITING_OR_RUNNING]:
            return


def discrepancies(place: Place) -> list[str]:
    """Everything that does not add up in a place where the work is settled; nothing, when all is well."""
    chains = place.chains()
    with place.store() as store:
        return [
            *_left_behind(place, chains),
            *_unaccounted(place, chains),
            *_done_twice_or_never(place, store, chains),
            *_ledger(store, chains),
            *(problem for chain in chains for problem in _broken_history(store, chain)),
        ]


def _left_behind(place: Place, chains: Iterable[Chain]) -> Iterator[str]:
    try:
        until(lambda: not place.processes(), what="no process is left")
    except AssertionError:
        yield f"processes are left: {place.processes()}"
    if place.files_left():
        yield f"files are left: {place.files_left()}"
    for chain in chains:
        if chain.cycle.status not in (CycleStatus.RESOLVED, CycleStatus.HEALTHY):
            yield f"cycle {chain.cycle.id} is {chain.cycle.status} ({chain.cycle.reason}: {chain.cycle.detail})"
        for session in chain.sessions:
            if session.status in UNFINISHED:
                yield f"record {session.id} is {session.status}"


def _unaccounted(place: Place, chains: Iterable[Chain]) -> Iterator[str]:
    """Runs without a record, and costs that are not what the stand-in said."""
    sessions = {s.session_id: s for chain in chains for s in chain.sessions}
    said = Counter(entry["session"] for entry in entries(place, "said.jsonl"))
    for session_id in said.keys() - sessions.keys():
        yield f"the run {session_id} has no record"
    for session_id, session in sessions.items():
        owed = said[session_id] * MESSAGE_USD
        paid = session.cost_usd or 0.0
        # The supervisor may have died before it read the last word, which is then nobody's to know.
        unheard = MESSAGE_USD if session.cost_basis is not CostBasis.REPORTED else 0.0
        if not owed - unheard - _NEXT_TO_NOTHING <= paid <= owed + _NEXT_TO_NOTHING:
            yield f"record {session.id} ({session.status}) cost {paid:.5f}, and said {owed:.5f}"


def _done_twice_or_never(place: Place, store: Store, chains: Iterable[Chain]) -> Iterator[str]:
    owners = {s.session_id: s.cycle_id for chain in chains for s in chain.sessions}
    ran = Counter((owners.get(entry["session"]), entry["step"]) for entry in entries(place, "ran.jsonl"))
    for (cycle, step), times in ran.items():
        if times > 1:
            yield f"{step} of cycle {cycle} ran {times} times"
    for chain in chains:
        if chain.sessions and chain.sessions[0].continuity is not ContinuityKind.FRESH:
            # It knows of the cycle before.
            continue
        told = "".join(e.text for e in store.events(cycle_id=chain.cycle.id) if e.kind is EventKind.PROMPT)
        for tier in {s.tier for s in chain.sessions}:
            for step in (f"step-{tier}-{number}" for number in range(1, STEPS + 1)):
                if not ran[chain.cycle.id, step] and step not in told:
                    yield f"{step} of cycle {chain.cycle.id} never ran, and nobody was told that it might have"


def _ledger(store: Store, chains: Iterable[Chain]) -> Iterator[str]:
    kept = sum(row.cost_usd or 0.0 for row in store.cost(None, CostBy.TIER))
    recorded = sum(chain.cost_usd or 0.0 for chain in chains)
    if abs(kept - recorded) > _NEXT_TO_NOTHING:
        yield f"the ledger has {kept:.5f}, the records have {recorded:.5f}"


def _broken_history(store: Store, chain: Chain) -> Iterator[str]:
    """Moves that the table does not know, and histories that do not end where their record is."""
    history = store.history(cycle_id=chain.cycle.id)
    own = [move for move in history if move.session_id is None]
    yield from _broken(own, CYCLE_MOVES, CYCLE_STARTS, chain.cycle.status, f"cycle {chain.cycle.id}")
    for session in chain.sessions:
        moves = [move for move in history if move.session_id == session.id]
        yield from _broken(moves, SESSION_MOVES, SESSION_STARTS, session.status, f"record {session.id}")


def _broken(moves: list[Transition], table: Any, starts: Any, status: str, name: str) -> Iterator[str]:
    at: str | None = None
    for move in moves:
        allowed = starts if at is None else table[at]
        if move.from_status != at or move.to_status not in allowed:
            yield f"{name} was {at} and went from {move.from_status} to {move.to_status}"
        at = move.to_status
    if at != status:
        yield f"the history of {name} ends as {at}, and it is {status}"


def entries(place: Place, file: str) -> list[dict[str, Any]]:
    """What the stand-in logged, each line whole: it is written at once."""
    path = place.work / file
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
