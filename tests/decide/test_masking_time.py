"""Masking takes time in proportion to the text, whatever is in it, and loads nothing it does not need."""

import re
import subprocess
import sys
import time

import pytest

from supervisor.decide.masking import Masker

SIZE = 1_000_000
# Twice the text may take twice as long; quadratic time would take four times. The rest is for a busy machine.
TWICE = 3.2

REPEATED = {
    "log_line": "Jan 12 10:00:01 web-7d4b9c6f5d nginx[1]: GET /tokens?key=5 max_tokens=4096 auth ok https://a.example/x\n",
    "name": "token",
    "assignment": "token=",
    "open_quote": 'token="',
    "escaped_quote": r"\"token\":\"",
    "unconvincing_value": "token:aaaaaaaa",
    "name_and_comma": "password,",
    "value_and_comma": "password=a,",
    "open_bracket": "password=(",
    "backslash": "password\\",
    "option": "--password ",
    "token_prefix": "sk-",
    "jwt_start": "eyJ",
    "jwt_parts": "eyJaaaaaaaa.",
    "url_start": "://a:",
    "key_begins": "-----BEGIN PRIVATE KEY-----",
    "key_ends": "-----END PRIVATE KEY-----",
    "mysql": "mysql -p",
    "curl": "curl -u a:",
    "header": "Authorization: ",
    "manifest": "kind: Secret\ndata:\n",
    "manifest_in_json": 'kind: Secret {"data":{',
    "access_key": "AKIA ",
    "spaces": " ",
    "netrc": "machine a login b ",
    "netrc_machine": "machine \\n",
    "netrc_password": "machine a login b account c password ",
    "identified": "IDENTIFIED BY '",
    "granted": "grant identified by 'a' ",
    "identified_by_quotes": "create user a identified by ''",
    "sql_password": "create user a password ( = ",
    "sql_escapes": r"ALTER USER a PASSWORD 'x\'",
    "redis_password": "set requirepass ",
    "telegram": "12345678:",
    "discord": "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.",
    "azure_signature": "https://a?sig=a",
    "argon2": "$argon2id$v=1$a=1",
    "smb": "smbclient -U a%",
}
RUNS = {
    "long_name": lambda size: "token" + "a" * size,
    "long_space": lambda size: "token" + " " * size + "=x",
    "long_open_quote": lambda size: 'token="' + "a" * size,
    "long_list": lambda size: "password=a" + ",b" * (size // 2),
    "long_key": lambda size: "-----BEGIN PRIVATE KEY-----" + "1" * size,
    "long_netrc_gap": lambda size: "machine" + " " * size + "password",
    "long_netrc_word": lambda size: "machine " + "a" * size + " password",
    "long_netrc_number": lambda size: "machine " + "1" * size + " password",
    "long_identified": lambda size: "IDENTIFIED" + " " * size + "BY",
    "long_sql_gap": lambda size: "ALTER USER a PASSWORD" + " " * size,
    "long_sql_quotes": lambda size: "IDENTIFIED BY '" + "'" * size,
    "long_number": lambda size: "1" * size + ":a",
    "one_end_for_many_beginnings": lambda size: (
        "-----BEGIN PRIVATE KEY-----" * (size // 27) + "-----END PRIVATE KEY-----"
    ),
}
TEXTS = {
    name: lambda size, part=part: (part * (size // len(part) + 1))[:size] for name, part in REPEATED.items()
} | RUNS


def quickest(masker: Masker, text: str) -> float:
    taken = []
    for _ in range(2):
        begun = time.process_time()
        masker.text(text)
        taken.append(time.process_time() - begun)
    return min(taken)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_twice_the_text_takes_about_twice_as_long(text):
    masker = Masker(values=["correct-horse-battery"], names=["pin"])

    # Other processes can slow any one measurement down, but not three in a row in the same way.
    assert any(quickest(masker, text(SIZE)) <= quickest(masker, text(SIZE // 2)) * TWICE for _ in range(3))


def test_importing_compiles_no_pattern_and_loads_no_module_that_is_slow_to_load():
    program = (
        "import sys, re; known = set(sys.modules); compiled = len(re._cache);"
        "import supervisor.decide.masking;"
        "print(len(re._cache) - compiled, *sorted(set(sys.modules) - known))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, timeout=60)

    compiled, *loaded = done.stdout.split()
    assert compiled == "0"
    assert [name for name in loaded if re.match(r"json|urllib|base64|dataclasses|pathlib", name)] == []
