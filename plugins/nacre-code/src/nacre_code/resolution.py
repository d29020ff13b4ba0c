"""Resolution of imports, names and calls to the definitions of a repository.

Aliases in TypeScript and JavaScript (``paths`` and ``baseUrl`` of ``tsconfig.json`` and
``jsconfig.json``) follow the TypeScript handbook ("Modules: reference"). The nearest configuration
applies, with those that it ``extends``. The pattern with the longest text before its ``*`` wins.
"""

from __future__ import annotations

import builtins
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from nacre.base.frozen import frozen
from nacre.hosts import files
from nacre_code.ask import (
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
    """The module aliases of a configuration.

    The targets of ``paths`` are relative to the folder ``place``. ``base`` is the folder of
    ``baseUrl``, if set.
    """

    place: str = ""
    paths: Mapping[str, tuple[str, ...]] | None = None
    base: str | None = None

    def places(self, module: str) -> Iterator[str]:
        """Yield possible paths of a module without an extension, likeliest first."""
        paths = self.paths or {}
        for pattern in sorted(
            paths, key=lambda name: ("*" in name, -len(name.partition("*")[0]), name)
        ):
            before, star, after = pattern.partition("*")
            fits = (
                module.startswith(before)
                and module.endswith(after)
                and len(module) >= len(before + after)
            )
            if fits if star else module == pattern:
                matched = module[len(before) : len(module) - len(after)]
                for target in paths[pattern]:
                    yield posixpath.normpath(
                        posixpath.join(self.place, target.replace("*", matched, 1))
                    )
                break
        if self.base is not None:
            yield posixpath.normpath(posixpath.join(self.base, module))


class AliasTable:
    """The aliases that apply in each folder. ``texts`` maps paths to configurations."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._cache: dict[str, Aliases] = {}

    def of(self, folder: str) -> Aliases:
        """Return the aliases that apply in a folder."""
        if folder not in self._cache:
            path = next(
                (
                    candidate
                    for name in _CONFIG_NAMES
                    if (candidate := posixpath.join(folder, name)) in self._texts
                ),
                None,
            )
            if path:
                self._cache[folder] = self._read(path, _MAX_DEPTH)
            else:
                self._cache[folder] = self.of(posixpath.dirname(folder)) if folder else Aliases()
        return self._cache[folder]

    def _read(self, path: str, depth: int) -> Aliases:
        """Read a configuration and those that it extends.

        If they have no paths, use a referenced project that has some.
        """
        config = _parse_object(self._texts.get(path, ""))
        if not depth:
            return Aliases()
        place = posixpath.dirname(path)
        extended = config.get("extends")
        aliases = Aliases()
        for name in extended if isinstance(extended, list) else [extended]:
            aliases = _merge(self._read(self._config_path(place, name), depth - 1), aliases)
        aliases = _merge(_own_aliases(config, place, aliases.base), aliases)
        if aliases.paths is None and isinstance(config.get("references"), list):
            names = [item.get("path") for item in config["references"] if isinstance(item, dict)]
            referenced = (self._read(self._config_path(place, name), depth - 1) for name in names)
            return next((item for item in referenced if item.paths is not None), aliases)
        return aliases

    def _config_path(self, place: str, name: object) -> str:
        """Return the path of a configuration that another one names. Packages are outside the repository."""
        if not isinstance(name, str) or not name.startswith("."):
            return ""
        path = posixpath.normpath(posixpath.join(place, name))
        candidates = (path, f"{path}.json", posixpath.join(path, _CONFIG_NAMES[0]))
        return next((candidate for candidate in candidates if candidate in self._texts), "")


def _merge(first: Aliases, second: Aliases) -> Aliases:
    base = second.base if first.base is None else first.base
    return (
        Aliases(second.place, second.paths, base)
        if first.paths is None
        else Aliases(first.place, first.paths, base)
    )


def _own_aliases(config: Mapping[str, Any], place: str, base: str | None) -> Aliases:
    """Return a configuration's own settings. ``base`` is inherited from the configurations that it extends."""
    options = config.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    if isinstance(options.get("baseUrl"), str):
        base = posixpath.normpath(posixpath.join(place, options["baseUrl"]))
    paths = options.get("paths")
    if not isinstance(paths, dict):
        return Aliases(base=base)
    targets = {str(name): tuple(map(str, to)) for name, to in paths.items() if isinstance(to, list)}
    return Aliases(place if base is None else base, targets, base)


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value = files.read_json_text(text)
    except files.UnparsableFileError:
        return {}
    return value if isinstance(value, dict) else {}


# ----------------------------------------------------------------------------
# An index from names to all definitions of a repository.


Node = tuple[int, int]
"""A definition, identified by the number of its file and its number in the file."""


@frozen
class Module:
    """The files of an import, and the folder of submodules.

    If both are missing, the module is outside the repository.
    """

    files: tuple[int, ...] = ()
    place: str | None = None

    @property
    def is_outside(self) -> bool:
        return not self.files and self.place is None


OUTSIDE = Module()
Target = Node | Module


class Index:
    """The files and definitions of a repository. ``texts`` maps paths to manifests."""

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
            family, definitions = self.families[number], self.facts[number].definitions
            top: dict[str, int] = {}
            qualified: dict[str, int] = {}
            for place, definition in enumerate(definitions):
                if (
                    definition.kind in INNER_KINDS
                    or qualified.setdefault(definition.qualified, place) != place
                ):
                    continue
                if definition.owner:
                    self.members[family, definition.owner][definition.name].append((number, place))
                    if definition.kind == "method":
                        self.methods[family, definition.name].append((number, place))
                elif self._is_top(definitions, definition):
                    top.setdefault(definition.name, place)
                    if not definition.hidden:
                        self.functions[family, definition.name].append((number, place))
            self.top.append(top)
            self.qualified.append(qualified)
        self.known_folders: set[str] = set()
        for folder in self.folders:
            while folder not in self.known_folders:
                self.known_folders.add(folder)
                folder = posixpath.dirname(folder)

    def paths_of(self, family: str) -> Iterator[str]:
        return (path for path, own in zip(self.paths, self.families, strict=True) if own == family)

    def definition(self, node: Node) -> Definition:
        return self.facts[node[0]].definitions[node[1]]

    def is_class(self, node: Node) -> bool:
        """Return True if a definition has members."""
        return self.definition(node).kind in CLASS_KINDS

    def only(self, nodes: Sequence[Node], near: int) -> Node | None:
        """Return the only definition, or else the first definition in the file ``near``, if any."""
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
# Resolution of imports to files in each language.


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
        self._cache: dict[tuple[int, str], Module] = {}

    def reach(self, file: int, module: str) -> Module:
        """Return the module that an import in a file names. Results are cached."""
        key = (file, module)
        if key not in self._cache:
            self._cache[key] = self.find(file, module)
        return self._cache[key]

    def find(self, file: int, module: str) -> Module:
        """Return the module that an import in a file names."""
        raise NotImplementedError

    def child(self, module: Module, name: str) -> Module | None:  # noqa: ARG002 - not every language nests modules
        """Return the module ``name`` inside a module, if any."""
        return None

    def around(self, file: int) -> Module:  # noqa: ARG002
        """Return the files whose names are visible in this file without an import."""
        return OUTSIDE

    def names(self, imported: Import, module: Module) -> Iterator[str]:  # noqa: ARG002
        """Yield the names that an import binds in a file."""
        if imported.alias:
            yield imported.alias


class PythonModules(Modules):
    """Python: packages are folders. A module is named by its path below the outermost package's parent folder."""

    @cached_property
    def _places_by_name(self) -> dict[str, set[str]]:
        places: dict[str, set[str]] = defaultdict(set)
        for path in self.index.paths_of("python"):
            place = path.rsplit(".", 1)[0].removesuffix("/__init__")
            for name in self._names_of(place):
                places[name].add(place)
        return places

    def find(self, file: int, module: str) -> Module:
        """Return the module that an import in a file names.

        A name with leading dots is relative to the file. Other names are packages, folders, or
        siblings.
        """
        bare = module.lstrip(".")
        levels = len(module) - len(bare)
        folder = posixpath.dirname(self.index.paths[file])
        if levels:
            for _ in range(levels - 1):
                folder = posixpath.dirname(folder)
            return self._at(posixpath.join(folder, *bare.split(".")) if bare else folder)
        places = self._places_by_name.get(bare, set())
        if len(places) == 1:
            return self._at(next(iter(places)))
        return OUTSIDE if places else self._at(posixpath.join(folder, *bare.split(".")))

    def child(self, module: Module, name: str) -> Module | None:
        if module.place is None:
            return None
        module_there = self._at(posixpath.join(module.place, name))
        return None if module_there.is_outside else module_there

    def _at(self, place: str) -> Module:
        paths = (f"{place}.py", f"{place}/__init__.py" if place else "__init__.py", f"{place}.pyi")
        number = next(
            (self.index.by_path[path] for path in paths if path in self.index.by_path), None
        )
        folder = place if place in self.index.known_folders else None
        return (
            OUTSIDE
            if number is None and not folder
            else Module(() if number is None else (number,), folder)
        )

    def _names_of(self, place: str) -> Iterator[str]:
        parts = place.split("/")
        yield ".".join(parts)
        first = len(parts) - 1
        while first > 0 and f"{'/'.join(parts[:first])}/__init__.py" in self.index.by_path:
            first -= 1
        yield ".".join(parts[first:])


class EcmaModules(Modules):
    """JavaScript: aliases, and paths without an extension or with the compiled file's extension."""

    @cached_property
    def _aliases(self) -> AliasTable:
        return AliasTable(self.index.texts)

    def find(self, file: int, module: str) -> Module:
        """Return the module for a path that begins with a dot, or for an alias of a file in this repository."""
        if not module:
            return Module((file,))
        folder = posixpath.dirname(self.index.paths[file])
        if module.startswith("."):
            return self._at(posixpath.normpath(posixpath.join(folder, module)))
        places = map(self._at, self._aliases.of(folder).places(module))
        return next((candidate for candidate in places if not candidate.is_outside), OUTSIDE)

    def _at(self, place: str) -> Module:
        stem = re.sub(r"\.[cm]?jsx?$", "", place)
        for start in dict.fromkeys((place, stem)):
            for ending in _ECMA_ENDINGS:
                if start + ending in self.index.by_path:
                    return Module((self.index.by_path[start + ending],))
        return OUTSIDE


class GoModules(Modules):
    """Go: a package is a folder. ``go.mod`` defines the repository's import path."""

    @cached_property
    def _roots(self) -> list[tuple[str, str]]:
        roots = [
            (match[1], posixpath.dirname(path))
            for path, text in self.index.texts.items()
            if path.endswith("go.mod") and (match := _GO_MODULE.search(text))
        ]
        return sorted(roots, key=lambda root: -len(root[0]))

    def find(self, file: int, module: str) -> Module:  # noqa: ARG002
        for name, root in self._roots:
            if module == name or module.startswith(f"{name}/"):
                return self._package(
                    posixpath.join(root, module[len(name) + 1 :]).rstrip("/"), None
                )
        return OUTSIDE

    def around(self, file: int) -> Module:
        return self._package(
            posixpath.dirname(self.index.paths[file]), self.index.facts[file].package
        )

    def names(self, imported: Import, module: Module) -> Iterator[str]:
        """Yield the last part of the path, or the name that the package declares."""
        yield from super().names(imported, module)
        if module.files and imported.alias and imported.module.endswith(imported.alias):
            yield self.index.facts[module.files[0]].package

    def _package(self, folder: str, package: str | None) -> Module:
        numbers = tuple(
            number
            for number in self.index.folders.get(folder, ())
            if self.index.families[number] == "go"
            and package in (None, self.index.facts[number].package)
            and (package or not self.index.paths[number].endswith("_test.go"))
        )
        return Module(numbers) if numbers else OUTSIDE


class RustModules(Modules):
    """Rust: modules are files below the folder of the crate root. ``Cargo.toml`` names the crates."""

    @cached_property
    def _crates(self) -> dict[str, Module]:
        crates = {}
        for path, text in self.index.texts.items():
            match = _CRATE.search(text) if path.endswith("Cargo.toml") else None
            root = posixpath.join(posixpath.dirname(path), "src")
            number = self.index.by_path.get(f"{root}/lib.rs")
            if match and number is not None:
                crates[match[1].replace("-", "_")] = Module((number,), root)
        return crates

    def find(self, file: int, module: str) -> Module:
        """Return the module for a path that begins with ``crate``, ``self``, ``super``, a crate, or a child module."""
        parts = module.split(".") if module else []
        path = self.index.paths[file]
        folder, name = posixpath.split(path)
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
        place = posixpath.join(module.place, name)
        for path in (f"{place}.rs", f"{place}/mod.rs"):
            if path in self.index.by_path:
                return Module((self.index.by_path[path],), place)
        return None

    def _root_of(self, file: int) -> Module:
        folder = posixpath.dirname(self.index.paths[file])
        while True:
            for name in ("lib.rs", "main.rs"):
                number = self.index.by_path.get(posixpath.join(folder, name))
                if number is not None:
                    return Module((number,), folder)
            if not folder:
                return OUTSIDE
            folder = posixpath.dirname(folder)

    def _parent(self, module: Module) -> Module | None:
        folder = posixpath.dirname(module.place or "")
        for name in ("mod.rs", "lib.rs", "main.rs"):
            number = self.index.by_path.get(posixpath.join(folder, name))
            if number is not None and number not in module.files:
                return Module((number,), folder)
        number = self.index.by_path.get(f"{folder}.rs")
        return Module((number,), folder) if number is not None else None


class JavaModules(Modules):
    """Java: each file declares its package."""

    sees_members = True

    @cached_property
    def _packages(self) -> dict[str, list[int]]:
        packages: dict[str, list[int]] = defaultdict(list)
        for path in self.index.paths_of("java"):
            number = self.index.by_path[path]
            packages[self.index.facts[number].package].append(number)
        return packages

    def find(self, file: int, module: str) -> Module:  # noqa: ARG002
        """Return the files of a package or, for a static import, the file of the class."""
        if module in self._packages:
            return Module(tuple(self._packages[module]))
        package, _, name = module.rpartition(".")
        numbers = [
            number for number in self._packages.get(package, ()) if name in self.index.top[number]
        ]
        return Module(tuple(numbers)) if numbers else OUTSIDE

    def around(self, file: int) -> Module:
        return Module(tuple(self._packages[self.index.facts[file].package]))


class CModules(Modules):
    """C: files are included, and functions are visible in all files."""

    sees_members = True
    is_global = True

    @cached_property
    def _paths_by_name(self) -> dict[str, list[str]]:
        paths: dict[str, list[str]] = defaultdict(list)
        for path in self.index.paths_of("cfamily"):
            paths[posixpath.basename(path)].append(path)
        return paths

    def find(self, file: int, module: str) -> Module:
        """Return the included file.

        A path relative to this file is tried first, then the only path that ends with ``module``.
        """
        sibling = posixpath.normpath(
            posixpath.join(posixpath.dirname(self.index.paths[file]), module)
        )
        if sibling in self.index.by_path:
            return Module((self.index.by_path[sibling],))
        plain = posixpath.normpath(module)
        name = posixpath.basename(plain)
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
"""The import resolution for each family of languages."""


# ----------------------------------------------------------------------------
# Look up names in their scope. A name refers to a definition, a module, or something outside the
# repository.


MAX_CACHED = 50_000
"""Maximum number of entries in a cache. A larger cache is cleared before the next file."""

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
"""Common method names. If the receiver is unknown, the call probably goes to a library."""

_BUILTIN = {
    "python": frozenset(dir(builtins)),
    "ecma": frozenset("console process document window globalThis module exports require".split()),
}


class Names:
    """Looks up names and caches the result for each file, scope and name."""

    def __init__(self, index: Index) -> None:
        self.index = index
        present = set(index.families)
        self._modules: dict[str, Modules] = {family: BY_FAMILY[family](index) for family in present}
        self._bindings: dict[int, tuple[dict[str, list[Import]], list[Import]]] = {}
        self.cache: dict[tuple[int, int, str], Target | None] = {}
        self._bases: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
        for number, facts in enumerate(index.facts):
            for base in facts.bases:
                self._bases[number, facts.definitions[base.owner].qualified].append(
                    (base.owner, base.name)
                )

    def modules(self, file: int) -> Modules:
        return self._modules[self.index.families[file]]

    def lookup(self, file: int, scope: int, name: str) -> Target | None:
        """Look up a name without dots in a scope. Return ``None`` if the name is unknown.

        If the name is from outside the repository, the target is an outside module.
        """
        key = (file, scope, name)
        if key not in self.cache:
            self.cache[key] = None  # stops at circular imports
            self.cache[key] = self._in_scopes(file, scope, name) or self._in_file(
                file, name, _MAX_DEPTH
            )
        return self.cache[key]

    def chain(self, file: int, scope: int, dotted: str) -> Target | None:
        head, *rest = dotted.split(".")
        target = self._begin(file, scope, head)
        for part in rest:
            if target is None:
                return None
            target = self.step(file, target, part)
        return target

    def step(self, file: int, target: Target, name: str, depth: int = _MAX_DEPTH) -> Target | None:
        if isinstance(target, Module):
            if target.is_outside:
                return OUTSIDE
            return self._in_module(file, target, name, depth)
        return self.member(target, name) if self.index.is_class(target) else None

    def member(self, node: Node, name: str, depth: int = _MAX_DEPTH) -> Node | None:
        definition, family = self.index.definition(node), self.index.families[node[0]]
        result = self.index.only(
            self.index.members.get((family, definition.qualified), {}).get(name, ()), node[0]
        )
        if result or not depth:
            return result
        for base in self.bases(node):
            result = self.member(base, name, depth - 1)
            if result:
                return result
        return None

    def bases(self, node: Node) -> Iterable[Node]:
        definition = self.index.definition(node)
        for owner, name in self._bases.get((node[0], definition.qualified), ()):
            scope = self.index.facts[node[0]].definitions[owner].parent
            base = self.type_named(node[0], scope, name)
            if base and base != node:
                yield base

    def type_named(self, file: int, scope: int, name: str) -> Node | None:
        target = self.chain(file, scope, name)
        return target if isinstance(target, tuple) and self.index.is_class(target) else None

    def owner_of(self, file: int, scope: int) -> Node | None:
        """Return the class that encloses a scope. The scope can be a method defined outside the class."""
        definitions = self.index.facts[file].definitions
        while scope != MODULE:
            definition = definitions[scope]
            if definition.kind in CLASS_KINDS or definition.owner:
                name = (
                    definition.owner
                    if definition.owner and definition.kind not in CLASS_KINDS
                    else definition.qualified
                )
                place = self.index.qualified[file].get(name)
                if place is not None:
                    return (file, place)
                return self.type_named(file, MODULE, name) or self._only_class(file, name)
            scope = definition.parent
        return None

    def unique_method(self, file: int, name: str) -> Node | None:
        """Return the method with this name, if only one exists in the repository and libraries rarely use the name."""
        methods = self.index.methods.get((self.index.families[file], name), ())
        return methods[0] if len(methods) == 1 and name not in COMMON and len(name) > 2 else None

    def import_target(self, file: int, imported: Import) -> tuple[Module, Target | None]:
        module = self.modules(file).reach(file, imported.module)
        target = (
            self.step(file, module, imported.name)
            if imported.name not in ("", "*") and not module.is_outside
            else None
        )
        return module, target

    def _begin(self, file: int, scope: int, head: str) -> Target | None:
        if head == "Self":
            return self.owner_of(file, scope)
        if self.index.families[file] != "rust":
            return self.lookup(file, scope, head)
        target = None if head in ("crate", "super") else self.lookup(file, scope, head)
        if target is not None:
            return target
        module = self.modules(file).reach(file, head)
        return None if module.is_outside else module

    def _in_scopes(self, file: int, scope: int, name: str) -> Node | None:
        definitions = self.index.facts[file].definitions
        sees_members = self.modules(file).sees_members
        while scope != MODULE:
            definition = definitions[scope]
            is_class = definition.kind in CLASS_KINDS
            if not is_class or sees_members:
                place = self.index.qualified[file].get(f"{definition.qualified}.{name}")
                if place is not None:
                    return (file, place)
            if sees_members and (is_class or definition.owner):
                around = (file, scope) if is_class else self.owner_of(file, scope)
                member = self.member(around, name) if around else None
                if member:
                    return member
            scope = definition.parent
        return None

    def _in_file(self, file: int, name: str, depth: int) -> Target | None:
        place = self.index.top[file].get(name)
        if place is not None:
            return (file, place)
        named, starred = self._imports_of(file)
        for imported in named.get(name, ()):
            target = self._imported(file, imported, depth)
            if target is not None:
                return target
        modules = self.modules(file)
        around = self._in_tops(modules.around(file), name)
        if around:
            return around
        for imported in starred:
            target = (
                self._in_module(file, modules.reach(file, imported.module), name, depth - 1)
                if depth
                else None
            )
            if isinstance(target, tuple):
                return target
        if modules.is_global:
            return self.index.only(
                self.index.functions.get((self.index.families[file], name), ()), file
            )
        is_known = name in _BUILTIN.get(self.index.families[file], ()) or name[:1].isupper()
        return OUTSIDE if is_known else None

    def _imports_of(self, file: int) -> tuple[dict[str, list[Import]], list[Import]]:
        if file not in self._bindings:
            named: dict[str, list[Import]] = defaultdict(list)
            starred = []
            modules = self.modules(file)
            for imported in self.index.facts[file].imports:
                if imported.name == "*":
                    starred.append(imported)
                for name in modules.names(imported, modules.reach(file, imported.module)):
                    named[name.split(".")[0]].append(imported)
            self._bindings[file] = (named, starred)
        return self._bindings[file]

    def _imported(self, file: int, imported: Import, depth: int) -> Target | None:
        modules = self.modules(file)
        module_name = imported.module.split(".")[0] if "." in imported.alias else imported.module
        module = modules.reach(file, module_name)
        if module.is_outside:
            return OUTSIDE
        if not imported.name:
            return module
        return self._in_module(file, module, imported.name, depth - 1) if depth else None

    def _in_module(self, file: int, module: Module, name: str, depth: int) -> Target | None:
        target: Target | None = self._in_tops(module, name)
        for number in module.files if target is None and depth else ():
            target = target or self._reexported(number, name, depth)
        return target or self.modules(file).child(module, name)

    def _reexported(self, file: int, name: str, depth: int) -> Target | None:
        """Return a name that a module re-exports.

        In Python, all imports count. Elsewhere, only explicit exports count.
        """
        facts = self.index.facts[file]
        if name == "default" and facts.default:
            place = self.index.top[file].get(facts.default)
            return (
                (file, place)
                if place is not None
                else self._in_file(file, facts.default, depth - 1)
            )
        is_open = self.index.families[file] == "python"
        named, starred = self._imports_of(file)
        for imported in named.get(name, ()):
            if (is_open or imported.exported) and "." not in imported.alias:
                target = (
                    self._imported(file, imported, depth - 1)
                    if imported.module
                    else self._in_file(file, imported.name, depth - 1)
                )
                if isinstance(target, tuple) or (
                    isinstance(target, Module) and not target.is_outside
                ):
                    return target
        for imported in starred if depth > 1 else ():
            if is_open or imported.exported:
                inner = self._in_module(
                    file, self.modules(file).reach(file, imported.module), name, depth - 2
                )
                if isinstance(inner, tuple):
                    return inner
        return None

    def _in_tops(self, module: Module, name: str) -> Node | None:
        for number in module.files:
            place = self.index.top[number].get(name)
            if place is not None:
                return (number, place)
        for number in module.files:  # static members of a class that is named as a module
            for outer in (
                self.index.top[number].values() if self.modules(number).sees_members else ()
            ):
                place = self.index.qualified[number].get(
                    f"{self.index.facts[number].definitions[outer].qualified}.{name}"
                )
                if place is not None and len(module.files) == 1:
                    return (number, place)
        return None

    def _only_class(self, file: int, qualified: str) -> Node | None:
        name = qualified.rsplit(".", 1)[-1]
        nodes = self.index.functions.get((self.index.families[file], name), ())
        return self.index.only(
            [node for node in nodes if self.index.definition(node).qualified == qualified], file
        )


# ----------------------------------------------------------------------------
# Resolve calls by the receiver's type if the source declares it, and otherwise by a unique method
# name.


_UNKNOWN = object()

_Declared = tuple[int, int, str]
"""A declaration: file, scope, and a type's name or, after ``=``, an expression of the type."""


class Calls:
    """Resolves the calls in files."""

    def __init__(self, index: Index, names: Names) -> None:
        self._index, self._names = index, names
        self.cache: dict[tuple[int, int, str], Node | object | None] = {}
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
        """Return the definition that a call refers to, or ``None`` if it is ambiguous or outside the repository."""
        if not call.receiver:
            target = self._names.lookup(file, call.scope, call.name)
            return target if isinstance(target, tuple) and self._is_callable(target) else None
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
        return target if isinstance(target, tuple) and self._is_callable(target) else None

    def _qualified(self, file: int, call: Call) -> Node | None:
        """Resolve ``ns::f()`` in C++, where a namespace can span files."""
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
        """Return the class of a receiver, or ``None`` for a class outside this repository.

        Returns ``_UNKNOWN`` if the receiver is not a variable.
        """
        key = (file, scope, receiver)
        if key not in self.cache:
            self.cache[key] = None  # a variable that is defined by itself has no type
            self.cache[key] = self._find_type(file, scope, receiver)
        return self.cache[key]

    def _find_type(self, file: int, scope: int, receiver: str) -> Node | object | None:
        if receiver.endswith("()"):
            return self._call_type(file, scope, receiver[:-2])
        before, dot, last = receiver.rpartition(".")
        if not dot:
            if receiver in ("self", "cls", "Self"):
                return self._names.owner_of(file, scope) or self._own_function(file, scope)
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

    def _own_function(self, file: int, scope: int) -> Node | object | None:
        """Return the type of ``this`` in a JavaScript constructor function."""
        definitions = self._index.facts[file].definitions
        is_maker = scope != MODULE and definitions[scope].name[:1].isupper()
        return (file, scope) if is_maker and self._index.families[file] == "ecma" else None

    def _field_type(self, owner: Node, name: str, otherwise: object = None) -> Node | object | None:
        """Return the class of a field. An alias (``=``) counts only if no type is declared.

        If several classes have the same name, declarations in this file take precedence.
        """
        declared = self._fields.get(
            (self._index.families[owner[0]], self._index.definition(owner).qualified, name)
        )
        if not declared:
            return otherwise
        own = {item for item in declared if item[0] == owner[0]} or declared
        return self._only_type({item for item in own if not item[2].startswith("=")} or own)

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
    """An edge, with the line of its first occurrence. For a file, the definition number is ``MODULE``."""

    rel: str
    source: Node
    target: Node
    line: int


@frozen
class Foreign:
    """An import of a module from outside the repository."""

    file: int
    module: str
    line: int


class Resolution:
    """The edges between the files of a repository. ``texts`` maps paths to manifests."""

    def __init__(self, files: Sequence[tuple[str, Facts]], texts: Mapping[str, str]) -> None:
        self.index = Index(files, texts)
        self._names = Names(self.index)
        self._calls = Calls(self.index, self._names)

    def of(self, file: int, calls: Iterable[Call]) -> Iterator[Edge | Foreign]:
        """Yield each edge that begins in a file, without duplicates.

        ``calls``: the calls in the file, which are not stored, to save memory.
        """
        for cache in (self._names.cache, self._calls.cache):
            if len(cache) > MAX_CACHED:
                cache.clear()
        seen: set[tuple[str, Node, Node]] = set()
        for edge in (
            *self._import_edges(file),
            *self._base_edges(file),
            *self._call_edges(file, calls),
        ):
            if isinstance(edge, Foreign):
                yield edge
            elif (
                key := (edge.rel, edge.source, edge.target)
            ) not in seen and edge.source != edge.target:
                seen.add(key)
                yield edge

    def _import_edges(self, file: int) -> Iterator[Edge | Foreign]:
        outside: dict[str, int] = {}
        for imported in self.index.facts[file].imports:
            if not imported.module:
                continue
            module, item = self._names.import_target(file, imported)
            if module.is_outside:
                outside.setdefault(imported.module, imported.line)
            numbers = dict.fromkeys(item.files if isinstance(item, Module) else ())
            if isinstance(item, tuple) and self._names.modules(file).sees_members:
                numbers = {item[0]: None}  # only a class of the package
            else:
                numbers |= dict.fromkeys(module.files)
            for target in numbers:
                yield Edge("imports", (file, MODULE), (target, MODULE), imported.line)
        yield from (Foreign(file, module, line) for module, line in outside.items())

    def _base_edges(self, file: int) -> Iterator[Edge]:
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

    def _call_edges(self, file: int, calls: Iterable[Call]) -> Iterator[Edge]:
        for call in calls:
            target = self._calls.resolve(file, call)
            if target:
                scope = call.scope
                definitions = self.index.facts[file].definitions
                while scope != MODULE and definitions[scope].kind in INNER_KINDS:
                    scope = definitions[scope].parent
                yield Edge(
                    "calls",
                    (
                        file,
                        self.index.qualified[file][definitions[scope].qualified]
                        if scope != MODULE
                        else MODULE,
                    ),
                    target,
                    call.line,
                )
