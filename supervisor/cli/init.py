"""`opsladder init`: put files to start from into a directory. Writes files, never over existing ones."""

import os
import shlex
from pathlib import Path

from supervisor import shipped
from supervisor.errors import UsageError

CONFIG_FILES = ("opsladder.toml", "models.toml", "environment.md")


def write_start(directory: Path, *, prompts: bool) -> None:
    """Copy the shipped configuration, and the prompts on request, and say what to do next."""
    wanted = [(shipped.CONFIG / name, directory / name) for name in CONFIG_FILES]
    if prompts:
        wanted += [
            (source, directory / "prompts" / source.relative_to(shipped.PROMPTS))
            for source in sorted(shipped.PROMPTS.rglob("*.md"))
        ]
    for source, target in wanted:
        try:
            done = _copy_once(source, target)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"{error.filename} is not a directory.", remedy="Name one, or one to be made.") from error
        except OSError as error:
            raise UsageError(
                f"{error.filename or target} cannot be written: {error.strerror}.",
                remedy="Name a directory of yours on a disk with room.",
            ) from error
        print(f"{done}  {target}")
    # Fit for a shell: it is there to be copied.
    config = shlex.quote(str(directory / "opsladder.toml"))
    print(
        "\nNext:\n"
        f"  1. Describe what there is to watch in {directory / 'environment.md'}.\n"
        f"  2. opsladder doctor --config {config}\n"
        f"  3. opsladder cycle --dry-run --config {config}"
    )


def _copy_once(source: Path, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        # O_EXCL: between looking and writing, someone else may have written.
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return "kept   "
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(source.read_bytes())
    except OSError:
        # Half a file would be kept by the next `init`.
        target.unlink()
        raise
    return "written"
