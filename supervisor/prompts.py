"""Render what a run is told, from the templates in ``prompts/``. Reads template files. Called from climb and doctor.

Sandboxed and strict: a template can neither reach into Python nor pass over a name it misspelt.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from supervisor.errors import ConfigError

_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """Everything a tier's template may use.

    ``cooling`` says of each service how much of its cooldowns is used up, ``handoff`` is JSON text, ``lost`` says why a
    session was not resumed.
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


def system_prompt(path: Path) -> str:
    """The system prompt: plain text, the same on every tier, because newer CLIs keep a conversation's first one."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The system prompt {path} cannot be read: {error}.") from error


class Prompts:
    """The templates of one installation: the operator's own directory first, then the shipped one."""

    def __init__(self, directories: Iterable[Path]) -> None:
        # Here, not above: the system prompt is wanted while Jinja2 is still to be loaded.
        from jinja2 import FileSystemLoader, StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        self._templates = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader([str(d) for d in directories]),
            undefined=StrictUndefined,
            autoescape=False,  # The reader is a model, not a browser; the templates delimit data.
            keep_trailing_newline=False,
            auto_reload=False,
        )

    def tier(self, template: str, briefing: Briefing) -> str:
        """The prompt a tier is started with."""
        return self._render(template, asdict(briefing))

    def again(self, *, why: str, dry_run: bool) -> str:
        """What a run is told that goes on after a pause, in its own conversation."""
        return self._render("continue.md", {"why": why, "dry_run": dry_run})

    def _render(self, template: str, values: Mapping[str, object]) -> str:
        from jinja2 import TemplateError, TemplateNotFound, TemplateSyntaxError

        try:
            text = self._templates.get_template(template).render(values)
        except TemplateNotFound as error:
            raise ConfigError(
                f"The prompt {error.name} does not exist.", remedy="`opsladder init` writes the shipped prompts."
            ) from error
        except TemplateSyntaxError as error:
            raise ConfigError(f"{error.filename or template}:{error.lineno}: {error.message}") from error
        except TemplateError as error:
            raise ConfigError(f"The prompt {template} does not render: {error.message}.") from error
        return _BLANK_LINES.sub("\n\n", text).strip() + "\n"
