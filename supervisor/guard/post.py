"""The directory in which a run's hooks find the supervisor: a socket and a secret. Creates and removes files.

Made before the CLI starts, because its command line names the two; served by ``guard.server``. Called from climb.
"""

import errno
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_PREFIX = "opsladder-guard-"
_SOCKET = "s"
_SECRET = "k"  # noqa: S105 - the name of a file
# sun_path holds 108 bytes, the last one a zero.
_MOST_PATH_BYTES = 107
_SECRET_BYTES = 32
# Long after a supervisor that makes a directory has bound its socket in it: in between it records the run, and waits
# for a store that is away, more than once. Long after it listens there.
_STILL_BEING_MADE_SECONDS = 3600.0
_STILL_BEING_BOUND_SECONDS = 60.0
# Where a path is short on every machine.
SHORT_PLACE = Path("/tmp")  # noqa: S108 - mkdtemp makes a directory in it that is ours alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """``with Post.open((state_dir / "guard", SHORT_PLACE)) as post:``; its directory is gone afterwards."""

    directory: Path
    secret: str

    @classmethod
    def open(cls, places: Sequence[Path]) -> Self:
        """In the first of the places that lets us and where the path of a socket is short enough.

        A place that is not there is made. Raises OSError when none of them will do.
        """
        made = _make_directory(places)
        try:
            secret = secrets.token_urlsafe(_SECRET_BYTES)
            descriptor = os.open(made / _SECRET, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secret)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        return cls(directory=made, secret=secret)

    @property
    def socket(self) -> Path:
        return self.directory / _SOCKET

    @property
    def secret_file(self) -> Path:
        return self.directory / _SECRET

    def close(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def sweep_posts(places: Sequence[Path], *, now: float | None = None) -> list[Path]:
    """Remove what supervisors that were killed have left, and say what; one that still serves keeps its own."""
    removed = []
    for place in places:
        for left in place.glob(f"{_PREFIX}*"):
            if _is_abandoned(left, time.time() if now is None else now):
                shutil.rmtree(left, ignore_errors=True)
                removed.append(left)
    return removed


def _make_directory(places: Sequence[Path]) -> Path:
    problem = OSError(errno.ENOENT, "There is no place for the guard's socket")
    for place in (place.absolute() for place in places):
        # mkdtemp adds eight characters to its prefix.
        if len(os.fsencode(place / f"{_PREFIX}12345678" / _SOCKET)) > _MOST_PATH_BYTES:
            problem = OSError(errno.ENAMETOOLONG, "Too long for the path of a socket", str(place))
            continue
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        except OSError as error:
            problem = error
    raise problem


def _is_abandoned(left: Path, now: float) -> bool:
    try:
        status = left.lstat()
        growing = _STILL_BEING_BOUND_SECONDS if (left / _SOCKET).exists() else _STILL_BEING_MADE_SECONDS
        young = now - status.st_mtime < growing
        if status.st_uid != os.geteuid() or not left.is_dir() or left.is_symlink() or young:
            return False
        # A place such as /tmp is everybody's: only what is surely a post may go.
        if not {_SECRET} <= {entry.name for entry in left.iterdir()} <= {_SECRET, _SOCKET}:
            return False
        with socket.socket(socket.AF_UNIX) as knock:
            knock.settimeout(1.0)
            knock.connect(str(left / _SOCKET))
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    except OSError:
        return False
    return False
