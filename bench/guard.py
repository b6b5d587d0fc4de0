"""What guarding costs: a hook's question, reading and judging a script, the calls of a run, loading the rules.

Run by ``__main__``. Whatever starts a process is timed by the clock, in turns with what it is held against; what runs
inside the supervisor by its processor time, in fresh processes.
"""

import asyncio
import json
import subprocess
import sys
from statistics import median

from bench import guard_calls, guard_hook
from bench.binaries import both
from bench.guard_tier import SCRIPT
from bench.pace import AT_ONCE, LIKE_A_MODEL, in_words

_QUESTIONS = 40
_PROCESSES = 7
_HOOK_AIM = 2.5
_DECISION_AIM_MS = 2.0
_RULES_AIM_MS = 10.0
_CALLS_AIM = 1.05
# How many calls at each pace, and how often.
_PACES = {AT_ONCE: (100, 3), LIKE_A_MODEL: (30, 1)}


def run() -> None:
    _hook()
    _decision()
    _rules()
    for version, binary in both().items():
        for seconds, (calls, rounds) in _PACES.items():
            taken = asyncio.run(guard_calls.compare(binary, guard_calls.story(calls, seconds), rounds=rounds))
            _print_calls(f"Claude CLI {version} and {in_words(seconds)}", calls, taken)


def _hook() -> None:
    for name, text in (("one command", "docker ps --all"), (f"a script of {len(SCRIPT)} bytes", SCRIPT)):
        pairs = asyncio.run(guard_hook.compare(text, rounds=_QUESTIONS))
        asked, started = (median(seconds) * 1000 for seconds in zip(*pairs, strict=True))
        ratio = median(asking / starting for asking, starting in pairs)
        print(
            f"  a hook's question about {name}: {asked:.1f} ms, python3 -I -S -c pass: {started:.1f} ms, "
            f"ratio {ratio:.2f} (aim: at most {_HOOK_AIM})",
            flush=True,
        )


def _decision() -> None:
    taken: list[dict[str, float]] = [json.loads(_printed("bench.guard_decision")) for _ in range(_PROCESSES)]
    read, decide, first = ([one[name] for one in taken] for name in ("read", "decide", "first"))
    both_ms = [reading + deciding for reading, deciding in zip(read, decide, strict=True)]
    print(f"  processor time for a script of {len(SCRIPT)} bytes, {taken[0]['commands']:.0f} commands, all allowed:")
    print(f"    reading {_spread(read)}, deciding {_spread(decide)}")
    ratio = median(ours / one["split"] for ours, one in zip(both_ms, taken, strict=True))
    print(
        f"    together {_spread(both_ms)} (aim: below {_DECISION_AIM_MS:.0f} ms), {ratio:.2f} times shlex.split of it"
    )
    print(f"    the first one of a process {_spread(first)}")


def _rules() -> None:
    taken = _spread([float(_printed("bench.guard_rules")) for _ in range(_PROCESSES)])
    print(f"  processor time for loading the rules of a tier: {taken} (aim: below {_RULES_AIM_MS:.0f} ms)", flush=True)


def _printed(module: str) -> str:
    return subprocess.run([sys.executable, "-m", module], check=True, stdout=subprocess.PIPE, text=True).stdout


def _spread(milliseconds: list[float]) -> str:
    return f"{median(milliseconds):.2f} ms (fastest {min(milliseconds):.2f})"


def _print_calls(heading: str, calls: int, rounds: list[tuple[float, float, float]]) -> None:
    guarded, least, plain = (median(seconds) for seconds in zip(*rounds, strict=True))
    ratio, least_ratio = (median(run[hooks] / run[-1] for run in rounds) for hooks in (0, 1))
    print(
        f"  {heading}: a run of {calls} calls takes {guarded:.2f} s with hooks, {plain:.2f} s without, "
        f"ratio {ratio:.3f} (aim: at most {_CALLS_AIM}), {(guarded - plain) / calls * 1000:.1f} ms per call"
    )
    print(
        f"    the least hook there can be, a printf that allows all: ratio {least_ratio:.3f}, "
        f"{(least - plain) / calls * 1000:.1f} ms per call",
        flush=True,
    )
