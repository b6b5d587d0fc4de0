"""How a run ended. No I/O. Made by ``decide.outcome`` from what ``claude.process`` observed."""

from enum import StrEnum


class Failure(StrEnum):
    """What kept a run from completing. Stored, logged, counted and shown under these names."""

    SPAWN_FAILED = "spawn_failed"
    NOT_CLAUDE = "not_claude"
    NO_OUTPUT = "no_output"
    SILENCE = "silence"
    WALL_CLOCK = "wall_clock"
    NO_RESULT = "no_result"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    RESUME_REJECTED = "resume_rejected"
    SESSION_ID_IN_USE = "session_id_in_use"
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    USAGE_LIMIT = "usage_limit"
    BAD_CREDENTIALS = "bad_credentials"
    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"
    NETWORK = "network"
    INVALID_REQUEST = "invalid_request"
    CONTEXT_EXHAUSTED = "context_exhausted"
    API_ERROR = "api_error"
    EXECUTION_ERROR = "execution_error"
    STORE_UNAVAILABLE = "store_unavailable"
    APPROVAL = "approval"
    GUARD_BYPASSED = "guard_bypassed"


POISONING = frozenset({Failure.CONTEXT_EXHAUSTED, Failure.INVALID_REQUEST})


class Ended(StrEnum):
    """Who ended a process: itself, or the supervisor for a reason."""

    BY_ITSELF = "by_itself"
    NO_OUTPUT = "no_output"
    SILENCE = "silence"
    WALL_CLOCK = "wall_clock"
    ENDLESS_RETRY = "endless_retry"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    DISOWNED = "disowned"
    STORE_UNAVAILABLE = "store_unavailable"
    AFTER_RESULT = "after_result"
    GUARD_BYPASSED = "guard_bypassed"
    BUDGET = "budget"
    USAGE_LIMIT = "usage_limit"
