"""What the tests of climb share: the stand-in as a program of its own, and no process after a test that failed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cycles import PLACES


@pytest.fixture(autouse=True)
def _cleared_places() -> Iterator[None]:
    yield
    while PLACES:
        PLACES.pop().clear()


@pytest.fixture
def standin(tmp_path: Path) -> Path:
    """A program that passes for a Claude CLI and does what ``STANDIN`` says."""
    program = tmp_path / "standin"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {Path(__file__).parent / "standin_cli.py"} "$@"\n')
    program.chmod(0o755)
    return program
