"""What was found about one part of a call, and the sentences for it. Pure. Used by all of ``permission``."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from supervisor.model.reading import Command
from supervisor.model.rule import READ_ONLY_SET, Effect, Rule

_SHOWN = 160
_EXAMPLES = 4
_ALLOW = Effect.ALLOW  # asked for at every command, and an enum is slow to look up in
_STRICTER_THAN_ALLOW = (Effect.DENY, Effect.APPROVE)
_INSTEAD = "Do without it, or say in your report that it is needed and why."


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer for one part of a call, with the rule it rests on."""

    effect: Effect
    rule: str
    sentence: str
    read_only: bool = False


def strictest(findings: Sequence[Finding]) -> Finding:
    """The first of those that ask for the most."""
    for effect in _STRICTER_THAN_ALLOW:
        for finding in findings:
            if finding.effect is effect:
                return finding
    return findings[0]


def refused(rule: str, sentence: str) -> Finding:
    return Finding(effect=Effect.DENY, rule=rule, sentence=sentence)


def by_rule(rule: Rule, what: str) -> Finding:
    """What a rule that matches says about a command or a tool."""
    if rule.effect is _ALLOW:
        return _allowed(rule.name, rule.set)
    if rule.effect is Effect.APPROVE:
        sentence = f"`{shown(what)}` needs a person's approval by the rule {rule.name}."
    else:
        sentence = f"`{shown(what)}` is denied by the rule {rule.name}. {_INSTEAD}"
    return Finding(effect=rule.effect, rule=rule.name, sentence=sentence)


@lru_cache(maxsize=1024)
def _allowed(rule: str, rule_set: str) -> Finding:
    """The answer for nearly every command there is."""
    sentence = f"Allowed by the rule {rule}."
    return Finding(effect=Effect.ALLOW, rule=rule, sentence=sentence, read_only=rule_set == READ_ONLY_SET)


def by_default(effect: Effect, what: str, why: str, *, rule: str = "default") -> Finding:
    """What happens to what no rule allows; ``why`` is a sentence of its own."""
    if effect is Effect.APPROVE:
        return Finding(effect=effect, rule=rule, sentence=f"`{shown(what)}` needs a person's approval. {why}")
    return Finding(effect=effect, rule=rule, sentence=f"`{shown(what)}` is not allowed on this tier. {why} {_INSTEAD}")


def command_text(command: Command) -> str:
    """A command as people read it."""
    words = [word.text for word in command.argv]
    words = [f"{one.name}={one.value.text}" for one in command.assignments if not command.name] + words
    words += [f"{one.operator} {one.target.text}" for one in command.redirects if one.writes]
    return " ".join(words)


def examples(rules: Sequence[Rule], program: str) -> str:
    """A few of the patterns that would have been allowed for this program."""
    allowed = [
        shown(f"{program} {rule.text.partition(' ')[2]}".strip()) for rule in rules if rule.effect is Effect.ALLOW
    ]
    more = ", …" if len(allowed) > _EXAMPLES else ""
    return ", ".join(f"`{text}`" for text in allowed[:_EXAMPLES]) + more


def shown(text: str) -> str:
    """A text in one line, cut short, that cannot end the quotes it is put in."""
    line = " ".join(text.split()).replace("`", "'")
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
