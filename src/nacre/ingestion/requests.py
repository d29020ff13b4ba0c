"""Requests for reading transcripts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class IngestOptions(Request, frozen=True, kw_only=True):
    """What an ingest does: which paths, whether discovery adds to them, whether it learns and makes vectors.

    Without paths discovery always runs. Named paths are noted in the ledger, so that a rebuild finds them again; with
    ``globs`` the files that were found below them. A file that is named itself is read whatever it is called.
    """

    paths: Annotated[
        tuple[Path, ...], Meta(description="Files and folders; by default, all that discovery finds.")
    ] = ()
    globs: Annotated[
        tuple[str, ...],
        Meta(description="Only files whose path ends like this, e.g. '**/2026-*/*.jsonl' or '*.{md,txt}'."),
    ] = ()
    discover: Annotated[bool, Meta(description="Also all that discovery finds, where paths are named.")] = False
    remember_paths: Annotated[bool, Meta(description="Note the paths, so that a rebuild finds them again.")] = True
    extract: Annotated[bool, Meta(description="Learn memories from what was read.")] = True
    vectors: Annotated[bool, Meta(description="Make what the vector lane needs.")] = True
    force: Annotated[
        bool, Meta(description="Read files again from the start; known turns and memories stay as they are.")
    ] = False
    older: Annotated[
        bool, Meta(description="Also have the writer read sessions from before it was set, as far as it may take more.")
    ] = False
    from_archive: Annotated[
        bool, Meta(description="Also read what the archive has and no transcript tells any more.")
    ] = False
    reads: Annotated[bool, Meta(description="False: learn only from what was read before.")] = True
    vector_seconds: Annotated[float | None, Meta(description="Longest time for vectors; none: until all are made.")] = (
        None
    )
    puts_off: Annotated[bool, Meta(description="Leave alone what watch.changed_since puts off.")] = False
