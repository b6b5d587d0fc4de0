"""Known secrets: where they are found, and the forms they are written in. Pure. For ``decide.masking`` and settings."""

from collections.abc import Iterable, Iterator, Mapping

from supervisor.decide.masking.mark import MASK
from supervisor.decide.masking.names import Kind, SecretNames, is_path, is_placeholder, looks_random

# A shorter one stands in too many words that are none.
SHORTEST = 6
_LEAST_CUT_OFF = 8


def secrets_among(variables: Mapping[str, str], names: SecretNames) -> Iterator[str]:
    """The secrets in an environment: values whose name says so, and passwords inside of addresses."""
    for name, value in variables.items():
        if _is_known_secret(names.kind(name), value):
            yield value
        yield from passwords_in(value)


def _is_known_secret(kind: Kind | None, value: str) -> bool:
    match kind:
        case None:
            return False
        case Kind.CONFIGURED:
            return True
        case Kind.KEY:
            # A deploy key called "production" would take that word out of every record.
            return looks_random(value)
        case Kind.PASSWORD | Kind.TOKEN:
            return not is_path(value) and not is_placeholder(value)


def passwords_in(address: str) -> Iterator[str]:
    """The passwords in a URL, as written and as meant."""
    if "://" not in address:
        return
    # Here, not above: most values are no addresses.
    from urllib.parse import parse_qsl, unquote, urlsplit

    try:
        parts = urlsplit(address)
    except ValueError:
        return
    if parts.password:
        yield parts.password
        yield unquote(parts.password)
    names = SecretNames()
    for name, value in parse_qsl(parts.query):
        if names.kind(name) is not None:
            yield value


def forms_of(values: Iterable[str]) -> tuple[str, ...]:
    """Every form in which the values may stand in a text, longest first."""
    found = {form for value in values if len(value) >= SHORTEST for form in _forms(value)}
    return tuple(sorted((form for form in found if form not in MASK), key=lambda form: (-len(form), form)))


def without_cut_off(text: str, values: Iterable[str]) -> str:
    """The text without the better part of a secret at its end, where a long text was cut off."""
    for value in values:
        for length in range(len(value) - 1, max(_LEAST_CUT_OFF, len(value) // 2) - 1, -1):
            if text.endswith(value[:length]):
                return text[:-length] + MASK
    return text


def _forms(value: str) -> Iterator[str]:
    import json
    from binascii import b2a_base64
    from urllib.parse import quote, quote_plus

    yield value
    raw = value.encode("utf-8", "surrogateescape")
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield _lower_escapes(quoted)
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")
    # In base64 a text looks different at each of three offsets; only the characters that it alone decides are sought.
    for before in range(3):
        encoded = b2a_base64(b"\0" * before + raw, newline=False).rstrip(b"=").decode("ascii")
        first = -(-before * 8 // 6)
        last = (before + len(raw)) * 8 // 6
        core = encoded[first:last]
        if len(core) >= SHORTEST:
            yield core
            yield core.replace("+", "-").replace("/", "_")


def _lower_escapes(quoted: str) -> str:
    head, *rest = quoted.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])
