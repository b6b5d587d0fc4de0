"""Where the time of a climb goes: into the CLIs, before and between them, into imports. Run by ``ladder``.

A script in front of the CLI notes when it starts, has its prompt and exits. It has a cost, so these climbs are apart
from the ones that are compared.
"""

import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench.api_server import ApiServer
from bench.course import OPSLADDER, BenchmarkFailed, Climb, Course

_CLIMBS = 5
_PACKAGES_SHOWN = 8
_SCRIPT = Path(__file__).with_name("timed_cli.sh")
_STEPS = (
    "start to spawn of tier 1",
    "spawn to prompt of tier 1",
    "prompt to exit of tier 1",
    "exit of tier 1 to spawn of tier 2",
    "spawn to prompt of tier 2",
    "prompt to exit of tier 2",
    "exit of tier 2 to spawn of tier 3",
    "spawn to prompt of tier 3",
    "prompt to exit of tier 3",
    "exit of tier 3 to the end",
)


def run(version: str, binary: Path) -> None:
    print(f"  Claude CLI {version}: where the time goes, medians of {_CLIMBS} climbs each way", flush=True)
    with (
        ApiServer() as server,
        tempfile.TemporaryDirectory(prefix="opsladder-bench-", ignore_cleanup_errors=True) as scratch,
    ):
        directory = Path(scratch)
        log = directory / "times"
        course = Course(_timed(binary, log, directory / "claude"), server, directory)
        course.warm_up()
        loops: list[list[float]] = []
        cycles: list[list[float]] = []
        for _ in range(_CLIMBS):
            loops.append(_steps(course.loop, log))
            cycles.append(_steps(course.cycle, log))
        for step, loop, cycle in zip(_STEPS, _medians(loops), _medians(cycles), strict=True):
            print(f"    {step:34} loop {loop:6.0f} ms, cycle {cycle:6.0f} ms, more by {cycle - loop:5.0f} ms")
        imports = _imports(course.cycle((sys.executable, "-X", "importtime", OPSLADDER)).stderr)
    heaviest = sorted(imports, key=imports.__getitem__, reverse=True)[:_PACKAGES_SHOWN]
    shown = ", ".join(f"{package} {imports[package]:.0f}" for package in heaviest)
    print(f"    imports of cycle: {sum(imports.values()):.0f} ms, of which {shown}", flush=True)


def _timed(binary: Path, log: Path, script: Path) -> Path:
    text = _SCRIPT.read_text(encoding="utf-8")
    script.write_text(text.replace("BENCH_CLI", str(binary)).replace("BENCH_LOG", str(log)), encoding="utf-8")
    script.chmod(0o755)
    return script


def _steps(climb: Callable[[], Climb], log: Path) -> list[float]:
    """How long each of the steps took, in milliseconds."""
    log.unlink(missing_ok=True)
    climbed = climb()
    moments = [float(line.split()[1]) for line in log.read_text(encoding="utf-8").splitlines()]
    if len(moments) != len(_STEPS) - 1:
        raise BenchmarkFailed(f"The CLI noted {len(moments)} moments and not {len(_STEPS) - 1}.")
    whole = [climbed.started, *moments, climbed.ended]
    return [(later - earlier) * 1000 for earlier, later in pairwise(whole)]


def _medians(climbs: list[list[float]]) -> list[float]:
    return [median(values) for values in zip(*climbs, strict=True)]


def _imports(report: str) -> dict[str, float]:
    """Milliseconds by package, from lines like ``import time: self [us] | cumulative | name``."""
    spent: dict[str, float] = {}
    for line in report.splitlines():
        own, _, name = line.removeprefix("import time:").rpartition("|")
        microseconds = own.partition("|")[0].strip()
        if line.startswith("import time:") and microseconds.isdigit():
            package = name.strip().partition(".")[0]
            group = "the standard library" if package in sys.stdlib_module_names else package
            spent[group] = spent.get(group, 0.0) + int(microseconds) / 1000
    return spent
