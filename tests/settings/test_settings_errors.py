"""What is said about a configuration that is wrong: all of it, each with its place, and no secret."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.settings import ConfigProblems, Settings, load_settings

Load = Callable[..., Settings]
Refuse = Callable[..., list[str]]

TIER = '[[tiers]]\nname = "one"\nmodel = "haiku"\nprompt = "tier1.md"\n'


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        pytest.param("[claude]\nbni = 1", 'FILE:2: claude.bni: unknown key. Did you mean "bin"?', id="misspelt key"),
        pytest.param("\n[cluade]\n", 'FILE:2: cluade: unknown section or key. Did you mean "claude"?', id="section"),
        pytest.param("zzzz = 1", "FILE:1: zzzz: unknown section or key.", id="nothing like it"),
        pytest.param("[guard]\nrules = 1", "FILE:2: guard.rules: unknown key.", id="a section without keys"),
        pytest.param(
            "[escalation]\nmax_resumes = 1",
            'FILE:2: escalation.max_resumes: unknown key. Did you mean "continuity.max_resumes"?',
            id="right key in the wrong section",
        ),
        pytest.param(
            TIER + 'tols = ["Bash"]', 'FILE:5: tiers.1.tols: unknown key. Did you mean "tools"?', id="key of a tier"
        ),
        pytest.param(
            "[continuity]\ncontext_threshold = 1.01",
            "FILE:2: continuity.context_threshold: should be less than or equal to 1 (got 1.01).",
            id="above the range",
        ),
        pytest.param(
            "continuity.context_threshold = 0",
            "FILE:1: continuity.context_threshold: should be greater than 0 (got 0).",
            id="dotted key",
        ),
        pytest.param(
            "continuity = { max_resumes = -1 }",
            "FILE:1: continuity.max_resumes: should be greater than or equal to 0 (got -1).",
            id="inline table",
        ),
        pytest.param(
            "[continuity]\nreopen_minutes = -1",
            "FILE:2: continuity.reopen_minutes: should be greater than or equal to 0 (got -1).",
            id="a time that lies ahead",
        ),
        pytest.param(
            "[continuity]\nreopen_minutes = 525601",
            "FILE:2: continuity.reopen_minutes: should be less than or equal to 525600 (got 525601).",
            id="more than a year",
        ),
        pytest.param(
            '[escalation]\nmax_tier = "3"',
            'FILE:2: escalation.max_tier: should be a whole number (got "3").',
            id="text for a number",
        ),
        pytest.param(
            "[escalation]\nmax_tier = true",
            "FILE:2: escalation.max_tier: should be a whole number (got true).",
            id="switch for a number",
        ),
        pytest.param(
            "[escalation]\ndry_run = 1",
            "FILE:2: escalation.dry_run: should be true or false (got 1).",
            id="number for a switch",
        ),
        pytest.param(
            "[budget]\nper_day_usd = inf",
            "FILE:2: budget.per_day_usd: should be a finite number (got inf).",
            id="no end",
        ),
        pytest.param(
            "[web]\nhost = 1979-05-27", "FILE:2: web.host: should be a string (got a date or time).", id="a date"
        ),
        pytest.param(
            '[claude]\nsystem_prompt = "apend"',
            "FILE:2: claude.system_prompt: should be 'own' or 'append' (got \"apend\"). Did you mean \"append\"?",
            id="one of two words",
        ),
        pytest.param('[claude]\nbin = ""', "FILE:2: claude.bin: should not be empty.", id="empty text"),
        pytest.param(
            '[claude]\nwork_dir = "~bob/x"',
            'FILE:2: claude.work_dir: only ~/ is understood, not another user\'s home (got "~bob/x").',
            id="the home of someone else",
        ),
        pytest.param(
            '[cooldowns.restart]\nper = "4 hours"',
            'FILE:2: cooldowns.restart.per: should be a duration like "90s", "15m", "4h" or "1d" (got "4 hours").',
            id="duration",
        ),
        pytest.param("tiers = []", "FILE:1: tiers: should not be empty.", id="no tier"),
        pytest.param("tiers = 5", "FILE:1: tiers: should be a list (got a number).", id="tiers that are no list"),
        pytest.param(TIER + "tools = []", "FILE:5: tiers.1.tools: should not be empty.", id="no tool"),
        pytest.param(
            TIER + 'tools = [\n  "Bash", # ]\n  "-x",\n]',
            'FILE:7: tiers.1.tools.2: should be the name of a CLI tool like "Bash" (got "-x").',
            id="an element on its own line",
        ),
        pytest.param(
            TIER.replace("haiku", "--help"),
            'FILE:3: tiers.1.model: should be a model name (got "--help").',
            id="an option for a model",
        ),
        pytest.param(
            '[[tiers]]\nname = "a"\nprompt = "tier1.md"', "FILE:1: tiers.1.model: has to be set.", id="missing"
        ),
        pytest.param(
            TIER + TIER, 'FILE:6: tiers.2.name: is the name of number 1 already (got "one").', id="a name twice"
        ),
        pytest.param(
            TIER + 'escalation_prompt = "tier2.md"',
            "FILE:5: tiers.1.escalation_prompt: nothing escalates to the first tier.",
            id="escalating to the first tier",
        ),
        pytest.param(
            TIER.replace("tier1.md", "../tier1.md"),
            'FILE:4: tiers.1.prompt: should be a file name without directories (got "../tier1.md").',
            id="a prompt outside",
        ),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(refuse: Refuse, toml: str, problem: str) -> None:
    assert problem in refuse(toml)


def test_a_missing_prompt_is_named_where_it_is_asked_for(refuse: Refuse) -> None:
    (problem,) = refuse("\n" + TIER.replace("tier1.md", "teir1.md"))
    assert problem.startswith("FILE:5: tiers.1.prompt: there is no such file in ")
    assert problem.endswith('(got "teir1.md"). Did you mean "tier1.md"?')


def test_a_missing_escalation_prompt_is_named_at_its_tier(refuse: Refuse, base: Path) -> None:
    (base / "prompts").mkdir()
    (base / "prompts" / "mine.md").write_text("Look.")
    (problem,) = refuse(TIER + '[[tiers]]\nname = "two"\nmodel = "opus"\nprompt = "mine.md"')
    assert re.match(r"FILE:5: tiers\.2\.escalation_prompt: .*mine-escalation\.md", problem)


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_file(refuse: Refuse) -> None:
    problems = refuse(
        """\
[claude]
bni = "x"

[web]
port = 70000
[[tiers]]
name = "a"
model = "opus"
prompt = "none.md"
[[schedules]]
name = "b"
cron = "x"
every = "1h"
[[schedules]]
name = "b"
""",
        OPSLADDER_BUDGET__PER_DAY_USD="much",
        OPSLADDER_WEB__TOKN="x",
    )
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["OPSLADDER_WEB__TOKN", 'there is no such setting. Did you mean "OPSLADDER_WEB__TOKEN"?'],
        ["OPSLADDER_BUDGET__PER_DAY_USD", "budget.per_day_usd"],
        ["FILE:2", "claude.bni"],
        ["FILE:5", "web.port"],
        ["FILE:9", "tiers.1.prompt"],
        ["FILE:12", "schedules.1.cron"],
        ["FILE:13", "schedules.1.every"],
        ["FILE:15", "schedules.2.name"],
    ]


def test_a_problem_can_be_taken_apart(load: Load, base: Path) -> None:
    with pytest.raises(ConfigProblems) as caught:
        load("[web]\nprot = 1")
    (problem,) = caught.value.problems
    assert (problem.where, problem.line, problem.key) == (str(base / "opsladder.toml"), 2, "web.prot")
    assert problem.suggestion == "port"


TABLE = 'should be a table like { NAME = "value" }.'


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        pytest.param("OPSLADDER_WEB__PORT", "http", 'web.port: should be a whole number (got "http").', id="no number"),
        pytest.param(
            "OPSLADDER_BUDGET__PER_DAY_USD",
            "-1",
            'budget.per_day_usd: should be greater than 0 (got "-1").',
            id="out of range",
        ),
        pytest.param(
            "CLAUDEOPS_DRY_RUN", "maybe", 'escalation.dry_run: should be true or false (got "maybe").', id="an alias"
        ),
        pytest.param(
            "OPSLADDER_WEB__TOKEN_FILE",
            "gone",
            'web.token: the file cannot be read: No such file or directory (got "gone").',
            id="a secret in a file that is not there",
        ),
        pytest.param("OPSLADDER_TIERS__1__MODEL", "opus", "there is no such setting.", id="lists have no variables"),
        pytest.param("OPSLADDER_CLAUDE__ENV", "A=1", f"claude.env: {TABLE}", id="no table"),
        pytest.param("OPSLADDER_CLAUDE__ENV", "7", f"claude.env: {TABLE}", id="a number"),
        pytest.param("OPSLADDER_CLAUDE__ENV", '{ A = "1" }\nb = 2', f"claude.env: {TABLE}", id="more than a table"),
        pytest.param("OPSLADDER_CLAUDE__ENV", "{ A = 1 }", "claude.env.A: should be a string.", id="in a table"),
        pytest.param(
            "OPSLADDER_CLAUDE__ENV",
            '{ OPSLADDER_X = "1" }',
            "claude.env.OPSLADDER_X: opsladder's own variables are never given to an agent.",
            id="a name in a table",
        ),
    ],
)
def test_a_wrong_variable_is_called_by_its_name(refuse: Refuse, variable: str, value: str, problem: str) -> None:
    assert refuse("", **{variable: value}) == [f"{variable}: {problem}"]


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("OPSLADDER_DRY_RUN", "OPSLADDER_ESCALATION__DRY_RUN"),
        ("OPSLADDER_MAX_TIER", "OPSLADDER_ESCALATION__MAX_TIER"),
        ("OPSLADDER_STATE_DIR", "OPSLADDER_STATE__DIR"),
        ("OPSLADDER_RESUME_CONTEXT_THRESHOLD", "OPSLADDER_CONTINUITY__CONTEXT_THRESHOLD"),
        ("OPSLADDER_DRYRUN", "OPSLADDER_ESCALATION__DRY_RUN"),
        ("OPSLADDER_WEB_PORT", "OPSLADDER_WEB__PORT"),
        ("OPSLADDER_PORT", "OPSLADDER_WEB__PORT"),
        ("OPSLADDER_TOKEN_FILE", "OPSLADDER_WEB__TOKEN_FILE"),
        ("OPSLADDER_WEB__TOKN", "OPSLADDER_WEB__TOKEN"),
        ("CLAUDEOPS_DRYRUN", "CLAUDEOPS_DRY_RUN"),
        ("CLAUDEOPS_MAX_TIERS", "CLAUDEOPS_MAX_TIER"),
        ("CLAUDEOPS_CONTEXT_THRESHOLD", "CLAUDEOPS_RESUME_CONTEXT_THRESHOLD"),
    ],
)
def test_a_variable_that_sets_nothing_is_refused_with_the_one_that_was_meant(
    refuse: Refuse, variable: str, meant: str
) -> None:
    assert refuse("", **{variable: "1"}) == [f'{variable}: there is no such setting. Did you mean "{meant}"?']


def test_a_variable_that_looks_like_nothing_we_know_is_refused_too(refuse: Refuse) -> None:
    assert refuse("", OPSLADDER_XYZZY="1") == ["OPSLADDER_XYZZY: there is no such setting."]


def test_a_secret_comes_from_the_variable_or_from_the_file_not_from_both(refuse: Refuse, tmp_path: Path) -> None:
    (problem,) = refuse("", OPSLADDER_WEB__TOKEN="a", OPSLADDER_WEB__TOKEN_FILE="b")
    assert problem == (
        "OPSLADDER_WEB__TOKEN_FILE: web.token: is set together with OPSLADDER_WEB__TOKEN; one of them has to go."
    )


def test_an_empty_secret_file_is_a_mistake(refuse: Refuse, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" \n")
    (problem,) = refuse("", OPSLADDER_WEB__TOKEN_FILE=str(tmp_path / "empty"))
    assert "the file is empty" in problem


def test_without_a_home_the_state_directory_has_to_be_set(refuse: Refuse) -> None:
    assert any("state.dir: there is no HOME to put in place of ~" in problem for problem in refuse("", HOME=""))


@pytest.mark.parametrize(
    ("toml", "line", "words"),
    [
        pytest.param("[web]\nport = \n", 2, "Invalid value", id="no value"),
        pytest.param("[web]\nport = 1\nport = 2\n", 3, "Cannot overwrite a value", id="a key twice"),
        pytest.param('[web]\nhost = """\nx\n', 4, "Unterminated string", id="never closed"),
    ],
)
def test_a_text_that_is_not_toml_is_named_with_its_line(refuse: Refuse, toml: str, line: int, words: str) -> None:
    (problem,) = refuse(toml)
    assert problem.startswith(f"FILE:{line}: is not TOML: {words}")


def test_a_file_that_is_not_text_is_a_mistake(base: Path) -> None:
    file = base / "latin1.toml"
    file.write_bytes(b"# caf\xe9")
    with pytest.raises(ConfigProblems, match="is not UTF-8 text"):
        load_settings(file, {}, cwd=base)


def test_a_mistake_in_the_model_table_is_named_beside_the_others(refuse: Refuse, base: Path) -> None:
    (base / "models.toml").write_text("[aliases]\nopus = { context_windw = 1 }\n")
    assert refuse("[web]\nport = -1") == [
        "FILE:2: web.port: should be greater than or equal to 0 (got -1).",
        f"{base}/models.toml:2: aliases.opus.context_window: has to be set.",
        f'{base}/models.toml:2: aliases.opus.context_windw: unknown key. Did you mean "context_window"?',
    ]


SECRET = "s3cr3t-p4ssw0rd"


@pytest.mark.parametrize(
    ("toml", "environ"),
    [
        pytest.param(f'[state]\ndatabase_url = "mysql://u:{SECRET}@h"', {}, id="wrong database address"),
        pytest.param(f'[state]\ndatabse_url = "postgresql://u:{SECRET}@h"', {}, id="misspelt key"),
        pytest.param(f'state = "postgresql://u:{SECRET}@h"', {}, id="address for a section"),
        pytest.param(f'[web]\ntoken = ["{SECRET}"]', {}, id="list for a token"),
        pytest.param(f'[claude.env]\n"A B" = "{SECRET}"', {}, id="what the agent is given"),
        pytest.param(f'[claude.env]\nTOKEN = "{SECRET}"\n[web]\ntoken = "{SECRET}"', {}, id="secret for the agent"),
        pytest.param("", {"OPSLADDER_STATE__DATABASE_URL": f"mysql://u:{SECRET}@h"}, id="wrong variable"),
        pytest.param("", {"OPSLADDER_CLAUDE__ENV": f"A={SECRET}"}, id="no table"),
        pytest.param("", {"OPSLADDER_CLAUDE__ENV": f'{{ "a-b" = "{SECRET}" }}'}, id="wrong name in a table"),
        pytest.param("", {"OPSLADDER_STATE__DATABSE_URL": f"postgresql://u:{SECRET}@h"}, id="misspelt variable"),
    ],
)
def test_no_message_shows_a_secret(refuse: Refuse, toml: str, environ: dict[str, str]) -> None:
    problems = refuse(toml, **environ)
    assert problems
    assert SECRET not in "".join(problems)


def test_no_settings_show_a_secret(load: Load) -> None:
    settings = load(
        f'[state]\ndatabase_url = "postgresql://u:{SECRET}@h/d"\n[claude.env]\nKEY = "{SECRET}-2"\n',
        OPSLADDER_WEB__TOKEN=SECRET + "-3",
        ANTHROPIC_API_KEY=SECRET,
    )
    assert SECRET not in f"{settings!r} {settings} {settings.claude!r} {settings.state} {settings.web!r}"
    assert settings.agent_env["KEY"] == SECRET + "-2"
