"""Backups: whole and of one moment, or none; restored into either database exactly, or not at all."""

import gzip
import itertools
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import JSON, Boolean, Column, Connection, Float, Integer, insert, text

from supervisor.errors import Conflict, OpsladderError, SchemaOutdated, StoreError, UsageError
from supervisor.model.cycle import CycleStatus
from supervisor.store import HEAD, Store, check, open_store, upgrade
from supervisor.store.backup import columns, write_backup
from supervisor.store.backup_file import Header, Row, check_file, open_file, write_file
from supervisor.store.columns import AnyText, UtcDateTime
from supervisor.store.declared import declared_schema
from supervisor.store.mapping import cycle_of, event_values, new_session_values
from supervisor.store.restore import restore_backup
from supervisor.store.tables import CYCLES, EVENTS, SESSIONS
from tests.postgres import ON_POSTGRES, Postgres
from tests.store.backup_examples import counts, fill, held, odd, opened, row
from tests.store.store_examples import NOON, add_session, begin, new_session, text_event

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1024 * 1024


def quiet(_what: str, _rows: int) -> None:
    pass


def back_up(url: str, file: Path) -> Path:
    write_backup(url, file, now=NOON, tell=quiet)
    return file


def restore(url: str, file: Path) -> None:
    restore_backup(url, file, tell=quiet)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=ON_POSTGRES)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without a schema, of either kind, beside the one of ``url``."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/target/opsladder.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def twin(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of a database without a schema, of the same kind as that of ``url``."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/twin/opsladder.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup with a row in every table, from SQLite."""
    url = f"sqlite:///{tmp_path}/source/opsladder.db"
    upgrade(url)
    fill(url, 2)
    return back_up(url, tmp_path / "records.gz")


@pytest.fixture
def nowhere(tmp_path: Path) -> str:
    """The URL of a SQLite file that is not there."""
    return f"sqlite:///{tmp_path}/nowhere/opsladder.db"


def test_every_column_of_every_table_comes_back_as_it_was_whichever_databases(
    url: str, target: str, tmp_path: Path
) -> None:
    fill(url)

    written = write_backup(url, tmp_path / "records.gz", now=NOON, tell=quiet)
    restored = restore_backup(target, tmp_path / "records.gz", tell=quiet)

    assert set(written.rows.values()) == {6}
    assert held(target) == held(url)
    assert (written.rows, written.checksum, written.size) == (restored.rows, restored.checksum, restored.size)
    assert (written.revision, written.written_at) == (HEAD, "2026-03-01T12:00:00.123Z")
    assert check(target).ok


def test_there_and_back_again_a_backup_is_the_same_to_the_byte(url: str, target: str, tmp_path: Path) -> None:
    fill(url)
    first = back_up(url, tmp_path / "first.gz")
    restore(target, first)

    second = back_up(target, tmp_path / "second.gz")

    assert second.read_bytes() == first.read_bytes()


def test_null_of_json_and_null_of_sql_are_told_apart(url: str, target: str, tmp_path: Path) -> None:
    fill(url, 3)
    may_be_null = [(t, c) for t in declared_schema().sorted_tables for c in t.columns if c.nullable and _is_json(c)]
    with opened(url) as connection:
        for table, column in may_be_null:
            connection.execute(text(f"UPDATE {table.name} SET {column.name} = 'null' WHERE id = 3"))
            connection.execute(text(f"UPDATE {table.name} SET {column.name} = NULL WHERE id = 10"))

    restore(target, back_up(url, tmp_path / "records.gz"))

    assert may_be_null
    with opened(target) as connection:
        for table, column in may_be_null:
            nulls = text(f"SELECT id FROM {table.name} WHERE {column.name} IS NULL ORDER BY id")
            assert connection.execute(nulls).scalars().all() == [10]


def _is_json(column: Column[object]) -> bool:
    return isinstance(column.type, JSON)


def values(column: Column[object]) -> st.SearchStrategy[object]:
    """What the column could hold."""
    plain = st.text(max_size=20)
    some: st.SearchStrategy[object]
    match column.type:
        case AnyText():
            some = plain
        case UtcDateTime():
            some = st.datetimes(timezones=st.timezones(no_cache=True), allow_imaginary=False).filter(
                lambda at: 2 < at.year < 9998
            )
        case JSON():
            scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | plain
            some = st.dictionaries(
                plain, st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
            )
        case Boolean():
            some = st.booleans()
        case Integer():
            some = st.integers(-(2**31), 2**31 - 1)
        case Float():
            some = st.floats(allow_nan=False)
        case other:
            raise AssertionError(f"nothing is known of {other!r}")
    return some | st.none() if column.nullable else some


@given(data=st.data())
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
def test_any_values_at_all_come_back(
    data: st.DataObject, migrated_in_sqlite: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("any")
    source, restored = f"sqlite:///{place}/source.db", f"sqlite:///{place}/restored.db"
    for name in ("source.db", "restored.db"):
        shutil.copy(migrated_in_sqlite, place / name)
    with opened(source) as connection:
        for table, number in itertools.product(declared_schema().sorted_tables, range(2)):
            draw: Callable[[Column[object]], object] = lambda column: data.draw(values(column))  # noqa: E731
            connection.execute(insert(table), [row(connection, table, number, draw)])

    restore(restored, back_up(source, place / "records.gz"))

    assert held(restored) == held(source)


def test_new_records_are_numbered_after_the_restored_ones(store: Store, url: str, target: str, tmp_path: Path) -> None:
    for number in range(3):
        cycle = begin(store, f"schedule {number}")
        session = add_session(store, cycle)
        store.append_events(cycle.id, [text_event("said", session_id=session.id)])
    restore(target, back_up(url, tmp_path / "records.gz"))

    with open_store(target) as restored:
        later = begin(restored, "another")
        further = add_session(restored, later)
        restored.append_events(later.id, [text_event("said later", session_id=further.id)])
        events = restored.events(cycle_id=later.id)

    assert (later.id, further.id) == (cycle.id + 1, session.id + 1)
    assert [event.text for event in events] == ["said later"]


def test_what_ran_is_restored_as_running(store: Store, url: str, target: str, tmp_path: Path) -> None:
    cycle = begin(store)
    session = add_session(store, cycle)
    store.activate_session(session.id, pid=4242, pid_started=1.5, now=NOON)

    restore(target, back_up(url, tmp_path / "records.gz"))

    with open_store(target) as restored:
        assert restored.running_cycles() == store.running_cycles()
        assert restored.chain(cycle.id) == store.chain(cycle.id)


def test_a_database_without_records_can_be_backed_up_and_restored(url: str, target: str, tmp_path: Path) -> None:
    restore(target, back_up(url, tmp_path / "records.gz"))

    assert set(counts(target).values()) == {0}
    assert check(target).ok


def add_everywhere(connection: Connection, number: int) -> None:
    """A row in each of three tables."""
    facts = {"trigger": "manual", "status": "running", "dry_run": False, "started_at": NOON}
    added = insert(CYCLES).values(facts | {"schedule": f"schedule {number}"}).returning(CYCLES)
    cycle = cycle_of(connection.execute(added).mappings().one())
    connection.execute(insert(SESSIONS).values(new_session_values(new_session(cycle))))
    connection.execute(insert(EVENTS).values(event_values(cycle.id, text_event("said"))))


WRITER = """
import itertools, sys
from supervisor.store.engine import connect, locate
from tests.store.test_store_backup import add_everywhere
database = connect(locate(sys.argv[1]))
for number in itertools.count(1000):
    with database.writing() as connection:
        add_everywhere(connection, number)
    print(number, flush=True)
"""


@pytest.fixture
def writer(url: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that goes on writing, each time a row in each of three tables in one transaction."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_a_backup_is_of_one_moment_though_others_go_on_writing(
    url: str, twin: str, tmp_path: Path, writer: "subprocess.Popen[str]"
) -> None:
    assert writer.stdout is not None
    with opened(url) as connection:
        for number in range(350):
            add_everywhere(connection, number)
    heard = []

    def listen(what: str, _rows: int) -> None:
        if what == "written":
            # The first of the three tables is in the file by now, and the last is not.
            heard.extend(writer.stdout.readline() for _ in range(50))

    written = write_backup(url, tmp_path / "records.gz", now=NOON, tell=listen)
    restore(twin, tmp_path / "records.gz")

    assert all(heard)
    assert len(heard) >= 50
    assert len({written.rows[name] for name in ("cycles", "sessions", "events")}) == 1
    assert counts(url)["cycles"] > written.rows["cycles"] >= 350
    assert counts(twin) == written.rows


def test_a_backup_is_private_and_nothing_else_is_left_beside_it(backup: Path) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert sorted(path.name for path in backup.parent.iterdir()) == ["records.gz", "source"]


@pytest.mark.parametrize("there", ["a file", "a directory", "a link to nothing"])
def test_a_backup_never_takes_the_place_of_what_is_there(url: str, tmp_path: Path, there: str) -> None:
    file = tmp_path / "records.gz"
    match there:
        case "a file":
            file.write_text("mine")
        case "a directory":
            file.mkdir()
        case _:
            file.symlink_to("nothing")
    before = file.lstat()

    with pytest.raises(UsageError, match=r"records\.gz already exists\. Give another name"):
        back_up(url, file)

    assert file.lstat() == before


def test_a_file_that_appears_while_the_backup_is_written_stays(store: Store, url: str, tmp_path: Path) -> None:
    file = tmp_path / "backups" / "records.gz"
    file.parent.mkdir()
    cycle = begin(store)
    store.append_events(cycle.id, [text_event("x")] * 1000)

    with pytest.raises(UsageError, match="already exists"):
        write_backup(url, file, now=NOON, tell=lambda _what, _rows: file.write_text("mine") and None)

    assert file.read_text() == "mine"
    assert list(file.parent.iterdir()) == [file]


def test_an_interrupted_backup_leaves_nothing(store: Store, url: str, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    cycle = begin(store)
    store.append_events(cycle.id, [text_event("x")] * 1000)

    def interrupt(_what: str, _rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_backup(url, tmp_path / "backups" / "records.gz", now=NOON, tell=interrupt)

    assert list((tmp_path / "backups").iterdir()) == []
    store.finish_cycle(cycle.id, status=CycleStatus.HEALTHY, reason=None, detail=None, now=NOON)


def test_a_backup_into_a_directory_that_is_not_there_says_so(url: str, tmp_path: Path) -> None:
    with pytest.raises(OpsladderError, match=r"cannot be written: No such file or directory.*Check its directory"):
        back_up(url, tmp_path / "missing" / "records.gz")


def test_a_database_that_was_never_set_up_or_is_outdated_is_not_backed_up(empty_url: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaOutdated, match="has not been set up"):
        back_up(empty_url, tmp_path / "records.gz")

    assert not (tmp_path / "records.gz").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def add_noise(store: Store) -> None:
    """Some megabytes that no compression makes smaller."""
    cycle = begin(store)
    for _ in range(5):
        store.append_events(cycle.id, [text_event(os.urandom(MEGABYTE // 2).hex())])


def test_on_a_full_disk_nothing_of_a_backup_is_kept(store: Store, url: str, small_disk: Path) -> None:
    add_noise(store)

    with pytest.raises(OpsladderError, match=r"No space left on device\. Nothing of it is kept\.") as refused:
        back_up(url, small_disk / "records.gz")

    assert str(small_disk / "records.gz") in str(refused.value)
    assert list(small_disk.iterdir()) == []


def test_a_restore_onto_a_full_disk_restores_nothing(store: Store, url: str, tmp_path: Path, small_disk: Path) -> None:
    add_noise(store)
    file = back_up(url, tmp_path / "records.gz")
    target = f"sqlite:///{small_disk}/opsladder.db"

    with pytest.raises(StoreError, match=r"disk is full.*Free some space"):
        restore(target, file)

    assert set(counts(target).values()) == {0}


@pytest.mark.parametrize("table", [t.name for t in declared_schema().sorted_tables if not t.foreign_keys])
def test_a_database_that_holds_records_is_not_restored_into(backup: Path, nowhere: str, table: str) -> None:
    upgrade(nowhere)
    only = declared_schema().tables[table]
    with opened(nowhere) as connection:
        connection.execute(insert(only), [row(connection, only, 0, odd(0))])
    before = held(nowhere)

    with pytest.raises(Conflict, match=rf"already holds records \({table}\)"):
        restore(nowhere, backup)

    assert held(nowhere) == before


def test_an_outdated_database_with_records_is_not_even_migrated(backup: Path, own_url: str) -> None:
    fill(own_url, 1)
    with opened(own_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))

    with pytest.raises(Conflict, match="already holds records"):
        restore(own_url, backup)

    with opened(own_url) as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "0001"


def made_up(file: Path, rows: list[Row] | None = None, **header: object) -> Path:
    facts = {"revision": HEAD, "version": "9.8.7", "written_at": "2026-03-01T12:00:00.000Z", "columns": columns()}
    write_file(file, Header(**(facts | header)), rows or [], quiet)
    return file


def repacked(file: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the lines of a backup."""
    file.write_bytes(gzip.compress(b"".join(change(gzip.decompress(file.read_bytes()).splitlines(keepends=True)))))


WRONG = {
    "a text": (lambda file: file.write_text("these are not the records"), "is not a backup"),
    "nothing": (lambda file: file.write_bytes(b""), "is not a backup"),
    "another packed file": (lambda file: file.write_bytes(gzip.compress(b"x" * 3 * MEGABYTE)), "is not a backup"),
    "other JSON": (lambda file: file.write_bytes(gzip.compress(b"[1]\n")), "is not a backup"),
    "a directory": (lambda file: (file.unlink(), file.mkdir()), "cannot be read: Is a directory"),
    "no file": (lambda file: file.unlink(), "cannot be read: No such file"),
    "half of it": (lambda file: os.truncate(file, file.stat().st_size // 2), "is damaged: its end is missing"),
    "no seal": (lambda file: repacked(file, lambda lines: lines[:-1]), "is damaged: its end is missing"),
    "a row less": (lambda file: repacked(file, lambda lines: lines[:1] + lines[2:]), "is damaged: its checksum"),
    "a row twice": (lambda file: repacked(file, lambda lines: lines[:2] + lines[1:]), "is damaged: its checksum"),
    "rows in another order": (
        lambda file: repacked(file, lambda lines: [lines[0], lines[2], lines[1], *lines[3:]]),
        "is damaged: its checksum",
    ),
    "a changed word": (
        lambda file: repacked(file, lambda lines: [line.replace(b"plain", b"plane") for line in lines]),
        "is damaged: its checksum",
    ),
    "a row of no table": (
        lambda file: repacked(file, lambda lines: [lines[0], b'["users",[1]]\n', *lines[1:]]),
        "is damaged: a line is not a row",
    ),
    "a line that is no JSON": (lambda file: repacked(file, lambda lines: [lines[0], b"{\n"]), "a line is not JSON"),
    "more after its end": (lambda file: repacked(file, lambda lines: [*lines, b"more\n"]), "something follows its end"),
    "another kind": (
        lambda file: repacked(file, lambda lines: [lines[0].replace(b"backup/1", b"backup/2"), *lines[1:]]),
        r"another kind \(opsladder.backup/2\).*Restore it with that version",
    ),
    "an older schema": (
        lambda file: (file.unlink(), made_up(file, revision="0001")),
        rf"has schema 0001.*needs {HEAD}.*Restore it with opsladder 9\.8\.7, then run opsladder db upgrade",
    ),
    "a newer schema": (
        lambda file: (file.unlink(), made_up(file, revision="9999")),
        r"has schema 9999, made by a newer opsladder.*Upgrade opsladder to 9\.8\.7",
    ),
    "other tables": (
        lambda file: (file.unlink(), made_up(file, columns={"users": ["id"]})),
        "is damaged: its tables are not those",
    ),
}


@pytest.mark.parametrize(("spoil", "why"), WRONG.values(), ids=[name.replace(" ", "_") for name in WRONG])
def test_a_file_that_is_no_whole_backup_is_refused_before_anything_is_touched(
    backup: Path, nowhere: str, tmp_path: Path, spoil: Callable[[Path], object], why: str
) -> None:
    spoil(backup)

    with pytest.raises(OpsladderError, match=why):
        restore(nowhere, backup)

    assert not (tmp_path / "nowhere").exists()


@given(data=st.data())
@settings(max_examples=300)
def test_a_file_that_was_cut_off_anywhere_is_refused(data: st.DataObject, backup: Path, tmp_path: Path) -> None:
    whole = backup.read_bytes()
    cut = tmp_path / "cut.gz"
    cut.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])

    with pytest.raises(OpsladderError, match=r"is damaged|is not a backup"):
        check_file(cut, quiet)


@given(data=st.data())
@settings(max_examples=300)
def test_an_altered_byte_is_noticed_or_changes_nothing(data: st.DataObject, backup: Path, tmp_path: Path) -> None:
    header, seal = check_file(backup, quiet)
    altered = bytearray(backup.read_bytes())
    place = data.draw(st.integers(0, len(altered) - 1))
    altered[place] ^= data.draw(st.integers(1, 255))
    (tmp_path / "altered.gz").write_bytes(altered)

    try:
        found, found_seal = check_file(tmp_path / "altered.gz", quiet)
    except OpsladderError:
        return
    # Some bits of gzip's own header mean nothing, such as the time and the kind of machine.
    assert place < 10
    assert (found, found_seal.document()) == (header, seal.document())


def test_a_sealed_file_with_impossible_values_restores_nothing(tmp_path: Path, own_url: str) -> None:
    names = columns()["cycles"]
    impossible = ["yesterday" if name == "started_at" else 1 if name == "id" else None for name in names]
    file = made_up(tmp_path / "records.gz", [Row("cycles", impossible)])

    with pytest.raises(OpsladderError, match="a time cannot be read"):
        restore(own_url, file)

    assert set(counts(own_url).values()) == {0}


def test_a_row_that_refers_to_nothing_restores_nothing(backup: Path, own_url: str, tmp_path: Path) -> None:
    with open_file(backup) as reader:
        orphans = made_up(tmp_path / "orphans.gz", [row for row in reader.rows() if row.table != "cycles"])

    with pytest.raises(StoreError, match="no such cycle or session"):
        restore(own_url, orphans)

    assert set(counts(own_url).values()) == {0}


def test_a_database_that_changes_what_it_is_given_is_not_restored_into(backup: Path, nowhere: str) -> None:
    upgrade(nowhere)
    with opened(nowhere) as connection:
        change = "UPDATE cycles SET schedule = 'mine' WHERE id = NEW.id"
        connection.execute(text(f"CREATE TRIGGER t AFTER INSERT ON cycles BEGIN {change}; END"))

    with pytest.raises(StoreError, match="does not give back what the backup holds; nothing was restored"):
        restore(nowhere, backup)

    assert set(counts(nowhere).values()) == {0}


RESTORER = """
import sys
from pathlib import Path
from supervisor.store.restore import restore_backup
def tell(what, rows):
    print(what, flush=True)
    if what == sys.argv[3]:
        sys.stdin.readline()
restore_backup(sys.argv[1], Path(sys.argv[2]), tell=tell)
"""


@pytest.mark.parametrize("moment", ["restored", "compared"])
def test_a_killed_restore_leaves_a_database_that_can_be_restored_into(
    store: Store, url: str, target: str, tmp_path: Path, moment: str
) -> None:
    cycle = begin(store)
    store.append_events(cycle.id, [text_event("x")] * 2000)
    file = back_up(url, tmp_path / "records.gz")
    restorer = subprocess.Popen(
        [sys.executable, "-c", RESTORER, target, str(file), moment],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert restorer.stdout is not None
    assert moment in iter(lambda: restorer.stdout.readline().strip(), "")
    restorer.kill()
    restorer.communicate()

    assert set(counts(target).values()) == {0}
    restore(target, file)
    assert held(target) == held(url)


def test_while_a_restore_goes_on_nobody_else_can_write(store: Store, url: str, target: str, tmp_path: Path) -> None:
    cycle = begin(store)
    store.append_events(cycle.id, [text_event("x")] * 2000)
    file = back_up(url, tmp_path / "records.gz")
    upgrade(target)
    impatient = (
        f"{target}?timeout=0.05" if target.startswith("sqlite") else f"{target}&options=-c%20lock_timeout%3D50ms"
    )
    refusals = []

    def intrude(what: str, _rows: int) -> None:
        if what == "restored":
            with open_store(impatient) as intruder, pytest.raises(StoreError, match=r"locked|lock timeout") as refused:
                begin(intruder)
            refusals.append(refused.value)

    restore_backup(target, file, tell=intrude)

    assert refusals
    assert held(target) == held(url)


MEASURED = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from supervisor.store.backup import write_backup
from supervisor.store.restore import restore_backup
small, url, target, place = *sys.argv[1:4], Path(sys.argv[4])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
def there_and_back(source, target, name):
    write_backup(source, place / name, now=datetime.now(UTC), tell=lambda what, rows: None)
    restore_backup(target, place / name, tell=lambda what, rows: None)
there_and_back(small, f"sqlite:///{place}/first.db", "first.gz")
before = peak()
there_and_back(url, target, "second.gz")
print(peak() - before)
"""


def test_memory_does_not_grow_with_the_records(store: Store, url: str, twin: str, nowhere: str, tmp_path: Path) -> None:
    upgrade(nowhere)
    cycle = begin(store)
    for _ in range(30):
        store.append_events(cycle.id, [text_event("x" * 50_000)] * 50)

    done = subprocess.run(
        [sys.executable, "-c", MEASURED, nowhere, url, twin, str(tmp_path)], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert counts(twin)["events"] == 1500
    # There are 75 megabytes of text.
    assert int(done.stdout) < 40
