"""A sweep loses nothing: what leaves the store is in an archive, whatever happens meanwhile, and totals stay."""

import datetime as dt
import gzip
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.climb.archive_file import archive_path
from supervisor.climb.files import handoff_dir, stream_path
from supervisor.climb.sweep import SweepSummary, sweep
from supervisor.errors import NotFound, OpsladderError
from supervisor.model.cycle import CycleStatus, EventKind, NewEvent
from supervisor.model.delivery import DeliveryStatus
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.report import Level
from supervisor.model.session import CostBasis, Session, SessionStatus
from supervisor.settings import Settings, load_settings
from supervisor.store import CostBy, Store, open_store, upgrade
from tests.postgres import ON_POSTGRES, Postgres, running_postgres
from tests.store.store_examples import NOON, add_session, begin, end, text_event

DAY = dt.timedelta(days=1)
ALLOWED = Decision(verdict=Verdict.ALLOW, rule="r", sentence="s")
LONG_AGO = NOON - 400 * DAY
A_WHILE_AGO = NOON - 40 * DAY


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=ON_POSTGRES)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        found = f"sqlite:///{tmp_path}/state/opsladder.db"
    else:
        server: Postgres = request.getfixturevalue("postgres")
        found = server.new_database()
    upgrade(found)
    return found


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def in_sqlite(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/state/opsladder.db") as opened:
        yield opened


def settings_at(directory: Path, url: str | None = None, **more: str) -> Settings:
    (directory / "state").mkdir(mode=0o700, exist_ok=True)
    environ = {"HOME": str(directory / "home"), "OPSLADDER_STATE__DIR": str(directory / "state"), **more}
    if url is not None:
        environ["OPSLADDER_STATE__DATABASE_URL"] = url
    return load_settings(None, environ, cwd=directory)


def ran(store: Store, at: dt.datetime, *, number: int = 1, words: int = 3, parent: Session | None = None) -> Session:
    """The session of a cycle that began and ended then, with messages."""
    cycle = begin(store, now=at)
    session = add_session(store, cycle, parent, created_at=at, session_id=f"4f9c9a2e-0000-4000-8000-{number:012}")
    store.append_events(cycle.id, [text_event(f"word {n} of {number}", session_id=session.id) for n in range(words)])
    call = ToolCall(tool_use_id="toolu_1", tool="Bash", input={"command": "true"})
    store.record_call(session=session.id, cycle=cycle.id, call=call, text="true", decision=ALLOWED, now=at)
    end(store, session, ended_at=at, cost_usd=0.25, cost_basis=CostBasis.REPORTED)
    store.finish_cycle(cycle.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=at)
    return store.session(session.id)


def transcript(home: Path, session: Session, project: str = "-srv-ops") -> Path:
    file = home / ".claude" / "projects" / project / f"{session.session_id}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{"said": "transcript of {session.session_id} in {project}"}}\n')
    return file


def lines(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def archived_texts(path: Path) -> list[str]:
    return [line["row"]["text"] for line in lines(path) if line.get("table") == "events"]


def private(path: Path) -> bool:
    return stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_messages_past_their_time_move_into_one_private_file_per_cycle(tmp_path: Path, url: str, store: Store) -> None:
    old, older, young = ran(store, A_WHILE_AGO), ran(store, A_WHILE_AGO - DAY, number=2), ran(store, NOON - 3 * DAY)
    settings = settings_at(tmp_path, url)

    done = sweep(settings, store, now=NOON)

    assert (done.archived_cycles, done.pruned_cycles) == (2, 0)
    for number, session in ((1, old), (2, older)):
        cycle = store.cycle(session.cycle_id)
        path = archive_path(tmp_path / "state", cycle)
        assert path == tmp_path / "state" / "archive" / f"{cycle.started_at:%Y-%m}" / f"cycle-{cycle.id}.jsonl.gz"
        assert archived_texts(path) == [f"word {n} of {number}" for n in range(3)]
        header, *rows, seal = lines(path)
        assert (header["schema"], header["cycle"]) == ("opsladder.archive/1", cycle.id)
        assert seal["rows"] == len(rows)
        assert {row["table"] for row in rows} >= {"cycles", "sessions", "transitions", "tool_calls", "events"}
        assert all(private(part) for part in (path, path.parent, path.parent.parent))
        assert cycle.archived_at == NOON
        assert store.events(cycle_id=cycle.id) == []
        assert store.calls(session.id) == []
    assert len(store.events(cycle_id=young.cycle_id)) == 3
    assert sweep(settings, store, now=NOON) == SweepSummary()


def test_records_past_their_time_go_with_an_archive_of_all_and_totals_stay(
    tmp_path: Path, url: str, store: Store
) -> None:
    gone = ran(store, LONG_AGO)
    child = ran(store, A_WHILE_AGO, number=2, parent=gone)
    before = store.tallies(), {by: store.cost(None, by) for by in CostBy}
    path = archive_path(tmp_path / "state", store.cycle(gone.cycle_id))

    done = sweep(settings_at(tmp_path, url), store, now=NOON)

    assert (done.archived_cycles, done.pruned_cycles) == (2, 1)
    with pytest.raises(NotFound):
        store.cycle(gone.cycle_id)
    assert archived_texts(path) == [f"word {n} of 1" for n in range(3)]
    assert store.session(child.id).parent_session_id is None
    assert (store.tallies(), {by: store.cost(None, by) for by in CostBy}) == before
    assert store.spent_since(A_WHILE_AGO) == 0.25


def test_a_cycle_that_was_archived_is_pruned_without_another_archive(tmp_path: Path, in_sqlite: Store) -> None:
    ran(in_sqlite, LONG_AGO)
    ran(in_sqlite, NOON - DAY, number=2)
    settings = settings_at(tmp_path)
    assert sweep(settings, in_sqlite, now=LONG_AGO + 40 * DAY).archived_cycles == 1
    assert sweep(settings, in_sqlite, now=NOON) == SweepSummary(pruned_cycles=1)


def test_a_message_that_came_after_the_archive_is_in_it_before_the_cycle_goes(tmp_path: Path, in_sqlite: Store) -> None:
    session = ran(in_sqlite, LONG_AGO)
    settings = settings_at(tmp_path)
    newest = ran(in_sqlite, NOON - DAY, number=2)
    path = archive_path(tmp_path / "state", in_sqlite.cycle(session.cycle_id))
    sweep(settings, in_sqlite, now=LONG_AGO + 40 * DAY)
    in_sqlite.append_events(session.cycle_id, [text_event("late", session_id=session.id)])

    sweep(settings, in_sqlite, now=NOON)

    assert sorted(archived_texts(path)) == ["late", *(f"word {n} of 1" for n in range(3))]
    assert [chain.cycle.id for chain in in_sqlite.chains(9)] == [newest.cycle_id]


def test_transcripts_of_recorded_sessions_move_beside_the_archive(tmp_path: Path, in_sqlite: Store) -> None:
    old, young = ran(in_sqlite, A_WHILE_AGO), ran(in_sqlite, NOON - DAY, number=2)
    home = tmp_path / "home"
    kept, strange = transcript(home, young), home / ".claude" / "projects" / "-srv-ops" / "not-ours.jsonl"
    moved = [transcript(home, old), transcript(home, old, project="-srv-elsewhere")]
    strange.write_text("{}\n")
    contents = sorted(file.read_bytes() for file in moved)

    sweep(settings_at(tmp_path), in_sqlite, now=NOON)

    assert [file.exists() for file in (*moved, kept, strange)] == [False, False, True, True]
    place = archive_path(tmp_path / "state", in_sqlite.cycle(old.cycle_id)).parent
    packed = sorted(place.glob("*.transcript.gz"))
    assert sorted(gzip.decompress(file.read_bytes()) for file in packed) == contents
    assert all(private(file) for file in packed)


def test_a_cycle_that_waits_or_runs_is_left_alone(tmp_path: Path, in_sqlite: Store) -> None:
    for schedule, status in (("runs", None), ("waits", CycleStatus.PAUSED)):
        cycle = begin(in_sqlite, schedule, now=LONG_AGO)
        in_sqlite.append_events(cycle.id, [text_event("said")])
        if status is not None:
            in_sqlite.finish_cycle(cycle.id, status=status, reason=None, detail=None, now=LONG_AGO)
    assert sweep(settings_at(tmp_path), in_sqlite, now=NOON) == SweepSummary()


@pytest.mark.parametrize(("repeat_minutes", "forgotten"), [("60", 1), ("10080", 0)])
def test_what_was_told_is_forgotten_when_it_may_be_told_again(
    tmp_path: Path, in_sqlite: Store, repeat_minutes: str, forgotten: int
) -> None:
    cycle = begin(in_sqlite, now=NOON)
    told = NewEvent(kind=EventKind.NOTICE, at=NOON, level=Level.CRITICAL, text="It is down.")
    in_sqlite.append_events(cycle.id, [told])
    none = dt.timedelta()
    in_sqlite.collect_notices(NOON, levels=[Level.CRITICAL], repeat=none, group=none)
    [sent] = in_sqlite.claim_deliveries(in_sqlite.waiting_deliveries(NOON), until=NOON)
    in_sqlite.settle_delivery(sent, status=DeliveryStatus.SENT, next_try_at=NOON, sent_at=NOON)
    settings = settings_at(
        tmp_path, OPSLADDER_RETENTION__RECORDS_DAYS="2", OPSLADDER_NOTIFY__REPEAT_MINUTES=repeat_minutes
    )

    assert sweep(settings, in_sqlite, now=NOON + dt.timedelta(days=1)).pruned_deliveries == 0
    assert sweep(settings, in_sqlite, now=NOON + dt.timedelta(days=3)).pruned_deliveries == forgotten
    assert len(in_sqlite.deliveries(5)) == 1 - forgotten


def test_idle_sessions_and_overdue_questions_expire(tmp_path: Path, in_sqlite: Store) -> None:
    for number in range(120):
        cycle = begin(in_sqlite, f"schedule-{number}", now=NOON)
        end(in_sqlite, add_session(in_sqlite, cycle), SessionStatus.INTERRUPTED)
        in_sqlite.finish_cycle(cycle.id, status=CycleStatus.STOPPED, reason=None, detail=None, now=NOON)
    settings = settings_at(tmp_path, OPSLADDER_CONTINUITY__IDLE_TIMEOUT_MINUTES="10")
    told: list[SweepSummary] = []

    assert sweep(settings, in_sqlite, now=NOON + dt.timedelta(minutes=9)).expired == 0
    assert sweep(settings, in_sqlite, now=NOON + dt.timedelta(minutes=11), tell=told.append).expired == 120
    assert [done.expired for done in told][-3:] == [50, 100, 120]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("OPSLADDER_RETENTION__MESSAGES_MB", {"archived_cycles": 3}),
        ("OPSLADDER_RETENTION__RECORDS_MB", {"pruned_cycles": 5}),
    ],
    ids=["messages", "records"],
)
def test_above_a_size_the_oldest_go_first_until_it_is_enough(
    tmp_path: Path, url: str, store: Store, limit: str, expected: dict[str, int]
) -> None:
    for number in range(6):
        ran(store, NOON - (10 - number) * DAY, number=number, words=50)
    ran(store, NOON - DAY / 2, number=7, words=500)
    # Each of the six counts for 10,900 of messages and for 1,200 of records, the last one for 107,000 and as much.
    megabytes = {"archived_cycles": "0.145", "pruned_cycles": "0.003"}[next(iter(expected))]

    done = sweep(settings_at(tmp_path, url, **{limit: megabytes}), store, now=NOON)

    assert {name: getattr(done, name) for name in expected} == expected
    left = [chain.cycle for chain in store.chains(10)]
    assert [cycle.id for cycle in left if cycle.archived_at is None] == (
        [7, 6, 5, 4] if "archived_cycles" in expected else [7, 6]
    )
    assert sweep(settings_at(tmp_path, url, **{limit: megabytes}), store, now=NOON) == SweepSummary()


def test_what_ended_within_a_day_stays_whatever_its_size(tmp_path: Path, in_sqlite: Store) -> None:
    ran(in_sqlite, NOON - DAY / 2)
    tiny = {f"OPSLADDER_RETENTION__{kind}_MB": "0.000001" for kind in ("MESSAGES", "RECORDS", "ARCHIVES")}
    assert sweep(settings_at(tmp_path, **tiny), in_sqlite, now=NOON) == SweepSummary()
    assert in_sqlite.spent_since(NOON.replace(hour=0)) == 0.25


def test_archives_go_by_age_and_by_size(tmp_path: Path, in_sqlite: Store) -> None:
    place = tmp_path / "state" / "archive"
    files = []
    for days in (500, 300, 200, 100):
        at = NOON - days * DAY
        file = place / f"{at:%Y-%m}" / f"cycle-{days}.jsonl.gz"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * 1000)
        os.utime(file, (at.timestamp(), at.timestamp()))
        files.append(file)

    assert sweep(settings_at(tmp_path), in_sqlite, now=NOON) == SweepSummary(removed_archives=1)
    assert [file.exists() for file in files] == [False, True, True, True]
    assert not files[0].parent.exists()
    limited = settings_at(tmp_path, OPSLADDER_RETENTION__ARCHIVES_MB="0.0021")
    assert sweep(limited, in_sqlite, now=NOON) == SweepSummary(removed_archives=1)
    assert [file.exists() for file in files] == [False, False, True, True]


def test_files_left_behind_go_and_others_stay(tmp_path: Path, in_sqlite: Store) -> None:
    state = tmp_path / "state"
    over, paused = ran(in_sqlite, NOON - DAY), begin(in_sqlite, now=NOON)
    waiting = add_session(in_sqlite, paused)
    in_sqlite.finish_cycle(paused.id, status=CycleStatus.PAUSED, reason=None, detail=None, now=NOON)
    running = add_session(in_sqlite, begin(in_sqlite, "other"))
    unsettled = add_session(in_sqlite, in_sqlite.cycle(over.cycle_id))
    month = state / "archive" / "2026-03"
    for directory in (stream_path(state, 1).parent, handoff_dir(state), month):
        directory.mkdir(parents=True)
    old = (NOON - 2 * DAY).timestamp()

    def made(path: Path, *, is_old: bool = False) -> Path:
        path.write_text("x")
        at = old if is_old else NOON.timestamp()
        os.utime(path, (at, at))
        return path

    go = [
        made(stream_path(state, over.id)),
        made(stream_path(state, 999), is_old=True),
        made(handoff_dir(state) / f"cycle-{over.cycle_id}-from-1-to-tier-2.json"),
        made(handoff_dir(state) / f".cycle-{over.cycle_id}-from-1-to-tier-2.json.abcd1234"),
        made(handoff_dir(state) / "cycle-999-from-1-to-tier-2.json", is_old=True),
        made(month / ".cycle-3.jsonl.gz.abcd1234", is_old=True),
        made(state / ".probe.json.abcd_234", is_old=True),
    ]
    stay = [
        made(stream_path(state, waiting.id), is_old=True),
        made(stream_path(state, running.id), is_old=True),
        made(stream_path(state, unsettled.id), is_old=True),
        made(stream_path(state, 998)),
        made(handoff_dir(state) / f"cycle-{running.cycle_id}-from-1-to-tier-2.json"),
        made(handoff_dir(state) / "cycle-998-from-1-to-tier-2.json"),
        made(state / ".probe.json.abcd_235"),
        made(state / ".gitignore", is_old=True),
        made(state / "probe.json", is_old=True),
    ]

    assert sweep(settings_at(tmp_path), in_sqlite, now=NOON) == SweepSummary(removed_files=len(go))
    assert [path for path in go if path.exists()] == []
    assert [path for path in stay if not path.exists()] == []


HOLD = """
import sys, fcntl, os
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_directory_that_belongs_to_another_user_is_named_with_what_to_do(
    tmp_path: Path, in_sqlite: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made by a sweep as root, for example. Those who run the tests may be root, whom nothing is refused."""
    settings = settings_at(tmp_path)
    month = settings.state.dir / "archive" / "2026-01"
    month.mkdir(parents=True)
    look = Path.iterdir

    def refuse(path: Path) -> Iterator[Path]:
        if path == month:
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(OpsladderError) as refused:
        sweep(settings, in_sqlite, now=NOON)

    assert refused.value.message == f"The sweep cannot go on: {month}: Permission denied."
    assert "owner" in (refused.value.remedy or "")


def test_while_one_sweep_is_under_way_another_does_nothing(tmp_path: Path, in_sqlite: Store) -> None:
    ran(in_sqlite, A_WHILE_AGO)
    settings = settings_at(tmp_path)
    command = [sys.executable, "-c", HOLD, str(tmp_path / "state" / "sweep.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert sweep(settings, in_sqlite, now=NOON) == SweepSummary(under_way=True)
        other.kill()
        other.wait()
    assert sweep(settings, in_sqlite, now=NOON).archived_cycles == 1


def test_a_sweep_that_has_to_end_does_so_after_the_next_cycle_and_another_goes_on(
    tmp_path: Path, in_sqlite: Store
) -> None:
    for number in range(3):
        ran(in_sqlite, A_WHILE_AGO, number=number)
    settings = settings_at(tmp_path)
    told: list[SweepSummary] = []

    done = sweep(
        settings, in_sqlite, now=NOON, tell=told.append, has_to_end=lambda: bool(told and told[-1].archived_cycles)
    )

    assert done.archived_cycles == 1
    assert sweep(settings, in_sqlite, now=NOON).archived_cycles == 2


def test_an_archive_that_cannot_be_written_costs_nothing(tmp_path: Path, in_sqlite: Store) -> None:
    session = ran(in_sqlite, A_WHILE_AGO)
    (tmp_path / "state").mkdir(exist_ok=True)
    (tmp_path / "state" / "archive").write_text("in the way")
    with pytest.raises(OpsladderError, match="Nothing was removed"):
        sweep(settings_at(tmp_path), in_sqlite, now=NOON)
    assert len(in_sqlite.events(cycle_id=session.cycle_id)) == 3


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def of_another_database(path: Path) -> None:
    text = "\n".join(json.dumps(line) for line in lines(path))
    path.write_bytes(gzip.compress(text.replace("default", "another").encode()))


@pytest.mark.parametrize("fault", [cut_in_half, of_another_database])
def test_an_archive_that_is_not_the_cycles_own_is_put_aside(
    tmp_path: Path, in_sqlite: Store, fault: Callable[[Path], None]
) -> None:
    session = ran(in_sqlite, A_WHILE_AGO)
    ran(in_sqlite, NOON - DAY, number=2)
    settings = settings_at(tmp_path)
    sweep(settings, in_sqlite, now=NOON)
    path = archive_path(tmp_path / "state", in_sqlite.cycle(session.cycle_id))
    fault(path)
    found = path.read_bytes()
    in_sqlite.append_events(session.cycle_id, [text_event("late", session_id=session.id)])

    sweep(settings, in_sqlite, now=NOON + 400 * DAY)

    assert archived_texts(path) == ["late"]
    assert path.with_name(f"{path.name}.aside-1").read_bytes() == found


# For each line of places and points, a process of its own sweeps and ends itself without warning before the so-manieth
# thing it changes: a commit, a rename, a removal, a new file. Says how that process ended.
KILLED = """
import os, signal, sys, datetime
from pathlib import Path
from sqlalchemy import Engine, event
from supervisor.climb.sweep import sweep
from supervisor.settings import load_settings
from supervisor.store import open_store

def sweep_until(directory, url, now, left):
    environ = {"HOME": f"{directory}/home", "OPSLADDER_STATE__DIR": f"{directory}/state",
               "OPSLADDER_STATE__DATABASE_URL": url}
    settings = load_settings(None, environ, cwd=Path(directory))

    def step():
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def committed(connection):
        if connection.get_execution_options().get("opsladder_writes"):
            step()

    def audit(name, _):
        if name in {"os.rename", "os.remove", "os.mkdir", "tempfile.mkstemp"}:
            step()

    with open_store(url) as store:
        event.listen(Engine, "commit", committed)
        sys.addaudithook(audit)
        sweep(settings, store, now=datetime.datetime.fromisoformat(now))

for line in sys.stdin:
    directory, url, now, point = line.split()
    child = os.fork()
    if not child:
        sweep_until(directory, url, now, int(point))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def killed() -> Iterator[Callable[[Path, str, int], int]]:
    """``killed(directory, url, point)``: sweep there until that point, and say how the process ended."""
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as helper:
        assert helper.stdin is not None
        assert helper.stdout is not None

        def until(directory: Path, url: str, point: int) -> int:
            print(directory, url, NOON.isoformat(), point, file=helper.stdin, flush=True)
            return int(helper.stdout.readline())

        yield until
        helper.stdin.close()


def everything_said(directory: Path, store: Store) -> set[str]:
    """Every text there is, in the store or in an archive; of the transcripts, too."""
    found = {event.text for chain in store.chains(100) for event in store.events(cycle_id=chain.cycle.id)}
    for path in (directory / "state" / "archive").glob("*/cycle-*.jsonl.gz"):
        found.update(archived_texts(path))
    for packed in (directory / "state" / "archive").glob("*/cycle-*.transcript.gz"):
        found.add(gzip.decompress(packed.read_bytes()).decode())
    found.update(file.read_text() for file in (directory / "home").glob(".claude/projects/*/*.jsonl"))
    return found


def test_a_sweep_that_is_killed_anywhere_loses_nothing_and_the_next_completes_it(
    tmp_path: Path, killed: Callable[[Path, str, int], int]
) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    with open_store(f"sqlite:///{origin}/state/opsladder.db") as store:
        gone = ran(store, LONG_AGO, words=250)
        old = ran(store, A_WHILE_AGO, number=2, parent=gone)
        for session in (gone, old):
            transcript(origin / "home", session)
        said, costs = everything_said(origin, store), store.cost(None, CostBy.DAY)
    assert len(said) == 250 + 3 + 2
    # Every other point: the next sweep goes through all that follow.
    for point in range(1, 100, 5):
        place = tmp_path / f"killed-{point}"
        shutil.copytree(origin, place)
        url = f"sqlite:///{place}/state/opsladder.db"
        ended = killed(place, url, point)
        with open_store(url) as store:
            assert everything_said(place, store) == said, f"killed at point {point}"
            sweep(settings_at(place), store, now=NOON)
            assert everything_said(place, store) == said, f"after point {point}"
            assert [chain.cycle.id for chain in store.chains(9)] == [old.cycle_id]
            assert not store.has_messages(old.cycle_id)
            assert store.cost(None, CostBy.DAY) == costs
        shutil.rmtree(place)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert ended == 0
    assert point > 15, "the points were not reached"
