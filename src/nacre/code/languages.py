"""What readers of all languages share: names and types out of the text of a node. No text of a literal is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nacre.code.ask import Import

if TYPE_CHECKING:
    from tree_sitter import Node

NAME_CHARACTERS = 200
_CHAIN = re.compile(r"[\w$]+(?:\.[\w$]+)*")
_SEPARATOR = re.compile(r"\s*(?:\?\.|!\.|->|::|\.)\s*")
_GENERIC = re.compile(r"(?:::)?<[^<>()]*>")
_LAST = re.compile(r"(?:\.|->|::)\s*([A-Za-z_$][\w$]*)$")
_MADE = re.compile(r"(?:new\s+)?([A-Za-z_$][\w$.]*)\(.*\)\.([A-Za-z_$][\w$]*)$", re.DOTALL)
_WRAPPED = re.compile(
    r"^(?:Optional|Annotated|Final|ClassVar|Arc|Rc|Box|RefCell|Promise|Awaitable|(?:std\.)?(?:unique_ptr|shared_ptr))"
    r"\s*[\[<](.*)[\]>]$",
    re.DOTALL,
)
_MODIFIERS = re.compile(
    r"^(?:[&*\s]|'\w+\s|mut\b|const\b|dyn\b|impl\b|struct\b|enum\b|class\b|final\b|readonly\b)+"
)
_SELF = {"this": "self", "Self": "Self"}


def text_of(node: Node | None) -> str:
    """The source of a node; empty where there is none, or where it is longer than any name."""
    if node is None or node.end_byte - node.start_byte > 4 * NAME_CHARACTERS or node.text is None:
        return ""
    return node.text.decode("utf-8", "replace")


def field(node: Node, name: str) -> str:
    """The source of a field of a node."""
    return text_of(node.child_by_field_name(name))


def plain_chain(text: str) -> str:
    """Dotted names as ``a.b.c``, whatever the language writes between them; empty for anything else."""
    text = _SEPARATOR.sub(".", _GENERIC.sub("", text.strip())).lstrip(".")
    return text if len(text) <= NAME_CHARACTERS and _CHAIN.fullmatch(text) else ""


def callee(text: str) -> tuple[str, str] | None:
    """The receiver and the name of what is called; the receiver is ``?`` where it is an expression."""
    if chain := plain_chain(text):
        receiver, _, name = chain.rpartition(".")
        head, dot, rest = receiver.partition(".")
        return (_SELF.get(head, head) + dot + rest, name)
    text = _SEPARATOR.sub(".", _GENERIC.sub("", text))
    made = _MADE.fullmatch(text)
    if made and "(" not in made[1] and text.count("(") == text.count(")"):
        return ("super" if made[1] == "super" else f"{made[1]}()", made[2])
    last = _LAST.search(text)
    return ("?", last[1]) if last else None


def clean_type(text: str) -> str:
    """The name of a type as written, without what wraps it: ``Optional[shop.Order]`` is ``shop.Order``; that of many
    is none."""
    text = text.strip().strip("\"'").lstrip(":").strip()
    for _ in range(4):
        text = _MODIFIERS.sub("", text).split("|")[0].strip()
        wrapped = _WRAPPED.match(text)
        if not wrapped:
            break
        text = wrapped[1].split(",")[0]
    text = _SEPARATOR.sub(".", text)
    found = _CHAIN.match(text)
    if not found or len(found[0]) > NAME_CHARACTERS or found[0].isdigit() or text.endswith("[]"):
        return ""
    return found[0]


def made_type(node: Node | None) -> str:
    """The type of a value that says it: what a call returns, what ``new`` makes, what a literal of a struct is."""
    while node is not None and node.type in (
        "await",
        "await_expression",
        "unary_expression",
        "reference_expression",
    ):
        node = node.named_children[-1] if node.named_children else None
    if node is None:
        return ""
    if node.type in ("call", "call_expression"):
        chain = plain_chain(field(node, "function"))
        return f"{chain}()" if chain else ""
    for part in ("constructor", "type", "name"):
        if node.type in (
            "new_expression",
            "object_creation_expression",
            "composite_literal",
            "struct_expression",
        ):
            found = clean_type(field(node, part))
            if found:
                return found
    return ""


class Reader:
    """How a language writes things; what a language has not stays as it is here."""

    def name(self, node: Node) -> str:
        """The name of a definition, dotted where it names its owner."""
        return plain_chain(field(node, "name"))

    def kind(self, node: Node, kind: str) -> str:  # noqa: ARG002 - some languages look at the node
        """The kind of a definition, where the capture does not say it all."""
        return kind

    def returns(self, node: Node) -> str:
        """The type that a function returns."""
        return clean_type(
            field(node, "return_type") or field(node, "type") or field(node, "result")
        )

    def is_hidden(self, node: Node) -> bool:  # noqa: ARG002
        """Whether other files cannot name it."""
        return False

    def bases(self, node: Node) -> Iterator[str]:  # noqa: ARG002
        """What a class inherits from."""
        yield from ()

    def imports(self, node: Node) -> Iterator[Import]:  # noqa: ARG002
        """What an import names."""
        yield from ()

    def default(self, node: Node) -> str:  # noqa: ARG002
        """What an export exports without a name."""
        return ""

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Variables and their types; ``self.x`` is one of the class."""
        yield from ()

    def call(self, node: Node) -> tuple[str, str] | None:
        """The receiver and the name of a call."""
        return callee(text_of(node) or _tail(node))


def _tail(node: Node) -> str:
    """The end of an expression that is longer than any name, as in a chain of calls."""
    last = node.named_children[-1] if node.named_children else None
    return f"(…).{text_of(last)}" if last is not None and last.type.endswith("identifier") else ""


def line_of(node: Node) -> int:
    """The line of a node, from 1."""
    return node.start_point[0] + 1


# ----------------------------------------------------------------------------
# C and C++.


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


# ----------------------------------------------------------------------------
# JavaScript and TypeScript.


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
                    yield from (
                        clean_type(text_of(part)) for part in parts if part.type != "type_arguments"
                    )

    def imports(self, node: Node) -> Iterator[Import]:
        """``import``, ``export … from``, and ``require`` of a variable."""
        if node.type == "variable_declarator":
            yield from _required(node)
            return
        source = _string(node.child_by_field_name("source"))
        is_export = node.type == "export_statement"
        if source:
            clauses = [
                one for one in node.named_children if one.type in ("import_clause", "export_clause")
            ]
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
        if node.type != "export_statement" or not any(
            one.type == "default" for one in node.children
        ):
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
            node.type.endswith("parameter")
            and any(one.type == "accessibility_modifier" for one in node.children)
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


# ----------------------------------------------------------------------------
# Go.


_KINDS = {"struct_type": "class", "interface_type": "interface"}


class Go(Reader):
    """Reads trees of Go."""

    def name(self, node: Node) -> str:
        """A method is named after the type of its receiver."""
        receiver = node.child_by_field_name("receiver")
        owner = (
            clean_type(field(receiver.named_children[0], "type"))
            if receiver and receiver.named_children
            else ""
        )
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
            if (
                left is not None
                and right is not None
                and left.named_children
                and right.named_children
            ):
                yield text_of(left.named_children[0]), made_type(right.named_children[0])
            return
        kind = clean_type(field(node, "type"))
        start = "self." if node.type == "field_declaration" else ""
        for name in node.children_by_field_name("name"):
            yield start + text_of(name), kind


# ----------------------------------------------------------------------------
# Java.


_CLAUSES_JAVA = ("superclass", "super_interfaces", "extends_interfaces")


class Java(Reader):
    """Reads trees of Java."""

    def bases(self, node: Node) -> Iterator[str]:
        """Of ``extends`` and ``implements``."""
        for clause in node.children:
            if clause.type in _CLAUSES_JAVA:
                for one in clause.named_children:
                    parts = one.named_children if one.type == "type_list" else (one,)
                    yield from (clean_type(text_of(part)) for part in parts)

    def imports(self, node: Node) -> Iterator[Import]:
        """A class, all of a package, or what is static in a class."""
        path = next(
            (plain_chain(text_of(one)) for one in node.named_children if one.type != "asterisk"), ""
        )
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


# ----------------------------------------------------------------------------
# Python.


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
        if node.type == "import_from_statement" and any(
            one.type == "wildcard_import" for one in node.children
        ):
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
                yield (
                    plain_chain(text_of(made.named_children[1])),
                    made_type(made.named_children[0]),
                )


# ----------------------------------------------------------------------------
# Rust.


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
            yield Import(
                module,
                name,
                "" if name == "*" else alias or name,
                line_of(node),
                exported=is_public,
            )

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
