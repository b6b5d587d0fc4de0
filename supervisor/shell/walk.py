"""Walk the structure of one script and hand over every simple command in it. Pure. Called from ``read``.

The structure is tree-sitter's reading of the outline, the words are our own. Whatever the walk does not expect, down to
a character between two nodes, ends it: a text is read wholly or reported as opaque.
"""

import re
from collections.abc import Mapping

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from supervisor.model.reading import OpaqueKind
from supervisor.shell.lex import SimpleCommand, lex_command, lex_words
from supervisor.shell.outline import RESERVED
from supervisor.shell.pieces import source_of, text_of
from supervisor.shell.place import Desk, Place
from supervisor.shell.scan import Scanner
from supervisor.shell.simple import Statements
from supervisor.shell.unreadable import Unreadable
from supervisor.shell.variables import CertainNames

_PARSER = Parser(Language(tree_sitter_bash.language()))
_GAP = re.compile(r"[ \t\n]*")
_NESTING_LIMIT = 60
_MOST_ROUNDS = 32

_SIMPLE = frozenset({"command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command"})
_SEPARATORS = frozenset({";", "&", "\n"})
# Node types that are a row of statements, and the tokens that may stand between them.
_ROWS: Mapping[str, frozenset[str]] = {
    "program": _SEPARATORS,
    "list": frozenset({"&&", "||"}),
    "pipeline": frozenset({"|", "|&"}),
    "subshell": _SEPARATORS | {"(", ")"},
    "compound_statement": _SEPARATORS | {"{", "}"},
    "if_statement": _SEPARATORS | {"if", "then", "fi"},
    "elif_clause": _SEPARATORS | {"elif", "then"},
    "else_clause": _SEPARATORS | {"else"},
    "while_statement": _SEPARATORS | {"while", "until"},
    "do_group": _SEPARATORS | {"do", "done"},
}
_CLAUSES = frozenset({"elif_clause", "else_clause", "do_group"})
_CLOSERS = frozenset({"}", "fi", "done", "esac", "then", "do", "else", "elif"})
_SPACED = frozenset({"{", "if", "then", "else", "elif", "while", "until", "do"})


def walk_script(desk: Desk, text: str, place: Place) -> None:
    """Hand every command of the script to the desk; raises ``Unreadable`` where it cannot go on."""
    source = source_of(text)
    scanner = Scanner(source)
    outline = scanner.outline()
    root = _PARSER.parse(outline.encode("latin-1")).root_node
    if root.has_error:
        raise Unreadable(OpaqueKind.SYNTAX_ERROR, text, "it is not valid shell, or too unusual to be read for certain")
    _Walk(desk, scanner, outline, place).whole(root)


class _Walk:
    def __init__(self, desk: Desk, scanner: Scanner, outline: str, place: Place) -> None:
        self._scanner = scanner
        self._outline = outline
        self._nesting = 0
        self._lexed: dict[tuple[int, int], SimpleCommand] = {}
        self._certain = CertainNames(scanner.source)
        self._statements = Statements(desk, place)

    def whole(self, root: Node) -> None:
        if not _GAP.fullmatch(self._outline, 0, root.start_byte) or not _GAP.fullmatch(self._outline, root.end_byte):
            raise self._astray(root)
        if root.named_child_count == 1:
            statement = root.named_children[0]
            only = statement.child_by_field_name("body") or statement
            self._statements.alone = only.type == "command" and statement.type in ("command", "redirected_statement")
        self._row(root, end=None, piped=False)

    def _row(self, node: Node, *, end: int | None, piped: bool) -> None:
        """Statements with separators between them. ``end`` is how far the last one's redirections reach."""
        row, outline, children = node.type, self._outline, node.children
        tokens = _ROWS[row]
        position = node.start_byte
        separated = True
        last = len(children) - 1
        for index, child in enumerate(children):
            # Every attribute of a node is made anew when it is asked for.
            start, kind = child.start_byte, child.type
            if position != start:
                gap = outline[position:start]
                if gap.strip(" \t\n"):
                    raise self._astray(node)
                separated = separated or "\n" in gap
            position = child.end_byte
            if kind in tokens:
                if kind in _CLOSERS and not separated:
                    raise self._astray(node)
                if kind in _SPACED and outline[position : position + 1] not in (" ", "\t", "\n", "(", ""):
                    raise self._astray(node)
                separated = kind not in ("}", ")", "fi", "done")
                piped = piped or kind in ("|", "|&")
                continue
            if not separated or not child.is_named:
                raise self._astray(node)
            if kind in _CLAUSES:
                self._descend(child, end=None, piped=piped)
                continue
            reach = end if index == last else None
            if kind in _SIMPLE:
                self._simple(start, reach or position, piped=piped)
                if row == "program" and self._statements.assigned:
                    follows = children[index + 1].type if index != last else "\n"
                    self._statements.bind(self._certain, in_background=follows == "&")
            else:
                self._statement(child, end=reach, piped=piped)
            separated = False
        if not _GAP.fullmatch(outline, position, node.end_byte):
            raise self._astray(node)

    def _descend(self, node: Node, *, end: int | None, piped: bool) -> None:
        self._nesting += 1
        if self._nesting > _NESTING_LIMIT:
            raise Unreadable(OpaqueKind.TOO_DEEP, self._text(node), "it is nested too deeply")
        self._row(node, end=end, piped=piped)
        self._nesting -= 1

    def _statement(self, node: Node, *, end: int | None, piped: bool) -> None:
        kind = node.type
        self._statements.forget()
        if kind in _SIMPLE:
            self._simple(node.start_byte, end or node.end_byte, piped=piped)
        elif kind == "redirected_statement":
            self._redirected(node, piped=piped)
        elif kind == "compound_statement" and node.children[0].type == "((":
            self._sum(node)
            self._tail(node, end)
        elif kind in ("list", "pipeline"):
            self._descend(node, end=end, piped=piped)
        elif kind == "while_statement":
            with self._statements.repeating("while"):
                self._descend(node, end=None, piped=piped)
            self._tail(node, end)
        elif kind in _ROWS:
            self._descend(node, end=None, piped=piped)
            self._tail(node, end)
        elif kind == "test_command":
            self._condition(node)
            self._tail(node, end)
        else:
            handler = {
                "for_statement": self._for,
                "c_style_for_statement": self._counted_for,
                "case_statement": self._case,
                "function_definition": self._function,
            }.get(kind)
            if handler is None:
                raise Unreadable(OpaqueKind.UNSUPPORTED, self._text(node), "it holds a construct that is not read")
            self._nesting += 1
            if self._nesting > _NESTING_LIMIT:
                raise Unreadable(OpaqueKind.TOO_DEEP, self._text(node), "it is nested too deeply")
            handler(node)
            self._nesting -= 1
            self._tail(node, end)

    def _simple(self, start: int, end: int, *, piped: bool) -> None:
        begun = self._scanner.begun.get(start)
        if begun is not None and begun[0] == end and self._statements.take_plain(begun[1], piped=piped):
            return
        command = self._lex(start, end)
        if command.first in RESERVED and not command.assignments:
            raise Unreadable(
                OpaqueKind.MISREAD, text_of(self._scanner.source[start:end]), "a reserved word stands as a command"
            )
        self._statements.take(command, piped=piped)

    def _redirected(self, node: Node, *, piped: bool) -> None:
        body = node.child_by_field_name("body")
        if body is None:
            self._simple(node.start_byte, node.end_byte, piped=piped)
        elif body.start_byte != node.start_byte:
            raise self._astray(node)
        else:
            self._statement(body, end=node.end_byte, piped=piped)

    def _tail(self, node: Node, end: int | None) -> None:
        """The redirections of a compound command."""
        if end is None or end == node.end_byte:
            return
        command = self._lex(node.end_byte, end)
        if command.words or command.assignments:
            raise self._astray(node)
        self._statements.take(command, piped=False)

    def _for(self, node: Node) -> None:
        children = node.children
        body = children[-1]
        variable = node.child_by_field_name("variable")
        values = node.children_by_field_name("value")
        tokens = [child.type for child in children if not child.is_named]
        if variable is None or body.type not in ("do_group", "compound_statement") or not set(tokens) <= {
            "for", "select", "in", ";", "\n"
        }:  # fmt: skip
            raise self._astray(node)
        self._gaps(node)
        name = self._scanner.source[variable.start_byte : variable.end_byte]
        raw = lex_words(self._scanner, values[0].start_byte, values[-1].end_byte) if values else []
        literals = self._statements.loop_values(name, raw)
        if (
            tokens[0] == "for"
            and literals
            and len(literals) <= _MOST_ROUNDS
            and self._certain.keeps(name, by_loop=True)
        ):
            for literal in literals:
                self._statements.values[name] = literal
                self._descend(body, end=None, piped=False)
            del self._statements.values[name]
        else:
            with self._statements.repeating("for"):
                self._descend(body, end=None, piped=False)

    def _counted_for(self, node: Node) -> None:
        children = node.children
        close = next((child for child in children if child.type == "))"), None)
        body = children[-1]
        if close is None or children[1].type != "((" or body.type not in ("do_group", "compound_statement"):
            raise self._astray(node)
        if not re.fullmatch(r"[ \t\n]*;?[ \t\n]*", self._outline[close.end_byte : body.start_byte]):
            raise self._astray(node)
        for part in self._scanner.source[children[1].end_byte : close.start_byte].split(";"):
            self._statements.evaluate(part)
        with self._statements.repeating("for"):
            self._descend(body, end=None, piped=False)

    def _sum(self, node: Node) -> None:
        inside = self._scanner.source[node.start_byte + 2 : node.end_byte - 2]
        if self._scanner.sum_end(node.start_byte + 2) != node.end_byte:
            raise self._astray(node)
        self._statements.evaluate(inside)

    def _condition(self, node: Node) -> None:
        source, start, end = self._scanner.source, node.start_byte, node.end_byte
        if node.children[0].type != "[[" or source[end - 2 : end] != "]]":
            raise self._astray(node)
        inside = source[start + 2 : end - 2]
        if not re.match(r"[ \t\n]", inside) or not re.search(r"[ \t\n]\Z", inside) or ";" in self._outline[start:end]:
            raise self._astray(node)
        if re.search(r"\s\]\]\s", self._outline[start + 2 : end - 2]):
            raise self._astray(node)
        self._statements.condition(self._scanner.loose(start + 2, end - 2), text_of(inside))

    def _case(self, node: Node) -> None:
        self._gaps(node)
        for child in node.children:
            if child.type == "case_item":
                self._case_item(child)
            elif child.is_named:
                self._statements.expand(self._scanner.loose(child.start_byte, child.end_byte))
            elif child.type not in ("case", "in", "esac", ";", "\n"):
                raise self._astray(node)

    def _case_item(self, node: Node) -> None:
        self._gaps(node)
        children = node.children
        close = next((index for index, child in enumerate(children) if child.type == ")"), None)
        if close is None:
            raise self._astray(node)
        pattern = self._outline[node.start_byte : children[close].start_byte]
        if not re.fullmatch(r"[ \t]*\(?[ \t]*[A-Za-z0-9_-]+(?:[ \t]*\|[ \t]*[A-Za-z0-9_-]+)*[ \t]*", pattern):
            raise self._astray(node)
        self._statements.expand(self._scanner.loose(node.start_byte, children[close].start_byte))
        separated = True
        for child in children[close + 1 :]:
            if child.is_named:
                if not separated:
                    raise self._astray(node)
                self._statement(child, end=None, piped=False)
                following = self._outline[child.end_byte :].lstrip(" \t")
                separated = following.startswith("\n")
            elif child.type in (";", "&", "\n", ";;", ";&", ";;&"):
                separated = True
            else:
                raise self._astray(node)

    def _function(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        name = node.child_by_field_name("name")
        if body is None or name is None:
            raise self._astray(node)
        head = self._outline[node.start_byte : body.start_byte]
        if not re.fullmatch(
            r"(?:function[ \t]+[A-Za-z0-9_-]+[ \t]*(?:\([ \t]*\))?|[A-Za-z0-9_-]+[ \t]*\([ \t]*\))\s*", head
        ):
            raise self._astray(node)
        self._statements.expand(self._scanner.loose(name.start_byte, name.end_byte))
        with self._statements.repeating("function"):
            self._statement(body, end=None, piped=False)
        self._tail(body, node.end_byte)

    def _gaps(self, node: Node) -> None:
        position = node.start_byte
        for child in node.children:
            if not _GAP.fullmatch(self._outline, position, child.start_byte):
                raise self._astray(node)
            position = child.end_byte
        if not _GAP.fullmatch(self._outline, position, node.end_byte):
            raise self._astray(node)

    def _lex(self, start: int, end: int) -> SimpleCommand:
        # What a loop repeats is walked once for each of its values.
        command = self._lexed.get((start, end))
        if command is None:
            command = self._lexed[start, end] = lex_command(self._scanner, start, end, self._scanner.bodies)
        return command

    def _text(self, node: Node) -> str:
        return text_of(self._scanner.source[node.start_byte : node.end_byte])

    def _astray(self, node: Node) -> Unreadable:
        return Unreadable(OpaqueKind.MISREAD, self._text(node), "two readings of it disagree about its structure")
