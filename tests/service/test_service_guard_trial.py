"""The doctor's trial of the guard notices a CLI that does not ask."""

import asyncio
from pathlib import Path

import pytest

from supervisor.cli.doctor_service import guard_trial
from supervisor.cli.findings import Grade
from supervisor.settings import load_settings


@pytest.mark.parametrize("way", ["bypasses", "healthy"], ids=["runs-unasked", "asks-for-something-else"])
def test_a_cli_on_which_the_forbidden_call_was_not_refused_is_a_problem(
    tmp_path: Path, standin: Path, way: str
) -> None:
    (tmp_path / "work").mkdir()
    config = tmp_path / "opsladder.toml"
    config.write_text(
        f'[claude]\nbin = "{standin}"\nwork_dir = "{tmp_path}/work"\nend_grace_seconds = 2\n'
        f'env = {{ STANDIN = "{way}", STANDIN_PATH = "{standin}" }}\n'
    )
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "OPSLADDER_STATE__DIR": str(tmp_path / "state")}

    found = asyncio.run(guard_trial(load_settings(config, environ, cwd=tmp_path)))

    assert (found.check, found.grade) == ("guard", Grade.PROBLEM)
    assert found.remedy == "Do not run cycles with this CLI. Use another version."
