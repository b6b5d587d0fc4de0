"""Mask passwords where a grammar of its own says that they are some: netrc, SQL, redis. Pure. For ``decide.masking``.

No sign stands between the name and the value there, and the same words also make up sentences. So what stands before is
looked at too. Each pattern is only tried on a text that has its words.
"""

import re
from functools import cache
from typing import Final

from supervisor.decide.masking.mark import MASK
from supervisor.decide.masking.names import IN_SENTENCES, is_placeholder

# Between words: also a line break that is escaped, and the line numbers that tools put before what they print.
_GAP: Final = r"(?:\s|\\[nrt]|[0-9]{1,7}[→\t])+"
_WORD: Final = r"(?:[^\s\\\"']|\\(?![nrt\"'])|[\"'](?=\w))+"
_NETRC: Final = (
    rf"(?:machine{_GAP}{_WORD}|default)(?:{_GAP}(?:account|login|port|user){_GAP}{_WORD}){{1,4}}"
    rf"{_GAP}password{_GAP}[\"']?(?P<last>{_WORD})"
    rf"|machine{_GAP}{_WORD}{_GAP}password{_GAP}[\"']?(?P<first>{_WORD})(?={_GAP}(?:account|login))"
)
# In the quotes of SQL, also escaped in JSON or in an argument of a shell. A text that was cut off has no end.
_QUOTED: Final = (
    r"(?:'\\''(?P<shell>[^'\n]+)|'(?P<single>(?:[^'\\\n]|''|\\.)+)"
    r"|\\[\"'](?P<escaped>(?:[^\"'\\\n]|\\[^\"'\n])+)|\"(?P<double>(?:[^\"\\\n]|\"\"|\\.)+)"
    r"|\$\$(?P<dollar>[^$\n]+))"
)
_IDENTIFIED: Final = (
    rf"identified\s+(?:with\s+[\w'\"`]+\s+)?(?:by|as)\s+(?:password\s+|values\s+)?"
    rf"(?:{_QUOTED}|(?P<bare>(?=[\w#$!]*[0-9])[\w#$!]+))"
)
_PASSWORD: Final = rf"password[\s(=]+(?:[en]|u&)?{_QUOTED}"
_ABOUT_USERS: Final = r"\b(?:(?:create|alter)\s+(?:or\s+replace\s+)?(?:user|role|login|group)|set\s+password)\b"
_REDIS: Final = r"(?:^[ \t]*|\bset[ \t]+)(?:requirepass|masterauth)[ \t]+[\"']?(?P<bare>[^\s\"'\\]+)"
# So far before a password its statement begins.
_REACH: Final = 500


def mask_logins(text: str) -> str:
    """The text with the passwords masked that stand in such places."""
    if "password" in text and ("machine" in text or "default" in text):
        text = _pattern(_NETRC).sub(_if_an_entry, text)
    low = text.lower()
    if "identified" in low:
        text = _pattern(_IDENTIFIED, re.IGNORECASE).sub(_if_in_sql, text)
    if "password" in low and _has(text, _ABOUT_USERS):
        text = _pattern(_PASSWORD, re.IGNORECASE).sub(_if_in_sql, text)
    if "requirepass" in low or "masterauth" in low:
        text = _pattern(_REDIS, re.IGNORECASE | re.MULTILINE).sub(_if_no_sentence, text)
    return text


@cache
def _pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def _if_an_entry(match: re.Match[str]) -> str:
    """An entry of netrc begins a line, or is all that is in quotes."""
    before = match.string[max(0, match.start() - _REACH) : match.start()].rstrip(" ")
    begins = not before or before[-1] in "\n\r\t→\"'`" or before.endswith(("\\n", "\\r", "\\t"))
    return _if_no_placeholder(match) if begins else match[0]


def _if_in_sql(match: re.Match[str]) -> str:
    """In a statement about users; what is quoted also in one about rights, or in capitals. Else it is a sentence."""
    statement = match.string[max(0, match.start() - _REACH) : match.start()].rpartition(";")[2]
    is_firm = _has(statement, _ABOUT_USERS)
    if match.lastgroup != "bare":
        is_firm |= match[0].startswith("IDENTIFIED") or (_has(statement, r"\bgrant\b") and _has(statement, r"\bon\b"))
    return _if_no_placeholder(match) if is_firm else match[0]


def _has(text: str, pattern: str) -> bool:
    return _pattern(pattern, re.IGNORECASE).search(text) is not None


def _if_no_sentence(match: re.Match[str]) -> str:
    return match[0] if match["bare"].lower() in IN_SENTENCES else _if_no_placeholder(match)


def _if_no_placeholder(match: re.Match[str]) -> str:
    group = match.lastgroup
    if group is None or is_placeholder(match[group]):
        return match[0]
    start, end = match.span(group)
    return match.string[match.start() : start] + MASK + match.string[end : match.end()]
