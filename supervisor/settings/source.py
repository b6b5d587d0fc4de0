"""Where the values of a document came from. Pure. Made by ``settings.toml_file``, asked by whoever finds a fault."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from supervisor.settings.problems import KeyPath, Problem, key_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file's name and text, and the variables that stand above it."""

    name: str
    text: str = field(default="", repr=False)
    variables: Mapping[KeyPath, str] = field(default_factory=dict)

    def problem(self, path: KeyPath, what: str, suggestion: str | None = None) -> Problem:
        """A problem with the setting at this path, placed where it was set."""
        # Here, not above: only a configuration with a mistake pays for it.
        from supervisor.settings.lines import line_of

        variable = next((self.variables[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.variables), None)
        return Problem(
            where=variable or self.name,
            line=None if variable else line_of(self.text, path),
            key=key_name(path),
            what=what,
            suggestion=suggestion,
        )
