"""The shared test support itself: the CLIs are what they are called, nothing is skipped in silence or left behind."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

SHARED = Path(__file__).resolve().parent.parent


def _pytest(directory: Path, content: str, *arguments: str, no_skip: bool = False) -> tuple[int, str]:
    """Run a test file of its own under the shared conftest; its exit code and what it printed."""
    (directory / "conftest.py").write_text((SHARED / "conftest.py").read_text())
    (directory / "test_sample.py").write_text(content)
    (directory / "pytest.ini").write_text("[pytest]\nmarkers = real_cli: x\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OPSLADDER_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", *arguments, str(directory)],
        cwd=directory,
        env={**environment, "PYTHONPATH": str(SHARED), "OPSLADDER_NO_SKIP": "1" if no_skip else "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


SKIPS = {
    "in a test": "import pytest\ndef test_it():\n    pytest.skip('no such thing')\n",
    "in a fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('no such thing')\ndef test_it(f): pass\n",
    "by a mark": "import pytest\n@pytest.mark.skip(reason='no such thing')\ndef test_it(): pass\n",
    "while collecting": "import pytest\npytest.skip('no such thing', allow_module_level=True)\n",
}


@pytest.mark.parametrize("content", SKIPS.values(), ids=SKIPS.keys())
def test_a_skip_is_a_failure_that_says_why_where_no_skips_are_allowed(tmp_path: Path, content: str) -> None:
    code, output = _pytest(tmp_path, content, no_skip=True)
    assert code != pytest.ExitCode.OK
    assert "OPSLADDER_NO_SKIP=1 allows no skips: Skipped: no such thing" in output


def test_a_skip_is_a_skip_elsewhere_and_an_expected_failure_never_counts_as_one(tmp_path: Path) -> None:
    assert _pytest(tmp_path, SKIPS["in a test"])[0] == pytest.ExitCode.OK
    expected = "import pytest\n@pytest.mark.xfail\ndef test_it():\n    assert False\n"
    assert _pytest(tmp_path, expected, no_skip=True)[0] == pytest.ExitCode.OK


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "with xdist"])
def test_a_process_left_behind_fails_the_session_and_is_ended(tmp_path: Path, workers: tuple[str, ...]) -> None:
    leaking = (
        "import pathlib, subprocess\n"
        "def test_it():\n"
        "    child = subprocess.Popen(['sleep', '1234'])\n"
        f"    pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))\n"
        "    child.returncode = 0\n"
    )

    code, output = _pytest(tmp_path, leaking, *workers)

    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "processes left behind by the tests" in output
    assert "sleep 1234" in output
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_each_cli_is_the_version_it_is_called(cli: Path, cli_version: str, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    done = subprocess.run([cli, "--version"], capture_output=True, text=True, timeout=60, check=True, env=home)
    assert done.stdout.split()[0] == cli_version


def test_tests_with_a_real_cli_are_marked(cli: Path, request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("real_cli") is not None
