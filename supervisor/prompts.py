"""Render what a run is told, from the templates in ``prompts/``. Reads template files. Called from climb.

Sandboxed and strict: a template can neither reach into Python nor pass over a name it misspelt.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

from supervisor.errors import ConfigError
from supervisor.model.report import Action

if TYPE_CHECKING:
    from jinja2 import BytecodeCache

CONTINUE, RETRY, DELTA = "continue.md", "retry.md", "delta.md"

_BLANK_LINES = re.compile(r"\n{3,}")
# What an earlier cycle left behind takes no more room than this in a prompt, however much was done.
_SINCE_LIMIT = 800
_NEW_LINE = "\n"
_WRITE = "Write it, or correct the name; `opsladder init` writes the shipped ones."


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """Everything a tier's template may use.

    ``cooling`` says of each service how much of its cooldowns is used up, ``handoff`` is JSON text, ``lost`` says why a
    session was not resumed, ``unfinished`` are calls that were cut off: how they ended is not known. ``waited`` says
    what became of a call that waited for a person.
    """

    tier: int
    tier_name: str
    tiers: int
    dry_run: bool
    environment: str
    cooldowns: Mapping[str, Mapping[str, object]]
    cooling: Sequence[str] = ()
    instructions: str = ""
    handoff: str = ""
    lost: str = ""
    unfinished: Sequence[str] = ()
    waited: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What became of an incident since a tier looked at it: when that was, and what those above it did then.

    ``last_cycle`` says how the last cycle ended and why, ``actions`` are the newest ones, in their order;
    ``left_out`` counts the older ones. Names, commands and the summary are an agent's words.
    """

    services: tuple[str, ...]
    opened_at: datetime
    checked_at: datetime
    cycles: int
    last_cycle: str
    actions: tuple[Action, ...] = ()
    left_out: int = 0
    summary: str = ""


def system_prompt(path: Path) -> str:
    """The system prompt: plain text, the same on every tier, because newer CLIs keep a conversation's first one."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The system prompt {path} cannot be read: {error}.",
            remedy="Make it UTF-8 text that this user can read, or take it away to use the shipped one.",
        ) from error


class Prompts:
    """The templates of one installation: the operator's own directory first, then the shipped one."""

    def __init__(self, directories: Iterable[Path]) -> None:
        # Here, not above: the system prompt is wanted while Jinja2 is still to be loaded.
        from jinja2 import FileSystemLoader, StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        self._directories = [Path(d) for d in directories]
        self._templates = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader([str(d) for d in self._directories]),
            undefined=StrictUndefined,
            autoescape=False,  # The reader is a model, not a browser; the templates delimit data.
            keep_trailing_newline=False,
            auto_reload=False,
            bytecode_cache=_compiled_once(),
        )

    def tier(self, template: str, briefing: Briefing) -> str:
        """The prompt a tier is started with."""
        return self._render(template, asdict(briefing))

    def again(self, briefing: Briefing, *, why: str) -> str:
        """What a run is told that goes on after it was stopped, in its own conversation."""
        return self._render(CONTINUE, {**asdict(briefing), "why": why})

    def retry(self, briefing: Briefing) -> str:
        """What a tier is told that an operator lets do its work again, in its own conversation."""
        return self._render(RETRY, asdict(briefing))

    def delta(self, briefing: Briefing, delta: Delta) -> str:
        """What a tier is told that goes on in its session of an earlier cycle, because an incident is still open."""
        times = {"checked_at": _utc(delta.checked_at), "opened_at": _utc(delta.opened_at)}
        return self._render(DELTA, {**asdict(briefing), **times, "since": _since(delta)})

    def _render(self, template: str, values: Mapping[str, object]) -> str:
        try:
            text = self._templates.get_template(template).render(values)
        except Exception as error:
            # A template is a program and a file of the operator's: it can fail in any way.
            raise self._mistake(template, error) from error
        return _BLANK_LINES.sub("\n\n", text).strip() + "\n"

    def _mistake(self, template: str, error: Exception) -> ConfigError:
        """What is wrong, in which file and line as far as Jinja knows, and what to do about it."""
        from jinja2 import TemplateNotFound, TemplateSyntaxError

        searched = " or ".join(str(directory) for directory in self._directories)
        if isinstance(error, TemplateNotFound) and error.name == template:
            return ConfigError(f"There is no prompt {template} in {searched}.", remedy=_WRITE)
        file, line = self._place(template, error)
        if isinstance(error, TemplateSyntaxError) and error.filename:
            file, line = Path(error.filename), error.lineno
        where = f"{file}:{line}" if line else str(file)
        if isinstance(error, TemplateNotFound):
            return ConfigError(f"{where}: there is no prompt {error.name} in {searched}.", remedy=_WRITE)
        what = f"{where}: the prompt does not render: {str(error).partition(_NEW_LINE)[0].rstrip('.')}."
        return ConfigError(what, remedy=self._remedy(file))

    def _place(self, template: str, error: Exception) -> tuple[Path, int | None]:
        """The innermost line of a template at which it went wrong: Jinja puts them into the traceback."""
        file = next((d / template for d in self._directories if (d / template).exists()), Path(template))
        line, frame = None, error.__traceback__
        while frame is not None:
            path = Path(frame.tb_frame.f_code.co_filename)
            if any(path.is_relative_to(directory) for directory in self._directories):
                file, line = path, frame.tb_lineno
            frame = frame.tb_next
        return file, line

    def _remedy(self, file: Path) -> str:
        """Without the operator's own, the shipped one of the same name is used."""
        for number, directory in enumerate(self._directories, start=1):
            if file.is_relative_to(directory):
                name = file.relative_to(directory)
                if any((below / name).is_file() for below in self._directories[number:]):
                    return "Correct it, or delete it to use the shipped one."
        return "Correct it."


@cache
def _compiled_once() -> "BytecodeCache":
    """What a template was compiled to, as long as its text is the same: one that was tried is used a moment later."""
    from jinja2 import BytecodeCache
    from jinja2.bccache import Bucket

    known: dict[str, tuple[str, CodeType | None]] = {}

    class InMemory(BytecodeCache):
        def load_bytecode(self, bucket: Bucket) -> None:
            text, code = known.get(bucket.key, ("", None))
            bucket.code = code if text == bucket.checksum else None

        def dump_bytecode(self, bucket: Bucket) -> None:
            known[bucket.key] = bucket.checksum, bucket.code

    return InMemory()


def _since(delta: Delta) -> str:
    """The facts as JSON with nothing in it that could close the element it is put into, the oldest actions left out."""
    from jinja2.utils import htmlsafe_json_dumps

    for first in range(len(delta.actions) + 1):
        left_out = delta.left_out + first
        facts = {
            "services": delta.services,
            "cycles": delta.cycles,
            "last_cycle": delta.last_cycle,
            "actions_of_higher_tiers": [asdict(action) for action in delta.actions[first:]],
            **({"older_actions_left_out": left_out} if left_out else {}),
            "their_last_summary": delta.summary,
        }
        text = str(htmlsafe_json_dumps(facts, ensure_ascii=False))
        if len(text) <= _SINCE_LIMIT:
            break
    return text


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
