"""Whether the CLI still has the transcript of a session. Reads directory entries. Called from climb.cycle."""

from collections.abc import Mapping
from pathlib import Path


def transcript_on_disk(env: Mapping[str, str], session_id: str) -> bool | None:
    """Whether a transcript with content exists; ``None`` when the place where it would be cannot be looked at.

    The directory's name is made from the working directory by rules that change, so every project is looked into.
    """
    base = env.get("CLAUDE_CONFIG_DIR")
    root = Path(base) if base else Path(env["HOME"]) / ".claude" if "HOME" in env else None
    if root is None:
        return None
    projects = root / "projects"
    try:
        return any((project / f"{session_id}.jsonl").stat().st_size > 0 for project in _holding(projects, session_id))
    except OSError:
        return None


def _holding(projects: Path, session_id: str) -> list[Path]:
    return [path.parent for path in projects.glob(f"*/{session_id}.jsonl")] if projects.is_dir() else []
