"""Decode the inside of a ``$'…'`` quote. Pure. Called from ``scan``; works on the byte view of the source."""

import re

_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(\\\\|.)|(.))", re.DOTALL
)
_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def decode_ansi_c(inside: str) -> str:
    """The quoted text as bash would pass it on: cut at the first NUL, as C strings are."""
    return _ESCAPE.sub(_decoded, inside).partition("\0")[0]


def _decoded(found: re.Match[str]) -> str:
    byte, short, long, octal, control, plain = found.groups()
    if byte is not None:
        return chr(int(byte, 16))
    if octal is not None:
        return chr(int(octal, 8) & 0xFF)
    if short is not None or long is not None:
        number = int(short or long, 16)
        encodable = number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
        return chr(number).encode("utf-8").decode("latin-1") if encodable else "\ufffd".encode().decode("latin-1")
    if control is not None:
        return chr(ord(control[0]) & 0x1F)
    if plain in "\\'\"?":
        return plain
    return _NAMED.get(plain, "\\" + plain)
