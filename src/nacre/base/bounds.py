"""What a field of a request admits, and its help, beside its type: ``Annotated[int, bounds("At most.", ge=1)]``.

It costs nothing to whoever only makes a request: annotations are texts, which msgspec evaluates when a request is
decoded or described. Loading msgspec takes 15 ms, which a hook does not have.
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
    """A ``msgspec.Meta``: the field's help, and its limits as ``ge``, ``le``, ``min_length``, ``max_length``."""

    return msgspec.Meta(description=description, **limits)


def bounds_of(request: type, name: str, description: str = "", **limits: Any) -> Any:
    """The bounds and the help of a field of a request, for a face that has the same field; with its own on top."""

    found = _meta(annotations_of(request)[name]) or msgspec.Meta()
    known = {word: value for word in _WORDS if (value := getattr(found, word)) is not None}
    return msgspec.Meta(**known | ({"description": description} if description else {}) | limits)


@cache
def annotations_of(request: type) -> dict[str, Any]:
    """The types of a request's fields, evaluated once: each costs as much as making its bounds."""
    return get_type_hints(request, include_extras=True)


def _meta(kind: Any) -> Any:
    """The ``Meta`` of an annotated type, also where it is one type of a union."""
    own = next(
        (one for one in getattr(kind, "__metadata__", ()) if type(one).__name__ == "Meta"), None
    )
    return own or next((meta for one in get_args(kind) if (meta := _meta(one)) is not None), None)


_WORDS = ("gt", "ge", "lt", "le", "pattern", "min_length", "max_length", "description", "examples")
