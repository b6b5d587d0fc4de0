"""The practice web server, and the demo's own commands that mend it."""

import subprocess
from pathlib import Path

from supervisor.rehearsal.demo_site import build_demo_site
from supervisor.rehearsal.scenario import Scenario
from supervisor.rehearsal.scenario_file import builtin_scenarios, load_scenario


def _shell(command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", str(command)], capture_output=True, text=True, timeout=60, check=False)


def _webctl(site: Path, verb: str) -> subprocess.CompletedProcess[str]:
    return _shell(f"{site}/bin/webctl {verb}")


def _play(scenario: Scenario, tier: int) -> list[subprocess.CompletedProcess[str]]:
    return [_shell(call.input["command"]) for turn in scenario.turns(tier, 1) for call in turn.tools]


def test_the_service_is_down_and_cannot_be_restarted_while_its_configuration_is_broken(tmp_path: Path) -> None:
    build_demo_site(tmp_path)

    assert _webctl(tmp_path, "status").returncode == 3
    restart = _webctl(tmp_path, "restart")
    assert restart.returncode == 1
    assert "line 6: upstream needs host:port" in restart.stderr
    check = _webctl(tmp_path, "check-config")
    assert (check.returncode, check.stdout.count("\n")) == (1, 1)
    assert _webctl(tmp_path, "").returncode == 2


def test_the_demos_own_commands_find_the_fault_fail_to_restart_and_then_mend_it(tmp_path: Path) -> None:
    demo = load_scenario(builtin_scenarios()["demo"], placeholders=build_demo_site(tmp_path))

    status, log, disk = _play(demo, 1)
    assert (status.returncode, log.returncode, disk.returncode) == (3, 0, 0)
    assert "deploy 4471" in log.stdout

    restart, check = _play(demo, 2)
    assert (restart.returncode, check.returncode) == (1, 1)
    assert _webctl(tmp_path, "status").returncode == 3

    assert [done.returncode for done in _play(demo, 3)] == [0, 0, 0, 0]
    status = _webctl(tmp_path, "status")
    assert (status.returncode, status.stdout) == (0, "web: running, 4 of 4 workers ready, upstream connected\n")
    assert "upstream 127.0.0.1:9000\n" in (tmp_path / "etc/web.conf").read_text()
    assert (tmp_path / "etc/web.conf.before-repair").exists()


def test_the_demo_works_under_a_directory_that_exists_already(tmp_path: Path) -> None:
    build_demo_site(tmp_path)
    (tmp_path / "run/web.state").write_text("running\n")
    build_demo_site(tmp_path)
    assert _webctl(tmp_path, "status").returncode == 3
