"""What a configuration file says itself, whatever the environment puts above it. Reads it. Used by service.units."""

from pathlib import Path

from supervisor.settings.toml_file import read_toml


def is_written(file: Path, section: str, key: str) -> bool:
    """Whether a file sets something, be it right or wrong. ``ConfigProblems`` if the file cannot be read."""
    table = read_toml(file)[0].get(section)
    return isinstance(table, dict) and key in table
