"""Limits and help text for request fields: ``Annotated[int, bounds("Maximum.", ge=1)]``.

msgspec evaluates these annotations only when it decodes or describes a request. Hooks never load
msgspec, because that takes 15 ms.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from nacre.base.lazy import Module

if TYPE_CHECKING:
    import msgspec
else:
    msgspec = Module("msgspec")


def bounds(description: str, **limits: Any) -> Any:
    """Return a ``msgspec.Meta`` with help text and limits such as ``ge`` and ``max_length``."""

    return msgspec.Meta(description=description, **limits)


def bounds_of(request: type, name: str, description: str = "", **limits: Any) -> Any:
    """Return the help text and limits of a request's field. Arguments override them."""

    declared = _meta(annotations_of(request)[name]) or msgspec.Meta()
    merged = {
        word: value for word in _LIMIT_NAMES if (value := getattr(declared, word)) is not None
    }
    return msgspec.Meta(**merged | ({"description": description} if description else {}) | limits)


@cache
def annotations_of(request: type) -> dict[str, Any]:
    """Return the type hints of a request's fields, which are slow to evaluate."""
    return get_type_hints(request, include_extras=True)


def _meta(kind: Any) -> Any:
    own = next(
        (item for item in getattr(kind, "__metadata__", ()) if type(item).__name__ == "Meta"), None
    )
    return own or next((meta for item in get_args(kind) if (meta := _meta(item)) is not None), None)


_LIMIT_NAMES = (
    "gt",
    "ge",
    "lt",
    "le",
    "pattern",
    "min_length",
    "max_length",
    "description",
    "examples",
)
