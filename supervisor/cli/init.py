"""`opsladder init`: put files to start from into a directory. Writes files, never over existing ones."""

import os
import shlex
from pathlib import Path

from supervisor import shipped
from supervisor.errors import UsageError
from supervisor.service.units import STATE_LINE, WORK_LINE

CONFIG = "opsladder.toml"
BESIDE = ("models.toml", "environment.md")
# What is written below it is for the whole machine, and with it for the service.
MACHINE = Path("/etc")
_FOR_THE_MACHINE = {
    'work_dir = "."': f"# This one the units of systemd make.\n{WORK_LINE}",
    f"#{STATE_LINE}": f"# This one the units of systemd make. Whoever types a command finds it here.\n{STATE_LINE}",
}


def write_start(directory: Path | None = None, config: Path | None = None) -> None:
    """Copy the shipped configuration and prompts, and say what to do next. Where nothing is named, here."""
    config = config or (directory or Path()) / CONFIG
    directory = directory or config.parent
    if directory.resolve() != config.parent.resolve():
        raise UsageError(
            f"{directory} is not the directory of {config}, beside which it looks for all other files.",
            remedy="Name one of them.",
        )
    for_the_machine = directory.resolve().is_relative_to(MACHINE)
    wanted = [(shipped.CONFIG / CONFIG, config)]
    wanted += [(shipped.CONFIG / name, directory / name) for name in BESIDE]
    prompts = directory / shipped.PROMPTS.name
    wanted += [
        (source, prompts / source.relative_to(shipped.PROMPTS)) for source in sorted(shipped.PROMPTS.rglob("*.md"))
    ]
    for source, target in wanted:
        try:
            done = _write_once(_text_of(source, for_the_machine=for_the_machine), target)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"{error.filename} is not a directory.", remedy="Name one, or one to be made.") from error
        except OSError as error:
            raise UsageError(
                f"{error.filename or target} cannot be written: {error.strerror}.",
                remedy="Name a directory of yours on a disk with room.",
            ) from error
        print(f"{done}  {target}")
    print(f"\nOf a prompt that you delete in {prompts}, the one of the installed version is used, and renewed with it.")
    # Fit for a shell: it is there to be copied.
    typed = shlex.quote(str(config))
    print(f"\nNext:\n  1. Describe what there is to watch in {directory / 'environment.md'}.")
    if for_the_machine:
        print(
            "  2. opsladder systemd install\n"
            "     The service makes the directories that state.dir and claude.work_dir name.\n"
            "     For cron, make them for the user that runs it, or name others.\n"
            f"  3. opsladder doctor --config {typed}"
        )
    else:
        print(f"  2. opsladder doctor --config {typed}\n  3. opsladder cycle --dry-run --config {typed}")


def _text_of(source: Path, *, for_the_machine: bool) -> str:
    """A shipped file. For the machine, the configuration says where the service has its records and its work."""
    text = source.read_text(encoding="utf-8")
    if for_the_machine and source.name == CONFIG:
        for usual, here in _FOR_THE_MACHINE.items():
            text = text.replace(f"\n{usual}\n", f"\n{here}\n")
    return text


def _write_once(text: str, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        # O_EXCL: between looking and writing, someone else may have written.
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return "kept   "
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        # Half a file would be kept by the next `init`.
        target.unlink()
        raise
    return "written"
