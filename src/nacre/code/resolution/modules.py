"""How each language resolves imports to files."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator

from nacre.code.facts import Import
from nacre.code.resolution.aliases import AliasTable
from nacre.code.resolution.index import OUTSIDE, Index, Module

_GO_MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
_CRATE = re.compile(r"^\[package\][^\[]*?^name\s*=\s*\"([^\"]+)\"", re.MULTILINE | re.DOTALL)
_ECMA_ENDINGS = (
    "", ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".d.ts", "/index.ts", "/index.tsx", "/index.js",
    "/index.jsx", "/index.mjs",
)  # fmt: skip


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
        found = next((self.index.by_path[path] for path in paths if path in self.index.by_path), None)
        folder = place if place in self.index.known_folders else None
        return OUTSIDE if found is None and not folder else Module(() if found is None else (found,), folder)

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
        named = ((posixpath.dirname(path), _GO_MODULE.search(text)) for path, text in index.texts.items()
                 if path.endswith("go.mod"))  # fmt: skip
        self._roots = sorted(((found[1], place) for place, found in named if found), key=lambda one: -len(one[0]))

    def find(self, file: int, module: str) -> Module:  # noqa: ARG002
        """The folder of a package of this repository."""
        for name, root in self._roots:
            if module == name or module.startswith(f"{name}/"):
                return self._package(posixpath.join(root, module[len(name) + 1 :]).rstrip("/"), None)
        return OUTSIDE

    def around(self, file: int) -> Module:
        """The other files of its package."""
        return self._package(posixpath.dirname(self.index.paths[file]), self.index.facts[file].package)

    def names(self, one: Import, module: Module) -> Iterator[str]:
        """The last part of the path, or what the package calls itself."""
        yield from super().names(one, module)
        if module.files and one.alias and one.module.endswith(one.alias):
            yield self.index.facts[module.files[0]].package

    def _package(self, folder: str, package: str | None) -> Module:
        found = tuple(
            one for one in self.index.folders.get(folder, ())
            if self.index.families[one] == "go" and package in (None, self.index.facts[one].package)
            and (package or not self.index.paths[one].endswith("_test.go"))
        )  # fmt: skip
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
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(self.index.paths[file]), module))
        if beside in self.index.by_path:
            return Module((self.index.by_path[beside],))
        plain = posixpath.normpath(module)
        found = [one for one in self._ending[posixpath.basename(plain)] if f"/{one}".endswith(f"/{plain}")]
        return Module((self.index.by_path[found[0]],)) if len(found) == 1 else OUTSIDE


BY_FAMILY: dict[str, type[Modules]] = {
    "python": PythonModules, "ecma": EcmaModules, "go": GoModules, "rust": RustModules, "java": JavaModules,
    "cfamily": CModules,
}  # fmt: skip
"""The modules of each family of languages."""
