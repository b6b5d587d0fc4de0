"""The rule language: what a pattern allows, what it denies, and what is no pattern."""

import pytest

from supervisor.decide.rules.checks import CHECKS
from supervisor.decide.rules.permission import permission
from supervisor.decide.rules.rule_pattern import CHECK_NAMES, PatternMistake, parse_pattern
from supervisor.model.permission import ToolCall, Verdict
from supervisor.model.rule import Effect, OffLimits, Rule, TierRules
from supervisor.shell import read_shell

LIMITS = OffLimits(paths=("/var/lib/opsladder",), pids=frozenset({4242}), work_dir="/srv/ops", home="/home/ops")
OPTIONS = {"tool": {"-n": True, "--name": True, "-v": False, "-C": True}}


def rule(effect: Effect, text: str) -> Rule:
    return Rule(effect=effect, text=text, set="test", pattern=parse_pattern(text, effect))


def verdict(command: str, *rules: Rule, default: Effect = Effect.DENY) -> Verdict:
    tier = TierRules(rules=rules, default=default, opaque=Effect.DENY, options=OPTIONS)
    call = ToolCall(tool_use_id="t", tool="Bash", input={"command": command}, cwd="/srv/ops")
    return permission(call, read_shell(command), tier, LIMITS, dry_run=False).verdict


@pytest.mark.parametrize(
    ("pattern", "command", "allowed"),
    [
        pytest.param("tool get ...", "tool get", True, id="any further words may be none"),
        pytest.param("tool get ...", "tool get a b -x", True, id="any further words and options"),
        pytest.param("tool get ...", "tool put a", False, id="another word"),
        pytest.param("tool get ...", "tool -n x get a", True, id="an option that is known to take a value"),
        pytest.param("tool get ...", "tool -nx get a", True, id="its value attached"),
        pytest.param("tool get ...", "tool -vn x get a", True, id="its value after a bundle"),
        pytest.param("tool get ...", "tool --name=x get a", True, id="its value after an equals sign"),
        pytest.param("tool get ...", "tool -n get put a", False, id="the word is the value of an option"),
        pytest.param("tool get ...", "tool --unknown get a", False, id="the word may be a value"),
        pytest.param("tool get ...", "tool $x", False, id="a word only known at run time"),
        pytest.param("tool get ...", "tool get $x", True, id="a harmless value only known at run time"),
        pytest.param("tool get|list *", "tool list a", True, id="alternatives"),
        pytest.param("tool get *", "tool get a b", False, id="one word too many"),
        pytest.param("tool get *", "tool get", False, id="one word too few"),
        pytest.param("tool get *", 'tool get "a$x"', True, id="one word with a value"),
        pytest.param("tool get *", "tool get a$x", False, id="a value that may become several words"),
        pytest.param("tool get *", "tool get a*", False, id="a pattern that may become several words"),
        pytest.param("tool get *+", "tool get a b c", True, id="one word or more"),
        pytest.param("tool get *+", "tool get", False, id="one word at least"),
        pytest.param("tool list-*", "tool list-units", True, id="any characters in a word"),
        pytest.param("tool list-*", "tool relist-units", False, id="not before it"),
        pytest.param("tool !-x|--exec ...", "tool a", True, id="without a forbidden option"),
        pytest.param("tool !-x|--exec ...", "tool a -x", False, id="a forbidden option"),
        pytest.param("tool !-x|--exec ...", "tool a -vx", False, id="a forbidden option in a bundle"),
        pytest.param("tool !-x|--exec ...", "tool a --ex", False, id="a forbidden option abbreviated"),
        pytest.param("tool !-x|--exec ...", "tool a --exec=b", False, id="a forbidden option with a value"),
        pytest.param("tool !-x|--exec ...", 'tool "$x"', False, id="a word that may be a forbidden option"),
        pytest.param("tool !-x|--exec ...", 'tool -- "$x"', True, id="a word that cannot be an option"),
        pytest.param("tool !-x|--exec ...", 'tool -v"$x"', False, id="an option that may be a forbidden one"),
        pytest.param("tool !-x|--exec ...", "tool -n-x", True, id="a value that looks like a forbidden option"),
        pytest.param("tool !-x get ...", "tool get -x", True, id="forbidden only before a word, after it"),
        pytest.param("tool !-x get ...", "tool -x get", False, id="forbidden only before a word, before it"),
        pytest.param("tool -b ...", "tool -b a", True, id="with a required option"),
        pytest.param("tool -b ...", "tool a", False, id="without a required option"),
        pytest.param("tool -b ...", "tool --b a", False, id="another option than the required one"),
        pytest.param("tool -m=a|b*", "tool -m a", True, id="a required value apart"),
        pytest.param("tool -m=a|b*", "tool -mbc", True, id="a required value attached"),
        pytest.param("tool -m=a|b*", "tool -m c", False, id="another value"),
        pytest.param("tool -m=a|b*", "tool -m a -m c", False, id="another value beside the required one"),
        pytest.param("tool -m=a", 'tool -m "$x"', False, id="a value only known at run time"),
        pytest.param("tool [-c= -q] *", "tool -qc 3 a", True, id="listed options"),
        pytest.param("tool [-c= -q] *", "tool -z a", False, id="an option that is not listed"),
        pytest.param("tool [-c= -q] *", "tool --q a", False, id="an abbreviation is not listed"),
        pytest.param("tool [-c= -q] *", 'tool -c "$n" a', True, id="an unknown value of a listed option"),
        pytest.param("tool [-c= -q] *", "tool -c $n a", False, id="an unknown value that may become options"),
        pytest.param("tool [] *", "tool a", True, id="no option"),
        pytest.param("tool [] *", "tool -v a", False, id="no option at all"),
        pytest.param("tool", "/usr/bin/tool", True, id="by its path"),
        pytest.param("tool", "/opt/x/tool", False, id="another program of this name"),
        pytest.param("tool", "PATH=/tmp tool", False, id="with a variable that steers"),
        pytest.param("tool", "SOME_PLUGIN=./x tool", False, id="with a variable nobody knows"),
        pytest.param("tool", "LC_ALL=C TZ=UTC tool", True, id="with variables that are harmless"),
        pytest.param("tool", "LC_ALL=/tmp/x tool", False, id="with a harmless variable that names a path"),
        pytest.param("tool", "sudo timeout 5 sh -c 'ssh web tool'", True, id="however it is wrapped"),
        pytest.param("tool", "tool > out", False, id="a redirection is judged on its own"),
        pytest.param("tool", "tool > /dev/null 2>&1", True, id="a redirection to nowhere"),
        pytest.param("tool", "tool 2> /dev/nul?", False, id="a redirection to who knows where"),
        pytest.param("tool <work>/**|/tmp/**+", "tool a /tmp/b ./c/d", True, id="paths in their places"),
        pytest.param("tool <work>/**|/tmp/**+", "tool ../x", False, id="a path that leaves its place"),
        pytest.param("tool <work>/**|/tmp/**+", "tool /tmp/../etc/x", False, id="a path that leaves by the back door"),
        pytest.param("tool <work>/**|/tmp/**+", "tool /tmp/*.log", True, id="a pattern in its place"),
        pytest.param("tool <work>/**|/tmp/**+", "tool /tmp/.*/x", False, id="a pattern that may go up"),
        pytest.param("tool <work>/**|/tmp/**+", 'tool "/tmp/$x"', False, id="a path that is not certain"),
        pytest.param("tool <work>/**|/tmp/**+", "cd /etc; tool x", False, id="a relative path after a change of place"),
        pytest.param("tool <work>/**|/tmp/**+", "tool /proc/self/cwd/x", False, id="another way to a place"),
        pytest.param("tool /var/log/*", "tool /var/log/a/b", False, id="* stays in its directory"),
    ],
)
def test_what_a_pattern_allows(pattern: str, command: str, allowed: bool) -> None:
    beside = [rule(Effect.ALLOW, "cd ...")]
    assert (verdict(command, rule(Effect.ALLOW, pattern), *beside) is Verdict.ALLOW) == allowed


@pytest.mark.parametrize(
    ("pattern", "command", "denied"),
    [
        pytest.param("tool system prune", "tool system prune", True, id="as it is written"),
        pytest.param("tool system prune", "tool --unknown x system -f prune now", True, id="among other words"),
        pytest.param("tool system prune", "tool prune system", False, id="in another order"),
        pytest.param("tool system prune", "/opt/x/tool system prune", True, id="from anywhere"),
        pytest.param("tool system prune", "PATH=/tmp tool system prune", True, id="with any variable"),
        pytest.param("tool push --force|-f", "tool push a --forc", True, id="a long option abbreviated"),
        pytest.param("tool push --force|-f", "tool -uf push", True, id="a short option in a bundle"),
        pytest.param("tool push --force|-f", "tool push", False, id="without the option"),
        pytest.param("tool get -o=yaml|json*", "tool get -ojson", True, id="a value attached"),
        pytest.param("tool get -o=yaml|json*", "tool get -o jsonpath=x", True, id="a value apart"),
        pytest.param("tool get -o=yaml|json*", "tool get -o wide", False, id="another value"),
        pytest.param("tool stop *mine*", "tool stop 'mi*'", True, id="a pattern that means the word"),
        pytest.param("tool stop *mine*", "tool stop 'web*'", False, id="a pattern that means another word"),
        pytest.param("tool drop PVC", "tool drop Pvc", True, id="however it is capitalised"),
        pytest.param("tool up /tmp/**", "tool up -f/tmp/x", True, id="a path in an option"),
        pytest.param("tool +*", "tool +main", True, id="a word by its beginning"),
        pytest.param("tool /|/*", "tool //etc/..", True, id="a path by another name"),
        pytest.param("tool /|/*", "tool /*", True, id="a pattern that could be the path"),
        pytest.param("tool /|/*", "tool /etc/x", False, id="a path below"),
        pytest.param("tool /|/*", "cd / && tool .", True, id="a path from where the text goes"),
        pytest.param("tool ~", "tool $HOME", True, id="home as a variable"),
        pytest.param("too*", "tool a", True, id="a program by its beginning"),
        pytest.param("path(/etc/secret)", "tool --file=/etc/secret", True, id="a path in an option"),
        pytest.param("path(/etc/secret)", "tool -f/etc/secret", True, id="a path attached to an option"),
        pytest.param("path(/etc/secret)", "tool < /etc/secret", True, id="a path that is read in"),
        pytest.param("path(/etc/secret)", "X=/etc/secret tool", True, id="a path in a variable"),
        pytest.param("path(/etc/secret)", "tool /etc/s*", True, id="a path in a pattern"),
        pytest.param("path(/etc/secret)", "tool /etc/$x", True, id="a path that may turn out so"),
        pytest.param("path(/etc/secret)", "tool /etc/[st]ecret", True, id="a path in a choice of letters"),
        pytest.param("path(/etc/secret)", "tool /proc/self/root/etc/secret", True, id="a path through a process"),
        pytest.param("path(/etc/secret)", "tool /etc/secrets", False, id="another path"),
        pytest.param("path(/etc/secret)", "tool /var/s*", False, id="a pattern elsewhere"),
        pytest.param("path(**/.env)", "tool app/.env", True, id="a name wherever it is"),
        pytest.param("path(**/.env)", "tool .e*", True, id="a pattern that means a name"),
        pytest.param("path(**/.env)", "tool *", False, id="a pattern that means everything"),
        pytest.param("path(**/.env)", 'tool "$x/.env"', True, id="a name in an unknown place"),
        pytest.param("path(**/.ssh/**)", "tool x/.ssh/id", True, id="below a name wherever it is"),
        pytest.param("path(**/.ssh/**)", "tool x/.s?h/id", True, id="below a pattern that means a name"),
    ],
)
def test_what_a_pattern_denies(pattern: str, command: str, denied: bool) -> None:
    rules = (rule(Effect.ALLOW, "tool ..."), rule(Effect.ALLOW, "cd ..."), rule(Effect.DENY, pattern))
    assert (verdict(command, *rules, default=Effect.APPROVE) is Verdict.DENY) == denied


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=["allow first", "deny first", "mixed"])
def test_deny_beats_approve_and_approve_beats_allow_in_any_order(order: tuple[int, ...]) -> None:
    three = (rule(Effect.ALLOW, "tool ..."), rule(Effect.APPROVE, "tool stop"), rule(Effect.DENY, "tool stop all"))
    rules = [three[index] for index in order]
    asked = [verdict(command, *rules) for command in ("tool show", "tool stop", "tool stop all")]
    assert asked == [Verdict.ALLOW, Verdict.DEFER, Verdict.DENY]


def test_the_strictest_answer_over_all_commands_counts() -> None:
    rules = (rule(Effect.ALLOW, "tool ..."), rule(Effect.APPROVE, "ask"))
    assert verdict("tool; ask", *rules) is Verdict.DEFER
    assert verdict("tool; ask; unknown", *rules) is Verdict.DENY


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        pytest.param("", Effect.ALLOW, id="nothing"),
        pytest.param("-x tool", Effect.ALLOW, id="no program"),
        pytest.param("* --version", Effect.ALLOW, id="any program"),
        pytest.param("tool [-a", Effect.ALLOW, id="a list that is not closed"),
        pytest.param("tool [a]", Effect.ALLOW, id="a list of something else than options"),
        pytest.param("tool [-a] x", Effect.DENY, id="a list of options where it means nothing"),
        pytest.param("tool ... x", Effect.ALLOW, id="a word after any words"),
        pytest.param("tool a||b", Effect.ALLOW, id="an empty alternative"),
        pytest.param("tool ?no-such-check", Effect.ALLOW, id="an unknown check"),
        pytest.param("Read(var/log)", Effect.ALLOW, id="a path that starts nowhere"),
        pytest.param("path(/etc/x)", Effect.ALLOW, id="a path allowed to everything"),
        pytest.param("tool !x", Effect.ALLOW, id="a forbidden word"),
    ],
)
def test_what_is_no_pattern_is_refused(text: str, effect: Effect) -> None:
    with pytest.raises(PatternMistake):
        parse_pattern(text, effect)


def test_every_check_that_can_be_named_exists() -> None:
    assert set(CHECKS) == CHECK_NAMES
