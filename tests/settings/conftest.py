"""A directory with a configuration in it, and settings loaded from there with an environment of the test's own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.settings import ConfigProblems, Settings, load_settings

Load = Callable[..., Settings]
Refuse = Callable[..., list[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture
def base(tmp_path: Path) -> Path:
    directory = (tmp_path / "base").resolve()
    directory.mkdir()
    return directory


@pytest.fixture
def load(base: Path, home: Path) -> Load:
    """``load(toml, NAME=value…)``: the settings of this text and environment."""

    def from_text(toml: str = "", **environ: str) -> Settings:
        file = base / "opsladder.toml"
        file.write_text(toml, encoding="utf-8")
        return load_settings(file, {"HOME": str(home), **environ}, cwd=base)

    return from_text


@pytest.fixture
def refuse(load: Load, base: Path) -> Refuse:
    """``refuse(toml, NAME=value…)``: the problems of this text and environment, with the file called FILE."""

    def problems(toml: str = "", **environ: str) -> list[str]:
        with pytest.raises(ConfigProblems) as caught:
            load(toml, **environ)
        lines = [str(problem).replace(str(base / "opsladder.toml"), "FILE") for problem in caught.value.problems]
        assert str(caught.value).count("\n") == len(lines) - 1, "one line for each problem"
        return lines

    return problems
