"""What the hook says and what it is told, as bytes and as values. Pure. Used by guard.server.

The client sends ``SECRET LENGTH`` on a line and then the hook's JSON as it got it; it is sent ``LENGTH`` on a line and
then the JSON that it prints. Lengths, because either side may die in the middle.
"""

import hmac
import json
from collections.abc import Mapping
from typing import cast

from supervisor.model.permission import CallEnd, Decision, ToolCall

HEADER_LIMIT = 256
MOST_INPUT = 16 * 1024 * 1024
# The model has to read it, and the client takes no answer without end.
MOST_SENTENCE = 16 * 1024

BEFORE = "PreToolUse"
AFTER = "PostToolUse"
AFTER_FAILURE = "PostToolUseFailure"


class Unreadable(Exception):
    """What a hook sent does not describe a call; the message says why."""


class Stranger(Exception):
    """Someone who does not know the secret of the run."""


def announced_length(header: bytes, secret: str) -> int:
    """How much follows a header."""
    given, _, length = header.strip().partition(b" ")
    if not hmac.compare_digest(given, secret.encode()):
        raise Stranger
    if not length.isdigit() or int(length) > MOST_INPUT:
        raise Unreadable("its length is missing or too large")
    return int(length)


def read_hook(body: bytes) -> ToolCall | CallEnd:
    """The call that a hook describes, or how one ended."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unreadable("it is not JSON") from error
    if not isinstance(said, dict):
        raise Unreadable("it is not an object")
    fields = cast(Mapping[str, object], said)
    call_id = _name(fields, "tool_use_id")
    match fields.get("hook_event_name"):
        case "PreToolUse":
            given = fields.get("tool_input")
            if not isinstance(given, dict):
                raise Unreadable("its tool_input is not an object")
            return ToolCall(
                tool_use_id=call_id,
                tool=_name(fields, "tool_name"),
                input=given,
                session_id=_text(fields.get("session_id")),
                cwd=_text(fields.get("cwd")),
            )
        case "PostToolUse":
            return CallEnd(tool_use_id=call_id, failed=False)
        case "PostToolUseFailure":
            return CallEnd(tool_use_id=call_id, failed=True)
        case _:
            raise Unreadable("it is of an unknown kind")


def decision_answer(decision: Decision) -> bytes:
    """What the CLI is told of a decision."""
    return _framed(
        {
            "hookEventName": BEFORE,
            "permissionDecision": decision.verdict.value,
            "permissionDecisionReason": decision.sentence[:MOST_SENTENCE],
        }
    )


def end_answer(*, failed: bool) -> bytes:
    """What the CLI is told when it has said how a call ended: nothing, in the form that it expects."""
    return _framed({"hookEventName": AFTER_FAILURE if failed else AFTER})


def _framed(output: Mapping[str, str]) -> bytes:
    # ASCII only: no character of a sentence can be one that a terminal, a shell or a decoder stumbles over.
    body = json.dumps({"hookSpecificOutput": output}, separators=(",", ":")).encode("ascii")
    return b"%d\n" % len(body) + body


def _name(fields: Mapping[str, object], key: str) -> str:
    value = _text(fields.get(key))
    if not value:
        raise Unreadable(f"it has no {key}")
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
