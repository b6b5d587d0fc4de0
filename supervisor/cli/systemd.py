"""`opsladder systemd install`: put the unit files in place. Called from ``app``."""

import shutil
import sys
from pathlib import Path

from supervisor.durable import write_durably
from supervisor.errors import OpsladderError
from supervisor.service.units import (
    SYSTEM_CONFIG,
    SYSTEM_PLACE,
    USER_PLACE,
    Unit,
    hidden_from_the_service,
    is_masked,
    lacking_in,
    units,
)

_HIDDEN = "homes and temporary directories are hidden from it"


def install(*, user: bool, dry_run: bool, config: Path | None = None) -> None:
    """Write the units, or show what would be written, and say what comes next."""
    command = _this_command()
    # A link keeps its name: what stands beside it is looked for there.
    config = None if config is None else config.parent.resolve() / config.name
    place = Path.home() / USER_PLACE if user else SYSTEM_PLACE
    manager = "systemctl --user" if user else "systemctl"
    found = units(command, user=user, config=config)
    _refuse_masked(place, found, manager)
    for unit in found:
        path = place / unit.name
        if dry_run:
            print(f"# {path}\n{unit.text}")
            continue
        before = path.read_text(encoding="utf-8") if path.exists() else None
        if before == unit.text:
            print(f"as it was  {path}")
            continue
        place.mkdir(parents=True, exist_ok=True)
        write_durably(path, unit.text, mode=0o644)
        print(f"{'written' if before is None else 'renewed'}    {path}")
    if dry_run:
        return
    if not user and (lacking := lacking_in(config or SYSTEM_CONFIG)):
        print(f"First: {lacking.what}\n{lacking.remedy}")
    print(f"Next: `{manager} daemon-reload`, then `{manager} enable --now opsladder.service`,")
    print(f"or without a service `{manager} enable --now opsladder-cycle@SCHEDULE.timer opsladder-sweep.timer`.")
    print(f"Settings of your own belong into `{manager} edit opsladder`: these files are renewed with each install.")
    if not user and hidden_from_the_service(command):
        print(f"The service cannot see {command}: {_HIDDEN}. Install opsladder in /opt, for example.")
    if not user and config is not None and hidden_from_the_service(config):
        print(f"The service cannot see {config}: {_HIDDEN}. Put it into /etc, for example.")


def _refuse_masked(place: Path, found: list[Unit], manager: str) -> None:
    """Before anything is written: somebody decided that such a unit must not be started, and part of them is no use."""
    masked = [unit.name for unit in found if is_masked(place / unit.name)]
    if masked:
        names = ", ".join(masked)
        raise OpsladderError(
            f"Masked in {place}, so nothing was installed: {names}.",
            remedy=f"`{manager} unmask {' '.join(masked)}` lets them be installed.",
        )


def _this_command() -> Path:
    found = shutil.which(sys.argv[0]) or shutil.which("opsladder")
    if found is None:
        raise OpsladderError(
            "The command opsladder is not on the PATH.", remedy="Install the package, not only its files."
        )
    return Path(found).absolute()
