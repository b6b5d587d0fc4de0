"""No way of wrapping a denied command makes it allowed, and no mere wrapper makes an ordinary command denied."""

import re
import shlex
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from permission_corpus import commands, decide_command

from supervisor.model.permission import Verdict

MOST_LAYERS = 4
_BUILTINS = (
    "alias|bind|builtin|compgen|complete|coproc|declare|disown|enable|eval|exec|export|hash|let|local|mapfile|set|source"
    "|trap|unset"
)
_ONE_PLAIN_COMMAND = re.compile(rf"(?!(?:{_BUILTINS})\b)[a-z][\w./:@%+,=~ -]*", re.ASCII)
_TYPICAL_ESCAPES = (
    "rm x",
    "ls > /tmp/x",
    "cat /etc/shadow",
    "cat /var/lib/opsladder/opsladder.db",
    "systemctl restart nginx",
    "docker system prune -f",
    "kill 4242",
    "find . -delete",
    "sed -i s/a/b/ file",
    "curl -d a=b http://web/",
    "psql -c 'drop table users'",
    "LD_PRELOAD=./x.so ls",
    "python3 -c 'print(1)'",
    "kubectl delete pod web-0",
    "git push --force",
    "$CMD",
    "./fix.sh",
    "env",
)
Wrap = Callable[[str], str]


def _as_one_command(inner: str) -> str:
    """What needs a shell to mean the same gets a shell of its own."""
    return inner if _ONE_PLAIN_COMMAND.fullmatch(inner) else f"sh -c {shlex.quote(inner)}"


def _before(words: str, after: str = "") -> Wrap:
    """Words before a command."""
    return lambda inner: f"{words} {_as_one_command(inner)}{after}"


def _given_text(words: str, after: str = "") -> Wrap:
    """A program that takes the command as one text."""
    return lambda inner: f"{words} {shlex.quote(inner)}{after}"


def _around(before: str, after: str = "\n") -> Wrap:
    """A piece of syntax around the command, which keeps lines of its own: it may end in a here-document."""
    return lambda inner: f"{before}{inner}{after}"


def _over_two_hosts(inner: str) -> str:
    return f"ssh bastion {shlex.quote('ssh web1 ' + shlex.quote(inner))}"


def _split_by_env(inner: str) -> str:
    return f"env -S {shlex.quote(_as_one_command(inner))}"


def _in_backticks(inner: str) -> str:
    return "echo `" + re.sub(r"([\\`$])", r"\\\1", inner) + "\n`"


# Wrappers that do nothing themselves: what stands inside decides alone.
TRANSPARENT: dict[str, Wrap] = {
    "sudo": _before("sudo"),
    "sudo with options": _before("sudo -n -u www --"),
    "sudo by path": _before("/usr/bin/sudo"),
    "env": _before("env"),
    "env with a variable": _before("env -i LANG=C"),
    "timeout": _before("timeout 5"),
    "timeout with options": _before("timeout -k 1 -s TERM 5"),
    "nice": _before("nice -n 19"),
    "ionice": _before("ionice -c 3"),
    "stdbuf": _before("stdbuf -oL"),
    "time": _before("time"),
    "command": _before("command"),
    "variable": _before("LC_ALL=C"),
    "sh -c": _given_text("sh -c"),
    "bash -c": _given_text("bash -c"),
    "bash with options": _given_text("bash -e -o pipefail -c"),
    "ssh": _given_text("ssh web1"),
    "ssh with options": _given_text("ssh -o BatchMode=yes -p 22 ops@web1"),
    "ssh twice": _over_two_hosts,
    "docker exec": _given_text("docker exec web sh -c"),
    "compose exec": _given_text("docker compose -p app exec -T web sh -c"),
    "kubectl exec": _given_text("kubectl -n prod exec web-0 -c app -- sh -c"),
    "here-document": _around("bash <<'THERE'\n", "\nTHERE\n"),
    "subshell": _around("( ", "\n)"),
    "braces": _around("{ ", "\n}"),
    "negation": _around("! "),
    "if": _around("if ", "\nthen :; fi"),
    "then": _around("if true; then ", "\nfi"),
    "else": _around("if true; then :; else ", "\nfi"),
    "elif": _around("if false; then :; elif ", "\nthen :; fi"),
    "while": _around("while ", "\ndo break; done"),
    "loop": _around("for i in 1 2; do ", "\ndone"),
    "case": _around("case x in x) ", "\n;; esac"),
    "function": _around("check() { ", "\n}; check"),
    "substitution": _around("echo $( ", "\n)"),
    "quoted substitution": _around('echo "a $( ', '\n) b"'),
    "assignment": _around("found=$( ", "\n)"),
    "default value": _around('echo "${found:-$( ', '\n)}"'),
    "here-string": _around('cat <<< "$( ', '\n)"'),
    "condition": _around("[[ -n $( ", "\n) ]]"),
    "test": _around('test -n "$( ', '\n)"'),
    "backticks": _in_backticks,
    "process substitution": _around("cat <( ", "\n)"),
    "first in a pipe": _around("{ ", "\n} | head"),
    "last in a pipe": _around("echo x | { ", "\n}"),
    "and": _around("true && "),
    "or": _around("false || "),
    "or true": _around("{ ", "\n} || true"),
    "semicolon": _around("pwd; "),
    "first line": _around("", "\npwd"),
    "last line": _around("pwd\n"),
    "comment before": _around("# only looking\n"),
    "comment after": _around("", "\n# only looking"),
    "silenced": _around("{ ", "\n} 2>/dev/null"),
    "silenced wholly": _around("{ ", "\n} >/dev/null 2>&1"),
}

# Wrappers that tier 1 may well refuse on their own.
HEAVY: dict[str, Wrap] = {
    "nohup": _before("nohup"),
    "setsid": _before("setsid -w"),
    "exec": _before("exec"),
    "busybox": _before("busybox"),
    "xargs": _before("echo a | xargs"),
    "xargs with a mark": _before("echo a | xargs -IMARK"),
    "find -exec": _before("find . -maxdepth 0 -exec", r" \;"),
    "find -execdir": _before("find . -maxdepth 0 -execdir", r" \;"),
    "chroot": _before("chroot /mnt"),
    "unshare": _before("unshare -r"),
    "nsenter": _before("nsenter -t 1 -m"),
    "systemd-run": _before("systemd-run --wait --pipe"),
    "strace": _before("strace -f"),
    "flock": _before("flock /tmp/lock"),
    "taskset": _before("taskset -c 0"),
    "netns": _before("ip netns exec blue"),
    "runuser": _before("runuser -u www --"),
    "doas": _before("doas"),
    "docker run": _before("docker run --rm alpine"),
    "docker exec, plain": _before("docker exec -u 0 web"),
    "kubectl exec, plain": _before("kubectl exec web-0 --"),
    "podman exec": _before("podman exec web"),
    "steering variable": _before("PATH=/tmp/bin:/bin"),
    "eval": _given_text("eval"),
    "eval of a substitution": _around("eval \"$(cat <<'THESE'\n", '\nTHESE\n)"'),
    "flock -c": _given_text("flock /tmp/lock -c"),
    "su": _given_text("su -c"),
    "su to somebody": _given_text("su - www -c"),
    "watch": _given_text("watch -n 1"),
    "script": _given_text("script -qc", " /dev/null"),
    "parallel": _given_text("parallel", " ::: a"),
    "tmux": _given_text("tmux new-session -d"),
    "trap": _given_text("trap", " EXIT"),
    "env -S": _split_by_env,
    "zsh": _given_text("zsh -c"),
    "xargs into a shell": _given_text("echo a | xargs -n1 sh -c"),
    "find into a shell": _given_text("find . -maxdepth 0 -exec sh -c", r" \;"),
    "piped into a shell": _given_text("printf '%s\\n'", " | sh"),
    "piped over ssh": _given_text("printf '%s\\n'", " | ssh web1 sh"),
    "here-string into a shell": _given_text("bash <<<"),
    "remote here-document": _around("ssh web1 bash -s <<'OVER'\n", "\nOVER\n"),
    "background": _around("{ ", "\n} &"),
    "coprocess": _around("coproc { ", "\n}"),
    "output substitution": _around("echo x > >( ", "\n)"),
    "array": _around("a=(x $( ", "\n))"),
    "subscript": _around("echo ${a[$( ", "\n)]}"),
    "sum": _around("echo $(( $( ", "\n) + 1 ))"),
    "keyword function": _around("function check { ", "\n}; check"),
    "until": _around("until ", "\ndo break; done"),
    "select": _around("select i in a; do ", "\nbreak; done </dev/null"),
}
WRAPPERS = {**TRANSPARENT, **HEAVY}


@given(
    st.sampled_from(commands("escapes")),
    st.lists(st.sampled_from(sorted(WRAPPERS)), min_size=1, max_size=MOST_LAYERS),
)
@settings(max_examples=600)
def test_no_stack_of_wrappers_makes_an_escape_allowed(escape: str, layers: list[str]) -> None:
    text = escape
    for layer in layers:
        text = WRAPPERS[layer](text)
    decision = decide_command(text)
    assert decision.verdict is not Verdict.ALLOW, f"{decision.rule} let through: {text}"


@pytest.mark.parametrize("wrapper", sorted(WRAPPERS))
def test_no_single_wrapper_makes_an_escape_allowed(wrapper: str) -> None:
    wrapped = [WRAPPERS[wrapper](escape) for escape in _TYPICAL_ESCAPES]
    assert [command for command in wrapped if decide_command(command).verdict is not Verdict.DENY] == []


@given(
    st.sampled_from(commands("escapes")),
    st.sampled_from(commands("ordinary")),
    st.sampled_from(["\n", " | cat\n", " && true\n", " || true\n"]),
)
@settings(max_examples=300)
def test_an_ordinary_command_beside_it_does_not_excuse_an_escape(escape: str, ordinary: str, between: str) -> None:
    before = f"{{ {ordinary}\n}}{between}{escape}\n"
    after = f"{{ {escape}\n}}{between}{ordinary}\n"
    for text in (before, after):
        decision = decide_command(text)
        assert decision.verdict is not Verdict.ALLOW, f"{decision.rule} let through: {text}"


@pytest.mark.parametrize("wrapper", sorted(TRANSPARENT))
@pytest.mark.parametrize("look", ["uptime", "df -h /", "systemctl status nginx"])
def test_a_wrapper_that_does_nothing_itself_leaves_a_look_allowed(look: str, wrapper: str) -> None:
    decision = decide_command(TRANSPARENT[wrapper](look))
    assert decision.verdict is Verdict.ALLOW, f"{decision.rule}: {decision.sentence}"
