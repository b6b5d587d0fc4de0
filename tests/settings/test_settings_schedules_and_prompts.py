"""Schedules, durations, what agents are told about a place, and which prompt files are used."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from supervisor import shipped
from supervisor.errors import ConfigError
from supervisor.settings import Settings

Load = Callable[..., Settings]
Refuse = Callable[..., list[str]]


def schedule(lines: str) -> str:
    return f'[[schedules]]\nname = "nightly"\n{lines}'


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("90s", timedelta(seconds=90), id="seconds"),
        pytest.param("15m", timedelta(minutes=15), id="minutes"),
        pytest.param("4h", timedelta(hours=4), id="hours"),
        pytest.param("1d", timedelta(days=1), id="days"),
    ],
)
def test_a_duration_is_a_number_and_a_unit(load: Load, written: str, expected: timedelta) -> None:
    assert load(schedule(f'every = "{written}"')).schedules[0].every == expected
    assert load("", OPSLADDER_COOLDOWNS__RESTART__PER=written).cooldowns.restart.per == expected


@pytest.mark.parametrize("written", ['"0m"', '"-5m"', '"5"', '"5 m"', '"1h30m"', '"5w"', '""', "5", '"9999999d"'])
def test_anything_else_is_no_duration(refuse: Refuse, written: str) -> None:
    (problem,) = refuse(schedule(f"every = {written}"))
    assert problem.startswith("FILE:3: schedules.1.every: should be a duration like")


def test_part_of_a_cooldown_keeps_the_rest_of_its_own_default(load: Load) -> None:
    cooldowns = load("[cooldowns.redeploy]\nmax = 7").cooldowns
    assert (cooldowns.redeploy.max, cooldowns.redeploy.per) == (7, timedelta(hours=24))
    assert (cooldowns.restart.max, cooldowns.restart.per) == (2, timedelta(hours=4))


def test_cooldowns_are_said_in_words(load: Load) -> None:
    settings = load('[cooldowns.restart]\nmax = 3\nper = "90s"')
    assert settings.cooldown_rules() == {
        "restart": {"max": 3, "per": "90 seconds"},
        "redeploy": {"max": 1, "per": "1 day"},
    }


def test_without_schedules_there_is_one_that_starts_by_hand(load: Load) -> None:
    (only,) = load().schedules
    assert (only.name, only.cron, only.every, only.timezone, only.environment_text) == (
        "default",
        None,
        None,
        "UTC",
        "",
    )


def test_a_schedule_has_a_cron_line_a_time_zone_and_jitter(load: Load) -> None:
    settings = load(schedule('cron = "*/5 3 * * mon-fri"\ntimezone = "Europe/Berlin"\njitter_seconds = 30'))
    found = settings.schedule("nightly")
    assert (found.cron, found.timezone, found.jitter_seconds) == ("*/5 3 * * mon-fri", "Europe/Berlin", 30)


def test_a_schedule_says_what_becomes_of_firings_that_cannot_start(load: Load) -> None:
    plain, own = (
        load(schedule(lines)).schedule("nightly")
        for lines in (
            "",
            'overlap = "queue"\nmisfire = "skip"\nmisfire_grace_seconds = 5\nblackout = ["Sat 22:00-Sun 06:00"]',
        )
    )
    assert (plain.overlap, plain.misfire, plain.misfire_grace_seconds, plain.blackout) == ("skip", "once", 60, ())
    assert (own.overlap, own.misfire, own.misfire_grace_seconds) == ("queue", "skip", 5)
    assert own.blackout == ("Sat 22:00-Sun 06:00",)


def test_so_many_cycles_run_at_the_same_time(load: Load, refuse: Refuse) -> None:
    assert load("").service.max_running == 4
    assert load("", OPSLADDER_SERVICE__MAX_RUNNING="9").service.max_running == 9
    assert refuse("[service]\nmax_running = 0")[0].startswith("FILE:2: service.max_running: should be greater")


def test_a_schedule_that_does_not_exist_is_answered_with_those_that_do(load: Load) -> None:
    with pytest.raises(ConfigError, match=r'no schedule "weekly".*There is: nightly'):
        load(schedule("")).schedule("weekly")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param(
            'cron = "* * *"', "FILE:3: schedules.1.cron: should be a cron line of five fields", id="too short"
        ),
        pytest.param('cron = "99 * * * *"', "FILE:3: schedules.1.cron: should be a cron line", id="no such minute"),
        pytest.param('cron = "* * * * noday"', "FILE:3: schedules.1.cron: should be a cron line", id="no such day"),
        pytest.param(
            'cron = "* * * * *"\nevery = "1h"',
            "FILE:4: schedules.1.every: a schedule has cron or every, not both.",
            id="both",
        ),
        pytest.param('cron = "0 0 30 2 *"', "FILE:3: schedules.1.cron: names a day that never comes", id="never"),
        pytest.param('overlap = "wait"', "FILE:3: schedules.1.overlap: should be 'skip' or 'queue'", id="overlap"),
        pytest.param('misfire = "all"', "FILE:3: schedules.1.misfire: should be 'skip' or 'once'", id="misfire"),
        pytest.param(
            "misfire_grace_seconds = 0", "FILE:3: schedules.1.misfire_grace_seconds: should be greater", id="grace"
        ),
        pytest.param(
            'blackout = [\n  "02:00-03:00",\n  "at night",\n]',
            "FILE:5: schedules.1.blackout.2: should be a window like",
            id="window",
        ),
        pytest.param('timezone = "Mars/Base"', "FILE:3: schedules.1.timezone: should be an IANA time zone", id="zone"),
        pytest.param('timezone = "../UTC"', "FILE:3: schedules.1.timezone: should be an IANA time zone", id="path"),
        pytest.param("jitter_seconds = -1", "FILE:3: schedules.1.jitter_seconds: should be greater", id="jitter"),
        pytest.param(
            '[[schedules]]\nname = "nightly"', "FILE:4: schedules.2.name: is the name of number 1 already", id="twice"
        ),
        pytest.param(
            '[[schedules]]\nname = "Nightly 2"', "FILE:4: schedules.2.name: should be made of small letters", id="name"
        ),
        pytest.param(
            'environment = "gone.md"', "FILE:3: schedules.1.environment: there is no such file: ", id="missing file"
        ),
    ],
)
def test_a_wrong_schedule_is_refused(refuse: Refuse, lines: str, problem: str) -> None:
    (found,) = refuse(schedule(lines))
    assert found.startswith(problem)


def test_a_misspelt_time_zone_is_answered_with_the_right_one(refuse: Refuse) -> None:
    (problem,) = refuse(schedule('timezone = "Europe/Berlni"'))
    assert problem.endswith('Did you mean "Europe/Berlin"?')


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param('"place.md"', "One server.\n", id="a file next to the configuration"),
        pytest.param('"place"', "No suffix.\n", id="a file without a suffix"),
        pytest.param('"~/home.txt"', "At home.\n", id="a file at home"),
        pytest.param('"One server, see place.md"', "One server, see place.md", id="a sentence that ends like a file"),
        pytest.param('"db.example.com"', "db.example.com", id="a host name"),
        pytest.param('"""\nweb\ndb.md"""', "web\ndb.md", id="several lines"),
        pytest.param(f'"{"x" * 5000}"', "x" * 5000, id="longer than any file name"),
    ],
)
def test_the_environment_is_a_file_or_the_text_itself(
    load: Load, base: Path, home: Path, written: str, expected: str
) -> None:
    (base / "place.md").write_text("One server.\n")
    (base / "place").write_text("No suffix.\n")
    (home / "home.txt").write_text("At home.\n")
    assert load(schedule(f"environment = {written}")).schedules[0].environment_text == expected


def test_an_environment_file_has_to_be_text(refuse: Refuse, base: Path) -> None:
    (base / "place.md").write_bytes(b"\xff\xfe")
    (problem,) = refuse(schedule('environment = "place.md"'))
    assert "is not UTF-8 text" in problem


def test_own_prompts_come_before_the_shipped_ones_file_by_file(load: Load, base: Path) -> None:
    (base / "prompts").mkdir()
    (base / "prompts" / "tier1.md").write_text("Mine.")
    settings = load()
    assert settings.prompts_dir == base / "prompts"
    assert settings.prompt_dirs == (base / "prompts", shipped.PROMPTS)
    assert settings.prompt_path("tier1.md") == base / "prompts" / "tier1.md"
    assert settings.prompt_path("tier2.md") == shipped.PROMPTS / "tier2.md"


def test_without_own_prompts_the_shipped_ones_are_used(load: Load) -> None:
    settings = load()
    assert settings.prompts_dir == shipped.PROMPTS
    assert settings.prompt_dirs == (shipped.PROMPTS,)


def test_a_prompt_that_is_in_neither_place_is_a_configuration_error(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"no prompt gone\.md in"):
        load().prompt_path("gone.md")


def test_every_tier_but_the_first_has_an_escalation_prompt_named_after_its_prompt(load: Load, base: Path) -> None:
    (base / "prompts").mkdir()
    (base / "prompts" / "fix-escalation.md").write_text("Go on.")
    (base / "prompts" / "fix.md").write_text("Mend.")
    settings = load(
        '[[tiers]]\nname = "a"\nmodel = "haiku"\nprompt = "tier1.md"\n'
        '[[tiers]]\nname = "b"\nmodel = "opus"\nprompt = "fix.md"\n'
        '[[tiers]]\nname = "c"\nmodel = "opus"\nprompt = "fix.md"\nescalation_prompt = "tier3-escalation.md"\n'
    )
    assert [t.escalation_prompt for t in settings.tiers] == [None, "fix-escalation.md", "tier3-escalation.md"]


def test_nothing_can_be_changed(load: Load) -> None:
    settings = load('[claude.env]\nA = "1"')
    with pytest.raises(AttributeError):
        settings.base_dir = Path("/")  # type: ignore[misc]
    with pytest.raises(ValidationError):
        settings.escalation.max_tier = 1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        settings.tiers[0].model = "opus"  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.agent_env["A"] = "2"  # type: ignore[index]
    with pytest.raises(TypeError):
        settings.claude.env["A"] = "2"  # type: ignore[index]


def test_settings_can_be_given_records_of_their_own(load: Load, tmp_path: Path) -> None:
    before = load('[state]\ndatabase_url = "postgresql://h/d"')
    after = before.with_state(tmp_path)
    assert (after.state.dir, after.database_url()) == (tmp_path, f"sqlite:///{tmp_path}/opsladder.db")
    assert before.database_url() == "postgresql://h/d"
    assert after.tiers == before.tiers
