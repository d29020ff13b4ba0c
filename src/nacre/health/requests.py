"""Requests about the state of a home, its database, and traces."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request
from nacre.values.trace import TraceKind


class TracesRequest(Request, frozen=True, kw_only=True):
    """Traces, the latest first."""

    kind: Annotated[TraceKind | None, Meta(description="Only traces of this kind.")] = None
    since: Annotated[datetime | None, Meta(description="From then on.")] = None
    limit: Annotated[int, Meta(description="Traces at most.", ge=0)] = 20


class TraceRequest(Request, frozen=True, kw_only=True):
    """One trace."""

    reference: Annotated[str, Meta(description="Its id, or the beginning or end of it.")]


class DoctorRequest(Request, frozen=True, kw_only=True):
    """Check the installation and the home."""

    repair: Annotated[bool, Meta(description="Mend what can be mended without a loss.")] = False


class ProveRequest(Request, frozen=True, kw_only=True):
    """Prove every part of a home against what it was made from."""

    everything: Annotated[bool, Meta(description="Read all transcripts again, not a sample.")] = False
    repair: Annotated[bool, Meta(description="Mend what can be mended without a loss.")] = False


class RebuildRequest(Request, frozen=True, kw_only=True):
    """Make the database anew."""

    vectors: Annotated[bool, Meta(description="Make the vectors, too.")] = True


class TargetRequest(Request, frozen=True, kw_only=True):
    """Where a copy goes."""

    target: Annotated[
        Path | None, Meta(description="The file to write; by default, beside the database, named after the time.")
    ] = None


class VerifyRequest(Request, frozen=True, kw_only=True):
    """A backup to prove."""

    backup: Annotated[Path, Meta(description="The backup's file.")]
