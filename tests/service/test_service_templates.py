"""The service reads its prompts again when one of them changes, and only then."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.service.templates import Templates


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    (tmp_path / "prompts" / "partials").mkdir(parents=True)
    for name in ("tier1.md", "partials/rules.md"):
        (tmp_path / "prompts" / name).write_text("Look.", encoding="utf-8")
    return tmp_path / "prompts"


def replaced(file: Path) -> None:
    """As editors do it: the same size, and perhaps the same time."""
    status = file.stat()
    new = file.with_suffix(".new")
    new.write_text("Dig..", encoding="utf-8")
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(file)


def test_prompts_that_stay_the_same_are_read_once(prompts: Path, tmp_path: Path) -> None:
    templates = Templates()
    directories = (tmp_path / "none", prompts)
    assert templates.current(directories) is templates.current(directories)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda place: (place / "tier1.md").write_text("Look well."), id="rewritten"),
        pytest.param(lambda place: replaced(place / "tier1.md"), id="replaced"),
        pytest.param(lambda place: (place / "partials" / "rules.md").unlink(), id="removed-below"),
        pytest.param(lambda place: (place / "tier2.md").write_text("Mend."), id="added"),
    ],
)
def test_a_change_to_a_prompt_counts_from_the_next_cycle_on(prompts: Path, change: Callable[[Path], object]) -> None:
    templates = Templates()
    before = templates.current((prompts,))
    change(prompts)
    assert templates.current((prompts,)) is not before
