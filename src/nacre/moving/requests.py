"""Requests for moves."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request

Address = Annotated[
    str,
    Meta(
        description="The server: postgresql://login@server:5432/database.",
        pattern="^postgres(ql)?://",
        max_length=2_000,
    ),
]


class MoveRequest(Request, frozen=True, kw_only=True):
    """Carry the memory of this home to a server, or from one; exactly one of ``to`` and ``source`` is set."""

    to: Address | None = None
    source: Address | None = None
    tenant: Annotated[str | None, Meta(description="Whose rows on the server; by default storage.tenant.")] = None
    questions: Annotated[int, Meta(description="Questions that both have to answer alike.", ge=0, le=10_000)] = 200
