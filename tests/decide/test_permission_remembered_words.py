"""What the guard remembers of words from one call to the next never answers for another place, tier or supervisor."""

from dataclasses import replace

import pytest
from permission_corpus import OFF_LIMITS, shipped_rules

from supervisor.decide.rules.permission import permission
from supervisor.model.permission import ToolCall, Verdict
from supervisor.model.rule import OffLimits
from supervisor.shell import read_shell


def verdict(text: str, *, cwd: str = "/srv/ops", limits: OffLimits = OFF_LIMITS) -> Verdict:
    call = ToolCall(tool_use_id="t", tool="Bash", input={"command": text}, cwd=cwd)
    return permission(call, read_shell(text), shipped_rules(1), limits, dry_run=False).verdict


@pytest.mark.parametrize("first", ["/etc", "/srv/ops"])
def test_a_relative_name_is_judged_from_where_each_call_stands(first: str) -> None:
    expected = {"/etc": Verdict.DENY, "/srv/ops": Verdict.ALLOW}
    for cwd in (first, *(other for other in expected if other != first)):
        assert verdict("cat opsladder/opsladder.toml", cwd=cwd) is expected[cwd]


def test_a_text_that_goes_elsewhere_is_judged_from_there() -> None:
    assert verdict("cat opsladder/state") is Verdict.ALLOW
    assert verdict("cd /var/lib && cat opsladder/state") is Verdict.DENY
    assert verdict("cat opsladder/state") is Verdict.ALLOW


def test_what_belongs_to_one_supervisor_is_open_under_another() -> None:
    other = replace(OFF_LIMITS, paths=("/opt/ladder",))
    assert verdict("cat /opt/ladder/state.db") is Verdict.ALLOW
    assert verdict("cat /opt/ladder/state.db", limits=other) is Verdict.DENY
    assert verdict("cat /opt/ladder/state.db") is Verdict.ALLOW


def test_a_secret_is_still_one_after_thousands_of_other_words() -> None:
    assert verdict("cat /etc/shadow") is Verdict.DENY
    for number in range(5):
        words = " ".join(f"w{number}-{index}" for index in range(1000))
        assert verdict(f"echo {words}") is Verdict.ALLOW
    assert verdict("cat /etc/shadow") is Verdict.DENY
    assert verdict(f"cat {'/'.join(['a' * 50] * 5)}/.ssh/id_rsa") is Verdict.DENY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("for PATH in /tmp; do df -h; done", Verdict.DENY, id="a loop over a steering name"),
        pytest.param("for part in a b; do df -h; done", Verdict.ALLOW, id="a loop over another"),
        pytest.param("echo 'wait for select PATH'", Verdict.ALLOW, id="a name behind two words that both set one"),
        pytest.param("echo 'therefor PATH'", Verdict.ALLOW, id="a longer word that ends like a loop"),
        pytest.param("echo ${PATH:=/tmp}", Verdict.DENY, id="an expansion that sets"),
    ],
)
def test_a_steering_name_counts_where_the_text_sets_it(text: str, expected: Verdict) -> None:
    assert verdict(text) is expected
