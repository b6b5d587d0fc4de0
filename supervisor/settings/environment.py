"""Environment variables → settings that stand above the file's. Reads the files that ``…_FILE`` variables name.

Called from ``settings.load`` with the caller's environment. An empty variable counts as not set. One with our prefix
that sets nothing is a mistake: whoever set OPSLADDER_DRY_RUN would else see real repairs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from supervisor.settings.agent_env import OWN_PREFIX
from supervisor.settings.locate import VARIABLE
from supervisor.settings.problems import KeyPath, Problem, closest, key_name, shown
from supervisor.settings.values import EnvironmentText, Place

ALIAS_PREFIX: Final = "CLAUDEOPS_"
ALIASES: Final = {
    ALIAS_PREFIX + "STATE_DIR": ("state", "dir"),
    ALIAS_PREFIX + "DRY_RUN": ("escalation", "dry_run"),
    ALIAS_PREFIX + "MAX_TIER": ("escalation", "max_tier"),
    ALIAS_PREFIX + "RESUME_CONTEXT_THRESHOLD": ("continuity", "context_threshold"),
}
# Ours, but no settings: which file to read, the mark of a run's processes, and what our own tests are told.
NOT_SETTINGS: Final = frozenset({VARIABLE, OWN_PREFIX + "RUN", OWN_PREFIX + "NO_SKIP"})
# What Kubernetes gives every container for a service of our name, as container links did before.
_NAMED_SERVICE: Final = re.compile(r"\w+_(?:SERVICE_HOST|SERVICE_PORT\w*|PORT_[0-9]+_(?:TCP|UDP|SCTP)\w*)")
# What an agent is told besides the aliases, and so what `opsladder` in its hands is started with.
_TOLD_TO_AGENTS: Final = frozenset({ALIAS_PREFIX + "TIER"})
# Other tools have variables with the prefix of the aliases, so only what is almost one of them is taken for it.
_ALMOST: Final = 0.8
_FILE: Final = "_FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the environment sets, which variable set it, and what was wrong with it."""

    values: dict[KeyPath, EnvironmentText] = field(default_factory=dict)
    variables: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def set(self, path: KeyPath, variable: str, value: str) -> None:
        self.values[path] = EnvironmentText(value)
        self.variables[path] = variable


def overrides(environ: Mapping[str, str], place: Place) -> Overrides:
    """Everything the environment says about the settings; ``OPSLADDER_`` names win over their aliases."""
    result = Overrides()
    for alias, path in ALIASES.items():
        if environ.get(alias):
            result.set(path, alias, environ[alias])
    result.problems.extend(_almost_aliases(environ))
    ours = {name: value for name, value in environ.items() if name.startswith(OWN_PREFIX) and value}
    if not ours.keys() - NOT_SETTINGS:
        return result

    # Here, not above: most commands are started without any.
    from supervisor.settings.outline import outline

    known = outline().variables
    files = {name + _FILE: name for name, path in known.items() if path in outline().secrets}
    for name, value in ours.items():
        if name in known:
            result.set(known[name], name, value)
        elif name in files:
            _from_file(name, value, known[files[name]], environ.get(files[name]), place, result)
        elif name not in NOT_SETTINGS and not _is_a_named_service(name, value):
            meant = _meant(name, (*known, *files), {alias: _variable(path) for alias, path in ALIASES.items()})
            result.problems.append(Problem(where=name, what="there is no such setting", suggestion=meant))
    return result


def _is_a_named_service(name: str, value: str) -> bool:
    return _NAMED_SERVICE.fullmatch(name) is not None or (name.endswith("_PORT") and "://" in value)


def _almost_aliases(environ: Mapping[str, str]) -> Iterator[Problem]:
    """Variables that whoever set them took for an alias."""
    for name, value in environ.items():
        if name.startswith(ALIAS_PREFIX) and value and name not in ALIASES and name not in _TOLD_TO_AGENTS:
            # Compared without the prefix, which would make every name look like every other.
            aliases = {alias.removeprefix(ALIAS_PREFIX): alias for alias in ALIASES}
            if guess := closest(name.removeprefix(ALIAS_PREFIX), aliases, cutoff=_ALMOST):
                yield Problem(where=name, what="there is no such setting", suggestion=aliases[guess])


def _meant(name: str, known: Iterable[str], aliases: Mapping[str, str]) -> str | None:
    """The variable that was most likely meant: one whose section was left out, an alias with our prefix, or a typo."""
    full = {variable.removeprefix(OWN_PREFIX): variable for variable in known}
    keys = [variable.rpartition("__")[2] for variable in full]
    short = {key: full[variable] for key, variable in zip(keys, full, strict=True) if keys.count(key) == 1}
    renamed = {alias.removeprefix(ALIAS_PREFIX): variable for alias, variable in aliases.items()}
    candidates = {**short, **renamed, **full}
    guess = closest(name.removeprefix(OWN_PREFIX), candidates)
    return candidates[guess] if guess else None


def _variable(path: tuple[str, ...]) -> str:
    return OWN_PREFIX + "__".join(path).upper()


def _from_file(
    variable: str, name: str, path: tuple[str, ...], direct: str | None, place: Place, result: Overrides
) -> None:
    def problem(what: str) -> None:
        result.problems.append(Problem(where=variable, key=key_name(path), what=what))

    if direct:
        problem(f"is set together with {variable.removesuffix(_FILE)}; one of them has to go")
        return
    try:
        file = place.resolve(name)
        text = file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        problem(f"the file is not UTF-8 text (got {shown(name)})")
    except OSError as error:
        problem(f"the file cannot be read: {error.strerror} (got {shown(name)})")
    except ValueError as error:
        problem(f"{error} (got {shown(name)})")
    else:
        if text:
            result.set(path, variable, text)
        else:
            problem(f"the file is empty (got {shown(name)})")
