"""What is answered to requests about the archive; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.archive import operations, prune
from nacre.archive.operations import Restored
from nacre.archive.requests import PruneRequest, RestoreSessionRequest
from nacre.home.home import Home
from nacre.storage.archive import Archived
from nacre.values.reports import OnProgress, Problem


def verify(home: Home, on_progress: OnProgress | None = None) -> list[Problem]:
    """Damaged files of the archive."""
    return operations.verify(home, on_progress)[1]


def plan_pruning(home: Home, request: PruneRequest) -> list[Archived]:
    """The transcripts that pruning would delete from the archive."""
    return prune.choose(home, request.keep_days, request.budget_mb)


def prune_archive(home: Home, request: PruneRequest) -> list[Archived]:
    """Delete from the archive what changed longest ago; returns what went."""
    chosen = plan_pruning(home, request)
    prune.prune(home, chosen)
    return chosen


def restore(home: Home, request: RestoreSessionRequest) -> Restored:
    """Write the transcript of a session again. Raises NotFound, Conflict."""
    return operations.restore(home, request.reference, request.folder)
