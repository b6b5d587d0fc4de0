"""Write a file so that it is there whole or not at all, whatever happens meanwhile. Does I/O. For small files."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_durably(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Put the text on disk under a temporary name, then rename. The directory has to be there."""
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
