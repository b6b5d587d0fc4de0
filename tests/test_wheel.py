"""What is built works without the repository: prompts, configuration and units are inside."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from realcli import closed_environment

ROOT = Path(__file__).resolve().parent.parent
# From the wheel, ahead of the repository that this environment is linked to.
RUN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from supervisor.cli import main; main()"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(directory), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = directory.glob("opsladder-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "files")
    return directory / "files"


@pytest.mark.parametrize("what", ["prompts", "config", "systemd"])
def test_every_file_that_is_shipped_is_in_it_as_it_is(unpacked: Path, what: str) -> None:
    ours = {file.relative_to(ROOT / what): file.read_bytes() for file in (ROOT / what).rglob("*") if file.is_file()}
    inside = unpacked / "supervisor" / "shipped" / what

    assert ours != {}
    assert {f.relative_to(inside): f.read_bytes() for f in inside.rglob("*") if f.is_file()} == ours


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("init",), "opsladder.toml", id="configuration"),
        pytest.param(("systemd", "install", "--user", "--dry-run"), "ExecStart=", id="units"),
        pytest.param(("demo",), "cycle 1 resolved", id="prompts"),
    ],
)
def test_it_runs_from_what_is_inside(
    unpacked: Path, tmp_path: Path, new_cli: Path, arguments: tuple[str, ...], expected: str
) -> None:
    env = {**closed_environment(home=tmp_path, base_url=""), "OPSLADDER_CLAUDE__BIN": str(new_cli)}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(unpacked), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=env,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
