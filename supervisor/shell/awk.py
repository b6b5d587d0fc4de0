"""Whether an awk program can do more than read and print. Pure. Called from ``interpreters``."""

import re

_TOKEN = re.compile(
    r'(?P<blank>[ \t]+|\#[^\n]*)|(?P<newline>\n)|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<word>[A-Za-z_][A-Za-z0-9_]*)'
    # As short as any awk takes a number to be: 1system("…") is a number and a call.
    r"|(?P<number>[0-9.]+(?:[eE][-+]?[0-9]+)?)|(?P<double>\|\||&&|>=|<=|==|!=|!~|\+\+|--)|(?P<other>.)",
    re.DOTALL,
)
# A slash or a bracket inside of brackets ends the expression for some awks and not for others.
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[(?:\^|(?!\^))(?:\]|(?!\]))(?:[^]\\\n/\[]|\\.|\[:[a-z]+:\])*\])*/")
_ACTS = frozenset({"system", "getline", "close", "fflush"})
_AFTER_OPERATOR = frozenset({"print", "printf", "return", "in", "case", "else", "do", "exit", "next", "nextfile"})
_BEFORE_STATEMENT = frozenset({"if", "while", "for", "switch"})


def awk_acts(program: str) -> bool:
    """Whether the program starts commands, opens files or loads code; also when that cannot be told."""
    # Awks join such lines at different places, some of them inside of words.
    if "\\\n" in program:
        return True
    position = 0
    operand = printing = False
    before = ""
    opened: list[str] = []  # what stands before each parenthesis that is open
    while position < len(program):
        if program[position] == "/" and not operand:
            regex = _REGEX.match(program, position)
            if regex is None:
                return True
            position, operand, before = regex.end(), True, "/"
            continue
        token = _TOKEN.match(program, position)
        if token is None:
            return True
        position = token.end()
        kind, text = token.lastgroup, token.group()
        if kind == "blank":
            continue
        if kind == "newline":
            # After anything but a value, most of all a comma, the statement goes on in the next line.
            printing = printing and not operand and before not in ("print", "printf")
            operand = False
            continue
        if text in _ACTS or text in ("|", "@", '"', "'", "`", "\\"):
            return True
        if text == ">" and printing:
            return True
        if text in ("print", "printf"):
            printing = True
        elif text in (";", "}", "{"):
            printing = False
        operand = _is_operand(kind, text, before, opened)
        before = text
    return False


def _is_operand(kind: str | None, text: str, before: str, opened: list[str]) -> bool:
    """Whether a slash after this token divides; else it begins a regular expression."""
    if text == "(":
        opened.append(before)
    elif text == ")":
        return (opened.pop() if opened else "") not in _BEFORE_STATEMENT
    if kind == "word":
        return text not in _AFTER_OPERATOR
    return kind in ("text", "number") or text in ("]", "$", "++", "--")
