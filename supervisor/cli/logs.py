"""Logs on stderr: a constant sentence, then its fields. Set up once per command."""

import logging
import sys

_ORDINARY = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class _Fields(logging.Formatter):
    """``level sentence key=value …`` with the time in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(
            f"{key}={value}" for key, value in record.__dict__.items() if key not in _ORDINARY and value is not None
        )
        line = f"{record.levelname.lower()}: {record.getMessage()}{' ' + fields if fields else ''}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def set_up(*, verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Fields())
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler], force=True)
