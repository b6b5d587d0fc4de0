"""Read a stream file in one of two ways and print what it took. Each time a process of its own, run by ``stream``."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from supervisor.claude.stream import StreamParser

_CHUNK = 64 * 1024


def parse(path: Path) -> None:
    """As the supervisor does: chunks in, typed events out."""
    parser = StreamParser()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            parser.feed(chunk)
        parser.close()


def loads(path: Path) -> None:
    """The least that has to be done: every line turned from JSON into Python's own types."""
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


WAYS: dict[str, Callable[[Path], None]] = {"parse": parse, "loads": loads}


def _peak_memory() -> int:
    """The most memory this process ever held, in bytes. Not getrusage: that includes the parent before the exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("the kernel tells no VmHWM")


def main() -> None:
    way, path = WAYS[sys.argv[1]], Path(sys.argv[2])
    memory, cpu = _peak_memory(), time.process_time()
    way(path)
    print(json.dumps({"cpu": time.process_time() - cpu, "memory": _peak_memory() - memory}))


if __name__ == "__main__":
    main()
