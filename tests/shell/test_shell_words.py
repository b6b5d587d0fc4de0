"""Words come out as the shell would pass them on, or marked as unknown."""

import pytest
from shell_view import kinds, lines, word

from supervisor.model.reading import Word
from supervisor.shell import read_shell

WORDS = {
    "plain": ("rm", ["rm"]),
    "single": ("'r'm", ["rm"]),
    "double": ('"r"m', ["rm"]),
    "empty_quotes_inside": ("r''m", ["rm"]),
    "escaped": ("\\r\\m", ["rm"]),
    "ansi_c": ("$'rm'", ["rm"]),
    "ansi_c_hex": ("$'\\x72m'", ["rm"]),
    "ansi_c_octal": ("$'\\162m'", ["rm"]),
    "ansi_c_unicode": ("$'\\u0072m'", ["rm"]),
    "ansi_c_ends_at_nul": ("$'rm\\0x'", ["rm"]),
    "ansi_c_newline": ("$'a\\nb'", ["a\nb"]),
    "ansi_c_bytes": ("$'\\xc3\\xa9'", ["é"]),
    "backslash_in_double": ('"a\\b\\$c\\\\"', ["a\\b$c\\"]),
    "continued_in_double": ('"a\\\nb"', ["ab"]),
    "newline_in_single": ("'a\nb'", ["a\nb"]),
    "empty": ("''", [""]),
    "adjacent": ("a'b c'\"d e\"f", ["ab cd ef"]),
    "lone_dollar": ("a$ $", ["a$", "$"]),
    "dollar_in_double": ('"a$"', ["a$"]),
    "variable": ("$x", ["<$x>"]),
    "quoted_variable": ('"$x"', ["<$x>"]),
    "braced_variable": ("/var/${x}/y", ["</var/${x}/y>"]),
    "special_variables": ("$? $1 $@", ["<$?>", "<$1>", "<$@>"]),
    "translated": ('$"a"', ["<a>"]),
    "glob": ("*.log", ["<*.log>"]),
    "glob_question": ("a?", ["<a?>"]),
    "glob_class": ("[ab]c", ["<[ab]c>"]),
    "quoted_glob": ("'*' \"?\" \\*", ["*", "?", "*"]),
    "open_bracket_only": ("a[b", ["a[b"]),
    "tilde": ("~/x ~root", ["~/x", "~root"]),
    "braces": ("{a,b}", ["a", "b"]),
    "braces_around": ("x{a,b}y", ["xay", "xby"]),
    "braces_nested": ("{a,{b,c}}", ["a", "b", "c"]),
    "braces_twice": ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
    "braces_empty_part": ("r{m,}", ["rm", "r"]),
    "braces_range": ("{1..3}", ["1", "2", "3"]),
    "braces_range_down": ("{3..1}", ["3", "2", "1"]),
    "braces_range_padded": ("{08..10}", ["08", "09", "10"]),
    "braces_range_step": ("{1..5..2}", ["1", "3", "5"]),
    "braces_letters": ("{a..c}", ["a", "b", "c"]),
    "braces_quoted": ("'{a,b}' {a\\,b} {'a,b',c}", ["{a,b}", "{a,b}", "a,b", "c"]),
    "braces_without_comma": ("{} {a} a{", ["{}", "{a}", "a{"]),
    "braces_with_a_variable": ("{$x,b}", ["<$x>", "b"]),
    "json_in_quotes": ("'{\"a\": [1, 2]}'", ['{"a": [1, 2]}']),
    "bytes_that_are_blanks_elsewhere": ("à Å x", ["à", "Å", "x"]),
    "quotes_side_by_side": ("'a''b' \"a\"'b' 'a'b 'a b' \"c d\"", ["ab", "ab", "ab", "a b", "c d"]),
    "unicode": ("'naïve' \"é$x\"", ["naïve", "<é$x>"]),
}


@pytest.mark.parametrize(("text", "expected"), WORDS.values(), ids=WORDS)
def test_a_word_is_resolved_or_marked(text: str, expected: list[str]) -> None:
    reading = read_shell("program " + text)
    assert reading.opaque == ()
    assert [word(one) for one in reading.commands[-1].argv[1:]] == expected


COMMAND_WORDS = {
    "single": "'rm' -rf /",
    "double": '"rm" -rf /',
    "pieces": "r''m -rf /",
    "mixed": "'r'\"m\" -rf /",
    "escaped": "\\rm -rf /",
    "ansi_c": "$'\\x72\\x6d' -rf /",
    "braces": "{rm,-rf,/}",
    "continued": "r\\\nm -rf /",
    "variable": "c=rm; $c -rf /",
    "two_variables": "a=r; b=m; $a$b -rf /",
    "quoted_variable": 'c=rm; "$c" -rf /',
    "flags_in_a_variable": "f=-rf; rm $f /",
    "variable_in_a_substitution": "c=rm; x=$($c -rf /)",
}


@pytest.mark.parametrize("text", COMMAND_WORDS.values(), ids=COMMAND_WORDS)
def test_a_disguised_command_word_is_recognised(text: str) -> None:
    assert "rm -rf /" in lines(text)


UNCERTAIN = {
    "never_assigned": "$c -rf /",
    "assigned_after": "$c x; c=rm",
    "assigned_twice": "c=ls; c=rm; $c x",
    "appended": "c=r; c+=m; $c x",
    "assigned_in_the_background": "c=rm & $c x",
    "assigned_in_a_subshell": "(c=rm); $c x",
    "assigned_in_a_branch": "if a; then c=rm; fi; $c x",
    "assigned_by_read": "c=ls; read c; $c x",
    "assigned_by_printf": "c=ls; printf -v c rm; $c x",
    "assigned_by_default": "c=; : ${c:=rm}; $c x",
    "assigned_in_a_loop": "c=ls; for c in $(w); do $c x; done",
    "assigned_before_a_command": "c=ls a; $c x",
    "assigned_by_declare": "declare c=rm; $c x",
    "eval_may_assign": 'c=ls; eval "$x"; $c x',
    "set_by_the_shell": "RANDOM=ls; $RANDOM x",
    "split_otherwise": "IFS=s; c=ls; $c x",
    "with_blanks": "c='rm -rf'; $c x",
    "with_a_glob": "c='r*'; $c x",
    "from_output": "c=$(w); $c x",
    "indirect": "c=ls; ${!c} x",
    "substitution": "$(w) x",
    "backticks": "`w` x",
    "part": "r$x y",
    "glob": "/bin/r? x",
    "arguments": '"$@"',
    "array": '"${cmd[@]}"',
}


@pytest.mark.parametrize("text", UNCERTAIN.values(), ids=UNCERTAIN)
def test_a_command_word_that_is_not_certain_is_opaque(text: str) -> None:
    assert kinds(text) & {"variable_command", "evaluated_value"}


def test_options_are_parted_from_words_wherever_they_stand() -> None:
    (command,) = read_shell("tar x -vf a.tar --directory=/tmp b -- -c").commands
    assert [one.text for one in command.words] == ["x", "a.tar", "b", "-c"]
    assert [(one.text, one.names, one.value) for one in command.options] == [
        ("-vf", ("-vf", "-v", "-f"), None),
        ("--directory=/tmp", ("--directory",), "/tmp"),
    ]


def test_an_option_is_found_in_a_bundle_and_when_abbreviated() -> None:
    (command,) = read_shell("sed -ni.bak --in-pl s/a/b/ f").commands
    assert command.has_option("-i")
    assert command.has_option("--in-place")
    assert not command.has_option("-e", "--expression")


def test_a_dynamic_option_value_is_marked() -> None:
    (command,) = read_shell('curl --output="$f" x').commands
    assert [(one.names, one.dynamic) for one in command.options] == [(("--output",), True)]


MAYBE_OPTION = {
    "variable": ("$x", True),
    "quoted_variable": ('"$x"', True),
    "all_arguments": ('"$@"', True),
    "prefixed_and_quoted": ('"/var/$x"', False),
    "prefixed_but_split": ("/var/$x", True),
    "glob": ("*", True),
    "prefixed_glob": ("./*", False),
    "literal": ("x", False),
}


@pytest.mark.parametrize(("text", "expected"), MAYBE_OPTION.values(), ids=MAYBE_OPTION)
def test_a_word_says_whether_it_may_turn_into_an_option(text: str, expected: bool) -> None:
    (command,) = read_shell("find " + text).commands
    assert command.argv[1].maybe_option is expected


STEERING = [
    "PATH",
    "LD_PRELOAD",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "GIT_SSH_COMMAND",
    "PYTHONPATH",
    "PAGER",
    "IFS",
    "DOCKER_HOST",
]


@pytest.mark.parametrize("name", STEERING)
def test_an_assignment_that_changes_what_runs_is_flagged(name: str) -> None:
    for text in (f"{name}=x ls", f"{name}=x", f"export {name}=x", f"env {name}=x ls", f"sudo {name}=x ls"):
        assert any(one.steers for command in read_shell(text).commands for one in command.assignments), text


@pytest.mark.parametrize(
    "text", ["LANG=C ls", "PGPASSWORD=x psql -l", "PAGER=cat git log", "SYSTEMD_PAGER= systemctl status"]
)
def test_an_ordinary_assignment_is_not_flagged(text: str) -> None:
    assert not any(one.steers for command in read_shell(text).commands for one in command.assignments)


@pytest.mark.parametrize(("path", "standard"), [("ls", True), ("/usr/bin/ls", True), ("/opt/x/ls", False)])
def test_a_program_keeps_its_path(path: str, standard: bool) -> None:
    (command,) = read_shell(f"{path} x").commands
    assert (command.name, command.path, command.standard_path) == ("ls", path, standard)


def test_static_means_one_word_and_exactly_this_one() -> None:
    assert Word(text="x").static
    assert not any(
        one.static for one in (Word(text="x", dynamic=True), Word(text="x", glob=True), Word(text="", splits=True))
    )
