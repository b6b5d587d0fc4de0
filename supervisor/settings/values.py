"""The kinds of values a setting can have, from a file or from an environment variable. Reads files that a value names.

Used by ``settings.schema``. Numbers and switches are strict, so ``max_tier = "3"`` and ``max_tier = true`` are
mistakes in a file; in an environment variable everything is text, so there the text is read.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, Strict, ValidationInfo

from supervisor.decide.blackout import read_blackout
from supervisor.settings.agent_env import never_passed
from supervisor.settings.problems import Unsuitable, closest

Item = TypeVar("Item")

_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SWITCH: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROMPT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_TEXT_FILES: Final = frozenset({".md", ".markdown", ".rst", ".text", ".txt"})


class EnvironmentText(str):
    """A value that comes from an environment variable."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What relative names are relative to. ``prompt_dirs`` are searched in order."""

    base_dir: Path
    home: Path | None
    prompt_dirs: tuple[Path, ...]

    def resolve(self, name: str) -> Path:
        """A path as the operator wrote it, made absolute."""
        if name.startswith("~"):
            first, _, rest = name.partition("/")
            if first != "~":
                raise ValueError("only ~/ is understood, not another user's home")
            if self.home is None:
                raise ValueError("there is no HOME to put in place of ~")
            return (self.home / rest).resolve()
        return (self.base_dir / name).resolve()

    def prompt(self, name: str) -> Path | None:
        """The prompt file of this name: the operator's own before the shipped one."""
        if not re.fullmatch(_PROMPT_NAME, name):
            return None
        return next((d / name for d in self.prompt_dirs if (d / name).is_file()), None)


def _place(info: ValidationInfo) -> Place:
    if not isinstance(info.context, Place):
        raise TypeError("settings are validated with a Place as their context")
    return info.context


def _whole_number(value: object) -> object:
    if isinstance(value, EnvironmentText):
        try:
            return int(value)
        except ValueError:
            raise ValueError("should be a whole number") from None
    return value


def _number(value: object) -> object:
    if isinstance(value, EnvironmentText):
        try:
            return float(value)
        except ValueError:
            raise ValueError("should be a number") from None
    return value


def _switch(value: object) -> object:
    if isinstance(value, EnvironmentText):
        if value.lower() not in _SWITCH:
            raise ValueError("should be true or false")
        return _SWITCH[value.lower()]
    return value


def _names(value: object) -> object:
    if isinstance(value, EnvironmentText):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value


def _table(value: object) -> object:
    """As it would stand in the file, on one line."""
    if isinstance(value, EnvironmentText):
        try:
            read = tomllib.loads(f"table = {value}")
        except tomllib.TOMLDecodeError:
            read = {}
        # Nothing but the one table: a second line would set something else.
        if list(read) != ["table"] or not isinstance(read["table"], dict):
            raise ValueError('should be a table like { NAME = "value" }')
        return read["table"]
    return value


def _duration(value: object) -> object:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[1]) == 0:
        raise ValueError('should be a duration like "90s", "15m", "4h" or "1d"')
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _absolute(value: object, info: ValidationInfo) -> object:
    if value == "":
        raise ValueError("should not be empty")
    return _place(info).resolve(value) if isinstance(value, str) else value


def _program(value: str, info: ValidationInfo) -> str:
    """A bare name is looked up on the PATH later; anything with a slash is a path."""
    return str(_place(info).resolve(value)) if "/" in value or value.startswith("~") else value


def _prompt(value: str, info: ValidationInfo) -> str:
    place = _place(info)
    if place.prompt(value) is None:
        searched = " or ".join(str(d) for d in place.prompt_dirs)
        existing = [file.name for d in place.prompt_dirs if d.is_dir() for file in d.glob("*.md")]
        raise Unsuitable(f"there is no such file in {searched}", suggestion=closest(value, existing))
    return value


def _text_or_file(value: str, info: ValidationInfo) -> str:
    if "\n" in value or not value:
        return value
    try:
        path = _place(info).resolve(value)
        if path.is_file():
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        # A sentence can be too long for a file name; then it is no file name.
        if _looks_like_a_file(value):
            raise ValueError(f"cannot be read: {error.strerror}") from None
        return value
    if _looks_like_a_file(value):
        raise ValueError(f"there is no such file: {path}")
    return value


def _looks_like_a_file(value: str) -> bool:
    return not re.search(r"\s", value) and Path(value).suffix.lower() in _TEXT_FILES


def _of_form(pattern: str, words: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(words)
        return value

    return check


def not_empty(value: tuple[Item, ...]) -> tuple[Item, ...]:
    """Refuse an empty list; unlike ``min_length`` it does not count elements that are wrong as missing."""
    if not value:
        raise ValueError("should not be empty")
    return value


def _passable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("should be the name of an environment variable")
    if why := never_passed(name):
        raise ValueError(why)
    return name


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("cannot hold a NUL character")
    return value


def _unchangeable(value: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(value))


def _cron(value: str) -> str:
    # Here, not above: APScheduler is slow to import and only a schedule with cron needs it.
    from datetime import UTC, datetime

    from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]

    try:
        trigger = CronTrigger.from_crontab(value, timezone=UTC)
    except ValueError as error:
        raise ValueError(f"should be a cron line of five fields: {error}") from None
    if trigger.get_next_fire_time(None, datetime(2000, 1, 1, tzinfo=UTC)) is None:
        raise ValueError("names a day that never comes")
    return value


def _blackout(value: str) -> str:
    read_blackout(value)
    return value


def _timezone(value: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        guess = closest(value, available_timezones())
        raise Unsuitable('should be an IANA time zone like "Europe/Berlin"', suggestion=guess) from None
    return value


def _database_url(value: SecretStr, info: ValidationInfo) -> SecretStr:
    scheme, separator, rest = value.get_secret_value().partition("://")
    backend = scheme.partition("+")[0]
    if not separator or backend not in ("sqlite", "postgresql", "postgres"):
        raise ValueError('should begin with "sqlite:///" or "postgresql://"')
    if backend != "sqlite":
        return value
    name, _, options = rest.removeprefix("/").partition("?")
    if name in ("", ":memory:"):
        raise ValueError("should name a file: what only memory holds is lost")
    # Else the same configuration would mean another database in every directory it is started from.
    url = sqlite_url(_place(info).resolve(name))
    return SecretStr(f"{url}?{options}" if options else url)


def _lines(value: object) -> object:
    # By white space: a comma may be part of an address.
    return value.split() if isinstance(value, EnvironmentText) else value


def _notify_url(value: SecretStr) -> SecretStr:
    """The form only: which services there are, Apprise knows, which takes long to load. See ``notify.targets``."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://\S+", value.get_secret_value()):
        raise ValueError('should be an Apprise address like "mailto://user:password@example.com"')
    return value


def _ping_url(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"https?://[^\s/]\S*", value.get_secret_value()):
        raise ValueError('should begin with "https://" or "http://"')
    return value


def sqlite_url(file: PurePath | str) -> str:
    """The address of a database in a file."""
    return f"sqlite:///{file}"


WholeNumber = Annotated[int, Strict(), BeforeValidator(_whole_number)]
Number = Annotated[float, Strict(), BeforeValidator(_number), Field(allow_inf_nan=False)]
PositiveNumber = Annotated[Number, Field(gt=0)]
Days = Annotated[Number, Field(ge=1, le=36_500)]
Switch = Annotated[bool, Strict(), BeforeValidator(_switch)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
Name = Annotated[str, Field(min_length=1)]
ScheduleName = Annotated[
    str, AfterValidator(_of_form(r"[a-z0-9-]+", "should be made of small letters, digits and dashes"))
]
# These become arguments of the CLI, where a leading dash would be an option.
ModelName = Annotated[str, AfterValidator(_of_form(r"[A-Za-z0-9]\S*", "should be a model name"))]
ToolName = Annotated[
    str, AfterValidator(_of_form(r"[A-Za-z][A-Za-z0-9_-]*", 'should be the name of a CLI tool like "Bash"'))
]
ToolNames = Annotated[tuple[ToolName, ...], AfterValidator(not_empty)]
ToolPattern = Annotated[
    str, AfterValidator(_of_form(r"[A-Za-z][A-Za-z0-9_-]*(\(.+\))?", 'should be a pattern like "Bash(rm -rf:*)"'))
]
PromptName = Annotated[
    str,
    AfterValidator(_of_form(_PROMPT_NAME, "should be a file name without directories")),
    AfterValidator(_prompt),
]
Program = Annotated[Name, AfterValidator(_program)]
AbsolutePath = Annotated[Path, BeforeValidator(_absolute)]
TextOrFile = Annotated[str, AfterValidator(_text_or_file)]
VariableName = Annotated[str, AfterValidator(_passable)]
VariableNames = Annotated[tuple[VariableName, ...], BeforeValidator(_names)]
FieldNames = Annotated[tuple[Name, ...], BeforeValidator(_names)]
Variables = Annotated[
    Mapping[VariableName, Annotated[str, AfterValidator(_without_nul)]],
    BeforeValidator(_table),
    AfterValidator(_unchangeable),
]
CronLine = Annotated[str, AfterValidator(_cron)]
TimeZone = Annotated[str, AfterValidator(_timezone)]
BlackoutWindow = Annotated[str, AfterValidator(_blackout)]
Secret = Annotated[SecretStr, Field(min_length=1)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
NotifyUrls = Annotated[
    tuple[Annotated[SecretStr, AfterValidator(_notify_url)], ...], BeforeValidator(_lines), Field(repr=False)
]
PingUrl = Annotated[SecretStr, AfterValidator(_ping_url)]
