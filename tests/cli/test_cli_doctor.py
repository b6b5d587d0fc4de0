"""`opsladder doctor`: would a cycle work, and if not, what is the remedy."""

import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

from supervisor.cli.person import who
from tests.cli.command_line import CommandLine, as_ordinary_user
from tests.postgres import ON_POSTGRES, running_postgres

CHECKS = (
    *("config", "claude", "credentials", "prompts", "rules", "database", "state", "work", "schedules"),
    *("room", "messages", "call size", "guard"),
)


def by_check(document: Any) -> dict[str, Any]:
    return {finding["check"]: finding for finding in document["findings"]}


def test_where_all_is_well_it_says_so_measures_the_calls_and_leaves_nothing_behind(on_real_cli: CommandLine) -> None:
    done = on_real_cli.run("doctor")

    assert (done.exit_code, done.err) == (0, "")
    heads = [line for line in done.out.splitlines() if line[:1].strip()]
    # That nobody is told of anything is what a fresh place is warned of.
    signs = ["!  " if check == "messages" else "ok " for check in CHECKS]
    assert [line[:16] for line in heads[:-1]] == [
        f"{sign} {check:<12}" for sign, check in zip(signs, CHECKS, strict=True)
    ]
    assert "was asked about, refused, and did not run" in " ".join(done.out.split())
    assert heads[-1] == "A cycle would run."
    assert re.search(r"tier 1 \d+\.\d kB, tier 2 \d+\.\d kB,\s+tier\s+3 \d+\.\d kB", done.out)
    assert not on_real_cli.state.exists()
    assert list(on_real_cli.work.iterdir()) == []


def test_how_often_a_schedule_fires_is_said_as_it_is_written(opsladder: CommandLine) -> None:
    (opsladder.work / "opsladder.toml").write_text('[[schedules]]\nname = "web"\nevery = "15m"\n')

    done = opsladder.run("doctor", "--json")

    [found] = [finding for finding in done.document["findings"] if finding["check"] == "schedules"]
    assert found["detail"] == "web: every 15m"


BROKEN = {
    "no_key": ({"ANTHROPIC_API_KEY": ""}, "credentials", "no API key", "ANTHROPIC_API_KEY"),
    "no_claude": ({}, "claude", "no-such-claude does not exist", "claude.bin"),
    "no_claude_on_the_path": ({"OPSLADDER_CLAUDE__BIN": "clawed"}, "claude", "no executable clawed", "claude.bin"),
    "another_program": ({"OPSLADDER_CLAUDE__BIN": "/bin/cat"}, "claude", "not a Claude CLI", "claude.bin"),
    "a_directory": ({"OPSLADDER_CLAUDE__BIN": "/tmp"}, "claude", "is a directory", "claude.bin"),
    "no_server": (
        {"OPSLADDER_STATE__DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:9/x"},
        "database",
        "127.0.0.1:9",
        "state.database_url",
    ),
    "not_a_database": ({"OPSLADDER_STATE__DATABASE_URL": "sqlite:///{dir}/file"}, "database", "not a database", "move"),
    "state_below_a_file": ({"OPSLADDER_STATE__DIR": "{dir}/file/below"}, "state", "{dir}/file is not a", "state.dir"),
    "state_of_another": ({"OPSLADDER_STATE__DIR": "{dir}/locked"}, "state", "not writable", "state.dir"),
    "state_out_of_sight": ({"OPSLADDER_STATE__DIR": "{dir}/closed/in"}, "state", "{dir}/closed", "state.dir"),
    "no_work_dir": ({"OPSLADDER_CLAUDE__WORK_DIR": "{dir}/gone"}, "work", "{dir}/gone", "claude.work_dir"),
    "work_dir_out_of_sight": ({"OPSLADDER_CLAUDE__WORK_DIR": "{dir}/closed"}, "work", "closed", "claude.work_dir"),
    "unknown_variable": ({"OPSLADDER_CLAUDE__BIM": "x"}, "config", "OPSLADDER_CLAUDE__BIM", "opsladder init"),
    "no_such_config": ({"OPSLADDER_CONFIG": "gone.toml"}, "config", "gone.toml", "opsladder init"),
}


@pytest.mark.parametrize(("env", "check", "detail", "remedy"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_wrong_is_named_with_its_remedy(
    opsladder: CommandLine, env: dict[str, str], check: str, detail: str, remedy: str
) -> None:
    (opsladder.directory / "file").write_text("a file of some length, but no database at all")
    (opsladder.directory / "locked").mkdir(mode=0o500)
    (opsladder.directory / "closed").mkdir(mode=0o000)
    env = {name: value.format(dir=opsladder.directory) for name, value in env.items()}

    done = opsladder.run("doctor", "--json", by=as_ordinary_user(), **env)

    assert (done.exit_code, done.err, done.document["ok"]) == (1, "", False)
    finding = by_check(done.document)[check]
    assert finding["grade"] == "problem"
    assert detail.format(dir=opsladder.directory) in finding["detail"]
    assert remedy in finding["remedy"]
    assert all(f["remedy"] for f in done.document["findings"] if f["grade"] == "problem")
    assert "hunter2" not in done.out


@pytest.mark.parametrize("shut", ["state", "state/opsladder.db"])
def test_records_that_this_user_can_only_read_are_a_problem(opsladder: CommandLine, shut: str) -> None:
    opsladder.run("unpause")
    place = opsladder.directory / shut
    place.chmod(0o500 if place.is_dir() else 0o400)

    done = opsladder.run("doctor", "--json", by=as_ordinary_user())

    assert (done.exit_code, done.err) == (1, "")
    finding = by_check(done.document)["database"]
    assert (finding["grade"], finding["detail"]) == ("problem", f"{place} is not writable")


def test_every_fault_of_a_configuration_is_named_with_its_line_below_one_another(opsladder: CommandLine) -> None:
    (opsladder.work / "opsladder.toml").write_text('[claude]\nbim = "x"\n[escalation]\nmax_tier = "high"\n')

    done = opsladder.run("doctor", COLUMNS="200")

    assert (done.exit_code, done.err) == (1, "")
    first, second, remedy = done.out.splitlines()[:3]
    assert first.startswith("NO  config      ")
    assert first.endswith('opsladder.toml:2: claude.bim: unknown key. Did you mean "bin"?')
    assert second.startswith(" " * 16)
    assert second.endswith('opsladder.toml:4: escalation.max_tier: should be a whole number (got "high").')
    assert remedy.startswith(" " * 14 + "→ ")
    assert done.out.endswith("\nA cycle would fail.\n")


def test_the_rules_of_each_tier_are_counted_with_what_becomes_of_the_unknown(opsladder: CommandLine) -> None:
    lines = by_check(opsladder.run("doctor", "--json").document)["rules"]["detail"].splitlines()

    counted = [re.fullmatch(r"tier (\d) (\w+): (\d+) rules, default (\w+), opaque (\w+)", line) for line in lines]
    assert [found and (found[1], found[2], found[4], found[5]) for found in counted] == [
        ("1", "observe", "deny", "deny"),
        ("2", "repair", "deny", "deny"),
        ("3", "rebuild", "approve", "approve"),
    ]
    numbers = [int(found[3]) for found in counted if found]
    assert 100 < numbers[0] < numbers[1] < numbers[2]


RULES = {
    "unknown_set": ('rule_sets = ["read-onyl"]', "", ("opsladder.toml:5: ", 'Did you mean "read-only"?')),
    "bad_own_file": ("", '[sets.mine]\nalow = ["ls"]\n', ("rules.toml:2: ", 'Did you mean "allow"?')),
}


@pytest.mark.parametrize(("tier", "own", "said"), RULES.values(), ids=RULES.keys())
def test_rules_that_cannot_be_read_are_a_problem_with_its_remedy(
    opsladder: CommandLine, tier: str, own: str, said: tuple[str, str]
) -> None:
    ladder = f'[[tiers]]\nname = "one"\nmodel = "haiku"\nprompt = "tier1.md"\n{tier}\n'
    (opsladder.work / "opsladder.toml").write_text(ladder)
    if own:
        (opsladder.work / "rules.toml").write_text(own)

    done = opsladder.run("doctor", "--json")

    rules = by_check(done.document)["rules"]
    assert (done.exit_code, rules["grade"]) == (1, "problem")
    for part in said:
        assert part in rules["detail"]
    assert "rules.toml" in rules["remedy"]


def test_a_prompt_that_does_not_render_is_a_problem_with_its_remedy(opsladder: CommandLine) -> None:
    (opsladder.work / "prompts").mkdir()
    (opsladder.work / "prompts" / "tier2.md").write_text("Mend.\n{{ enviroment }}")
    (opsladder.work / "opsladder.toml").touch()

    done = opsladder.run("doctor", "--json")

    prompts = by_check(done.document)["prompts"]
    assert (done.exit_code, prompts["grade"]) == (1, "problem")
    assert f"{opsladder.work}/prompts/tier2.md:2: " in prompts["detail"]
    assert prompts["remedy"] == "Correct it, or delete it to use the shipped one."


def test_a_switch_that_is_off_is_a_warning_with_who_and_why(opsladder: CommandLine) -> None:
    opsladder.run("pause", "--reason", "the database moves")

    switch = by_check(opsladder.run("doctor", "--json").document)["switch"]

    assert switch["grade"] == "warning"
    assert re.fullmatch(rf"paused by {re.escape(who())} at [\d: -]+ UTC: the database moves", switch["detail"])
    assert switch["remedy"] == "`opsladder unpause` ends it."


def test_a_finding_is_wrapped_below_itself_and_a_path_stays_whole(opsladder: CommandLine) -> None:
    far = opsladder.directory / ("far" * 30)

    out = opsladder.run("doctor", OPSLADDER_STATE__DIR=str(far)).out

    assert [line for line in out.splitlines() if len(line) > 80 and str(opsladder.directory) not in line] == []
    assert f"ok  database    {far}/opsladder.db\n                is not there yet" in out


def test_a_work_dir_that_can_only_be_read_is_a_warning(opsladder: CommandLine) -> None:
    (opsladder.directory / "locked").mkdir(mode=0o500)

    done = opsladder.run(
        "doctor", "--json", by=as_ordinary_user(), OPSLADDER_CLAUDE__WORK_DIR=str(opsladder.directory / "locked")
    )

    assert by_check(done.document)["work"]["grade"] == "warning"


class TestOnPostgres:
    """An empty database on a server is not set up by itself: more than one host may be using it."""

    pytestmark: ClassVar = [*ON_POSTGRES]

    def test_a_database_without_tables_is_a_problem_until_it_is_upgraded(self, opsladder: CommandLine) -> None:
        with running_postgres() as server:
            url = server.new_database()
            before = opsladder.run("doctor", "--json", OPSLADDER_STATE__DATABASE_URL=url)
            refused = opsladder.run("chains", OPSLADDER_STATE__DATABASE_URL=url)
            upgraded = opsladder.run("db", "upgrade", OPSLADDER_STATE__DATABASE_URL=url)
            after = opsladder.run("doctor", "--json", OPSLADDER_STATE__DATABASE_URL=url)
            listed = opsladder.run("chains", OPSLADDER_STATE__DATABASE_URL=url)

        found = by_check(before.document)["database"]
        assert (found["grade"], "opsladder db upgrade" in found["remedy"]) == ("problem", True)
        assert "has not been set up yet" in found["detail"]
        assert "upgrade" not in found["detail"]
        assert (refused.exit_code, "opsladder db upgrade" in refused.err) == (1, True)
        assert upgraded.exit_code == 0
        assert by_check(after.document)["database"]["grade"] == "ok"
        assert (listed.exit_code, listed.out) == (0, "No cycle has run yet.\n")


def test_a_stored_login_counts_as_a_credential(opsladder: CommandLine) -> None:
    login = Path(opsladder.env["HOME"]) / ".claude" / ".credentials.json"
    login.parent.mkdir()
    login.write_text("{}")

    done = opsladder.run("doctor", "--json", ANTHROPIC_API_KEY="")

    assert by_check(done.document)["credentials"]["grade"] == "ok"
