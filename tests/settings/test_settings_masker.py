"""The masker of the settings knows every secret that they hold or give to an agent, and nothing else."""

import pytest

MASKED = "[masked]"
KNOWN = {
    "api_key": ("", {"ANTHROPIC_API_KEY": "plain-credential"}, "plain-credential"),
    "oauth_token": ("", {"CLAUDE_CODE_OAUTH_TOKEN": "plain-credential"}, "plain-credential"),
    "web_token": ("", {"OPSLADDER_WEB__TOKEN": "plain-credential"}, "plain-credential"),
    "web_token_in_the_file": ('[web]\ntoken = "plain-credential"', {}, "plain-credential"),
    "database_password": (
        "",
        {"OPSLADDER_STATE__DATABASE_URL": "postgresql://shop:p%40ss-word@db/shop"},
        "p@ss-word",
    ),
    "database_password_as_written": (
        "",
        {"OPSLADDER_STATE__DATABASE_URL": "postgresql://shop:p%40ss-word@db/shop"},
        "p%40ss-word",
    ),
    "database_password_as_a_parameter": (
        "",
        {"OPSLADDER_STATE__DATABASE_URL": "postgresql://db/shop?user=shop&password=plain-credential"},
        "plain-credential",
    ),
    "agent_variable": ('[claude]\nenv = { SHOP_TOKEN = "plain-credential" }', {}, "plain-credential"),
    "passed_variable": (
        '[claude]\npass_env = ["SHOP_SECRET"]',
        {"SHOP_SECRET": "plain-credential"},
        "plain-credential",
    ),
    "passed_variable_with_a_configured_name": (
        '[claude]\npass_env = ["SHOP_PHRASE"]\n[guard]\nmask_names = ["SHOP_PHRASE"]',
        {"SHOP_PHRASE": "plain-credential"},
        "plain-credential",
    ),
    "proxy_password": ("", {"HTTPS_PROXY": "http://shop:plain-credential@proxy:3128"}, "plain-credential"),
}


@pytest.mark.parametrize(("toml", "environ", "secret"), KNOWN.values(), ids=KNOWN.keys())
def test_a_secret_of_the_settings_is_masked_wherever_it_stands(load, toml, environ, secret):
    masker = load(toml, **environ).masker()

    assert masker.text(f"it said {secret} twice: {secret}") == f"it said {MASKED} twice: {MASKED}"


@pytest.mark.parametrize("where", ["file", "environment"])
def test_configured_names_make_what_they_name_a_secret(load, where):
    names = {"OPSLADDER_GUARD__MASK_NAMES": "card_pin, other"} if where == "environment" else {}
    toml = '[guard]\nmask_names = ["card_pin"]' if where == "file" else ""

    assert load(toml, **names).masker().text("card_pin: 1234") == f"card_pin: {MASKED}"


def test_an_empty_name_is_a_mistake(refuse):
    [problem] = refuse('[guard]\nmask_names = [""]')

    assert "guard.mask_names" in problem


def test_what_is_no_secret_is_not_masked(load, base):
    settings = load(
        '[claude]\nenv = { SSH_KEY = "/home/web/.ssh/id", DEPLOY_KEY = "production", REGION_NAME = "eu-west-1" }'
    )
    text = f"{settings.state.dir}/opsladder.db {settings.database_url()} /home/web/.ssh/id production eu-west-1"

    assert settings.masker().text(text) == text


def test_the_same_settings_make_the_same_masker(load):
    settings = load()

    assert settings.masker() is settings.masker()
