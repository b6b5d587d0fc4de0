"""What every table is declared with. No I/O. Used by ``tables`` and ``guard_tables``."""

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar

from sqlalchemy import CheckConstraint, MetaData
from sqlmodel import SQLModel


class Record(SQLModel):
    """The base of all tables, with a schema of its own: not SQLModel's global one, which is anyone's."""

    metadata: ClassVar[MetaData] = MetaData()


def one_of(table: str, column: str, values: Iterable[StrEnum]) -> CheckConstraint:
    """A column that holds one of an enum's values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"ck_{table}_{column}")
