"""Paths that are shut: the supervisor's own, and those that rules shut. Pure.

Called from ``off_limits`` and ``file_tools``. A path counts when any word of any command could name it, whatever the
command is; guessing too much costs a refused call, guessing too little costs the guard.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from supervisor.decide.rules.path_names import NamedPath, Standing, directory, paths_named, pieces, starting
from supervisor.decide.rules.path_patterns import beginning, could_fit, in_one, placed
from supervisor.decide.rules.unknown_places import Values, ends_like, read_as, values_in
from supervisor.decide.rules.verdicts import Finding, by_rule, refused, shown
from supervisor.model.reading import Command, Role, Word
from supervisor.model.rule import OffLimits, TierRules

OFF_LIMITS: Final = "off_limits"
LEAVE_ALONE: Final = "Leave it alone; what you know of it, you know from your prompt."
_PROCESS: Final = re.compile(r"/proc/+([0-9]{1,9})\b")
_DETOUR: Final = re.compile(r"//|/\./|/\.?$|\.\.")  # the same path has a shorter name
_GOES_TO: Final = frozenset({"cd", "pushd"})
_TAKES_DIRECTORY: Final = frozenset({"git", "make", "tar"})
_ANYWHERE: Final = "/**/"
_ENDING: Final = re.compile(r"/\*\*/\*([^*?/]+)")  # says nothing but how a name ends
_ANY_TOP: Final = "*"  # stands for the directory of the root where a pattern leaves that open
_PLAIN: Final = Role.PLAIN  # asked for at every command, and an enum is slow to look up in
_MOST_WORDS: Final = 4096
_LONGEST_WORD: Final = 200


@dataclass(frozen=True, slots=True)
class _Gates:
    """Every pattern that is shut, sorted so that a word which names none of them is let go at once.

    ``anywhere`` and ``endings`` fit what is shut wherever it is. Of what is shut in one place, ``exact`` are single
    paths, ``below`` whole directories and ``by_top`` those with other wildcards, by their directory of the root.
    ``loose`` and ``fixed`` are all of these as single patterns, ``beginnings`` what stands before the wildcards of the
    fixed ones, sorted. ``parents`` are the ends of directories in which a file is shut wherever they are:
    ``/.docker/`` for ``**/.docker/config.json``.
    """

    anywhere: re.Pattern[str]
    endings: tuple[str, ...]
    exact: frozenset[str]
    below: frozenset[str]
    by_top: dict[str, tuple[str, ...]]
    loose: tuple[str, ...]
    fixed: tuple[tuple[str, str], ...]
    beginnings: tuple[str, ...]
    parents: tuple[str, ...]

    def may_shut(self, path: NamedPath, standing: Standing) -> bool:
        """Whether one of the patterns could fit a path."""
        if not path.glob:
            return self.shut_at(path.text) or self.shut_anywhere(path.text)
        start = beginning(path.text)
        near = [pattern for begins, pattern in self.fixed if begins.startswith(start) or start.startswith(begins)]
        return could_fit(path, (*near, *self.loose), standing)

    def shut_anywhere(self, path: str) -> bool:
        """Whether a path is shut wherever it is."""
        return path.endswith(self.endings) or self.anywhere.fullmatch(path) is not None

    def shut_at(self, path: str) -> bool:
        """Whether a path is shut because of where it is."""
        if path in self.exact:
            return True
        end = len(path)
        while end > 0:
            if path[:end] in self.below:
                return True
            end = path.rfind("/", 0, end)
        for patterns in (self.by_top.get(_top(path)), self.by_top.get(_ANY_TOP)):
            if patterns is not None and in_one(patterns).fullmatch(path):
                return True
        return False

    def shut_below(self, base: str) -> bool:
        """Whether something below a directory is shut because of where it is, or of what the directory is called."""
        inside = base.rstrip("/") + "/"
        return inside.endswith(self.parents) or (
            inside.startswith(self.beginnings) or self._some_beginning_is_in(inside)
        )

    def _some_beginning_is_in(self, inside: str) -> bool:
        """Whether a pattern begins below a directory: then such a one comes first of all that do not sort before it."""
        at = bisect_left(self.beginnings, inside)
        return at < len(self.beginnings) and self.beginnings[at].startswith(inside)


def searchable(limits: OffLimits) -> tuple[str, ...]:
    """What must not be come upon by looking into every file of a directory.

    Not the configuration: it often stands in the directory where agents work, and has secrets only by mistake.
    """
    return tuple(path for path in limits.paths if not path.endswith(".toml"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shut:
    """What is shut to one call. ``near`` are those of its directories below which something is.

    ``let_go`` is what is known of words already; calls that see the same share it. It holds no word that could name a
    process. ``values`` are those that the text gives to variables.
    """

    limits: OffLimits
    rules: TierRules
    standing: Standing
    near: Standing
    own: tuple[str, ...]
    gates: _Gates
    let_go: dict[str, bool]
    values: Values

    def lets_go(self, word: Word) -> bool:
        """Whether a word certainly names nothing that is shut."""
        text = word.text
        if word.dynamic or word.glob:
            return False
        known = self.let_go.get(text)
        if known is None:
            known = self._names_nothing(text)
            if len(self.let_go) >= _MOST_WORDS:
                self.let_go.clear()
            # What takes a detour depends on more directories than those in which something is shut.
            if len(text) <= _LONGEST_WORD and not _takes_detour(text) and "/proc/" not in text:
                self.let_go[text] = known
        return known

    def _names_nothing(self, text: str) -> bool:
        for piece in pieces(text):
            if self.gates.shut_anywhere(piece):
                return False
            standing = self.standing if _takes_detour(piece) else self.near
            # Most words are no paths, and nothing near is shut.
            if standing.bases or piece[0] in "/~":
                for path in starting(piece, standing):
                    if self.gates.shut_at(path) or (path != piece and self.gates.shut_anywhere(path)):
                        return False
        return True


def shut(rules: TierRules, limits: OffLimits, commands: Sequence[Command], cwd: str | None) -> Shut:
    """What is shut to one call, seen from wherever its text goes."""
    own = _with_all_below(limits.paths)
    standing = Standing(work_dir=limits.work_dir, home=limits.home, bases=_bases(limits, commands, cwd))
    patterns = (*own, *rules.shut_paths)
    gates = _gates(patterns, limits.work_dir, limits.home)
    near = standing._replace(bases=tuple([base for base in standing.bases if gates.shut_below(base)]))
    known = _known_words(patterns, near)
    return Shut(
        limits=limits,
        rules=rules,
        standing=standing,
        near=near,
        own=own,
        gates=gates,
        let_go=known,
        values=values_in(commands),
    )


def reaches_below(words: Iterable[Word], own: Sequence[str], area: Shut) -> bool:
    """Whether one of these paths of the supervisor's is somewhere below what one of the words names."""
    return any(
        could_fit(NamedPath(f"{path.text.rstrip('/')}/**", glob=True), tuple(own), area.standing)
        for word in words
        for path in paths_named(word, area.standing)
    )


def touched(words: Iterable[Word], what: Callable[[], str], area: Shut, *, changes: bool) -> Iterator[Finding]:
    """What is wrong with handing these words to a tool or command; ``changes``: it may do more than read."""
    let_go = area.let_go
    for word in words:
        # Nearly every word: known from before, and of no interest.
        if not (word.dynamic or word.glob) and let_go.get(word.text):
            continue
        if "/proc/" in word.text and _names_own_process(word, area.limits):
            yield refused(OFF_LIMITS, f"`{shown(what())}` looks into a process of the supervisor. {LEAVE_ALONE}")
        if area.lets_go(word):
            continue
        if word.dynamic:
            yield from _unknown(word, what, area, changes=changes)
        for path in paths_named(word, area.standing):
            if area.gates.may_shut(path, area.standing):
                yield from _touched(path, what, area, changes=changes)


def _unknown(word: Word, what: Callable[[], str], area: Shut, *, changes: bool) -> Iterator[Finding]:
    yield from touched(read_as(word, area.values), what, area, changes=changes)
    if ends_like(word, area.own):
        yield refused(OFF_LIMITS, f"`{shown(what())}` may reach what belongs to the supervisor. {LEAVE_ALONE}")
    for rule, paths in area.rules.on_naming:
        if ends_like(word, paths):
            yield by_rule(rule, what())


def _touched(path: NamedPath, what: Callable[[], str], area: Shut, *, changes: bool) -> Iterator[Finding]:
    if could_fit(path, area.own, area.standing):
        yield refused(OFF_LIMITS, f"`{shown(what())}` reaches what belongs to the supervisor. {LEAVE_ALONE}")
    for rule, paths in (*area.rules.on_naming, *(area.rules.on_changing if changes else ())):
        if could_fit(path, paths, area.standing):
            yield by_rule(rule, what())


@lru_cache(maxsize=16)
def _with_all_below(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(pattern for path in paths for pattern in (path, f"{path}/**"))


@lru_cache(maxsize=16)
def _known_words(patterns: tuple[str, ...], near: Standing) -> dict[str, bool]:  # noqa: ARG001 - only tells apart
    """What calls with these patterns and directories have found out about words. Filled by ``Shut.lets_go``."""
    return {}


@lru_cache(maxsize=16)
def _gates(patterns: tuple[str, ...], work_dir: str, home: str) -> _Gates:
    standing = Standing(work_dir=work_dir, home=home, bases=(work_dir,))
    whole = [placed(pattern, standing) for pattern in patterns]
    fixed = [pattern for pattern in whole if not pattern.startswith(_ANYWHERE)]
    exact: set[str] = set()
    below: set[str] = set()
    tops: dict[str, list[str]] = {}
    loose: list[str] = []
    for pattern in fixed:
        stem = pattern.removesuffix("/**")
        if "*" in _top(pattern) or "?" in _top(pattern):
            loose.append(pattern)
            tops.setdefault(_ANY_TOP, []).append(pattern)
        elif "*" in stem or "?" in stem:
            tops.setdefault(_top(pattern), []).append(pattern)
        else:
            (exact if stem == pattern else below).add(stem)
    begins = [(beginning(pattern), pattern) for pattern in fixed]
    anywhere = [pattern for pattern in whole if pattern.startswith(_ANYWHERE)]
    return _Gates(
        anywhere=in_one((*(pattern for pattern in anywhere if not _ENDING.fullmatch(pattern)), *loose)),
        endings=tuple([found[1] for pattern in anywhere if (found := _ENDING.fullmatch(pattern)) is not None]),
        exact=frozenset(exact),
        below=frozenset(below),
        by_top={top: tuple(listed) for top, listed in tops.items()},
        loose=tuple(pattern.removeprefix("/") for pattern in anywhere),
        fixed=tuple(begins),
        beginnings=tuple(sorted({start for start, _ in begins})),
        parents=tuple({end for pattern in anywhere for end in _parents(pattern)}),
    )


def _parents(pattern: str) -> Iterator[str]:
    """``/.config/`` and ``/.config/gh/`` for ``/**/.config/gh/hosts.yml``."""
    parts = pattern.removeprefix(_ANYWHERE).split("/")[:-1]
    for count in range(1, len(parts) + 1):
        end = "/".join(parts[:count])
        if "*" not in end and "?" not in end:
            yield f"/{end}/"


def _takes_detour(path: str) -> bool:
    return ("/" in path or ".." in path) and _DETOUR.search(path) is not None


def _top(path: str) -> str:
    end = path.find("/", 1)
    return path[1:end] if end > 0 else path[1:]


def _names_own_process(word: Word, limits: OffLimits) -> bool:
    return any(int(pid) in limits.pids for pid in _PROCESS.findall(word.text))


def _bases(limits: OffLimits, commands: Sequence[Command], cwd: str | None) -> tuple[str, ...]:
    """Every directory that a relative name in this text may start from."""
    standing = Standing(work_dir=limits.work_dir, home=limits.home, bases=(limits.work_dir,))
    here = directory(cwd or limits.work_dir, standing)
    bases = {here: None}
    standing = standing._replace(bases=(here,))
    if "/fd/" in "\n".join([word.text for command in commands for word in command.argv]):
        opened = [redirect.target.text for command in commands for redirect in command.redirects]
        bases |= dict.fromkeys(text for text in opened if text[:1] == "/")
    for command in commands:
        if command.name in _GOES_TO:
            for word in command.words:
                bases |= dict.fromkeys(path.text for path in paths_named(word, standing) if not path.glob)
        elif command.role is not _PLAIN or command.name in _TAKES_DIRECTORY:
            # env -C, sudo -D, systemd-run --working-directory=, git -C …
            texts = [option.text for option in command.options] + [word.text for word in command.words]
            bases |= dict.fromkeys(
                directory(text[text.index("/") :], standing)
                for text in texts
                if text[:1] in "-/" and "/" in text and " " not in text
            )
    return tuple(bases)
