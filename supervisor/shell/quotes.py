"""Read one word of shell source: its quotes, escapes and expansions. Pure. The lower half of ``scan``.

Independent of tree-sitter on purpose: the tree gives the structure of a text, this gives its words. Everything works on
a source whose indexes are bytes (UTF-8 seen as Latin-1), because the tree counts bytes.
"""

import re
from abc import ABC, abstractmethod

from supervisor.model.reading import OpaqueKind
from supervisor.shell.ansi import decode_ansi_c
from supervisor.shell.pieces import Piece, RawWord, literal_word, text_of
from supervisor.shell.unreadable import Unreadable

_LITERAL = re.compile(r"[^ \t\n\\'\"$`|&;()<>\x00-\x08\x0b-\x1f\x7f]+")
# A word that is wholly in one pair of quotes, in which nothing else has a meaning.
_IN_QUOTES = re.compile(r"""'([^']*)'(?=[ \t\n|&;()]|\Z)|"([^\\"$`\x00\r]*)"(?=[ \t\n|&;()]|\Z)""")
_IN_DOUBLE = re.compile(r"[^\\\"$`\x00\r]+")
_IN_BODY = re.compile(r"[^\\$`\x00\r]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED_NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SPECIAL = frozenset("0123456789@*#?$!-")
_EVALUATES = re.compile(r"\$\{!.*|\$\{.*@[A-Za-z]\}", re.DOTALL)
_SUBSCRIPT = re.compile(r"\$\{[#]?[A-Za-z_][A-Za-z0-9_]*\[([^@*\]][^\]]*)\]")
_SLICE = re.compile(r"\$\{(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*]+)(?:\[[^\]]*\])?:(?![-=?+])(.*)\}", re.DOTALL)
_NESTING_LIMIT = 40


class WordScanner(ABC):
    """Reads the words of one source. Methods take a position; what cannot be read for certain raises ``Unreadable``."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._nesting = 0
        self.words: dict[int, RawWord] = {}  # what has been read so far, by position

    @abstractmethod
    def script_end(self, position: int) -> int:
        """Where the script that starts here ends: just after its closing parenthesis."""

    @abstractmethod
    def sum_end(self, position: int) -> int:
        """Where the sum whose ``((`` stands just before ends: just after its ``))``."""

    def word(self, start: int) -> RawWord:
        """The word that starts here; it may be empty."""
        known = self.words.get(start)
        if known is None:
            known = self.words[start] = self._read_word(start)
        return known

    def body(self) -> RawWord:
        """The whole source as a here-document that the shell expands."""
        word = RawWord(len(self.source))
        position = 0
        while position < word.size:
            plain = _IN_BODY.match(self.source, position)
            if plain:
                word.pieces.append(Piece(plain.group(), quoted=True))
                position = plain.end()
            else:
                position = self._active(word, position, escapable="$`\\\n")
        return word

    def loose(self, start: int, end: int) -> RawWord:
        """Everything between two positions as one word, whatever operators stand in it (``[[ … ]]``, case patterns)."""
        whole = RawWord(end - start)
        position = start
        while position < end:
            character = self.source[position]
            if character in " \t\n|&;()<>" and not self.source.startswith(("<(", ">("), position):
                whole.pieces.append(Piece(character))
                position += 1
                continue
            part = self.word(position)
            whole.pieces += part.pieces
            whole.scripts += part.scripts
            whole.sums += part.sums
            position += part.size
        if position != end:
            raise self.broken(start, "a word runs past its condition or pattern")
        return whole

    def broken(self, position: int, problem: str) -> Unreadable:
        return Unreadable(OpaqueKind.SYNTAX_ERROR, text_of(self.source[position : position + 60]), problem)

    def enter(self, position: int) -> None:
        """Count one level of nesting; the caller counts back when it leaves."""
        self._nesting += 1
        if self._nesting > _NESTING_LIMIT:
            raise Unreadable(
                OpaqueKind.TOO_DEEP, text_of(self.source[position : position + 60]), "it is nested too deeply"
            )

    def leave(self) -> None:
        self._nesting -= 1

    def _read_word(self, start: int) -> RawWord:
        source, size = self.source, len(self.source)
        position = start
        plain = _LITERAL.match(source, start)
        if plain:
            position = plain.end()
            if position == size or source[position] in " \t\n|&;()":
                return literal_word(plain.group())
        else:
            quoted = _IN_QUOTES.match(source, start)
            if quoted:
                return _quoted_word(quoted)
        word = RawWord(pieces=[Piece(plain.group())] if plain else [])
        while position < size:
            plain = _LITERAL.match(source, position)
            if plain:
                word.pieces.append(Piece(plain.group()))
                position = plain.end()
                continue
            character = source[position]
            if character in " \t\n|&;()" or (character in "<>" and not source.startswith("(", position + 1)):
                break
            match character:
                case "\\":
                    position = self._escape(word, position)
                case "'":
                    end = source.find("'", position + 1)
                    if end < 0:
                        raise self.broken(position, "a single quote is not closed")
                    word.pieces.append(Piece(source[position + 1 : end], quoted=True))
                    position = end + 1
                case '"':
                    position = self._double(word, position)
                case "$":
                    position = self._dollar(word, position, in_double=False)
                case "`":
                    position = self._backtick(word, position, in_double=False)
                case "<" | ">":
                    end = self.script_end(position + 2)
                    word.scripts += (source[position + 2 : end - 1],)
                    word.pieces.append(Piece(source[position:end], expands=True))
                    position = end
                case _:
                    raise self._control(start, position + 1)
        word.size = position - start
        return word

    def _escape(self, word: RawWord, position: int) -> int:
        following = self.source[position + 1 : position + 2]
        if not following:
            raise self.broken(position, "the text ends in a backslash")
        if following < " " and following not in "\n\t":
            raise self._control(position, position + 2)
        if following != "\n":
            word.pieces.append(Piece(following, quoted=True))
        return position + 2

    def _double(self, word: RawWord, start: int) -> int:
        source, size = self.source, len(self.source)
        position = start + 1
        word.pieces.append(Piece("", quoted=True))
        while position < size:
            plain = _IN_DOUBLE.match(source, position)
            if plain:
                word.pieces.append(Piece(plain.group(), quoted=True))
                position = plain.end()
            elif source[position] == '"':
                return position + 1
            else:
                position = self._active(word, position, escapable='$`"\\\n')
        raise self.broken(start, "a double quote is not closed")

    def _active(self, word: RawWord, position: int, *, escapable: str) -> int:
        """One character that keeps its meaning inside double quotes or a here-document."""
        character = self.source[position]
        if character == "$":
            return self._dollar(word, position, in_double=True)
        if character == "`":
            return self._backtick(word, position, in_double='"' in escapable)
        if character != "\\":
            raise self._control(position, position + 1)
        following = self.source[position + 1 : position + 2]
        if following and following in escapable:
            word.pieces.append(Piece("" if following == "\n" else following, quoted=True))
            return position + 2
        word.pieces.append(Piece("\\", quoted=True))
        return position + 1

    def _dollar(self, word: RawWord, position: int, *, in_double: bool) -> int:
        source = self.source
        following = source[position + 1 : position + 2]
        name = _NAME.match(source, position + 1)
        if name:
            text = source[position : name.end()]
            word.pieces.append(Piece(text, in_double, expands=True, splits=not in_double, variable=name.group()))
            return name.end()
        if following == "(":
            return self._substitution(word, position, in_double=in_double)
        if following == "{":
            return self._braced(word, position, in_double=in_double)
        if following == "[":
            raise Unreadable(
                OpaqueKind.UNSUPPORTED, text_of(source[position : position + 20]), "it uses the old $[ ] sum"
            )
        if following == "'" and not in_double:
            return self._ansi_c(word, position)
        if following == '"' and not in_double:
            word.pieces.append(Piece("", expands=True))
            return self._double(word, position + 1)
        if following and following in _SPECIAL:
            several = following == "@" or not in_double
            text = source[position : position + 2]
            word.pieces.append(Piece(text, in_double, expands=True, splits=several, number=following in "#?$"))
            return position + 2
        word.pieces.append(Piece("$", quoted=in_double))
        return position + 1

    def _ansi_c(self, word: RawWord, position: int) -> int:
        source = self.source
        end = source.find("'", position + 2)
        if end < 0:
            raise self.broken(position, "a $' quote is not closed")
        inside = source[position + 2 : end]
        if (len(inside) - len(inside.rstrip("\\"))) % 2:
            # A shell without this kind of quote would end it here and run the rest.
            raise Unreadable(
                OpaqueKind.UNSUPPORTED, text_of(source[position : end + 1]), "shells disagree where a $' quote ends"
            )
        word.pieces.append(Piece(decode_ansi_c(inside), quoted=True))
        return end + 1

    def _substitution(self, word: RawWord, position: int, *, in_double: bool) -> int:
        source = self.source
        if source.startswith("((", position + 1):
            end = self.sum_end(position + 3)
            word.sums += (source[position + 3 : end - 2],)
            word.pieces.append(Piece(source[position:end], in_double, expands=True, number=True))
            return end
        end = self.script_end(position + 2)
        word.scripts += (source[position + 2 : end - 1],)
        word.pieces.append(Piece(source[position:end], in_double, expands=True, splits=not in_double))
        return end

    def _backtick(self, word: RawWord, position: int, *, in_double: bool) -> int:
        source, size = self.source, len(self.source)
        escapable = '$`\\"' if in_double else "$`\\"
        inner: list[str] = []
        at = position + 1
        while at < size and source[at] != "`":
            if source[at] == "\\" and at + 1 < size and source[at + 1] in escapable:
                at += 1
            inner.append(source[at])
            at += 1
        if at >= size:
            raise self.broken(position, "a backtick is not closed")
        word.scripts += ("".join(inner),)
        word.pieces.append(Piece(source[position : at + 1], in_double, expands=True, splits=not in_double))
        return at + 1

    def _braced(self, word: RawWord, start: int, *, in_double: bool) -> int:
        source, size = self.source, len(self.source)
        simple = _BRACED_NAME.match(source, start)
        if simple:
            name = simple.group(1)
            word.pieces.append(Piece(simple.group(), in_double, expands=True, splits=not in_double, variable=name))
            return simple.end()
        if source[start + 2 : start + 3] in (" ", "\t", "\n", "|", ""):
            raise Unreadable(
                OpaqueKind.UNSUPPORTED, text_of(source[start : start + 20]), "it runs commands inside ${ }"
            )
        self.enter(start)
        inner = RawWord()
        position = start + 2
        while position < size and source[position] != "}":
            character = source[position]
            if character == "$" and source[position + 1 : position + 2] not in ("}", '"', "'"):
                position = self._dollar(inner, position, in_double=in_double)
            elif character == "`":
                position = self._backtick(inner, position, in_double=in_double)
            elif character == '"':
                position = self._double(inner, position)
            elif character in "'{<>\\" or (character < " " and character not in "\t\n"):
                # Bash reads these differently inside and outside double quotes, and from one operator to the next.
                raise Unreadable(
                    OpaqueKind.UNSUPPORTED, text_of(source[start : position + 1]), "an expansion is too intricate"
                )
            else:
                position += 1
        if position >= size:
            raise self.broken(start, "a ${ is not closed")
        whole = source[start : position + 1]
        if _EVALUATES.fullmatch(whole):
            raise Unreadable(
                OpaqueKind.EVALUATED_VALUE, text_of(whole), "an expansion evaluates the value of a variable"
            )
        word.scripts += inner.scripts
        word.sums += inner.sums
        word.sums += tuple(found.group(1) for found in (_SUBSCRIPT.match(whole), _SLICE.fullmatch(whole)) if found)
        several = not in_double or "@" in whole
        word.pieces.append(Piece(whole, in_double, expands=True, splits=several, number=whole.startswith("${#")))
        self.leave()
        return position + 1

    def _control(self, start: int, end: int) -> Unreadable:
        return Unreadable(
            OpaqueKind.CONTROL_CHARACTER, text_of(self.source[start:end]), "a control character stands in it"
        )


def _quoted_word(found: re.Match[str]) -> RawWord:
    single, double = found.groups()
    size = found.end() - found.start()
    if single is not None:
        return RawWord(size, [Piece(single, quoted=True)])
    # As everywhere inside double quotes, that they are there is a piece of its own.
    return RawWord(size, [Piece("", quoted=True), *([Piece(double, quoted=True)] if double else [])])
