"""The configuration that comes with opsladder says what the built-in defaults are, and importing stays cheap."""

import re
import subprocess
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from supervisor import shipped
from supervisor.settings import Settings, load_settings
from supervisor.settings.outline import outline

SHIPPED = shipped.CONFIG / "opsladder.toml"
OFF = re.compile(r"^#(?=[a-z_]+ = |  \"|\])", re.MULTILINE)


def load(file: Path | None, base: Path) -> Settings:
    return load_settings(file, {"HOME": str(base / "home")}, cwd=base)


@pytest.fixture
def copied(base: Path) -> Path:
    for file in shipped.CONFIG.iterdir():
        (base / file.name).write_bytes(file.read_bytes())
    return base / SHIPPED.name


def test_the_shipped_file_loads_where_it_is() -> None:
    assert load_settings(SHIPPED, {"HOME": "/nowhere"}, cwd=Path("/")).source == SHIPPED


def test_the_shipped_file_says_what_the_defaults_are(copied: Path, base: Path) -> None:
    written = load(copied, base)
    copied.unlink()
    built_in = load(None, base)
    for field in fields(Settings):
        if field.name not in ("source", "origin", "schedules", "models"):
            assert getattr(written, field.name) == getattr(built_in, field.name), field.name
    (schedule,) = written.schedules
    assert (schedule.name, schedule.every) == ("default", timedelta(minutes=15))
    assert schedule.environment_text == (shipped.CONFIG / "environment.md").read_text()


def test_every_setting_that_is_off_can_be_switched_on_as_it_stands(copied: Path, base: Path) -> None:
    defaults = load(copied, base).tiers[0].disallowed_tools
    copied.write_text(OFF.sub("", copied.read_text()))
    settings = load(copied, base)
    assert settings.web.token is not None
    assert settings.budget.per_day_usd == 25
    assert settings.tiers[0].disallowed_tools == defaults


def test_every_setting_is_in_the_shipped_file(copied: Path) -> None:
    text = copied.read_text()
    for table, keys in outline().tables.items():
        for key in keys:
            header = re.escape(".".join((*table, key)))
            mentioned = rf"^(#?{key} = |\[+{header}[\].])|[Ee]ither .* or {key} = "
            assert re.search(mentioned, text, re.MULTILINE), (*table, key)


def test_the_default_ladder_gives_only_its_last_tier_tools_that_write(base: Path) -> None:
    tiers = load(None, base).tiers
    assert [(t.name, t.model, t.timeout_minutes, t.max_turns) for t in tiers] == [
        ("observe", "haiku", 10, 40),
        ("repair", "sonnet", 20, 60),
        ("rebuild", "opus", 30, 80),
    ]
    assert [{"Edit", "Write"} <= set(t.tools) for t in tiers] == [False, False, True]


@pytest.mark.parametrize("module", ["apscheduler", "difflib", "sqlalchemy", "jinja2", "rich", "pydantic_settings"])
def test_loading_settings_does_not_load(module: str, base: Path) -> None:
    program = (
        "import sys, pathlib; from supervisor.settings import load_settings;"
        "load_settings(None, {'HOME': '/nowhere'}, cwd=pathlib.Path(sys.argv[1])); print(sys.argv[2] in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(base), module], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
