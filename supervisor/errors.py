"""Every exception opsladder raises on purpose. No I/O; imported from everywhere.

    OpsladderError
    ├── ConfigError          the configuration, a prompt or a scenario is wrong (exit 2)
    ├── UsageError           the command line asks for something that makes no sense (exit 2)
    ├── ClaudeNotUsable      the CLI is missing, not executable, or not a Claude CLI
    ├── StoreError           the database refused
    │   ├── StoreUnavailable   it cannot be reached, is locked, or its disk is full
    │   ├── SchemaOutdated     it has to be migrated first
    │   ├── Conflict           a compare-and-set found another status than expected
    │   │   └── PausedFirst      a paused cycle of the schedule has to be gone on with instead
    │   └── NotFound           no such record
    └── HandoffInvalid       a handoff would not carry the context it has to carry

Expected endings of a run are values (``model.outcome``), not exceptions.
"""


class OpsladderError(Exception):
    """A failure with a sentence for the operator and, where there is one, the remedy."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}" if self.remedy else self.message


class ConfigError(OpsladderError):
    """Configuration that must be corrected before anything runs."""


class UsageError(OpsladderError):
    """A command line that makes no sense."""


class ClaudeNotUsable(OpsladderError):
    """There is no Claude CLI to run."""


class StoreError(OpsladderError):
    """The database refused."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, is locked, or its disk is full."""


class SchemaOutdated(StoreError):
    """The database has to be migrated first."""


class Conflict(StoreError):
    """A compare-and-set found another status than the caller expected."""


class PausedFirst(Conflict):
    """A new cycle was asked for where a paused one of the same schedule has to be gone on with."""


class NotFound(StoreError):
    """No such record."""


class HandoffInvalid(OpsladderError):
    """A handoff would not carry the context it has to carry."""
