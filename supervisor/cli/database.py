"""`opsladder db …`: the schema. Called from ``app``."""

import json
from pathlib import Path

from supervisor.cli.exits import FAILED, SETTLED
from supervisor.settings import settings_from_process


def upgrade_schema(config: Path | None) -> None:
    from supervisor.store import check, upgrade

    url = settings_from_process(config).database_url()
    upgrade(url)
    print(f"The schema is at {check(url).current}.")


def check_schema(config: Path | None, *, as_json: bool) -> int:
    from supervisor.store import check

    state = check(settings_from_process(config).database_url())
    if as_json:
        facts = {"ok": state.ok, "current": state.current, "head": state.head, "detail": state.detail}
        print(json.dumps({"schema": "opsladder.db/1", **facts}))
    else:
        print(state.detail)
    return SETTLED if state.ok else FAILED
