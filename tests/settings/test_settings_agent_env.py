"""What of the caller's environment an agent can see."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.settings import Settings
from supervisor.settings.agent_env import agent_environment

Load = Callable[..., Settings]
Refuse = Callable[..., list[str]]

# fmt: off
ALLOWED = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "AWS_REGION", "AWS_PROFILE", "HTTP_PROXY",
    "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS", "KUBECONFIG", "DOCKER_HOST", "SSH_AUTH_SOCK", "IS_SANDBOX",
]
# fmt: on

# fmt: off
MARKERS = [
    "CLAUDECODE", "CLAUDE_PID", "AI_AGENT", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_SESSION_ATTENDED",
]
# fmt: on

KEPT_BACK = [*MARKERS, "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "OPSLADDER_CONFIG", "LD_PRELOAD"]

names = st.one_of(
    st.sampled_from([*ALLOWED, *KEPT_BACK, "LC_ALL", "LC_CTYPE", "OPSLADDER_WEB__TOKEN"]),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True),
)


@given(caller=st.dictionaries(names, st.text(max_size=8), max_size=30), passed=st.sets(names, max_size=4))
def test_no_variable_outside_the_list_ever_passes(caller: dict[str, str], passed: set[str]) -> None:
    seen = agent_environment(caller, pass_env=passed, extra={}, secrets=())
    for name in seen:
        assert name in ALLOWED or name.startswith("LC_") or name in passed
        assert name not in MARKERS
        assert not name.startswith("OPSLADDER_")
        assert seen[name] == caller[name]


@given(
    secret=st.text(min_size=8, max_size=20),
    around=st.tuples(st.text(max_size=5), st.text(max_size=5)),
    name=st.sampled_from(ALLOWED),
)
def test_no_variable_carries_a_secret_of_the_supervisor(secret: str, around: tuple[str, str], name: str) -> None:
    assert not agent_environment({name: secret.join(around)}, pass_env=(), extra={}, secrets=[secret])


def test_a_short_secret_is_kept_back_only_where_it_is_the_whole_value() -> None:
    caller = {"USER": "abc", "PATH": "/abc/bin"}
    assert agent_environment(caller, pass_env=(), extra={}, secrets=["abc", ""]) == {"PATH": "/abc/bin"}


def test_the_agent_gets_what_is_allowed_what_is_let_through_and_what_is_set(load: Load) -> None:
    caller = dict.fromkeys([*ALLOWED, *KEPT_BACK, "LC_ALL", "MINE", "NOT_MINE"], "v")
    del caller["OPSLADDER_CONFIG"]
    settings = load('[claude]\npass_env = ["MINE"]\n[claude.env]\nTZ = "Asia/Tokyo"\nEXTRA = "e"', **caller)
    expected = dict.fromkeys([*ALLOWED, "LC_ALL", "MINE"], "v") | {"TZ": "Asia/Tokyo", "EXTRA": "e"}
    assert settings.agent_env == expected


def test_a_variable_let_through_by_name_still_cannot_carry_the_database_address_or_the_token(load: Load) -> None:
    settings = load(
        '[claude]\npass_env = ["DATABASE_URL", "COPY", "OTHER"]',
        OPSLADDER_STATE__DATABASE_URL="postgresql://u:p4ssw0rd@h/d",
        OPSLADDER_WEB__TOKEN="a-long-token",
        DATABASE_URL="postgresql://u:p4ssw0rd@h/d",
        COPY="Bearer a-long-token",
        OTHER="fine",
    )
    assert set(settings.agent_env) == {"HOME", "OTHER"}


@pytest.mark.parametrize(
    "name", ["OPSLADDER_WEB__TOKEN", "OPSLADDER_X", *MARKERS, "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"]
)
def test_what_no_agent_may_see_cannot_be_asked_for(refuse: Refuse, name: str) -> None:
    problems = refuse(f'[claude]\npass_env = ["{name}"]\n[claude.env]\n{name} = "x"')
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["FILE:2", "claude.pass_env.1"],
        ["FILE:4", f"claude.env.{name}"],
    ]
    assert all("never given to an agent" in problem for problem in problems)


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        pytest.param(
            '[claude]\npass_env = ["A B"]',
            'FILE:2: claude.pass_env.1: should be the name of an environment variable (got "A B").',
            id="a name with a space",
        ),
        pytest.param(
            '[claude.env]\n"A=B" = "x"',
            "FILE:2: claude.env.A=B: should be the name of an environment variable.",
            id="a name with an equals sign",
        ),
        pytest.param("[claude.env]\nA = 1", "FILE:2: claude.env.A: should be a string.", id="a number"),
        pytest.param(
            '[claude.env]\nA = "\\u0000"', "FILE:2: claude.env.A: cannot hold a NUL character.", id="a NUL character"
        ),
        pytest.param(
            '[claude.env]\nA = "a-long-token"\n[web]\ntoken = "a-long-token"',
            "FILE:2: claude.env.A: holds a secret of the supervisor, which no agent may see.",
            id="a secret",
        ),
    ],
)
def test_what_cannot_be_set_for_an_agent_is_refused(refuse: Refuse, toml: str, problem: str) -> None:
    assert refuse(toml) == [problem]
