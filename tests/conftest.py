"""What all tests share: the real CLIs, a closed environment for them, no silent skips, and no process left behind."""

import os
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import hypothesis
import psutil
import pytest
from realcli import NEW_VERSION, OLD_VERSION, CliMissing, closed_environment, find_new_cli, find_old_cli

_NO_SKIP = os.environ.get("OPSLADDER_NO_SKIP") == "1"
_CLI_FIXTURES = frozenset({"new_cli", "old_cli", "cli"})
_GRACE_SECONDS = 10.0
_WITH_PROCESSES = frozenset({"claude", "cli", "climb", "guard", "rehearsal", "service", "web"})
_leaks = pytest.StashKey[list[str]]()

# A busy machine fails no property; the fullest run takes the same examples each time, every other one new ones.
hypothesis.settings.register_profile(
    "here",
    deadline=None,
    derandomize=_NO_SKIP,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("here")


@pytest.fixture(scope="session")
def new_cli() -> Path:
    """The Claude CLI of the installed SDK."""
    try:
        return find_new_cli()
    except CliMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def old_cli() -> Path:
    """A Claude CLI from before resumed runs carried their parent's totals."""
    try:
        return find_old_cli()
    except CliMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session", params=[NEW_VERSION, OLD_VERSION])
def cli_version(request: pytest.FixtureRequest) -> str:
    """Each version in turn; what ``cli`` is."""
    return str(request.param)


@pytest.fixture(scope="session")
def cli(cli_version: str, request: pytest.FixtureRequest) -> Path:
    """Each real CLI in turn."""
    binary = request.getfixturevalue("new_cli" if cli_version == NEW_VERSION else "old_cli")
    assert isinstance(binary, Path)
    return binary


@pytest.fixture
def agent_env(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """``agent_env(base_url)``: a closed environment whose HOME is this test's own."""
    home = tmp_path / "home"
    home.mkdir()
    return lambda base_url: closed_environment(home=home, base_url=base_url)


@pytest.fixture(autouse=True)
def _no_orphans(request: pytest.FixtureRequest) -> Generator[None, None, None]:
    """Bury what killed supervisors left and this process has adopted: every look at processes sees the dead too."""
    yield
    if "supervisor.claude.tree" in sys.modules and _WITH_PROCESSES.intersection(request.path.parts):
        sys.modules["supervisor.claude.tree"].reap_orphans()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _CLI_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.real_cli)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if _NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        _turn_into_failure(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if _NO_SKIP and report.skipped:
        _turn_into_failure(report)
    return report


def _turn_into_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"Skipped, and OPSLADDER_NO_SKIP=1 allows no skips: {why}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    found = config.stash.setdefault(_leaks, [])
    # With xdist the children of the controlling process are its workers, and each of those looks for itself.
    if not config.getoption("numprocesses", None):
        found.extend(_end_surviving_children())
    # Not in the small sessions that tests start with a copy of this file: others are in the middle of their runs then.
    if not hasattr(config, "workeroutput") and Path(__file__).parent.name == "tests":
        _clear_away_posts()
    if found and hasattr(config, "workeroutput"):
        config.workeroutput["leaks"] = found
    elif found and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """A worker of xdist has ended and says what it found; the controlling process fails the session."""
    config = getattr(node, "config", None)
    output = getattr(node, "workeroutput", None) or {}
    if isinstance(config, pytest.Config):
        config.stash.setdefault(_leaks, []).extend(output.get("leaks", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    leaks = config.stash.get(_leaks, [])
    if leaks:
        terminalreporter.section("processes left behind by the tests", red=True)
        for leak in leaks:
            terminalreporter.write_line(leak)


def _clear_away_posts() -> None:
    """What supervisors that tests killed have left, as the next cycle would after a while."""
    from supervisor.guard.post import SHORT_PLACE, sweep_posts

    sweep_posts([SHORT_PLACE], now=time.time() + 24 * 3600)


def _end_surviving_children() -> list[str]:
    """Name the children that outlive the tests, then end them so that nothing stays behind."""
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=_GRACE_SECONDS)
    survivors = []
    for child in alive:
        try:
            if child.status() != psutil.STATUS_ZOMBIE:
                survivors.append(f"{child.pid} {' '.join(child.cmdline())[:200]}")
                child.kill()
        except psutil.NoSuchProcess:
            continue
    return survivors
