"""The tree that grows on a terminal."""

import io
import re
from dataclasses import replace

import pytest
from make import FINE, NEEDED, NOW, a_chain, a_session
from rich.cells import cell_len
from rich.console import Console

from supervisor.cli.live import live_tree
from supervisor.cli.plain import PlainLines
from supervisor.cli.tree import chain_tree
from supervisor.model.cycle import CycleStatus
from supervisor.model.outcome import Failure
from supervisor.model.progress import CycleEnded, CycleStarted, Notice, TierActivity, TierEnded, TierStarted
from supervisor.model.session import CostBasis, SessionStatus, Tokens
from supervisor.model.step import Finish
from tests.cli.command_line import OPSLADDER, CommandLine
from tests.cli.conftest import HOSTILE
from tests.cli.terminal import drawn, run_on_terminal


def test_the_demo_draws_its_tree_in_place_and_leaves_it_on_the_screen(on_real_cli: CommandLine) -> None:
    seen = run_on_terminal(
        [str(OPSLADDER), "demo"],
        size=(80, 24),
        env=on_real_cli.environment(TERM="xterm-256color", COLUMNS=""),
        cwd=on_real_cli.work,
    )

    assert seen.exit_code == 0, seen.screen
    assert seen.raw.count("Cycle ") > 5
    assert seen.screen.count("Cycle ") == 1
    assert "\x1b[2K" in seen.raw
    assert "\x1b[32m" in seen.raw
    for during in ("Starting…", "waiting for the model", "tokens", "≈$", "Bash: ", "thinking", "… active"):
        assert during in seen.raw
        assert during not in seen.screen
    tiers = [line for line in seen.lines if "Tier " in line]
    assert [line.partition("Tier")[0] for line in tiers] == ["└── ", "    └── ", "        └── "]
    assert ["haiku ✓ completed" in tiers[0], "sonnet ✓ completed" in tiers[1], "opus ✓ completed" in tiers[2]] == [
        True
    ] * 3
    assert "Cycle 1 default ✓ resolved  $" in seen.screen
    assert "Next: `opsladder init`" in seen.lines[-2]


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["as_usual", "no_color"])
def test_a_tree_is_coloured_unless_that_is_not_wanted(
    recorded: CommandLine, env: dict[str, str], coloured: bool
) -> None:
    seen = run_on_terminal(
        [str(OPSLADDER), "chain", "1"],
        size=(140, 40),
        env=recorded.environment(**{"TERM": "xterm-256color", "COLUMNS": "", **env}),
        cwd=recorded.work,
    )

    assert seen.exit_code == 0
    assert bool(re.search(r"\x1b\[[\d;]*(3|9)\d[\d;]*m", seen.raw)) is coloured
    assert "└── Tier 2 sonnet ✓ completed" in seen.screen


def test_a_terminal_that_cannot_redraw_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    with live_tree(console) as watch:
        watch(CycleStarted(cycle=a_chain().cycle))
        watch(activity(1, "Bash: webctl restart"))

    assert capsys.readouterr().out == "cycle 1 of default started\ntier 1 haiku: Bash: webctl restart\n"
    assert console.file.getvalue() == ""


def a_terminal(width: int, height: int) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)


def frames(console: Console) -> list[list[str]]:
    """Each picture that was drawn, as the lines it had."""
    assert isinstance(console.file, io.StringIO)
    pictures = re.split(r"(?:\r\x1b\[2K(?:\x1b\[1A\x1b\[2K)*)|\x1b\[\?25[lh]", console.file.getvalue())
    return [[line.rstrip() for line in picture.splitlines() if line.strip()] for picture in pictures if picture.strip()]


def running(number: int) -> TierStarted:
    parent = number - 1 or None
    session = a_session(id=number, tier=number, parent_session_id=parent, status=SessionStatus.CREATED, report=None)
    return TierStarted(session=session)


def activity(number: int, doing: str, cost: float | None = 0.25) -> TierActivity:
    return TierActivity(
        session=running(number).session, doing=doing, tokens=Tokens(input=1200, output=34), cost_usd=cost
    )


def completed(number: int, said: str) -> TierEnded:
    report = replace(NEEDED, summary=said, escalation_reason=said)
    cost = {"cost_usd": 0.5, "cost_basis": CostBasis.REPORTED}
    return TierEnded(
        session=a_session(id=number, tier=number, parent_session_id=number - 1 or None, report=report, **cost)
    )


def test_a_running_tier_shows_what_it_does_its_tokens_its_cost_and_the_sum_so_far() -> None:
    console = a_terminal(80, 24)
    with live_tree(console) as watch:
        watch(CycleStarted(cycle=a_chain().cycle))
        watch(running(1))
        watch(completed(1, "web is down"))
        watch(running(2))
        watch(activity(2, "Bash: webctl restart"))

    last = frames(console)[-1]
    assert re.fullmatch(r"Cycle 1 default … running  ≈\$0\.7500  \d\.\ds", last[0])
    assert last[-3] == "    └── Tier 2 haiku … active  fresh (first_tier)  record 2"
    assert re.fullmatch(r" {8}1\.2k tokens · ≈\$0\.2500 · \d\.\ds", last[-2])
    assert last[-1] == "        Bash: webctl restart"


@pytest.mark.parametrize("width", [40, 80, 140])
def test_long_and_hostile_texts_do_not_break_the_guides(width: int) -> None:
    console = a_terminal(width, 100)
    with live_tree(console) as watch:
        watch(CycleStarted(cycle=a_chain().cycle))
        watch(running(1))
        watch(completed(1, HOSTILE * 2))
        watch(running(2))
        watch(activity(2, HOSTILE, cost=None))

    text = console.file.getvalue()
    assert not re.search(r"\x1b(?!\[(2K|1A|\?25[lh]|[\d;]*m))|\x07", text)
    for line in frames(console)[-1]:
        assert cell_len(line) <= width
    picture = frames(console)[-1]
    below = picture[next(number for number, line in enumerate(picture) if line.startswith("└── ")) :]
    assert all(line.startswith("    ") for line in below[1:])
    second = next(number for number, line in enumerate(below) if "Tier 2" in line)
    assert all(line.startswith("        ") for line in below[second + 1 :])


def test_on_a_low_screen_the_running_tier_stays_in_sight() -> None:
    console = a_terminal(80, 10)
    with live_tree(console) as watch:
        watch(CycleStarted(cycle=a_chain().cycle))
        for number in (1, 2, 3):
            watch(running(number))
            watch(completed(number, "a finding of some length " * 6))
        watch(running(4))
        watch(activity(4, "Bash: webctl status"))

    last = frames(console)[-1]
    assert len(last) < 10
    assert last[0].startswith("Cycle 1 ")
    assert re.fullmatch(r"⋮   \d+ lines above", last[1])
    assert "Tier 4" in last[-3]
    assert last[-1].strip() == "Bash: webctl status"


def test_the_whole_tree_is_left_behind_and_what_a_person_must_know_stands_below_it() -> None:
    console = a_terminal(80, 6)
    done = a_session(report=FINE)
    chain = a_chain(done, status=CycleStatus.UNRESOLVED, reason="top_tier", detail="web is down", ended_at=NOW)
    finish = Finish(status=CycleStatus.UNRESOLVED, reason="top_tier", detail="web is down", tell=True)
    with live_tree(console) as watch:
        watch(CycleStarted(cycle=a_chain().cycle))
        watch(running(1))
        watch(Notice(text="web is \x1b[31mdown"))
        watch(CycleEnded(chain=chain, finish=finish))

    lines = [line for line in drawn(console.file.getvalue().replace("\n", "\r\n"), 80) if line]
    assert lines == [
        "Cycle 1 default ✗ unresolved (top_tier)  cost unknown  6m00s",
        "web is down",
        "└── Tier 1 haiku ✓ completed  fresh (first_tier)  record 1",
        "    cost unknown · 4m00s · context 15.0k/200.0k (8%) · 0 tool calls",
        "    all is well",
        r"! A person is needed: web is \x1b[31mdown",
    ]


WAYS_ON = {
    "approval": "`opsladder approvals` shows the call, and how to let it run or refuse it",
    "budget": "`opsladder cycle nightly --approve-budget` now, or `opsladder cycle nightly` from tomorrow (UTC) on",
    "usage_limit": "`opsladder cycle nightly`, once the limit is reset",
    "switch": "`opsladder unpause`, then `opsladder cycle nightly`",
}


@pytest.mark.parametrize(("reason", "way_on"), WAYS_ON.items(), ids=WAYS_ON.keys())
def test_a_paused_cycle_says_what_to_type(reason: str, way_on: str, capsys: pytest.CaptureFixture[str]) -> None:
    paused = a_chain(schedule="nightly", status=CycleStatus.PAUSED, reason=reason, detail="It waits.", ended_at=NOW)
    ended = CycleEnded(chain=paused, finish=Finish(status=CycleStatus.PAUSED, reason=reason, detail="It waits."))
    console = a_terminal(200, 24)
    with live_tree(console) as watch:
        watch(ended)
    PlainLines()(ended)

    assert frames(console)[-1][-1] == f"→ To go on: {way_on}."
    assert capsys.readouterr().out.splitlines()[-1] == f"to go on: {way_on}"


def test_a_paused_rehearsal_says_on_a_terminal_too_that_it_ends_there() -> None:
    paused = a_chain(status=CycleStatus.PAUSED, reason="approval", detail="It waits.", ended_at=NOW)
    finish = Finish(status=CycleStatus.PAUSED, reason="approval", detail="It waits.")
    console = a_terminal(200, 24)
    with live_tree(console) as watch:
        watch(CycleEnded(chain=paused, finish=finish, rehearsed=True))

    ends = "→ A rehearsal ends here: its records are thrown away, so there is nothing to answer or to go on with."
    assert frames(console)[-1][-1] == ends


def test_a_record_that_was_paused_no_longer_says_that_it_waits_once_it_was_gone_on_from() -> None:
    before = a_session(report=None, failure=Failure.APPROVAL, detail="A call waits for a person.")
    after = a_session(id=2, parent_session_id=1, report=FINE)
    console = a_terminal(80, 24)
    console.print(chain_tree(a_chain(before, after, status=CycleStatus.HEALTHY, ended_at=NOW)))

    text = console.file.getvalue()
    assert "Paused (approval), then gone on from." in text
    assert "waits for a person" not in text
