"""Judge a call of a tool of the CLI that is not a shell command. Pure. Called from ``permission``.

Tools that work on files are judged by their path, with the same patterns as commands. Any other tool is refused unless
a rule names it: it may ask a person who is not there, reach out, or start something the guard would not see.
"""

from collections.abc import Iterator
from typing import Final

from supervisor.decide.rules.path_names import certain_path
from supervisor.decide.rules.path_patterns import fits
from supervisor.decide.rules.shut_paths import OFF_LIMITS, Shut, reaches_below, searchable, touched
from supervisor.decide.rules.verdicts import Finding, by_default, by_rule, refused
from supervisor.model.permission import ToolCall
from supervisor.model.reading import Word
from supervisor.model.rule import Effect, Rule, TierRules, ToolPattern

ASKING: Final = frozenset({"AskUserQuestion", "ExitPlanMode", "EnterPlanMode"})
_PATH_KEYS: Final = {
    "Read": ("file_path",),
    "Edit": ("file_path",),
    "MultiEdit": ("file_path",),
    "Write": ("file_path",),
    "NotebookEdit": ("notebook_path",),
    "NotebookRead": ("notebook_path",),
    "LS": ("path",),
    "Grep": ("path", "glob"),
    "Glob": ("path", "pattern"),
}
_SEARCHES: Final = frozenset({"LS", "Grep", "Glob"})
_READS: Final = frozenset({"Read", "NotebookRead", *_SEARCHES})


def judge_tool(call: ToolCall, rules: TierRules, area: Shut) -> Iterator[Finding]:
    """Every finding about a call; the strictest counts."""
    if call.tool in ASKING:
        yield refused(
            "asks_a_person", f"{call.tool} waits for an answer nobody will give. Put the question into your report."
        )
        return
    keys = _PATH_KEYS.get(call.tool)
    if keys is None:
        yield _by_rules(call.tool, None, call.tool, rules, area, default=Effect.DENY)
        return
    given = {key: call.input[key] for key in keys if call.input.get(key) is not None}
    if any(not isinstance(value, str) or "\0" in value for value in given.values()) or (
        call.tool not in _SEARCHES and not given
    ):
        yield refused("default", f"{call.tool} was called without a usable {keys[0]}. Name one path.")
        return
    texts = [str(value) for value in given.values()]
    words = [_word(text) for text in texts]
    if call.tool in ("Grep", "Glob") and len(texts) == 2 and texts[1][:1] != "/":
        words = [words[0], _word(f"{texts[0].rstrip('/')}/{texts[1]}")]
    what = f"{call.tool} {' '.join(texts)}".strip()
    yield from touched(words, lambda: what, area, changes=call.tool not in _READS)
    if call.tool == "Grep" and reaches_below(words[:1] or [_word(".")], searchable(area.limits), area):
        yield refused(OFF_LIMITS, f"{what} would look into what belongs to the supervisor. Name a narrower directory.")
    path = _word(str(given[keys[0]])) if keys[0] in given else _word(".")
    yield _by_rules(call.tool, path, what, rules, area, default=rules.default)


def _by_rules(tool: str, path: Word | None, what: str, rules: TierRules, area: Shut, *, default: Effect) -> Finding:
    matching = [rule for rule in rules.for_tool(tool) if _matches(rule, path, area)]
    for effect in (Effect.DENY, Effect.APPROVE, Effect.ALLOW):
        for rule in matching:
            if rule.effect is effect:
                return by_rule(rule, what)
    return by_default(default, what, f"No rule of this tier allows {tool} here.")


def _matches(rule: Rule, path: Word | None, area: Shut) -> bool:
    if not isinstance(rule.pattern, ToolPattern):
        return False
    if not rule.pattern.paths:
        return True
    named = certain_path(path, area.standing) if path is not None else None
    if named is None:
        return rule.effect is not Effect.ALLOW
    return fits(named, rule.pattern.paths, area.standing)


def _word(text: str) -> Word:
    """A path is given to a tool as it is; only for searching may it be a pattern."""
    return Word(text=text, glob=any(character in text for character in "*?["))
