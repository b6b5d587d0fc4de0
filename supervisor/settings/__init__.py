"""Files and environment → frozen ``Settings``; the only room that reads the process environment. Does file I/O.

``load`` is the entrance: it finds the file (``locate``), reads it with its lines (``toml_file``, ``lines``), puts the
environment above it (``environment``), validates (``schema``, ``values``, ``checks``) and explains what is wrong
(``explain``, ``problems``).
"""

from supervisor.settings.load import demo_settings, load_settings, settings_from_process, systemd_variables
from supervisor.settings.models_table import ModelTable, Price
from supervisor.settings.problems import ConfigProblems, Problem
from supervisor.settings.schema import (
    Budget,
    Claude,
    Continuity,
    Cooldowns,
    Escalation,
    Schedule,
    State,
    Tier,
    Web,
)
from supervisor.settings.settings import Settings

__all__ = [
    "Budget",
    "Claude",
    "ConfigProblems",
    "Continuity",
    "Cooldowns",
    "Escalation",
    "ModelTable",
    "Price",
    "Problem",
    "Schedule",
    "Settings",
    "State",
    "Tier",
    "Web",
    "demo_settings",
    "load_settings",
    "settings_from_process",
    "systemd_variables",
]
