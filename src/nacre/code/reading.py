"""Extract the facts of one source file from its syntax tree (tree-sitter)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from nacre.code.facts import CLASS_KINDS, INNER_KINDS, MODULE, Base, Call, Definition, Facts, Import, Variable
from nacre.code.languages.cfamily import CFamily
from nacre.code.languages.ecma import Ecma
from nacre.code.languages.go import Go
from nacre.code.languages.java import Java
from nacre.code.languages.python import Python
from nacre.code.languages.reader import NAME_CHARACTERS, Reader, clean_type, line_of, text_of
from nacre.code.languages.rust import Rust
from nacre.code.languages.table import LANGUAGES, parser_of
from nacre.platform.lazy import load

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_DEFINITIONS = 20_000
MOST_REFERENCES = 100_000
"""Limits per file; the rest is left out."""

QUALIFIED_CHARACTERS = 500
"""Nobody asks for a longer name; of thousands of definitions within each other they would fill the memory."""

_READERS: Mapping[str, Reader] = {
    "python": Python(), "ecma": Ecma(), "go": Go(), "rust": Rust(), "java": Java(), "cfamily": CFamily(),
}  # fmt: skip
_DEFINES = ("function", "class", "interface", "type", "namespace", "impl")
_ORDER = {name: place for place, name in enumerate((*_DEFINES, "package", "import", "variable", "call"))}


def read_code(language: str, source: bytes) -> Facts:
    """The facts of a file. Raises ImportError where the parser of its language is not installed."""
    parser, query = parser_of(language)
    captured = load("tree_sitter:QueryCursor")(query).captures(parser.parse(source).root_node)
    reading = _Reading(_READERS[LANGUAGES[language].family])
    for capture, node in _in_order(captured):
        reading.take(capture, node)
    return reading.facts(language)


def _in_order(captured: Mapping[str, list[Node]]) -> Iterator[tuple[str, Node]]:
    """Captures in source order, enclosing nodes first; at one node the definition first."""
    found = [
        (node.start_byte, -node.end_byte, _ORDER.get(capture, 99), capture, node)
        for capture, nodes in captured.items()
        for node in nodes
    ]
    found.sort(key=lambda one: one[:3])
    yield from ((capture, node) for *_, capture, node in found)


class _Reading:
    """The facts collected so far, and the stack of enclosing definitions."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._open: list[tuple[int, int]] = []
        self._definitions: list[Definition] = []
        self._calls: dict[tuple[int, str, str], int] = {}
        self._imports: list[Import] = []
        self._bases: list[Base] = []
        self._variables: dict[Variable, None] = {}
        self._package = self._default = ""

    def take(self, capture: str, node: Node) -> None:
        """Add one capture; captures come in source order."""
        while self._open and self._open[-1][0] <= node.start_byte:
            self._open.pop()
        if capture in _DEFINES:
            self._define(capture, node)
        elif capture == "package":
            self._package = text_of(node)
        elif capture == "import":
            self._imports += self._reader.imports(node)
            self._default = self._reader.default(node) or self._default
        elif capture == "variable":
            self._declare(node)
        elif len(self._calls) < MOST_REFERENCES:
            self._call(capture, node)

    def facts(self, language: str) -> Facts:
        """The facts of the whole file."""
        return Facts(
            language, self._package, self._default, tuple(self._definitions),
            tuple(Call(*key, line) for key, line in self._calls.items()),
            tuple(one for one in self._imports if len(one.module) + len(one.name) <= 2 * NAME_CHARACTERS),
            tuple(self._bases), tuple(self._variables),
        )  # fmt: skip

    @property
    def _scope(self) -> int:
        return self._open[-1][1] if self._open else MODULE

    def _define(self, capture: str, node: Node) -> None:
        name, parent = self._reader.name(node), self._scope
        around = self._definitions[parent] if parent != MODULE else None
        before = f"{around.qualified}." if around else ""
        is_long = len(name) > NAME_CHARACTERS or len(before) + len(name) > QUALIFIED_CHARACTERS
        if not name or is_long or len(self._definitions) >= MOST_DEFINITIONS:
            return
        own, _, last = name.rpartition(".")
        owner = f"{before}{own}" if own else (around.qualified if around and around.kind in CLASS_KINDS else "")
        kind = self._reader.kind(node, capture)
        if kind == "function" and owner:
            kind = "method"
        returns = self._reader.returns(node) if capture == "function" else ""
        number = len(self._definitions)
        self._definitions.append(
            Definition(
                last, before + name, kind, parent, owner, line_of(node), node.end_point[0] + 1, returns,
                self._reader.is_hidden(node),
            )
        )  # fmt: skip
        self._open.append((node.end_byte, number))
        if kind in CLASS_KINDS:
            self._bases += (Base(number, one) for one in self._reader.bases(node) if one)

    def _declare(self, node: Node) -> None:
        self._imports += self._reader.imports(node) if node.type == "variable_declarator" else ()
        for name, kind in self._reader.variables(node):
            if not name or not kind or len(self._variables) >= MOST_REFERENCES:
                continue
            self._variables[Variable(self._scope, name, kind)] = None

    def _call(self, capture: str, node: Node) -> None:
        if capture == "new":
            name = clean_type(text_of(node))
            receiver, _, last = name.rpartition(".")
            found = (receiver, last) if last else None
        else:
            found = self._reader.call(node)
        if not found or (capture == "component" and not found[1][:1].isupper()):
            return
        scope = self._scope
        while scope != MODULE and self._definitions[scope].kind in INNER_KINDS:
            scope = self._definitions[scope].parent
        if max(map(len, found)) <= NAME_CHARACTERS:
            self._calls.setdefault((scope, *found), line_of(node))
