"""What the tests of the service share: the stand-in CLI of climb's tests, and no process after a test that failed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "climb"))

from cycles import PLACES
from killing import standin_program


@pytest.fixture(autouse=True)
def _cleared_places() -> Iterator[None]:
    yield
    while PLACES:
        PLACES.pop().clear()


@pytest.fixture
def standin(tmp_path: Path) -> Path:
    return standin_program(tmp_path)
