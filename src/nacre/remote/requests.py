"""Requests to keep a home in step with a space on a server, and what machines ask of that server."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request
from nacre.remote.values import PushedDocument, PushedSession

MOST_NAMES = 20_000

_Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Line = Annotated[str, Meta(max_length=1_000_000)]


class AddRemoteRequest(Request, frozen=True, kw_only=True):
    """Keep this home in step with a space on a server."""

    url: Annotated[str, Meta(description="Where nacre is served: https://…, or http:// on this machine.")]
    key: Annotated[str, Meta(description="A key to the space, as nacre keys create shows it.", max_length=500)] = ""
    private: Annotated[bool, Meta(description="Private memories and sessions go there, too.")] = True


class RemoteChangesRequest(Request, frozen=True, kw_only=True):
    """Ask a server what became of its documents and ledger."""

    since: Annotated[_Number, Meta(description="The version up to which they are known.")] = 0
    ledger_since: Annotated[_Number, Meta(description="The line up to which the ledger is known.")] = 0


class RemoteVersionsRequest(Request, frozen=True, kw_only=True):
    """Ask a server what documents held when they went up to a version."""

    at: Annotated[_Number, Meta(description="The version.")]
    names: Annotated[list[str], Meta(description="Hashes of their paths.", max_length=MOST_NAMES)]


class RemotePushRequest(Request, frozen=True, kw_only=True):
    """Give a server documents and lines of the ledger: all of them are taken, or none."""

    documents: Annotated[list[PushedDocument], Meta(description="What documents are to hold.")]
    ledger: Annotated[list[_Line], Meta(description="Lines that the server may not have.")]


class RemoteTurnsRequest(Request, frozen=True, kw_only=True):
    """Give a server turns of sessions; what it has already stays as it is."""

    sessions: Annotated[list[PushedSession], Meta(description="Sessions, each with turns in their order.")]
