"""What a run has said, summed up: calls once, tools by what became of them, ids in the order they were learned."""

from supervisor.claude.gather import Gatherer
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
    Transcript,
    Unreadable,
)
from supervisor.model.session import Tokens


def gathered(*events: StreamEvent) -> Transcript:
    gatherer = Gatherer()
    for event in events:
        gatherer.add(event)
    return gatherer.transcript()


def usage(message_id: str, output: int, *, final: bool) -> CallUsage:
    tokens = Tokens(input=10, output=output)
    return CallUsage(message_id=message_id, model="m", tokens=tokens, final=final, main_loop=True)


def text(said: str, *, message_id: str | None = "m1", parent: str | None = None, model: str = "m") -> Text:
    return Text(message_id=message_id, model=model, text=said, parent_tool_use_id=parent)


def call(call_id: str, tool: str = "Bash", **given: object) -> ToolUse:
    return ToolUse(message_id="m1", model="m", tool_use_id=call_id, name=tool, input=given, parent_tool_use_id=None)


def answer(call_id: str, said: str = "fine", *, is_error: bool = False) -> ToolResult:
    return ToolResult(tool_use_id=call_id, text=said, size=len(said), is_error=is_error, parent_tool_use_id=None)


def result(session_id: str = "s1", *, denials: int = 0) -> Result:
    return Result(
        session_id=session_id,
        subtype="success",
        is_error=False,
        text="",
        structured_output=None,
        stop_reason=None,
        terminal_reason=None,
        api_error_status=None,
        num_turns=1,
        total_cost_usd=None,
        usage=None,
        model_usage={},
        own_model_usage=None,
        permission_denials=denials,
        errors=(),
    )


def init(session_id: str) -> Init:
    return Init(session_id=session_id, model="m", version=None, tools=(), cwd=None)


DENIED = "Permission to use Bash with command rm has been denied."
NOT_GRANTED = "Claude requested permissions to write to /tmp/x, but you haven't granted it yet."


def test_nothing_gathered_is_an_empty_transcript():
    assert gathered() == Transcript()


def test_a_call_is_counted_once_and_its_final_word_wins():
    gatherer = Gatherer()
    for event in (
        usage("a", 1, final=False),
        usage("b", 1, final=False),
        usage("a", 50, final=True),
        usage("a", 1, final=False),
    ):
        gatherer.add(event)

    assert [(c.message_id, c.tokens.output) for c in gatherer.transcript().calls] == [("a", 50), ("b", 1)]
    assert gatherer.tokens_so_far == Tokens(input=20, output=51)


def test_messages_are_counted_by_id_and_without_those_of_the_cli_itself():
    transcript = gathered(
        text("one"),
        text("two"),
        call("t1"),
        text("three", message_id="m2"),
        text("an error", message_id="m3", model="<synthetic>"),
    )

    assert transcript.messages == 2
    assert transcript.last_text == "three"


def test_the_last_text_is_the_main_loops():
    assert gathered(text("mine"), text("a helper's", parent="t1")).last_text == "mine"


def test_a_report_given_as_a_tool_call_is_no_tool_call():
    transcript = gathered(call("t1", "StructuredOutput", a=1), answer("t1"), call("t2", "StructuredOutput", a=2))

    assert transcript.last_structured == {"a": 2}
    assert transcript.tools_asked == ()
    assert transcript.tools_executed == 0


def test_without_a_result_refusals_are_told_by_their_wording():
    transcript = gathered(
        call("t1"),
        call("t2"),
        call("t3"),
        answer("t1"),
        answer("t2", DENIED, is_error=True),
        answer("t3", NOT_GRANTED, is_error=True),
    )

    assert len(transcript.tools_asked) == 3
    assert (transcript.tools_executed, transcript.tools_refused) == (1, 2)


def test_a_result_has_the_last_word_on_refusals():
    transcript = gathered(answer("t1", "some new wording", is_error=True), answer("t2"), result(denials=1))

    assert (transcript.tools_executed, transcript.tools_refused) == (1, 1)


def test_a_faulty_call_never_ran_but_a_cancelled_one_may_have():
    transcript = gathered(
        answer("t1", "<tool_use_error>InputValidationError: no command</tool_use_error>", is_error=True),
        answer("t2", "<tool_use_error>Cancelled: parallel tool call errored</tool_use_error>", is_error=True),
        answer("t3", "Exit code 2", is_error=True),
    )

    assert (transcript.tools_executed, transcript.tools_refused) == (2, 0)


def test_a_tool_that_only_prints_a_refusal_was_executed():
    assert gathered(answer("t1", DENIED)).tools_executed == 1


def test_session_ids_end_with_the_newest_word():
    assert gathered(init("a"), init("b"), result("b"), init("a")).session_ids == ("b", "a")
    assert gathered(init("a"), init("b")).session_id == "b"


def test_the_rest_is_kept_or_counted():
    retry = ApiRetry(attempt=1, max_retries=10, error_status=529, delay_seconds=1.0, error="overloaded")
    limits = [RateLimit(status=s, resets_at=1, kind=None) for s in ("allowed", "rejected")]

    transcript = gathered(init("a"), init("b"), retry, *limits, Alive(), Unreadable(why="", raw="", size=0))

    assert transcript.init == init("a")
    assert transcript.retries == (retry,)
    assert transcript.rate_limit == limits[1]
    assert transcript.unreadable == 1
