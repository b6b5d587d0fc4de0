"""Kill the supervisor hundreds of times and check each time that nothing was lost and nothing happened twice.

A command for people, not a test: ``python -m tests.climb.kill_loop --count 500 --seed 1``, or ``make kills``. It starts
processes, and leaves the directory of every round in which something did not add up.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A cycle is killed so many times at random instants before it is left to settle.
_AGAIN_AT_MOST = 3
_MODES: tuple[tuple[str, ...], ...] = ((), ("--fresh-session",))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--count", type=int, default=500, help="how many kills")
    asked.add_argument("--seed", type=int, default=None, help="of the random instants; chosen and printed if not given")
    given = asked.parse_args()
    # The tests import each other by name, as pytest lets them.
    sys.path[:0] = [str(HERE.parent), str(HERE)]
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    root = Path(tempfile.mkdtemp(prefix="opsladder-kills-"))
    print(f"{given.count} kills with seed {seed} in {root}", flush=True)
    kills, failed = Loop(root, seed).run(given.count)
    if not failed:
        shutil.rmtree(root)
    print(f"{kills} kills, {failed} rounds in which something did not add up", flush=True)
    return 1 if failed else 0


class Loop:
    """Rounds of kills, each in a place of its own below ``root``."""

    def __init__(self, root: Path, seed: int) -> None:
        from killing import new_place, standin_program

        self._root = root
        self._random = random.Random(seed)
        self._standin = standin_program(root)
        whole = new_place(root / "whole", self._standin)
        # Once to look at the CLI, once to see how long a cycle takes.
        for _ in range(2):
            begun = time.monotonic()
            assert whole.cycle().exit_code == 0
        self._whole_seconds = time.monotonic() - begun
        self._probe = whole.state / "probe.json"
        self._kills = 0
        self._failed = 0

    def run(self, wanted: int) -> tuple[int, int]:
        """Kill at every commit first, then at random instants; how many kills, and rounds with a finding."""
        for name, kill in self._rounds():
            if self._kills >= wanted:
                break
            self._round(name, kill)
        return self._kills, self._failed

    def _rounds(self) -> Iterator[tuple[str, "Kill"]]:
        for arguments in _MODES:
            for before in (True, False):
                for number in count(1):
                    kills = self._kills
                    side = "before" if before else "after"
                    yield f"{side} commit {number} {' '.join(arguments)}".strip(), _at_commit(number, before, arguments)
                    if self._kills == kills:
                        # The whole cycle passed: it has no more commits.
                        break
        for number in count(1):
            instants = [self._random.uniform(0.1, 1.1) for _ in range(self._random.randint(1, _AGAIN_AT_MOST))]
            seconds = [self._whole_seconds * instant for instant in instants]
            shown = " and ".join(f"{s:.3f} s" for s in seconds)
            yield f"random {number}: after {shown}", _at_instants(seconds, self._random.choice(_MODES))

    def _round(self, name: str, kill: "Kill") -> None:
        from killing import discrepancies, new_place, settle

        root = self._root / "".join(c if c.isalnum() else "-" for c in name)
        place = new_place(root, self._standin, self._probe)
        problems: list[str] = []
        try:
            self._kills += kill(place)
            settle(place)
            problems = discrepancies(place)
        except AssertionError as error:
            problems = [str(error)]
        finally:
            place.clear()
        if problems:
            self._failed += 1
            print(f"{name}, in {root}:", *problems, sep="\n  ", flush=True)
        else:
            shutil.rmtree(root)
        if sys.stdout.isatty():
            print(f"\r{self._kills} kills, {self._failed} findings", end="", flush=True)


def _at_commit(number: int, before: bool, arguments: tuple[str, ...]) -> "Kill":
    from killing import kill_at_commit

    return lambda place: int(kill_at_commit(place, number, *arguments, before=before))


def _at_instants(seconds: list[float], arguments: tuple[str, ...]) -> "Kill":
    from killing import kill_at_instant

    return lambda place: sum(kill_at_instant(place, instant, *arguments) for instant in seconds)


# Takes a ``cycles.Place`` and kills in it; how often it did.
Kill = Callable[..., int]

if __name__ == "__main__":
    sys.exit(main())
