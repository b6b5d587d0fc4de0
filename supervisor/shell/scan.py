"""Scan a whole script: its end, its here-documents and its outline for tree-sitter. Pure. Called from ``walk``."""

import re
from dataclasses import dataclass

from supervisor.model.reading import OpaqueKind, Word
from supervisor.shell.outline import NEVER_PLAIN, PLAIN, Outline
from supervisor.shell.pieces import RawWord, plain_word, text_of
from supervisor.shell.quotes import WordScanner
from supervisor.shell.unreadable import Unreadable

# Arguments without quotes and expansions, one after another. Only of ASCII, so that whoever splits them at blanks finds
# no others; each ends where any shell ends it, for the rest of a longer word must never be taken for another one.
ARGUMENTS = re.compile(
    r"(?:[ \t]+[!%*+,./0-9:=?@A-Z\[\]^_a-z{}~-][!#%*+,./0-9:=?@A-Z\[\]^_a-z{}~-]*(?=[ \t\n;|&)]|\Z))+"
)
# A program and its first arguments, in group 1, as far as they stand for exactly themselves, maybe with quotes around
# the whole of one. Group 2 is the program; group 3 ends the command, if nothing else does. Only of ASCII, too.
_BEGINNING = re.compile(
    r"[ \t]*(([A-Za-z_][A-Za-z0-9_-]*)(?=[ \t\n;|&)]|\Z)"
    r"(?:[ \t]+(?:[!%+,./0-9:=@A-Z\]^_a-z}~-][!#%+,./0-9:=@A-Z\]^_a-z}~-]*|'[^'\x80-\xff]*'"
    r"|\"[^\\\"$`\x00\r\x80-\xff]*\")(?=[ \t\n;|&)]|\Z))*)"
    r"([ \t]*(?:\n|;(?![;&])|&&|\|\||\|(?![&|])))?"
)
_BEGINNING_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|[^ \t'\"]+")
# Blanks, and the word behind them if it has neither quotes nor expansions; group 1 if it is plain, else group 2.
_BLANKS_AND_LITERAL = re.compile(
    r"[ \t]*(?:([A-Za-z0-9_-]+)(?=[ \t\n;|&)]|\Z)|([^# \t\n\\'\"$`|&;()<>\x00-\x08\x0b-\x1f\x7f]"
    r"[^ \t\n\\'\"$`|&;()<>\x00-\x08\x0b-\x1f\x7f]*)(?=[ \t\n;|&)]|\Z))?"
)
_OPERATOR = re.compile(r"&>>|&>|<<<|<<-|<<|<&|>&|>>|>\||<>|[<>](?!\()|;;&|;;|;&|;|&&|&|\|\||\|&|\|")
ARRAY_START = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[A-Za-z0-9_@*+-]*\])?\+?=\(")
_BLANK_OR_NEWLINE = re.compile(r"(?:[ \t\n]|\\\n)*")
_LOOP_SUMS = re.compile(r"\(\([A-Za-z0-9_ \t=<>+*/%!,;$?-]*\)\)")
_LOOP = re.compile(r"(?:^|[^A-Za-z0-9_./-])for[ \t]*\Z")
# Tree-sitter takes quadratic time to recover from errors: these many tokens of nonsense cost about a tenth of a second.
_MOST_TOKENS = 4_000
_LONGEST_SUM = 2_000
_DEEPEST_PARENTHESES = 60
_TABS = re.compile(r"^\t+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Announced:
    start: int
    end: int
    delimiter: str
    strips_tabs: bool
    literal: bool


class Scanner(WordScanner):
    """Reads one source, words and script level. ``outline`` comes first: it finds the here-documents."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.bodies: dict[int, RawWord] = {}
        self.begun: dict[int, tuple[int, tuple[Word, ...]]] = {}  # where what a command begins with ends, and its words
        self._tokens = 0

    def outline(self) -> str:
        """The source for tree-sitter. Fills ``bodies``: the here-documents by the position of their operator."""
        outline = Outline(self.source)
        self._scan(0, outline)
        return outline.render()

    def script_end(self, position: int) -> int:
        return self._scan(position, None)

    def sum_end(self, position: int) -> int:
        """Everything between ``((`` and ``))`` has to be what sums consist of.

        With quotes or a semicolon inside, bash, its versions and other shells differ on whether this is a sum or two
        nested subshells, and on what runs then.
        """
        source, size, start = self.source, len(self.source), position
        depth = 0
        scratch = RawWord()
        self.enter(position)
        while position < size and position - start <= _LONGEST_SUM:
            character = source[position]
            if character == "$":
                position = self._dollar(scratch, position, in_double=True)
                continue
            if character == "`":
                position = self._backtick(scratch, position, in_double=True)
                continue
            if character in "'\"\\;{}":
                break
            depth += (character == "(") - (character == ")")
            if depth < 0:
                break
            position += 1
        if depth >= 0 or not source.startswith("))", position):
            text = text_of(source[start - 2 : start + 60])
            raise Unreadable(OpaqueKind.UNSUPPORTED, text, "shells may read (( as a sum or as two subshells")
        self.leave()
        return position + 2

    def array(self, position: int) -> tuple[list[RawWord], int]:
        """The words of an array whose opening parenthesis stands just before, and the position after it."""
        source, start = self.source, position
        values: list[RawWord] = []
        while True:
            blank = _BLANK_OR_NEWLINE.match(source, position)
            position = blank.end() if blank else position
            if source.startswith(")", position):
                return values, position + 1
            word = self.word(position)
            if word.size == 0 or source[position] == "#":
                raise self.broken(start, "an array is not a plain list of words")
            values.append(word)
            position += word.size

    def _scan(self, start: int, outline: Outline | None) -> int:
        """Go over a script token by token; without an outline, to the parenthesis that closes it.

        Parentheses are merely counted, but for the ones after ``case`` patterns. Should that ever be wrong, the piece
        that was cut out does not parse and is refused.
        """
        self.enter(start)
        source, size, nested = self.source, len(self.source), outline is None
        outline = outline or Outline(source)
        announced: list[_Announced] = []
        next_word, next_arguments = _BLANKS_AND_LITERAL.match, ARGUMENTS.match
        position, depth = start, 0
        while position < size:
            if outline.at_start and not announced:
                # Most commands are nothing else, and leave the outline as they found it.
                begun = _BEGINNING.match(source, position)
                if begun and begun[2] not in NEVER_PLAIN:
                    texts = _texts(begun[1])
                    at, end = begun.span(1)
                    if not nested:
                        self.begun[at] = end, tuple([plain_word(text) for text in texts])
                    if len(texts) > 1:
                        outline.fill(at + len(texts[0]) + 1, end, "W")
                    position = begun.end()
                    ended = position > end
                    self._count(start, len(texts) + ended)
                    if not ended:
                        outline.begin(begun[2])
                    continue
            elif outline.in_arguments:
                # Most of a script are arguments, of which neither the outline nor this loop need know but the end.
                arguments = next_arguments(source, position)
                if arguments:
                    self._count(start, len(arguments[0].split()))
                    end = arguments.end()
                    outline.fill(position + 1, end, "W")
                    position = end
                    if position == size:
                        break
            character = source[position]
            if character not in "\n;|&)":
                found = next_word(source, position)
                position = found.end() if found else position
                group = found.lastindex if found else None
                if found and group:
                    self._count(start, 1)
                    text = found[group]
                    outline.word(position - len(text), position, text, plain=group == 1)
                    continue
                if position == size:
                    break
                character = source[position]
            self._count(start, 1)
            operator = _OPERATOR.match(source, position) if character in "<>&|;" else None
            if character == "\n":
                outline.separator()
                position += 1
                for mark in announced:
                    position = self._here_document(position, mark, None if nested else outline)
                announced.clear()
            elif character == "#":
                newline = source.find("\n", position)
                comment, position = position, size if newline < 0 else newline
                outline.fill(comment, position, " ")
            elif source.startswith("\\\n", position):
                outline.fill(position, position + 2, " ")
                position += 2
            elif operator and operator.group() in ("<<", "<<-"):
                announced.append(self._announcement(position, len(operator.group())))
                outline.fill(position + 1, announced[-1].end, "W")
                position = announced[-1].end
            elif operator:
                position = self._operator(operator, outline)
            elif character == "(":
                before, position = position, self._parenthesis(position, outline)
                depth += position == before + 1
                if depth > _DEEPEST_PARENTHESES:
                    raise Unreadable(OpaqueKind.TOO_DEEP, text_of(source[start : start + 60]), "it nests too deeply")
            elif character == ")":
                outline.separator()
                position += 1
                depth -= depth > 0 or outline.open_cases == 0
                if depth < 0 and not nested:
                    raise self.broken(position - 1, "a parenthesis was never opened")
                if depth < 0:
                    break
            else:
                before, position = position, self._any_word(position, outline)
                if announced and "\n" in source[before:position]:
                    raise self.broken(before, "a word goes on over a line that announces a here-document")
        if nested and depth >= 0:
            raise self.broken(start, "a parenthesis is not closed")
        if announced:
            raise self.broken(start, "a here-document has no body")
        self.leave()
        return position

    def _count(self, start: int, tokens: int) -> None:
        self._tokens += tokens
        if self._tokens > _MOST_TOKENS:
            text = text_of(self.source[start : start + 60])
            raise Unreadable(OpaqueKind.TOO_LONG, text, "it has too many parts")

    def _operator(self, found: re.Match[str], outline: Outline) -> int:
        """A redirection or a separator; returns the position after it."""
        operator, start, end = found.group(), found.start(), found.end()
        if operator[-1] in "<>" or operator in ("<&", ">&", ">|"):
            outline.redirect(start, operator)
        else:
            outline.separator()
            if operator in (";&", ";;&"):
                # Tree-sitter knows these ends of a case only in places; what they can run is the same as after ";;".
                outline.fill(start, start + 2, ";")
                outline.fill(start + 2, end, " ")
        return end

    def _any_word(self, start: int, outline: Outline) -> int:
        array = ARRAY_START.match(self.source, start)
        end = self.array(array.end())[1] if array else start + self.word(start).size
        text = self.source[start:end]
        outline.word(start, end, text, plain=PLAIN.fullmatch(text) is not None)
        return end

    def _parenthesis(self, position: int, outline: Outline) -> int:
        """The position after an opening parenthesis, or after the whole sum if it opens one."""
        outline.separator()
        if not self.source.startswith("((", position):
            return position + 1
        loop = _LOOP_SUMS.match(self.source, position)
        if loop and _LOOP.search(self.source[max(0, position - 12) : position]):
            return loop.end()
        end = self.sum_end(position + 2)
        outline.fill(position + 2, end - 2, "1")
        return end

    def _announcement(self, start: int, length: int) -> _Announced:
        source = self.source
        position = start + length
        while source[position : position + 1] in (" ", "\t"):
            position += 1
        word = self.word(position)
        end = position + word.size
        if end == position or any(piece.expands for piece in word.pieces) or "\n" in source[position:end]:
            raise self.broken(start, "the end mark of a here-document is not a plain word")
        delimiter = "".join(piece.text for piece in word.pieces)
        return _Announced(start, end, delimiter, length == 3, any(piece.quoted for piece in word.pieces))

    def _here_document(self, start: int, mark: _Announced, outline: Outline | None) -> int:
        """Pass over one body; remember it if it belongs to this script and not to a substitution inside it."""
        source, size = self.source, len(self.source)
        position = start
        while True:
            if position >= size:
                raise self.broken(mark.start, "a here-document is not ended")
            newline = source.find("\n", position)
            line = source[position : newline if newline >= 0 else size]
            line_start, position = position, size if newline < 0 else newline + 1
            if (line.lstrip("\t") if mark.strips_tabs else line) == mark.delimiter:
                break
            if not mark.literal and line.endswith("\\"):
                raise Unreadable(OpaqueKind.UNSUPPORTED, text_of(line), "a here-document joins its lines")
        if outline is not None:
            body = source[start:line_start]
            if mark.strips_tabs:
                body = _TABS.sub("", body)
            self.bodies[mark.start] = RawWord.quoted(body) if mark.literal else Scanner(body).body()
            end = position - 1 if newline >= 0 else position
            outline.fill(start, end, " ")
        return position


def _texts(written: str) -> list[str]:
    """The words of a beginning, without their quotes."""
    if "'" not in written and '"' not in written:
        return written.split()
    return [text[1:-1] if text[0] in "'\"" else text for text in _BEGINNING_WORD.findall(written)]
