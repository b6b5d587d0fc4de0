"""The entrance: run the benchmarks that are named, or all but the long ones. Prints to stdout."""

import os
import platform
import sys

from bench import calls, guard, ladder, records, recovery, scrape, service, stream, sweep

_SHORT = {"ladder": ladder.run, "stream": stream.run, "calls": calls.run, "guard": guard.run, "recovery": recovery.run}
# These take minutes to prepare, so they are run only when they are named.
_LONG = {"records": records.run, "scrape": scrape.run, "service": service.run, "sweep": sweep.run}
_BENCHMARKS = _SHORT | _LONG


def main() -> None:
    wanted = sys.argv[1:] or list(_SHORT)
    if unknown := [name for name in wanted if name not in _BENCHMARKS]:
        sys.exit(f"There is no benchmark {unknown[0]!r}. There is: {', '.join(_BENCHMARKS)}.")
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {_load()}", flush=True)
    for name in wanted:
        print(f"\n{name}", flush=True)
        _BENCHMARKS[name]()
    print(f"\n{_load()}")


def _load() -> str:
    """How busy the machine is: others' work on the same cores is in every number."""
    return "load average {:.2f} {:.2f} {:.2f}".format(*os.getloadavg())


if __name__ == "__main__":
    main()
