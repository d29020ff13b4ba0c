"""Once after an upgrade: memories that rules of earlier versions wrote, and that nobody used, become candidates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from nacre.dedup.supersession import released
from nacre.extraction.extractor import extract
from nacre.home.home import Home
from nacre.memories.usage import fold_usage
from nacre.transcripts.trust import shared
from nacre.values.candidate import HeldCandidate, Why
from nacre.values.memory import SET_ASIDE, Confidence, Memory, Retirement
from nacre.values.operation import EDIT

_DUE = "older_rules"
_SAME = 0.5
"""The share of its words that a memory has in common with what a rule of today says of the same turns."""

_SCORE = 0.3


def set_aside(home: Home) -> int:
    """Make candidates of them, as one operation that ``nacre undo`` takes back; returns how many.

    What was recalled, edited or confirmed stays a memory, and so does what the owner said in so many words. It happens
    once in a home, the first time that it learns after the upgrade; elsewhere it costs a look.
    """
    if home.usage.value(_DUE) != "due":
        return 0
    fold_usage(home)
    unused: list[Memory] = []
    going = list(_not_explicit(home, _unused(home, home.memories.in_any_state(sorted(home.memories.all_ids())))))
    while going:  # what one of them had superseded would hold again, and is one of them itself
        unused += going
        ids = {one.id for one in unused}
        going = [one for one in _not_explicit(home, _unused(home, released(home, unused))) if one.id not in ids]
    now = home.now()
    with home.change("set aside", why=SET_ASIDE) as change, change.transaction():
        gone = [replace(one, retired=Retirement(now, SET_ASIDE)) for one in unused]
        entries = [change.entry("retire", memory=one.id, reason=SET_ASIDE) for one in unused]
        if gone:
            change.put([*gone, *released(home, gone)], entries)
        home.candidates.add(HeldCandidate(one, Why.UNUSED, None, _SCORE, now) for one in unused)
        home.usage.set_value(_DUE, "done")
    return len(unused)


def _unused(home: Home, known: Iterable[Memory]) -> Iterator[Memory]:
    """Active memories that rules wrote, and nobody recalled, edited, confirmed or kept in review."""
    found = [one for one in known if one.confidence is Confidence.INFERRED and one.is_active]
    used = home.usage.of([one.id for one in found])
    for one in found:
        was_used = one.id in used and (used[one.id].recall_count or used[one.id].access_count)
        was_kept = home.reviews.settled(one.id) is not None
        was_touched = one.confirmed or one.updated > one.created or one.proposed
        if not (was_used or was_kept or was_touched or home.journal.operations(memory=one.id, action=EDIT, limit=1)):
            yield one


def _not_explicit(home: Home, memories: Iterable[Memory]) -> Iterator[Memory]:
    """Those of which rules of today would make no memory. Where a session is not there any more, nobody can tell."""
    by_session: defaultdict[str, list[Memory]] = defaultdict(list)
    for one in memories:
        by_session[one.source.session or ""].append(one)
    for session, told in by_session.items():
        found = next(iter(home.sessions.find(session)), None) if session else None
        if found is None:
            continue
        with suppress(KeyError):  # forgotten meanwhile
            turns = [item.turn for item in home.sessions.turns_of(found.row)]
            explicit = [one.content for one in extract(found.session, turns) if not one.held]
            yield from (one for one in told if not any(_is_same(one.content, text) for text in explicit))


def _is_same(text: str, other: str) -> bool:
    return max(shared(text, other), shared(other, text)) >= _SAME
