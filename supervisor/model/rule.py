"""The rules of a tier as data, and what no rule may open. No I/O.

Written as patterns in ``rules.toml`` and ``opsladder.toml``, parsed by ``decide.rules.rule_pattern``, put together by
``settings.rules_table``, applied by ``decide.rules.permission``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

READ_ONLY_SET = "read-only"
"""The set whose allow rules say what only reads: it decides what a dry run may do."""


_LONGEST_NAME = 80


class Effect(StrEnum):
    """What a rule does with what it matches; deny beats approve, approve beats allow."""

    ALLOW = "allow"
    DENY = "deny"
    APPROVE = "approve"

    @property
    def strictness(self) -> int:
        return ("allow", "approve", "deny").index(self.value)


# The parts of a pattern are tuples: there are some thousand of them, and made at every start.
class WordPattern(NamedTuple):
    """One place for a word. ``paths`` are patterns over the path that a word names; ``repeated``: one or more."""

    exact: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    anything: bool = False
    repeated: bool = False


class OptionPattern(NamedTuple):
    """One of ``names`` is set. With ``values``, its value fits one of these.

    ``before`` is only for a forbidden one: it matters only while fewer words than this stand before it.
    """

    names: tuple[str, ...]
    values: tuple[str, ...] = ()
    before: int | None = None


class CommandPattern(NamedTuple):
    """A program, by its name or its whole path, of which ``*`` may leave the end open, and its arguments.

    ``only`` are the options it may have, if that is said; ``known`` says of these and of the required ones whether they
    take a value.
    """

    programs: tuple[str, ...]
    words: tuple[WordPattern, ...] = ()
    rest: bool = False
    required: tuple[OptionPattern, ...] = ()
    forbidden: tuple[OptionPattern, ...] = ()
    only: Mapping[str, bool] | None = None
    known: Mapping[str, bool] = MappingProxyType({})
    checks: tuple[str, ...] = ()


class ToolPattern(NamedTuple):
    """A tool of the CLI; with ``paths``, only on these."""

    tool: str
    paths: tuple[str, ...] = ()


class Touch(StrEnum):
    """How a path is meant: written by a redirection, named in whatever way, or named by something that may change."""

    REDIRECT = ">"
    NAMED = "path"
    CHANGED = "change"


class PathPattern(NamedTuple):
    """Paths, whatever tool or command they are given to."""

    touch: Touch
    paths: tuple[str, ...]


Pattern = CommandPattern | ToolPattern | PathPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One pattern and its effect. ``text`` is the pattern as it was written, ``set`` where it stands."""

    effect: Effect
    text: str
    set: str
    pattern: Pattern

    name: str = field(init=False, compare=False)  # how it is called where it is recorded; a long pattern is cut

    def __post_init__(self) -> None:
        text = self.text if len(self.text) <= _LONGEST_NAME else f"{self.text[: _LONGEST_NAME - 1]}…"
        object.__setattr__(self, "name", f"{self.set}: {text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRules:
    """The rules of one tier.

    ``default`` is for commands no rule matches, ``opaque`` for those that cannot be seen through. ``options`` says of
    each program which of its options take a value and which do not, ``steering`` which of them decide what it runs.
    """

    rules: tuple[Rule, ...]
    default: Effect
    opaque: Effect
    options: Mapping[str, Mapping[str, bool]] = field(default_factory=dict, repr=False)
    steering: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    _by_program: dict[str, tuple[Rule, ...]] = field(init=False, repr=False, compare=False)
    _by_beginning: tuple[tuple[str, Rule], ...] = field(init=False, repr=False, compare=False)
    _beginnings: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _by_tool: dict[str, tuple[Rule, ...]] = field(init=False, repr=False, compare=False)
    on_redirects: tuple[tuple[Rule, tuple[str, ...]], ...] = field(init=False, repr=False, compare=False)
    on_naming: tuple[tuple[Rule, tuple[str, ...]], ...] = field(init=False, repr=False, compare=False)
    on_changing: tuple[tuple[Rule, tuple[str, ...]], ...] = field(init=False, repr=False, compare=False)
    shut_paths: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_program: dict[str, list[Rule]] = {}
        by_tool: dict[str, list[Rule]] = {}
        by_beginning: list[tuple[str, Rule]] = []
        on_paths: dict[Touch, list[tuple[Rule, tuple[str, ...]]]] = {touch: [] for touch in Touch}
        for rule in self.rules:
            match rule.pattern:
                case CommandPattern(programs=programs):
                    for program in programs:
                        name = program.rpartition("/")[2]
                        if name.endswith("*"):
                            by_beginning.append((name[:-1], rule))
                        else:
                            by_program.setdefault(name, []).append(rule)
                case ToolPattern(tool=tool):
                    by_tool.setdefault(tool, []).append(rule)
                case PathPattern(touch=touch, paths=paths):
                    on_paths[touch].append((rule, paths))
        for rules in by_program.values():
            rules.sort(key=lambda rule: -rule.effect.strictness)
        object.__setattr__(self, "_by_program", {name: tuple(rules) for name, rules in by_program.items()})
        object.__setattr__(self, "_by_tool", {name: tuple(rules) for name, rules in by_tool.items()})
        object.__setattr__(self, "_by_beginning", tuple(by_beginning))
        object.__setattr__(self, "_beginnings", tuple(beginning for beginning, _ in by_beginning))
        object.__setattr__(self, "on_redirects", tuple(on_paths[Touch.REDIRECT]))
        object.__setattr__(self, "on_naming", tuple(on_paths[Touch.NAMED]))
        object.__setattr__(self, "on_changing", tuple(on_paths[Touch.CHANGED]))
        shut = (*on_paths[Touch.NAMED], *on_paths[Touch.CHANGED])
        object.__setattr__(self, "shut_paths", tuple(path for _, paths in shut for path in paths))

    def for_program(self, name: str) -> tuple[Rule, ...]:
        """The rules that may concern a program of this name, those that deny first and those that allow last."""
        named = self._by_program.get(name, ())
        if not name.startswith(self._beginnings):
            return named
        loose = [rule for beginning, rule in self._by_beginning if name.startswith(beginning)]
        return tuple(sorted((*loose, *named), key=lambda rule: -rule.effect.strictness))

    def knows_program(self, name: str) -> bool:
        """Whether a rule names this program."""
        return name in self._by_program

    def knows_path(self, path: str) -> bool:
        """Whether a rule names the program at this path, and not only by its name."""
        return path.startswith("/") and any(
            isinstance(rule.pattern, CommandPattern) and path in rule.pattern.programs
            for rule in self.for_program(path.rpartition("/")[2])
        )

    def for_tool(self, name: str) -> tuple[Rule, ...]:
        """The rules that concern a tool."""
        return self._by_tool.get(name, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffLimits:
    """What belongs to the supervisor, and where the agent stands.

    ``paths`` are real and absolute: the state directory, the configuration, the sockets. ``pids`` are its processes.
    """

    paths: tuple[str, ...]
    pids: frozenset[int]
    work_dir: str
    home: str
