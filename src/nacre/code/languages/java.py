"""Java."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nacre.code.facts import Import
from nacre.code.languages.reader import Reader, callee, clean_type, field, line_of, made_type, plain_chain, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_CLAUSES = ("superclass", "super_interfaces", "extends_interfaces")


class Java(Reader):
    """Reads trees of Java."""

    def bases(self, node: Node) -> Iterator[str]:
        """Of ``extends`` and ``implements``."""
        for clause in node.children:
            if clause.type in _CLAUSES:
                for one in clause.named_children:
                    parts = one.named_children if one.type == "type_list" else (one,)
                    yield from (clean_type(text_of(part)) for part in parts)

    def imports(self, node: Node) -> Iterator[Import]:
        """A class, all of a package, or what is static in a class."""
        path = next((plain_chain(text_of(one)) for one in node.named_children if one.type != "asterisk"), "")
        if any(one.type == "asterisk" for one in node.children):
            yield Import(path, "*", "", line_of(node))
            return
        module, _, name = path.rpartition(".")
        yield Import(module, name, name, line_of(node))

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Parameters, fields and variables; ``var`` has the type of its value."""
        kind = clean_type(field(node, "type"))
        if node.type == "formal_parameter":
            yield field(node, "name"), kind
            return
        for one in node.children_by_field_name("declarator"):
            found = made_type(one.child_by_field_name("value")) if kind == "var" else kind
            start = "self." if node.type == "field_declaration" else ""
            yield start + field(one, "name"), found

    def call(self, node: Node) -> tuple[str, str] | None:
        """The object and the name are fields of the call."""
        if node.type != "method_invocation":
            return callee(text_of(node))
        given, name = node.child_by_field_name("object"), field(node, "name")
        if given is None:
            return ("", name)
        return callee(f"{text_of(given) or '(…)'}.{name}") or ("?", name)
