"""What a rehearsed CLI sees of the operator's environment."""

import pytest

from supervisor.rehearsal.stage import SCRIPTED_KEY, SCRIPTED_SIGN_IN, staged_environment


@pytest.mark.parametrize(
    "name",
    [
        *(
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_FOUNDRY",
            "CLAUDE_CODE_USE_ANTHROPIC_AWS",
            "CLAUDE_CODE_USE_MANTLE",
        ),
        *("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_UNIX_SOCKET"),
        *("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"),
    ],
)
def test_nothing_leads_a_rehearsed_cli_to_a_model_that_costs_money(tmp_path, name):
    env = staged_environment({name: "1", "PATH": "/bin"}, base_url="http://127.0.0.1:1", directory=tmp_path)

    assert name not in env
    assert (env["PATH"], env["ANTHROPIC_BASE_URL"]) == ("/bin", "http://127.0.0.1:1")


def test_a_rehearsed_cli_is_signed_in_where_only_that_shows_it_a_usage_limit(tmp_path):
    own = {"ANTHROPIC_API_KEY": "sk-own", "CLAUDE_CODE_OAUTH_TOKEN": "own-token"}
    keyed, signed_in = (
        staged_environment(own, base_url="http://127.0.0.1:1", directory=tmp_path, signed_in=choice)
        for choice in (False, True)
    )

    assert (keyed["ANTHROPIC_API_KEY"], "CLAUDE_CODE_OAUTH_TOKEN" in keyed) == (SCRIPTED_KEY, False)
    assert (signed_in["CLAUDE_CODE_OAUTH_TOKEN"], "ANTHROPIC_API_KEY" in signed_in) == (SCRIPTED_SIGN_IN, False)
