"""Whatever holds commands together, each of them is found."""

import pytest
from shell_view import lines

from supervisor.shell import read_shell

STRUCTURES = {
    "one": ("ls", ["ls"]),
    "nothing": ("", []),
    "only_blanks": (" \n\t\n", []),
    "only_a_comment": ("# rm -rf /", []),
    "semicolon": ("a; b;c", ["a", "b", "c"]),
    "newline": ("a\nb\n\nc\n", ["a", "b", "c"]),
    "and_or": ("a && b || c", ["a", "b", "c"]),
    "background": ("a & b &", ["a", "b"]),
    "pipe": ("a | b |& c", ["a", "b", "c"]),
    "pipe_over_lines": ("a |\n b", ["a", "b"]),
    "and_over_lines": ("a &&\n\n b", ["a", "b"]),
    "continued_line": ("a b \\\n c", ["a b c"]),
    "continued_word": ("sys\\\ntemctl status", ["systemctl status"]),
    "comment_after": ("a # b; c\nd", ["a", "d"]),
    "hash_in_a_word": ("a b#c; d", ["a b#c", "d"]),
    "hash_after_an_operator": ("a;#b\nc", ["a", "c"]),
    "quoted_hash": ("a '#'; b", ["a #", "b"]),
    "carriage_returns": ("a b\r\nc\r\n", ["a b", "c"]),
    "negation": ("! a | b", ["a", "b"]),
    "negated_condition": ("! if a; then b; fi", ["a", "b"]),
    "subshell": ("(a; b)", ["a", "b"]),
    "nested_subshells": ("( (a) ; ( (b) ) )", ["a", "b"]),
    "group": ("{ a; b; }", ["a", "b"]),
    "group_over_lines": ("{\n a\n}\n", ["a"]),
    "group_is_a_word_elsewhere": ("a { b } c", ["a { b } c"]),
    "reserved_words_as_arguments": ("a if then fi do done in", ["a if then fi do done in"]),
    "if": ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
    "if_over_lines": ("if a\nthen\n b\nfi", ["a", "b"]),
    "while": ("while a; do b; done", ["a", "b"]),
    "until": ("until a; do b; done", ["a", "b"]),
    "endless": ("while :; do a; sleep 5; done", [":", "a", "sleep 5"]),
    "for": ("for f in *.log; do a $f; done", ["a <$f>"]),
    "for_over_known_values": ("for s in web api; do a $s; done", ["a web", "a api"]),
    "for_over_a_range": ("for i in {1..3}; do a $i; done", ["a 1", "a 2", "a 3"]),
    "for_over_output": ("for f in $(b); do a $f; done", ["b", "a <$f>"]),
    "for_over_arguments": ('for f; do a "$f"; done', ["a <$f>"]),
    "for_with_a_new_line": ("for f in x\ndo\n a\ndone", ["a"]),
    "nested_for": ("for a in 1 2; do for b in 3 4; do c $a$b; done; done", ["c 13", "c 14", "c 23", "c 24"]),
    "counted_for": ("for ((i=0; i<3; i++)); do a; done", ["a"]),
    "select": ("select x in a b; do c; break; done", ["c", "break"]),
    "case": ("case $x in a|b) c;; *) d;; esac", ["c", "d"]),
    "case_open_parenthesis": ("case x in (a) c;; (b) d;; esac", ["c", "d"]),
    "case_falls_through": ("case x in a) c;& b) d;;& e) f;; esac", ["c", "d", "f"]),
    "case_last_without_end": ("case x in a) c\nesac", ["c"]),
    "case_pattern_runs": ("case $(w) in $(p)) c;; esac", ["w", "p", "c"]),
    "function": ("f() { a; }; f", ["a", "f"]),
    "function_keyword": ("function f { a; }\nf", ["a", "f"]),
    "function_keyword_and_parentheses": ("function f() { a; }", ["a"]),
    "function_subshell": ("f() ( a )", ["a"]),
    "function_on_next_line": ("f()\n{\n a\n}", ["a"]),
    "function_that_shadows": ("ls() { rm -rf /; }; ls", ["rm -rf /", "ls"]),
    "function_with_redirection": ("f() { a; } > out", ["a", ">out"]),
    "coproc": ("coproc a b", ["a b"]),
    "time": ("time a b", ["a b"]),
    "time_of_a_group": ("time { a; b; }", ["a", "b"]),
    "time_of_a_subshell": ("time (a)", ["a"]),
    "time_of_a_pipeline": ("time ! a | b", ["a", "b"]),
    "time_portable": ("time -p a", ["a"]),
    "substitution": ("a $(b c)", ["b c", "a <$(b c)>"]),
    "quoted_substitution": ('a "x $(b) y"', ["b", "a <x $(b) y>"]),
    "nested_substitution": ("a $(b $(c))", ["c", "b <$(c)>", "a <$(b $(c))>"]),
    "backticks": ("a `b c`", ["b c", "a <`b c`>"]),
    "nested_backticks": ("a `b \\`c\\``", ["c", "b <`c`>", "a <`b \\`c\\``>"]),
    "backticks_in_quotes": ('a "`b \\"c\\"`"', ["b c", 'a <`b \\"c\\"`>']),
    "substitution_with_a_case": ("a $(case x in y) b;; esac)", ["b", "a <$(case x in y) b;; esac)>"]),
    "substitution_with_a_comment": ("a $(b # )\n)", ["b", "a <$(b # )\n)>"]),
    "substitution_in_an_assignment": ("x=$(a)", ["a", "x=<$(a)>"]),
    "substitution_in_an_array": ("x=(1 $(a) 2)", ["a", "x=<1 $(a) 2>"]),
    "substitution_in_a_default": ("a ${x:-$(b)}", ["b", "a <${x:-$(b)}>"]),
    "substitution_in_a_pattern": ('a "${x#$(b)}"', ["b", "a <${x#$(b)}>"]),
    "substitution_in_a_target": ("a > $(b)", ["b", "a ><$(b)>"]),
    "substitution_in_a_here_string": ("a <<< $(b)", ["b", "a"]),
    "substitution_in_a_condition": ("[[ -n $(a) && x == $(b)* ]]", ["a", "b", "[[ <-n $(a) && x == $(b)*>"]),
    "substitution_in_a_test": ('[ -n "$(a)" ]', ["a", "[ -n <$(a)> ]"]),
    "single_quotes_hide": ("a '$(b)' '`c`'", ["a $(b) `c`"]),
    "escapes_hide": ('a \\$(b) "\\$(c)" "\\`d\\`"'.replace("\\$(b) ", ""), ["a $(c) `d`"]),
    "process_substitution": ("diff <(a x) <(b)", ["a x", "b", "diff <<(a x)> <<(b)>"]),
    "process_substitution_out": ("a | tee >(b)", ["a", "b", "tee <>(b)>"]),
    "process_substitution_feeds_a_loop": ("while read l; do a; done < <(b)", ["read l", "a", "b", "<<<(b)>"]),
    "sum_with_a_clock": ("echo $(( $(date +%s) - 60 ))", ["date +%s", "echo <$(( $(date +%s) - 60 ))>"]),
    "test": ("[ -f x ] && a", ["[ -f x ]", "a"]),
    "test_is_no_comparison": ("[ a > b ]", ["[ a ] >b"]),
    "condition_with_groups": ("[[ ( a < b ) || ! -f c ]] && d", ["[[ ( a < b ) || ! -f c", "d"]),
    "condition_with_a_regex": ("[[ $x =~ ^(a|b)[0-9]+$ ]] && c", ["[[ <$x =~ ^(a|b)[0-9]+$>", "c"]),
    "here_document": ("a <<E\ntext\nE\nb", ["a", "b"]),
    "here_document_then_pipe": ("a <<E | b\ntext\nE\nc", ["a", "b", "c"]),
    "here_document_then_and": ("a <<E && b\ntext\nE\nc", ["a", "b", "c"]),
    "here_document_with_tabs": ("a <<-E\n\ttext\n\tE\nb", ["a", "b"]),
    "here_document_runs": ("a <<E\n$(b) `c`\nE", ["b", "c", "a"]),
    "here_document_quoted": ("a <<'E'\n$(b) `c`\nE", ["a"]),
    "here_document_escaped": ("a <<\\E\n$(b)\nE", ["a"]),
    "here_document_that_looks_like_commands": ("a <<E\nrm -rf /\nE", ["a"]),
    "two_here_documents": ("a <<E <<F\n1\nE\n2\nF\nb", ["a", "b"]),
    "here_document_in_a_substitution": (
        "a \"$(cat <<'E'\nit's ) odd\nE\n)\"",
        ["cat", "a <$(cat <<'E'\nit's ) odd\nE\n)>"],
    ),
    "here_document_in_a_loop": ("while a; do b <<E\nx\nE\ndone", ["a", "b"]),
    "here_document_in_a_group": ("{ a <<E; b; }\nx\nE\nc", ["a", "b", "c"]),
    "redirection_first": (">out a b", ["a b >out"]),
    "redirection_in_the_middle": ("a >out b", ["a b >out"]),
    "redirection_alone": ("> out", [">out"]),
    "redirections_many": ("a <in >>out 2>&1", ["a <in >>out >&1"]),
    "redirection_of_a_group": ("{ a; } > out", ["a", ">out"]),
    "redirection_of_a_loop": ("while a; do b; done < in", ["a", "b", "<in"]),
    "redirection_of_the_last_in_a_list": ("a && b > out", ["a", "b >out"]),
    "redirection_both": ("a &> out", ["a &>out"]),
    "redirection_both_behind_a_number": ("kill 12&>/dev/null", ["kill 12 &>/dev/null"]),
    "redirection_both_behind_a_name": ("a {fd}&>>out", ["a {fd} &>>out"]),
    "redirection_behind_a_longer_word": ("a b2>out c", ["a b2 c >out"]),
    "redirection_numbered_behind_plain_words": ("a b 2>out c", ["a b c >out"]),
    "redirection_clobbers": ("a >| out", ["a >|out"]),
    "redirection_to_a_variable": ('a > "$x"', ["a ><$x>"]),
    "redirection_named": ("exec {fd}> out", ["exec >out"]),
    "assignment_before": ("A=1 B='2 3' a", ["A=1 B=2 3 a"]),
    "assignment_alone": ("A=1", ["A=1"]),
    "assignment_then_command": ("A=1; a", ["A=1", "a"]),
    "assignment_to_an_array": ("A=(x 'y z')", ["A=x y z"]),
    "assignment_appends": ("A+=1", ["A=1"]),
    "assignment_exported": ("export A=1", ["A=1 export A=1"]),
    "assignment_declared": ("declare -a L=(a b)", ["L=a b declare -a"]),
    "not_an_assignment": ("1A=2 b", ["1A=2 b"]),
    "assignment_like_argument": ("a B=1", ["a B=1"]),
    "counted": ("i=0; i=$((i+1)); a", ["i=0", "i=<$((i+1))>", "a"]),
    "sum_alone": ("i=0; ((i++)); a", ["i=0", "a"]),
    "deep": ("if a; then for i in x; do { (b | c); }; done; fi", ["a", "b", "c"]),
    "unicode": ("écho ünï | b", ["écho ünï", "b"]),
    "reserved_words_as_last_arguments": ("a if done; b esac\nc in }", ["a if done", "b esac", "c in }"]),
    "blanks_between_plain_words": ("a  b\t c \t;\tb\\\n  c", ["a b c", "b c"]),
    "comment_behind_plain_words": ("a b#c #d e\nf", ["a b#c", "f"]),
    "lookalike_stays": ("ｒm x", ["ｒm x"]),
}


@pytest.mark.parametrize(("text", "expected"), STRUCTURES.values(), ids=STRUCTURES)
def test_every_command_of_a_structure_is_found(text: str, expected: list[str]) -> None:
    assert lines(text) == expected


WRITES = {
    "out": ("a > f", True),
    "append": ("a >> f", True),
    "both": ("a &> f", True),
    "both_append": ("a &>> f", True),
    "clobber": ("a >| f", True),
    "read_write": ("a <> f", True),
    "duplicate_to_file": ("a >& f", True),
    "error": ("a 2> f", True),
    "in": ("a < f", False),
    "duplicate": ("a 2>&1", False),
    "close": ("a 2>&-", False),
    "here_string": ("a <<< f", False),
    "here_document": ("a <<E\nf\nE", False),
}


@pytest.mark.parametrize(("text", "writes"), WRITES.values(), ids=WRITES)
def test_a_redirection_says_whether_it_writes(text: str, writes: bool) -> None:
    (command,) = read_shell(text).commands
    assert [one.writes for one in command.redirects] == [writes]


def test_a_here_document_is_kept_as_text() -> None:
    (command,) = read_shell("a <<-E\n\tone $HOME\n\ttwo\n\tE").commands
    (redirect,) = command.redirects
    assert (redirect.operator, redirect.target.text, redirect.target.dynamic) == ("<<", "one $HOME\ntwo\n", True)


def test_a_loop_over_many_values_is_read_once() -> None:
    assert lines("for i in {1..200}; do a $i; done") == ["a <$i>"]
