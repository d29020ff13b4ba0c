"""Frozen dataclasses that are cheap to define.

A command defines hundreds of classes and uses a few. ``dataclass(frozen=True, slots=True)`` compiles six methods for
each class: almost half of the CPU time of a short command. Here classes share their methods, and the constructor is
compiled when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass with slots. Its subclasses must be marked with ``@frozen``, too."""
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    key = _values(item.name for item in fields(made) if item.compare)
    hash_key = _values(
        item.name for item in fields(made) if (item.compare if item.hash is None else item.hash)
    )

    def construct(self: Any, *args: Any, **options: Any) -> None:
        made.__init__ = _constructor(made)
        made.__init__(self, *args, **options)

    def equals(self: Any, other: Any) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    methods: dict[str, Any] = {
        "__init__": construct,
        "__eq__": equals,
        "__hash__": lambda self: hash(hash_key(self)),
        "__repr__": _repr,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__setstate__": _restore,
    }
    for name, method in methods.items():
        if cls.__dict__.get(name) is None:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _values(names: Iterable[str]) -> Callable[[Any], Any]:
    """Return a function that returns the values of some fields."""
    listed = tuple(names)
    return attrgetter(*listed) if listed else lambda _: ()


def _constructor(made: Any) -> Any:
    """Compile the ``__init__`` of a class."""
    scope: dict[str, Any] = {"__set": object.__setattr__, "__unset": MISSING}
    parameters: dict[bool, list[str]] = {False: [], True: ["*"]}
    body = []
    for item in fields(made):
        name = value = item.name
        default, parameter = f"__default_{name}", name
        if item.default_factory is not MISSING:
            scope[default], parameter = item.default_factory, f"{name}=__unset"
            value = f"{default}() if {name} is __unset else {name}" if item.init else f"{default}()"
        elif item.default is not MISSING:
            scope[default], parameter = item.default, f"{name}={default}"
            value = name if item.init else default
        elif not item.init:
            continue
        body.append(f" __set(self, {name!r}, {value})")
        if item.init:
            parameters[item.kw_only is True].append(parameter)
    if hasattr(made, "__post_init__"):
        body.append(" self.__post_init__()")
    listed = ["self", *parameters[False], *(parameters[True] if parameters[True][1:] else [])]
    source = f"def __init__({', '.join(listed)}):\n" + "\n".join(body or [" pass"])
    exec(source, scope)  # noqa: S102 - as dataclasses compiles methods
    scope["__init__"].__qualname__ = f"{made.__qualname__}.__init__"
    return scope["__init__"]


def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise FrozenInstanceError(f"{self.__class__.__name__}.{name} cannot change")


def _restore(self: Any, state: tuple[None, dict[str, Any]]) -> None:
    """Set the fields of a copied or unpickled instance."""
    for name, value in state[1].items():
        object.__setattr__(self, name, value)
