"""Look up names in their scope: a definition, a module, or a name from outside the repository."""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterable

from nacre.code.facts import CLASS_KINDS, MODULE, Import
from nacre.code.resolution.index import OUTSIDE, Index, Module, Node, Target
from nacre.code.resolution.modules import BY_FAMILY, Modules

_DEPTH = 8
"""Longest chain of imports, or of base classes, that is followed."""

MOST_FOUND = 50_000
"""Size of the cache at which it is cleared; files seldom share entries."""

COMMON = frozenset(
    {
        name for kind in (str, bytes, list, dict, set, int, float, BaseException, property, memoryview)
        for name in dir(kind)
    }
    | set(
        """add apply assert call catch charAt clone close collect concat contains containsKey create delete emit empty
        endsWith entries equals error every exec execute exists exit extend fetch fill filter finally find findIndex
        first flat flatMap flush forEach from get getAttribute getClass getName getOrDefault has hasNext hashCode
        includes info init insert into is_empty isEmpty iter join key keySet last lastIndexOf len length listen load
        log lower map match new next notify now ok on once open or_else parse peek post print println push put query
        read readline reduce ref release remove render replace request reset resolve respond resume run save scan
        schedule search seek select send set setAttribute shift show size slice some sort splice start status stop
        stream string submit substring sum tell test then toArray toList toLowerCase toString toUpperCase to_owned
        to_string touch trim unlock unshift unwrap update upper valueOf values wait warn with write writeln""".split()
    )
)  # fmt: skip
"""Common method names: if the receiver is unknown, the call probably goes to a library."""

_BUILTIN = {
    "python": frozenset(dir(builtins)),
    "ecma": frozenset("console process document window globalThis module exports require".split()),
}


class Names:
    """Looks names up and caches the results by file, scope and name."""

    def __init__(self, index: Index) -> None:
        self.index = index
        present = set(index.families)
        self._modules: dict[str, Modules] = {family: BY_FAMILY[family](index) for family in present}
        self._bindings: dict[int, tuple[dict[str, list[Import]], list[Import]]] = {}
        self._found: dict[tuple[int, int, str], Target | None] = {}
        self._bases: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
        for number, facts in enumerate(index.facts):
            for base in facts.bases:
                self._bases[number, facts.definitions[base.owner].qualified].append((base.owner, base.name))

    def trim(self) -> None:
        """Clear the cache if it has grown large."""
        if len(self._found) > MOST_FOUND:
            self._found.clear()

    def modules(self, file: int) -> Modules:
        """How the language of a file finds modules."""
        return self._modules[self.index.families[file]]

    def lookup(self, file: int, scope: int, name: str) -> Target | None:
        """Look up a bare name in a scope. ``None``: unknown; a module that is outside: not of this repository."""
        key = (file, scope, name)
        if key not in self._found:
            self._found[key] = None  # imports in a circle end here
            self._found[key] = self._in_scopes(file, scope, name) or self._in_file(file, name, _DEPTH)
        return self._found[key]

    def chain(self, file: int, scope: int, dotted: str) -> Target | None:
        """Look up a dotted name."""
        head, *rest = dotted.split(".")
        found = self._begin(file, scope, head)
        for part in rest:
            if found is None:
                return None
            found = self.step(file, found, part)
        return found

    def step(self, file: int, target: Target, name: str, depth: int = _DEPTH) -> Target | None:
        """Look up a name in a module or a class."""
        if isinstance(target, Module):
            if target.is_outside:
                return OUTSIDE
            return self._in_module(file, target, name, depth)
        return self.member(target, name) if self.index.is_class(target) else None

    def member(self, node: Node, name: str, depth: int = _DEPTH) -> Node | None:
        """A member of a class or of its base classes."""
        definition, family = self.index.definition(node), self.index.families[node[0]]
        found = self.index.only(self.index.members.get((family, definition.qualified), {}).get(name, ()), node[0])
        if found or not depth:
            return found
        for base in self.bases(node):
            found = self.member(base, name, depth - 1)
            if found:
                return found
        return None

    def bases(self, node: Node) -> Iterable[Node]:
        """The classes of this repository that a class inherits from."""
        definition = self.index.definition(node)
        for owner, name in self._bases.get((node[0], definition.qualified), ()):
            scope = self.index.facts[node[0]].definitions[owner].parent
            found = self.type_named(node[0], scope, name)
            if found and found != node:
                yield found

    def type_named(self, file: int, scope: int, name: str) -> Node | None:
        """The class that a type names."""
        found = self.chain(file, scope, name)
        return found if isinstance(found, tuple) and self.index.is_class(found) else None

    def owner_of(self, file: int, scope: int) -> Node | None:
        """The class that encloses a scope, also if its methods are defined outside of it."""
        definitions = self.index.facts[file].definitions
        while scope != MODULE:
            one = definitions[scope]
            if one.kind in CLASS_KINDS or one.owner:
                name = one.owner if one.owner and one.kind not in CLASS_KINDS else one.qualified
                place = self.index.qualified[file].get(name)
                if place is not None:
                    return (file, place)
                return self.type_named(file, MODULE, name) or self._only_class(file, name)
            scope = one.parent
        return None

    def unique_method(self, file: int, name: str) -> Node | None:
        """The method with a name that is unique in the repository and not common in libraries."""
        found = self.index.methods.get((self.index.families[file], name), ())
        return found[0] if len(found) == 1 and name not in COMMON and len(name) > 2 else None

    def import_target(self, file: int, one: Import) -> tuple[Module, Target | None]:
        """The module that an import names, and what it takes out of it."""
        module = self.modules(file).reach(file, one.module)
        taken = self.step(file, module, one.name) if one.name not in ("", "*") and not module.is_outside else None
        return module, taken

    def _begin(self, file: int, scope: int, head: str) -> Target | None:
        if head == "Self":
            return self.owner_of(file, scope)
        if self.index.families[file] != "rust":
            return self.lookup(file, scope, head)
        found = None if head in ("crate", "super") else self.lookup(file, scope, head)
        if found is not None:
            return found
        module = self.modules(file).reach(file, head)
        return None if module.is_outside else module

    def _in_scopes(self, file: int, scope: int, name: str) -> Node | None:
        definitions = self.index.facts[file].definitions
        sees_members = self.modules(file).sees_members
        while scope != MODULE:
            one = definitions[scope]
            is_class = one.kind in CLASS_KINDS
            if not is_class or sees_members:
                place = self.index.qualified[file].get(f"{one.qualified}.{name}")
                if place is not None:
                    return (file, place)
            if sees_members and (is_class or one.owner):
                around = (file, scope) if is_class else self.owner_of(file, scope)
                found = self.member(around, name) if around else None
                if found:
                    return found
            scope = one.parent
        return None

    def _in_file(self, file: int, name: str, depth: int) -> Target | None:
        place = self.index.top[file].get(name)
        if place is not None:
            return (file, place)
        named, starred = self._bound(file)
        for one in named.get(name, ()):
            found = self._imported(file, one, depth)
            if found is not None:
                return found
        modules = self.modules(file)
        around = self._in_tops(modules.around(file), name)
        if around:
            return around
        for one in starred:
            found = self._in_module(file, modules.reach(file, one.module), name, depth - 1) if depth else None
            if isinstance(found, tuple):
                return found
        if modules.is_global:
            return self.index.only(self.index.functions.get((self.index.families[file], name), ()), file)
        return self._builtin(file, name)

    def _builtin(self, file: int, name: str) -> Module | None:
        """A builtin, or a capitalised name that nothing binds here, comes from outside."""
        is_known = name in _BUILTIN.get(self.index.families[file], ()) or name[:1].isupper()
        return OUTSIDE if is_known else None

    def _bound(self, file: int) -> tuple[dict[str, list[Import]], list[Import]]:
        if file not in self._bindings:
            named: dict[str, list[Import]] = defaultdict(list)
            starred = []
            modules = self.modules(file)
            for one in self.index.facts[file].imports:
                if one.name == "*":
                    starred.append(one)
                for name in modules.names(one, modules.reach(file, one.module)):
                    named[name.split(".")[0]].append(one)
            self._bindings[file] = (named, starred)
        return self._bindings[file]

    def _imported(self, file: int, one: Import, depth: int) -> Target | None:
        modules = self.modules(file)
        whole = one.module.split(".")[0] if "." in one.alias else one.module
        module = modules.reach(file, whole)
        if module.is_outside:
            return OUTSIDE
        if not one.name:
            return module
        return self._in_module(file, module, one.name, depth - 1) if depth else None

    def _in_module(self, file: int, module: Module, name: str, depth: int) -> Target | None:
        found: Target | None = self._in_tops(module, name)
        for one in module.files if found is None and depth else ():
            found = found or self._passed_on(one, name, depth)
        return found or self.modules(file).child(module, name)

    def _passed_on(self, file: int, name: str, depth: int) -> Target | None:
        """A name that a module re-exports: in Python everything it imports, elsewhere only explicit exports."""
        facts = self.index.facts[file]
        if name == "default" and facts.default:
            place = self.index.top[file].get(facts.default)
            return (file, place) if place is not None else self._in_file(file, facts.default, depth - 1)
        is_open = self.index.families[file] == "python"
        named, starred = self._bound(file)
        for one in named.get(name, ()):
            if (is_open or one.exported) and "." not in one.alias:
                found = self._imported(file, one, depth - 1) if one.module else self._in_file(file, one.name, depth - 1)
                if isinstance(found, tuple) or (isinstance(found, Module) and not found.is_outside):
                    return found
        for one in starred if depth > 1 else ():
            if is_open or one.exported:
                inner = self._in_module(file, self.modules(file).reach(file, one.module), name, depth - 2)
                if isinstance(inner, tuple):
                    return inner
        return None

    def _in_tops(self, module: Module, name: str) -> Node | None:
        for one in module.files:
            place = self.index.top[one].get(name)
            if place is not None:
                return (one, place)
        for one in module.files:  # what is static in a class that was named as a module
            for outer in self.index.top[one].values() if self.modules(one).sees_members else ():
                place = self.index.qualified[one].get(f"{self.index.facts[one].definitions[outer].qualified}.{name}")
                if place is not None and len(module.files) == 1:
                    return (one, place)
        return None

    def _only_class(self, file: int, qualified: str) -> Node | None:
        name = qualified.rsplit(".", 1)[-1]
        held = self.index.functions.get((self.index.families[file], name), ())
        return self.index.only([node for node in held if self.index.definition(node).qualified == qualified], file)
