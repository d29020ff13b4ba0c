"""Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nacre.code.facts import Import
from nacre.code.languages.reader import Reader, clean_type, field, line_of, made_type, plain_chain, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


class Python(Reader):
    """Reads trees of Python."""

    def bases(self, node: Node) -> Iterator[str]:
        """Those in parentheses; ``Generic[T]`` counts as ``Generic``."""
        listed = node.child_by_field_name("superclasses")
        for one in listed.named_children if listed else ():
            if one.type in ("identifier", "attribute", "subscript"):
                yield clean_type(text_of(one))

    def imports(self, node: Node) -> Iterator[Import]:
        """``import a.b`` binds ``a``; ``from . import x`` names a module by its dots."""
        line = line_of(node)
        module = "".join(field(node, "module_name").split())
        if node.type == "import_from_statement" and any(one.type == "wildcard_import" for one in node.children):
            yield Import(module, "*", "", line)
        for one in node.children_by_field_name("name"):
            name = plain_chain(field(one, "name") if one.type == "aliased_import" else text_of(one))
            alias = field(one, "alias") if one.type == "aliased_import" else ""
            if node.type == "import_from_statement":
                yield Import(module, name, alias or name, line)
            else:
                yield Import(name, "", alias or name, line)

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Parameters and assignments with a type, and what is made by a call; ``self.x = x`` has the type of ``x``."""
        if node.type in ("typed_parameter", "typed_default_parameter"):
            name = field(node, "name") or text_of(node.named_children[0])
            yield name.lstrip("*"), clean_type(field(node, "type"))
        elif node.type == "assignment":
            right = node.child_by_field_name("right")
            found = clean_type(field(node, "type")) or made_type(right)
            if not found and right is not None and right.type == "identifier":
                found = f"={text_of(right)}"
            yield plain_chain(field(node, "left")), found
        else:
            made = node.named_children[0] if node.named_children else None
            if made is not None and len(made.named_children) == 2:
                yield plain_chain(text_of(made.named_children[1])), made_type(made.named_children[0])
