"""An operator's scenario file → ``Scenario``, all its problems at once. Reads files.

Called from ``opsladder demo``, ``opsladder rehearse`` and the tests.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from supervisor.errors import ConfigError
from supervisor.model.session import Tokens
from supervisor.rehearsal.scenario import Fault, Scenario, Script, ToolCall, Turn, UsageLimit
from supervisor.rehearsal.toml_table import Table

_SHIPPED = Path(__file__).resolve().parent / "scenarios"
_HIGHEST_STATUS = 599


def builtin_scenarios() -> dict[str, Path]:
    """The scenarios that come with opsladder, by name."""
    return {path.stem: path for path in sorted(_SHIPPED.glob("*.toml"))}


def find_scenario(name_or_path: str) -> Path:
    """A built-in scenario by its name, else a file."""
    shipped = builtin_scenarios()
    if name_or_path in shipped:
        return shipped[name_or_path]
    path = Path(name_or_path)
    if not path.is_file():
        raise ConfigError(
            f"There is no scenario {name_or_path}.", remedy=f"Give a file, or one of: {', '.join(sorted(shipped))}."
        )
    return path


def load_scenario(path: Path, *, placeholders: Mapping[str, str] | None = None) -> Scenario:
    """Read a scenario file; ``{name}`` in its texts becomes the placeholder's value."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"The scenario {path} cannot be read: {problem}.") from problem
    return parse_scenario(content, name=str(path), placeholders=placeholders)


def parse_scenario(content: str, *, name: str, placeholders: Mapping[str, str] | None = None) -> Scenario:
    """Read a scenario from its text; ``name`` is how problems call it."""
    try:
        document = tomllib.loads(content)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{name} is not valid TOML: {problem}.") from problem
    problems: list[str] = []
    scenario = _scenario(Table(_filled_table(document, placeholders or {}), problems=problems))
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ConfigError("\n  ".join([f"{name} has {count}:", *problems]))
    return scenario


def _filled_table(table: Mapping[str, object], placeholders: Mapping[str, str]) -> Mapping[str, object]:
    if not placeholders:
        return table
    # Only the given names, and never after a dollar: awk '{print $1}' and ${HOME} have to reach the shell as written.
    pattern = re.compile(r"(?<!\$)\{(" + "|".join(map(re.escape, placeholders)) + r")\}")

    def filled(value: object) -> object:
        if isinstance(value, str):
            return pattern.sub(lambda match: placeholders[match[1]], value)
        if isinstance(value, list):
            return [filled(item) for item in value]
        if isinstance(value, Mapping):
            return {key: filled(item) for key, item in value.items()}
        return value

    return {key: filled(value) for key, value in table.items()}


def _scenario(table: Table) -> Scenario:
    title = table.required_text("title")
    scripts = tuple(_script(tier, number) for number, tier in enumerate(table.tables("tier"), start=1))
    table.refuse_unknown_keys()
    if not scripts:
        table.complain("there is no [[tier]]: a scenario has at least one")
    # A tier or attempt that could not be read is 0 and has been complained about.
    played = [(script.tier, script.attempt) for script in scripts if script.tier and script.attempt]
    for tier, attempt in sorted({pair for pair in played if played.count(pair) > 1}):
        table.complain(f"tier {tier} is given twice for attempt {attempt}: number the later one with attempt")
    for tier in sorted({tier for tier, _ in played}):
        if (tier, 1) not in played:
            table.complain(f"tier {tier} has no turns for its first attempt: add a [[tier]] without attempt")
    return Scenario(title=title, scripts=scripts)


def _script(table: Table, number: int) -> Script:
    table.move_to(f"tier block {number}")
    tier = table.whole("tier", minimum=1)
    attempt = table.whole("attempt", minimum=1, default=1)
    place = f"tier {tier}" if tier else f"tier block {number}"
    if attempt > 1:
        place = f"{place}, attempt {attempt}"
    table.move_to(place)
    rows = table.tables("turn")
    table.refuse_unknown_keys()
    if not rows:
        table.complain("there is no [[tier.turn]]: a tier has at least one")
    turns = tuple(_turn(row, f"{place}, turn {index}") for index, row in enumerate(rows, start=1))
    for index, turn in enumerate(turns[:-1], start=1):
        if turn.repeat:
            table.complain(f"turn {index} has repeat, but turns follow it that would never be played")
    return Script(tier=tier, attempt=attempt, turns=turns)


def _turn(table: Table, place: str) -> Turn:
    table.move_to(place)
    turn = Turn(
        text=table.text("text"),
        tools=tuple(_tool(tool) for tool in table.tables("tools")),
        report=table.document("report"),
        delay_seconds=table.seconds("delay_seconds") or 0.0,
        usage=_usage(table.table("usage")),
        error=_fault(table.table("error")),
        usage_limit=_usage_limit(table.table("usage_limit")),
        repeat=table.flag("repeat"),
    )
    table.refuse_unknown_keys()
    answers = table.has("text") or table.has("tools") or table.has("report")
    if table.has("tools") and table.has("report"):
        table.complain("has tools and a report: the report ends the run, so give it a turn of its own")
    if table.has("usage_limit") and (answers or table.has("error")):
        table.complain("has a usage_limit and something else: a usage limit is the whole answer")
    if not answers and not table.has("usage_limit") and not (turn.error and turn.error.times == 0):
        table.complain("has no answer: give text, tools, a report, a usage_limit, or an error with times = 0")
    return turn


def _tool(table: Table) -> ToolCall:
    if not table.has("input"):
        table.complain("is missing", key="input")
    call = ToolCall(name=table.required_text("name"), input=table.document("input") or {})
    table.refuse_unknown_keys()
    return call


def _usage(table: Table | None) -> Tokens | None:
    if table is None:
        return None
    usage = Tokens(
        input=table.whole("input", minimum=0),
        output=table.whole("output", minimum=0),
        cache_read=table.whole("cache_read", minimum=0, default=0),
        cache_write=table.whole("cache_write", minimum=0, default=0),
    )
    table.refuse_unknown_keys()
    return usage


def _fault(table: Table | None) -> Fault | None:
    if table is None:
        return None
    fault = Fault(
        status=table.whole("status", minimum=0, maximum=_HIGHEST_STATUS),
        type=table.text("type") or "api_error",
        message=table.text("message") or "The scenario makes this request fail.",
        times=table.whole("times", minimum=0, default=1),
        retry_after=table.seconds("retry_after"),
    )
    if 0 < fault.status < 400:
        table.complain(f"must be 0 (close the connection) or an error status, not {fault.status}", key="status")
    table.refuse_unknown_keys()
    return fault


def _usage_limit(table: Table | None) -> UsageLimit | None:
    if table is None:
        return None
    limit = UsageLimit(resets_in_seconds=table.whole("resets_in_seconds", minimum=0))
    table.refuse_unknown_keys()
    return limit
