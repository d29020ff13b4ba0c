"""Requests about code."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.graph.requests import Limit
from nacre.platform.request import Request

Project = Annotated[str | None, Meta(description="Of one project only.")]


class IngestCodeRequest(Request, frozen=True, kw_only=True):
    """Read the code of a repository."""

    folder: Annotated[str, Meta(description="A folder of the repository; all of it is read.", min_length=1)]
    project: Annotated[str | None, Meta(description="The project that it belongs to; else that of the folder.")] = None
    force: Annotated[bool, Meta(description="Read files again that did not change.")] = False
    max_files: Annotated[int, Meta(description="Files at most.", ge=1, le=200_000)] = 20_000
    seconds: Annotated[float, Meta(description="Longest time, in seconds; the next call goes on.", gt=0)] = 600.0


class ForgetCodeRequest(Request, frozen=True, kw_only=True):
    """Forget the code of a project."""

    project: Annotated[str, Meta(description="The project.", min_length=1)]


class CodeRequest(Request, frozen=True, kw_only=True):
    """What a symbol or a file is connected with."""

    name: Annotated[
        str,
        Meta(
            description="A symbol as it is written (pay, Order.pay, src/orders.py#Order.pay), or a file.",
            min_length=1, max_length=500,
        ),
    ]  # fmt: skip
    project: Project = None
    near: Annotated[str | None, Meta(description="Of several projects with such a name, this one.")] = None
    limit: Limit = 50


class CallersRequest(CodeRequest, frozen=True, kw_only=True):
    """Who calls a symbol."""

    depth: Annotated[int, Meta(description="Callers of callers, so many steps.", ge=1, le=10)] = 1


class ImpactRequest(CodeRequest, frozen=True, kw_only=True):
    """What a change to a file, or to a symbol of it, touches."""

    symbol: Annotated[str, Meta(description="A symbol of the file.", max_length=500)] | None = None
    depth: Annotated[int, Meta(description="Steps from caller to caller.", ge=1, le=10)] = 3


class StaleRequest(Request, frozen=True, kw_only=True):
    """Memories that may be out of date, as files they name were changed since."""

    project: Project = None
    limit: Limit = 20
    days: Annotated[int, Meta(description="Changes of the last days count.", ge=1, le=3650)] = 30
    least_sessions: Annotated[int, Meta(description="Sessions that changed the files, at least.", ge=1)] = 1
    folder: Annotated[
        str | None, Meta(description="The working tree to compare with, of memories whose project's code was not read.")
    ] = None
    memory: Annotated[str | None, Meta(description="One memory, by its id or subject.")] = None
