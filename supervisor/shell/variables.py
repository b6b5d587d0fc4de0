"""Which variables have a value that is certain: assigned once, to a literal, and touched by nothing else. Pure."""

import re

_UNCERTAIN = re.compile(
    r"\b(?:eval|source|read|readarray|mapfile|declare|typeset|local|export|readonly|unset|getopts|let|select|coproc|wait"
    r"|trap|IFS|alias|set|shopt|env)\b|printf\s+-v|\(\(|\$\[|\$\{[^}A-Za-z_#]|(?:^|[\s;&|(])\.\s",
    re.ASCII,
)
_SET_BY_SHELL = re.compile(
    r"BASH.*|COMP.*|DIRSTACK|EPOCH.*|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTNAME|HOSTTYPE|LINENO|MACHTYPE|MAPFILE|OLDPWD|OPT.*"
    r"|OSTYPE|PIPESTATUS|PPID|PWD|RANDOM|READLINE.*|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_"
)
SAFE_VALUE = re.compile(r"[A-Za-z0-9_./:@%+,=-]+", re.ASCII)


class CertainNames:
    """Answers for one script whether a variable, once assigned, keeps that value to the end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._hopeless: bool | None = None

    def keeps(self, name: str, *, by_loop: bool = False) -> bool:
        """Every mention of the name is a plain use, but for the one that assigns it."""
        if self._hopeless is None:
            self._hopeless = _UNCERTAIN.search(self._source) is not None
        if self._hopeless or _SET_BY_SHELL.fullmatch(name):
            return False
        mentions = len(re.findall(rf"\b{name}\b", self._source, re.ASCII))
        uses = len(re.findall(rf"\$(?:{name}\b|\{{{name}\}})", self._source, re.ASCII))
        # An option of one letter is no mention: nothing can be assigned to it.
        options = len(re.findall(rf"(?<=\s)-{name}(?=[\s;|&)'\"]|$)", self._source, re.ASCII))
        pattern = rf"\bfor\s+{name}\s+in\b" if by_loop else rf"(?<![\w$]){name}="
        return len(re.findall(pattern, self._source, re.ASCII)) == 1 and mentions - options == uses + 1
