"""Logs on stderr: the time, the level, a constant sentence, its fields, no secrets. Set up once per command."""

import datetime as dt
import json
import logging
import sys
from typing import TextIO

from supervisor.decide.masking import Masker

_ORDINARY = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class _Fields(logging.Formatter):
    """``time level: sentence key=value …`` with the time in UTC."""

    def __init__(self, masker: Masker) -> None:
        super().__init__()
        self.masker = masker

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(
            f" {key}={_shown(value)}"
            for key, value in record.__dict__.items()
            if key not in _ORDINARY and value is not None
        )
        at = dt.datetime.fromtimestamp(record.created, dt.UTC)
        line = f"{at:%Y-%m-%dT%H:%M:%SZ} {record.levelname.lower()}: {record.getMessage()}{fields}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return self.masker.text(line)


def _shown(value: object) -> str:
    """A value as one word, or in quotes."""
    text = str(value)
    if not text.isprintable():
        return json.dumps(text)
    return text if text and not set(text) & set(' "=') else json.dumps(text, ensure_ascii=False)


class _ToStderr(logging.StreamHandler[TextIO]):
    """Writes to what is stderr at the moment: while a live tree is drawn, that is a place above the tree."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """Whatever the base class sets, the moment decides."""


def set_up(*, verbose: bool) -> None:
    """Log from here on. Until the settings are known, only what looks like a secret is masked."""
    handler = _ToStderr()
    handler.setFormatter(_Fields(Masker()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # Our own decisions, not what the libraries have to say.
    logging.getLogger("supervisor").setLevel(logging.INFO if verbose else logging.WARNING)


def keep_secret(masker: Masker) -> None:
    """Mask with this too from here on, which knows the secrets of the settings."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _ToStderr) and isinstance(handler.formatter, _Fields):
            # What runs with older settings still has the secrets of those.
            handler.setFormatter(_Fields(handler.formatter.masker | masker))
