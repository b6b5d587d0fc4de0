"""When the value of a variable is certain, and when something in the text may have changed it."""

import pytest
from shell_view import line

from supervisor.shell import read_shell


def last(text: str) -> str:
    return line(read_shell(text).commands[-1])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x=a; ls $x", id="plain"),
        pytest.param("x=a; ls -x ${x}", id="an option of the same letter"),
        pytest.param("x=a\necho xx _x x1\nls $x", id="part of other words"),
        pytest.param("x=a; echo settle awaiting; ls $x", id="words that hold the name of a builtin"),
        pytest.param("x=a; cd /a.b ./c; ls $x", id="dots that source nothing"),
        pytest.param("for x in a; do ls $x; done", id="a loop"),
        pytest.param("for x in a; do ls -x $x; done", id="a loop with an option of the same letter"),
    ],
)
def test_what_is_assigned_once_is_known(text: str) -> None:
    assert last(text).split()[-1] == "a"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x=a; x=b; ls $x", id="assigned twice"),
        pytest.param("x=a; read x; ls $x", id="read"),
        pytest.param("x=a; unset y; ls $x", id="a builtin that may do anything"),
        pytest.param("x=a; printf  -v x b; ls $x", id="printed into"),
        pytest.param("x=a; . ./b; ls $x", id="sourced"),
        pytest.param("x=a; ls ${x:-b} $x", id="a default"),
        pytest.param("x=a; echo é-x; ls $x", id="a dash after a letter beyond ascii is no option"),
        pytest.param("x=a; echo à-x; ls $x", id="a letter whose last byte looks like a blank"),
        pytest.param("x=a; echo -x=b; ls $x", id="an option with a value"),
        pytest.param("for x in a; do x=b; ls $x; done", id="assigned in the loop"),
        pytest.param("for x in a; do ls; done; for x in b; do ls $x; done", id="two loops"),
        pytest.param("PWD=a; ls $PWD", id="set by the shell itself"),
    ],
)
def test_what_may_have_changed_is_not_known(text: str) -> None:
    name = "PWD" if "PWD" in text else "x"
    assert last(text).endswith(f"<${name}>")
