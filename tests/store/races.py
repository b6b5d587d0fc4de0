"""Let several real processes do the same thing to a database at the same moment."""

import subprocess
import sys


def race(program: str, url: str, *, processes: int = 4) -> list[str]:
    """Run the program once per process and return what each printed after the start signal, sorted.

    The program prints ``ready`` when it has loaded what it needs, waits for a line on stdin, then acts.
    """
    racers = [
        subprocess.Popen([sys.executable, "-c", program, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("\n")
            racer.stdin.flush()
        return sorted(racer.communicate(timeout=60)[0].strip() for racer in racers)
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
