"""Go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nacre.code.facts import Import
from nacre.code.languages.reader import Reader, clean_type, field, line_of, made_type, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_KINDS = {"struct_type": "class", "interface_type": "interface"}


class Go(Reader):
    """Reads trees of Go."""

    def name(self, node: Node) -> str:
        """A method is named after the type of its receiver."""
        receiver = node.child_by_field_name("receiver")
        owner = clean_type(field(receiver.named_children[0], "type")) if receiver and receiver.named_children else ""
        return ".".join(filter(None, (owner, field(node, "name"))))

    def kind(self, node: Node, kind: str) -> str:
        """Of a type: what it is made of."""
        made = node.child_by_field_name("type")
        return _KINDS.get(made.type, "type") if kind == "class" and made is not None else kind

    def returns(self, node: Node) -> str:
        """The first of several results."""
        result = node.child_by_field_name("result")
        if result is not None and result.type == "parameter_list" and result.named_children:
            return clean_type(field(result.named_children[0], "type"))
        return clean_type(text_of(result))

    def bases(self, node: Node) -> Iterator[str]:
        """What a struct or an interface embeds."""
        made = node.child_by_field_name("type")
        for part in made.named_children if made is not None else ():
            if part.type == "type_elem" and len(part.named_children) == 1:
                yield clean_type(text_of(part))
            for one in part.named_children if part.type == "field_declaration_list" else ():
                if one.type == "field_declaration" and one.child_by_field_name("name") is None:
                    yield clean_type(field(one, "type"))

    def imports(self, node: Node) -> Iterator[Import]:
        """A package; without a name of its own it is called by the last part of its path."""
        path = field(node, "path").strip('"`')
        alias = field(node, "name")
        if alias == ".":
            yield Import(path, "*", "", line_of(node))
        else:
            yield Import(path, "", alias or path.rsplit("/", 1)[-1], line_of(node))

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Parameters, fields and variables; of several that a call returns, the first."""
        if node.type == "short_var_declaration":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is not None and right is not None and left.named_children and right.named_children:
                yield text_of(left.named_children[0]), made_type(right.named_children[0])
            return
        kind = clean_type(field(node, "type"))
        start = "self." if node.type == "field_declaration" else ""
        for name in node.children_by_field_name("name"):
            yield start + text_of(name), kind
