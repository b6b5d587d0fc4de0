"""Let several real processes do the same thing to a database at the same moment. Does I/O."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def race(program: str, url: str, *, processes: int = 4) -> list[str]:
    """Run the program once per process and return what each printed after the start signal, sorted.

    The program prints ``ready`` when it has loaded what it needs, waits for a line on stdin, then acts.
    """
    with _racers(program, url, processes) as racers:
        _tell(racers, "")
        return sorted(racer.communicate(timeout=60)[0].strip() for racer in racers)


def race_often(program: str, url: str, rounds: list[str], *, processes: int = 8) -> list[list[str]]:
    """Run the program once per process, and in each round let all act at once: what each printed, sorted, by round.

    The program prints ``ready``, then answers each line on stdin, which is the round's, with one line on stdout.
    """
    answers = []
    with _racers(program, url, processes) as racers:
        for name in rounds:
            _tell(racers, name)
            answers.append(sorted(_hear(racer) for racer in racers))
    return answers


@contextmanager
def _racers(program: str, url: str, processes: int) -> Iterator[list["subprocess.Popen[str]"]]:
    racers = [
        subprocess.Popen([sys.executable, "-c", program, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    try:
        for racer in racers:
            assert _hear(racer) == "ready"
        yield racers
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()


def _tell(racers: list["subprocess.Popen[str]"], line: str) -> None:
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{line}\n")
        racer.stdin.flush()


def _hear(racer: "subprocess.Popen[str]") -> str:
    assert racer.stdout is not None
    return racer.stdout.readline().rstrip("\n")
