"""C and C++."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nacre.code.facts import Import
from nacre.code.languages.reader import Reader, clean_type, field, line_of, made_type, plain_chain, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_NAMES = ("identifier", "field_identifier", "type_identifier", "qualified_identifier")


class CFamily(Reader):
    """Reads trees of C and C++."""

    def name(self, node: Node) -> str:
        """What a declarator declares, however many pointers stand before it."""
        if node.type in ("function_definition", "type_definition"):
            return plain_chain(text_of(_declared(node)))
        return plain_chain(field(node, "name"))

    def returns(self, node: Node) -> str:
        """The type before the declarator."""
        return clean_type(field(node, "type"))

    def is_hidden(self, node: Node) -> bool:
        """A static function is its file's own; that of a class is not."""
        is_member = node.parent is not None and node.parent.type == "field_declaration_list"
        return not is_member and any(
            one.type == "storage_class_specifier" and one.text == b"static" for one in node.children
        )

    def bases(self, node: Node) -> Iterator[str]:
        """Those after the colon."""
        for clause in node.children:
            if clause.type == "base_class_clause":
                for one in clause.named_children:
                    if one.type in ("type_identifier", "qualified_identifier", "template_type"):
                        yield clean_type(text_of(one))

    def imports(self, node: Node) -> Iterator[Import]:
        """Files in quotes come from this repository, those in angle brackets may."""
        yield Import(field(node, "path").strip('"<>'), "*", "", line_of(node))

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Parameters, fields and variables; ``auto`` has the type of its value."""
        kind = clean_type(field(node, "type"))
        start = "self." if node.type == "field_declaration" else ""
        for one in node.children_by_field_name("declarator"):
            if one.type == "init_declarator" and kind == "auto":
                kind = made_type(one.child_by_field_name("value"))
            declared = _inner(one)
            if declared is not None and declared.type in _NAMES:
                yield start + text_of(declared), kind


def _declared(node: Node) -> Node | None:
    declarator = node.child_by_field_name("declarator")
    return _inner(declarator, through_functions=True) if declarator is not None else None


def _inner(node: Node, *, through_functions: bool = False) -> Node | None:
    """The name in a declarator; that of a function only where it is asked for."""
    while node.type not in _NAMES:
        if node.type == "function_declarator" and not through_functions:
            return None
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next((one for one in node.named_children if one.type in _NAMES), None)
        if inner is None:
            return None
        node = inner
    return node
