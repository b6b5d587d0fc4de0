"""The shape of the document: the keys of each table, the variable of each setting, the secrets. Pure.

Derived from ``settings.schema``, so that a new key needs no second list. Called from ``settings.environment`` and
``settings.explain``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr

from supervisor.settings.agent_env import OWN_PREFIX
from supervisor.settings.problems import KeyPath
from supervisor.settings.schema import Document

Names = tuple[str, ...]

_FREE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """``tables`` has the keys of each table by its path, with ``*`` for a key the operator is free to choose.

    An element of a list stands under the list's own path.
    """

    tables: Mapping[Names, Names]
    variables: Mapping[str, Names]
    secrets: frozenset[Names]

    def keys(self, path: KeyPath) -> Names:
        """The keys that the table at this path may have."""
        names = _names(path)
        fitting = (
            keys
            for table, keys in self.tables.items()
            if len(table) == len(names) and all(a in (b, _FREE) for a, b in zip(table, names, strict=True))
        )
        return next(fitting, ())

    def elsewhere(self, key: str) -> str | None:
        """The one setting of this name in another table."""
        found = [".".join((*table, key)) for table, keys in self.tables.items() if key in keys]
        return found[0] if len(found) == 1 else None

    def hides(self, path: KeyPath) -> bool:
        """Whether a value at this path must not be shown: secrets, and whatever the operator gives the agent."""
        names = _names(path)
        return names in self.secrets or names[:2] == ("claude", "env")


@cache
def outline(model: type[BaseModel] = Document) -> Outline:
    """The outline of a document."""
    tables: dict[Names, Names] = {}
    variables: dict[str, Names] = {}
    secrets: set[Names] = set()
    for path, parts, in_list in _walk(model, (), in_list=False):
        tables[path[:-1]] = (*tables.get(path[:-1], ()), path[-1])
        if SecretStr in parts:
            secrets.add(path)
        if not in_list and len(path) > 1 and _model_in(parts) is None:
            variables[OWN_PREFIX + "__".join(path).upper()] = path
    return Outline(tables=tables, variables=variables, secrets=frozenset(secrets))


def _walk(model: type[BaseModel], above: Names, *, in_list: bool) -> Iterator[tuple[Names, list[Any], bool]]:
    for name, field in model.model_fields.items():
        path = (*above, field.alias or name)
        parts = list(_parts(field.annotation))
        yield path, parts, in_list
        inner = _model_in(parts)
        if inner is not None:
            below = (*path, _FREE) if _is_mapping(parts) else path
            yield from _walk(inner, below, in_list=in_list or any(get_origin(part) is tuple for part in parts))


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _model_in(parts: list[Any]) -> type[BaseModel] | None:
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)


def _is_mapping(parts: list[Any]) -> bool:
    origins = (get_origin(part) for part in parts)
    return any(isinstance(origin, type) and issubclass(origin, Mapping) for origin in origins)


def _names(path: KeyPath) -> Names:
    return tuple(part for part in path if isinstance(part, str))
