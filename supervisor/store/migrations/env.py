"""Alembic's entry: run the migrations on the connection that ``store.migrate`` hands over. Does I/O."""

from alembic import context

from supervisor.store.declared import declared_schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=declared_schema(),
    # SQLite can roll DDL back too; the engine begins its transactions explicitly.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
