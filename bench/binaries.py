"""The two CLIs that everything is measured on, and what they need around them. Used by ``ladder`` and ``calls``.

They are the tests' CLIs: the one that the installed SDK carries, and an older one that is downloaded the first time.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from realcli import NEW_VERSION, OLD_VERSION, CliMissing, closed_environment, find_new_cli, find_old_cli

__all__ = ["CONFIG", "both", "closed_environment"]

# The shipped ladder and prompts. The CLI is told to keep its temporary files in its own home.
CONFIG = """
[claude]
pass_env = ["CLAUDE_CODE_TMPDIR"]

[[schedules]]
name = "default"
environment = "A web shop on this host: nginx, an application server and PostgreSQL. Its health page is /healthz."
"""


def both() -> dict[str, Path]:
    """The binaries by version. One that cannot be had is named and left out."""
    found: dict[str, Path] = {}
    for version, find in ((NEW_VERSION, find_new_cli), (OLD_VERSION, find_old_cli)):
        try:
            found[version] = find()
        except CliMissing as problem:
            print(f"  Claude CLI {version} is left out: {problem}", flush=True)
    return found
