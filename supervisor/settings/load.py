"""Files and environment → ``Settings``. Reads the configuration, the model table and the files they name.

Called once at the start of every command. ``settings_from_process`` is the only reader of the process environment.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from supervisor import shipped
from supervisor.settings.agent_env import OWN_PREFIX, agent_environment
from supervisor.settings.checks import check_across, check_secrets, elements, secrets_of
from supervisor.settings.credentials import with_credentials
from supervisor.settings.environment import ALIAS_PREFIX, Overrides, overrides
from supervisor.settings.locate import find_config, home_of
from supervisor.settings.models_table import ModelsDocument, ModelTable
from supervisor.settings.problems import ConfigProblems, Problem
from supervisor.settings.schema import DEFAULT_RULES, DEFAULT_SCHEDULES, DEFAULT_TIERS, Document
from supervisor.settings.settings import DATABASE_FILE, Settings
from supervisor.settings.source import Source
from supervisor.settings.toml_file import read_toml
from supervisor.settings.values import Place, sqlite_url

MODELS_FILE: Final = "models.toml"
CLI_VARIABLE: Final = "OPSLADDER_CLAUDE__BIN"
_CONFIGURING: Final = (OWN_PREFIX, ALIAS_PREFIX)
_LISTS: Final = {"tiers": DEFAULT_TIERS, "schedules": DEFAULT_SCHEDULES}


def settings_from_process(config: Path | None = None) -> Settings:
    """The settings of this process."""
    return load_settings(config, _process_environment(), cwd=Path.cwd())


def demo_settings(*, work_dir: Path, directory: Path, cli: str | None = None) -> Settings:
    """The built-in defaults whatever is configured, with work and records in the given directories.

    ``cli`` is which Claude CLI to use, where that is not left to the environment.
    """
    kept = {n: v for n, v in _process_environment().items() if n == CLI_VARIABLE or not n.startswith(_CONFIGURING)}
    placed = {"OPSLADDER_CLAUDE__WORK_DIR": str(work_dir), "OPSLADDER_STATE__DIR": str(directory / "state")}
    chosen = {CLI_VARIABLE: cli} if cli else {}
    return _settings(None, kept | placed | chosen, base_dir=directory.resolve())


def load_settings(config: Path | None, environ: Mapping[str, str], *, cwd: Path) -> Settings:
    """The settings that a file and an environment make, or ``ConfigProblems`` with everything that is wrong."""
    file = find_config(config, environ, cwd=cwd)
    return _settings(file, environ, base_dir=file.parent if file else cwd.resolve())


def systemd_variables() -> dict[str, str]:
    """What systemd told the process that it started: where it listens, and how long it waits for a sign of life."""
    named = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
    return {name: value for name, value in _process_environment().items() if name in named}


def _process_environment() -> dict[str, str]:
    return with_credentials(os.environ)


def _settings(file: Path | None, environ: Mapping[str, str], *, base_dir: Path) -> Settings:
    place = _place(base_dir, environ)
    raw, source = read_toml(file) if file else ({}, Source(name="built-in defaults"))
    above = overrides(environ, place)
    source = replace(source, variables=above.variables)
    problems = list(above.problems)

    _apply(raw, above)
    _complete(raw, environ, place)
    problems += check_across(raw, source)
    document: Document | None = None
    try:
        document = Document.model_validate(raw, context=place)
        problems += check_secrets(document, source)
    except ValidationError as error:
        problems += _explained(error, source, Document)
    problems.sort(key=lambda problem: problem.line or 0)
    models: ModelTable | None = None
    try:
        models = _model_table(place)
    except ConfigProblems as error:
        problems += error.problems
    if document is None or models is None or problems:
        raise ConfigProblems(problems)

    return Settings(
        source=file,
        origin=source,
        base_dir=place.base_dir,
        prompt_dirs=place.prompt_dirs,
        models=models,
        agent_env=agent_environment(
            environ, pass_env=document.claude.pass_env, extra=document.claude.env, secrets=secrets_of(document)
        ),
        **dict(document),
    )


def _place(base_dir: Path, environ: Mapping[str, str]) -> Place:
    own = base_dir / shipped.PROMPTS.name
    prompt_dirs = (own, shipped.PROMPTS) if own.is_dir() else (shipped.PROMPTS,)
    return Place(base_dir=base_dir, home=home_of(environ), prompt_dirs=prompt_dirs)


def _apply(raw: dict[str, Any], above: Overrides) -> None:
    """Put what the environment says above what the file says."""
    for path, value in above.values.items():
        *tables, key = path
        here: object = raw
        for table in tables:
            here = here.setdefault(table, {}) if isinstance(here, dict) else None
        # Where the file has something else than a table, validation will say so.
        if isinstance(here, dict):
            here[key] = value


def _complete(raw: dict[str, Any], environ: Mapping[str, str], place: Place) -> None:
    """Fill in the sections that are not there, and the defaults that depend on others or on the environment."""
    for name in Document.model_fields:
        raw.setdefault(name, [dict(table) for table in _LISTS[name]] if name in _LISTS else {})
    for number, tier in enumerate(elements(raw, "tiers")):
        for key, value in DEFAULT_RULES[min(number, len(DEFAULT_RULES) - 1)].items():
            tier.setdefault(key, value)
    for tier in elements(raw, "tiers")[1:]:
        prompt = tier.get("prompt")
        if isinstance(prompt, str) and place.prompt(prompt):
            tier.setdefault("escalation_prompt", f"{PurePath(prompt).stem}-escalation.md")
    claude, state = raw["claude"], raw["state"]
    if isinstance(claude, dict):
        claude.setdefault("work_dir", ".")
    if isinstance(state, dict):
        directory = state.setdefault("dir", _state_dir(environ))
        state.setdefault("database_url", sqlite_url(f"{directory}/{DATABASE_FILE}"))


def _state_dir(environ: Mapping[str, str]) -> str:
    xdg = PurePath(environ.get("XDG_STATE_HOME", ""))
    # The XDG rules say to pass over a relative path.
    return str((xdg if xdg.is_absolute() else PurePath("~/.local/state")) / "opsladder")


def _model_table(place: Place) -> ModelTable:
    own = place.base_dir / MODELS_FILE
    raw, source = read_toml(own if own.is_file() else shipped.CONFIG / MODELS_FILE)
    try:
        return ModelTable.of(ModelsDocument.model_validate(raw, context=place))
    except ValidationError as error:
        raise ConfigProblems(_explained(error, source, ModelsDocument)) from error


def _explained(error: ValidationError, source: Source, document: type[BaseModel]) -> list[Problem]:
    # Here, not above: only a configuration with a mistake pays for it.
    from supervisor.settings.explain import explain
    from supervisor.settings.outline import outline

    return list(explain(error, source, outline(document)))
