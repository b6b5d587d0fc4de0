"""One tool call decided by the shipped rules: reports, dry runs, approvals, what is shut, and the sentences."""

import pytest
from permission_corpus import OFF_LIMITS, decide, decide_command, shipped_rules

from supervisor.decide.rules.permission import permission
from supervisor.model.permission import ToolCall, Verdict
from supervisor.model.rule import OffLimits
from supervisor.shell import read_shell


def test_a_report_is_always_allowed() -> None:
    for tier in (1, 2, 3):
        decision = decide("StructuredOutput", {"summary": "x"}, tier=tier, dry_run=True)
        assert (decision.verdict, decision.rule) == (Verdict.ALLOW, "report")


def test_a_dry_run_says_what_would_have_run() -> None:
    decision = decide_command("systemctl restart nginx", tier=2, dry_run=True)
    assert (decision.verdict, decision.rule) == (Verdict.DENY, "dry_run")
    assert "`systemctl restart nginx` would have run" in decision.sentence


def test_a_dry_run_asks_nobody() -> None:
    assert decide_command("reboot", tier=3).verdict is Verdict.DEFER
    assert decide_command("reboot", tier=3, dry_run=True).rule == "dry_run"


def test_a_dry_run_names_the_file_it_would_have_written() -> None:
    decision = decide("Write", {"file_path": "/srv/ops/a.yml", "content": "x"}, tier=3, dry_run=True)
    assert "`Write /srv/ops/a.yml` would have run" in decision.sentence


def test_only_what_wholly_reads_is_called_reading() -> None:
    assert decide_command("df -h | tail -1").read_only
    assert not decide_command("df -h; systemctl restart nginx", tier=2).read_only
    assert not decide_command("systemctl restart nginx", tier=2).read_only


@pytest.mark.parametrize("text", ["", "# nothing", "sh -c ''", "eval ''"])
def test_a_text_that_runs_nothing_is_allowed(text: str) -> None:
    assert decide_command(text).verdict is Verdict.ALLOW


def test_a_call_of_the_shell_without_a_reading_is_denied() -> None:
    call = ToolCall(tool_use_id="t", tool="Bash", input={"command": "ls"})
    assert permission(call, None, shipped_rules(1), OFF_LIMITS, dry_run=False).verdict is Verdict.DENY


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_nothing_is_left_running(tier: int) -> None:
    for given in ({"command": "df -h", "run_in_background": True}, {"command": "sleep 100 &"}):
        decision = decide("Bash", given, tier=tier)
        assert (decision.verdict, decision.rule) == (Verdict.DENY, "background")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("echo 'a & b'", id="in quotes"),
        pytest.param('curl -s "http://web/?a=1&b=2"', id="in an address"),
        pytest.param("ls >/dev/null 2>&1 && pwd", id="as part of other operators"),
        pytest.param("ls # this & that", id="in a comment"),
    ],
)
def test_an_ampersand_that_starts_nothing_is_no_background(text: str) -> None:
    assert decide_command(text).verdict is Verdict.ALLOW


def test_a_function_of_the_text_itself_is_judged_by_what_it_runs() -> None:
    assert decide_command("look() { df -h; }; look").verdict is Verdict.ALLOW
    assert decide_command("look() { rm x; }; look").verdict is Verdict.DENY


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("deploy() { ls; } | true; deploy prod", id="defined in another process"),
        pytest.param("deploy() { ls; }; sudo deploy", id="called by another process"),
        pytest.param("deploy() { ls; }; command deploy", id="passed over"),
        pytest.param("deploy() { ls; }; unset -f deploy; deploy", id="taken back"),
        pytest.param("echo 'deploy() { ls; };'; deploy", id="only printed"),
        pytest.param('deploy() { echo ";}; x; "; } | cat; deploy', id="ended in quotes"),
    ],
)
def test_a_program_does_not_pass_for_a_function(text: str) -> None:
    assert decide_command(text).verdict is Verdict.DENY


@pytest.mark.parametrize("tier", [1, 2, 3])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("cat /var/lib/opsladder/opsladder.db", id="by name"),
        pytest.param("cat /var/lib/opsl*/x", id="by a pattern"),
        pytest.param("cat /var/run/opsladder/guard.sock", id="by another name of its directory"),
        pytest.param("cd /var/lib && cat opsladder/x", id="from next to it"),
        pytest.param("env -C /var/lib cat opsladder/x", id="from next to it, by a wrapper"),
        pytest.param("cat /proc/1/root/var/lib/opsladder/x", id="through a process"),
        pytest.param("mv /var/lib /x", id="with the directory above it"),
        pytest.param("chown -R ops /var", id="with everything below"),
        pytest.param("python3 -c 'open(\"/var/lib/opsladder/x\")'", id="in code that is not read"),
        pytest.param("kill -9 4242", id="its process"),
        pytest.param("kill -9 -- -1", id="every process"),
        pytest.param("pkill -f .", id="every process by name"),
        pytest.param("ls /proc/4242/fd", id="into its process"),
        pytest.param("opsladder unpause", id="its command"),
        pytest.param("sudo -u ops claude -p hi", id="its CLI"),
        pytest.param("systemctl stop opsladder", id="its unit"),
        pytest.param("OPSLADDER_STATE__DIR=/tmp df", id="its variables"),
        pytest.param("echo $ANTHROPIC_API_KEY", id="its credentials"),
    ],
)
def test_the_supervisor_is_off_limits_on_every_tier(text: str, tier: int) -> None:
    assert decide_command(text, tier=tier).verdict is Verdict.DENY


SEARCHES = (
    "grep -r token /var/lib",
    "rg token /",
    "cd /var && grep -R token .",
    "find /var/lib -name '*.db' -exec cat {} +",
)


@pytest.mark.parametrize("tier", [1, 3])
@pytest.mark.parametrize("text", SEARCHES)
def test_looking_into_everything_above_the_supervisors_records_is_refused(text: str, tier: int) -> None:
    limits = OffLimits(paths=("/var/lib/opsladder",), pids=frozenset(), work_dir="/srv/ops", home="/home/ops")
    call = ToolCall(tool_use_id="t", tool="Bash", input={"command": text}, cwd="/srv/ops")

    assert permission(call, read_shell(text), shipped_rules(tier), limits, dry_run=False).rule == "off_limits"


def test_a_configuration_inside_the_work_directory_can_neither_be_read_nor_written() -> None:
    limits = OffLimits(paths=("/srv/ops/opsladder.toml",), pids=frozenset(), work_dir="/srv/ops", home="/home/ops")

    def verdict(tool: str, **given: object) -> Verdict:
        call = ToolCall(tool_use_id="t", tool=tool, input=given, cwd="/srv/ops")
        return permission(call, None, shipped_rules(3), limits, dry_run=False).verdict

    assert verdict("Edit", file_path="opsladder.toml") is Verdict.DENY
    assert verdict("Read", file_path="/srv/ops/./opsladder.toml") is Verdict.DENY
    assert verdict("Grep", pattern="x", path="/srv/ops", glob="ops*.toml") is Verdict.DENY
    assert verdict("Edit", file_path="other.toml") is Verdict.ALLOW
    assert verdict("Grep", pattern="x") is Verdict.ALLOW


@pytest.mark.parametrize("tier", [2, 3])
@pytest.mark.parametrize(
    "text",
    [
        "echo x >> /etc/passwd",
        "tee /etc/sudoers.d/x",
        "sed -i s/a/b/ /etc/fstab",
        "mv /etc/ssh/sshd_config /tmp/x",
        "ln -sf x ~/.bashrc",
        'python3 -c \'open("/etc/sudoers", "w")\'',
        "echo x > /dev/sda",
    ],
)
def test_protected_files_are_changed_on_no_tier(text: str, tier: int) -> None:
    assert decide_command(text, tier=tier).verdict is Verdict.DENY


def test_protected_files_may_be_read() -> None:
    assert decide_command("cat /etc/passwd /etc/fstab").verdict is Verdict.ALLOW


def test_a_decoded_name_is_not_read() -> None:
    assert decide_command("f=$(echo L2V0Yw== | base64 -d); cat $f").verdict is Verdict.DENY
    assert decide_command("f=$(ls -t /var/log | head -1); cat $f").verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(
            "docker restart web", ("docker restart web", "`docker ps|logs"), id="what else this program may do"
        ),
        pytest.param(
            "frobnicate x", ("frobnicate x", "No rule of this tier allows frobnicate"), id="an unknown program"
        ),
        pytest.param("ls > out", ("writes to out",), id="where it writes"),
        pytest.param("PATH=/x ls", ("PATH can change",), id="the variable that steers"),
        pytest.param('git log "$x"', ("$x", "write values out"), id="the value that is not known"),
        pytest.param("docker system prune", ("never: docker|podman|nerdctl system prune",), id="the rule"),
        pytest.param("./fix.sh", ("cannot be seen through",), id="that it cannot be seen through"),
    ],
)
def test_a_denial_says_what_and_why(text: str, named: tuple[str, ...]) -> None:
    sentence = decide_command(text).sentence
    for part in named:
        assert part in sentence


def test_a_sentence_stays_one_short_line_whatever_the_command() -> None:
    sentence = decide_command("rm '" + "x\n`" * 5000 + "'").sentence
    assert len(sentence) < 1000
    assert "\n" not in sentence
