"""Aliases of TypeScript and JavaScript: ``paths`` and ``baseUrl`` of ``tsconfig.json`` and ``jsconfig.json``.

Resolved as TypeScript documents it (handbook, "Modules: reference"): the nearest configuration counts, ``extends`` is
followed, and of several patterns the one with the longest text before its ``*``.
"""

from __future__ import annotations

import builtins
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nacre.code.ask import (
    CLASS_KINDS,
    INNER_KINDS,
    LANGUAGES,
    MODULE,
    Call,
    Definition,
    Facts,
    Import,
)
from nacre.hosts import files

_DEPTH = 8
_NAMES = ("tsconfig.json", "jsconfig.json")


@dataclass(frozen=True, slots=True)
class Aliases:
    """What a configuration says of names of modules. ``place`` is the folder that the targets of ``paths`` are relative
    to; ``base`` is that of ``baseUrl``, if it is set."""

    place: str = ""
    paths: Mapping[str, tuple[str, ...]] | None = None
    base: str | None = None

    def places(self, module: str) -> Iterator[str]:
        """Where a module may lie, the likeliest first; paths without an extension."""
        for pattern in sorted(self.paths or {}, key=_rank):
            before, star, after = pattern.partition("*")
            fits = (
                module.startswith(before)
                and module.endswith(after)
                and len(module) >= len(before + after)
            )
            if fits if star else module == pattern:
                matched = module[len(before) : len(module) - len(after)]
                for target in (self.paths or {})[pattern]:
                    yield posixpath.normpath(
                        posixpath.join(self.place, target.replace("*", matched, 1))
                    )
                break
        if self.base is not None:
            yield posixpath.normpath(posixpath.join(self.base, module))


def _rank(pattern: str) -> tuple[bool, int, str]:
    before, star, _ = pattern.partition("*")
    return bool(star), -len(before), pattern


class AliasTable:
    """The aliases of each folder. ``texts`` are configurations by path."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._known: dict[str, Aliases] = {}

    def of(self, folder: str) -> Aliases:
        """The aliases that hold in a folder."""
        if folder not in self._known:
            path = next(
                (one for name in _NAMES if (one := posixpath.join(folder, name)) in self._texts),
                None,
            )
            if path:
                self._known[folder] = self._read(path, _DEPTH)
            else:
                self._known[folder] = self.of(posixpath.dirname(folder)) if folder else Aliases()
        return self._known[folder]

    def _read(self, path: str, depth: int) -> Aliases:
        """A configuration with those that it extends; if it sets no paths, those of the projects that it refers to."""
        config = _object(self._texts.get(path, ""))
        if not depth:
            return Aliases()
        place = posixpath.dirname(path)
        extended = config.get("extends")
        found = Aliases()
        for one in extended if isinstance(extended, list) else [extended]:
            found = _over(self._read(self._named(place, one), depth - 1), found)
        found = _over(_own(config, place, found.base), found)
        if found.paths is None and isinstance(config.get("references"), list):
            named = [one.get("path") for one in config["references"] if isinstance(one, dict)]
            referred = (self._read(self._named(place, one), depth - 1) for one in named)
            return next((one for one in referred if one.paths is not None), found)
        return found

    def _named(self, place: str, name: object) -> str:
        """The path of a configuration that another one names; what lies in a package is not of the repository."""
        if not isinstance(name, str) or not name.startswith("."):
            return ""
        path = posixpath.normpath(posixpath.join(place, name))
        tried = (path, f"{path}.json", posixpath.join(path, _NAMES[0]))
        return next((one for one in tried if one in self._texts), "")


def _over(one: Aliases, other: Aliases) -> Aliases:
    """What one configuration sets, and else another."""
    base = other.base if one.base is None else one.base
    return (
        Aliases(other.place, other.paths, base)
        if one.paths is None
        else Aliases(one.place, one.paths, base)
    )


def _own(config: Mapping[str, Any], place: str, base: str | None) -> Aliases:
    """What a configuration sets itself; ``base`` is the one that it extends."""
    options = config.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    if isinstance(options.get("baseUrl"), str):
        base = posixpath.normpath(posixpath.join(place, options["baseUrl"]))
    paths = options.get("paths")
    if not isinstance(paths, dict):
        return Aliases(base=base)
    listed = {str(name): tuple(map(str, to)) for name, to in paths.items() if isinstance(to, list)}
    return Aliases(place if base is None else base, listed, base)


def _object(text: str) -> dict[str, Any]:
    try:
        found = files.read_json_text(text)
    except files.Unparsable:
        return {}
    return found if isinstance(found, dict) else {}


# ----------------------------------------------------------------------------
# An index of all definitions of a repository by name.


Node = tuple[int, int]
"""A definition: the number of its file and its number in that file."""


@dataclass(frozen=True, slots=True)
class Module:
    """What an import leads to: files, and the folder in which further modules lie. Without either it is not of this
    repository."""

    files: tuple[int, ...] = ()
    place: str | None = None

    @property
    def is_outside(self) -> bool:
        """Whether it lies outside the repository."""
        return not self.files and self.place is None


OUTSIDE = Module()
Target = Node | Module


class Index:
    """The files and definitions of a repository. ``texts`` are manifests by path."""

    def __init__(self, files: Sequence[tuple[str, Facts]], texts: Mapping[str, str]) -> None:
        self.paths = [path for path, _ in files]
        self.facts = [facts for _, facts in files]
        self.texts = texts
        self.families = [LANGUAGES[facts.language].family for facts in self.facts]
        self.by_path = {path: number for number, path in enumerate(self.paths)}
        self.folders: dict[str, list[int]] = defaultdict(list)
        self.top: list[dict[str, int]] = []
        self.qualified: list[dict[str, int]] = []
        self.members: dict[tuple[str, str], dict[str, list[Node]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self.methods: dict[tuple[str, str], list[Node]] = defaultdict(list)
        self.functions: dict[tuple[str, str], list[Node]] = defaultdict(list)
        for number, path in enumerate(self.paths):
            self.folders[posixpath.dirname(path)].append(number)
            self._add(number)
        self.known_folders = {above for folder in self.folders for above in _above(folder)}

    def definition(self, node: Node) -> Definition:
        """The definition of a node."""
        return self.facts[node[0]].definitions[node[1]]

    def is_class(self, node: Node) -> bool:
        """Whether it has members."""
        return self.definition(node).kind in CLASS_KINDS

    def only(self, nodes: Sequence[Node], near: int) -> Node | None:
        """The only one of some nodes, else the first in the file ``near``; ``None`` if they are ambiguous."""
        return (
            nodes[0] if len(nodes) == 1 else next((node for node in nodes if node[0] == near), None)
        )

    def _add(self, number: int) -> None:
        family, definitions = self.families[number], self.facts[number].definitions
        top: dict[str, int] = {}
        qualified: dict[str, int] = {}
        for place, one in enumerate(definitions):
            if one.kind in INNER_KINDS or qualified.setdefault(one.qualified, place) != place:
                continue
            if one.owner:
                self.members[family, one.owner][one.name].append((number, place))
                if one.kind == "method":
                    self.methods[family, one.name].append((number, place))
            elif self._is_top(definitions, one):
                top.setdefault(one.name, place)
                if not one.hidden:
                    self.functions[family, one.name].append((number, place))
        self.top.append(top)
        self.qualified.append(qualified)

    @staticmethod
    def _is_top(definitions: Sequence[Definition], one: Definition) -> bool:
        parent = one.parent
        while parent != MODULE and definitions[parent].kind == "namespace":
            parent = definitions[parent].parent
        return parent == MODULE


def _above(folder: str) -> list[str]:
    found = [folder]
    while found[-1]:
        found.append(posixpath.dirname(found[-1]))
    return found


# ----------------------------------------------------------------------------
# How each language resolves imports to files.


_GO_MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
_CRATE = re.compile(r"^\[package\][^\[]*?^name\s*=\s*\"([^\"]+)\"", re.MULTILINE | re.DOTALL)
_ECMA_ENDINGS = (
    "",
    ".ts",
    ".tsx",
    ".mts",
    ".cts",
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    ".d.ts",
    "/index.ts",
    "/index.tsx",
    "/index.js",
    "/index.jsx",
    "/index.mjs",
)


class Modules:
    """Import resolution of a language. ``around`` is what a file sees without an import."""

    sees_members = False
    """Whether a method can use the members of its class by their bare names."""

    is_global = False
    """Whether a file can use functions of other files by their bare names."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._found: dict[tuple[int, str], Module] = {}

    def reach(self, file: int, module: str) -> Module:
        """The module that an import of a file names, cached."""
        key = (file, module)
        if key not in self._found:
            self._found[key] = self.find(file, module)
        return self._found[key]

    def find(self, file: int, module: str) -> Module:
        """The module that an import of a file names."""
        raise NotImplementedError

    def child(self, module: Module, name: str) -> Module | None:  # noqa: ARG002 - not every language nests modules
        """A module within a module."""
        return None

    def around(self, file: int) -> Module:  # noqa: ARG002
        """The files whose names this file sees."""
        return OUTSIDE

    def names(self, one: Import, module: Module) -> Iterator[str]:  # noqa: ARG002
        """The names that an import binds in a file."""
        if one.alias:
            yield one.alias


class PythonModules(Modules):
    """Packages are folders; a module is named by its path below the folder that contains the outermost package."""

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        self._called: dict[str, set[str]] = defaultdict(set)
        for number, path in enumerate(index.paths):
            if index.families[number] == "python":
                place = _python_place(path)
                for name in self._names_of(place):
                    self._called[name].add(place)

    def find(self, file: int, module: str) -> Module:
        """Leading dots go up; a plain name is a package, a folder of the repository, or a sibling."""
        bare = module.lstrip(".")
        levels = len(module) - len(bare)
        folder = posixpath.dirname(self.index.paths[file])
        if levels:
            for _ in range(levels - 1):
                folder = posixpath.dirname(folder)
            return self._at(posixpath.join(folder, *bare.split(".")) if bare else folder)
        places = self._called.get(bare, set())
        if len(places) == 1:
            return self._at(next(iter(places)))
        return OUTSIDE if places else self._at(posixpath.join(folder, *bare.split(".")))

    def child(self, module: Module, name: str) -> Module | None:
        """A file or folder in the folder of a package."""
        if module.place is None:
            return None
        found = self._at(posixpath.join(module.place, name))
        return None if found.is_outside else found

    def _at(self, place: str) -> Module:
        paths = (f"{place}.py", f"{place}/__init__.py" if place else "__init__.py", f"{place}.pyi")
        found = next(
            (self.index.by_path[path] for path in paths if path in self.index.by_path), None
        )
        folder = place if place in self.index.known_folders else None
        return (
            OUTSIDE
            if found is None and not folder
            else Module(() if found is None else (found,), folder)
        )

    def _names_of(self, place: str) -> Iterator[str]:
        parts = place.split("/")
        yield ".".join(parts)
        first = len(parts) - 1
        while first > 0 and f"{'/'.join(parts[:first])}/__init__.py" in self.index.by_path:
            first -= 1
        yield ".".join(parts[first:])


def _python_place(path: str) -> str:
    return path.rsplit(".", 1)[0].removesuffix("/__init__")


class EcmaModules(Modules):
    """Relative paths, without an extension or with that of the compiled file, and aliases of them."""

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        self._aliases = AliasTable(index.texts)

    def find(self, file: int, module: str) -> Module:
        """A path that begins with a dot, or an alias that leads to a file of this repository."""
        if not module:
            return Module((file,))
        folder = posixpath.dirname(self.index.paths[file])
        if module.startswith("."):
            return self._at(posixpath.normpath(posixpath.join(folder, module)))
        places = map(self._at, self._aliases.of(folder).places(module))
        return next((found for found in places if not found.is_outside), OUTSIDE)

    def _at(self, place: str) -> Module:
        stem = re.sub(r"\.[cm]?jsx?$", "", place)
        for start in dict.fromkeys((place, stem)):
            for ending in _ECMA_ENDINGS:
                if start + ending in self.index.by_path:
                    return Module((self.index.by_path[start + ending],))
        return OUTSIDE


class GoModules(Modules):
    """A package is a folder; ``go.mod`` defines the import path of the repository."""

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        named = (
            (posixpath.dirname(path), _GO_MODULE.search(text))
            for path, text in index.texts.items()
            if path.endswith("go.mod")
        )
        self._roots = sorted(
            ((found[1], place) for place, found in named if found), key=lambda one: -len(one[0])
        )

    def find(self, file: int, module: str) -> Module:  # noqa: ARG002
        """The folder of a package of this repository."""
        for name, root in self._roots:
            if module == name or module.startswith(f"{name}/"):
                return self._package(
                    posixpath.join(root, module[len(name) + 1 :]).rstrip("/"), None
                )
        return OUTSIDE

    def around(self, file: int) -> Module:
        """The other files of its package."""
        return self._package(
            posixpath.dirname(self.index.paths[file]), self.index.facts[file].package
        )

    def names(self, one: Import, module: Module) -> Iterator[str]:
        """The last part of the path, or what the package calls itself."""
        yield from super().names(one, module)
        if module.files and one.alias and one.module.endswith(one.alias):
            yield self.index.facts[module.files[0]].package

    def _package(self, folder: str, package: str | None) -> Module:
        found = tuple(
            one
            for one in self.index.folders.get(folder, ())
            if self.index.families[one] == "go"
            and package in (None, self.index.facts[one].package)
            and (package or not self.index.paths[one].endswith("_test.go"))
        )
        return Module(found) if found else OUTSIDE


class RustModules(Modules):
    """Modules are files below the folder of the crate root; ``Cargo.toml`` defines the names of crates."""

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        self._crates: dict[str, Module] = {}
        for path, text in index.texts.items():
            found = _CRATE.search(text) if path.endswith("Cargo.toml") else None
            root = posixpath.join(posixpath.dirname(path), "src")
            number = index.by_path.get(f"{root}/lib.rs")
            if found and number is not None:
                self._crates[found[1].replace("-", "_")] = Module((number,), root)

    def find(self, file: int, module: str) -> Module:
        """A path begins with ``crate``, ``self``, ``super``, the name of a crate, or a child module."""
        parts = module.split(".") if module else []
        here = self._module_of(file)
        head = parts.pop(0) if parts else "self"
        if head == "crate":
            found: Module | None = self._root_of(file)
        elif head in ("self", "super"):
            found = here if head == "self" else self._above(here)
            while parts and parts[0] == "super" and found:
                found = self._above(found)
                parts.pop(0)
        else:
            found = self.child(here, head) or self._crates.get(head)
        for part in parts:
            found = self.child(found, part) if found else None
        return found or OUTSIDE

    def child(self, module: Module, name: str) -> Module | None:
        """``name.rs``, or ``name/mod.rs``, in the folder of a module."""
        if module.place is None:
            return None
        place = posixpath.join(module.place, name)
        for path in (f"{place}.rs", f"{place}/mod.rs"):
            if path in self.index.by_path:
                return Module((self.index.by_path[path],), place)
        return None

    def _module_of(self, file: int) -> Module:
        path = self.index.paths[file]
        folder, name = posixpath.split(path)
        is_root = name in ("lib.rs", "main.rs", "mod.rs")
        return Module((file,), folder if is_root else path.removesuffix(".rs"))

    def _root_of(self, file: int) -> Module:
        folder = posixpath.dirname(self.index.paths[file])
        while True:
            for name in ("lib.rs", "main.rs"):
                found = self.index.by_path.get(posixpath.join(folder, name))
                if found is not None:
                    return Module((found,), folder)
            if not folder:
                return OUTSIDE
            folder = posixpath.dirname(folder)

    def _above(self, module: Module) -> Module | None:
        folder = posixpath.dirname(module.place or "")
        for name in ("mod.rs", "lib.rs", "main.rs"):
            found = self.index.by_path.get(posixpath.join(folder, name))
            if found is not None and found not in module.files:
                return Module((found,), folder)
        found = self.index.by_path.get(f"{folder}.rs")
        return Module((found,), folder) if found is not None else None


class JavaModules(Modules):
    """A file declares its package."""

    sees_members = True

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        self._packages: dict[str, list[int]] = defaultdict(list)
        for number, facts in enumerate(index.facts):
            if index.families[number] == "java":
                self._packages[facts.package].append(number)

    def find(self, file: int, module: str) -> Module:  # noqa: ARG002
        """All files of a package; for a static import the file of its class."""
        if module in self._packages:
            return Module(tuple(self._packages[module]))
        package, _, name = module.rpartition(".")
        held = [one for one in self._packages.get(package, ()) if name in self.index.top[one]]
        return Module(tuple(held)) if held else OUTSIDE

    def around(self, file: int) -> Module:
        """The files of its package."""
        return Module(tuple(self._packages[self.index.facts[file].package]))


class CModules(Modules):
    """Included files; functions are visible in all files."""

    sees_members = True
    is_global = True

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        self._ending: dict[str, list[str]] = defaultdict(list)
        for number, path in enumerate(index.paths):
            if index.families[number] == "cfamily":
                self._ending[posixpath.basename(path)].append(path)

    def find(self, file: int, module: str) -> Module:
        """The file relative to this one, else the only file whose path ends with the given one."""
        beside = posixpath.normpath(
            posixpath.join(posixpath.dirname(self.index.paths[file]), module)
        )
        if beside in self.index.by_path:
            return Module((self.index.by_path[beside],))
        plain = posixpath.normpath(module)
        found = [
            one
            for one in self._ending[posixpath.basename(plain)]
            if f"/{one}".endswith(f"/{plain}")
        ]
        return Module((self.index.by_path[found[0]],)) if len(found) == 1 else OUTSIDE


BY_FAMILY: dict[str, type[Modules]] = {
    "python": PythonModules,
    "ecma": EcmaModules,
    "go": GoModules,
    "rust": RustModules,
    "java": JavaModules,
    "cfamily": CModules,
}
"""The modules of each family of languages."""


# ----------------------------------------------------------------------------
# Look up names in their scope: a definition, a module, or a name from outside the repository.


MOST_FOUND = 50_000
"""Size of the cache at which it is cleared; files seldom share entries."""

COMMON = frozenset(
    {
        name
        for kind in (str, bytes, list, dict, set, int, float, BaseException, property, memoryview)
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
)
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
                self._bases[number, facts.definitions[base.owner].qualified].append(
                    (base.owner, base.name)
                )

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
            self._found[key] = self._in_scopes(file, scope, name) or self._in_file(
                file, name, _DEPTH
            )
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
        found = self.index.only(
            self.index.members.get((family, definition.qualified), {}).get(name, ()), node[0]
        )
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
        taken = (
            self.step(file, module, one.name)
            if one.name not in ("", "*") and not module.is_outside
            else None
        )
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
            found = (
                self._in_module(file, modules.reach(file, one.module), name, depth - 1)
                if depth
                else None
            )
            if isinstance(found, tuple):
                return found
        if modules.is_global:
            return self.index.only(
                self.index.functions.get((self.index.families[file], name), ()), file
            )
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
            return (
                (file, place)
                if place is not None
                else self._in_file(file, facts.default, depth - 1)
            )
        is_open = self.index.families[file] == "python"
        named, starred = self._bound(file)
        for one in named.get(name, ()):
            if (is_open or one.exported) and "." not in one.alias:
                found = (
                    self._imported(file, one, depth - 1)
                    if one.module
                    else self._in_file(file, one.name, depth - 1)
                )
                if isinstance(found, tuple) or (isinstance(found, Module) and not found.is_outside):
                    return found
        for one in starred if depth > 1 else ():
            if is_open or one.exported:
                inner = self._in_module(
                    file, self.modules(file).reach(file, one.module), name, depth - 2
                )
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
                place = self.index.qualified[one].get(
                    f"{self.index.facts[one].definitions[outer].qualified}.{name}"
                )
                if place is not None and len(module.files) == 1:
                    return (one, place)
        return None

    def _only_class(self, file: int, qualified: str) -> Node | None:
        name = qualified.rsplit(".", 1)[-1]
        held = self.index.functions.get((self.index.families[file], name), ())
        return self.index.only(
            [node for node in held if self.index.definition(node).qualified == qualified], file
        )


# ----------------------------------------------------------------------------
# Resolve calls: by the type of the receiver if the source declares it, else by a method name that is
# unique.


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
        fit = [
            node for node in held if f".{self._index.definition(node).qualified}".endswith(ending)
        ]
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
        owner = (
            self._names.owner_of(file, scope) if self._names.modules(file).sees_members else None
        )
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
        declared = self._fields.get(
            (self._index.families[owner[0]], self._index.definition(owner).qualified, name)
        )
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
        return self._index.definition(node).kind in (
            "function",
            "method",
            "class",
            "interface",
            "type",
        )

    def _add_field(self, file: int, scope: int, name: str, kind: str) -> None:
        definitions = self._index.facts[file].definitions
        while scope != MODULE:
            one = definitions[scope]
            if one.kind == "method":
                self._fields[self._index.families[file], one.owner, name].add((file, scope, kind))
                return
            if one.kind in ("class", "interface", "type"):
                self._fields[self._index.families[file], one.qualified, name].add(
                    (file, scope, kind)
                )
                return
            scope = one.parent


# ----------------------------------------------------------------------------
# The edges of a repository: calls, imports and inheritance.


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge, with the line of its first occurrence. A file is the node with the definition ``MODULE``."""

    rel: str
    source: Node
    target: Node
    line: int


@dataclass(frozen=True, slots=True)
class Foreign:
    """An import from outside the repository, as written."""

    file: int
    module: str
    line: int


class Resolution:
    """The edges between the files of one repository. ``texts`` are manifests by path."""

    def __init__(self, files: Sequence[tuple[str, Facts]], texts: Mapping[str, str]) -> None:
        self.index = Index(files, texts)
        self._names = Names(self.index)
        self._calls = Calls(self.index, self._names)

    def of(self, file: int, calls: Iterable[Call]) -> Iterator[Edge | Foreign]:
        """The edges that begin in a file, each once. The caller passes the calls: nothing else needs them in memory."""
        self._names.trim()
        self._calls.trim()
        seen: set[tuple[str, Node, Node]] = set()
        for one in (*self._imports(file), *self._bases(file), *self._called(file, calls)):
            if isinstance(one, Foreign):
                yield one
            elif (
                key := (one.rel, one.source, one.target)
            ) not in seen and one.source != one.target:
                seen.add(key)
                yield one

    def _imports(self, file: int) -> Iterator[Edge | Foreign]:
        outside: dict[str, int] = {}
        for one in self.index.facts[file].imports:
            if not one.module:
                continue
            module, taken = self._names.import_target(file, one)
            if module.is_outside:
                outside.setdefault(one.module, one.line)
            reached = dict.fromkeys(taken.files if isinstance(taken, Module) else ())
            if isinstance(taken, tuple) and self._names.modules(file).sees_members:
                reached = {taken[0]: None}  # a class of a package, not all of it
            else:
                reached |= dict.fromkeys(module.files)
            for target in reached:
                yield Edge("imports", (file, MODULE), (target, MODULE), one.line)
        yield from (Foreign(file, module, line) for module, line in outside.items())

    def _bases(self, file: int) -> Iterator[Edge]:
        facts = self.index.facts[file]
        for base in facts.bases:
            owner = facts.definitions[base.owner]
            place = self.index.qualified[file].get(owner.qualified)
            source = (
                (file, place)
                if place is not None
                else self._names.type_named(file, owner.parent, owner.qualified)
            )
            target = self._names.type_named(file, owner.parent, base.name)
            if source and target:
                yield Edge("inherits", source, target, owner.line)

    def _called(self, file: int, calls: Iterable[Call]) -> Iterator[Edge]:
        for call in calls:
            found = self._calls.resolve(file, call)
            if found:
                yield Edge("calls", self._source(file, call.scope), found, call.line)

    def _source(self, file: int, scope: int) -> Node:
        """The symbol that contains a call; of several with one name the first."""
        definitions = self.index.facts[file].definitions
        while scope != MODULE and definitions[scope].kind in INNER_KINDS:
            scope = definitions[scope].parent
        return (
            file,
            self.index.qualified[file][definitions[scope].qualified] if scope != MODULE else MODULE,
        )
