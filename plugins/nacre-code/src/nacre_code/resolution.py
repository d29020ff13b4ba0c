"""Resolution of imports, names and calls to the definitions of a repository."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import islice
from posixpath import basename, dirname, join, normpath, split

from nacre.base.frozen import frozen
from nacre.base.plain import mapping, objects
from nacre.hosts import files
from nacre_code.languages import (
    CLASS_KINDS,
    INNER_KINDS,
    LANGUAGES,
    MODULE,
    Call,
    Definition,
    Facts,
    Import,
)

_MAX_DEPTH = 8
_CONFIG_NAMES = ("tsconfig.json", "jsconfig.json")


@frozen
class Aliases:
    """Module aliases from a configuration: the base folder (``baseUrl``) and the targets of
    patterns (``paths``).
    """

    base: str = ""
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def places(self, module: str) -> Iterator[str]:
        """Yield the paths a module may have, likeliest first, without extension."""
        for pattern in sorted(self.paths, key=lambda name: ("*" in name, -name.find("*"))):
            before, star, after = pattern.partition("*")
            middle = module.removeprefix(before).removesuffix(after)
            if module == before + middle + after and (star or not middle):
                yield from (target.replace("*", middle, 1) for target in self.paths[pattern])
                break
        if self.base:
            yield normpath(join(self.base, module))


class AliasTable:
    """Module aliases from ``tsconfig.json`` and ``jsconfig.json``.

    The nearest configuration applies, as in the TypeScript handbook ("Modules: reference").
    ``texts`` maps paths of configurations to their contents.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._cache: dict[str, Aliases] = {}

    def of(self, folder: str) -> Aliases:
        if folder not in self._cache:
            paths = (join(folder, name) for name in _CONFIG_NAMES)
            path = next((path for path in paths if path in self._texts), "")
            self._cache[folder] = (
                self._read(path, _MAX_DEPTH) if path or not folder else self.of(dirname(folder))
            )
        return self._cache[folder]

    def _read(self, path: str, depth: int) -> Aliases:
        try:
            config = mapping(files.read_json_text(self._texts.get(path, "")))
        except files.UnparsableFileError:
            config = {}
        if not depth:
            return Aliases()
        folder = dirname(path)
        extended = config.get("extends")
        aliases = Aliases()
        for name in extended if isinstance(extended, list) else [extended]:
            parent = self._read(self._config_path(folder, name), depth - 1)
            aliases = Aliases(parent.base or aliases.base, parent.paths or aliases.paths)
        options = mapping(config, "compilerOptions")
        base = aliases.base
        if isinstance(options.get("baseUrl"), str):
            base = normpath(join(folder, options["baseUrl"]))
        paths = {
            pattern: [normpath(join(base or folder, str(target))) for target in targets]
            for pattern, targets in mapping(options, "paths").items()
            if isinstance(targets, list)
        }
        aliases = Aliases(base, paths or aliases.paths)
        projects = (
            self._read(self._config_path(folder, item.get("path")), depth - 1)
            for item in objects(config, "references")
        )
        return (
            aliases if aliases.paths else next((item for item in projects if item.paths), aliases)
        )

    def _config_path(self, folder: str, name: object) -> str:
        if not isinstance(name, str) or not name.startswith("."):
            return ""
        path = normpath(join(folder, name))
        candidates = (path, f"{path}.json", join(path, _CONFIG_NAMES[0]))
        return next((candidate for candidate in candidates if candidate in self._texts), "")


# ----------------------------------------------------------------------------
# An index of all definitions in a repository by name.


Node = tuple[int, int]
"""A definition: the number of its file, and its number in the file."""


@frozen
class Module:
    """The files of an imported module, and the folder of its submodules.

    A module outside the repository has neither.
    """

    files: tuple[int, ...] = ()
    place: str | None = None

    @property
    def is_outside(self) -> bool:
        return not self.files and self.place is None


OUTSIDE = Module()
Target = Node | Module


class Index:
    """The files and definitions of a repository. ``texts`` maps paths of manifests to their
    contents.
    """

    def __init__(self, files: Sequence[tuple[str, Facts]], texts: Mapping[str, str]) -> None:
        self.paths = [path for path, _ in files]
        self.facts = [facts for _, facts in files]
        self.texts = texts
        self.families = [LANGUAGES[facts.language].family or facts.language for facts in self.facts]
        self.by_path = {path: number for number, path in enumerate(self.paths)}
        self.folders: dict[str, list[int]] = defaultdict(list)
        self.top: list[dict[str, Node]] = []
        self.qualified: list[dict[str, Node]] = []
        self.members: dict[tuple[str, str, str], list[Node]] = defaultdict(list)
        self.methods: dict[tuple[str, str], list[Node]] = defaultdict(list)
        self.functions: dict[tuple[str, str], list[Node]] = defaultdict(list)
        for number, path in enumerate(self.paths):
            self.folders[dirname(path)].append(number)
            family, definitions = self.families[number], self.facts[number].definitions
            top: dict[str, Node] = {}
            qualified: dict[str, Node] = {}
            for place, definition in enumerate(definitions):
                node, name = (number, place), definition.name
                if (
                    definition.kind in INNER_KINDS
                    or qualified.setdefault(definition.qualified, node) != node
                ):
                    continue
                if definition.owner:
                    self.members[family, definition.owner, name].append(node)
                    if definition.kind == "method":
                        self.methods[family, name].append(node)
                elif self._is_top(definitions, definition):
                    top.setdefault(name, node)
                    self.functions[family, name].append(node)
            self.top.append(top)
            self.qualified.append(qualified)
        self.known_folders: set[str] = set()
        for folder in self.folders:
            while folder not in self.known_folders:
                self.known_folders.add(folder)
                folder = dirname(folder)

    def first(self, paths: Iterable[str]) -> tuple[int, ...]:
        """Return the number of the first existing file, if any."""
        return tuple(islice((self.by_path[path] for path in paths if path in self.by_path), 1))

    def paths_of(self, family: str) -> Iterator[str]:
        return (path for path, own in zip(self.paths, self.families, strict=True) if own == family)

    def definition(self, node: Node) -> Definition:
        return self.facts[node[0]].definitions[node[1]]

    def is_class(self, node: Node) -> bool:
        return self.definition(node).kind in CLASS_KINDS

    def only(self, nodes: Sequence[Node], near: int) -> Node | None:
        """Return the only node, or else the first one in the file ``near``, if any."""
        return (
            nodes[0] if len(nodes) == 1 else next((node for node in nodes if node[0] == near), None)
        )

    @staticmethod
    def _is_top(definitions: Sequence[Definition], definition: Definition) -> bool:
        parent = definition.parent
        while parent != MODULE and definitions[parent].kind == "namespace":
            parent = definitions[parent].parent
        return parent == MODULE


# ----------------------------------------------------------------------------
# Resolution of imports in each language.


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
    """Import resolution for a language."""

    sees_members = False
    """True if methods can use members of their class without a qualifier."""

    is_global = False
    """True if files can use functions of other files without a qualifier."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def find(self, file: int, module: str) -> Module:
        """Return the module that an import in a file refers to."""
        raise NotImplementedError

    def child(self, module: Module, name: str) -> Module | None:  # noqa: ARG002 - not every language nests modules
        """Return the submodule ``name`` of a module, if any."""
        return None

    def around(self, file: int) -> Module:  # noqa: ARG002
        """Return the files whose definitions a file can use without an import."""
        return OUTSIDE


class PythonModules(Modules):
    """Import resolution for Python, where packages are folders."""

    @cached_property
    def _places_by_name(self) -> dict[str, set[str]]:
        places: dict[str, set[str]] = defaultdict(set)
        for path in self.index.paths_of("python"):
            place = path.rsplit(".", 1)[0].removesuffix("/__init__")
            for name in self._names_of(place):
                places[name].add(place)
        return places

    def find(self, file: int, module: str) -> Module:
        """Return the module that an import in a file refers to.

        Modules without leading dots are looked up by full name, or else next to the file.
        """
        bare = module.lstrip(".")
        levels = len(module) - len(bare)
        folder = dirname(self.index.paths[file])
        if levels:
            for _ in range(levels - 1):
                folder = dirname(folder)
            return self._at(join(folder, *bare.split(".")) if bare else folder)
        places = self._places_by_name.get(bare, set())
        if len(places) == 1:
            return self._at(next(iter(places)))
        return OUTSIDE if places else self._at(join(folder, *bare.split(".")))

    def child(self, module: Module, name: str) -> Module | None:
        if module.place is None:
            return None
        module_there = self._at(join(module.place, name))
        return None if module_there.is_outside else module_there

    def _at(self, place: str) -> Module:
        paths = (f"{place}.py", f"{place}/__init__.py" if place else "__init__.py", f"{place}.pyi")
        files = self.index.first(paths)
        folder = place if place in self.index.known_folders else None
        return Module(files, folder) if files or folder else OUTSIDE

    def _names_of(self, place: str) -> Iterator[str]:
        parts = place.split("/")
        yield ".".join(parts)
        first = len(parts) - 1
        while first > 0 and f"{'/'.join(parts[:first])}/__init__.py" in self.index.by_path:
            first -= 1
        yield ".".join(parts[first:])


class EcmaModules(Modules):
    """Import resolution for JavaScript and TypeScript."""

    @cached_property
    def _aliases(self) -> AliasTable:
        return AliasTable(self.index.texts)

    def find(self, file: int, module: str) -> Module:
        """Resolve a relative path or an alias. Its extension can be missing or be that of the
        compiled file.
        """
        if not module:
            return Module((file,))
        folder = dirname(self.index.paths[file])
        if module.startswith("."):
            return self._at(normpath(join(folder, module)))
        places = map(self._at, self._aliases.of(folder).places(module))
        return next((candidate for candidate in places if not candidate.is_outside), OUTSIDE)

    def _at(self, place: str) -> Module:
        starts = (place, re.sub(r"\.[cm]?jsx?$", "", place))
        return Module(
            self.index.first(start + ending for start in starts for ending in _ECMA_ENDINGS)
        )


class GoModules(Modules):
    """Import resolution for Go, where packages are folders below the path prefix in ``go.mod``."""

    @cached_property
    def _roots(self) -> list[tuple[str, str]]:
        roots = [
            (match[1], dirname(path))
            for path, text in self.index.texts.items()
            if path.endswith("go.mod") and (match := _GO_MODULE.search(text))
        ]
        return sorted(roots, key=lambda root: -len(root[0]))

    def find(self, file: int, module: str) -> Module:  # noqa: ARG002
        for name, root in self._roots:
            if module == name or module.startswith(f"{name}/"):
                return self._package(join(root, module[len(name) + 1 :]).rstrip("/"), None)
        return OUTSIDE

    def around(self, file: int) -> Module:
        return self._package(dirname(self.index.paths[file]), self.index.facts[file].package)

    def _package(self, folder: str, package: str | None) -> Module:
        return Module(
            tuple(
                number
                for number in self.index.folders.get(folder, ())
                if self.index.families[number] == "go"
                and package in (None, self.index.facts[number].package)
                and (package or not self.index.paths[number].endswith("_test.go"))
            )
        )


class RustModules(Modules):
    """Import resolution for Rust, where modules are files and ``Cargo.toml`` names the crates."""

    @cached_property
    def _crates(self) -> dict[str, Module]:
        crates = {}
        for path, text in self.index.texts.items():
            match = _CRATE.search(text) if path.endswith("Cargo.toml") else None
            root = join(dirname(path), "src")
            number = self.index.by_path.get(f"{root}/lib.rs")
            if match and number is not None:
                crates[match[1].replace("-", "_")] = Module((number,), root)
        return crates

    def find(self, file: int, module: str) -> Module:
        """Resolve a path that begins with ``crate``, ``self``, ``super``, a crate or a submodule."""
        parts = module.split(".") if module else []
        path = self.index.paths[file]
        folder, name = split(path)
        is_root = name in ("lib.rs", "main.rs", "mod.rs")
        current = Module((file,), folder if is_root else path.removesuffix(".rs"))
        head = parts.pop(0) if parts else "self"
        if head == "crate":
            result: Module | None = self._root_of(file)
        elif head in ("self", "super"):
            result = current if head == "self" else self._parent(current)
            while parts and parts[0] == "super" and result:
                result = self._parent(result)
                parts.pop(0)
        else:
            result = self.child(current, head) or self._crates.get(head)
        for part in parts:
            result = self.child(result, part) if result else None
        return result or OUTSIDE

    def child(self, module: Module, name: str) -> Module | None:
        if module.place is None:
            return None
        place = join(module.place, name)
        files = self.index.first((f"{place}.rs", f"{place}/mod.rs"))
        return Module(files, place) if files else None

    def _root_of(self, file: int) -> Module:
        folder = dirname(self.index.paths[file])
        while True:
            if files := self.index.first(join(folder, name) for name in ("lib.rs", "main.rs")):
                return Module(files, folder)
            if not folder:
                return OUTSIDE
            folder = dirname(folder)

    def _parent(self, module: Module) -> Module | None:
        folder = dirname(module.place or "")
        paths = [*(join(folder, name) for name in ("mod.rs", "lib.rs", "main.rs")), f"{folder}.rs"]
        files = self.index.first(
            path for path in paths if self.index.by_path.get(path) not in module.files
        )
        return Module(files, folder) if files else None


class JavaModules(Modules):
    """Import resolution for Java, where each file declares its package."""

    sees_members = True

    @cached_property
    def _packages(self) -> dict[str, list[int]]:
        packages: dict[str, list[int]] = defaultdict(list)
        for path in self.index.paths_of("java"):
            number = self.index.by_path[path]
            packages[self.index.facts[number].package].append(number)
        return packages

    def find(self, file: int, module: str) -> Module:  # noqa: ARG002
        """Return the files of a package, or the class's file for a static import."""
        if module in self._packages:
            return Module(tuple(self._packages[module]))
        package, _, name = module.rpartition(".")
        numbers = self._packages.get(package, ())
        return Module(tuple(number for number in numbers if name in self.index.top[number]))

    def around(self, file: int) -> Module:
        return Module(tuple(self._packages[self.index.facts[file].package]))


class CModules(Modules):
    """Import resolution for C and C++, whose functions are visible in all files."""

    sees_members = True
    is_global = True

    @cached_property
    def _paths_by_name(self) -> dict[str, list[str]]:
        paths: dict[str, list[str]] = defaultdict(list)
        for path in self.index.paths_of("cfamily"):
            paths[basename(path)].append(path)
        return paths

    def find(self, file: int, module: str) -> Module:
        """Return the included file: a path relative to this file, or the only path that ends with
        ``module``.
        """
        sibling = normpath(join(dirname(self.index.paths[file]), module))
        if sibling in self.index.by_path:
            return Module((self.index.by_path[sibling],))
        plain = normpath(module)
        name = basename(plain)
        candidates = [
            candidate
            for candidate in self._paths_by_name.get(name, ())
            if f"/{candidate}".endswith(f"/{plain}")
        ]
        return Module((self.index.by_path[candidates[0]],)) if len(candidates) == 1 else OUTSIDE


BY_FAMILY: dict[str, type[Modules]] = {
    "python": PythonModules,
    "ecma": EcmaModules,
    "go": GoModules,
    "rust": RustModules,
    "java": JavaModules,
    "cfamily": CModules,
}


# ----------------------------------------------------------------------------
# Lookup of names in their scope.


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
"""Names of methods that are too common to guess the receiver's class."""


class Names:
    """A lookup of names in their scopes."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._modules: dict[str, Modules] = {
            family: BY_FAMILY[family](index) for family in set(index.families)
        }
        self._imports: list[tuple[dict[str, list[Import]], list[Import]]] = []
        self._open: set[tuple[int, int, str]] = set()
        """The lookups in progress, to stop at circular imports and base classes."""
        self._bases: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
        for number, facts in enumerate(index.facts):
            named: dict[str, list[Import]] = defaultdict(list)
            for imported in facts.imports:
                if imported.alias:
                    named[imported.alias.split(".")[0]].append(imported)
            self._imports.append((named, [item for item in facts.imports if item.name == "*"]))
            for base in facts.bases:
                self._bases[number, facts.definitions[base.owner].qualified].append(
                    (base.owner, base.name)
                )

    def modules(self, file: int) -> Modules:
        return self._modules[self.index.families[file]]

    def lookup(self, file: int, scope: int, name: str) -> Target | None:
        """Look up a name without dots in a scope.

        Return ``None`` if it is unknown, and an outside module if the repository does not define
        it.
        """
        key = (file, scope, name)
        if key in self._open:
            return None
        self._open.add(key)
        target = self._in_scopes(file, scope, name) or self._in_file(file, name, _MAX_DEPTH)
        self._open.remove(key)
        return target

    def chain(self, file: int, scope: int, dotted: str) -> Target | None:
        head, *parts = dotted.split(".")
        target = self._begin(file, scope, head)
        for part in parts:
            if target is None:
                return None
            target = self.step(file, target, part)
        return target

    def step(self, file: int, target: Target, name: str) -> Target | None:
        if isinstance(target, Module):
            if target.is_outside:
                return OUTSIDE
            return self._in_module(file, target, name, _MAX_DEPTH)
        return self.member(target, name) if self.index.is_class(target) else None

    def member(self, node: Node, name: str, depth: int = _MAX_DEPTH) -> Node | None:
        key = self.index.families[node[0]], self.index.definition(node).qualified, name
        result = self.index.only(self.index.members.get(key, ()), node[0])
        if result or not depth:
            return result
        members = (self.member(base, name, depth - 1) for base in self.bases(node))
        return next(filter(None, members), None)

    def bases(self, node: Node) -> Iterable[Node]:
        for owner, name in self._bases.get((node[0], self.index.definition(node).qualified), ()):
            scope = self.index.facts[node[0]].definitions[owner].parent
            base = self.type_named(node[0], scope, name)
            if base and base != node:
                yield base

    def type_named(self, file: int, scope: int, name: str) -> Node | None:
        target = self.chain(file, scope, name)
        return target if isinstance(target, tuple) and self.index.is_class(target) else None

    def owner_of(self, file: int, scope: int) -> Node | None:
        """Return the class that a scope belongs to, even if a method is defined outside its class."""
        definitions = self.index.facts[file].definitions
        while scope != MODULE:
            definition = definitions[scope]
            is_class = definition.kind in CLASS_KINDS
            if is_class or definition.owner:
                name = definition.qualified if is_class else definition.owner
                return self.index.qualified[file].get(name) or self.type_named(file, MODULE, name)
            scope = definition.parent
        return None

    def unique_method(self, file: int, name: str) -> Node | None:
        """Return the repository's only method with this name, unless libraries often use the name."""
        methods = self.index.methods.get((self.index.families[file], name), ())
        return methods[0] if len(methods) == 1 and name not in COMMON and len(name) > 2 else None

    def _begin(self, file: int, scope: int, head: str) -> Target | None:
        if head == "Self":
            return self.owner_of(file, scope)
        if self.index.families[file] != "rust":
            return self.lookup(file, scope, head)
        target = None if head in ("crate", "super") else self.lookup(file, scope, head)
        if target:
            return target
        module = self.modules(file).find(file, head)
        return None if module.is_outside else module

    def _in_scopes(self, file: int, scope: int, name: str) -> Node | None:
        definitions = self.index.facts[file].definitions
        sees_members = self.modules(file).sees_members
        while scope != MODULE:
            definition = definitions[scope]
            is_class = definition.kind in CLASS_KINDS
            inner = self.index.qualified[file].get(f"{definition.qualified}.{name}")
            if inner and (sees_members or not is_class):
                return inner
            if sees_members and (is_class or definition.owner):
                around = (file, scope) if is_class else self.owner_of(file, scope)
                if around and (member := self.member(around, name)):
                    return member
            scope = definition.parent
        return None

    def _in_file(self, file: int, name: str, depth: int) -> Target | None:
        if node := self.index.top[file].get(name):
            return node
        named, starred = self._imports[file]
        for imported in named.get(name, ()):
            if target := self._imported(file, imported, depth):
                return target
        modules = self.modules(file)
        if around := self._in_tops(modules.around(file), name):
            return around
        for imported in starred:
            module = modules.find(file, imported.module)
            target = self._in_module(file, module, name, depth - 1)
            if isinstance(target, tuple):
                return target
        if modules.is_global:
            return self.index.only(
                self.index.functions.get((self.index.families[file], name), ()), file
            )
        return OUTSIDE if name[:1].isupper() else None

    def _imported(self, file: int, imported: Import, depth: int) -> Target | None:
        modules = self.modules(file)
        module_name = imported.module.split(".")[0] if "." in imported.alias else imported.module
        module = modules.find(file, module_name)
        if module.is_outside:
            return OUTSIDE
        if not imported.name:
            return module
        return self._in_module(file, module, imported.name, depth - 1)

    def _in_module(self, file: int, module: Module, name: str, depth: int) -> Target | None:
        if depth < 0:
            return None
        target: Target | None = self._in_tops(module, name)
        for number in module.files if depth else ():
            target = target or self._reexported(number, name, depth)
        return target or self.modules(file).child(module, name)

    def _reexported(self, file: int, name: str, depth: int) -> Target | None:
        facts = self.index.facts[file]
        if name == "default" and facts.default:
            return self._in_file(file, facts.default, depth - 1)
        is_open = self.index.families[file] == "python"
        named, starred = self._imports[file]
        for imported in named.get(name, ()):
            if (is_open or imported.exported) and "." not in imported.alias:
                target = (
                    self._imported(file, imported, depth - 1)
                    if imported.module
                    else self._in_file(file, imported.name, depth - 1)
                )
                if target not in (None, OUTSIDE):
                    return target
        for imported in starred:
            if is_open or imported.exported:
                module = self.modules(file).find(file, imported.module)
                inner = self._in_module(file, module, name, depth - 2)
                if isinstance(inner, tuple):
                    return inner
        return None

    def _in_tops(self, module: Module, name: str) -> Node | None:
        for number in module.files:
            if node := self.index.top[number].get(name):
                return node
        # Static members of a class that is named as a module.
        for number in module.files if len(module.files) == 1 else ():
            for outer in (
                self.index.top[number].values() if self.modules(number).sees_members else ()
            ):
                qualified = f"{self.index.definition(outer).qualified}.{name}"
                if node := self.index.qualified[number].get(qualified):
                    return node
        return None


# ----------------------------------------------------------------------------
# Resolution of calls by the receiver's declared type, or else by a unique method name.


_UNKNOWN = object()

_Declared = tuple[int, int, str]
"""A variable's declaration: file, scope and type.

A type that begins with ``=`` names another variable.
"""


class Calls:
    """A resolver of calls to definitions."""

    def __init__(self, index: Index, names: Names) -> None:
        self._index, self._names = index, names
        self._open: set[tuple[int, int, str]] = set()
        self._types: dict[tuple[int, int, str], set[_Declared]] = defaultdict(set)
        self._fields: dict[tuple[str, str, str], set[_Declared]] = defaultdict(set)
        for number, facts in enumerate(index.facts):
            for variable in facts.variables:
                if variable.name.startswith("self."):
                    self._add_field(number, variable.scope, variable.name[5:], variable.type)
                elif "." not in variable.name:
                    self._types[number, variable.scope, variable.name].add(
                        (number, variable.scope, variable.type)
                    )
                    if (
                        variable.scope != MODULE
                        and facts.definitions[variable.scope].kind in CLASS_KINDS
                    ):
                        self._add_field(number, variable.scope, variable.name, variable.type)

    def resolve(self, file: int, call: Call) -> Node | None:
        """Return the definition that a call refers to, or ``None`` if it is ambiguous or outside
        the repository.
        """
        if not call.receiver:
            target = self._names.lookup(file, call.scope, call.name)
            return target if isinstance(target, tuple) else None
        if call.receiver == "?":
            return self._names.unique_method(file, call.name)
        receiver_type = self._type_of(file, call.scope, call.receiver)
        if isinstance(receiver_type, tuple):
            return self._names.member(receiver_type, call.name)
        if receiver_type is not _UNKNOWN:
            return None
        if call.receiver.endswith("()"):
            return self._names.unique_method(file, call.name)
        receiver = self._names.chain(file, call.scope, call.receiver)
        if receiver is None:
            return self._qualified(file, call) or self._names.unique_method(file, call.name)
        target = self._names.step(file, receiver, call.name)
        return target if isinstance(target, tuple) else None

    def _qualified(self, file: int, call: Call) -> Node | None:
        """Resolve ``ns::f()`` in C++, where a namespace can span several files."""
        if self._index.families[file] != "cfamily":
            return None
        ending = f".{call.receiver}.{call.name}"
        functions = self._index.functions.get(("cfamily", call.name), ())
        matches = [
            node
            for node in functions
            if f".{self._index.definition(node).qualified}".endswith(ending)
        ]
        return matches[0] if len(matches) == 1 else None

    def _type_of(self, file: int, scope: int, receiver: str) -> Node | object | None:
        """Return the receiver's class, ``None`` for a class outside the repository, or ``_UNKNOWN``
        if the receiver is not a variable.
        """
        key = (file, scope, receiver)
        if key in self._open:  # a variable defined in terms of itself has no type
            return None
        self._open.add(key)
        receiver_type = self._find_type(file, scope, receiver)
        self._open.remove(key)
        return receiver_type

    def _find_type(self, file: int, scope: int, receiver: str) -> Node | object | None:
        if receiver.endswith("()"):
            return self._call_type(file, scope, receiver[:-2])
        before, dot, last = receiver.rpartition(".")
        if not dot:
            if receiver in ("self", "cls", "Self"):
                return self._names.owner_of(file, scope)
            if receiver == "super" and self._index.families[file] != "rust":
                owner = self._names.owner_of(file, scope)
                return next(iter(self._names.bases(owner)), None) if owner else None
            definitions = self._index.facts[file].definitions
            around = scope
            while True:
                declared = self._types.get((file, around, receiver))
                if declared:
                    return self._only_type(declared)
                if around == MODULE:
                    break
                around = definitions[around].parent
            sees_members = self._names.modules(file).sees_members
            owner = self._names.owner_of(file, scope) if sees_members else None
            return self._field_type(owner, receiver, _UNKNOWN) if owner else _UNKNOWN
        kind = self._type_of(file, scope, before)
        return self._field_type(kind, last) if isinstance(kind, tuple) else kind

    def _field_type(self, owner: Node, name: str, otherwise: object = None) -> Node | object | None:
        declared = self._fields.get(
            (self._index.families[owner[0]], self._index.definition(owner).qualified, name)
        )
        if not declared:
            return otherwise
        with_types = {item for item in declared if not item[2].startswith("=")}
        return self._only_type(with_types or declared)

    def _only_type(self, declared: set[_Declared]) -> Node | None:
        nodes = {node for item in sorted(declared) if (node := self._type_named(*item))}
        return nodes.pop() if len(nodes) == 1 else None

    def _type_named(self, file: int, scope: int, kind: str) -> Node | None:
        if kind.startswith("=") or kind.endswith("()"):
            target = self._type_of(file, scope, kind.removeprefix("="))
        else:
            target = self._names.type_named(file, scope, kind)
        return target if isinstance(target, tuple) else None

    def _call_type(self, file: int, scope: int, callee: str) -> Node | object | None:
        receiver, _, name = callee.rpartition(".")
        target = self.resolve(file, Call(scope, receiver, name, 0))
        if target is None:
            return None if callee[:1].isupper() else _UNKNOWN
        if self._index.is_class(target):
            return target
        returns = self._index.definition(target).returns
        if returns in ("Self", "self", "this"):
            return self._names.owner_of(*target)
        return self._type_named(*target, returns) if returns else _UNKNOWN

    def _add_field(self, file: int, scope: int, name: str, kind: str) -> None:
        definitions = self._index.facts[file].definitions
        while scope != MODULE:
            definition = definitions[scope]
            if definition.kind in ("method", "class", "interface", "type"):
                is_method = definition.kind == "method"
                owner = definition.owner if is_method else definition.qualified
                self._fields[self._index.families[file], owner, name].add((file, scope, kind))
                return
            scope = definition.parent


# ----------------------------------------------------------------------------
# The edges of a repository: calls, imports and inheritance.


@frozen
class Edge:
    """A reference between two definitions, at the line of its first occurrence.

    The definition number ``MODULE`` represents the file. A target outside the repository is a
    module's name.
    """

    rel: str
    source: Node
    target: Node | str
    line: int


class Resolution:
    """The references between a repository's files. ``texts`` maps paths of manifests to their
    contents.
    """

    def __init__(self, files: Sequence[tuple[str, Facts]], texts: Mapping[str, str]) -> None:
        self.index = Index(files, texts)
        self._names = Names(self.index)
        self._calls = Calls(self.index, self._names)

    def of(self, file: int, calls: Iterable[Call]) -> Iterator[Edge]:
        """Yield the edges that begin in a file, without duplicates.

        ``calls`` are the calls in the file, which the index omits to save memory.
        """
        keys = set()
        for edge in (
            *self._import_edges(file),
            *self._base_edges(file),
            *self._call_edges(file, calls),
        ):
            key = edge.rel, edge.source, edge.target
            if key not in keys and edge.source != edge.target:
                keys.add(key)
                yield edge

    def _import_edges(self, file: int) -> Iterator[Edge]:
        for imported in self.index.facts[file].imports:
            if not imported.module:
                continue
            modules = self._names.modules(file)
            module = modules.find(file, imported.module)
            if module.is_outside:
                yield Edge("imports", (file, MODULE), imported.module, imported.line)
                continue
            name = imported.name.strip("*")
            item = self._names.step(file, module, name) if name else None
            numbers = module.files
            if isinstance(item, Module):
                numbers = item.files + numbers
            elif item and modules.sees_members:
                numbers = (item[0],)  # only a class of the package
            for target in dict.fromkeys(numbers):
                yield Edge("imports", (file, MODULE), (target, MODULE), imported.line)

    def _base_edges(self, file: int) -> Iterator[Edge]:
        facts = self.index.facts[file]
        for base in facts.bases:
            owner = facts.definitions[base.owner]
            name, scope = owner.qualified, owner.parent
            source = self.index.qualified[file].get(name)
            source = source or self._names.type_named(file, scope, name)
            target = self._names.type_named(file, scope, base.name)
            if source and target:
                yield Edge("inherits", source, target, owner.line)

    def _call_edges(self, file: int, calls: Iterable[Call]) -> Iterator[Edge]:
        for call in calls:
            if target := self._calls.resolve(file, call):
                source = file, call.scope
                if call.scope != MODULE:
                    source = self.index.qualified[file][self.index.definition(source).qualified]
                yield Edge("calls", source, target, call.line)
