"""Which variables of the caller's environment an agent may see. Pure. Called from ``settings.load`` and its schema.

An allow-list: what is not named here, or by the operator, does not reach the agent.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

ALLOWED = frozenset(
    {
        # the user and the machine
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "IS_SANDBOX"),
        # how the CLI reaches a model
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
        *("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
        *("AWS_REGION", "AWS_PROFILE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
        # how its commands reach what they look after
        *("KUBECONFIG", "DOCKER_HOST", "SSH_AUTH_SOCK"),
    }
)
ALLOWED_PREFIX = "LC_"

OWN_PREFIX = "OPSLADDER_"
# What a CLI sets for the commands it starts. With them a CLI takes itself for a part of another session and stores
# its transcript differently (seen on 2.1.225 and 2.1.325).
SESSION_MARKERS = frozenset({"AI_AGENT", "CLAUDECODE", "CLAUDE_PID"})
SESSION_MARKER_PREFIXES = (
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_",
    "CLAUDE_CODE_SESSION_",
    "CLAUDE_CODE_SSE_PORT",
)
# With either a CLI asks no hook before a tool call (seen on 2.1.225 and 2.1.325).
HOOKS_OFF = frozenset({"CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE"})

# A shorter secret is not searched for inside other values: a token "a" would empty the environment.
_SEARCHED_LENGTH = 8


def never_passed(name: str) -> str | None:
    """Why a variable of this name is kept from every agent, even on request."""
    if name.startswith(OWN_PREFIX):
        return "opsladder's own variables are never given to an agent"
    if name in SESSION_MARKERS or name.startswith(SESSION_MARKER_PREFIXES):
        return "it marks another CLI's session and is never given to an agent"
    if name in HOOKS_OFF:
        return "it turns the CLI's hooks off, and with them the guard, and is never given to an agent"
    return None


def agent_environment(
    caller: Mapping[str, str], *, pass_env: Iterable[str], extra: Mapping[str, str], secrets: Iterable[str]
) -> Mapping[str, str]:
    """The environment of every agent: the allowed part of the caller's, then what the operator adds."""
    allowed = ALLOWED.union(pass_env)
    hidden = [secret for secret in secrets if secret]
    chosen = {n: v for n, v in caller.items() if n in allowed or n.startswith(ALLOWED_PREFIX)}
    return MappingProxyType(
        {
            name: value
            for name, value in (chosen | dict(extra)).items()
            if never_passed(name) is None and not any(reveals(value, secret) for secret in hidden)
        }
    )


def reveals(value: str, secret: str) -> bool:
    """Whether a value gives a secret away."""
    return value == secret or (len(secret) >= _SEARCHED_LENGTH and secret in value)
