"""The scripted API as a plain HTTP client sees it."""

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from supervisor.model.session import Tokens
from supervisor.rehearsal.api import ScriptedApi
from supervisor.rehearsal.http_wire import BODY_LIMIT
from supervisor.rehearsal.scenario_file import parse_scenario

Reply = tuple[int, dict[str, str], bytes]


def _api(turns: str, **options: Any) -> ScriptedApi:
    """A server whose tier 1 plays these turns."""
    scenario = parse_scenario(f'title = "Test"\n[[tier]]\ntier = 1\n{turns}', name="test.toml")
    return ScriptedApi(scenario, **options)


def _body(session_id: str, **changes: Any) -> bytes:
    document = {
        "model": "claude-test",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hello"}],
        "tools": [{"name": "Bash"}],
        "metadata": {"user_id": json.dumps({"device_id": "d", "session_id": session_id})},
        **changes,
    }
    return json.dumps(document).encode()


class Client:
    """One kept-alive connection."""

    def __init__(self, api: ScriptedApi) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(api.base_url).netloc, timeout=60)

    async def send(self, method: str, path: str, body: bytes = b"") -> Reply:
        def exchange() -> Reply:
            self._connection.request(method, path, body)
            response = self._connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()

        return await asyncio.to_thread(exchange)

    async def ask(self, session_id: str, **changes: Any) -> Reply:
        return await self.send("POST", "/v1/messages?beta=true", _body(session_id, **changes))

    def close(self) -> None:
        self._connection.close()


def _played(api: ScriptedApi, talk: Callable[[Client, str], Any], *, announce: bool = True) -> Any:
    """Run one conversation with the server, in a session that is announced for tier 1."""

    async def run() -> Any:
        async with api:
            session_id = str(uuid4())
            if announce:
                api.expect(session_id, 1)
            client = Client(api)
            try:
                return await talk(client, session_id)
            finally:
                client.close()

    return asyncio.run(run())


def _events(stream: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in stream.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        yield name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_a_streamed_answer_carries_text_and_tool_calls_and_its_true_usage_at_the_end() -> None:
    api = _api(
        """
        [[tier.turn]]
        text = "I look."
        tools = [{ name = "Bash", input = { command = "id" } }]
        usage = { input = 100, output = 20, cache_read = 30, cache_write = 40 }
        """
    )

    status, headers, stream = _played(api, lambda client, session: client.ask(session, stream=True))
    events = list(_events(stream))

    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert [name for name, _ in events] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_stop") * 2,
        "message_delta",
        "message_stop",
    ]
    assert all(event["type"] == name for name, event in events)
    started = events[0][1]["message"]
    assert started["model"] == "claude-test"
    assert started["usage"]["output_tokens"] == 1
    assert started["usage"]["cache_creation"]["ephemeral_5m_input_tokens"] == 40
    assert events[2][1]["delta"] == {"type": "text_delta", "text": "I look."}
    assert events[4][1]["content_block"]["name"] == "Bash"
    assert json.loads(events[5][1]["delta"]["partial_json"]) == {"command": "id"}
    assert events[-2][1]["delta"]["stop_reason"] == "tool_use"
    assert events[-2][1]["usage"] == {
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_input_tokens": 30,
        "cache_creation_input_tokens": 40,
    }


def test_a_request_that_does_not_stream_gets_one_document() -> None:
    api = _api('[[tier.turn]]\ntext = "Done."\nusage = { input = 5, output = 2 }')

    status, headers, body = _played(api, lambda client, session: client.ask(session))
    message = json.loads(body)

    assert (status, headers["content-type"]) == (200, "application/json")
    assert message["content"] == [{"type": "text", "text": "Done."}]
    assert message["stop_reason"] == "end_turn"
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (5, 2)


def test_turns_follow_one_another_on_a_kept_connection_with_ids_never_used_twice_and_then_end() -> None:
    api = _api("[[tier.turn]]\ntools = [{ name = 'A', input = {} }, { name = 'B', input = {} }]\n" * 2)

    async def talk(client: Client, session: str) -> list[dict[str, Any]]:
        return [json.loads((await client.ask(session))[2]) for _ in range(3)]

    first, second, third = _played(api, talk)

    tool_ids = [block["id"] for message in (first, second) for block in message["content"]]
    assert len(set(tool_ids)) == 4
    assert len({message["id"] for message in (first, second, third)}) == 3
    assert third["content"] == [{"type": "text", "text": "The scenario has no further turn for tier 1."}]


def test_a_repeated_turn_is_answered_for_ever() -> None:
    api = _api('[[tier.turn]]\ntext = "once"\n[[tier.turn]]\ntext = "again"\nrepeat = true')

    async def talk(client: Client, session: str) -> list[str]:
        return [json.loads((await client.ask(session))[2])["content"][0]["text"] for _ in range(5)]

    assert _played(api, talk) == ["once", "again", "again", "again", "again"]


REPORT = '[[tier.turn]]\ntext = "So:"\n[tier.turn.report]\nsummary = "Fine"\nescalation = { needed = false }'


def test_a_report_is_a_structured_output_call_where_the_request_offers_one() -> None:
    tools = [{"name": "Bash"}, {"name": "StructuredOutput"}]
    _, _, body = _played(_api(REPORT), lambda client, session: client.ask(session, tools=tools))
    text, call = json.loads(body)["content"]
    assert text["text"] == "So:"
    assert (call["name"], call["input"]) == ("StructuredOutput", {"summary": "Fine", "escalation": {"needed": False}})


def test_a_report_is_a_fenced_block_where_the_request_offers_no_structured_output() -> None:
    _, _, body = _played(_api(REPORT), lambda client, session: client.ask(session))
    (block,) = json.loads(body)["content"]
    before, fenced, after = block["text"].split("```")
    assert (before, after) == ("So:\n\n", "")
    assert json.loads(fenced.removeprefix("json")) == {"summary": "Fine", "escalation": {"needed": False}}


def test_errors_come_as_often_as_written_and_then_the_answer() -> None:
    fault = '{ status = 529, type = "overloaded_error", message = "Busy", times = 2, retry_after = 1.5 }'
    api = _api(f'[[tier.turn]]\ntext = "At last."\nerror = {fault}')

    async def talk(client: Client, session: str) -> list[Reply]:
        return [await client.ask(session) for _ in range(3)]

    first, second, third = _played(api, talk)

    assert [first[0], second[0], third[0]] == [529, 529, 200]
    assert first[1]["retry-after"] == "1.5"
    assert json.loads(first[2]) == {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}
    assert [call.status for call in api.calls] == [529, 529, 200]
    assert [call.tokens.total for call in api.calls][:2] == [0, 0]


def test_an_error_with_status_zero_closes_the_connection_without_an_answer() -> None:
    api = _api('[[tier.turn]]\ntext = "x"\nerror = { status = 0 }')

    async def talk(client: Client, session: str) -> Reply:
        with pytest.raises(http.client.RemoteDisconnected):
            await client.ask(session)
        return await client.ask(session)

    assert _played(api, talk)[0] == 200
    assert [call.status for call in api.calls] == [0, 200]


def test_a_usage_limit_names_the_time_it_ends_for_as_long_as_it_is_asked() -> None:
    api = _api("[[tier.turn]]\nusage_limit = { resets_in_seconds = 90 }", clock=lambda: 1_000.5)

    async def talk(client: Client, session: str) -> list[Reply]:
        return [await client.ask(session) for _ in range(2)]

    for status, headers, _ in _played(api, talk):
        assert status == 429
        assert headers["anthropic-ratelimit-unified-status"] == "rejected"
        assert headers["anthropic-ratelimit-unified-reset"] == "1090"
        assert headers["retry-after"] == "90"


def test_a_side_question_gets_a_word_takes_no_turn_and_is_on_the_bill() -> None:
    api = _api('[[tier.turn]]\ntext = "Main."\nusage = { input = 7, output = 3 }', keep_bodies=True)

    async def talk(client: Client, session: str) -> tuple[str, Reply, Reply]:
        side = await client.ask(session, tools=[], model="claude-small")
        return session, side, await client.ask(session)

    session, side, main = _played(api, talk)

    assert side[0] == 200
    assert json.loads(main[2])["content"][0]["text"] == "Main."
    assert [call.side for call in api.calls] == [True, False]
    assert [call.tier for call in api.calls] == [1, 1]
    assert api.account(session) == {
        "claude-small": api.calls[0].tokens,
        "claude-test": Tokens(input=7, output=3),
    }
    assert api.calls[0].body is not None
    assert api.calls[0].body["model"] == "claude-small"


def test_usage_that_the_scenario_leaves_out_is_estimated_from_the_sizes() -> None:
    api = _api('[[tier.turn]]\ntext = "Short."')
    _played(api, lambda client, session: client.ask(session, padding="x" * 4000))
    (call,) = api.calls
    assert call.tokens.input == call.request_bytes // 4
    assert 1 <= call.tokens.output < 50
    assert call.body is None


def test_the_fixed_part_of_a_request_is_its_size_without_the_conversation() -> None:
    api = _api('[[tier.turn]]\ntext = "x"\nrepeat = true')

    async def talk(client: Client, session: str) -> None:
        await client.ask(session)
        await client.ask(session, messages=[{"role": "user", "content": "much longer " * 100}])
        await client.ask(session, system="ü" * 50)

    _played(api, talk)
    short, long, system = api.calls

    assert short.fixed_bytes == long.fixed_bytes < short.request_bytes < long.request_bytes
    assert system.fixed_bytes == short.fixed_bytes + len(',"system":""') + 100


def test_a_session_that_is_announced_again_plays_the_next_attempt_from_its_first_turn() -> None:
    api = _api('[[tier.turn]]\ntext = "one"\n[[tier]]\ntier = 1\nattempt = 2\n[[tier.turn]]\ntext = "two"')

    async def talk(client: Client, session: str) -> list[str]:
        texts = []
        for _ in range(3):
            texts.append(json.loads((await client.ask(session))[2])["content"][0]["text"])
            api.expect(session, 1)
        return texts

    assert _played(api, talk) == ["one", "two", "two"]
    assert [call.attempt for call in api.calls] == [1, 2, 3]


def test_a_session_nobody_announced_is_refused() -> None:
    api = _api('[[tier.turn]]\ntext = "x"')
    status, _, body = _played(api, lambda client, session: client.ask(session), announce=False)
    assert status == 400
    assert "Nobody announced the session" in json.loads(body)["error"]["message"]


def test_sessions_nobody_announced_take_the_fallback_tiers_in_order_of_appearance() -> None:
    api = _api('[[tier.turn]]\ntext = "x"', fallback=(1, 2))

    async def talk(client: Client, session: str) -> None:
        for asking in ("a", "b", "a", "c"):
            await client.ask(asking)

    _played(api, talk, announce=False)
    assert [(call.session_id, call.tier, call.attempt) for call in api.calls] == [
        ("a", 1, 1),
        ("b", 2, 1),
        ("a", 1, 1),
        ("c", 2, 2),
    ]


def test_the_session_is_also_found_in_the_form_older_clis_send() -> None:
    api = _api('[[tier.turn]]\ntext = "x"')
    old_form = "user_abc_account__session_{}"

    async def talk(client: Client, session: str) -> Reply:
        return await client.ask(session, metadata={"user_id": old_form.format(session)})

    assert _played(api, talk)[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        pytest.param("GET", "/", b"", 404, id="another path"),
        pytest.param("GET", "/v1/messages", b"", 404, id="another method"),
        pytest.param("HEAD", "/", b"", 404, id="head"),
        pytest.param("POST", "/v1/messages/count_tokens?beta=true", b"{}", 404, id="counting tokens"),
        pytest.param("POST", "/v1/messages", b"nonsense", 400, id="not JSON"),
        pytest.param("POST", "/v1/messages", b"[]", 400, id="not an object"),
        pytest.param("POST", "/v1/messages", b'{"model": "m"}', 400, id="no messages"),
        pytest.param("POST", "/v1/messages", b'{"messages": []}', 400, id="no model"),
    ],
)
def test_anything_else_is_refused_and_the_connection_stays_usable(
    method: str, path: str, body: bytes, status: int
) -> None:
    async def talk(client: Client, session: str) -> tuple[int, int]:
        return (await client.send(method, path, body))[0], (await client.ask(session))[0]

    assert _played(_api('[[tier.turn]]\ntext = "x"'), talk) == (status, 200)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"nonsense\r\n\r\n", 400, id="not HTTP"),
        pytest.param(b"POST /v1/messages HTTP/1.1\r\ncontent-length: many\r\n\r\n", 400, id="no number"),
        pytest.param(b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411, id="chunked"),
        pytest.param(
            f"POST /v1/messages HTTP/1.1\r\ncontent-length: {BODY_LIMIT + 1}\r\n\r\n".encode(), 413, id="too big"
        ),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 300 + b"\r\n", 431, id="too many headers"),
        pytest.param(b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", 414, id="too long a line"),
    ],
)
def test_a_malformed_request_is_refused_and_its_connection_closed(sent: bytes, status: int) -> None:
    async def run() -> bytes:
        async with _api('[[tier.turn]]\ntext = "x"') as api:
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(api.base_url).port)
            writer.write(sent)
            head = await asyncio.wait_for(reader.readline(), 60)
            writer.close()
            return head

    assert asyncio.run(run()).split()[1] == str(status).encode()


def test_a_request_of_many_megabytes_is_answered() -> None:
    api = _api('[[tier.turn]]\ntext = "x"')
    large = [{"role": "user", "content": "x" * 20_000_000}]
    assert _played(api, lambda client, session: client.ask(session, messages=large))[0] == 200
    assert api.calls[0].request_bytes > 20_000_000 > 1_000 > api.calls[0].fixed_bytes


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the server offers no event to wait for
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"POST /v1/mess", id="in the request line"),
        pytest.param(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 100\r\n\r\n{", id="in the body"),
    ],
)
def test_a_client_that_leaves_halfway_does_no_harm(sent: bytes) -> None:
    async def talk(client: Client, session: str) -> Reply:
        _, writer = await asyncio.open_connection("127.0.0.1", client._connection.port)
        writer.write(sent)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        return await client.ask(session)

    assert _played(_api('[[tier.turn]]\ntext = "x"'), talk)[0] == 200


def test_a_client_that_leaves_while_it_waits_is_not_billed() -> None:
    async def run() -> None:
        async with _api('[[tier.turn]]\ntext = "x"\ndelay_seconds = 0.2') as api:
            api.expect("s", 1)
            body = _body("s")
            _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(api.base_url).port)
            writer.write(f"POST /v1/messages HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            await _until(lambda: len(api.calls) == 1)
            assert api.calls[0].status == 0
            assert api.account("s") == {}

    asyncio.run(run())


def test_leaving_the_server_ends_waiting_connections_at_once() -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            async with _api('[[tier.turn]]\ntext = "x"\ndelay_seconds = 3600') as api:
                api.expect("s", 1)
                body = _body("s")
                reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(api.base_url).port)
                writer.write(f"POST /v1/messages HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()

    asyncio.run(run())


def test_the_address_is_known_only_while_serving() -> None:
    with pytest.raises(RuntimeError, match="before it is entered"):
        _ = _api('[[tier.turn]]\ntext = "x"').base_url
