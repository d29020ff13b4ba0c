"""Requests to ask saved queries, and to keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class QueriesRequest(Request, frozen=True, kw_only=True):
    """The saved queries."""

    queries: Annotated[Path | None, Meta(description="The file of saved queries, if it is another one.")] = None


class EvaluateRequest(QueriesRequest, frozen=True, kw_only=True):
    """Ask saved queries of the memory."""

    limit: (
        Annotated[int, Meta(description="Memories per query; 10, or as many as the baseline.", ge=1, le=1000)] | None
    ) = None
    budget: Annotated[int, Meta(description="Tokens at a session's start.", ge=1)] = 2000
    compare: Annotated[bool, Meta(description="Tell what changed since the baseline that was kept.")] = False


class AddQueryRequest(QueriesRequest, frozen=True, kw_only=True):
    """Save a query."""

    question: Annotated[str, Meta(description="The question.", min_length=1)]
    query_id: Annotated[str | None, Meta(description="What to call it; by default made of its words.")] = None
    expects: Annotated[tuple[str, ...], Meta(description="Memories that should answer, by their ids or subjects.")] = ()


class RemoveQueryRequest(QueriesRequest, frozen=True, kw_only=True):
    """Forget a saved query."""

    query_id: Annotated[str, Meta(description="What it is called.")]
