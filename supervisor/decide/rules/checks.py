"""The checks that a pattern can ask for by name. Pure. Called from ``matching``.

Each looks at a whole command, and at the one before it in the text, and says whether it does no more than its name
promises.
"""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from supervisor.decide.rules.http_read import only_reads_http
from supervisor.decide.rules.own_names import names_are_harmless
from supervisor.decide.rules.sed_read import only_reads_sed
from supervisor.decide.rules.sql_read import only_reads_sql
from supervisor.model.reading import Command

_AWK_OWN: Final = re.compile(r"\b(?:ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB)\b")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._:-]*")
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9.,-]*")
_NO_KINDS: Final = frozenset({"-n", "--namespace", "-l", "--selector", "--context", "--field-selector"})
_MADE_UP: Final = re.compile(r"(?:^|=|^-f)-$|<\(|://|@.*:")
_PLAIN_MODE: Final = re.compile(r"0?[0-7]{3}|[ugoa]*[-+=][rwxX]*(?:,[ugoa]*[-+=][rwxX]*)*")
_ENVIRONMENT: Final = re.compile(
    r"\$\s*(?:ENV\b|#)|\b(?:import|include)\s*\"|\$__prog|(?<![.\w$\"])(?:env|strenv|envsubst|load\w*)(?![\w:\"])"
)


def only_filters(command: Command, before: Command | None) -> bool:  # noqa: ARG001 - one signature for all
    """For ``jq`` and ``yq``: the filter looks neither into the environment nor into files that it names itself."""
    return not any(_ENVIRONMENT.search(word.text) for word in command.words)


def only_prints(command: Command, before: Command | None) -> bool:  # noqa: ARG001 - one signature for all
    """For ``awk``: the program neither looks into the environment nor chooses its own input."""
    return not any(_AWK_OWN.search(word.text) for word in command.argv[1:])


def names_plainly(command: Command, before: Command | None) -> bool:  # noqa: ARG001 - one signature for all
    """Every word is the name of something, neither a path nor a pattern."""
    return all(word.static and _PLAIN_NAME.fullmatch(word.text) for word in command.words)


def grants_plainly(command: Command, before: Command | None) -> bool:  # noqa: ARG001 - one signature for all
    """For ``chmod``: reading, writing and executing, but not running as somebody else."""
    return bool(command.words) and _PLAIN_MODE.fullmatch(command.words[0].text) is not None


def sets_nothing(command: Command, before: Command | None) -> bool:  # noqa: ARG001 - one signature for all
    """No word is, or may turn out to be, ``name=value``."""
    return all(word.static and "=" not in word.text for word in command.words)


def names_its_kind(command: Command, _: Command | None) -> bool:
    """For ``kubectl get``: what is asked for is written out, so that a rule against secrets can see it."""
    if any(option.value is not None and ".." in option.value for option in command.options):
        return False
    verb = next((index for index, word in enumerate(command.argv) if word.text == "get"), len(command.argv))
    kind = next(iter(command.argv[verb + 1 :]), None)
    if kind is not None and kind.static and _KIND.fullmatch(kind.text):
        return True  # what follows can only be names
    return all(word.static or before.text in _NO_KINDS for before, word in pairwise(command.argv))


def is_local(command: Command, before: Command | None) -> bool:  # noqa: ARG001 - one signature for all
    """For ``tar``: no archive is on another host, where it would be fetched by a shell."""
    return not any(":" in word.text.partition("/")[0] for word in command.argv[1:])


def keeps_its_files(command: Command, before: Command | None) -> bool:  # noqa: ARG001 - one signature for all
    """For ``compose``: no file is made up by the text itself, or fetched from elsewhere."""
    return not any(_MADE_UP.search(word.text) for word in command.argv[1:])


def hides_environments(command: Command, before: Command | None) -> bool:  # noqa: ARG001 - one signature for all
    """For ``ps``: no column shows the variables of processes."""
    return not any("environ" in word.text for word in command.argv[1:])


def sends_nothing(command: Command, before: Command | None) -> bool:
    """Nothing to speak of comes in on standard input: it is empty, or the output of a bare ``echo``."""
    for redirect in command.redirects:
        if redirect.operator[:1] == "<" and redirect.descriptor in (None, "0"):
            return redirect.operator == "<" and redirect.target.static and redirect.target.text == "/dev/null"
    return before is not None and before.name in ("echo", "true", ":") and not before.words and not before.redirects


CHECKS: Final[Mapping[str, Callable[[Command, Command | None], bool]]] = {
    "http-read": lambda command, _: only_reads_http(command),
    "sed-read": lambda command, _: only_reads_sed(command),
    "sql-read": lambda command, _: only_reads_sql(command),
    "own-names": lambda command, _: names_are_harmless(command),
    "awk-read": only_prints,
    "jq-read": only_filters,
    "plain-mode": grants_plainly,
    "plain-names": names_plainly,
    "kept-files": keeps_its_files,
    "kube-kind": names_its_kind,
    "local-file": is_local,
    "no-environ": hides_environments,
    "no-equals": sets_nothing,
    "no-input": sends_nothing,
}
