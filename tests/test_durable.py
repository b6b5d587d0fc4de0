"""A file is on disk whole, and its name too, or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from supervisor import durable
from supervisor.durable import write_durably


class Disk:
    """Notes what is put on disk, and under which names what is in the directory is known then."""

    def __init__(self, place: Path, refuses_directories: int | None = None) -> None:
        self._place = place
        self._refuses = refuses_directories
        self.synced: list[tuple[str, list[str]]] = []

    def fsync(self, descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        names = sorted(path.name for path in self._place.iterdir() if not path.name.startswith("."))
        self.synced.append(("directory" if is_directory else "file", names))
        if is_directory and self._refuses is not None:
            raise OSError(self._refuses, os.strerror(self._refuses))


def a_disk(monkeypatch: pytest.MonkeyPatch, place: Path, refuses_directories: int | None = None) -> Disk:
    disk = Disk(place, refuses_directories)
    monkeypatch.setattr(durable.os, "fsync", disk.fsync)
    return disk


def test_the_text_is_on_disk_before_its_name_is_and_the_name_before_anybody_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = a_disk(monkeypatch, tmp_path)
    write_durably(tmp_path / "facts", "all of it")
    assert disk.synced == [("file", []), ("directory", ["facts"])]


def test_a_file_system_that_cannot_do_this_for_directories_gets_the_file_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_disk(monkeypatch, tmp_path, refuses_directories=errno.EINVAL)
    write_durably(tmp_path / "facts", "all of it")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("facts", "all of it")]


def test_a_disk_that_fails_is_said_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_disk(monkeypatch, tmp_path, refuses_directories=errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        write_durably(tmp_path / "facts", "all of it")
