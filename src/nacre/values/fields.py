"""Request fields that several operations share.

Modules used by hooks must import this module, not names from it, because these load msgspec.
"""

from __future__ import annotations

from typing import Annotated, Literal

from nacre.base.bounds import bounds

Limit = Annotated[int, bounds("Maximum number of items.", ge=0)]
Offset = Annotated[int, bounds("Number of items to skip.", ge=0)]
OnlyProject = Annotated[str | None, bounds("Only this project.")]
Reference = Annotated[
    str,
    bounds("A memory: its id, at least 4 characters of its start or end, or the subject."),
]
References = Annotated[
    tuple[str, ...],
    bounds("Memories: their ids, at least 4 characters of their start or end, or subjects."),
]
PageName = Annotated[Literal["identity", "profile", "project"], bounds("The page.")]
PageProject = Annotated[str | None, bounds("The project whose page it is.")]
