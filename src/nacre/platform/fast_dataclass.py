"""Frozen dataclasses with slots that take a quarter of the time to make: a hook makes sixty of them as it starts.

``from nacre.platform.fast_dataclass import dataclass`` stands for ``dataclasses.dataclass`` if classes are frozen and
have slots. The standard library compiles six functions a class; here ``__init__`` alone is compiled, the others are
shared. Whatever ``dataclasses`` does with such classes (``replace``, ``asdict``, ``fields``, matching, pickling) works
as ever.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, slots: bool) -> Any:
        """As :func:`dataclasses.dataclass`; both have to be true. Raises TypeError."""
        if not (frozen and slots):
            raise TypeError("only frozen dataclasses with slots are made here")
        return _make


_SHARED = ("__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")


def _make(cls: type) -> Any:
    own = {name for name in _SHARED if name in cls.__dict__}
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    fields = dataclasses.fields(made)
    if any(field.kw_only or not field.init for field in fields) or "__post_init__" in cls.__dict__:
        raise TypeError(f"{cls.__name__} needs what dataclasses.dataclass does")
    made.__dataclass_params__.frozen = True
    made.__init__ = _initializer(made, fields)
    made._compared = _getter([field.name for field in fields if field.compare])
    for name in _SHARED:
        if name not in own:
            setattr(made, name, _METHODS[name])
    return made


def _initializer(made: type, fields: tuple[dataclasses.Field[Any], ...]) -> Any:
    """``__init__``, with the values of defaults, and what makes them, in its namespace."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    parameters, lines = ["self"], []
    for field in fields:
        name, value = field.name, field.name
        if field.default is not MISSING:
            known[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        elif field.default_factory is not MISSING:
            known[f"_make_{name}"] = field.default_factory
            parameters.append(f"{name}=_MISSING")
            value = f"_make_{name}() if {name} is _MISSING else {name}"
        else:
            parameters.append(name)
        lines.append(f" _set(self, {name!r}, {value})")
    exec(f"def __init__({', '.join(parameters)}):\n" + ("\n".join(lines) or " pass"), known)  # noqa: S102 - of names alone
    made_init = known["__init__"]
    made_init.__qualname__ = f"{made.__qualname__}.__init__"
    return made_init


def _getter(names: list[str]) -> Any:
    """What takes the values of these fields from an object, as a tuple or, for one field, as its value."""
    return staticmethod(attrgetter(*names) if names else lambda _: ())


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _setattr(_self: Any, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(_self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_METHODS = dict(zip(_SHARED, (_repr, _eq, _hash, _setattr, _delattr, _getstate, _setstate), strict=True))
