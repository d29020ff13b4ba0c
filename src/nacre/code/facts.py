"""The facts of one source file: definitions, calls, imports, base classes and types of variables. No contents."""

from __future__ import annotations

import msgspec

MODULE = -1
"""The scope of code outside every definition."""

INNER_KINDS = frozenset({"namespace", "impl"})
"""Kinds of definitions that qualify the names of others and are no symbols themselves."""

CLASS_KINDS = frozenset({"class", "interface", "type", "impl"})
"""Kinds of definitions that have members."""


class Definition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A symbol, or a scope that names symbols.

    ``parent`` is the number of the definition around it; ``owner`` the qualified name of the class it belongs to, or
    empty. ``returns`` is the type that it returns, as written. What is ``hidden`` cannot be named by other files.
    """

    name: str
    qualified: str
    kind: str
    parent: int
    owner: str
    line: int
    end_line: int
    returns: str = ""
    hidden: bool = False


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A call in a scope, the first of its words: ``receiver.name(…)``. The receiver is dotted names, empty, or ``?``
    where it is none."""

    scope: int
    receiver: str
    name: str
    line: int


class Import(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One imported name. ``name`` is empty where the module itself is, ``*`` for all its names; ``alias`` is what the
    file calls it, empty where it gets no name."""

    module: str
    name: str
    alias: str
    line: int
    exported: bool = False


class Base(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A base class, as the class names it."""

    owner: int
    name: str


class Variable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The type of a variable in a scope, as written. A type that ends in ``()`` is what that call returns, or the class
    that it makes."""

    scope: int
    name: str
    type: str


class Facts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All of a file. ``package`` is what it says that it belongs to, ``default`` what it exports without a name."""

    language: str
    package: str = ""
    default: str = ""
    definitions: tuple[Definition, ...] = ()
    calls: tuple[Call, ...] = ()
    imports: tuple[Import, ...] = ()
    bases: tuple[Base, ...] = ()
    variables: tuple[Variable, ...] = ()
