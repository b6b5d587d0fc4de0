"""The real bash runs scripts of harmless unknown commands; each command it tried to run must have been read.

Bash looks for every command in vain (its search path is empty) and tells so to a handler, which writes the name down.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.shell import read_shell

BASH = shutil.which("bash") or "/bin/bash"
HANDLER = 'command_not_found_handle() { printf "%s\\0" "$1" >> "$TRACE"; return $((${#1} % 2)); }\neval "$TEXT"'

NAMES = st.integers(1, 99).map(lambda number: f"mark{number}")
JUNK = st.sampled_from(
    [
        "a",
        '"b c"',
        "'d;e'",
        "'x | y'",
        '"$x"',
        "$x",
        "${x:-y}",
        "x#y",
        "a=b",
        "--o=1",
        "\\;",
        "\\#",
        '"\\""',
        "$'\\t'",
        "{}",
        "{a,b}",
        "~",
        "*.no",
        '"#c"',
        "'`n`'",
        '"\\`n\\`"',
        "$((1+2))",
        '"a\nb"',
        "[a]",
        "!",
        "}",
        "{",
        "if",
        "then",
        "done",
        "esac",
        "in",
        "1",
        '"("',
        "')'",
        "é",
        "[[",
        "]]",
        "$#",
        "$?",
        "a\\\nb",
        "\\\n",
        '""',
        "fi",
        "do",
        "case",
        "time",
        "-",
    ]
)
REDIRECTS = st.sampled_from(
    [
        ">/dev/null",
        "2>&1",
        "2>/dev/null",
        "</dev/null",
        ">&2",
        "&>/dev/null",
        "<<<w",
        "3>/dev/null",
        ">|/dev/null",
        "2>&-",
    ]
)


@st.composite
def spelled(draw: st.DrawFn) -> str:
    name = draw(NAMES)
    return draw(
        st.sampled_from(
            [name, f"'{name}'", f'"{name}"', f"$'{name}'", f"m''{name[1:]}", f"\\{name}", f"ma\\\n{name[2:]}"]
        )
    )


@st.composite
def simple(draw: st.DrawFn, inner: st.SearchStrategy[str] | None = None) -> str:
    arguments = [JUNK, REDIRECTS]
    if inner is not None:
        arguments += [inner.map("$({}\n)".format), inner.map('"$({}\n)"'.format), inner.map("<({}\n)".format)]
    words = [*draw(st.lists(st.sampled_from(["A=1", 'A="b c"', "2>&1"]), max_size=1)), draw(spelled())]
    words += draw(st.lists(st.one_of(arguments), max_size=3))
    return draw(st.sampled_from([" ", "  ", "\t", " \\\n"])).join(words)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    one = simple(inner)
    separator = st.sampled_from(
        ["; ", ";", "\n", " && ", " || ", " & ", " | ", " |& ", " |\n", "; # c;x\n", " # it's\n"]
    )
    word = st.sampled_from(["x", "$x", '"a b"'])
    pattern = st.sampled_from(["x", "x|y", "(x", "*", '"q"'])
    return st.one_of(
        st.builds("{}{}{}".format, one, separator, inner),
        inner.map("( {}\n)".format),
        inner.map("{{ {}\n}}".format),
        inner.map("! {}".format),
        st.builds("if {}\nthen {}\nelse {}\nfi".format, one, inner, one),
        st.builds("if {}; then {}\nelif {}; then {}\nfi".format, one, inner, one, one),
        st.builds("for v in {} {}; do {}\ndone".format, JUNK, word, inner),
        st.builds("while {}\ndo {}\nbreak; done".format, one, inner),
        st.builds("case {} in {}) {}\n;; *) {} ;; esac".format, word, pattern, inner, one),
        inner.map("f() {{ {}\n}}; f".format),
        inner.map("function g {{ {}\n}}; g".format),
        st.builds("{{ {}\n}} {}".format, inner, REDIRECTS),
        st.builds("{} <<E && {}\n$({}\n)\nE\n{}".format, one, one, simple(), inner),
        st.builds("{} <<'E'\n`it's\nE\n{}".format, one, inner),
        st.builds("[[ -n $({}\n) ]] && {}".format, inner, one),
        st.builds("x=$({}\n)".format, inner),
        NAMES.map('eval "{} x"'.format),
    )


SCRIPTS = st.recursive(simple(), _compound, max_leaves=8)


def commands_bash_tries(text: str, directory: Path) -> set[str]:
    trace = directory / "trace"
    trace.write_text("")
    process = subprocess.Popen(
        [BASH, "--norc", "--noprofile", "-c", HANDLER],
        env={"TRACE": str(trace), "TEXT": text, "PATH": "/nonexistent", "FUNCNEST": "10", "LC_ALL": "C.UTF-8"},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return {name for name in trace.read_bytes().decode(errors="replace").split("\0") if name}


@given(text=SCRIPTS)
@settings(max_examples=120)
def test_bash_runs_nothing_that_was_not_read(text: str, tmp_path: Path) -> None:
    reading = read_shell(text)
    tried = commands_bash_tries(text, tmp_path)
    assert reading.opaque or tried <= {command.name for command in reading.commands}


TRICKS = {
    "sum_or_subshell": "echo $(( \"mark1\" '`mark2`' ))",
    "quoted_end_mark": "mark1 <<'E' ; mark2\n$(mark3)\nE\nmark4",
    "comment_with_a_quote": "mark1 # it's\nmark2 'x'",
    "hash_glued_to_an_operator": "mark1;#mark2\nmark3",
    "test_with_a_target": "[ a > out ]; mark1",
    "reserved_after_an_assignment": "A=1 if; mark1",
    "group_without_a_blank": "{mark1;}",
    "bang_without_a_blank": "!mark1; mark2",
    "redirection_before_a_group_word": ">/dev/null { mark1; mark2",
    "brace_words": "mark1 {a,b} { } ; mark2",
    "no_break_space": "mark1\u00a0mark2; mark3",
    "form_feed": "mark1\fmark2; mark3",
    "here_document_in_a_pipe": "mark1 <<E | mark2\n`mark3`\nE\nmark4",
    "end_mark_in_a_string": 'mark1 "\n<<E\n"; mark2',
    "continued_comment": "# c \\\nmark1",
    "nested_backticks": "mark1 `mark2 \\`mark3\\``",
    "case_in_a_substitution": "mark1 $(case x in x) mark2;; esac)",
    "unicode_name": "märk1; mark2",
    "array_is_no_subshell": "a=(mark1 $(mark2)); mark3",
    "function_shadows": "mark1() { mark2; }; mark1",
    "ansi_c_with_an_escaped_quote": "mark1 $'a\\'; mark2 #'",
    "dollar_double": '$"mark1" x; mark2',
    "carriage_return_continues_nothing": "mark1 \\\r\nmark2",
    "arithmetic_runs_subscripts": "x='a[$(mark1)]'; : $((x))",
    "condition_runs_subscripts": "x='a[$(mark1)]'; [[ x -eq 1 ]]",
    "unset_runs_subscripts": "a=(1); unset 'a[$(mark1)]'",
    "prompt_expansion": "x='$(mark1)'; : \"${x@P}\"",
    "trap_runs_later": "trap 'mark1' EXIT; mark2",
    "here_document_joins_lines": "mark1 <<E\na\\\nE\n$(mark2)\nE\nmark3",
}


@pytest.mark.parametrize("text", TRICKS.values(), ids=TRICKS)
def test_a_text_that_parsers_stumble_over_hides_nothing(text: str, tmp_path: Path) -> None:
    reading = read_shell(text)
    tried = commands_bash_tries(text, tmp_path)
    assert reading.opaque or tried <= {command.name for command in reading.commands}
