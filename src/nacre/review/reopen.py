"""Take back what was decided in review: what it wrote is undone, and it waits again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from nacre.errors import Conflict, NotFound
from nacre.history.operations import look, memories_of
from nacre.history.undo import not_undone, undo
from nacre.home.home import Home
from nacre.memories.store import get
from nacre.platform.ids import at_ms, to_ms
from nacre.review.candidates import kept_because
from nacre.review.conflicts import RESOLVE
from nacre.review.requests import ReviewUndoRequest
from nacre.values.candidate import HeldCandidate
from nacre.values.memory import Memory
from nacre.values.operation import REVIEW, Operation

_DECISIONS = frozenset({REVIEW, "retire", RESOLVE})


def reopen(home: Home, request: ReviewUndoRequest) -> Memory:
    """Take back the last decision about a candidate or a memory; returns what waits again.

    A candidate can be brought back for a day. The quality that a kept memory was raised to stays. Raises NotFound,
    Conflict where what was decided was changed since.
    """
    reference = request.reference.strip()
    found = home.candidates.settled(reference)
    if len(found) > 1:
        raise Conflict(f"{reference!r} means several candidates", hint="give more of the id")
    return _reopen_candidate(home, found[0]) if found else _reopen_review(home, reference)


def _reopen_candidate(home: Home, candidate: HeldCandidate) -> Memory:
    why = kept_because(candidate)
    is_undone = _undo_first(home, candidate.found, lambda operation: operation.why == why)
    kept = home.memories.find(candidate.memory.id)
    if not is_undone and kept and kept.is_active:
        raise Conflict(
            "what this decision wrote is not known any more, after a rebuild without git",
            hint=f"nacre retire {kept.id[-8:]} takes the memory out",
        )
    with home.database.transaction():
        home.candidates.unsettle(candidate.memory.id)
    return candidate.memory


def _reopen_review(home: Home, reference: str) -> Memory:
    memories = [get(home, each) for each in reference.split("+")]
    ids = {memory.id for memory in memories}
    settled = home.reviews.settled(memories[0].id)
    if settled is None and len(ids) == 1:
        raise NotFound(
            f"nothing was decided about {memories[0].subject!r} in review", hint="nacre undo takes back other changes"
        )
    since, at = settled or (0, 0)
    if len(ids) > 1:
        since = max(since, *(to_ms(memory.created) or 0 for memory in memories))
    is_undone = _undo_first(
        home, at_ms(since), lambda operation: (
            operation.action in _DECISIONS and bool(ids & set(memories_of(home, operation)))
        ),
    )  # fmt: skip
    if not is_undone and len(ids) > 1:
        raise NotFound(f"nothing was decided about {reference}", hint="nacre undo takes back other changes")
    with home.database.transaction():
        home.reviews.reopen(memories[0].id, at)
    return get(home, memories[0].id)


def _undo_first(home: Home, since: datetime, is_meant: Callable[[Operation], bool]) -> bool:
    """Undo the latest operation that is meant; returns whether there is one: the decision may have written nothing."""
    look(home)
    for operation in not_undone(home):
        if operation.at < since:
            break
        if is_meant(operation):
            undo(home, operation.id)
            return True
    return False
