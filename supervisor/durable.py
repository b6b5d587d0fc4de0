"""Write a file so that it is there whole or not at all, whatever happens meanwhile. Does I/O. For small files."""

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_durably(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Put the text on disk under a temporary name, then rename, and the new name too. The directory has to be there."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    _keep_names(path.parent)


def _keep_names(directory: Path) -> None:
    """Put on disk which names the directory has: without that, a rename can be lost with the power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems cannot do this for a directory. Then there is nothing better than the rename.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)
