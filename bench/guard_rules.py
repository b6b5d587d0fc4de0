"""Load the rules of a tier and print what it took. Run by ``guard`` as a fresh process: what they import counts too."""

import tempfile
import time
from pathlib import Path

from bench.binaries import CONFIG
from supervisor.settings import Settings, load_settings


def load(directory: Path) -> Settings:
    """Settings with everything of theirs in one directory."""
    work = directory / "work"
    work.mkdir(exist_ok=True)
    config = directory / "opsladder.toml"
    config.write_text(CONFIG, encoding="utf-8")
    own = {"OPSLADDER_CLAUDE__WORK_DIR": str(work), "OPSLADDER_STATE__DIR": str(directory / "state")}
    return load_settings(config, {"HOME": str(directory), **own}, cwd=directory)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="opsladder-bench-") as scratch:
        settings = load(Path(scratch))
        started = time.process_time()
        settings.rules_for(1)
        print((time.process_time() - started) * 1000)


if __name__ == "__main__":
    main()
