"""Find the configuration file. Looks at the file system. Called from ``settings.load``."""

from collections.abc import Mapping
from pathlib import Path

from supervisor.settings.problems import ConfigProblems, Problem

FILE_NAME = "opsladder.toml"
VARIABLE = "OPSLADDER_CONFIG"
SYSTEM_WIDE = Path("/etc/opsladder") / FILE_NAME


def home_of(environ: Mapping[str, str]) -> Path | None:
    """The caller's home directory."""
    home = environ.get("HOME")
    return Path(home) if home else None


def find_config(config: Path | None, environ: Mapping[str, str], *, cwd: Path) -> Path | None:
    """The file to read: the one asked for, else the first of the usual ones that exists, else none."""
    if config is not None:
        return _named(config, "--config", cwd, home_of(environ))
    if named := environ.get(VARIABLE):
        return _named(Path(named), VARIABLE, cwd, home_of(environ))
    home = home_of(environ)
    usual = [cwd / FILE_NAME, *([home / ".config/opsladder" / FILE_NAME] if home else []), SYSTEM_WIDE]
    return next((_settled(file) for file in usual if _exists(file)), None)


def _named(file: Path, by: str, cwd: Path, home: Path | None) -> Path:
    # The shell has not expanded a ~ that comes from a unit file or a crontab.
    if file.parts[:1] == ("~",) and home is not None:
        file = home.joinpath(*file.parts[1:])
    file = cwd / file
    if not _exists(file):
        what = "is a directory, not a file" if file.is_dir() else "the configuration file does not exist"
        raise ConfigProblems([Problem(where=by, key=str(file), what=what)])
    return _settled(file)


def _exists(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError as error:
        what = f"cannot be looked at: {error.strerror}"
        raise ConfigProblems([Problem(where=str(file), what=what)]) from error


def _settled(file: Path) -> Path:
    """Absolute, but if the file is a link its neighbours are those of the link."""
    return file.parent.resolve() / file.name
