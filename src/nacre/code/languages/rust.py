"""Rust."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nacre.code.facts import Import
from nacre.code.languages.reader import Reader, clean_type, field, line_of, made_type, plain_chain, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


class Rust(Reader):
    """Reads trees of Rust."""

    def name(self, node: Node) -> str:
        """An ``impl`` names what it implements."""
        return clean_type(field(node, "type")) if node.type == "impl_item" else field(node, "name")

    def returns(self, node: Node) -> str:
        """``Result<X>`` stays what it says."""
        return clean_type(field(node, "return_type"))

    def bases(self, node: Node) -> Iterator[str]:
        """The trait of an ``impl``, and those that a trait builds on."""
        trait = node.child_by_field_name("trait")
        if trait is not None:
            yield clean_type(text_of(trait))
        bounds = node.child_by_field_name("bounds") if node.type == "trait_item" else None
        for one in bounds.named_children if bounds is not None else ():
            yield clean_type(text_of(one))

    def imports(self, node: Node) -> Iterator[Import]:
        """``mod x;`` and all that a ``use`` names."""
        if node.type == "mod_item":
            yield Import(f"self.{field(node, 'name')}", "", field(node, "name"), line_of(node))
            return
        used = node.child_by_field_name("argument")
        is_public = any(one.type == "visibility_modifier" for one in node.children)
        for path, alias in _used(used, "") if used is not None else ():
            module, _, name = path.rpartition(".")
            yield Import(module, name, "" if name == "*" else alias or name, line_of(node), exported=is_public)

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Parameters, fields and ``let``."""
        kind = clean_type(field(node, "type"))
        if node.type == "field_declaration":
            yield f"self.{field(node, 'name')}", kind
        else:
            name = field(node, "pattern").removeprefix("mut ")
            yield name, kind or made_type(node.child_by_field_name("value"))


def _used(node: Node, before: str) -> Iterator[tuple[str, str]]:
    """The dotted paths in a ``use``, each with its alias."""
    if node.type == "scoped_use_list":
        path = plain_chain(field(node, "path"))
        listed = node.child_by_field_name("list")
        for one in listed.named_children if listed is not None else ():
            yield from _used(one, f"{before}{path}.")
    elif node.type == "use_list":
        for one in node.named_children:
            yield from _used(one, before)
    elif node.type == "use_as_clause":
        yield before + plain_chain(field(node, "path")), field(node, "alias")
    elif node.type == "use_wildcard":
        inner = plain_chain(text_of(node.named_children[0])) if node.named_children else ""
        yield f"{before}{inner}.*", ""
    elif node.type == "self" and before:
        yield before.rstrip("."), ""
    elif chain := plain_chain(text_of(node)):
        yield before + chain, ""
