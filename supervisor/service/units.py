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
_PLAIN = re.compile(r"[\w./+@:,=~%-]+")
_USER_CONFIG = "%E/opsladder/opsladder.toml"
# Below the root: homes, because of ProtectHome=, and what is temporary, because of PrivateTmp=.
_HIDDEN = (("home",), ("root",), ("run", "user"), ("tmp",), ("var", "tmp"))
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


def units(command: Path, *, user: bool, config: Path | None = None) -> list[Unit]:
    """Every unit, with the command where it really is, and the configuration if it is not the usual one."""
    return units_as_written(_in_a_unit(command), user=user, config=None if config is None else _argument(config))


def units_as_written(command: str, *, user: bool, config: str | None = None) -> list[Unit]:
    """The same with the command and the configuration as they stand in a unit already."""
    read = config or (_USER_CONFIG if user else str(SYSTEM_CONFIG))
    return [
        Unit(name=file.name, text=_fitted(file.read_text(encoding="utf-8"), command, read, user=user))
        for file in sorted(shipped.SYSTEMD.iterdir())
        if file.suffix in (".service", ".timer")
    ]


def started_by(unit: str) -> tuple[str, str] | None:
    """The command and the configuration in the text of the service's unit, as they stand there."""
    line = re.search(r"^ExecStart=(.+?) run --config (.+)$", unit, re.MULTILINE)
    return (line[1], line[2]) if line else None


def _in_a_unit(command: Path) -> str:
    """How the beginning of a line ExecStart= is written that starts this program."""
    text = str(command)
    if _NOT_IN_PROGRAMS.search(text):
        raise OpsladderError(
            f"systemd cannot start {text!r}, because of a quote, backslash, dollar sign or line end in its path.",
            remedy="Install opsladder in another directory, /opt/opsladder for example.",
        )
    escaped = text.replace("%", "%%")
    return escaped if _PLAIN.fullmatch(escaped) else f'"{escaped}"'


def _argument(file: Path) -> str:
    """How an argument is written in a line ExecStart=."""
    text = str(file)
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise OpsladderError(f"No unit can name {text!r}.", remedy="Give the file a name without control characters.")
    escaped = re.sub(r'([\\"])', r"\\\1", text).replace("%", "%%").replace("$", "$$")
    return escaped if _PLAIN.fullmatch(escaped) else f'"{escaped}"'


def read_argument(written: str) -> Path:
    """The file that such an argument names."""
    bare = written[1:-1] if written.startswith('"') else written
    return Path(re.sub(r"\\(.)", r"\1", bare.replace("$$", "$").replace("%%", "%")))


def is_masked(path: Path) -> bool:
    """Whether a unit was masked: an administrator's word that it is not to be started, which is a link to /dev/null.

    An empty file says the same to systemd.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_size == 0)


def hidden_from_the_service(file: Path) -> bool:
    """Whether the service could not see a file."""
    return any(file.parts[1 : len(place) + 1] == place for place in _HIDDEN)


def lacking_in(config: Path) -> Lacking | None:
    """What keeps the service and whoever types a command with the same configuration from seeing the same records."""
    try:
        if not config.exists():
            where = (
                shlex.quote(str(config.parent))
                if config.name == SYSTEM_CONFIG.name
                else f"--config {shlex.quote(str(config))}"
            )
            remedy = f"`opsladder init {where}` writes one to start from."
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


def _fitted(text: str, command: str, config: str, *, user: bool) -> str:
    text = text.replace(_COMMAND, command).replace(f"--config {SYSTEM_CONFIG}", f"--config {config}")
    if not user:
        return text
    text = re.sub(r"^WantedBy=multi-user\.target$", "WantedBy=default.target", text, flags=re.MULTILINE)
    kept = [line for line in text.splitlines() if _is_for_users(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([text.splitlines()[0], *kept])) + "\n"


def _is_for_users(line: str) -> bool:
    return not line or line.startswith("[") or line.partition("=")[0] in _FOR_USERS
