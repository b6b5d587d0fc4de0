"""Lines of keys: right on TOML as people write it, and never an exception on anything."""

import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervisor.settings.lines import key_lines, line_of

TEXT = '''\
top = 1  # [not.a.table]
"quoted key" = 'x = 1'

[a]
b.c = 1
list = [
  1, # ] "
  [2, "]"],
  { x = 1, y = { z = "}" } },
]
text = """
[not.a.table]
key = 1
"""
literal = \'\'\'
z = 1\'\'\'
after = 2

[[t]]
n = 1
[t.sub]
deep = 1
[[t]]
n = 2
sub.deep = 2
[[t.inner]]
k = 1
[[t.inner]]
k = 2
[ spaced . "out" ]
k = 1979-05-27T07:32:00Z
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 1),
        (("quoted key",), 2),
        (("a",), 4),
        (("a", "b", "c"), 5),
        (("a", "list"), 6),
        (("a", "list", 0), 7),
        (("a", "list", 1), 8),
        (("a", "list", 2, "y", "z"), 9),
        (("a", "text"), 11),
        (("a", "after"), 17),
        (("t", 0), 19),
        (("t", 0, "sub", "deep"), 22),
        (("t", 1, "n"), 24),
        (("t", 1, "sub", "deep"), 25),
        (("t", 1, "inner", 0, "k"), 27),
        (("t", 1, "inner", 1, "k"), 29),
        (("spaced", "out", "k"), 31),
        (("a", "missing"), 4),
        (("t", 1, "missing", "more"), 23),
        (("nothing",), None),
    ],
    ids=str,
)
def test_a_key_is_on_its_line_and_a_missing_one_at_its_table(path: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(TEXT, path) == line


def test_the_scanner_finds_every_key_that_the_parser_finds() -> None:
    def paths(value: object, above: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [above, *(path for key, below in inner for path in paths(below, (*above, key)))]

    missing = set(paths(tomllib.loads(TEXT), ())) - set(key_lines(TEXT)) - {(), ("spaced",)}
    assert missing == set()


@given(st.text(alphabet=st.sampled_from("ab=.[]{}\"'#,\n\\ 1-"), max_size=60))
@example('"""')
@example("[[")
@example("a = {")
@example("a = [")
@example("=")
@example("]")
def test_nothing_makes_the_scanner_raise_or_run_for_ever(text: str) -> None:
    assert all(line >= 1 for line in key_lines(text).values())
