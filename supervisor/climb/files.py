"""The files a cycle keeps while it runs, and their end. Touches the state directory. Used by climb.run and recovery."""

import logging
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)


def stream_path(state_dir: Path, record: int) -> Path:
    """Where the raw stream of a running session is kept until its record is complete."""
    return state_dir / "streams" / f"{record}.jsonl"


def handoff_dir(state_dir: Path) -> Path:
    return state_dir / "handoffs"


def discard_stream(state_dir: Path, record: int) -> None:
    _discard(stream_path(state_dir, record))


def discard_handoffs(state_dir: Path, cycle: int) -> None:
    """Remove every handoff of a cycle, finished or half written: it served one run, and a stale one misleads."""
    # Whoever could not write there has nothing to remove.
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in handoff_dir(state_dir).iterdir():
            if f"cycle-{cycle}-" in path.name:
                _discard(path)


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        # The records are complete; a file that stays is untidy and nothing worse.
        logger.warning("A file of the cycle cannot be removed", extra={"path": str(path), "why": error.strerror})
