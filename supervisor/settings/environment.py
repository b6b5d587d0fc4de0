"""Environment variables → settings that stand above the file's. Reads the files that ``…_FILE`` variables name.

Called from ``settings.load`` with the caller's environment. An empty variable counts as not set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from supervisor.settings.agent_env import OWN_PREFIX
from supervisor.settings.problems import KeyPath, Problem, closest, key_name, shown
from supervisor.settings.values import EnvironmentText, Place

ALIAS_PREFIX: Final = "CLAUDEOPS_"
ALIASES: Final = {
    ALIAS_PREFIX + "STATE_DIR": ("state", "dir"),
    ALIAS_PREFIX + "DRY_RUN": ("escalation", "dry_run"),
    ALIAS_PREFIX + "MAX_TIER": ("escalation", "max_tier"),
    ALIAS_PREFIX + "RESUME_CONTEXT_THRESHOLD": ("continuity", "context_threshold"),
}
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
    ours = {name: value for name, value in environ.items() if name.startswith(OWN_PREFIX) and "__" in name and value}
    if not ours:
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
        else:
            # Compared without the prefix, which would make every name look like every other.
            guess = closest(name.removeprefix(OWN_PREFIX), [n.removeprefix(OWN_PREFIX) for n in (*known, *files)])
            meant = OWN_PREFIX + guess if guess else None
            result.problems.append(Problem(where=name, what="there is no such setting", suggestion=meant))
    return result


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
