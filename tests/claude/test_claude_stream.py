"""Bytes in, typed events out: every kind, any order of keys, any cut, any garbage."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.claude.lines import KEPT_TAIL, LineCutter, Overlong
from supervisor.claude.stream import StreamParser
from supervisor.model.events import (
    Alive,
    ApiRetry,
    CallUsage,
    Init,
    RateLimit,
    Result,
    StreamEvent,
    Text,
    ToolResult,
    ToolUse,
    Unreadable,
)
from supervisor.model.session import ModelUsage, Tokens

USAGE = {
    "input_tokens": 100,
    "output_tokens": 1,
    "cache_read_input_tokens": 7,
    "cache_creation_input_tokens": 9,
    "service_tier": "standard",
}


def read(*events: object) -> list[StreamEvent]:
    parser = StreamParser()
    raw = "".join(json.dumps(event) + "\n" for event in events).encode()
    return [*parser.feed(raw), *parser.close()]


def assistant(
    *blocks: object, message_id: str = "msg_1", parent: str | None = None, model: str = "m"
) -> dict[str, object]:
    message = {"id": message_id, "model": model, "content": list(blocks), "usage": USAGE}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def partial(event: object, parent: str | None = None) -> dict[str, object]:
    return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}


def user(*blocks: object, parent: str | None = None) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": list(blocks)}, "parent_tool_use_id": parent}


def message_start(message_id: str) -> dict[str, object]:
    return {"type": "message_start", "message": {"id": message_id, "model": "m", "usage": USAGE}}


def message_delta(**usage: object) -> dict[str, object]:
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}


def test_the_first_event_introduces_the_session():
    events = read(
        {
            "type": "system",
            "subtype": "init",
            "session_id": "s",
            "model": "m",
            "claude_code_version": "2.1.325",
            "tools": ["Bash", 3, "Read"],
            "cwd": "/w",
        }
    )

    assert events == [Init(session_id="s", model="m", version="2.1.325", tools=("Bash", "Read"), cwd="/w")]


def test_an_assistant_message_gives_its_usage_once_and_one_event_per_block():
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}

    events = read(assistant({"type": "thinking", "thinking": "…"}, {"type": "text", "text": "hi"}), assistant(call))

    assert events == [
        CallUsage(
            message_id="msg_1",
            model="m",
            tokens=Tokens(input=100, output=1, cache_read=7, cache_write=9),
            final=False,
            main_loop=True,
        ),
        Text(message_id="msg_1", model="m", text="hi", parent_tool_use_id=None),
        ToolUse(
            message_id="msg_1",
            model="m",
            tool_use_id="t1",
            name="Bash",
            input={"command": "ls"},
            parent_tool_use_id=None,
        ),
    ]


def test_a_message_that_the_cli_made_up_has_no_usage():
    events = read(assistant({"type": "text", "text": "API Error: 403"}, model="<synthetic>"))

    assert [type(e) for e in events] == [Text]


def test_a_call_is_final_once_the_api_has_said_what_it_put_out():
    events = read(
        partial(message_start("msg_1")),
        partial({"type": "content_block_delta", "delta": {"text": "x"}}),
        assistant({"type": "text", "text": "x"}),
        partial(message_delta(output_tokens=55)),
        partial({"type": "message_stop"}),
    )

    assert [type(e) for e in events] == [CallUsage, Alive, Text, CallUsage, Alive]
    assert events[3] == CallUsage(
        message_id="msg_1",
        model="m",
        tokens=Tokens(input=100, output=55, cache_read=7, cache_write=9),
        final=True,
        main_loop=True,
    )


def test_calls_of_sub_agents_are_kept_apart_from_the_main_loop():
    events = read(
        partial(message_start("main")),
        partial(message_start("sub"), parent="t9"),
        partial(message_delta(output_tokens=5)),
        partial(message_delta(output_tokens=6, input_tokens=3), parent="t9"),
    )

    finals = [e for e in events if isinstance(e, CallUsage) and e.final]
    assert [(e.message_id, e.main_loop, e.tokens.output, e.tokens.input) for e in finals] == [
        ("main", True, 5, 100),
        ("sub", False, 6, 3),
    ]


@pytest.mark.parametrize(
    ("content", "text", "size"),
    [
        pytest.param("out", "out", 3, id="text"),
        pytest.param([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", 2, id="blocks"),
        pytest.param([{"type": "image", "source": {}}], "[image]", 7, id="image"),
        pytest.param("x" * 50_000, "x" * 20_000, 50_000, id="long text"),
        pytest.param([{"type": "text", "text": "x" * 15_000}] * 3, None, 45_000, id="long blocks"),
        pytest.param(None, "", 0, id="nothing"),
    ],
)
def test_what_a_tool_gave_back(content: object, text: str | None, size: int):
    (event,) = read(user({"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": True}))

    assert isinstance(event, ToolResult)
    assert (event.tool_use_id, event.is_error, event.size) == ("t1", True, size)
    assert len(event.text) <= 20_000
    assert text is None or event.text == text


def test_a_retry_of_the_api():
    retry = {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 1,
        "max_retries": 10,
        "retry_delay_ms": 530,
        "error_status": 401,
        "error": "authentication_failed",
        "session_id": "s",
    }
    nobody_there = {**retry, "error_status": None, "error": "unknown"}

    assert read(retry, nobody_there) == [
        ApiRetry(attempt=1, max_retries=10, error_status=401, delay_seconds=0.53, error="authentication_failed"),
        ApiRetry(attempt=1, max_retries=10, error_status=None, delay_seconds=0.53, error="unknown"),
    ]


def test_a_usage_limit():
    info = {"status": "rejected", "resetsAt": 1794792929, "rateLimitType": "five_hour", "isUsingOverage": False}

    assert read({"type": "rate_limit_event", "rate_limit_info": info}) == [
        RateLimit(status="rejected", resets_at=1794792929, kind="five_hour")
    ]


def test_a_used_up_window_that_the_account_pays_to_go_beyond_is_no_limit():
    """Seen on 2.1.225 and 2.1.325, with calls that went through."""
    info = {"status": "rejected", "resetsAt": 1, "overageStatus": "allowed", "isUsingOverage": True}

    [limit] = read({"type": "rate_limit_event", "rate_limit_info": info})

    assert limit == RateLimit(status="rejected", resets_at=1, kind=None, on_credits=True)
    assert not limit.reached


def test_a_usage_window_that_ends_beyond_all_dates_has_no_known_end():
    """In milliseconds, for example: no date could be made of it, when the run is over and whenever it is recovered."""
    info = {"status": "rejected", "resetsAt": 1794792929000, "rateLimitType": "five_hour"}

    [limit] = read({"type": "rate_limit_event", "rate_limit_info": info})

    assert limit == RateLimit(status="rejected", resets_at=None, kind="five_hour")


def test_a_result_with_its_type_at_the_end():
    account = {
        "inputTokens": 1,
        "outputTokens": 2,
        "cacheReadInputTokens": 3,
        "cacheCreationInputTokens": 4,
        "costUSD": 0.5,
        "contextWindow": 200000,
    }
    (event,) = read(
        {
            "duration_ms": 12,
            "session_id": "s",
            "total_cost_usd": 0.7,
            "usage": USAGE,
            "modelUsage": {"m": account, "broken": 1},
            "model_usage_since_last_result": {"m": account},
            "permission_denials": [{}, {}],
            "terminal_reason": "completed",
            "subtype": "success",
            "is_error": False,
            "api_error_status": None,
            "num_turns": 3,
            "stop_reason": "end_turn",
            "result": "done",
            "structured_output": {"a": 1},
            "errors": ["one", 2],
            "type": "result",
        }
    )

    usage = ModelUsage(
        tokens=Tokens(input=1, output=2, cache_read=3, cache_write=4), cost_usd=0.5, context_window=200000
    )
    assert event == Result(
        session_id="s",
        subtype="success",
        is_error=False,
        text="done",
        structured_output={"a": 1},
        stop_reason="end_turn",
        terminal_reason="completed",
        api_error_status=None,
        num_turns=3,
        total_cost_usd=0.7,
        usage=Tokens(input=100, output=1, cache_read=7, cache_write=9),
        model_usage={"m": usage},
        own_model_usage={"m": usage},
        permission_denials=2,
        errors=("one",),
        duration_ms=12,
    )


def test_numbers_of_the_wrong_type_are_missing_numbers():
    (event,) = read(
        {
            "type": "result",
            "num_turns": "3",
            "total_cost_usd": True,
            "usage": {"input_tokens": 1.5, "output_tokens": -2, "cache_read_input_tokens": 10**400},
            "modelUsage": {"m": {"inputTokens": None, "costUSD": float("nan"), "contextWindow": "big"}},
            "api_error_status": [],
        }
    )

    assert isinstance(event, Result)
    assert (event.num_turns, event.total_cost_usd, event.usage, event.api_error_status) == (None, None, None, None)
    assert event.model_usage == {"m": ModelUsage(tokens=Tokens())}
    assert event.own_model_usage is None


@pytest.mark.parametrize(
    "event",
    [
        {"type": "system", "subtype": "status", "status": "requesting"},
        {"type": "system", "subtype": "hook_started"},
        {"type": "tool_progress", "elapsed_time_seconds": 3},
        {"type": "user", "message": {"role": "user", "content": "a prompt"}},
        {"type": "stream_event", "event": {"type": "ping"}},
        {"type": "stream_event"},
        {"type": "assistant"},
        {"type": "assistant", "message": {"content": [{"type": "thinking"}, 3]}},
    ],
    ids=lambda e: f"{e['type']} {e.get('subtype', '')}".strip(),
)
def test_events_with_nothing_to_record_prove_that_the_run_lives(event: dict[str, object]):
    assert read(event) == [Alive()]


@pytest.mark.parametrize(
    "raw", [b"plain text", b"[1]", b"3", b'{"type": "new_thing"}', b'{"type": 7}', b"{}", b"\xff\xfe", b"[" * 100_000]
)
def test_what_is_no_known_event_is_kept_raw(raw: bytes):
    (event,) = StreamParser().feed(raw + b"\n")

    assert isinstance(event, Unreadable)
    assert event.size == len(raw)
    assert len(event.raw) <= 2_000


def test_blank_lines_say_nothing():
    assert StreamParser().feed(b"\n  \n\r\n") == []


def test_no_text_holds_what_a_database_refuses():
    raw = rb'{"type":"assistant","message":{"content":[{"type":"text","text":"a\ud800b\u0000c\ud83d\ude00\\u0000"}]}}'

    (event,) = StreamParser().feed(raw + b"\n")

    assert isinstance(event, Text)
    assert event.text == "a\ufffdb\ufffdc😀\\u0000"


def overlong(content: bytes, *, before: bytes = b"", after: bytes = b"") -> list[StreamEvent]:
    parser = StreamParser(line_limit=100_000)
    head = b'{"type":"user","message":{"content":[{"type":"tool_result",' + before + b'"content":"'
    return parser.feed(head + content * 40_000 + b'"' + after + b'}]},"parent_tool_use_id":"p1"}\n')


@pytest.mark.parametrize(
    ("before", "after"),
    [(b'"tool_use_id":"t1","is_error":true,', b""), (b"", b',"is_error":true,"tool_use_id":"t1"')],
    ids=["id before the output", "id after the output"],
)
def test_of_an_overlong_tool_result_the_ends_are_kept(before: bytes, after: bytes):
    (event,) = overlong(rb"a\n\"", before=before, after=after)

    assert isinstance(event, ToolResult)
    assert (event.tool_use_id, event.is_error, event.parent_tool_use_id) == ("t1", True, "p1")
    assert event.size > 200_000
    assert event.text.startswith('a\n"a\n"')
    assert 9_000 < len(event.text) <= 20_000


def test_a_tool_cannot_print_itself_an_identity():
    (event,) = overlong(rb"\"tool_use_id\":\"t1\" ")

    assert isinstance(event, Unreadable)


def test_another_overlong_line_is_unreadable_with_its_size():
    (event, after) = StreamParser(line_limit=1000).feed(b'{"type":"assistant"' + b" " * 5000 + b"}\n{}\n")

    assert isinstance(event, Unreadable)
    assert event.size == 5020
    assert isinstance(after, Unreadable)


def test_an_overlong_line_is_never_held_whole():
    parser = StreamParser()
    chunk = b"x" * 65_536
    tracemalloc.start()
    try:
        for _ in range(800):
            parser.feed(chunk)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    (event,) = parser.close()
    assert isinstance(event, Unreadable)
    assert event.size == 800 * 65_536
    assert most < 24 * 1024 * 1024


EXAMPLE = (
    b"".join(
        json.dumps(event).encode() + b"\n"
        for event in (
            partial(message_start("msg_1")),
            assistant({"type": "text", "text": "hällo"}),
            user({"type": "tool_result", "tool_use_id": "t", "content": "x" * 300}),
            {"type": "result", "result": "done"},
        )
    )
    + b"not json \xff\n{}"
)


@given(st.lists(st.integers(min_value=1, max_value=200), max_size=30))
def test_where_the_stream_is_cut_makes_no_difference(cuts: list[int]):
    whole, pieces = StreamParser(line_limit=250), StreamParser(line_limit=250)
    rest, events = EXAMPLE, []
    for cut in cuts:
        events += pieces.feed(rest[:cut])
        rest = rest[cut:]

    assert [*events, *pieces.feed(rest), *pieces.close()] == [*whole.feed(EXAMPLE), *whole.close()]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KINDS = ["system", "assistant", "user", "result", "stream_event", "rate_limit_event", "tool_progress", "other"]
KEYS = [
    "subtype",
    "message",
    "event",
    "usage",
    "content",
    "modelUsage",
    "rate_limit_info",
    "permission_denials",
    "errors",
]


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(KEYS), JSON), JSON)
def test_an_event_of_any_shape_is_survived(kind: str, fields: dict[str, object], inner: object):
    events = read(
        {**fields, "type": kind},
        {**fields, "type": kind, "message": {"id": "x", "content": [inner, {"type": "tool_use", "id": inner}]}},
        {"type": kind, "event": {"type": "message_start", "message": inner}},
        {"type": kind, "event": {"type": "message_delta", "usage": inner}},
    )

    assert len(events) >= 4


@given(st.binary(max_size=2_000), st.integers(min_value=1, max_value=100))
def test_any_bytes_are_survived(raw: bytes, limit: int):
    parser = StreamParser(line_limit=limit)

    for event in [*parser.feed(raw), *parser.close()]:
        json.dumps(str(event)).encode()


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(min_value=1, max_value=60))
def test_lines_are_cut_like_a_plain_split(chunks: list[bytes], limit: int):
    cutter = LineCutter(limit=limit)

    lines = [line for chunk in chunks for line in cutter.feed(chunk)]
    last = cutter.close()

    expected = [line for line in b"".join(chunks).split(b"\n") if line]
    got = [*lines, *([last] if last is not None else [])]
    assert [line.size if isinstance(line, Overlong) else line for line in got] == [
        len(line) if len(line) > limit else line for line in expected
    ]
    for line, whole in zip(got, expected, strict=True):
        if isinstance(line, Overlong):
            assert line.tail == whole[-KEPT_TAIL:]
