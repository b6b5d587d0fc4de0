"""Mask what stands beside the name of a secret: ``NAME=value``, ``"name": "value"``, ``--name value``. Pure.

Used by ``decide.masking``. The text is searched for the few syllables that every such name has. Only there is the
whole name read, and then its value, so that a long text without secrets costs no more than the search.
"""

import re
from functools import cached_property
from typing import Final

from supervisor.decide.masking.mark import MASK
from supervisor.decide.masking.names import IN_SENTENCES, Kind, SecretNames, is_secret

_SYLLABLES: Final = ("passw", "passph", "passc", "secret", "token", "apikey", "credential")
# These mean a secret only at the end of a longer name.
_LAST_SYLLABLES: Final = ("pass", "pwd", "key")
_NAME_CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789_.-"
_LONGEST_NAME: Final = 80
# Beyond this nothing is a word of a sentence. Whatever is left in place has to be short, or it would be read again
# from every name in it.
_LONGEST_WORD: Final = 256
# The only letter whose small form is longer than itself, which would shift everything after it.
_DOTTED_CAPITAL_I: Final = "\u0130"


class Assignments:
    """Finds the values of secret names in texts."""

    def __init__(self, names: SecretNames) -> None:
        self._names = names

    @cached_property
    def _hit(self) -> re.Pattern[str]:
        configured = sorted((re.escape(name) for name in self._names.configured), key=len, reverse=True)
        last = [f"{syllable}(?<=[a-z0-9_.-]{syllable})(?![a-z])" for syllable in _LAST_SYLLABLES]
        return re.compile("|".join([*configured, *_SYLLABLES, *last, "auth(?![a-z])"]))

    @cached_property
    def _rest_of_name(self) -> re.Pattern[str]:
        return re.compile(r"[a-z0-9_.-]*")

    @cached_property
    def _separator(self) -> re.Pattern[str]:
        return re.compile(
            r"""(?P<closing>\\?["'])?(?:[ \t]*(?P<sign>(?:=>|:=|=(?!=)|:(?!:|//))|(?<!["'\s])>)[ \t]*|[ \t]+)"""
        )

    @cached_property
    def _value(self) -> re.Pattern[str]:
        # A backslash can belong to a password, but before n, r, t or a quote it is an escape of the text around it.
        bare = (
            r"""(?:\[masked\]|[^\s"'`\\<>,;&|(){}\[\]]"""
            r"""|\\(?![nrt"'\\])"""
            r"""|(?<![=:\s>])[({\[]"""
            r"""|(?<![=:\s>])[)}\]](?=[^\s"'`\\<>,;&|(){}\[\]])"""
            r"""|(?<![=:\s>])[,;&](?![A-Za-z0-9_.-]*[=:]|[\s"'\\]|\Z))+"""
        )
        return re.compile(
            r"""\\"(?P<escaped>(?:[^"\\\n]|\\[^"\n])*)\\"|"(?P<double>(?:[^"\\\n]|\\.)*)\""""
            rf"""|'(?P<single>(?:[^'\\\n]|\\.)*)'|\\?["']?(?P<bare>{bare})"""
        )

    def mask(self, text: str) -> str:
        """The text with every value masked that a name makes a secret."""
        low = text.replace(_DOTTED_CAPITAL_I, "i").lower()
        pieces: list[str] = []
        done = read = 0
        for hit in self._hit.finditer(low):
            if hit.start() < read:
                continue
            rest = self._rest_of_name.match(low, hit.end())
            # Each name is read once, however many syllables it repeats.
            read = rest.end() if rest else hit.end()
            separator = self._separator.match(text, read)
            value = separator and self._secret_after(text, _name_start(low, hit.start()), separator)
            if value is None:
                continue
            start, end = value
            pieces += [text[done:start], MASK]
            done = read = end
        return "".join([*pieces, text[done:]]) if pieces else text

    def _secret_after(self, text: str, start: int, separator: re.Match[str]) -> tuple[int, int] | None:
        """Where the secret beside the name is, if there is one."""
        name = text[start : separator.start()]
        kind = self._names.kind(name)
        if kind is None:
            return None
        found = self._value.match(text, separator.end())
        if found is None or found.lastgroup is None:
            return None
        sign, quoted, is_option = separator["sign"], found.lastgroup != "bare", name.startswith("-")
        if sign is None and not is_option and not (quoted and kind is Kind.PASSWORD):
            return None
        if sign == ">" and not (start > 0 and text[start - 1] == "<"):
            return None
        value = found[found.lastgroup]
        if sign is None and is_option:
            firm = value.lower() not in IN_SENTENCES
        elif kind is Kind.TOKEN and sign != "=" and " " in value:
            # "token": "it has expired"
            firm = False
        else:
            right_after = separator[0] in ("=", ">")
            firm = quoted or right_after or (kind is Kind.PASSWORD and _ends_line(text, found.end()))
        if len(value) <= _LONGEST_WORD and not is_secret(kind, value, firm=firm):
            return None
        return found.span(found.lastgroup)


def _name_start(low: str, start: int) -> int:
    first = max(0, start - _LONGEST_NAME)
    start = first + len(low[first:start].rstrip(_NAME_CHARACTERS))
    # In escaped text a line break before the name reads as its first letter.
    return start + 1 if start and low[start - 1] == "\\" and low[start] in "nrt" else start


def _ends_line(text: str, end: int) -> bool:
    return end == len(text) or text[end] in "\r\n,\\"
