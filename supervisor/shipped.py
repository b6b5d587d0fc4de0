"""Where the files that come with opsladder are: ``prompts/``, ``config/``, ``systemd/``. Reads nothing itself.

In a checkout they stand at the top of the repository, in a wheel inside the package.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_IN_WHEEL = _PACKAGE / "shipped"
_ROOT = _IN_WHEEL if _IN_WHEEL.is_dir() else _PACKAGE.parent

PROMPTS = _ROOT / "prompts"
CONFIG = _ROOT / "config"
SYSTEMD = _ROOT / "systemd"
