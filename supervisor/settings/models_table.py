"""What is known of models: their context windows and prices. Reads ``models.toml``. Called from ``settings.load``.

Used only until, or in case that, the CLI does not say itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from pydantic import ConfigDict, Field

from supervisor.model.session import Tokens
from supervisor.settings.schema import Section
from supervisor.settings.values import Number, WholeNumber

_DATE = re.compile(r"-[0-9]{8}$")
_LONG_CONTEXT = "[1m]"
_LONG_CONTEXT_TOKENS = 1_000_000
_MILLION = 1_000_000

Usd = Annotated[Number, Field(ge=0)]
WindowTokens = Annotated[WholeNumber, Field(gt=0)]


class Price(Section):
    """USD per million tokens of each kind."""

    input: Usd
    output: Usd
    cache_read: Usd
    cache_write_5m: Usd
    cache_write_1h: Usd

    def cost(self, tokens: Tokens) -> float:
        """What these tokens cost in USD. Cache writes count as five-minute ones, as with a CLI that is not told."""
        return (
            tokens.input * self.input
            + tokens.output * self.output
            + tokens.cache_read * self.cache_read
            + tokens.cache_write * self.cache_write_5m
        ) / _MILLION


class KnownModel(Section):
    """One model by its id."""

    context_window: WindowTokens
    usd_per_mtok: Price


class ModelAlias(Section):
    """A name that means another model on another CLI: it has a window to reckon with, but no price."""

    context_window: WindowTokens


class ModelsDocument(Section):
    """A whole ``models.toml``."""

    model_config = ConfigDict(defer_build=False)

    models: dict[str, KnownModel] = Field(default_factory=dict)
    aliases: dict[str, ModelAlias] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTable:
    """Look models up by id, by id with a date, by alias, each also with ``[1m]``."""

    models: Mapping[str, KnownModel]
    aliases: Mapping[str, ModelAlias]

    @classmethod
    def of(cls, document: ModelsDocument) -> "ModelTable":
        return cls(models=MappingProxyType(document.models), aliases=MappingProxyType(document.aliases))

    def window(self, name: str) -> int | None:
        """How many tokens fit into the model's context."""
        if name.endswith(_LONG_CONTEXT):
            return _LONG_CONTEXT_TOKENS
        entry = self.aliases.get(name) or self._model(name)
        return entry.context_window if entry else None

    def price(self, name: str) -> Price | None:
        """What the model costs; ``None`` for an alias, because only the CLI knows which model it means."""
        model = self._model(name.removesuffix(_LONG_CONTEXT))
        return model.usd_per_mtok if model else None

    def cost(self, name: str, tokens: Tokens) -> float | None:
        """What these tokens of this model cost in USD, or ``None`` without a price."""
        price = self.price(name)
        return price.cost(tokens) if price else None

    def _model(self, name: str) -> KnownModel | None:
        return self.models.get(name) or self.models.get(_DATE.sub("", name))
