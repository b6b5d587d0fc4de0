"""The migrations, numbered from 0001, run by Alembic through ``store.migrate``. Importing this does no I/O."""
