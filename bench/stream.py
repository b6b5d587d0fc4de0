"""What reading a large stream costs against ``json.loads`` of its lines alone: processor time and memory.

Both ways read the same file, in turns, each time in a fresh process, so that neither finds the other's memory. Run by
``__main__``.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.stream_file import write_stream
from bench.stream_reader import WAYS

_SIZE = 200_000_000
_ROUNDS = 5
_CPU_AIM = 2.0
_MEMORY_AIM_MB = 100


def run() -> None:
    with tempfile.TemporaryDirectory(prefix="opsladder-bench-") as scratch:
        file = Path(scratch) / "stream.jsonl"
        print(f"  writing a stream of {_SIZE / 1e6:.0f} MB", flush=True)
        lines = write_stream(file, size=_SIZE)
        print(f"  reading its {lines} lines {_ROUNDS} times each way", flush=True)
        rounds = [{way: _read(way, file) for way in WAYS} for _ in range(_ROUNDS)]
    ratio = median(taken["parse"]["cpu"] / taken["loads"]["cpu"] for taken in rounds)
    print(f"  processor time, parser / json.loads: {ratio:.2f} (aim: at most {_CPU_AIM})")
    for way, name in (("parse", "parser"), ("loads", "json.loads")):
        seconds = [taken[way]["cpu"] for taken in rounds]
        peak = max(taken[way]["memory"] for taken in rounds) / 1e6
        aim = f" (aim: below {_MEMORY_AIM_MB} MB)" if way == "parse" else ""
        print(f"    {name:10} median {median(seconds):.2f} s, fastest {min(seconds):.2f} s, memory +{peak:.0f} MB{aim}")


def _read(way: str, file: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.stream_reader", way, str(file)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    taken: dict[str, float] = json.loads(done.stdout)
    return taken
