"""What pydantic found wrong → problems with file, line, key and a suggestion. Pure.

Called from ``settings.load``, and only loaded when something is wrong.
"""

import re
from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from supervisor.settings.outline import Outline
from supervisor.settings.problems import KeyPath, Problem, Unsuitable, closest, kind, shown
from supervisor.settings.source import Source

_WORDS: Final = {
    "bool_type": "should be true or false",
    "float_type": "should be a number",
    "finite_number": "should be a finite number",
    "int_type": "should be a whole number",
    "missing": "has to be set",
    "path_type": "should be a path",
    "string_too_short": "should not be empty",
    "string_type": "should be a string",
    "tuple_type": "should be a list",
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "should be a table"),
}
_WITHOUT_VALUE: Final = frozenset({"missing", "string_too_short"})
_WRONG_SHAPE: Final = frozenset({"dict_type", "mapping_type", "model_type", "tuple_type"})
_QUOTED: Final = re.compile(r"'([^']*)'")


def explain(error: ValidationError, source: Source, outline: Outline) -> Iterator[Problem]:
    """One problem for each thing that pydantic found."""
    for found in error.errors(include_url=False):
        # pydantic marks a wrong key of a free table with an extra part.
        path = tuple(part for part in found["loc"] if part != "[key]")
        if found["type"] == "extra_forbidden":
            yield _unknown(path, source, outline)
            continue
        what = _what(found)
        if found["type"] in _WRONG_SHAPE:
            # By kind only: what stands in place of a whole table may be anything, a secret too.
            what += f" (got {kind(found['input'])})"
        elif found["type"] not in _WITHOUT_VALUE and found["input"] != [] and not outline.hides(path):
            what += f" (got {shown(found['input'])})"
        yield source.problem(path, what, _suggestion(found))


def _unknown(path: KeyPath, source: Source, outline: Outline) -> Problem:
    """Never with its value: a misspelt secret is still a secret."""
    *table, key = path
    name = str(key)
    what = "unknown key" if table else "unknown section or key"
    return source.problem(path, what, closest(name, outline.keys(tuple(table))) or outline.elsewhere(name))


def _what(found: ErrorDetails) -> str:
    raised = found.get("ctx", {}).get("error")
    if isinstance(raised, ValueError):
        return str(raised)
    return _WORDS.get(found["type"]) or found["msg"].removeprefix("Input ").removeprefix("String ")


def _suggestion(found: ErrorDetails) -> str | None:
    context = found.get("ctx", {})
    if found["type"] == "literal_error":
        return closest(str(found["input"]), _QUOTED.findall(str(context.get("expected"))))
    raised = context.get("error")
    return raised.suggestion if isinstance(raised, Unsuitable) else None
