"""What readers of all languages share: names and types out of the text of a node. No text of a literal is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nacre.code.facts import Import

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
_MODIFIERS = re.compile(r"^(?:[&*\s]|'\w+\s|mut\b|const\b|dyn\b|impl\b|struct\b|enum\b|class\b|final\b|readonly\b)+")
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
    while node is not None and node.type in ("await", "await_expression", "unary_expression", "reference_expression"):
        node = node.named_children[-1] if node.named_children else None
    if node is None:
        return ""
    if node.type in ("call", "call_expression"):
        chain = plain_chain(field(node, "function"))
        return f"{chain}()" if chain else ""
    for part in ("constructor", "type", "name"):
        if node.type in ("new_expression", "object_creation_expression", "composite_literal", "struct_expression"):
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
        return clean_type(field(node, "return_type") or field(node, "type") or field(node, "result"))

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
