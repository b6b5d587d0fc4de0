"""A state directory that cannot be written to, a disk that is full, a handoff that cannot be handed on."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cycles import Place, until

MEGABYTE = 1024 * 1024


def mount(path: Path, *options: str) -> None:
    path.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    path = tmp_path / "disk"
    mount(path, "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def fill(disk: Path) -> Path:
    """Take all the room there is."""
    file = disk / "filling"
    with file.open("wb", buffering=0) as filling:
        for size in (65536, 4096, 1):
            try:
                while True:
                    filling.write(b"x" * size)
            except OSError:
                continue
    return file


def test_below_a_file_there_can_be_no_state_directory(tmp_path, standin):
    (tmp_path / "file").touch()
    place = Place(tmp_path, standin, state=tmp_path / "file" / "state")

    done = place.cycle()

    assert done.exit_code == 1
    assert "The state directory" in done.err
    assert "Set state.dir" in done.err
    assert not (place.work / "argv.jsonl").exists()
    assert place.processes() == []


def test_on_a_read_only_disk_nothing_starts(tmp_path, standin):
    disk = tmp_path / "disk"
    mount(disk, "-t", "tmpfs", "-o", "ro", "tmpfs")
    try:
        place = Place(tmp_path, standin, state=disk / "state")
        done = place.cycle()
    finally:
        subprocess.run(["umount", str(disk)], check=True)

    assert done.exit_code == 1
    assert "Read-only file system" in done.err
    assert not (place.work / "argv.jsonl").exists()
    assert place.processes() == []


def test_on_a_full_disk_nothing_starts_and_with_room_again_the_next_cycle_runs(tmp_path, standin, small_disk):
    place = Place(tmp_path, standin, state=small_disk / "state")
    filling = fill(small_disk)

    refused = place.cycle()

    assert refused.exit_code == 1
    assert "No space left on device" in refused.err
    assert "make room" in refused.err
    assert not (place.work / "argv.jsonl").exists()
    filling.unlink()
    assert place.cycle().exit_code == 0
    place.assert_nothing_left()


def test_a_disk_that_fills_up_stops_the_run_and_the_next_cycle_catches_its_records_up(tmp_path, standin, small_disk):
    place = Place(tmp_path, standin, ways="chatters", state=small_disk / "state")
    started = place.start(patience=1)
    place.until_reached()
    until(lambda: place.chains()[0].sessions[0].messages > 3, what="messages are recorded")
    filling = fill(small_disk)

    done = started.done()

    assert done.exit_code == 1
    assert "Free some space" in done.err
    assert "Traceback" not in done.err
    assert place.processes() == []
    [stream] = place.files_left()
    in_stream = Path(stream).read_text().count('"type": "assistant"')
    filling.unlink()
    (place.work / "go").touch()
    assert place.cycle().exit_code == 0
    [chain] = place.chains()
    session, after = chain.sessions
    assert (chain.cycle.status, after.status, after.reason) == ("healthy", "completed", "transcript_missing")
    assert (session.status, session.cost_basis) == ("interrupted", "estimated")
    said = [e.text for e in place.events(session) if e.kind == "text"]
    assert len(said) >= in_stream - 1
    assert [text.split()[1] for text in said[1:]] == [str(n) for n in range(2, len(said) + 1)]
    place.assert_nothing_left()


@pytest.mark.parametrize("way", ["needs", "sprawls"], ids=["cannot_be_written", "is_invalid"])
def test_without_a_handoff_no_higher_tier_runs(tmp_path, standin, way):
    place = Place(tmp_path, standin, ways=way)
    if way == "needs":
        (place.state / "handoffs").touch()

    done = place.cycle("--json", "--fresh-session")

    assert done.exit_code == 3, done.err
    assert [s["tier"] for s in done.document["sessions"]] == [1]
    assert (done.document["cycle"]["status"], done.document["cycle"]["reason"]) == ("blocked", "handoff_invalid")
    assert "Tier 2 was not started" in done.document["cycle"]["detail"]
    [chain] = place.chains()
    assert ("critical", "handoff_invalid") in [(n.level, n.data.get("reason")) for n in place.notices(chain)]
    assert len((place.work / "argv.jsonl").read_text().splitlines()) == 1
    place.assert_nothing_left()


def test_a_handoff_that_finds_no_room_leaves_nothing_half_written(tmp_path, standin, small_disk):
    """The database is elsewhere and has room; the handoff has none."""
    place = Place(tmp_path, standin, ways="needs_and_fills", state=small_disk / "state")
    place.env["OPSLADDER_STATE__DATABASE_URL"] = place.url = f"sqlite:///{tmp_path}/elsewhere.db"

    done = place.cycle("--json", "--fresh-session")

    assert done.exit_code == 3, done.err
    assert "No space left on device" in done.document["cycle"]["detail"]
    assert place.files_left() == []


def test_a_prompt_that_is_spoilt_in_mid_cycle_closes_the_cycle(tmp_path, standin):
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "tier2.md").write_text("Mend it.")
    place = Place(tmp_path, standin, ways="needs_and_spoils healthy")

    done = place.cycle("--fresh-session")

    assert done.exit_code == 2
    assert "nobody_knows_this" in done.err
    [chain] = place.chains()
    assert (chain.cycle.status, chain.cycle.reason) == ("failed", "supervisor_error")
    assert "nobody_knows_this" in chain.cycle.detail
    assert [(s.tier, s.status) for s in chain.sessions] == [(1, "completed")]
    place.assert_nothing_left()
