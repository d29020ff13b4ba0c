"""The catalogue of all operations.

All interfaces use it, and docs/json.md is generated from it. An operation is named after its
command, with ``-`` between words. Listing the names does not import the operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from nacre.base import plugins
from nacre.base.lazy import load
from nacre.operations import Operation, operation_of
from nacre.serve.manifest import PLACES
from nacre.values.memory import Face


class _Catalogue(Mapping[str, Operation]):
    """All operations by name. A module is imported when one of its operations is first used.

    Plugins are loaded when all are listed, or a name is not nacre's own.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Operation] = {}

    def __getitem__(self, name: str) -> Operation:
        if name not in self._loaded:
            if name not in PLACES:
                return self._of_plugins[name]
            self._loaded |= operations_in(import_module(f"nacre.{PLACES[name].split()[0]}"))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**PLACES, **self._of_plugins})

    def __len__(self) -> int:
        return len({**PLACES, **self._of_plugins})

    def __contains__(self, name: object) -> bool:
        return name in PLACES or name in self._of_plugins

    @cached_property
    def _of_plugins(self) -> Mapping[str, Operation]:
        modules = plugins.load_usable_plugins(plugins.OPERATIONS, ModuleType).values()
        return {
            name: operation
            for module in modules
            for name, operation in operations_in(module).items()
        }


def operations_in(module: ModuleType) -> dict[str, Operation]:
    """Return the operations that a module defines, by name."""
    functions = [item for item in vars(module).values() if type(item) is FunctionType]
    marked = [
        operation_of(function)
        for function in functions
        if function.__module__ == module.__name__ and "operation" in vars(function)
    ]
    return {operation.name: operation for operation in marked}


CATALOGUE: Mapping[str, Operation] = _Catalogue()


def request_of(name: str) -> Any:
    """Return the request type of an operation, without importing the operation if it is nacre's own."""
    return load(f"nacre.{PLACES[name].split()[1]}") if name in PLACES else CATALOGUE[name].request


def find_operation(name: str, face: Face = Face.DAEMON) -> Operation | None:
    """Return an operation if an interface offers it, else ``None``."""
    found = CATALOGUE.get(name)
    return found if found and found.is_offered(face) else None


def offered_by(face: Face) -> Mapping[str, Operation]:
    """Return the operations of an interface by name. This imports all of them."""
    return {name: item for name, item in CATALOGUE.items() if item.is_offered(face)}
