"""A request for a message, read as far as answering it needs. No I/O. Used by ``rehearsal.api``."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

# Older CLIs send one long word that ends with the id, newer ones a JSON document.
_SESSION_IN_WORD = re.compile(r"_session_([0-9a-fA-F-]{36})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Who asks what. ``fixed_bytes`` is the size of the request without its conversation."""

    session_id: str | None
    model: str
    stream: bool
    tools: frozenset[str]
    request_bytes: int
    fixed_bytes: int
    body: Mapping[str, object]


def read_question(body: bytes) -> Question | None:
    """Read the body of a request; ``None`` when it does not ask for a message."""
    try:
        document = json.loads(body)
    except ValueError:
        return None
    if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
        return None
    model = document.get("model")
    if not isinstance(model, str):
        return None
    tools = document.get("tools")
    named = [tool.get("name") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    fixed = {key: value for key, value in document.items() if key != "messages"}
    written = json.dumps(fixed, ensure_ascii=False, separators=(",", ":"))
    return Question(
        session_id=_session_id(document.get("metadata")),
        model=model,
        stream=document.get("stream") is True,
        tools=frozenset(str(name) for name in named),
        request_bytes=len(body),
        fixed_bytes=len(written.encode("utf-8", errors="surrogatepass")),
        body=document,
    )


def _session_id(metadata: object) -> str | None:
    user_id = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user_id, str):
        return None
    if found := _SESSION_IN_WORD.search(user_id):
        return found[1]
    try:
        document = json.loads(user_id)
    except ValueError:
        return None
    session_id = document.get("session_id") if isinstance(document, dict) else None
    return session_id if isinstance(session_id, str) else None
