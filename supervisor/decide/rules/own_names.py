"""Variables: which may be set for another program, and builtins that set them by name. Pure.

Called from ``matching``, ``checks`` and ``shell_text``. What reaches another program's environment has to be
known as harmless, because every program has variables of its own that make it load or start something. A variable of
the shell alone may have any name but those that steer. ``read PATH`` is an assignment without looking like one.
"""

import re
from typing import Final

from supervisor.model.reading import Assignment, Command, Word

DECLARES: Final = frozenset({"declare", "typeset", "local", "export", "readonly"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HARMLESS: Final = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|COLUMNS|LINES|TERM|NO_COLOR|CLICOLOR|BLOCKSIZE|BLOCK_SIZE|TIME_STYLE|DEBIAN_FRONTEND"
    r"|PG(?:PASSWORD|HOST|PORT|USER|DATABASE|CONNECT_TIMEOUT)|MYSQL_PWD|REDISCLI_AUTH|AWS_(?:DEFAULT_)?REGION|ETCDCTL_API"
)
_NO_VALUE: Final = Word(text="", dynamic=True)


def is_harmless(assignment: Assignment) -> bool:
    """Whether any program may be given this variable. The name of a locale can be a path to load from."""
    if assignment.name.endswith("PAGER"):
        return not assignment.steers
    if assignment.name[:2] in ("LC", "LA") and (not assignment.value.static or "/" in assignment.value.text):
        return False
    return _HARMLESS.fullmatch(assignment.name) is not None


def names_are_harmless(command: Command) -> bool:
    """Whether a builtin fills no variable that steers other programs, and hands none on to them."""
    if command.name == "printf" and not command.has_option("-v"):
        return not any(word.maybe_option for word in command.argv[1:2])
    if command.name in DECLARES:
        letters = "".join(option.text.lstrip("-") for option in command.options)
        if "n" in letters:
            return False  # another name for a variable, which may be one that steers
        if command.name == "export" or "x" in letters:
            given = {one.name for one in command.assignments if is_harmless(one)}
            return all(word.text.partition("=")[0] in given for word in command.words)
    return not any(_may_steer(word) for word in command.argv[1:])


def steers(name: str) -> bool:
    """Whether setting a variable of this name can change which code runs, whatever its value."""
    return Assignment(name=name, value=_NO_VALUE).steers


def _may_steer(word: Word) -> bool:
    if not word.static:
        return "=" not in word.text or word.leading
    name = word.text.lstrip("-").partition("=")[0].partition("[")[0].rstrip("+")
    if word.text[:2] == "-v":
        name = word.text[2:] or "_"
    return _NAME.fullmatch(name) is not None and steers(name)
