"""What the commands that show records print, and how they refuse."""

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from supervisor.cli.show import moment
from supervisor.model.cycle import CycleStatus, Trigger
from supervisor.model.session import CostBasis, SessionStatus
from supervisor.store import open_store
from tests.cli.command_line import OPSLADDER, CommandLine, Onlooker, as_ordinary_user, command_line
from tests.store.store_examples import NOON, add_session, begin, end, minutes

LISTINGS = {
    "chains": ("chains",),
    "chain": ("chain", "1"),
    "session": ("session", "2"),
    "cost": ("cost",),
    "cost_by_day": ("cost", "--by", "day"),
    "approvals": ("approvals",),
    "services": ("services",),
    "db_check": ("db", "check"),
}


@pytest.mark.parametrize("arguments", LISTINGS.values(), ids=LISTINGS.keys())
def test_with_json_stdout_is_one_document_and_nothing_else(recorded: CommandLine, arguments: tuple[str, ...]) -> None:
    done = recorded.run(*arguments, "--json")

    assert (done.exit_code, done.err) == (0, "")
    assert re.fullmatch(r"opsladder\.\w+/1", done.document["schema"])


@pytest.mark.parametrize("arguments", LISTINGS.values(), ids=LISTINGS.keys())
def test_without_a_terminal_there_is_no_colour_and_nothing_wider_than_80_columns(
    recorded: CommandLine, arguments: tuple[str, ...]
) -> None:
    done = recorded.run(*arguments)

    assert (done.exit_code, done.err) == (0, "")
    assert "\x1b" not in done.out
    paths = (line for line in done.out.splitlines() if str(recorded.directory) not in line)
    assert [line for line in paths if cell_len(line) > 80] == []


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_are_not_missed(recorded: CommandLine, closed: str) -> None:
    shell = ("sh", "-c", f'exec "$0" "$@" {closed}')

    shown, refused = recorded.run("chains", by=shell), recorded.run("chain", "99", by=shell)

    assert (shown.exit_code, refused.exit_code) == (0, 1)
    assert "Traceback" not in shown.err + refused.err


def test_ctrl_c_before_there_is_a_command_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    by_itself = [sys.executable, "-c", "from supervisor.cli import main; main()", "chains"]

    done = subprocess.run(
        ["env", "--default-signal=INT", *by_itself], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, check=False
    )

    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize("arguments", [("chains",), ("session", "2"), ("session", "2", "--json")], ids=" ".join)
def test_a_reader_that_has_seen_enough_is_no_failure(recorded: CommandLine, arguments: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        [str(OPSLADDER), *arguments],
        cwd=recorded.work,
        env=recorded.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    complaints = process.stderr.read()
    process.stderr.close()

    assert (process.wait(), complaints) == (0, b"")


def test_output_that_cannot_be_written_is_a_failure_with_its_cause(recorded: CommandLine) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [str(OPSLADDER), "cost", "--json"],
            cwd=recorded.work,
            env=recorded.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == "opsladder: standard output cannot be written: No space left on device.\n"


def test_what_the_encoding_lacks_is_replaced(recorded: CommandLine) -> None:
    done = recorded.run("chain", "1", PYTHONIOENCODING="ascii:strict")

    assert (done.exit_code, done.err) == (0, "")
    assert "Tier 2 sonnet ? completed" in done.out


@pytest.fixture(scope="module")
def retried(tmp_path_factory: pytest.TempPathFactory) -> Onlooker:
    """Cycle 1 with records 1 and 2, and cycle 2 that retried record 2, an hour and a half later and for nothing."""
    opsladder = command_line(tmp_path_factory.mktemp("retried"))
    opsladder.state.mkdir(mode=0o700)
    reported = {"cost_basis": CostBasis.REPORTED}
    with open_store(f"sqlite:///{opsladder.state}/opsladder.db") as store:
        first, later = begin(store), NOON + minutes(90)
        one = add_session(store, first)
        end(store, one, cost_usd=0.03, **reported)
        two = add_session(store, first, one, tier=2)
        end(store, two, cost_usd=0.04, **reported)
        store.finish_cycle(first.id, status=CycleStatus.UNRESOLVED, reason=None, detail=None, now=NOON + minutes(2))
        second = begin(store, now=later, trigger=Trigger.RETRY)
        three = add_session(store, second, two, tier=2, created_at=later)
        end(store, three, SessionStatus.FAILED, cost_usd=0.0, ended_at=later, **reported)
        store.finish_cycle(second.id, status=CycleStatus.FAILED, reason=None, detail=None, now=later + minutes(1))
    return Onlooker(directory=opsladder.directory, env=opsladder.env)


def test_the_head_of_a_chain_over_several_cycles_tells_the_cycle_and_the_chain_apart(retried: CommandLine) -> None:
    chain, own = retried.run("chain", "3").out.splitlines(), retried.run("chain", "--cycle", "2").out.splitlines()

    assert chain[0] == own[0] == "Cycle 2 default ✗ failed  $0.0000  1m00s"
    assert chain[1] == "One chain of 3 records in cycles 1-2: $0.0700, 3m00s"
    assert not any("chain of" in line for line in own)


def test_the_total_of_a_chain_is_that_of_the_records_it_lists(retried: CommandLine) -> None:
    totals = [retried.run("chain", *which, "--json").document["total"] for which in (("3",), ("1",), ("--cycle", "2"))]

    whole = {"cost_usd": pytest.approx(0.07), "cost_is_exact": True, "duration_seconds": 180.0, "sessions": 3}
    own = {"cost_usd": 0.0, "cost_is_exact": True, "duration_seconds": 60.0, "sessions": 1}
    assert totals == [whole, whole, own]


REFUSALS = {
    "unknown_record": (("chain", "99"), 1, ("99", "opsladder chains")),
    "unknown_cycle": (("chain", "--cycle", "99"), 1, ("cycle 99", "opsladder chains")),
    "unknown_session": (("session", "99"), 1, ("99", "opsladder chains")),
    "zero": (("session", "0"), 1, ("0", "opsladder chains")),
    "larger_than_any_database_holds": (("chain", "9" * 30), 1, ("9" * 30, "opsladder chains")),
    "not_a_number": (("chain", "x"), 2, ("ID", "integer")),
    "no_chain_named": (("chain",), 2, ("--cycle", "opsladder chains")),
    "chain_named_twice": (("chain", "1", "--cycle", "1"), 2, ("--cycle",)),
    "unknown_status": (("chains", "--status", "odd"), 2, ("'odd'", "unresolved")),
    "no_limit": (("chains", "--limit", "0"), 2, ("--limit",)),
    "unknown_grouping": (("cost", "--by", "odd"), 2, ("'odd'", "schedule")),
    "not_a_time": (("cost", "--since", "soon"), 2, ("'soon'", "7d")),
    "empty_time": (("cost", "--since", ""), 2, ("''", "7d")),
    "no_such_config": (("chains", "--config", "gone.toml"), 2, ("--config", "gone.toml")),
    "no_such_command": (("chainz",), 2, ("chainz",)),
    "no_such_option": (("chains", "--jsn"), 2, ("--jsn",)),
}


@pytest.mark.parametrize(("arguments", "code", "words"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_names_the_thing_and_the_remedy(
    recorded: CommandLine, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    done = recorded.run(*arguments)

    assert (done.exit_code, done.out) == (code, "")
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err


FRESH = {
    "chains": (("chains",), 0, "No cycle has run yet."),
    "chains_of_a_status": (("chains", "--status", "failed"), 0, "No cycle is failed."),
    "cost": (("cost",), 0, "Nothing was spent."),
    "chain": (("chain", "1"), 1, "No cycle has run yet."),
    "db_check": (("db", "check"), 1, "has not been set up yet"),
}


@pytest.mark.parametrize(("arguments", "code", "said"), FRESH.values(), ids=FRESH.keys())
def test_looking_before_anything_has_run_creates_nothing(
    opsladder: CommandLine, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = opsladder.run(*arguments)

    assert done.exit_code == code
    assert said in done.out + done.err
    assert not opsladder.state.exists()


UNUSABLE = {
    "not_a_database": (("chains",), "sqlite:///{dir}/junk.db", "not a database"),
    "not_to_be_upgraded": (("db", "upgrade"), "sqlite:///{dir}/junk.db", "not a database"),
    "no_server": (("session", "1"), "postgresql://u:hunter2@127.0.0.1:9/x", "127.0.0.1:9"),
    "out_of_sight": (("cost",), "sqlite:///{dir}/closed/in/opsladder.db", "Permission denied"),
}


@pytest.mark.parametrize(("arguments", "url", "why"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_database_that_cannot_be_used_is_named_with_the_cause(
    opsladder: CommandLine, arguments: tuple[str, ...], url: str, why: str
) -> None:
    (opsladder.directory / "junk.db").write_text("no database, but text long enough to look at")
    (opsladder.directory / "closed").mkdir(mode=0o000)
    url = url.format(dir=opsladder.directory)

    done = opsladder.run(*arguments, by=as_ordinary_user(), OPSLADDER_STATE__DATABASE_URL=url)

    assert (done.exit_code, done.out) == (1, "")
    assert done.err.startswith("opsladder: The ")
    assert why in done.err
    assert "hunter2" not in done.err


def test_chains_are_listed_newest_first_with_their_records(recorded: CommandLine) -> None:
    lines = recorded.run("chains").out.splitlines()

    heads = [line.split() for line in lines if re.match(r" +\d+  \d{4}-", line)]
    assert [(h[0], h[3], h[5], h[6], h[7], h[8]) for h in heads] == [
        ("4", "default", "skipped", "-", "-", "-"),
        ("3", "default", "stopped", "1", "4", "unknown"),
        ("2", "nightly", "failed", "1", "3", "≈$0.5000"),
        ("1", "default", "resolved", "2", "1-2", "$0.0300"),
    ]
    assert "       already_running: Cycle 3 still runs." in lines


def test_chains_can_be_limited_and_chosen_by_status(recorded: CommandLine) -> None:
    def cycles(*arguments: str) -> list[int]:
        return [c["cycle"]["id"] for c in recorded.run("chains", "--json", *arguments).document["chains"]]

    assert cycles() == [4, 3, 2, 1]
    assert cycles("--limit", "2") == [4, 3]
    assert cycles("--status", "resolved") == [1]


@pytest.mark.parametrize("arguments", [("chain", "2"), ("chain", "--cycle", "1")], ids=["by_record", "by_cycle"])
def test_a_chain_is_a_tree_of_its_records(recorded: CommandLine, arguments: tuple[str, ...]) -> None:
    assert recorded.run(*arguments).out.splitlines() == [
        "Cycle 1 default ✓ resolved  $0.0300  0.0s",
        "web answers again",
        "└── Tier 1 haiku ✓ completed  fresh (first_tier)  record 1",
        "    $0.0100 · 0.0s · context 4.0k/200.0k (2%) · 1 tool call",
        "    web does not answer",
        "    ↑ web is down",
        "    └── Tier 2 sonnet ✓ completed  resume (next_tier)  record 2",
        "        $0.0200 · 0.0s · context 4.0k/200.0k (2%) · 1 tool call",
        "        web answers again",
    ]


def test_what_did_not_run_is_known_to_have_cost_nothing(recorded: CommandLine) -> None:
    listed = recorded.run("chains", "--json").document["chains"][0]
    shown = recorded.run("chain", "--cycle", "4", "--json").document

    nothing = {"cost_usd": 0.0, "cost_is_exact": True, "duration_seconds": 0.0, "sessions": 0}
    assert (listed["cycle"]["status"], listed["total"], shown["total"]) == ("skipped", nothing, nothing)


def test_what_is_unknown_is_said_to_be_unknown_and_null(recorded: CommandLine) -> None:
    text = recorded.run("session", "4").out
    assert "cost unknown" in text
    assert "context unknown" in text
    assert re.search(r"our prompt +unknown", text)
    assert re.search(r"ending +interrupted, exit code unknown, stop reason unknown, turns unknown", text)

    session = recorded.run("session", "4", "--json").document["session"]
    unknown = ("cost_usd", "input_tokens", "context_tokens", "num_turns", "exit_code", "report")
    assert {name: session[name] for name in unknown} == dict.fromkeys(unknown)
    assert session["cost_basis"] == "unknown"
    total = recorded.run("chain", "4", "--json").document["total"]
    assert (total["cost_usd"], total["cost_is_exact"]) == (None, False)


def test_a_session_is_shown_with_its_times_its_messages_and_the_fixed_size_of_its_calls(recorded: CommandLine) -> None:
    fresh, resumed, unknown = (
        recorded.run("session", number, "--json").document["session"] for number in ("1", "2", "4")
    )
    out, out_resumed = (" ".join(recorded.run("session", number).out.split()) for number in ("1", "2"))

    assert (fresh["created_at"], fresh["messages"]) == (fresh["started_at"], 5)
    assert fresh["last_message_at"] == fresh["ended_at"]
    # 3,000 tokens of which our 1,200 bytes are about 300; one that resumes reads what was said before, too.
    names = "fixed_tokens", "fixed_tokens_basis"
    assert [fresh[name] for name in names] == [2700, "estimated"]
    assert [resumed[name] for name in names] == [unknown[name] for name in names] == [None, "unknown"]
    assert unknown["last_message_at"] is None
    assert re.search(r"created \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", out)
    assert re.search(r"messages 5, the last at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", out)
    assert "fixed part ≈2.7k tokens of each call: what its first one read, less our prompt" in out
    assert "fixed part unknown: its first call read what was said before, too" in out_resumed


def test_a_session_is_shown_with_what_was_said_and_done(recorded: CommandLine) -> None:
    out = recorded.run("session", "2").out

    assert re.search(r"^\d\d:\d\d:\d\d     prompt  You are tier 2\.$", out, re.MULTILINE)
    assert re.search(r"^\d\d:\d\d:\d\d       runs  Bash: webctl restart$", out, re.MULTILINE)
    assert re.search(r"^\d\d:\d\d:\d\d       gets  FAILED$", out, re.MULTILINE)
    assert "2,000 of 5,000 characters; --json has them all" in out
    assert re.search(r"^ {21}x{59}$", out, re.MULTILINE)
    events = recorded.run("session", "2", "--json").document["events"]
    assert [(e["kind"], len(e["text"])) for e in events] == [("prompt", 16), ("tool_use", 14), ("tool_result", 5000)]


@pytest.mark.parametrize("arguments", [("chains",), ("chain", "3"), ("session", "3")], ids=" ".join)
def test_nothing_a_model_says_reaches_the_terminal_as_a_command_or_markup(
    recorded: CommandLine, arguments: tuple[str, ...]
) -> None:
    done = recorded.run(*arguments, COLUMNS="400")

    assert done.exit_code == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.out)
    assert r"\x1b[31mred\x1b]0;owned\x07 [bold]no markup[/bold]" in done.out


COSTS = {
    "tier": {1: 0.51, 2: 0.02},
    "schedule": {"default": 0.03, "nightly": 0.5},
    "model": {"haiku": 0.51, "opus": None, "sonnet": 0.02},
}


@pytest.mark.parametrize(("by", "expected"), COSTS.items(), ids=COSTS.keys())
def test_cost_is_added_up_by(recorded: CommandLine, by: str, expected: dict[object, float | None]) -> None:
    document = recorded.run("cost", "--by", by, "--json").document

    assert {row[by]: row["cost_usd"] for row in document["rows"]} == pytest.approx(expected)
    assert document["total_usd"] == pytest.approx(0.53)
    assert document["total_is_exact"] is False
    assert recorded.run("cost", "--by", by).out.split()[0] == by


def test_the_cost_table_says_what_is_estimated_and_unknown(recorded: CommandLine) -> None:
    lines = recorded.run("cost", "--by", "model").out.splitlines()

    assert [line.split()[:3] for line in lines[1:]] == [
        ["haiku", "≈$0.5100", "2"],
        ["opus", "unknown", "1"],
        ["sonnet", "$0.0200", "1"],
        ["total", "≈$0.5300", "4"],
    ]
    assert lines[1].rstrip().endswith("1 estimated")
    assert lines[2].rstrip().endswith("1 of unknown cost")


def test_cost_since_a_time_leaves_out_what_ended_before(recorded: CommandLine) -> None:
    def sessions(since: str) -> int:
        document = recorded.run("cost", "--json", "--since", since).document
        assert document["since"].endswith("Z")
        return sum(row["sessions"] for row in document["rows"])

    now = dt.datetime.now(dt.UTC)
    assert sessions("1d") == 4
    assert sessions("60m") == 2
    assert sessions((now - dt.timedelta(hours=1)).isoformat()) == 2
    assert sessions((now + dt.timedelta(days=3)).strftime("%Y-%m-%d")) == 0


TIMES = {
    "7d": dt.timedelta(days=7),
    "12h": dt.timedelta(hours=12),
    "30m": dt.timedelta(minutes=30),
    "90s": dt.timedelta(seconds=90),
    " 2d ": dt.timedelta(days=2),
}


@pytest.mark.parametrize(("text", "ago"), TIMES.items(), ids=TIMES.keys())
def test_an_age_is_counted_back_from_now(text: str, ago: dt.timedelta) -> None:
    now = dt.datetime(2026, 11, 16, 3, tzinfo=dt.UTC)
    assert moment(text, now=now) == now - ago


@pytest.mark.parametrize("text", ["2026-11-01", "2026-11-01T00:00", "2026-11-01T01:00+01:00", "2026-11-01T00:00:00Z"])
def test_a_date_without_a_zone_is_utc(text: str) -> None:
    assert moment(text, now=dt.datetime.now(dt.UTC)) == dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


def test_a_total_of_nothing_known_is_null(recorded: CommandLine, opsladder: CommandLine) -> None:
    assert opsladder.run("cost", "--json").document["total_usd"] == 0.0
    rows = [r for r in recorded.run("cost", "--by", "model", "--json").document["rows"] if r["model"] == "opus"]
    assert [(r["cost_usd"], r["unknown"]) for r in rows] == [(None, 1)]


def test_the_database_is_set_up_and_checked(opsladder: CommandLine) -> None:
    before = opsladder.run("db", "check", "--json")
    upgraded = opsladder.run("db", "upgrade")
    after = opsladder.run("db", "check", "--json")

    assert (before.exit_code, before.document["ok"], before.document["current"]) == (1, False, None)
    assert (upgraded.exit_code, after.exit_code, after.document["ok"]) == (0, 0, True)
    assert upgraded.out == f"The schema is at {after.document['head']}.\n"
    assert after.document["current"] == after.document["head"]
