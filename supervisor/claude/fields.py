"""Typed reads from parsed JSON: a value of the wrong type is a missing value. Pure. Called from claude.stream."""

import math
from collections.abc import Mapping

from supervisor.model.session import ModelUsage, Tokens, UsageByModel

_LARGEST_COUNT = 2**63 - 1


def text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def name(value: object) -> str | None:
    """A text that names something: never empty."""
    return value if isinstance(value, str) and value else None


def count(value: object) -> int | None:
    """A whole number from zero up that any database can hold."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT:
        return value
    return None


def number(value: object) -> float | None:
    """A finite number from zero up."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return float(value) if 0 <= value <= _LARGEST_COUNT else None
    return value if math.isfinite(value) and value >= 0 else None


def mapping(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, dict) else None


def items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def tokens(usage: object, *, base: Tokens | None = None) -> Tokens | None:
    """The counts of an API ``usage`` object over those known before; ``None`` when neither has any."""
    said = mapping(usage) or {}
    read = (
        count(said.get("input_tokens")),
        count(said.get("output_tokens")),
        count(said.get("cache_read_input_tokens")),
        count(said.get("cache_creation_input_tokens")),
    )
    if base is None:
        if all(value is None for value in read):
            return None
        base = Tokens()
    given, put_out, cache_read, cache_write = read
    return Tokens(
        input=base.input if given is None else given,
        output=base.output if put_out is None else put_out,
        cache_read=base.cache_read if cache_read is None else cache_read,
        cache_write=base.cache_write if cache_write is None else cache_write,
    )


def usage_by_model(value: object) -> UsageByModel | None:
    """The CLI's own account, one entry per model; ``None`` when there is no account at all."""
    said = mapping(value)
    if said is None:
        return None
    return {model: _model_usage(entry) for model, usage in said.items() if (entry := mapping(usage)) is not None}


def _model_usage(entry: Mapping[str, object]) -> ModelUsage:
    return ModelUsage(
        tokens=Tokens(
            input=count(entry.get("inputTokens")) or 0,
            output=count(entry.get("outputTokens")) or 0,
            cache_read=count(entry.get("cacheReadInputTokens")) or 0,
            cache_write=count(entry.get("cacheCreationInputTokens")) or 0,
        ),
        cost_usd=number(entry.get("costUSD")),
        context_window=count(entry.get("contextWindow")) or None,
    )
