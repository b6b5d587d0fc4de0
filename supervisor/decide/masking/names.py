"""Which names mean a secret, and which values beside such a name are none. Pure. Used by ``decide.masking``.

A name is read as its words: ``dbPassword``, ``DB_PASSWORD`` and ``db.password`` are the same two. What counts or
describes secrets (``max_tokens``, ``token_count``, ``secretName``) names none.
"""

import re
from collections.abc import Iterable
from enum import Enum, auto
from functools import lru_cache

from supervisor.decide.masking.mark import MASK


class Kind(Enum):
    """How sure a name makes us that the value beside it is a secret, surest first."""

    CONFIGURED = auto()
    PASSWORD = auto()
    TOKEN = auto()
    KEY = auto()


_PASSWORD_ENDS = ("password", "passwd", "passphrase", "passcode", "sshpass")
_SHORT_PASSWORDS = frozenset({"pass", "pwd"})
_TOKEN_ENDS = ("token", "secret", "apikey", "credential", "credentials")
# Names that end so say something about a secret and do not hold it.
_ABOUT = frozenset(
    {
        *("age", "algorithm", "api", "arn", "at", "authentication", "budget", "change", "changed", "class", "count"),
        *("created", "data", "dir", "directory", "enabled", "endpoint", "env", "error", "errors", "exists"),
        *("expiration", "expired", "expires", "expiry", "field", "file", "files", "format", "generator", "group"),
        *("header", "id", "ids", "index", "interval", "issuer", "kind", "length", "len", "limit", "lifetime"),
        *("limits", "list", "lookup", "manager", "max", "method", "min", "mode", "name", "names", "namespace"),
        *("parameter", "path", "paths", "policy", "prefix", "provider", "ref", "refs", "regex", "required", "reset"),
        *("revoked", "rotation", "rule", "rules", "scope", "scopes", "service", "size", "source", "state", "status"),
        *("stdin", "store", "strength", "timeout", "ttl", "type", "types", "updated", "uri", "url", "usage", "used"),
        *("user", "username", "valid", "validation", "version"),
    }
)
_COUNTING = frozenset({"max", "min", "num", "total", "count", "per", "avg", "proxy"})
_SECRET_KEYS = frozenset({"access", "api", "encryption", "master", "private", "signing"})
_ORDINARY_KEYS = frozenset(
    {
        *("arrow", "cache", "column", "config", "dedup", "default", "dict", "event", "foreign", "group", "hash"),
        *("host", "hot", "idempotency", "index", "json", "known", "label", "lookup", "map", "message", "metric"),
        *("object", "ordering", "partition", "primary", "public", "range", "registry", "row", "routing", "shift"),
        *("sort", "tag", "topic", "translation", "unique"),
    }
)
_NOTHING = frozenset(
    {
        *("<unset>", "empty", "false", "hidden", "masked", "n/a", "nil", "no", "none", "null", "off", "on"),
        *("redacted", "true", "undefined", "unknown", "unset", "yes"),
    }
)
# What follows a name in sentences and in the help of programs.
IN_SENTENCES = frozenset(
    {
        *("and", "any", "as", "env", "expired", "failed", "file", "flag", "for", "from", "if", "in", "int"),
        *("invalid", "is", "missing", "must", "not", "ok", "option", "optional", "or", "password", "required"),
        *("rejected", "secret", "set", "stdin", "str", "string", "text", "the", "to", "token", "value", "was"),
        "wrong",
    }
)


@lru_cache(maxsize=4096)
def kind_by_shape(name: str) -> Kind | None:
    """What a name means by the words in it."""
    words = [word.lower() for word in _words().findall(name)]
    if not words or words[-1] in _ABOUT or not _COUNTING.isdisjoint(words):
        return None
    if any(word.endswith(_PASSWORD_ENDS) for word in words) or (len(words) > 1 and words[-1] in _SHORT_PASSWORDS):
        return Kind.PASSWORD
    if any(word.endswith(_TOKEN_ENDS) for word in words):
        return Kind.TOKEN
    if len(words) > 1 and words[-1] == "key":
        before = words[-2]
        return Kind.TOKEN if before in _SECRET_KEYS else None if before in _ORDINARY_KEYS else Kind.KEY
    return Kind.KEY if words[-1] == "auth" else None


class SecretNames:
    """The names an operator has called secret, and those that are by their shape."""

    def __init__(self, configured: Iterable[str] = ()) -> None:
        self.configured = frozenset(name.strip().lower() for name in configured if name.strip())

    def kind(self, name: str) -> Kind | None:
        bare = name.lower().strip("-")
        return Kind.CONFIGURED if bare in self.configured else kind_by_shape(name)


def is_secret(kind: Kind, value: str, *, firm: bool) -> bool:
    """Whether a value beside a name of this kind is a secret.

    ``firm`` when it stands there as a value does, in quotes or right after ``=``. A word after a colon or an option
    can be the rest of a sentence.
    """
    if not value or is_placeholder(value) or (not firm and value.lower() in IN_SENTENCES):
        return False
    match kind:
        case Kind.CONFIGURED:
            return True
        case Kind.PASSWORD:
            return not is_path(value) and (firm or not value.isalpha())
        case Kind.TOKEN if firm:
            return len(value) >= 4 and not is_path(value)
        case Kind.TOKEN | Kind.KEY:
            return looks_random(value)


def is_placeholder(value: str) -> bool:
    """Whether a value says that there is none, hides it already, or only refers to it."""
    return value.lower() in _NOTHING or value == MASK or _reference().fullmatch(value) is not None


def is_path(value: str) -> bool:
    return _path().match(value) is not None


def looks_random(value: str) -> bool:
    """Whether a value is no word, number or path that a person would write."""
    if len(value) < 8 or " " in value or is_path(value):
        return False
    has_letters = any(c.isalpha() for c in value)
    return has_letters and (any(c.isdigit() for c in value) or (len(value) >= 20 and value.lower() != value))


@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    return re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@lru_cache(maxsize=1)
def _path() -> re.Pattern[str]:
    roots = "app|data|dev|etc|home|mnt|opt|proc|root|run|secrets|srv|sys|tmp|usr|var|vault"
    return re.compile(rf"(?:~|\.{{1,2}}|file:/|/(?:{roots}))/")


@lru_cache(maxsize=1)
def _reference() -> re.Pattern[str]:
    return re.compile(
        r"\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|\$[({].*|\{\{.*|%[a-zA-Z_]+%?|%\(.*|<.*|@.*"
        r"|\*+|[xX]{3,}|\.{3,}|…+|-+"
        r"|(?:os\.environ|process\.env|os\.getenv|getenv|env\.|self\.|args\.|settings\.|config\.).*",
        re.DOTALL,
    )
