"""The rules of each tier: the sets of ``rules.toml`` and the patterns of the tier itself. Reads files.

Called from ``Settings.rules_for``, so that only what guards a run pays for reading them. An operator's own file adds to
the shipped one: a set of the same name takes the place of the shipped set, but for ``never``, which only grows, as the
lists of secrets and protected files do.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationError

from supervisor import shipped
from supervisor.decide.rules.rule_pattern import PatternMistake, parse_pattern
from supervisor.model.rule import Effect, PathPattern, Rule, TierRules, Touch
from supervisor.settings.patterns import AllowPattern, ApprovePattern, DenyPattern
from supervisor.settings.problems import ConfigProblems, closest
from supervisor.settings.schema import Section, Tier
from supervisor.settings.source import Source
from supervisor.settings.toml_file import read_toml

NEVER: Final = "never"


def _option_table(text: str) -> str:
    if not all(name.startswith("-") for name in text.split()):
        raise ValueError("should be options with a blank between them")
    return text


def _path(text: str) -> str:
    try:
        parse_pattern(f"path({text})", Effect.DENY)
    except PatternMistake as mistake:
        raise ValueError(str(mistake)) from None
    return text


PathGlob = Annotated[str, AfterValidator(_path)]
Options = Annotated[str, AfterValidator(_option_table)]


class RuleSet(Section):
    """Some patterns under one name."""

    allow: tuple[AllowPattern, ...] = ()
    approve: tuple[ApprovePattern, ...] = ()
    deny: tuple[DenyPattern, ...] = ()


class Paths(Section):
    """A list of paths."""

    paths: tuple[PathGlob, ...] = ()


class RulesDocument(Section):
    """A whole ``rules.toml``."""

    sets: dict[str, RuleSet] = Field(default_factory=dict)
    secrets: Paths = Field(default_factory=Paths)
    protected: Paths = Field(default_factory=Paths)
    steering: dict[str, Options] = Field(default_factory=dict)
    options: dict[str, Options] = Field(default_factory=dict)


def rules_of(tier: Tier, number: int, *, own: Path, config: Path | None) -> TierRules:
    """The rules of one tier, or ``ConfigProblems``. ``number`` counts from 1; ``own`` need not exist."""
    documents = _documents(own)
    sets = {name: listed for document in documents for name, listed in document.sets.items()}
    unknown = [index for index, name in enumerate(tier.rule_sets) if name not in sets]
    if unknown:
        raise ConfigProblems(
            [
                _source(config).problem(
                    ("tiers", number - 1, "rule_sets", index),
                    f'there is no set "{tier.rule_sets[index]}" in {own.name}',
                    closest(tier.rule_sets[index], sets),
                )
                for index in unknown
            ]
        )
    rules: list[Rule] = []
    for document in documents:
        rules += _always(document)
    for name in tier.rule_sets:
        if name != NEVER:
            rules += _rules(sets[name], name)
    # Never under the name of a set: what a tier allows by itself does not count as reading.
    rules += _rules(tier, f"tier {tier.name}")
    return TierRules(
        rules=tuple(rules),
        default=Effect(tier.default),
        opaque=Effect(tier.opaque),
        options={name: _takes_value(text) for document in documents for name, text in document.options.items()},
        steering=_joined(documents),
    )


def _documents(own: Path) -> list[RulesDocument]:
    """The shipped rules, and the operator's own if there are any."""
    standard = shipped.CONFIG / own.name
    if not own.is_file():
        return [_trusted(standard)]
    return [_checked(own)] if own.samefile(standard) else [_trusted(standard), _checked(own)]


def _trusted(file: Path) -> RulesDocument:
    """The shipped rules as they are. The tests check them; to do it again at every start takes longer than all else."""
    raw, _ = read_toml(file)
    return RulesDocument.model_construct(
        sets={name: RuleSet.model_construct(**listed) for name, listed in raw["sets"].items()},
        secrets=Paths.model_construct(**raw["secrets"]),
        protected=Paths.model_construct(**raw["protected"]),
        steering=raw["steering"],
        options=raw["options"],
    )


def _checked(file: Path) -> RulesDocument:
    raw, source = read_toml(file)
    try:
        return RulesDocument.model_validate(raw)
    except ValidationError as error:
        # Here, not above: only a file with a mistake pays for it.
        from supervisor.settings.explain import explain
        from supervisor.settings.outline import outline

        raise ConfigProblems(list(explain(error, source, outline(RulesDocument)))) from error


def _source(config: Path | None) -> Source:
    return read_toml(config)[1] if config is not None else Source(name="built-in defaults")


def _always(document: RulesDocument) -> Iterator[Rule]:
    """What applies to every tier."""
    if NEVER in document.sets:
        yield from _rules(document.sets[NEVER], NEVER)
    for name, touch, paths in (
        ("secrets", Touch.NAMED, document.secrets.paths),
        ("protected", Touch.CHANGED, document.protected.paths),
    ):
        for path in paths:
            pattern = PathPattern(touch=touch, paths=(path,))
            yield Rule(effect=Effect.DENY, text=path, set=name, pattern=pattern)


def _rules(patterns: RuleSet | Tier, name: str) -> Iterator[Rule]:
    for effect, texts in (
        (Effect.DENY, patterns.deny),
        (Effect.APPROVE, patterns.approve),
        (Effect.ALLOW, patterns.allow),
    ):
        for text in texts:
            yield Rule(effect=effect, text=text, set=name, pattern=parse_pattern(text, effect))


def _takes_value(text: str) -> dict[str, bool]:
    return {name.removesuffix("="): name.endswith("=") for name in text.split()}


def _joined(documents: list[RulesDocument]) -> Mapping[str, frozenset[str]]:
    steering: dict[str, frozenset[str]] = {}
    for document in documents:
        for name, text in document.steering.items():
            steering[name] = steering.get(name, frozenset()) | frozenset(text.split())
    return steering
