"""`opsladder init`: files to start from, and never over anything that is there."""

import tomllib
from pathlib import Path

import pytest

from supervisor import shipped
from supervisor.cli import init
from supervisor.settings import load_settings
from tests.cli.command_line import CommandLine, as_ordinary_user

FILES = ("opsladder.toml", "models.toml", "environment.md")


def test_it_writes_a_configuration_that_is_valid_and_says_what_to_do_next(opsladder: CommandLine) -> None:
    done = opsladder.run("init", "there/below")

    there = opsladder.work / "there" / "below"
    assert (done.exit_code, done.err) == (0, "")
    assert [(there / name).read_bytes() for name in FILES] == [(shipped.CONFIG / name).read_bytes() for name in FILES]
    assert "opsladder doctor --config there/below/opsladder.toml" in done.out
    config = next(
        finding
        for finding in opsladder.run("doctor", "--json", "--config", "there/below/opsladder.toml").document["findings"]
        if finding["check"] == "config"
    )
    assert (config["grade"], config["detail"]) == ("ok", str(there / "opsladder.toml"))


def test_it_writes_here_when_no_directory_is_named(opsladder: CommandLine) -> None:
    assert opsladder.run("init").exit_code == 0
    assert {file.name for file in opsladder.work.iterdir()} == {*FILES, "prompts"}


def test_it_writes_the_prompts_and_says_what_becomes_of_one_that_is_deleted(opsladder: CommandLine) -> None:
    done = opsladder.run("init", "there")

    copied = opsladder.work / "there" / "prompts"
    names = {file.relative_to(shipped.PROMPTS) for file in shipped.PROMPTS.rglob("*.md")}
    assert {file.relative_to(copied) for file in copied.rglob("*.md")} == names
    assert all((copied / name).read_bytes() == (shipped.PROMPTS / name).read_bytes() for name in names)
    assert "Of a prompt that you delete in there/prompts, the one of the installed version is used" in done.out
    settings = load_settings(opsladder.work / "there" / "opsladder.toml", {"HOME": "/nowhere"}, cwd=opsladder.work)
    assert settings.prompt_path("tier2.md") == copied / "tier2.md"
    (copied / "tier2.md").unlink()
    assert settings.prompt_path("tier2.md") == shipped.PROMPTS / "tier2.md"


def test_what_it_says_to_type_can_be_typed(opsladder: CommandLine) -> None:
    done = opsladder.run("init", "our ops")

    assert "2. opsladder doctor --config 'our ops/opsladder.toml'\n" in done.out


def test_a_configuration_of_another_name_has_everything_else_beside_it(opsladder: CommandLine) -> None:
    done = opsladder.run("init", "--config", "there/mine.toml")

    there = opsladder.work / "there"
    assert (done.exit_code, done.err) == (0, "")
    assert {file.name for file in there.iterdir()} == {"mine.toml", "models.toml", "environment.md", "prompts"}
    assert "2. opsladder doctor --config there/mine.toml\n" in done.out
    assert load_settings(there / "mine.toml", {"HOME": "/nowhere"}, cwd=opsladder.work).prompts_dir == there / "prompts"


def test_the_directory_of_a_configuration_may_be_named_with_it_but_no_other(opsladder: CommandLine) -> None:
    assert opsladder.run("init", "there", "--config", "there/mine.toml").exit_code == 0

    refused = opsladder.run("init", "elsewhere", "--config", "there/mine.toml")

    assert (refused.exit_code, refused.out) == (2, "")
    assert "elsewhere is not the directory of there/mine.toml" in refused.err
    assert not (opsladder.work / "elsewhere").exists()


def test_it_never_overwrites(opsladder: CommandLine) -> None:
    mine = opsladder.work / "opsladder.toml"
    mine.write_text("# mine\n")

    own = opsladder.work / "prompts" / "tier1.md"
    own.parent.mkdir()
    own.write_text("mine")

    done = opsladder.run("init")
    again = opsladder.run("init")

    assert (mine.read_text(), own.read_text()) == ("# mine\n", "mine")
    assert "kept     opsladder.toml\nwritten  models.toml\n" in done.out
    assert "kept     prompts/tier1.md\n" in done.out
    assert "written" not in again.out


def for_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the test's own that counts as one in /etc."""
    monkeypatch.setattr(init, "MACHINE", tmp_path / "etc")
    return tmp_path / "etc" / "opsladder"


def test_a_configuration_for_the_machine_says_where_the_service_keeps_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = for_the_machine(tmp_path, monkeypatch)
    init.write_start(directory)

    settings = load_settings(directory / "opsladder.toml", {"HOME": "/root"}, cwd=tmp_path)
    assert settings.state.dir == Path("/var/lib/opsladder/state").resolve()
    assert settings.claude.work_dir == Path("/var/lib/opsladder/work").resolve()
    assert "opsladder systemd install\n" in capsys.readouterr().out


def test_for_the_machine_every_other_setting_is_as_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = for_the_machine(tmp_path, monkeypatch)
    init.write_start(directory)
    init.write_start(tmp_path / "elsewhere")

    machine, elsewhere = (
        tomllib.loads((place / "opsladder.toml").read_text()) for place in (directory, tmp_path / "elsewhere")
    )
    assert machine.pop("state") == {"dir": "/var/lib/opsladder/state"}
    assert elsewhere.pop("state") == {}
    assert (machine["claude"].pop("work_dir"), elsewhere["claude"].pop("work_dir")) == ("/var/lib/opsladder/work", ".")
    assert machine == elsewhere


PLACES = {
    "a_file": ("file", "file is not a directory. Name one"),
    "below_a_file": ("file/below", "file/below is not a directory. Name one"),
    "somebody_else_s": ("locked", "locked/opsladder.toml cannot be written: Permission denied. Name a directory"),
}


@pytest.mark.parametrize(("place", "said"), PLACES.values(), ids=PLACES.keys())
def test_where_it_cannot_write_it_says_why(opsladder: CommandLine, place: str, said: str) -> None:
    (opsladder.work / "file").write_text("")
    (opsladder.work / "locked").mkdir(mode=0o500)

    done = opsladder.run("init", place, by=as_ordinary_user())

    assert (done.exit_code, done.out) == (2, "")
    assert done.err.startswith("opsladder: ")
    assert said in done.err


def test_a_disk_that_is_full_leaves_no_half_file_behind(opsladder: CommandLine) -> None:
    room = (shipped.CONFIG / "opsladder.toml").stat().st_size // 2

    done = opsladder.run("init", by=["prlimit", f"--fsize={room}"])

    assert done.exit_code == 2
    assert "opsladder.toml cannot be written: File too large." in done.err
    assert list(Path(opsladder.work).iterdir()) == []
