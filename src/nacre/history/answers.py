"""What is answered to requests about what was done; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.history import operations
from nacre.history import undo as undoing
from nacre.history.commit import Committed, commit_operations
from nacre.history.requests import DiffRequest, LogRequest, UndoRequest
from nacre.history.undo import Undoing
from nacre.home.home import Home
from nacre.memories.scan import scan
from nacre.views import Listed, OperationDiff


def log(home: Home, request: LogRequest) -> list[Listed]:
    """Operations, the newest first. Raises NotFound, Conflict."""
    return operations.log(
        home, reference=request.reference, project=request.project, action=request.action,
        limit=max(0, request.limit), offset=max(0, request.offset),
    )  # fmt: skip


def diff(home: Home, request: DiffRequest) -> OperationDiff:
    """What an operation changed. Raises NotFound, Conflict."""
    operation = operations.operation_meant(home, request.reference)
    return OperationDiff(operation, tuple(operations.differences(operations.changes_of(home, operation))))


def plan_undo(home: Home, request: UndoRequest) -> Undoing:
    """What undoing an operation would change. Raises NotFound, Conflict."""
    return undoing.plan_undo(home, request.operation, force=request.force)


def undo(home: Home, request: UndoRequest) -> Undoing:
    """Bring back what an operation changed. Raises NotFound, Conflict."""
    return undoing.undo(home, request.operation, force=request.force)


def commit(home: Home) -> Committed:
    """Put what was done into the vault's git history. Raises GitUnavailable, RepositoryUnusable, StoreBusy."""
    scan(home)
    return commit_operations(home)
