"""Whatever stands in a file or a variable, the answer is settings or a list of problems, never a crash."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.settings import ConfigProblems, Problem, load_settings
from supervisor.settings.outline import outline

VALUES = [
    *('""', '"x"', '"\\u0000"', '"~"', '"~x"', '"/"', '"../.."', '"a b"', '"*"', '"0s"', '"999999d"', '"-1"', '"sqlite://"'),
    *("0", "-1", "1", f"{10**400}", "1e308", "inf", "nan", "true", "1979-05-27", "07:32:00"),
    *("[]", "[1]", '[""]', '["x"]', "[[]]", "{}", "{ a = 1 }", '{ a = "x" }', "[{}]", '[{ name = [] }]'),
    *(f'"{"x" * 300}"', f'"{"../" * 2000}x.md"', f'"{"x" * 300}.md"', '"é\\u202e"', "'''\n\n'''"),
]  # fmt: skip


def assignments() -> list[str]:
    dotted = [".".join((*table, key)) for table, keys in outline().tables.items() for key in keys]
    return [name for name in dotted if not name.startswith(("tiers.", "schedules."))]


def elements() -> list[tuple[str, str]]:
    return [(kind, key) for kind in ("tiers", "schedules") for key in outline().tables[(kind,)]]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def settle(text: str, directory: Path, environ: dict[str, str]) -> None:
    file = directory / "opsladder.toml"
    file.write_text(text, encoding="utf-8")
    problems = problems_of(file, {"HOME": str(directory), **environ})
    assert all(str(problem).isprintable() for problem in problems)


def problems_of(file: Path, environ: dict[str, str]) -> tuple[Problem, ...]:
    try:
        load_settings(file, environ, cwd=file.parent)
    except ConfigProblems as refused:
        return refused.problems
    return ()


@pytest.mark.parametrize("name", assignments())
def test_any_value_of_a_setting_is_taken_or_explained(name: str, directory: Path) -> None:
    for value in VALUES:
        settle(f"{name} = {value}\n", directory, {})


@pytest.mark.parametrize(("kind", "key"), elements())
def test_any_value_in_a_list_of_tables_is_taken_or_explained(kind: str, key: str, directory: Path) -> None:
    for value in VALUES:
        settle(f"[[{kind}]]\n{key} = {value}\n[[{kind}]]\n{key} = {value}\n", directory, {})


text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


@given(
    variable=st.sampled_from(sorted(outline().variables)), value=text | st.sampled_from(["nan", "1e999", "9" * 5000])
)
def test_any_text_in_a_variable_is_taken_or_explained(directory: Path, variable: str, value: str) -> None:
    settle("", directory, {variable: value, "OPSLADDER_" + value + "__X": value})
