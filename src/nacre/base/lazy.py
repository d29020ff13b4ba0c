"""Imports deferred until first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from nacre.errors import UnavailableError

T = TypeVar("T")


@cache
def load(target: str) -> Any:
    """Import and return ``package.module:name``. Raises ImportError, AttributeError."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def zstd() -> Any:
    """Return the Zstandard library, which Python includes since 3.14. Raises UnavailableError."""
    package = "compression" if sys.version_info >= (3, 14) else "backports"
    try:
        return import_module(f"{package}.zstd")
    except ImportError as error:
        raise UnavailableError("Zstandard is missing", hint="pip install backports.zstd") from error


class Module:
    """A module that is imported when one of its attributes is first used.

    Use it where the module is not always needed. For type checkers, also import the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


class Lazy(Generic[T]):
    """An attribute created on first access: ``stores: Lazy[Stores] = Lazy("module:Stores")``.

    ``make`` receives the imported target and the object that has the attribute. By default, the
    target is called with that object's database.
    """

    def __init__(
        self,
        target: str,
        make: Callable[[Any, Any], T] = lambda store, owner: store(owner.database),
    ) -> None:
        self._target = target
        self._make = make
        self._attribute = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, owner: Any, _: type) -> T:
        value = owner.__dict__[self._attribute] = self._make(load(self._target), owner)
        return value
