"""Read a script and decide about it, and print what that took. Run by ``guard`` as a fresh process.

Each text is another one: what the reader remembers of words must help it no more than it does in a real run. Beside
it stands what ``shlex.split`` takes for the same text, because how fast the machine is changes from minute to minute.
"""

import json
import shlex
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.guard_rules import load
from bench.guard_tier import SCRIPT, TierOne, bash
from supervisor.model.permission import Verdict
from supervisor.shell import read_shell

_TEXTS = 150


def _texts() -> list[str]:
    return [
        SCRIPT.replace("shop", f"shop{number}").replace("unit", f"unit{number}").replace(" 5", f" {number + 5}")
        for number in range(_TEXTS)
    ]


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="opsladder-bench-") as scratch:
        tier = TierOne(load(Path(scratch)))
    reading: list[float] = []
    deciding: list[float] = []
    splitting: list[float] = []
    for text in _texts():
        call = bash(text)
        splitting.append(_milliseconds(lambda text=text: shlex.split(text, comments=True)))
        reading.append(_milliseconds(lambda text=text: read_shell(text)))
        found = read_shell(text)
        deciding.append(_milliseconds(lambda call=call, found=found: tier.decide(call, found)))
        decision = tier.decide(call, found)
        if decision.verdict is not Verdict.ALLOW:
            raise SystemExit(f"The script is not allowed: {decision.sentence}")
    taken = {
        "commands": len(read_shell(SCRIPT).commands),
        "first": reading[0] + deciding[0],
        "read": median(reading),
        "decide": median(deciding),
        "split": median(splitting),
    }
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
