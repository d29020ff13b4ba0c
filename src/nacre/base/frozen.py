"""Frozen dataclasses that are fast to define.

A command defines hundreds of classes but uses few. ``dataclass`` compiles six methods for each
class, which took half of the start time. Here, the classes share methods, and each constructor is
compiled when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError, dataclass, field, fields, make_dataclass
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
_COPIED = ("__doc__", "__post_init__")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass with slots. Its subclasses need ``@frozen`` too."""
    new_class: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    key = _values(item.name for item in fields(new_class) if item.compare)
    hash_key = _values(
        item.name
        for item in fields(new_class)
        if (item.compare if item.hash is None else item.hash)
    )

    def construct(self: Any, *args: Any, **options: Any) -> None:
        new_class.__init__ = _constructor(new_class)
        new_class.__init__(self, *args, **options)

    def equals(self: Any, other: Any) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    own = cls.__dict__
    if "__init__" not in own:
        new_class.__init__ = construct
    if "__eq__" not in own:
        new_class.__eq__ = equals
    if own.get("__hash__") is None:
        new_class.__hash__ = lambda self: hash(hash_key(self))
    if "__repr__" not in own:
        new_class.__repr__ = _repr
    new_class.__setattr__ = new_class.__delattr__ = _refuse
    new_class.__setstate__ = _restore
    return new_class  # type: ignore[no-any-return]


def _values(names: Iterable[str]) -> Callable[[Any], Any]:
    listed = tuple(names)
    return attrgetter(*listed) if listed else lambda _: ()


def _constructor(new_class: Any) -> Any:
    equal = make_dataclass(
        new_class.__name__,
        [(item.name, item.type, item) for item in fields(new_class)],
        namespace={name: getattr(new_class, name) for name in _COPIED if hasattr(new_class, name)},
        repr=False,
        eq=False,
        frozen=True,
    )
    return equal.__init__  # type: ignore[misc]


def _repr(self: Any) -> str:
    fields_text = (
        f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr
    )
    return f"{self.__class__.__qualname__}({', '.join(fields_text)})"


def _refuse(_: Any, name: str, *__: Any) -> None:
    raise FrozenInstanceError(name)


def _restore(self: Any, state: tuple[None, dict[str, Any]]) -> None:
    for name, value in state[1].items():
        object.__setattr__(self, name, value)
