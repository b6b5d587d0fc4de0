"""Patterns of rules as the kinds of values a setting can have. Pure. Used by ``schema`` and ``rules_table``."""

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator


def _clear(effect: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        # Here, not above: only a configuration with patterns pays for it.
        from supervisor.decide.rules.rule_pattern import PatternMistake, parse_pattern
        from supervisor.model.rule import Effect

        try:
            parse_pattern(text, Effect(effect))
        except PatternMistake as mistake:
            raise ValueError(str(mistake)) from None
        return text

    return check


AllowPattern = Annotated[str, AfterValidator(_clear("allow"))]
ApprovePattern = Annotated[str, AfterValidator(_clear("approve"))]
DenyPattern = Annotated[str, AfterValidator(_clear("deny"))]
