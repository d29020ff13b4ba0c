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
    """Import the object named by ``package.module:name``."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def zstd() -> Any:
    """Return the Zstandard library. Raises UnavailableError if it is not installed."""
    package = "compression" if sys.version_info >= (3, 14) else "backports"
    try:
        return import_module(f"{package}.zstd")
    except ImportError as error:
        raise UnavailableError("Zstandard is missing", hint="pip install backports.zstd") from error


class Module:
    """A stand-in for a module, which is imported when one of its attributes is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


class Lazy(Generic[T]):
    """An attribute created on first access: ``stores: Lazy[Stores] = Lazy("module:Stores")``.

    By default, the imported class is called with the owner's database. ``make`` replaces this call.
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
