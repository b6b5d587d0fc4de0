"""The command line, put together in the order in which its help lists it. Called from ``main``."""

from supervisor.cli.commands.base import app

# isort: off
from supervisor.cli.commands import running
from supervisor.cli.commands import looking
from supervisor.cli.commands import guarding
from supervisor.cli.commands import upkeep
# isort: on

__all__ = ["app", "guarding", "looking", "running", "upkeep"]
