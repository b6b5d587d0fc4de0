"""The transcripts the CLI keeps of its sessions. Reads them. Called from climb.outlook and climb.archive."""

from collections.abc import Mapping
from pathlib import Path

_CHUNK = 1 << 16
_ANSWERS = (b'"role":"assistant"', b'"role": "assistant"')
_OVERLAP = max(map(len, _ANSWERS)) - 1


def transcript_on_disk(env: Mapping[str, str], session_id: str) -> bool | None:
    """Whether a transcript with an answer of the model exists; ``None`` when its place cannot be looked at.

    A CLI that was killed before it wrote the first answer down leaves a file that it resumes as an empty conversation,
    without a word. The directory's name is made from the working directory by rules that change, so every project is
    looked into.
    """
    projects = _projects(env)
    if projects is None:
        return None
    try:
        return any(_has_an_answer(project / f"{session_id}.jsonl") for project in _holding(projects, session_id))
    except OSError:
        return None


def transcripts(env: Mapping[str, str], session_id: str) -> list[Path]:
    """The files with the transcript of a session: one, or several when it was resumed from another directory."""
    projects = _projects(env)
    return [] if projects is None else sorted(path / f"{session_id}.jsonl" for path in _holding(projects, session_id))


def _projects(env: Mapping[str, str]) -> Path | None:
    base = env.get("CLAUDE_CONFIG_DIR")
    root = Path(base) if base else Path(env["HOME"]) / ".claude" if "HOME" in env else None
    return None if root is None else root / "projects"


def _has_an_answer(transcript: Path) -> bool:
    kept = b""
    with transcript.open("rb") as file:
        while chunk := file.read(_CHUNK):
            kept += chunk
            if any(answer in kept for answer in _ANSWERS):
                return True
            kept = kept[-_OVERLAP:]
    return False


def _holding(projects: Path, session_id: str) -> list[Path]:
    return [path.parent for path in projects.glob(f"*/{session_id}.jsonl")] if projects.is_dir() else []
