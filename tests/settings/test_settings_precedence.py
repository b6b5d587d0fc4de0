"""Where a setting comes from: which file, and what stands above what."""

from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.claude.marks import MARK
from supervisor.errors import ConfigError
from supervisor.settings import Settings, demo_settings, load_settings, settings_from_process

Load = Callable[..., Settings]


def write(file: Path, max_tier: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[escalation]\nmax_tier = {max_tier}\n")
    return file


def test_the_file_asked_for_comes_before_the_variable_the_directory_and_the_home(base: Path, home: Path) -> None:
    asked = write(base / "asked" / "mine.toml", 1)
    by_variable = write(base / "variable" / "mine.toml", 2)
    here = write(base / "opsladder.toml", 4)
    at_home = write(home / ".config/opsladder/opsladder.toml", 5)
    environ = {"HOME": str(home), "OPSLADDER_CONFIG": str(by_variable)}
    found = []
    found.append(load_settings(asked, environ, cwd=base).source)
    found.append(load_settings(None, environ, cwd=base).source)
    del environ["OPSLADDER_CONFIG"]
    found.append(load_settings(None, environ, cwd=base).source)
    here.unlink()
    found.append(load_settings(None, environ, cwd=base).source)
    assert found == [asked, by_variable, here, at_home]


def test_without_any_file_the_defaults_hold_and_the_directory_is_the_base(base: Path, home: Path) -> None:
    settings = load_settings(None, {"HOME": str(home)}, cwd=base)
    assert settings.source is None
    assert settings.base_dir == settings.claude.work_dir == base
    assert settings.escalation.max_tier == 3


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_file_that_was_named_has_to_exist(by: str, base: Path, home: Path) -> None:
    environ = {"HOME": str(home)} | ({"OPSLADDER_CONFIG": "gone.toml"} if by == "variable" else {})
    with pytest.raises(ConfigError, match=r"gone\.toml: the configuration file does not exist"):
        load_settings(Path("gone.toml") if by == "option" else None, environ, cwd=base)


def test_a_directory_is_not_a_configuration(base: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory"):
        load_settings(base, {}, cwd=base)


def test_a_tilde_that_no_shell_expanded_means_the_home(base: Path, home: Path) -> None:
    file = write(home / "o.toml", 2)
    assert load_settings(None, {"HOME": str(home), "OPSLADDER_CONFIG": "~/o.toml"}, cwd=base).source == file


def test_a_linked_file_is_read_with_the_neighbours_of_the_link(base: Path, home: Path) -> None:
    target = write(home / "elsewhere.toml", 2)
    (base / "opsladder.toml").symlink_to(target)
    settings = load_settings(None, {"HOME": str(home)}, cwd=base)
    assert (settings.base_dir, settings.escalation.max_tier) == (base, 2)


@pytest.mark.parametrize(
    ("file", "environ", "expected"),
    [
        pytest.param(None, {}, 3, id="default"),
        pytest.param(2, {}, 2, id="file above default"),
        pytest.param(2, {"CLAUDEOPS_MAX_TIER": "1"}, 1, id="alias above file"),
        pytest.param(2, {"OPSLADDER_ESCALATION__MAX_TIER": "1"}, 1, id="variable above file"),
        pytest.param(
            None, {"OPSLADDER_ESCALATION__MAX_TIER": "1", "CLAUDEOPS_MAX_TIER": "2"}, 1, id="variable above alias"
        ),
        pytest.param(2, {"OPSLADDER_ESCALATION__MAX_TIER": ""}, 2, id="an empty variable is not set"),
    ],
)
def test_the_environment_wins_over_the_file_and_the_file_over_the_default(
    load: Load, file: int | None, environ: dict[str, str], expected: int
) -> None:
    assert load(f"[escalation]\nmax_tier = {file}" if file else "", **environ).escalation.max_tier == expected


def read_env(settings: Settings) -> dict[str, str]:
    return dict(settings.claude.env)


def test_a_table_from_a_variable_takes_the_place_of_the_file_s(load: Load) -> None:
    settings = load('[claude]\nenv = { A = "1", B = "2" }', OPSLADDER_CLAUDE__ENV='{ B = "3" }')
    assert dict(settings.claude.env) == {"B": "3"}
    assert ("A" in settings.agent_env, settings.agent_env["B"]) == (False, "3")


@pytest.mark.parametrize(
    ("variable", "value", "read", "expected"),
    [
        pytest.param("CLAUDEOPS_STATE_DIR", "/srv/s", lambda s: s.state.dir, Path("/srv/s"), id="alias of a path"),
        pytest.param("CLAUDEOPS_DRY_RUN", "1", lambda s: s.escalation.dry_run, True, id="alias of a switch"),
        pytest.param(
            "CLAUDEOPS_RESUME_CONTEXT_THRESHOLD",
            "0.5",
            lambda s: s.continuity.context_threshold,
            0.5,
            id="alias of a number",
        ),
        pytest.param("OPSLADDER_ESCALATION__DRY_RUN", "Off", lambda s: s.escalation.dry_run, False, id="switch"),
        pytest.param("OPSLADDER_BUDGET__PER_DAY_USD", "12.5", lambda s: s.budget.per_day_usd, 12.5, id="number"),
        pytest.param("OPSLADDER_WEB__PORT", "80", lambda s: s.web.port, 80, id="whole number"),
        pytest.param("OPSLADDER_COOLDOWNS__RESTART__MAX", "9", lambda s: s.cooldowns.restart.max, 9, id="nested"),
        pytest.param("OPSLADDER_CLAUDE__PASS_ENV", "A, B,,C", lambda s: s.claude.pass_env, ("A", "B", "C"), id="list"),
        pytest.param("OPSLADDER_CLAUDE__ENV", '{ A = "1", B = "x y" }', read_env, {"A": "1", "B": "x y"}, id="table"),
        pytest.param("OPSLADDER_CLAUDE__ENV", "{}", read_env, {}, id="empty table"),
        pytest.param("OPSLADDER_CLAUDE__BIN", "claude-2", lambda s: s.claude.bin, "claude-2", id="text"),
    ],
)
def test_a_variable_is_read_as_what_its_setting_is(
    load: Load, variable: str, value: str, read: Callable[[Settings], object], expected: object
) -> None:
    assert read(load("", **{variable: value})) == expected


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("OPSLADDER_NO_SKIP", id="what our tests are told"),
        pytest.param(MARK, id="the mark of a run, in the hands of its agent"),
        pytest.param("CLAUDEOPS_TIER", id="what an agent is told"),
        pytest.param("CLAUDEOPS_STATE_FILE", id="another tool's"),
        pytest.param("CLAUDEOPS_MAX_TOKENS", id="another tool's, too"),
    ],
)
def test_a_variable_that_is_no_setting_on_purpose_is_left_alone(load: Load, name: str) -> None:
    assert load("", **{name: "1"}).source is not None


def test_what_kubernetes_tells_of_a_service_of_our_name_is_left_alone(load: Load) -> None:
    told = {
        "OPSLADDER_SERVICE_HOST": "10.0.0.9",
        "OPSLADDER_SERVICE_PORT": "8377",
        "OPSLADDER_SERVICE_PORT_HTTP": "8377",
        "OPSLADDER_PORT": "tcp://10.0.0.9:8377",
        "OPSLADDER_PORT_8377_TCP": "tcp://10.0.0.9:8377",
        "OPSLADDER_PORT_8377_TCP_ADDR": "10.0.0.9",
        "OPSLADDER_WEB_SERVICE_HOST": "10.0.0.9",
        "OPSLADDER_WEB_PORT": "tcp://10.0.0.9:8377",
    }
    assert load("", **told).source is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("work", "{base}/work", id="relative to the file"),
        pytest.param("~/work", "{home}/work", id="home"),
        pytest.param("/srv/../opt", "/opt", id="absolute"),
    ],
)
def test_paths_become_absolute(load: Load, base: Path, home: Path, name: str, expected: str) -> None:
    settings = load(f'[claude]\nwork_dir = "{name}"\nbin = "{name}/claude"\n[state]\ndir = "{name}"')
    path = Path(expected.format(base=base, home=home.resolve()))
    assert settings.claude.work_dir == settings.state.dir == path
    assert settings.claude.bin == f"{path}/claude"
    assert settings.database_url() == f"sqlite:///{path}/opsladder.db"


@pytest.mark.parametrize(
    ("xdg", "expected"),
    [
        pytest.param("/srv/xdg", "/srv/xdg/opsladder", id="XDG_STATE_HOME"),
        pytest.param("relative", "{home}/.local/state/opsladder", id="a relative one is passed over"),
        pytest.param("", "{home}/.local/state/opsladder", id="home"),
    ],
)
def test_records_go_where_the_desktop_rules_say(load: Load, home: Path, xdg: str, expected: str) -> None:
    assert str(load("", XDG_STATE_HOME=xdg).state.dir) == expected.format(home=home.resolve())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("sqlite:///r.db", "sqlite:///{base}/r.db", id="relative to the file"),
        pytest.param("sqlite:////srv/r.db?timeout=3", "sqlite:////srv/r.db?timeout=3", id="absolute"),
        pytest.param("postgresql://u:p@h/d", "postgresql://u:p@h/d", id="server"),
    ],
)
def test_a_database_is_the_same_from_every_directory(load: Load, base: Path, url: str, expected: str) -> None:
    assert load(f'[state]\ndatabase_url = "{url}"').database_url() == expected.format(base=base)


def test_secrets_can_come_from_files(load: Load, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("  t0ken\n")
    (tmp_path / "url").write_text("postgresql://u:p4ss@h/d\n")
    settings = load(
        '[web]\ntoken = "from the file"',
        OPSLADDER_WEB__TOKEN_FILE=str(tmp_path / "token"),
        OPSLADDER_STATE__DATABASE_URL_FILE=str(tmp_path / "url"),
    )
    assert settings.web.token.get_secret_value() == "t0ken"
    assert settings.database_url() == "postgresql://u:p4ss@h/d"


def test_the_process_environment_is_read_when_asked_for(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSLADDER_ESCALATION__MAX_TIER", "2")
    assert settings_from_process(write(base / "o.toml", 1)).escalation.max_tier == 2


def test_the_demo_passes_over_all_configuration_but_the_cli(
    base: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(base / "opsladder.toml", 1)
    monkeypatch.chdir(base)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDEOPS_MAX_TIER", "1")
    monkeypatch.setenv("OPSLADDER_WEB__TOKN", "misspelt")
    monkeypatch.setenv("OPSLADDER_CONFIG", "gone.toml")
    monkeypatch.setenv("OPSLADDER_CLAUDE__BIN", "claude-2")
    demo = demo_settings(work_dir=home, directory=base)
    assert (demo.source, demo.escalation.max_tier, demo.claude.bin) == (None, 3, "claude-2")
    assert (demo.claude.work_dir, demo.state.dir) == (home.resolve(), base / "state")
