"""Who is told, by the settings: levels without a list, wrong addresses, and that none of them is ever shown."""

from pathlib import Path

import pytest

from supervisor.model.report import Level
from supervisor.notify import check_new_targets, check_targets, sending
from supervisor.notify.targets import addresses_of
from supervisor.settings import ConfigProblems, Settings, load_settings

SECRET = "xoxb-1234567890-abcdef"


def load(tmp_path: Path, toml: str, **environ: str) -> Settings:
    file = tmp_path / "opsladder.toml"
    file.write_text(toml)
    return load_settings(file, {"HOME": str(tmp_path), **environ}, cwd=tmp_path)


ROUTES = {
    "nothing": ("", ([], [], [])),
    "critical only": ('critical = ["json://c"]', ([], ["json://c"], ["json://c"])),
    "warning only": ('warning = ["json://w"]', ([], ["json://w"], ["json://w"])),
    "info only": ('info = ["json://i"]', (["json://i"], ["json://i"], ["json://i"])),
    "info and critical": ('info = ["json://i"]\ncritical = ["json://c"]', (["json://i"], ["json://c"], ["json://c"])),
    "each its own": (
        'info = ["json://i"]\nwarning = ["json://w"]\ncritical = ["json://c"]',
        (["json://i"], ["json://w"], ["json://c"]),
    ),
}


@pytest.mark.parametrize(("toml", "routes"), ROUTES.values(), ids=ROUTES.keys())
def test_who_is_told_of_which_level(tmp_path: Path, toml: str, routes: tuple[list[str], ...]) -> None:
    settings = load(tmp_path, f"[notify]\n{toml}")
    told = tuple([a.url for a in addresses_of(settings) if level in a.target.levels] for level in Level)
    assert told == routes


def test_an_address_in_several_lists_is_one_target(tmp_path: Path) -> None:
    settings = load(tmp_path, '[notify]\nwarning = ["json://x"]\ncritical = ["json://x", "json://y"]')
    assert [(a.name, sorted(a.target.levels)) for a in addresses_of(settings)] == [
        ("critical.1", ["critical", "warning"]),
        ("critical.2", ["critical"]),
    ]


def test_addresses_come_from_a_file_one_per_line(tmp_path: Path) -> None:
    (tmp_path / "pager").write_text("json://one/a,b\n\njson://two\n")
    settings = load(tmp_path, "", OPSLADDER_NOTIFY__CRITICAL_FILE=str(tmp_path / "pager"))
    assert [a.url for a in addresses_of(settings)] == ["json://one/a,b", "json://two"]


WRONG = {
    "no address": ('[notify]\ncritical = ["json://ok", "just-SECRET"]', "notify.critical.2"),
    "with a blank": ('[notify]\nwarning = ["json://host/SECRET here"]', "notify.warning.1"),
    "not a list": ('[notify]\nwarning = "json://SECRET"', "notify.warning"),
    "a ping that is no http": ('[[schedules]]\nname = "shop"\nping_url = "ftp://SECRET"', "schedules.1.ping_url"),
}


@pytest.mark.parametrize(("toml", "key"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_named_by_key_and_position_and_never_shown(tmp_path: Path, toml: str, key: str) -> None:
    with pytest.raises(ConfigProblems) as caught:
        load(tmp_path, toml.replace("SECRET", SECRET))
    [problem] = caught.value.problems
    assert problem.key == key
    assert SECRET not in str(caught.value)


def test_a_service_that_apprise_does_not_know_is_named_by_its_place(tmp_path: Path) -> None:
    settings = load(tmp_path, f'[notify]\ncritical = ["json://localhost", "nonsense://{SECRET}", "slack://x"]')
    with pytest.raises(ConfigProblems) as caught:
        check_targets(settings)
    assert [problem.key for problem in caught.value.problems] == ["notify.critical.2", "notify.critical.3"]
    assert SECRET not in str(caught.value)


def test_an_address_that_apprise_does_not_know_is_named_with_the_line_it_stands_in(tmp_path: Path) -> None:
    settings = load(tmp_path, f'[notify]\ncritical = [\n  "json://localhost",\n  "nonsense://{SECRET}",\n]\n')
    with pytest.raises(ConfigProblems) as caught:
        check_targets(settings)
    [problem] = caught.value.problems
    assert (problem.where, problem.line) == (str(tmp_path / "opsladder.toml"), 4)
    assert caught.value.remedy is not None


@pytest.mark.parametrize("variable", ["OPSLADDER_NOTIFY__WARNING", "OPSLADDER_NOTIFY__WARNING_FILE"])
def test_an_address_from_the_environment_is_named_with_its_variable(tmp_path: Path, variable: str) -> None:
    (tmp_path / "pager").write_text("json://localhost\nnonsense://x\n")
    value = str(tmp_path / "pager") if variable.endswith("_FILE") else "json://localhost nonsense://x"
    with pytest.raises(ConfigProblems) as caught:
        check_targets(load(tmp_path, '[notify]\nwarning = ["json://localhost"]\n', **{variable: value}))
    [problem] = caught.value.problems
    assert (problem.where, problem.line, problem.key) == (variable, None, "notify.warning.2")


def test_an_address_that_was_right_is_not_looked_at_again_and_a_new_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    monkeypatch.setattr(sending, "is_readable", lambda url: looked_at.append(url) or True)
    (tmp_path / "state").mkdir()
    here = '[state]\ndir = "state"\n[notify]\n'
    for urls in ('"json://a"', '"json://a"', '"json://a", "json://b"', '"json://b"'):
        check_new_targets(load(tmp_path, f"{here}critical = [{urls}]"))
    assert looked_at == ["json://a", "json://a", "json://b"]

    (tmp_path / "state" / "targets.json").write_text("[")
    check_new_targets(load(tmp_path, f'{here}critical = ["json://b"]'))
    assert looked_at[3:] == ["json://b"]


def test_what_is_kept_of_an_address_does_not_give_it_away(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    settings = load(tmp_path, f'[state]\ndir = "state"\n[notify]\ncritical = ["json://localhost/{SECRET}"]')
    check_new_targets(settings)
    assert SECRET not in settings.known_targets_file.read_text()


def test_addresses_that_apprise_knows_pass(tmp_path: Path) -> None:
    check_targets(load(tmp_path, '[notify]\ncritical = ["json://localhost/x", "mailto://u:p@example.com"]'))


def test_no_part_of_an_address_that_is_secret_is_shown_stored_or_given_to_an_agent(tmp_path: Path) -> None:
    url = f"json://user:pass-word@host/hook/{SECRET}"
    toml = f'[notify]\ncritical = ["{url}"]\n[[schedules]]\nname = "shop"\nping_url = "https://ping/{SECRET}-2"\n'
    settings = load(tmp_path, f'{toml}[claude]\npass_env = ["TOLD"]', TOLD=url)

    assert SECRET not in repr(settings)
    assert SECRET not in repr(addresses_of(settings))
    assert SECRET not in " ".join(address.shown for address in addresses_of(settings))
    assert "TOLD" not in settings.agent_env
    for text in (url, f"https://host/hook/{SECRET}", f"https://ping/{SECRET}-2", "said pass-word"):
        assert settings.masker().text(text) != text
        assert SECRET not in settings.masker().text(text)


def test_an_address_given_to_the_agents_is_refused(tmp_path: Path) -> None:
    toml = f'[notify]\ncritical = ["json://host/{SECRET}"]\n[claude]\nenv = {{ HOOK = "json://host/{SECRET}" }}'
    with pytest.raises(ConfigProblems, match=r"claude\.env\.HOOK"):
        load(tmp_path, toml)
