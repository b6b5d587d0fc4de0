"""`opsladder run`: the service. Called from ``app``."""

import asyncio
import os
from pathlib import Path

from supervisor.cli import logs
from supervisor.settings import Settings, settings_from_process, systemd_variables


def serve(config: Path | None) -> None:
    """Serve until a signal ends it."""
    from supervisor.service.daemon import Daemon
    from supervisor.service.systemd import from_environment

    logs.set_up(verbose=True)

    def load() -> Settings:
        settings = settings_from_process(config)
        logs.keep_secret(settings.masker())
        return settings

    settings = load()
    systemd = from_environment(systemd_variables(), os.getpid())

    async def run() -> None:
        await Daemon(settings, load, systemd).run()

    asyncio.run(run())
