"""Make something of lines that cannot be read as they are. Pure. Called from claude.stream."""

import json
import re

from supervisor.claude.lines import Overlong
from supervisor.model.events import ToolResult, Unreadable

KEPT_RAW = 2_000
KEPT_RESULT = 20_000

_SUSPICIOUS = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
# Escapes are consumed one by one, so an escaped backslash before a "u" is not taken for one.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}))|.)",
    re.DOTALL,
)

# Inside a JSON text quotes are escaped, so these match keys only, never what a tool printed.
_IS_USER = re.compile(rb'"type"\s*:\s*"user"')
_IS_ASSISTANT = re.compile(rb'"type"\s*:\s*"assistant"')
_TOOL_USE_ID = re.compile(rb'"tool_use_id"\s*:\s*"([^"\\]{1,200})"')
_PARENT_ID = re.compile(rb'"parent_tool_use_id"\s*:\s*"([^"\\]{1,200})"')
_IS_ERROR = re.compile(rb'"is_error"\s*:\s*true')
_CONTENT = re.compile(rb'"(?:content|text)"\s*:\s*"')


def salvage(line: Overlong) -> ToolResult | Unreadable:
    """An overlong line is nearly always the output of a tool: keep at least whose it was and how it began."""
    ends = (line.head, line.tail)
    call_id = _first(_TOOL_USE_ID, ends)
    if call_id is None or _first(_IS_USER, ends) is None or _first(_IS_ASSISTANT, ends) is not None:
        return unreadable("a line that is too long", line.head, size=line.size)
    parent = _first(_PARENT_ID, ends)
    begins = _CONTENT.search(line.head)
    return ToolResult(
        tool_use_id=call_id.group(1).decode("utf-8", "replace"),
        text=_unescaped(line.head[begins.end() :]) if begins else "",
        size=line.size,
        is_error=_first(_IS_ERROR, ends) is not None,
        parent_tool_use_id=parent.group(1).decode("utf-8", "replace") if parent else None,
    )


def _first(pattern: re.Pattern[bytes], ends: tuple[bytes, bytes]) -> re.Match[bytes] | None:
    return pattern.search(ends[0]) or pattern.search(ends[1])


def _unescaped(raw: bytes) -> str:
    """The text at the beginning of a JSON string that is cut off somewhere."""
    cut = storable(raw.decode("utf-8", "replace")[:KEPT_RESULT])
    decoder = json.JSONDecoder(strict=False)
    # The longest thing a cut can tear is a pair of six-character escapes.
    for missing in range(13):
        try:
            value, _ = decoder.raw_decode(f'"{cut[: len(cut) - missing]}"')
        except ValueError:
            continue
        return str(value)
    return cut


def storable(raw: str) -> str:
    """JSON text without the escapes that no database stores: half surrogate pairs and NUL."""
    if _SUSPICIOUS.search(raw) is None:
        return raw
    return _ESCAPE.sub(lambda found: "\\ufffd" if found.group(1) else found.group(0), raw)


def unreadable(why: str, raw: bytes, *, size: int | None = None) -> Unreadable:
    """A line that says nothing we understand, shortened, with its whole size."""
    kept = raw[: KEPT_RAW * 4].decode("utf-8", "replace")[:KEPT_RAW].replace("\0", "\ufffd")
    return Unreadable(why=why, raw=kept, size=len(raw) if size is None else size)
