"""What the tests of climb share: the stand-in as a program of its own, and no process after a test that failed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cycles import PLACES
from killing import standin_program


@pytest.fixture(autouse=True)
def _cleared_places() -> Iterator[None]:
    yield
    while PLACES:
        PLACES.pop().clear()


@pytest.fixture
def standin(tmp_path: Path) -> Path:
    """A program that passes for a Claude CLI and does what ``STANDIN`` says."""
    return standin_program(tmp_path)
