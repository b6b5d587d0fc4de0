"""Scenario files: what they mean, and what an operator is told about a wrong one."""

from pathlib import Path

import pytest

from supervisor.errors import ConfigError
from supervisor.model.session import Tokens
from supervisor.rehearsal.scenario import Fault, Scenario, ToolCall, Turn, UsageLimit
from supervisor.rehearsal.scenario_file import builtin_scenarios, find_scenario, load_scenario, parse_scenario


def _turn(body: str) -> str:
    """A scenario of one turn with this body."""
    return f'title = "One turn"\n[[tier]]\ntier = 2\n[[tier.turn]]\n{body}\n'


def _only_turn(body: str) -> Turn:
    (turn,) = parse_scenario(_turn(body), name="one.toml").turns(2, 1)
    return turn


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param('text = "Hello"', Turn(text="Hello"), id="text"),
        pytest.param(
            'tools = [{ name = "Bash", input = { command = "id" } }, { name = "Read", input = { file_path = "/x" } }]',
            Turn(
                tools=(
                    ToolCall(name="Bash", input={"command": "id"}),
                    ToolCall(name="Read", input={"file_path": "/x"}),
                )
            ),
            id="parallel tools",
        ),
        pytest.param(
            'text = "x"\ndelay_seconds = 1\nrepeat = true',
            Turn(text="x", delay_seconds=1.0, repeat=True),
            id="delay and repeat",
        ),
        pytest.param(
            'text = "x"\nusage = { input = 10, output = 2, cache_read = 3, cache_write = 4 }',
            Turn(text="x", usage=Tokens(input=10, output=2, cache_read=3, cache_write=4)),
            id="usage",
        ),
        pytest.param(
            'text = "x"\nerror = { status = 529, type = "busy", message = "Busy", times = 2, retry_after = 0 }',
            Turn(
                text="x",
                error=Fault(status=529, type="busy", message="Busy", times=2, retry_after=0.0),
            ),
            id="error before the answer",
        ),
        pytest.param(
            "usage_limit = { resets_in_seconds = 3600 }",
            Turn(usage_limit=UsageLimit(resets_in_seconds=3600)),
            id="usage limit",
        ),
        pytest.param(
            '[tier.turn.report]\nsummary = "Fine"\nescalation = { needed = false }',
            Turn(report={"summary": "Fine", "escalation": {"needed": False}}),
            id="report",
        ),
    ],
)
def test_a_turn_says_what_the_model_answers(body: str, expected: Turn) -> None:
    assert _only_turn(body) == expected


def test_an_error_that_never_ends_needs_no_answer_after_it() -> None:
    fault = _only_turn("error = { status = 500, times = 0 }").error
    assert fault is not None
    assert (fault.status, fault.times, fault.type) == (500, 0, "api_error")


def test_later_attempts_of_a_tier_may_have_turns_of_their_own() -> None:
    scenario = parse_scenario(
        """
        title = "Second chance"
        [[tier]]
        tier = 1
        [[tier.turn]]
        text = "first"
        [[tier]]
        tier = 1
        attempt = 3
        [[tier.turn]]
        text = "third"
        """,
        name="attempts.toml",
    )

    assert [scenario.turns(1, attempt)[0].text for attempt in (1, 2, 3, 4)] == ["first", "first", "third", "third"]
    assert scenario.turns(9, 1) == ()


def test_placeholders_are_filled_in_every_text_and_nothing_else_in_braces_is_touched() -> None:
    body = """
    text = "in {dir}"
    tools = [{ name = "Bash", input = { command = "awk '{print $1}' {dir}/a ${dir} {other}" } }]
    """
    (turn,) = parse_scenario(_turn(body), name="p.toml", placeholders={"dir": "/tmp/site"}).turns(2, 1)

    assert turn.text == "in /tmp/site"
    assert turn.tools[0].input["command"] == "awk '{print $1}' /tmp/site/a ${dir} {other}"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(_turn("texts = 'x'\ntext = 'y'"), "tier 2, turn 1: texts is not a known key, did you mean text?"),
        pytest.param(_turn("text = 3"), "tier 2, turn 1: text must be text"),
        pytest.param(_turn("text = ' '"), "tier 2, turn 1: text must not be empty"),
        pytest.param(_turn("delay_seconds = 1"), "tier 2, turn 1: has no answer: give text"),
        pytest.param(_turn("error = { status = 500 }"), "tier 2, turn 1: has no answer: give text"),
        pytest.param(_turn("text = 'x'\ndelay_seconds = -1"), "delay_seconds must be a number of seconds, 0 or more"),
        pytest.param(_turn("text = 'x'\ndelay_seconds = nan"), "delay_seconds must be a number of seconds, 0 or more"),
        pytest.param(_turn("text = 'x'\nrepeat = 1"), "tier 2, turn 1: repeat must be true or false"),
        pytest.param(_turn("tools = 'Bash'"), "tier 2, turn 1: tools must be a list of tables"),
        pytest.param(_turn("tools = ['Bash']"), "tier 2, turn 1: tools[0] must be a table"),
        pytest.param(_turn("tools = [{ input = {} }]"), "tier 2, turn 1: tools[0].name is missing"),
        pytest.param(_turn("tools = [{ name = 'Bash' }]"), "tier 2, turn 1: tools[0].input is missing"),
        pytest.param(_turn("tools = [{ name = 'Bash', input = 1 }]"), "tools[0].input must be a table"),
        pytest.param(
            _turn("tools = [{ name = 'A', input = { on = [2026-01-01] } }]"),
            "tier 2, turn 1: tools[0].input.on[0] cannot be sent as JSON",
        ),
        pytest.param(_turn("text = 'x'\nusage = { output = 1 }"), "tier 2, turn 1: usage.input is missing"),
        pytest.param(_turn("text = 'x'\nusage = { input = -1, output = 1 }"), "usage.input must be 0 or more, not -1"),
        pytest.param(
            _turn("text = 'x'\nusage = { input = 1, output = 1, price = 1 }"),
            "tier 2, turn 1: usage.price is not a known key; known here: cache_read, cache_write, input, output",
        ),
        pytest.param(_turn("text = 'x'\nerror = { status = 200 }"), "error.status must be 0 (close the connection)"),
        pytest.param(_turn("text = 'x'\nerror = { status = 999 }"), "error.status must be between 0 and 599, not 999"),
        pytest.param(_turn("text = 'x'\nerror = { status = true }"), "error.status must be a whole number"),
        pytest.param(
            _turn("text = 'x'\nusage_limit = { resets_in_seconds = 1 }"),
            "tier 2, turn 1: has a usage_limit and something else",
        ),
        pytest.param(_turn("usage_limit = {}"), "tier 2, turn 1: usage_limit.resets_in_seconds is missing"),
        pytest.param(
            _turn("tools = [{ name = 'A', input = {} }]\nreport = { summary = 'x' }"),
            "tier 2, turn 1: has tools and a report",
        ),
        pytest.param(_turn("report = 'fine'"), "tier 2, turn 1: report must be a table"),
        pytest.param(
            _turn("text = 'x'\nrepeat = true\n[[tier.turn]]\ntext = 'y'"),
            "tier 2: turn 1 has repeat, but turns follow it",
        ),
        pytest.param('title = "x"', "there is no [[tier]]"),
        pytest.param('title = "x"\n[[tier]]\ntier = 1', "tier 1: there is no [[tier.turn]]"),
        pytest.param('title = "x"\n[[tier]]\n[[tier.turn]]\ntext = "x"', "tier block 1: tier is missing"),
        pytest.param('title = "x"\n[[tier]]\ntier = 0\n[[tier.turn]]\ntext = "x"', "tier must be 1 or more, not 0"),
        pytest.param(
            'title = "x"\n[[tier]]\ntier = 1\nattempt = 2\n[[tier.turn]]\ntext = "x"',
            "tier 1 has no turns for its first attempt",
        ),
        pytest.param(
            'title = "x"\n' + '[[tier]]\ntier = 1\n[[tier.turn]]\ntext = "x"\n' * 2,
            "tier 1 is given twice for attempt 1",
        ),
        pytest.param('[[tier]]\ntier = 1\n[[tier.turn]]\ntext = "x"', "title is missing"),
        pytest.param('title = "x"\ntier = 3', "tier must be a list of tables"),
        pytest.param('title = "x', "is not valid TOML"),
    ],
)
def test_a_wrong_scenario_is_refused_with_its_place(content: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_scenario(content, name="ladder.toml")
    assert str(refused.value).startswith("ladder.toml ")
    assert problem in str(refused.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_scenario('titel = "x"\n[[tier]]\ntier = 1\n[[tier.turn]]\ntext = 3\nrepeat = 4', name="ladder.toml")
    assert str(refused.value).splitlines() == [
        "ladder.toml has 4 problems:",
        "  title is missing",
        "  tier 1, turn 1: text must be text",
        "  tier 1, turn 1: repeat must be true or false",
        "  titel is not a known key, did you mean title?",
    ]


def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    for path in (binary, tmp_path / "missing.toml"):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_scenario(path)


@pytest.mark.parametrize("name", ["demo", "healthy", "unresolved", "endless"])
def test_the_shipped_scenarios_are_valid(name: str) -> None:
    assert isinstance(load_scenario(builtin_scenarios()[name]), Scenario)


def test_a_scenario_is_found_by_its_name_or_its_path(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.touch()
    assert find_scenario("demo") == builtin_scenarios()["demo"]
    assert find_scenario(str(own)) == own
    with pytest.raises(ConfigError, match=r"There is no scenario dmeo\. .*demo, endless, healthy, unresolved"):
        find_scenario("dmeo")
