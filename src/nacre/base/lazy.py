"""The one door through which a module is loaded only when somebody wants what is in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@cache
def load(target: str) -> Any:
    """What ``package.module:name`` names. Its module is imported the first time. Raises ImportError, AttributeError."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


class Module:
    """A module that is imported when something in it is first used.

    A face names it beside the import that type checkers read, so that what it does not need this time costs nothing.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


class Lazy(Generic[T]):
    """An attribute that is made when it is first read, and kept: ``stores: Lazy[Stores] = Lazy("module:Stores")``.

    ``make`` gets what the target names, and the object whose attribute it is; by default it is a store of the object's
    database.
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
        made = owner.__dict__[self._attribute] = self._make(load(self._target), owner)
        return made
