"""The catalogue of all operations.

All interfaces use it, and docs/json.md is generated from it. Operations are named after their
commands, with ``-`` between words. Listing the names does not import the operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from nacre.base import plugins
from nacre.base.lazy import load
from nacre.operations import Operation, operation_of
from nacre.serve.manifest import PLACES
from nacre.values.memory import Face


class _Catalogue(Mapping[str, Operation]):
    def __init__(self) -> None:
        self._loaded: dict[str, Operation] = {}

    def __getitem__(self, name: str) -> Operation:
        if name not in self._loaded:
            if name in PLACES:
                self._loaded |= operations_in(
                    import_module(f"nacre.{PLACES[name].partition(' ')[0]}")
                )
            else:
                point = plugins.find_plugins(plugins.OPERATIONS)[name]
                self._loaded[name] = operation_of(plugins.load_plugin(point, FunctionType))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**PLACES, **plugins.load_usable_plugins(plugins.OPERATIONS, FunctionType)})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in PLACES or name in plugins.find_plugins(plugins.OPERATIONS)


def operations_in(module: ModuleType) -> dict[str, Operation]:
    """Return the operations that a module defines, keyed by name."""
    functions = [item for item in vars(module).values() if type(item) is FunctionType]
    marked = [
        operation_of(function)
        for function in functions
        if function.__module__ == module.__name__ and "operation" in vars(function)
    ]
    return {operation.name: operation for operation in marked}


CATALOGUE: Mapping[str, Operation] = _Catalogue()


def request_of(name: str) -> Any:
    """Return an operation's request type, if possible without importing the operation."""
    _, _, place = PLACES.get(name, "").partition(" ")
    return load(f"nacre.{place}") if place else CATALOGUE[name].request


def find_operation(name: str, face: Face = Face.DAEMON) -> Operation | None:
    """Return an operation by name, or ``None`` if the interface does not offer it."""
    entry = CATALOGUE.get(name)
    return entry if entry and entry.is_offered(face) else None


def offered_by(face: Face) -> Mapping[str, Operation]:
    """Import all operations, and return those that an interface offers, keyed by name."""
    return {name: item for name, item in CATALOGUE.items() if item.is_offered(face)}
