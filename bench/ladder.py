"""How long a three-tier climb takes with `opsladder cycle` against a shell loop of the same calls. Run by ``__main__``.

Same binary, flags, prompts and scripted answers on both sides, in turns, so that what else the machine does weighs on
both. Once with a model that answers at once, which makes the supervisor's own share as large as it can be, and once
with one that takes its time.
"""

import tempfile
from pathlib import Path
from statistics import median

from bench import breakdown
from bench.api_server import ApiServer
from bench.binaries import both
from bench.course import Course, missing_tools
from bench.pace import AT_ONCE, LIKE_A_MODEL, in_words

_AIM = 1.15
# How many pairs at each pace.
_PACES = {AT_ONCE: 9, LIKE_A_MODEL: 5}


def run() -> None:
    if missing := missing_tools():
        print(f"  cannot run here, because this is missing: {', '.join(missing)}")
        return
    for version, binary in both().items():
        for seconds, pairs in _PACES.items():
            _compare(version, binary, seconds, pairs)
        breakdown.run(version, binary)


def _compare(version: str, binary: Path, answer_seconds: float, count: int) -> None:
    heading = f"  Claude CLI {version} and {in_words(answer_seconds)}"
    print(f"{heading}: one climb each way to warm up, then {count} pairs", flush=True)
    with (
        ApiServer(answer_seconds) as server,
        tempfile.TemporaryDirectory(prefix="opsladder-bench-", ignore_cleanup_errors=True) as scratch,
    ):
        course = Course(binary, server, Path(scratch))
        course.warm_up()
        pairs = [_pair(course, number) for number in range(1, count + 1)]
    loops, cycles = zip(*pairs, strict=True)
    print(f"{heading}: cycle / loop {median(cycle / loop for loop, cycle in pairs):.3f} (aim: at most {_AIM})")
    for name, seconds in (("loop", loops), ("cycle", cycles)):
        print(f"    {name:5} median {median(seconds):.3f} s, fastest {min(seconds):.3f} s")
    print(f"    fastest against fastest {min(cycles) / min(loops):.3f}", flush=True)


def _pair(course: Course, number: int) -> tuple[float, float]:
    loop, cycle = course.loop().seconds, course.cycle().seconds
    print(f"    pair {number}: loop {loop:.3f} s, cycle {cycle:.3f} s, ratio {cycle / loop:.3f}", flush=True)
    return loop, cycle
