"""Request fields that several operations have."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Limit = Annotated[int, Meta(description="Maximum number of items.", ge=0)]
Offset = Annotated[int, Meta(description="Items to skip.", ge=0)]
OnlyProject = Annotated[str | None, Meta(description="Only this project.")]
Reference = Annotated[
    str,
    Meta(
        description="A memory: its id, at least 4 characters of its start or end, or the subject."
    ),
]
References = Annotated[
    tuple[str, ...],
    Meta(
        description="Memories: their ids, at least 4 characters of their start or end, or subjects."
    ),
]
