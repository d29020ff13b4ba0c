"""What a field of a request admits, and its help, beside its type: ``Annotated[int, bounds("At most.", ge=1)]``.

It costs nothing to whoever only makes a request: annotations are texts, which msgspec evaluates when a request is
decoded or described. Loading msgspec takes 15 ms, which a hook does not have.
"""

from __future__ import annotations

from typing import Any


def bounds(description: str, **limits: Any) -> Any:
    """A ``msgspec.Meta``: the field's help, and its limits as ``ge``, ``le``, ``min_length``, ``max_length``."""
    from msgspec import Meta  # a hook makes requests of such classes, and has no 15 ms to spare

    return Meta(description=description, **limits)
