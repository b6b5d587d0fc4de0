"""Mask the data of Kubernetes secrets in manifests, as YAML and as JSON. Pure. Used by ``decide.masking``.

Its values are named by the operator and encoded, so neither their names nor their shapes give them away.
"""

import re
from functools import cache

from supervisor.decide.masking.mark import MASK


def mask_manifests(text: str) -> str:
    """The text with the data of every ``kind: Secret`` masked."""
    if "Secret" not in text or not _kind().search(text):
        return text
    text = _json_data().sub(lambda block: _json_value().sub(rf"\g<1>{MASK}", block[0]), text)
    documents = _document_start().split(text)
    return "".join(_mask_yaml(document) if _kind().search(document) else document for document in documents)


def _mask_yaml(document: str) -> str:
    lines: list[str] = []
    block: int | None = None
    for line in document.splitlines(keepends=True):
        found = _line().match(line)
        if found is None:
            lines.append(line)
            continue
        indent = len(found["indent"])
        if block is not None and indent <= block:
            block = None
        if block is not None:
            lines.append(_masked_line(line, found))
            continue
        if found["key"] in ("data", "stringData") and not found["value"]:
            block = indent
        lines.append(line)
    return "".join(lines)


def _masked_line(line: str, found: re.Match[str]) -> str:
    # A line without a key goes on with the value of the line before it.
    start = found.start("value") if found["key"] else found.end("indent")
    end = found.end("value")
    return line if start >= end or line[start:end] in ("|", ">", "|-", ">-", MASK) else line[:start] + MASK + line[end:]


@cache
def _kind() -> re.Pattern[str]:
    return re.compile(r"kind\\?[\"']?:[ \t]*\\?[\"']?Secret(?![A-Za-z])")


@cache
def _document_start() -> re.Pattern[str]:
    return re.compile(r"^(?=---|[ \t]*- (?:apiVersion|kind):)", re.MULTILINE)


@cache
def _line() -> re.Pattern[str]:
    # Tools put line numbers before what they print.
    return re.compile(
        r"(?:[ \t]*[0-9]+[→\t:])?(?P<indent>[ ]*)(?:(?P<key>[A-Za-z0-9_.\"'-]+):(?:[ \t]+|(?=[\r\n]|\Z)))?"
        r"(?P<value>[^\r\n]*)"
    )


@cache
def _json_data() -> re.Pattern[str]:
    return re.compile(r"\\?\"(?:data|stringData)\\?\"\s*:\s*\{[^{}]*\}")


@cache
def _json_value() -> re.Pattern[str]:
    return re.compile(r"(:\s*\\?\")(?!\[masked\])[^\"\\]+")
