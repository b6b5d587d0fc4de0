"""What a call sends to a database, and whether SQLite would have to read a whole table for it. Does I/O."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Engine, event

Sent = list[tuple[str, object]]


@contextmanager
def statements() -> Iterator[Sent]:
    """Everything sent to a database meanwhile, except what only begins a transaction."""
    sent: Sent = []

    def note(_c: object, _cursor: object, statement: str, values: object, _context: object, many: bool) -> None:
        if not statement.startswith("BEGIN"):
            sent.append((statement, values[0] if many and isinstance(values, list) else values))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def whole_tables_read(sent: Sent, file: Path) -> list[str]:
    """The steps of SQLite's plans that go through a table from one end to the other."""
    assert sent
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        steps = [
            step[3]
            for statement, values in sent
            for step in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        ]
    return [step for step in steps if step.startswith("SCAN ") and step.split()[1] in tables]
