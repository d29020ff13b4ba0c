"""Resolve a name that a person gave to symbols and files."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.code.mentions import is_path, symbol_parts
from nacre.code.values import CodeNode
from nacre.errors import NotFound
from nacre.graph.nodes import CODE
from nacre.home.home import Home
from nacre.storage.code.graph import FILE, Symbol


def find_nodes(home: Home, name: str, project: str | None, near: str | None) -> list[Symbol]:
    """The symbols or files that a name may refer to: one if it is unambiguous, else the choices. Raises NotFound.

    ``src/a.py#A.f`` is the symbol of a file; a dotted name is that of a symbol or its end, modules before it or not.
    """
    asked = name.strip()
    if asked.startswith(CODE):
        project, _, asked = asked.removeprefix(CODE).partition("/")
    path, hash_sign, symbol = asked.partition("#")
    if hash_sign and (is_path(path) or "/" in path):
        found = [one for one in _symbols(home, symbol, project) if ends_alike(one.path, path)]
    else:
        found = _files(home, asked, project) if is_path(asked) else []
        found = found or _symbols(home, asked, project)
    if not found:
        raise NotFound(f"no code is known by the name {name!r}", hint=_hint(home))
    own = [one for one in found if one.project == near]
    return own or found


def find_files(home: Home, name: str, project: str | None, near: str | None) -> list[Symbol]:
    """The files that a path, or the dotted name of a module, may refer to."""
    asked = name.strip().removeprefix(CODE)
    found = _files(home, asked, project)
    if not found and not is_path(asked):
        place = "/".join(symbol_parts(asked.replace("/", ".")))
        for ending in (".py", "/__init__.py", ".rs", "/mod.rs", ".ts", ".js", ".java"):
            found = found or _files(home, place + ending, project)
    own = [one for one in found if one.project == near]
    return own or found


def node_of(symbol: Symbol) -> CodeNode:
    """A stored symbol as a node of an answer."""
    name = f"#{symbol.qualified}" if symbol.qualified else ""
    return CodeNode(
        f"{CODE}{symbol.project}/{symbol.path}{name}", symbol.project, symbol.path, symbol.qualified, symbol.kind,
        symbol.line,
    )  # fmt: skip


def ends_alike(path: str, asked: str) -> bool:
    """Whether one of two paths ends with the other, compared without case."""
    one, other = path.lower().split("/"), [part for part in asked.lower().split("/") if part]
    shorter = min(len(one), len(other))
    return shorter > 0 and one[-shorter:] == other[-shorter:] and (len(other) <= len(one) or asked.startswith("/"))


def meant(symbols: Sequence[Symbol], written: str) -> list[Symbol]:
    """Those of some symbols with the same last part that a dotted name may mean: the nearest in spelling, then those
    that it names whole."""
    parts = symbol_parts(written)
    fit = [one for one in symbols if _places(one)[-len(parts) :] == parts]
    if not fit:
        lower = [part.lower() for part in parts]
        fit = [one for one in symbols if [part.lower() for part in _places(one)][-len(parts) :] == lower]
    whole = [one for one in fit if one.qualified.split(".") == parts]
    return whole if len(whole) == 1 and len(parts) > 1 else fit


def _symbols(home: Home, name: str, project: str | None) -> list[Symbol]:
    parts = symbol_parts(name.split("(")[0])
    return meant(home.code.named(parts[-1], project), ".".join(parts)) if parts else []


def _files(home: Home, path: str, project: str | None) -> list[Symbol]:
    plain = path.replace("\\", "/").removeprefix("./")
    found = [one for one in home.code.files_named(plain.rsplit("/", 1)[-1], project) if ends_alike(one.path, plain)]
    whole = [one for one in found if one.path == plain]
    return whole or found


def _places(symbol: Symbol) -> list[str]:
    """The parts of a symbol's full name: folders, file, enclosing definitions, its own name."""
    path = symbol.path.rsplit(".", 1)[0].removesuffix("/__init__").split("/")
    return [*path, *(symbol.qualified.split(".") if symbol.kind != FILE else ())]


def _hint(home: Home) -> str:
    known = [project for project, *_ in home.code.projects()]
    if not known:
        return "nacre graph ingest-code reads the repository of this folder"
    return f"code is known of {', '.join(known[:5])}; nacre graph ingest-code reads what is new"
