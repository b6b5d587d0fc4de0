"""The unit files that come with opsladder, fitted to this machine. Reads them. Used by cli to put them in place.

The service finds its records through its configuration and not through its unit: else a command that a person types
with the same configuration would look elsewhere, and a switch that was turned would turn nothing.
"""

import re
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from supervisor import shipped
from supervisor.errors import ConfigError, OpsladderError
from supervisor.settings.written import is_written

SYSTEM_PLACE = Path("/etc/systemd/system")
USER_PLACE = Path(".config/systemd/user")
SYSTEM_CONFIG = Path("/etc/opsladder/opsladder.toml")
STATE_VARIABLE = "OPSLADDER_STATE__DIR"
# The directories that the units make for the service.
STATE_LINE = 'dir = "/var/lib/opsladder/state"'
WORK_LINE = 'work_dir = "/var/lib/opsladder/work"'

_COMMAND = "/usr/bin/env opsladder"
# Systemd starts no program whose path has one of these, however it is written.
_NOT_IN_PROGRAMS = re.compile(r"[\"'\\$\x00-\x1f\x7f]")
# What a user's own manager can do without being root. It runs as that user, with that user's home and state.
_FOR_USERS = frozenset(
    {
        *("Type", "ExecStart", "ExecReload", "Restart", "RestartSec", "SuccessExitStatus", "KillMode"),
        *("WatchdogSec", "TimeoutStartSec", "TimeoutStopSec"),
        *("UMask", "NoNewPrivileges", "LockPersonality", "RestrictRealtime", "RestrictSUIDSGID"),
        *("Description", "Documentation", "OnCalendar", "RandomizedDelaySec", "Persistent", "WantedBy"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """What is wrong with the configuration that units name, and the remedy."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One file to be put in place."""

    name: str
    text: str


def units(command: Path, *, user: bool) -> list[Unit]:
    """Every unit, with the command where it really is."""
    return units_as_written(_in_a_unit(command), user=user)


def units_as_written(command: str, *, user: bool) -> list[Unit]:
    """The same with the command as it stands in a unit already."""
    return [
        Unit(name=file.name, text=_fitted(file.read_text(encoding="utf-8"), command, user=user))
        for file in sorted(shipped.SYSTEMD.iterdir())
        if file.suffix in (".service", ".timer")
    ]


def _in_a_unit(command: Path) -> str:
    """How the beginning of a line ExecStart= is written that starts this program."""
    text = str(command)
    if _NOT_IN_PROGRAMS.search(text):
        raise OpsladderError(
            f"systemd cannot start {text!r}, because of a quote, backslash, dollar sign or line end in its path.",
            remedy="Install opsladder in another directory, /opt/opsladder for example.",
        )
    escaped = text.replace("%", "%%")
    return escaped if re.fullmatch(r"[\w./+@:,=~%-]+", escaped) else f'"{escaped}"'


def is_masked(path: Path) -> bool:
    """Whether a unit was masked: an administrator's word that it is not to be started, which is a link to /dev/null.

    An empty file says the same to systemd.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_size == 0)


def hidden_from_the_service(command: Path) -> bool:
    """Whether the service could not see the command: homes are hidden from it."""
    return command.parts[1:2] in (("home",), ("root",))


def lacking_in(config: Path) -> Lacking | None:
    """What keeps the service and whoever types a command with the same configuration from seeing the same records."""
    try:
        if not config.exists():
            remedy = f"`opsladder init {shlex.quote(str(config.parent))}` writes one to start from."
            return Lacking(what=f"{config} does not exist yet.", remedy=remedy)
        if is_written(config, "state", "dir"):
            return None
    except ConfigError as error:
        return Lacking(what=error.message, remedy="Correct it; `opsladder doctor` says when it is right.")
    except OSError as error:
        what = f"{config} cannot be looked at: {error.strerror}."
        return Lacking(what=what, remedy="Ask again as root.")
    what = f"{config} does not set state.dir, so the service has other records than whoever types a command."
    return Lacking(what=what, remedy=lines_for(config))


def lines_for(config: Path) -> str:
    """What to write where, so that everybody sees the records of the service."""
    return f"Put {STATE_LINE} under [state] and {WORK_LINE} under [claude] of {config}."


def _fitted(text: str, command: str, *, user: bool) -> str:
    text = text.replace(_COMMAND, command)
    if not user:
        return text
    text = text.replace(str(SYSTEM_CONFIG), "%E/opsladder/opsladder.toml")
    text = re.sub(r"^WantedBy=multi-user\.target$", "WantedBy=default.target", text, flags=re.MULTILINE)
    kept = [line for line in text.splitlines() if _is_for_users(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([text.splitlines()[0], *kept])) + "\n"


def _is_for_users(line: str) -> bool:
    return not line or line.startswith("[") or line.partition("=")[0] in _FOR_USERS
