"""Mask what has the shape of a secret wherever it stands: tokens, keys, credentials in addresses. Pure.

Used by ``decide.masking``. Each pattern begins with fixed characters, and is only tried on a text that has them.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from supervisor.decide.masking.mark import MASK
from supervisor.decide.masking.names import is_placeholder

# What a token begins with and what follows. Where those characters also occur inside of words, the first field is
# true: such a token has to begin a word.
_TOKENS: Final = (
    (False, "sk-ant-", r"[A-Za-z0-9_-]{4,}"),
    (True, "sk-", r"(?:(?:proj|svcacct|admin|or-v1|live)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9_]{20,}[A-Za-z0-9_-]*)"),
    (True, "sk_live_", r"[A-Za-z0-9]{16,}"),
    (True, "rk_live_", r"[A-Za-z0-9]{16,}"),
    (True, "sk_test_", r"[A-Za-z0-9]{16,}"),
    (True, "rk_test_", r"[A-Za-z0-9]{16,}"),
    (True, "whsec_", r"[A-Za-z0-9+/]{16,}"),
    (False, "shpat_", r"[a-f0-9]{32}"),
    (False, "shpca_", r"[a-f0-9]{32}"),
    (False, "shppa_", r"[a-f0-9]{32}"),
    (False, "shpss_", r"[a-f0-9]{32}"),
    (True, "sq0atp-", r"[A-Za-z0-9_-]{22,}"),
    (True, "sq0csp-", r"[A-Za-z0-9_-]{40,}"),
    (False, "ghp_", r"[A-Za-z0-9]{20,}"),
    (False, "gho_", r"[A-Za-z0-9]{20,}"),
    (False, "ghs_", r"[A-Za-z0-9]{20,}"),
    (False, "ghu_", r"[A-Za-z0-9]{20,}"),
    (False, "ghr_", r"[A-Za-z0-9]{20,}"),
    (False, "github_pat_", r"[A-Za-z0-9_]{20,}"),
    (False, "glpat-", r"[A-Za-z0-9_.-]{16,}"),
    (False, "glptt-", r"[A-Za-z0-9_.-]{16,}"),
    (False, "gldt-", r"[A-Za-z0-9_.-]{16,}"),
    (False, "glrt-", r"[A-Za-z0-9_.-]{16,}"),
    (True, "glcbt-", r"[A-Za-z0-9_.-]{16,}"),
    (True, "glft-", r"[A-Za-z0-9_.-]{16,}"),
    (True, "glimt-", r"[A-Za-z0-9_.-]{16,}"),
    (True, "gloas-", r"[A-Za-z0-9_.-]{16,}"),
    (True, "glsoat-", r"[A-Za-z0-9_.-]{16,}"),
    (True, "glagent-", r"[A-Za-z0-9_.-]{30,}"),
    (True, "glsa_", r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    (True, "glc_eyJ", r"[A-Za-z0-9+/=]{20,}"),
    (True, "xox", r"[abcdeoprs]-[A-Za-z0-9%-]{8,}"),
    (True, "xapp-", r"[0-9]-[A-Za-z0-9-]{8,}"),
    (True, "AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    (True, "ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    (True, "AIza", r"[A-Za-z0-9_-]{30,}"),
    (True, "ya29.", r"[A-Za-z0-9_-]{20,}"),
    (True, "1//0", r"[A-Za-z0-9_-]{40,}"),
    (True, "eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*"),
    (True, "npm_", r"[A-Za-z0-9]{30,}"),
    (True, "hf_", r"[A-Za-z0-9]{20,}"),
    (True, "gsk_", r"[A-Za-z0-9]{40,}"),
    (True, "xai-", r"[A-Za-z0-9]{40,}"),
    (True, "r8_", r"[A-Za-z0-9]{37}(?![A-Za-z0-9])"),
    (True, "pplx-", r"[A-Za-z0-9]{40,}"),
    (False, "dckr_pat_", r"[A-Za-z0-9_-]{16,}"),
    (True, "hvs.", r"[A-Za-z0-9_-]{20,}"),
    (True, "hvb.", r"[A-Za-z0-9_-]{20,}"),
    (True, "tskey-", r"[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{8,}"),
    (False, "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    (False, "ATATT3", r"[A-Za-z0-9_=-]{20,}"),
    (False, "lin_api_", r"[A-Za-z0-9]{30,}"),
    (True, "ntn_", r"[A-Za-z0-9]{40,}"),
    (True, "figd_", r"[A-Za-z0-9_-]{20,}"),
    (True, "sntrys_", r"[A-Za-z0-9+/=_]{40,}"),
    (True, "sntryu_", r"[a-f0-9]{40,}"),
    (True, "sbp_", r"[a-f0-9]{40}"),
    (True, "dapi", r"[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])"),
    (True, "NRAK-", r"[A-Z0-9]{27}(?![A-Za-z0-9])"),
    (True, "HRKU-", r"[A-Za-z0-9_-]{36,}"),
    (True, "dp.", r"(?:audit|ct|pt|sa|scim|st)\.[A-Za-z0-9_.-]{40,}"),
    (True, "pul-", r"[a-f0-9]{40}"),
    (True, "pscale_", r"(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{30,}"),
    (True, "ops_eyJ", r"[A-Za-z0-9_=-]{40,}"),
    (True, "AKCp", r"[A-Za-z0-9]{50,}"),
    (False, ".atlasv1.", r"[A-Za-z0-9_=-]{50,}"),
    # The key of Twilio. That of an account begins with AC, and is only its number.
    (True, "SK", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    (False, "rubygems_", r"[a-f0-9]{40,}"),
    (True, "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{30,}"),
    # What a password is kept as: it can be guessed from.
    (False, "$6$", r"(?:rounds=[0-9]+\$)?[A-Za-z0-9./]{1,16}\$[A-Za-z0-9./]{43,}"),
    (False, "$5$", r"(?:rounds=[0-9]+\$)?[A-Za-z0-9./]{1,16}\$[A-Za-z0-9./]{43}"),
    (False, "$y$", r"[A-Za-z0-9./]+\$[A-Za-z0-9./]{1,86}\$[A-Za-z0-9./]{43}"),
    (False, "$2b$", r"[0-9]{2}\$[A-Za-z0-9./]{53}"),
    (False, "$2y$", r"[0-9]{2}\$[A-Za-z0-9./]{53}"),
    (False, "$2a$", r"[0-9]{2}\$[A-Za-z0-9./]{53}"),
    (False, "$apr1$", r"[A-Za-z0-9./]{1,8}\$[A-Za-z0-9./]{22}"),
    (False, "$1$", r"[A-Za-z0-9./]{1,8}\$[A-Za-z0-9./]{22}"),
    (False, "$argon2", r"(?:id|i|d)\$(?:v=[0-9]+\$)?[a-z0-9=,]+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]{16,}"),
    (False, "SCRAM-SHA-", r"(?:1|256)\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+"),
    (False, "dop_v1_", r"[a-f0-9]{40,}"),
    (False, "doo_v1_", r"[a-f0-9]{40,}"),
    (False, "dor_v1_", r"[a-f0-9]{40,}"),
    (True, "pypi-", r"[A-Za-z0-9_-]{50,}"),
    (True, "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (False, "AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}"),
)
# What follows the number of a bot. Discord writes the number in base64, and of digits nothing but these comes out.
_TELEGRAM: Final = r":(?<=[0-9]{8}:)(?<![0-9]{11}:)(?P<secret>[A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])"
_DIGITS: Final = r"(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){5}"
_DISCORD: Final = (
    rf"\.(?:(?<={_DIGITS}\.)|(?<={_DIGITS}[A-Za-z0-9]{{2}}\.)|(?<={_DIGITS}[A-Za-z0-9]{{3}}\.))"
    r"(?P<secret>[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})"
)
_LONGEST_KEY_BLOCK: Final = 20_000


def mask_shapes(text: str) -> str:
    """The text with a mark in the place of everything that looks like a secret."""
    if "PRIVATE KEY" in text:
        text = _mask_private_keys(text)
    if "AKIA" in text or "ASIA" in text:
        text = _pattern(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])").sub(_if_mixed, text)
    for begins_word, prefix, rest in _TOKENS:
        if prefix in text:
            text = _pattern(_token(begins_word, prefix, rest)).sub(MASK, text)
    if ":" in text:
        text = _pattern(_TELEGRAM).sub(_if_secret_is_mixed, text)
    if "." in text:
        text = _pattern(_DISCORD).sub(_secret_only, text)
    if "://" in text:
        text = _mask_addresses(text)
    if "uthorization" in text or "UTHORIZATION" in text or "ookie" in text:
        text = _pattern(_HEADER).sub(_masked_header, text)
    if "earer " in text:
        text = _pattern(r"[Bb]earer (?P<secret>[A-Za-z0-9._~+/=-]{16,})").sub(_if_a_bearer, text)
    if " -" in text or "\t-" in text:
        text = _mask_options(text)
    return text


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _token(begins_word: bool, prefix: str, rest: str) -> str:
    # The check of what stands before comes after the fixed characters: a pattern that begins with them is found by
    # a fast search. A word may also begin after an escape like \n or %3D.
    fixed = re.escape(prefix)
    starts = rf"(?:(?<![A-Za-z0-9_-]{fixed})|(?<=\\[nrt]{fixed})|(?<=%[0-9A-Fa-f]{{2}}{fixed}))"
    return fixed + (starts if begins_word else "") + rest


def _secret_only(match: re.Match[str]) -> str:
    start, end = match.span("secret")
    return match.string[match.start() : start] + MASK + match.string[end : match.end()]


def _if_mixed(match: re.Match[str]) -> str:
    return MASK if _is_mixed(match[0]) else match[0]


def _if_secret_is_mixed(match: re.Match[str]) -> str:
    return _secret_only(match) if _is_mixed(match["secret"]) else match[0]


def _is_mixed(text: str) -> bool:
    """Whether it was drawn from all letters and digits: a hash has no capitals, a name no digits or no capitals."""
    return any(c.isupper() for c in text) and any(c.islower() for c in text) and any(c.isdigit() for c in text)


def _if_a_bearer(match: re.Match[str]) -> str:
    return _secret_only(match) if any(c.isdigit() for c in match["secret"]) else match[0]


_HEADER: Final = (
    r"(?:[Aa]uthorization|AUTHORIZATION)\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?"
    r"(?P<scheme>[A-Za-z][A-Za-z0-9-]{2,15}[ \t]+)?(?P<secret>[^\s\"'\\,;<>][^\s\"'\\<>]*)"
    r"|(?:Set-)?[Cc]ookie:[ \t]*(?P<cookie>[^\n\r\"'\\]+)"
)


def _masked_header(match: re.Match[str]) -> str:
    group = "cookie" if match["cookie"] is not None else "secret"
    # One word alone, of letters alone, names a scheme or is part of a sentence.
    if is_placeholder(match[group]) or (group == "secret" and not match["scheme"] and match[group].isalpha()):
        return match[0]
    start, end = match.span(group)
    return match.string[match.start() : start] + MASK + match.string[end : match.end()]


def _mask_addresses(text: str) -> str:
    text = _pattern(r"://[^\s/:@\"'<>\\]{0,200}:(?P<secret>[^\s/\"'<>\\]+)@").sub(_if_no_placeholder, text)
    if "hooks.slack.com/" in text:
        text = _pattern(r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/-]+)").sub(
            _secret_only, text
        )
    if "/api/webhooks/" in text:
        text = _pattern(r"/api/webhooks/[0-9]+/(?P<secret>[A-Za-z0-9_-]+)").sub(_secret_only, text)
    if "office.com/webhook" in text:
        text = _pattern(r"office\.com/webhook(?:b2)?/(?P<secret>[A-Za-z0-9@/_-]+)").sub(_secret_only, text)
    if "sig=" in text:
        # The signature that lets whoever has the address into a storage or a workflow of Azure.
        text = _pattern(r"sig=(?<=[?&;]sig=)(?P<secret>[A-Za-z0-9%+/_-]{20,}=*)").sub(_secret_only, text)
    return text


def _if_no_placeholder(match: re.Match[str]) -> str:
    return match[0] if is_placeholder(match["secret"]) else _secret_only(match)


def _mask_private_keys(text: str) -> str:
    begin = _pattern(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
    end = _pattern(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
    # Of a key that is cut off, the lines that are there.
    margin = r"(?:\s|\\[nr]|[0-9]+[→\t])*"
    cut_off = _pattern(rf"(?:{margin}[A-Za-z0-9+/=]{{16,}})*(?:{margin}[A-Za-z0-9+/=]*\Z)?")
    pieces: list[str] = []
    done = 0
    closing = end.search(text)
    while opening := begin.search(text, done):
        if closing is not None and closing.start() < opening.end():
            closing = end.search(text, opening.end())
        if closing is not None and closing.start() - opening.end() <= _LONGEST_KEY_BLOCK:
            after = closing.end()
        else:
            tail = cut_off.match(text, opening.end())
            after = tail.end() if tail else opening.end()
        pieces += [text[done : opening.start()], MASK]
        done = after
    return "".join([*pieces, text[done:]])


# Options that hold a password for one program and something else for others.
_WORD: Final = r"(?:\"(?P<double>[^\"\n]+)\"|'(?P<single>[^'\n]+)'|(?P<bare>[^\s\"'|;&\\]+))"
_OPTIONS: Final = (
    (("mysql", "mariadb"), rf"[ \t]-p{_WORD}"),
    (("sshpass",), rf"[ \t]-p[ \t]*{_WORD}"),
    (("redis-cli",), rf"[ \t]-a[ \t]*{_WORD}"),
    (("docker login", "podman login", "helm registry login"), rf"[ \t]-p[ \t]*{_WORD}"),
    (("ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldappasswd", "ldapwhoami"), rf"[ \t]-w[ \t]*{_WORD}"),
    (("smbclient", "rpcclient"), r"[ \t](?:-U|--user)[ \t=]*[\"']?[^\s%\"']{1,100}%(?P<bare>[^\s\"'|;&\\]+)"),
    (("curl", "wget"), r"[ \t](?:-u|--user|--proxy-user)[ \t=]*[\"']?[^\s:\"']{1,100}:(?P<bare>[^\s\"'|;&\\]+)"),
)
_COMMAND_REACH: Final = 300


def _mask_options(text: str) -> str:
    for programs, pattern in _OPTIONS:
        if any(program in text for program in programs):
            text = _pattern(pattern).sub(_if_of(programs), text)
    return text


def _if_of(programs: tuple[str, ...]) -> Callable[[re.Match[str]], str]:
    """Mask only where one of the programs stands before, in the same command."""

    def replace(match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - _COMMAND_REACH) : match.start()]
        command = before[max(before.rfind(separator) for separator in "\n|;&") + 1 :]
        group = match.lastgroup
        if group is None or not any(program in command for program in programs):
            return match[0]
        start, end = match.span(group)
        # A published port, as in docker run --name mysql -p3306:3306.
        if is_placeholder(match[group]) or _pattern(r"[0-9.]+(?::[0-9]+)+").fullmatch(match[group]):
            return match[0]
        return match.string[match.start() : start] + MASK + match.string[end : match.end()]

    return replace
