"""Candidates, for a person: what waits, keep it as a memory, drop it for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.dedup.placement import place
from nacre.errors import Conflict, DepartedError, InvalidInput
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.leaning import leans
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.redaction import redacted
from nacre.memories.scan import catch_up
from nacre.platform.ids import to_ms
from nacre.review.departures import find_departure
from nacre.review.merge import merge_into, target_of
from nacre.review.requests import ReviewKeepRequest
from nacre.text.passages import count, shorten
from nacre.values.candidate import HeldCandidate
from nacre.values.memory import Confirmation, Memory
from nacre.values.operation import DROP
from nacre.values.reports import StoreOutcome
from nacre.values.session import Trust

_SUBJECT_CHARACTERS = 60
_LATER_CHARACTERS = 300


def kept_because(candidate: HeldCandidate) -> str:
    """Why an operation wrote what a candidate became."""
    return f"candidate {candidate.memory.id[-8:]} kept in review"


def keep(home: Home, candidate: HeldCandidate, request: ReviewKeepRequest) -> StoreOutcome:
    """Make a candidate a memory, in its own words or in others, or a part of another memory.

    The owner answers for it from now on. Raises NotFound, Conflict, DepartedError unless it is kept ``anyway``, and
    InvalidInput for empty words, or words that depend on what they do not name.
    """
    if request.into is not None:
        return _merged(home, candidate, request.into, request.content)
    memory = redacted(home.redactor, _worded(candidate.memory, request.content))
    if request.content is None and leans(memory.content, language_of(memory.content)):
        raise InvalidInput(
            f"“{memory.content}” depends on something that it does not name",
            hint="name it: nacre review keep ID --content WORDS",
        )
    kept = replace(memory.as_worded(), trust=Trust.TRUSTED, proposed=False)
    if request.anyway:
        kept = replace(kept, confirmed=(*kept.confirmed, Confirmation(home.now())))
    elif later := find_departure(home, kept):
        raise DepartedError(
            f"later, on {later.at.astimezone():%Y-%m-%d}, you said: “{shorten(later.text, _LATER_CHARACTERS)}”",
            hint="drop the candidate, or keep it with --anyway",
        )
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


def _settle(change: Change, memory: Memory) -> None:
    now = to_ms(change.at) or 0
    change.home.candidates.settle(memory.id, now)
    change.home.candidates.blank(now)


def drop(home: Home, candidates: Sequence[HeldCandidate]) -> list[Memory]:
    """Do away with candidates: what they say is not proposed again. Journal and history hold no word of them."""
    found = [candidate.memory for candidate in candidates]
    with home.change(DROP, subject=count(len(found), "candidate")) as change, change.transaction():
        change.append([change.entry(DROP, candidates=sorted(memory.id for memory in found))])
        for memory in found:
            _settle(change, memory)
    return found


def find(home: Home, reference: str) -> HeldCandidate | None:
    """A candidate by the beginning or the end of its id. Raises Conflict."""
    found = home.candidates.find(reference.strip())
    if len(found) > 1:
        raise Conflict(f"{reference!r} means several candidates", hint="give more of the id")
    return found[0] if found else None


def _worded(memory: Memory, content: str | None) -> Memory:
    if content is None:
        return memory
    if not content.strip():
        raise InvalidInput("a memory needs content", hint="nacre review drop does away with a candidate")
    subject = shorten(content.strip().rstrip(".。"), _SUBJECT_CHARACTERS)
    return replace(memory, content=content.strip(), subject=subject)
