"""Programs of an operator's own, allowed by their whole path."""

from pathlib import Path

import pytest

from supervisor.decide.rules.permission import permission
from supervisor.model.permission import Decision, ToolCall, Verdict
from supervisor.model.rule import OffLimits
from supervisor.settings import load_settings
from supervisor.shell import read_shell

CONFIG = """
[[tiers]]
name = "one"
model = "haiku"
prompt = "tier1.md"
allow = ["/opt/shop/bin/shopctl status|check", "/tmp/tools/glance ..."]
"""
OFF_LIMITS = OffLimits(paths=(), pids=frozenset(), work_dir="/srv/work", home="/root")


@pytest.fixture
def decide(tmp_path: Path):
    (tmp_path / "opsladder.toml").write_text(CONFIG)
    rules = load_settings(tmp_path / "opsladder.toml", {"HOME": "/root"}, cwd=tmp_path).rules_for(1)

    def ask(text: str) -> Decision:
        call = ToolCall(tool_use_id="t", tool="Bash", input={"command": text})
        return permission(call, read_shell(text), rules, OFF_LIMITS, dry_run=False)

    return ask


ALLOWED = ("/opt/shop/bin/shopctl status", "sudo /opt/shop/bin/shopctl check", "/tmp/tools/glance at this | head")
DENIED = (
    "/opt/shop/bin/shopctl restart",
    "/opt/shop/bin/shopctl status extra",
    "shopctl status",
    "/opt/other/bin/shopctl status",
    "./shopctl status",
    "sh /opt/shop/bin/shopctl status",
    "sh /tmp/tools/glance",
    "/tmp/tools/glance; /tmp/tools/other",
    "/tmp/tools/../tools/look",
    "glance at this",
    "/tmp/tools/glance > /etc/passwd",
    "LD_PRELOAD=/tmp/x.so /tmp/tools/glance",
)


@pytest.mark.parametrize("text", ALLOWED)
def test_a_program_that_a_rule_names_by_its_path_may_run(decide, text):
    assert decide(text).verdict is Verdict.ALLOW


@pytest.mark.parametrize("text", DENIED)
def test_nothing_else_passes_for_it(decide, text):
    assert decide(text).verdict is Verdict.DENY


def test_what_a_tier_allows_by_itself_does_not_count_as_reading(decide):
    assert not decide("/opt/shop/bin/shopctl status").read_only
