"""Whether an awk program can do more than read and print. Pure. Called from ``interpreters``."""

import re

_TOKEN = re.compile(
    r'(?P<blank>[ \t\n]+|\\\n|\#[^\n]*)|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<word>[A-Za-z_][A-Za-z0-9_]*)'
    r"|(?P<number>[0-9.][0-9A-Za-z.]*)|(?P<double>\|\||&&|>=|<=|==|!=|!~|\+\+|--)|(?P<other>.)",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\]?(?:[^\]\\\n]|\\.)*\])*/")
_ACTS = frozenset({"system", "getline", "close", "fflush"})
_AFTER_OPERATOR = frozenset({"print", "printf", "return", "in", "case", "else", "do"})


def awk_acts(program: str) -> bool:
    """Whether the program starts commands, opens files or loads code; also when that cannot be told."""
    position = 0
    operand = printing = False
    while position < len(program):
        if program[position] == "/" and not operand:
            regex = _REGEX.match(program, position)
            if regex is None:
                return True
            position, operand = regex.end(), True
            continue
        token = _TOKEN.match(program, position)
        if token is None:
            return True
        position = token.end()
        kind, text = token.lastgroup, token.group()
        if kind == "blank":
            printing = printing and "\n" not in text
            continue
        if text in _ACTS or text in ("|", "@", '"', "'", "`"):
            return True
        if text == ">" and printing:
            return True
        if text in ("print", "printf"):
            printing = True
        elif text in (";", "}", "{"):
            printing = False
        operand = (
            kind in ("text", "number") or text in (")", "]", "$") or (kind == "word" and text not in _AFTER_OPERATOR)
        )
        if text in ("++", "--"):
            operand = True
    return False
