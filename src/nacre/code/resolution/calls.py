"""Resolve calls: by the type of the receiver if the source declares it, else by a method name that is unique."""

from __future__ import annotations

from collections import defaultdict

from nacre.code.facts import CLASS_KINDS, MODULE, Call
from nacre.code.resolution.index import Index, Node
from nacre.code.resolution.names import MOST_FOUND, Names

_UNKNOWN = object()

_Declared = tuple[int, int, str]
"""A declared type: file, scope, and the name of the type, or ``=`` and an expression of the same type."""


class Calls:
    """Resolves the calls of files."""

    def __init__(self, index: Index, names: Names) -> None:
        self._index, self._names = index, names
        self._known: dict[tuple[int, int, str], Node | object | None] = {}
        self._types: dict[tuple[int, int, str], set[_Declared]] = defaultdict(set)
        self._fields: dict[tuple[str, str, str], set[_Declared]] = defaultdict(set)
        for number, facts in enumerate(index.facts):
            for one in facts.variables:
                if one.name.startswith("self."):
                    self._add_field(number, one.scope, one.name[5:], one.type)
                elif "." not in one.name:
                    self._types[number, one.scope, one.name].add((number, one.scope, one.type))
                    if one.scope != MODULE and facts.definitions[one.scope].kind in CLASS_KINDS:
                        self._add_field(number, one.scope, one.name, one.type)

    def trim(self) -> None:
        """Clear the cache if it has grown large."""
        if len(self._known) > MOST_FOUND:
            self._known.clear()

    def resolve(self, file: int, call: Call) -> Node | None:
        """The definition that a call refers to; ``None`` if it is ambiguous or outside the repository."""
        if not call.receiver:
            found = self._names.lookup(file, call.scope, call.name)
            return found if isinstance(found, tuple) and self._is_callable(found) else None
        if call.receiver == "?":
            return self._names.unique_method(file, call.name)
        known = self._type_of(file, call.scope, call.receiver)
        if isinstance(known, tuple):
            return self._names.member(known, call.name)
        if known is not _UNKNOWN:
            return None
        return self._of_name(file, call)

    def _of_name(self, file: int, call: Call) -> Node | None:
        """Resolve a call whose receiver is no variable: a module, a class, or unknown."""
        if call.receiver.endswith("()"):
            return self._names.unique_method(file, call.name)
        found = self._names.chain(file, call.scope, call.receiver)
        if found is None:
            return self._qualified(file, call) or self._names.unique_method(file, call.name)
        target = self._names.step(file, found, call.name)
        return target if isinstance(target, tuple) and self._is_callable(target) else None

    def _qualified(self, file: int, call: Call) -> Node | None:
        """Resolve ``ns::f()`` of C++, whose namespaces span files."""
        if self._index.families[file] != "cfamily":
            return None
        ending = f".{call.receiver}.{call.name}"
        held = self._index.functions.get(("cfamily", call.name), ())
        fit = [node for node in held if f".{self._index.definition(node).qualified}".endswith(ending)]
        return fit[0] if len(fit) == 1 else None

    def _type_of(self, file: int, scope: int, receiver: str) -> Node | object | None:
        """The class of a receiver; ``None``: no class of this repository; ``_UNKNOWN``: the receiver is no variable."""
        key = (file, scope, receiver)
        if key not in self._known:
            self._known[key] = None  # a variable that is made of itself has no type
            self._known[key] = self._find_type(file, scope, receiver)
        return self._known[key]

    def _find_type(self, file: int, scope: int, receiver: str) -> Node | object | None:
        if receiver.endswith("()"):
            return self._made(file, scope, receiver[:-2])
        before, dot, last = receiver.rpartition(".")
        if not dot:
            return self._head_type(file, scope, receiver)
        owner = self._type_of(file, scope, before)
        return self._field_type(owner, last) if isinstance(owner, tuple) else owner

    def _head_type(self, file: int, scope: int, head: str) -> Node | object | None:
        if head in ("self", "cls", "Self"):
            return self._names.owner_of(file, scope) or self._own_function(file, scope)
        if head == "super" and self._index.families[file] != "rust":
            owner = self._names.owner_of(file, scope)
            return next(iter(self._names.bases(owner)), None) if owner else None
        definitions = self._index.facts[file].definitions
        around = scope
        while True:
            declared = self._types.get((file, around, head))
            if declared:
                return self._only_type(declared)
            if around == MODULE:
                break
            around = definitions[around].parent
        owner = self._names.owner_of(file, scope) if self._names.modules(file).sees_members else None
        return self._field_type(owner, head, _UNKNOWN) if owner else _UNKNOWN

    def _own_function(self, file: int, scope: int) -> Node | object | None:
        """The type of ``this`` in a constructor function of JavaScript."""
        definitions = self._index.facts[file].definitions
        is_maker = scope != MODULE and definitions[scope].name[:1].isupper()
        return (file, scope) if is_maker and self._index.families[file] == "ecma" else None

    def _field_type(self, owner: Node, name: str, otherwise: object = None) -> Node | object | None:
        """The class of a field. An alias (``=``) counts only if no type is declared.

        Of several classes with one name, the declarations in the same file count.
        """
        declared = self._fields.get((self._index.families[owner[0]], self._index.definition(owner).qualified, name))
        if not declared:
            return otherwise
        own = {one for one in declared if one[0] == owner[0]} or declared
        return self._only_type({one for one in own if not one[2].startswith("=")} or own)

    def _only_type(self, declared: set[_Declared]) -> Node | None:
        found = {node for one in sorted(declared) if (node := self._type_named(*one))}
        return found.pop() if len(found) == 1 else None

    def _type_named(self, file: int, scope: int, kind: str) -> Node | None:
        if kind.startswith("=") or kind.endswith("()"):
            found = self._type_of(file, scope, kind.removeprefix("="))
        else:
            found = self._names.type_named(file, scope, kind)
        return found if isinstance(found, tuple) else None

    def _made(self, file: int, scope: int, callee: str) -> Node | object | None:
        """The class that a call constructs or returns."""
        receiver, _, name = callee.rpartition(".")
        made = self.resolve(file, Call(scope, receiver, name, 0))
        if made is None:
            return None if callee[:1].isupper() else _UNKNOWN
        if self._index.is_class(made):
            return made
        returns = self._index.definition(made).returns
        if returns in ("Self", "self", "this"):
            return self._names.owner_of(*made)
        return self._type_named(*made, returns) if returns else _UNKNOWN

    def _is_callable(self, node: Node) -> bool:
        return self._index.definition(node).kind in ("function", "method", "class", "interface", "type")

    def _add_field(self, file: int, scope: int, name: str, kind: str) -> None:
        definitions = self._index.facts[file].definitions
        while scope != MODULE:
            one = definitions[scope]
            if one.kind == "method":
                self._fields[self._index.families[file], one.owner, name].add((file, scope, kind))
                return
            if one.kind in ("class", "interface", "type"):
                self._fields[self._index.families[file], one.qualified, name].add((file, scope, kind))
                return
            scope = one.parent
