"""JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nacre.code.facts import Import
from nacre.code.languages.reader import Reader, clean_type, field, line_of, made_type, plain_chain, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_CLAUSES = ("extends_clause", "implements_clause", "extends_type_clause")
_PASSED_OVER = ("exports.", "module.exports.", "self.", "this.")


class Ecma(Reader):
    """Reads trees of JavaScript and TypeScript."""

    def name(self, node: Node) -> str:
        """``exports.f = function`` is ``f``, ``A.prototype.f = function`` is ``A.f``; a class may have no name."""
        if node.type != "assignment_expression":
            return plain_chain(field(node, "name") or field(node, "property"))
        left = plain_chain(field(node, "left")).replace(".prototype.", ".")
        for start in _PASSED_OVER:
            left = left.removeprefix(start)
        return left if left.count(".") < 2 else ""

    def returns(self, node: Node) -> str:
        """A function that is a value says it there."""
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        return clean_type(field(value or node, "return_type"))

    def bases(self, node: Node) -> Iterator[str]:
        """Of ``extends`` and ``implements``."""
        for child in node.children:
            if child.type == "extends_type_clause":
                yield from (clean_type(text_of(one)) for one in child.named_children)
            elif child.type == "class_heritage":
                for one in child.named_children:
                    parts = one.named_children if one.type in _CLAUSES else (one,)
                    yield from (clean_type(text_of(part)) for part in parts if part.type != "type_arguments")

    def imports(self, node: Node) -> Iterator[Import]:
        """``import``, ``export … from``, and ``require`` of a variable."""
        if node.type == "variable_declarator":
            yield from _required(node)
            return
        source = _string(node.child_by_field_name("source"))
        is_export = node.type == "export_statement"
        if source:
            clauses = [one for one in node.named_children if one.type in ("import_clause", "export_clause")]
            spaces = [one for one in node.named_children if one.type == "namespace_export"]
            line = line_of(node)
            if spaces:
                yield Import(source, "", text_of(spaces[0].named_children[0]), line, exported=True)
            elif not clauses:
                yield Import(source, "*" if is_export else "", "", line, exported=is_export)
            for clause in clauses:
                yield from _named(clause, source, line, is_export)
        elif is_export:
            yield from _exported_names(node)

    def default(self, node: Node) -> str:
        """The name of what ``export default`` exports, or of ``module.exports =``."""
        if node.type != "export_statement" or not any(one.type == "default" for one in node.children):
            return ""
        made = node.child_by_field_name("declaration")
        return field(made, "name") if made is not None else plain_chain(field(node, "value"))

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Parameters, fields and variables with a type, and those that are made with ``new`` or by a call."""
        names = plain_chain(field(node, "pattern") or field(node, "left") or field(node, "name"))
        kind = clean_type(field(node, "type"))
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if names.startswith("this."):
            names = f"self.{names[5:]}"
        is_field = node.type.endswith("field_definition") or (
            node.type.endswith("parameter") and any(one.type == "accessibility_modifier" for one in node.children)
        )
        found = kind or made_type(value).replace("require()", "")
        if not found and value is not None and value.type == "identifier":
            found = f"={text_of(value)}"
        if is_field:
            yield f"self.{names}", found
        if not node.type.endswith("field_definition"):
            yield names, found


def _string(node: Node | None) -> str:
    return text_of(node).strip("\"'`")


def _named(clause: Node, source: str, line: int, is_export: bool) -> Iterator[Import]:
    for one in clause.named_children:
        if one.type == "identifier":
            yield Import(source, "default", text_of(one), line)
        elif one.type == "namespace_import":
            yield Import(source, "", text_of(one.named_children[0]), line)
        elif one.type in ("import_specifier", "export_specifier"):
            name = field(one, "name")
            yield Import(source, name, field(one, "alias") or name, line, exported=is_export)
        else:
            yield from _named(one, source, line, is_export)


def _exported_names(node: Node) -> Iterator[Import]:
    """``export {a as b}`` of the file's own names."""
    for clause in node.named_children:
        for one in clause.named_children if clause.type == "export_clause" else ():
            name = field(one, "name")
            yield Import("", name, field(one, "alias") or name, line_of(node), exported=True)


def _required(node: Node) -> Iterator[Import]:
    value = node.child_by_field_name("value")
    if value is None or value.type != "call_expression" or field(value, "function") != "require":
        return
    given = value.child_by_field_name("arguments")
    source = _string(given.named_children[0]) if given is not None and given.named_children else ""
    left = node.child_by_field_name("name")
    if not source or left is None:
        return
    if left.type == "identifier":
        yield Import(source, "", text_of(left), line_of(node))
    for one in left.named_children:
        if one.type == "shorthand_property_identifier_pattern":
            yield Import(source, text_of(one), text_of(one), line_of(node))
        elif one.type == "pair_pattern":
            yield Import(source, field(one, "key"), field(one, "value"), line_of(node))
