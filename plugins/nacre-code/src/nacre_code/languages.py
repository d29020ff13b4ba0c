"""Extraction of definitions, calls, imports and types from source files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from posixpath import basename, splitext
from typing import TYPE_CHECKING

import msgspec

from nacre.base.frozen import frozen
from nacre.base.lazy import load
from nacre.errors import UnavailableError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

# ----------------------------------------------------------------------------
# The facts of a source file. They contain no literals.


MODULE = -1
"""Scope number for code outside all definitions."""

INNER_KINDS = frozenset({"namespace", "impl"})
"""Kinds of definitions that qualify names but are not symbols."""

CLASS_KINDS = frozenset({"class", "interface", "type", "impl"})
"""Kinds of definitions that have members."""


class Definition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A symbol or an enclosing scope.

    ``parent`` is the number of the enclosing definition, ``owner`` is the qualified name of the
    class, if any, and ``returns`` is the return type as written.
    """

    name: str
    qualified: str
    kind: str
    parent: int
    owner: str
    line: int
    end_line: int
    returns: str = ""


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first call of a name in a scope, such as ``receiver.name(…)``.

    The receiver is a dotted name, ``?`` for any other expression, or empty.
    """

    scope: int
    receiver: str
    name: str
    line: int


class Import(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An imported name.

    ``name`` is empty if the module itself is imported, and ``*`` for all names. ``alias`` is the
    name in the importing file.
    """

    module: str
    name: str
    alias: str
    line: int
    exported: bool = False


class Base(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A base class, as written."""

    owner: int
    name: str


class Variable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A variable's type in a scope, as written.

    A type that ends in ``()`` is the result of a call, or the class that it constructs.
    """

    scope: int
    name: str
    type: str


class Facts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The definitions and references in a file.

    ``package`` is the declared package, and ``default`` is the name of the default export.
    """

    language: str
    package: str
    default: str
    definitions: tuple[Definition, ...]
    calls: tuple[Call, ...]
    imports: tuple[Import, ...]
    bases: tuple[Base, ...]
    variables: tuple[Variable, ...]


# ----------------------------------------------------------------------------
# Readers of syntax trees.


NAME_CHARACTERS = 200
_CHAIN = re.compile(r"[\w$]+(?:\.[\w$]+)*")
_SEPARATOR = re.compile(r"\s*(?:\?\.|!\.|->|::|\.)\s*")
_GENERIC = re.compile(r"(?:::)?<[^<>()]*>")
_LAST = re.compile(r"(?:\.|->|::)\s*([A-Za-z_$][\w$]*)$")
_CALLED_RESULT = re.compile(r"(?:new\s+)?([A-Za-z_$][\w$.]*)\(.*\)\.([A-Za-z_$][\w$]*)$", re.DOTALL)
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
    """Return a node's source code, or an empty string if it is too long for a name."""
    if node is None or node.end_byte - node.start_byte > 4 * NAME_CHARACTERS or node.text is None:
        return ""
    return node.text.decode("utf-8", "replace")


def child(node: Node | None, name: str) -> Node | None:
    """Return the node in a field, if any."""
    return node.child_by_field_name(name) if node is not None else None


def field(node: Node | None, name: str) -> str:
    """Return the source code of a node's field, or an empty string."""
    return text_of(child(node, name))


def parts(node: Node | None) -> list[Node]:
    """Return a node's named children."""
    return node.named_children if node is not None else []


def first(node: Node | None) -> Node | None:
    """Return a node's first named child, if any."""
    return next(iter(parts(node)), None)


def plain_chain(text: str) -> str:
    """Normalise the separators of a dotted name. Return an empty string for other text."""
    text = _SEPARATOR.sub(".", _GENERIC.sub("", text.strip())).lstrip(".")
    return text if len(text) <= NAME_CHARACTERS and _CHAIN.fullmatch(text) else ""


def split_call(text: str) -> tuple[str, str] | None:
    """Split a call into receiver and name. The receiver is ``?`` for a complex expression."""
    if chain := plain_chain(text):
        receiver, _, name = chain.rpartition(".")
        head, dot, tail = receiver.partition(".")
        return (_SELF.get(head, head) + dot + tail, name)
    text = _SEPARATOR.sub(".", _GENERIC.sub("", text))
    match = _CALLED_RESULT.fullmatch(text)
    if match and "(" not in match[1] and text.count("(") == text.count(")"):
        return ("super" if match[1] == "super" else f"{match[1]}()", match[2])
    last = _LAST.search(text)
    return ("?", last[1]) if last else None


def clean_type(text: str) -> str:
    """Remove wrappers such as ``Optional[…]`` from a type. Return an empty string for collections."""
    text = text.strip().strip("\"'").lstrip(":").strip()
    for _ in range(4):
        text = _MODIFIERS.sub("", text).split("|")[0].strip()
        wrapped = _WRAPPED.match(text)
        if not wrapped:
            break
        text = wrapped[1].split(",")[0]
    text = _SEPARATOR.sub(".", text)
    match = _CHAIN.match(text)
    if not match or len(match[0]) > NAME_CHARACTERS or match[0].isdigit() or text.endswith("[]"):
        return ""
    return match[0]


def value_type(node: Node | None) -> str:
    """Infer a type from a value that is a call, a constructor or a struct literal."""
    while node is not None and node.type in (
        "await",
        "await_expression",
        "unary_expression",
        "reference_expression",
    ):
        node = next(reversed(node.named_children), None)
    if node is None:
        return ""
    if node.type in ("call", "call_expression"):
        chain = plain_chain(field(node, "function"))
        return f"{chain}()" if chain else ""
    if node.type not in (
        "new_expression",
        "object_creation_expression",
        "composite_literal",
        "struct_expression",
    ):
        return ""
    return clean_type(field(node, "constructor") or field(node, "type") or field(node, "name"))


class Reader:
    """A reader of syntax trees. Subclasses override methods for their language."""

    def name(self, node: Node) -> str:
        """Return a definition's name, including the owner if the source spells it out."""
        return plain_chain(field(node, "name"))

    def kind(self, node: Node, kind: str) -> str:  # noqa: ARG002 - some languages look at the node
        """Return a definition's kind, possibly more specific than ``kind``."""
        return kind

    def returns(self, node: Node) -> str:
        return clean_type(
            field(node, "return_type") or field(node, "type") or field(node, "result")
        )

    def bases(self, node: Node) -> Iterator[str]:  # noqa: ARG002
        """Yield the base classes of a class."""
        yield from ()

    def imports(self, node: Node) -> Iterator[Import]:  # noqa: ARG002
        """Yield the names that a statement imports."""
        yield from ()

    def default(self, node: Node) -> str:  # noqa: ARG002
        """Return the name of a default export."""
        return ""

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Yield variables with their types. Fields are named ``self.x``."""
        yield from ()

    def call(self, node: Node) -> tuple[str, str] | None:
        return split_call(text_of(node) or _tail(node))


def _tail(node: Node) -> str:
    last = next(reversed(node.named_children), None)
    return f"(…).{text_of(last)}" if last is not None and last.type.endswith("identifier") else ""


def line_of(node: Node) -> int:
    """Return a node's 1-based line number."""
    return node.start_point[0] + 1


# ----------------------------------------------------------------------------
# C and C++.


_NAMES = ("identifier", "field_identifier", "type_identifier", "qualified_identifier")


class CFamily(Reader):
    """A reader for C and C++."""

    def name(self, node: Node) -> str:
        """Return the declared name, without pointers."""
        if node.type in ("function_definition", "type_definition"):
            return plain_chain(text_of(_name_in(child(node, "declarator"), through_functions=True)))
        return plain_chain(field(node, "name"))

    def returns(self, node: Node) -> str:
        return clean_type(field(node, "type"))

    def bases(self, node: Node) -> Iterator[str]:
        for clause in node.children:
            if clause.type == "base_class_clause":
                for base in clause.named_children:
                    if base.type in ("type_identifier", "qualified_identifier", "template_type"):
                        yield clean_type(text_of(base))

    def imports(self, node: Node) -> Iterator[Import]:
        yield Import(field(node, "path").strip('"<>'), "*", "", line_of(node))

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield parameters, fields and variables, inferring the type of ``auto`` from the value."""
        kind = clean_type(field(node, "type"))
        start = "self." if node.type == "field_declaration" else ""
        for declarator in node.children_by_field_name("declarator"):
            if declarator.type == "init_declarator" and kind == "auto":
                kind = value_type(child(declarator, "value"))
            if (name := _name_in(declarator)) is not None:
                yield start + text_of(name), kind


def _name_in(node: Node | None, *, through_functions: bool = False) -> Node | None:
    while node is not None and node.type not in _NAMES:
        if node.type == "function_declarator" and not through_functions:
            return None
        inner = child(node, "declarator")
        node = inner or next((part for part in parts(node) if part.type in _NAMES), None)
    return node


# ----------------------------------------------------------------------------
# JavaScript and TypeScript.


_CLAUSES = ("extends_clause", "implements_clause", "extends_type_clause")
_SKIPPED_PREFIXES = ("exports.", "module.exports.", "self.", "this.")


class Ecma(Reader):
    """A reader for JavaScript and TypeScript."""

    def name(self, node: Node) -> str:
        """Return the name of a definition.

        The prefixes ``exports.`` and ``this.`` are removed, and ``A.prototype.f`` becomes ``A.f``.
        """
        if node.type != "assignment_expression":
            return plain_chain(field(node, "name") or field(node, "property"))
        left = plain_chain(field(node, "left")).replace(".prototype.", ".")
        for start in _SKIPPED_PREFIXES:
            left = left.removeprefix(start)
        return left if left.count(".") < 2 else ""

    def returns(self, node: Node) -> str:
        value = child(node, "value") or child(node, "right")
        return clean_type(field(value or node, "return_type"))

    def bases(self, node: Node) -> Iterator[str]:
        for clause in node.children:
            if clause.type == "extends_type_clause":
                yield from (clean_type(text_of(base)) for base in clause.named_children)
            elif clause.type == "class_heritage":
                for base in clause.named_children:
                    bases = base.named_children if base.type in _CLAUSES else (base,)
                    yield from (
                        clean_type(text_of(part)) for part in bases if part.type != "type_arguments"
                    )

    def imports(self, node: Node) -> Iterator[Import]:
        """Yield the names in ``import``, ``export … from`` and ``require``."""
        if node.type == "variable_declarator":
            yield from _required_modules(node)
            return
        source = _string_value(child(node, "source"))
        is_export = node.type == "export_statement"
        if source:
            clauses = [
                part
                for part in node.named_children
                if part.type in ("import_clause", "export_clause")
            ]
            spaces = [part for part in node.named_children if part.type == "namespace_export"]
            line = line_of(node)
            if spaces:
                yield Import(source, "", text_of(first(spaces[0])), line, exported=True)
            elif not clauses:
                yield Import(source, "*" if is_export else "", "", line, exported=is_export)
            for clause in clauses:
                yield from _imported_names(clause, source, line, is_export)
        elif is_export:
            for clause in node.named_children:
                for specifier in clause.named_children if clause.type == "export_clause" else ():
                    name = field(specifier, "name")
                    yield Import(
                        "", name, field(specifier, "alias") or name, line_of(node), exported=True
                    )

    def default(self, node: Node) -> str:
        """Return the name exported by ``export default`` or ``module.exports =``."""
        if node.type != "export_statement" or not any(
            part.type == "default" for part in node.children
        ):
            return ""
        return field(child(node, "declaration"), "name") or plain_chain(field(node, "value"))

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield parameters, fields and variables with a declared or inferred type."""
        names = plain_chain(field(node, "pattern") or field(node, "left") or field(node, "name"))
        kind = clean_type(field(node, "type"))
        value = child(node, "value") or child(node, "right")
        if names.startswith("this."):
            names = f"self.{names[5:]}"
        is_field = node.type.endswith("field_definition") or (
            node.type.endswith("parameter")
            and any(part.type == "accessibility_modifier" for part in node.children)
        )
        type_name = kind or value_type(value).replace("require()", "")
        if not type_name and value is not None and value.type == "identifier":
            type_name = f"={text_of(value)}"
        if is_field:
            yield f"self.{names}", type_name
        if not node.type.endswith("field_definition"):
            yield names, type_name


def _string_value(node: Node | None) -> str:
    return text_of(node).strip("\"'`")


def _imported_names(clause: Node, source: str, line: int, is_export: bool) -> Iterator[Import]:
    for part in clause.named_children:
        if part.type == "identifier":
            yield Import(source, "default", text_of(part), line)
        elif part.type == "namespace_import":
            yield Import(source, "", text_of(first(part)), line)
        elif part.type in ("import_specifier", "export_specifier"):
            name = field(part, "name")
            yield Import(source, name, field(part, "alias") or name, line, exported=is_export)
        else:
            yield from _imported_names(part, source, line, is_export)


def _required_modules(node: Node) -> Iterator[Import]:
    value, left, line = child(node, "value"), child(node, "name"), line_of(node)
    source = _string_value(first(child(value, "arguments")))
    if field(value, "function") != "require" or not source or left is None:
        return
    if left.type == "identifier":
        yield Import(source, "", text_of(left), line)
    for part in left.named_children:
        if part.type == "shorthand_property_identifier_pattern":
            yield Import(source, text_of(part), text_of(part), line)
        elif part.type == "pair_pattern":
            yield Import(source, field(part, "key"), field(part, "value"), line)


# ----------------------------------------------------------------------------
# Go.


_KINDS = {"struct_type": "class", "interface_type": "interface"}


class Go(Reader):
    """A reader for Go."""

    def name(self, node: Node) -> str:
        """Return the name of a definition, with the receiver's type for a method."""
        owner = clean_type(field(first(child(node, "receiver")), "type"))
        return ".".join(filter(None, (owner, field(node, "name"))))

    def kind(self, node: Node, kind: str) -> str:
        type_node = child(node, "type")
        return _KINDS.get(type_node.type, "type") if kind == "class" and type_node else kind

    def returns(self, node: Node) -> str:
        """Return the type of the first result."""
        result = child(node, "result")
        is_list = result is not None and result.type == "parameter_list"
        return clean_type(field(first(result), "type") if is_list else text_of(result))

    def bases(self, node: Node) -> Iterator[str]:
        for part in parts(child(node, "type")):
            if part.type == "type_elem" and len(part.named_children) == 1:
                yield clean_type(text_of(part))
            for member in part.named_children if part.type == "field_declaration_list" else ():
                if member.type == "field_declaration" and child(member, "name") is None:
                    yield clean_type(field(member, "type"))

    def imports(self, node: Node) -> Iterator[Import]:
        """Yield an imported package, named by its alias or the last component of its path."""
        path = field(node, "path").strip('"`')
        alias = field(node, "name")
        if alias == ".":
            yield Import(path, "*", "", line_of(node))
        else:
            yield Import(path, "", alias or basename(path), line_of(node))

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield parameters, fields and variables. Only the first result of a call gives a type."""
        if node.type == "short_var_declaration":
            yield text_of(first(child(node, "left"))), value_type(first(child(node, "right")))
            return
        kind = clean_type(field(node, "type"))
        start = "self." if node.type == "field_declaration" else ""
        for name in node.children_by_field_name("name"):
            yield start + text_of(name), kind


# ----------------------------------------------------------------------------
# Java.


_CLAUSES_JAVA = ("superclass", "super_interfaces", "extends_interfaces")


class Java(Reader):
    """A reader for Java."""

    def bases(self, node: Node) -> Iterator[str]:
        for clause in node.children:
            if clause.type in _CLAUSES_JAVA:
                for base in clause.named_children:
                    bases = base.named_children if base.type == "type_list" else (base,)
                    yield from (clean_type(text_of(part)) for part in bases)

    def imports(self, node: Node) -> Iterator[Import]:
        """Yield an imported class, all classes of a package, or a class's static members."""
        names = (part for part in node.named_children if part.type != "asterisk")
        path = plain_chain(text_of(next(names, None)))
        if any(part.type == "asterisk" for part in node.children):
            yield Import(path, "*", "", line_of(node))
            return
        module, _, name = path.rpartition(".")
        yield Import(module, name, name, line_of(node))

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield parameters, fields and variables, inferring the type of ``var`` from the value."""
        kind = clean_type(field(node, "type"))
        if node.type == "formal_parameter":
            yield field(node, "name"), kind
            return
        for declarator in node.children_by_field_name("declarator"):
            type_name = value_type(child(declarator, "value")) if kind == "var" else kind
            start = "self." if node.type == "field_declaration" else ""
            yield start + field(declarator, "name"), type_name

    def call(self, node: Node) -> tuple[str, str] | None:
        if node.type != "method_invocation":
            return split_call(text_of(node))
        receiver, name = child(node, "object"), field(node, "name")
        if receiver is None:
            return ("", name)
        return split_call(f"{text_of(receiver) or '(…)'}.{name}") or ("?", name)


# ----------------------------------------------------------------------------
# Python.


class Python(Reader):
    """A reader for Python."""

    def bases(self, node: Node) -> Iterator[str]:
        """Yield the base classes, without type parameters."""
        for base in parts(child(node, "superclasses")):
            if base.type in ("identifier", "attribute", "subscript"):
                yield clean_type(text_of(base))

    def imports(self, node: Node) -> Iterator[Import]:
        """Yield imported names. The module of ``from . import x`` is named ``.``."""
        line = line_of(node)
        module = "".join(field(node, "module_name").split())
        if node.type == "import_from_statement" and any(
            imported.type == "wildcard_import" for imported in node.children
        ):
            yield Import(module, "*", "", line)
        for imported in node.children_by_field_name("name"):
            name = plain_chain(field(imported, "name") or text_of(imported))
            alias = field(imported, "alias")
            if node.type == "import_from_statement":
                yield Import(module, name, alias or name, line)
            else:
                yield Import(name, "", alias or name, line)

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield parameters and variables with a declared or inferred type.

        The type of ``self.x = x`` is ``=x``, an alias.
        """
        if node.type in ("typed_parameter", "typed_default_parameter"):
            name = field(node, "name") or text_of(first(node))
            yield name.lstrip("*"), clean_type(field(node, "type"))
        elif node.type == "assignment":
            right = child(node, "right")
            type_name = clean_type(field(node, "type")) or value_type(right)
            if not type_name and right is not None and right.type == "identifier":
                type_name = f"={text_of(right)}"
            yield plain_chain(field(node, "left")), type_name
        else:
            pattern = parts(first(node))
            if len(pattern) == 2:
                yield plain_chain(text_of(pattern[1])), value_type(pattern[0])


# ----------------------------------------------------------------------------
# Rust.


class Rust(Reader):
    """A reader for Rust."""

    def name(self, node: Node) -> str:
        """Return the name of a definition, or the type of an ``impl``."""
        return clean_type(field(node, "type")) if node.type == "impl_item" else field(node, "name")

    def returns(self, node: Node) -> str:
        return clean_type(field(node, "return_type"))

    def bases(self, node: Node) -> Iterator[str]:
        """Yield the trait of an ``impl``, or the supertraits of a trait."""
        yield clean_type(field(node, "trait"))
        for bound in parts(child(node, "bounds")) if node.type == "trait_item" else ():
            yield clean_type(text_of(bound))

    def imports(self, node: Node) -> Iterator[Import]:
        """Yield the module in ``mod x;`` and all names in a ``use``."""
        if node.type == "mod_item":
            yield Import(f"self.{field(node, 'name')}", "", field(node, "name"), line_of(node))
            return
        is_public = any(part.type == "visibility_modifier" for part in node.children)
        for path, alias in _used_paths(child(node, "argument"), ""):
            module, _, name = path.rpartition(".")
            yield Import(
                module,
                name,
                "" if name == "*" else alias or name,
                line_of(node),
                exported=is_public,
            )

    def variables(self, node: Node) -> Iterator[tuple[str, str]]:
        kind = clean_type(field(node, "type"))
        if node.type == "field_declaration":
            yield f"self.{field(node, 'name')}", kind
        else:
            name = field(node, "pattern").removeprefix("mut ")
            yield name, kind or value_type(child(node, "value"))


def _used_paths(node: Node | None, before: str) -> Iterator[tuple[str, str]]:
    if node is None:
        return
    if node.type == "scoped_use_list":
        path = plain_chain(field(node, "path"))
        yield from _used_paths(child(node, "list"), f"{before}{path}.")
    elif node.type == "use_list":
        for item in node.named_children:
            yield from _used_paths(item, before)
    elif node.type == "use_as_clause":
        yield before + plain_chain(field(node, "path")), field(node, "alias")
    elif node.type == "use_wildcard":
        yield f"{before}{plain_chain(text_of(first(node)))}.*", ""
    elif node.type == "self" and before:
        yield before.rstrip("."), ""
    elif chain := plain_chain(text_of(node)):
        yield before + chain, ""


# ----------------------------------------------------------------------------
# Languages.


@frozen
class Language:
    """A programming language, with its grammar and syntax queries.

    Languages of one ``family`` can call each other's code. Its default, and the grammar's and
    query's, is the name.
    """

    name: str
    reader: Reader
    suffixes: Sequence[str]
    family: str = ""
    queries: Sequence[str] = ()
    grammar: str = ""
    function: str = "language"


_ECMA, _C = Ecma(), CFamily()
LANGUAGES = {
    language.name: language
    for language in (
        Language("python", Python(), (".py", ".pyi")),
        Language(
            "javascript",
            _ECMA,
            (".js", ".mjs", ".cjs", ".jsx"),
            "ecma",
            ("ecma", "jsx", "javascript"),
        ),
        Language(
            "typescript",
            _ECMA,
            (".ts", ".mts", ".cts"),
            "ecma",
            ("ecma", "typescript"),
            function="language_typescript",
        ),
        Language(
            "tsx",
            _ECMA,
            (".tsx",),
            "ecma",
            ("ecma", "jsx", "typescript"),
            "typescript",
            "language_tsx",
        ),
        Language("go", Go(), (".go",)),
        Language("rust", Rust(), (".rs",)),
        Language("java", Java(), (".java",)),
        Language("c", _C, (".c",), "cfamily"),
        Language(
            "cpp",
            _C,
            (".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp"),
            "cfamily",
            ("c", "cpp"),
        ),
    )
}
"""Languages by name. C headers are parsed as C++."""

_LANGUAGE_BY_SUFFIX = {
    suffix: language.name for language in LANGUAGES.values() for suffix in language.suffixes
}


def language_of(path: str) -> str | None:
    """Return a file's language by its extension, or ``None`` if it is not supported."""
    return _LANGUAGE_BY_SUFFIX.get(splitext(path)[1].lower())


def require_parsers() -> None:
    """Raise UnavailableError with an installation hint if the parsers are missing."""
    try:
        import_module("tree_sitter")
        for language in LANGUAGES.values():
            import_module(f"tree_sitter_{language.grammar or language.name}")
    except ImportError as error:
        raise UnavailableError(
            f"reading code needs {error.name}, which is not installed",
            hint="pip install 'nacre-memory[code]'",
        ) from error


@cache
def parser_of(name: str) -> tuple[Parser, Query]:
    """Return the parser and the query of a language. Raises ImportError if they are not installed."""
    language = LANGUAGES[name]
    grammar = load("tree_sitter:Language")(
        load(f"tree_sitter_{language.grammar or name}:{language.function}")()
    )
    text = "\n".join(
        (files(__package__) / "queries" / f"{query}.scm").read_text(encoding="utf-8")
        for query in language.queries or (name,)
    )
    return load("tree_sitter:Parser")(grammar), load("tree_sitter:Query")(grammar, text)


MAX_DEFINITIONS = 20_000
MAX_REFERENCES = 100_000
"""Maximum number of references to read per file."""

QUALIFIED_CHARACTERS = 500
"""Maximum length of a qualified name, which limits memory use for deeply nested code."""

_DEFINITIONS = ("function", "class", "interface", "type", "namespace", "impl")
_ORDER = {
    name: place
    for place, name in enumerate((*_DEFINITIONS, "package", "import", "variable", "call"))
}


def read_code(language: str, source: bytes) -> Facts:
    """Extract a file's facts. Raises ImportError if the parser of its language is not installed."""
    parser, query = parser_of(language)
    captured = load("tree_sitter:QueryCursor")(query).captures(parser.parse(source).root_node)
    reading = _Reading(LANGUAGES[language].reader)
    # Sort by source order. Enclosing nodes and definitions come first.
    rows = [
        (node.start_byte, -node.end_byte, _ORDER.get(capture, 99), capture, node)
        for capture, nodes in captured.items()
        for node in nodes
    ]
    for *_, capture, node in sorted(rows, key=lambda row: row[:3]):
        reading.take(capture, node)
    return reading.facts(language)


class _Reading:
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
        while self._open and self._open[-1][0] <= node.start_byte:
            self._open.pop()
        if capture in _DEFINITIONS:
            self._define(capture, node)
        elif capture == "package":
            self._package = text_of(node)
        elif capture == "import":
            self._imports += self._reader.imports(node)
            self._default = self._reader.default(node) or self._default
        elif capture == "variable":
            self._imports += (
                self._reader.imports(node) if node.type == "variable_declarator" else ()
            )
            for name, kind in self._reader.variables(node):
                if not name or not kind or len(self._variables) >= MAX_REFERENCES:
                    continue
                self._variables[Variable(self._scope, name, kind)] = None
        elif len(self._calls) < MAX_REFERENCES:
            self._call(capture, node)

    def facts(self, language: str) -> Facts:
        return Facts(
            language,
            self._package,
            self._default,
            tuple(self._definitions),
            tuple(Call(*key, line) for key, line in self._calls.items()),
            tuple(
                item
                for item in self._imports
                if len(item.module) + len(item.name) <= 2 * NAME_CHARACTERS
            ),
            tuple(self._bases),
            tuple(self._variables),
        )

    @property
    def _scope(self) -> int:
        return self._open[-1][1] if self._open else MODULE

    def _define(self, capture: str, node: Node) -> None:
        name, parent = self._reader.name(node), self._scope
        around = self._definitions[parent] if parent != MODULE else None
        before = f"{around.qualified}." if around else ""
        is_long = len(name) > NAME_CHARACTERS or len(before) + len(name) > QUALIFIED_CHARACTERS
        if not name or is_long or len(self._definitions) >= MAX_DEFINITIONS:
            return
        own, _, last = name.rpartition(".")
        owner = (
            f"{before}{own}"
            if own
            else (around.qualified if around and around.kind in CLASS_KINDS else "")
        )
        kind = self._reader.kind(node, capture)
        if kind == "function" and owner:
            kind = "method"
        returns = self._reader.returns(node) if capture == "function" else ""
        number = len(self._definitions)
        self._definitions.append(
            Definition(
                last,
                before + name,
                kind,
                parent,
                owner,
                line_of(node),
                node.end_point[0] + 1,
                returns,
            )
        )
        self._open.append((node.end_byte, number))
        if kind in CLASS_KINDS:
            self._bases += (Base(number, base) for base in self._reader.bases(node) if base)

    def _call(self, capture: str, node: Node) -> None:
        if capture == "new":
            receiver, _, name = clean_type(text_of(node)).rpartition(".")
        else:
            receiver, name = self._reader.call(node) or ("", "")
        if not name or (capture == "component" and not name[:1].isupper()):
            return
        scope = self._scope
        while scope != MODULE and self._definitions[scope].kind in INNER_KINDS:
            scope = self._definitions[scope].parent
        if max(len(receiver), len(name)) <= NAME_CHARACTERS:
            self._calls.setdefault((scope, receiver, name), line_of(node))
