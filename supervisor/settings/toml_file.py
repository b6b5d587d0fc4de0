"""Read a TOML file, keeping the text for messages. Called from ``settings.load``."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from supervisor.settings.problems import ConfigProblems, Problem
from supervisor.settings.source import Source

_AT_LINE: Final = re.compile(r"(?P<what>.*) \(at line (?P<line>[0-9]+), column (?P<column>[0-9]+)\)", re.DOTALL)


def read_toml(file: Path) -> tuple[dict[str, Any], Source]:
    """The data of a file and where it came from."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        return tomllib.loads(text), Source(name=str(file), text=text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigProblems([_syntax(file, str(error), text)]) from error
    except UnicodeDecodeError as error:
        raise ConfigProblems([Problem(where=str(file), what="is not UTF-8 text")]) from error
    except OSError as error:
        raise ConfigProblems([Problem(where=str(file), what=f"cannot be read: {error.strerror}")]) from error


def _syntax(file: Path, message: str, text: str) -> Problem:
    found = _AT_LINE.fullmatch(message)
    if found is None:
        # tomllib says "(at end of document)" when something is never closed.
        return Problem(where=str(file), line=text.count("\n") + 1, what=f"is not TOML: {message}")
    what = f"is not TOML: {found['what']} (column {found['column']})"
    return Problem(where=str(file), line=int(found["line"]), what=what)
