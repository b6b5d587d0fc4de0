"""How long a three-tier climb takes with `opsladder cycle` against a shell loop of the same calls. Run by ``__main__``.

Same binary, flags, prompts and scripted answers on both sides, in turns, so that what else the machine does weighs on
both. The model answers at once, which makes the supervisor's own share as large as it can be.
"""

import tempfile
from pathlib import Path
from statistics import median

from bench import breakdown
from bench.api_server import CLIMB, ApiServer
from bench.binaries import both
from bench.course import Course, missing_tools

_PAIRS = 9
_AIM = 1.15
_MODEL_SECONDS = 2.0


def run() -> None:
    if missing := missing_tools():
        print(f"  cannot run here, because this is missing: {', '.join(missing)}")
        return
    for version, binary in both().items():
        print(f"  Claude CLI {version}: one climb each way to warm up, then {_PAIRS} pairs", flush=True)
        with ApiServer() as server, _scratch() as directory:
            course = Course(binary, server, Path(directory))
            course.warm_up()
            pairs = [_pair(course, number) for number in range(1, _PAIRS + 1)]
        _print_comparison(version, pairs)
        breakdown.run(version, binary)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="opsladder-bench-", ignore_cleanup_errors=True)


def _pair(course: Course, number: int) -> tuple[float, float]:
    loop, cycle = course.loop().seconds, course.cycle().seconds
    print(f"    pair {number}: loop {loop:.3f} s, cycle {cycle:.3f} s, ratio {cycle / loop:.3f}", flush=True)
    return loop, cycle


def _print_comparison(version: str, pairs: list[tuple[float, float]]) -> None:
    loops, cycles = zip(*pairs, strict=True)
    ratio = median(cycle / loop for loop, cycle in pairs)
    print(f"  Claude CLI {version}: cycle / loop {ratio:.3f} (aim: at most {_AIM})")
    for name, seconds in (("loop", loops), ("cycle", cycles)):
        print(f"    {name:5} median {median(seconds):.3f} s, fastest {min(seconds):.3f} s")
    print(f"    fastest against fastest {min(cycles) / min(loops):.3f}")
    thinking = _MODEL_SECONDS * sum(len(script.turns) for script in CLIMB.scripts)
    print(
        f"    the scripted model answers at once; by arithmetic, with {_MODEL_SECONDS:.0f} s for each answer: "
        f"{(median(cycles) + thinking) / (median(loops) + thinking):.3f}",
        flush=True,
    )
