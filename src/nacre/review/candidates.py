"""Candidates, for a person: what waits, keep it as a memory, drop it for good."""

from __future__ import annotations

from dataclasses import replace

from nacre.dedup.placement import place
from nacre.errors import Conflict, InvalidInput, NotFound
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.redaction import redacted
from nacre.memories.lineage import hold_again
from nacre.memories.scan import catch_up
from nacre.platform.ids import to_ms
from nacre.review.merge import merge_into, target_of
from nacre.review.requests import CandidatesRequest, KeepCandidateRequest
from nacre.text.passages import count, shorten
from nacre.values.candidate import HeldCandidate, Why
from nacre.values.memory import Memory
from nacre.values.operation import DROP
from nacre.values.reports import StoreOutcome
from nacre.values.session import Trust
from nacre.views import CandidatePage

_SUBJECT_CHARACTERS = 60


def listed(home: Home, request: CandidatesRequest) -> CandidatePage:
    """The candidates that wait, the likeliest first."""
    waiting = home.candidates.waiting()
    if request.project:
        waiting = [one for one in waiting if one.memory.project == request.project]
    shown = waiting[request.offset :][: request.limit or None]
    return CandidatePage(tuple(shown), len(waiting))


def kept_because(candidate: HeldCandidate) -> str:
    """Why an operation wrote what a candidate became."""
    return f"candidate {candidate.memory.id[-8:]} kept in review"


def keep(home: Home, request: KeepCandidateRequest) -> StoreOutcome:
    """Make a candidate a memory, in its own words or in others, or a part of another memory.

    The owner answers for it from now on. Raises NotFound, Conflict, InvalidInput for other words without any.
    """
    candidate = find(home, request.reference)
    if request.into is not None:
        return _merged(home, candidate, request.into, request.content)
    if candidate.why is Why.UNUSED and request.content is None:
        return _brought_back(home, candidate)
    memory = redacted(home.redactor, _worded(candidate.memory, request.content))
    taken = home.ids() if candidate.why is Why.UNUSED else memory.id  # its old one is a retired memory's
    kept = replace(memory.as_worded(), id=taken, trust=Trust.TRUSTED, proposed=False, updated=home.now())
    with home.change("keep", subject=kept.subject, why=kept_because(candidate)) as change, change.transaction():
        outcome = place(change, kept, by_hand=True)
        _settle(change, candidate.memory)
    return outcome


def _merged(home: Home, candidate: HeldCandidate, into: str, content: str | None) -> StoreOutcome:
    """Make a candidate a part of a memory that is there."""
    with home.change("merge", why=kept_because(candidate)) as change:
        catch_up(home)
        target = target_of(home, into, candidate.memory)
        change.describe(subject=target.subject)
        with change.transaction():
            merge_into(change, target, redacted(home.redactor, candidate.memory), content)
            _settle(change, candidate.memory)
    return StoreOutcome("updated", target.id)


def _brought_back(home: Home, candidate: HeldCandidate) -> StoreOutcome:
    """Make what was a memory once one again."""
    with home.change("unretire", why=kept_because(candidate)) as change:
        back = hold_again(change, candidate.memory.id)
        with change.transaction():
            _settle(change, candidate.memory)
    return StoreOutcome("stored", back.id)


def _settle(change: Change, memory: Memory) -> None:
    now = to_ms(change.at) or 0
    change.home.candidates.settle(memory.id, now)
    change.home.candidates.blank(now)


def drop(home: Home, references: tuple[str, ...]) -> list[Memory]:
    """Do away with candidates: what they say is not proposed again. Raises NotFound, Conflict.

    Journal and history hold no word of them.
    """
    found = [find(home, reference).memory for reference in references]
    with home.change(DROP, subject=count(len(found), "candidate")) as change, change.transaction():
        change.append([change.entry(DROP, candidates=sorted(memory.id for memory in found))])
        for memory in found:
            _settle(change, memory)
    return found


def find(home: Home, reference: str) -> HeldCandidate:
    """A candidate by the beginning or the end of its id. Raises NotFound, Conflict."""
    found = home.candidates.find(reference.strip())
    if not found:
        raise NotFound(f"no candidate is called {reference!r}", hint="nacre review candidates lists what waits")
    if len(found) > 1:
        raise Conflict(f"{reference!r} means several candidates", hint="give more of the id")
    return found[0]


def _worded(memory: Memory, content: str | None) -> Memory:
    if content is None:
        return memory
    if not content.strip():
        raise InvalidInput("a memory needs content", hint="nacre review drop does away with a candidate")
    subject = shorten(content.strip().rstrip(".。"), _SUBJECT_CHARACTERS)
    return replace(memory, content=content.strip(), subject=subject)
