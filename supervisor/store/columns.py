"""How values are kept so that SQLite and PostgreSQL give back the same. No I/O. Used by ``tables`` and ``engine``."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

# SQLite numbers rows by itself only in a column declared exactly INTEGER.
Key: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")


class UtcDateTime(TypeDecorator[datetime]):
    """Aware datetimes in, aware UTC datetimes out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a datetime without a time zone cannot be stored")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        # SQLite keeps what it was given, which is UTC, but forgets to say so.
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class AnyText(TypeDecorator[str]):
    """Text from anywhere, also from tools: what a database would refuse is replaced, never fatal."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else storable(value)


def storable(text: str) -> str:
    """The text without what no database keeps: PostgreSQL refuses NUL, both refuse half of a surrogate pair."""
    if "\x00" in text:
        text = text.replace("\x00", "\N{SYMBOL FOR NULL}")
    try:
        text.encode()
    except UnicodeEncodeError:
        # By way of UTF-16, so that two halves standing side by side become the character they mean.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def to_json(value: object) -> str:
    """JSON that both databases accept. The engine's serializer for every JSON column."""
    return json.dumps(_storable_json(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _storable_json(value: object) -> object:
    match value:
        case str():
            return storable(value)
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {storable(str(key)): _storable_json(item) for key, item in value.items()}
        case list() | tuple():
            return [_storable_json(item) for item in value]
        case _:
            return value
