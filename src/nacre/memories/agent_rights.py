"""What an agent may do to memories: propose its own, and wish for changes of the owner's.

What an agent stores is proposed: it is found when searched for, is told nobody unasked, and ends nothing. It is the
owner's to keep (``nacre review``) or to say. What the owner said, the owner ends, edits or bars; that an agent wants it
goes into the review queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from nacre.dedup.placement import await_models
from nacre.home.change import Change, Run, part_of
from nacre.home.home import Home
from nacre.home.operations import subject_of
from nacre.platform.ids import to_ms
from nacre.text.passages import one_line, shorten
from nacre.values.memory import Expiry, Memory, Source
from nacre.values.review import Reason
from nacre.values.session import Speaker, Trust

MOST_IMPORTANT = 7
"""The highest importance of what an agent stores."""

MOST_IMPORTANT_QUOTED = 8
"""The highest of what it stores in the owner's words: that of what they asked to remember."""

_DETAIL_CHARACTERS = 300


def as_proposed(memory: Memory) -> Memory:
    """A memory as an agent may store it: importance 7 at most, never ``core``, never for every project."""
    return replace(
        _without_weight(memory, MOST_IMPORTANT), speaker=Speaker.AGENT, proposed=True,
        inbox=memory.inbox or memory.project is None,
    )  # fmt: skip


def as_quoted(memory: Memory, source: Source, at: datetime) -> Memory:
    """A memory as an agent may store it in the owner's words, said in a session: how much it weighs, beside what it
    stands and when it is told, they did not say.
    """
    return replace(
        _without_weight(memory, MOST_IMPORTANT_QUOTED), speaker=Speaker.OWNER, source=source,
        created=min(at, memory.created), updated=min(at, memory.updated),
    )  # fmt: skip


def _without_weight(memory: Memory, most: int) -> Memory:
    return replace(
        memory, expiry=Expiry.PERMANENT if memory.expiry is Expiry.CORE else memory.expiry,
        importance=min(most, memory.importance), canonical_key=None, evergreen=False, triggers=(),
    )  # fmt: skip


def as_agent_may(memory: Memory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of an agent to a memory of its own: with other words, or more weight, it is a proposal again."""
    if changes.keys() <= {"add_tags", "tags"}:
        return dict(changes)
    wanted = {
        name: value for name, value in changes.items() if name != "add_tags" and (name, value) != ("project", None)
    }
    after = as_proposed(replace(memory, **wanted))
    tags = {"add_tags": changes["add_tags"]} if "add_tags" in changes else {}
    return {**{name: getattr(after, name) for name in wanted}, **tags, "speaker": after.speaker, "proposed": True}


def distrust(home: Home, run: Run | None, stored: Sequence[tuple[str, str]]) -> None:
    """Demote what agents stored out of text from outside: by session, and the end of the memory's id."""
    found = [
        replace(memory, trust=Trust.UNTRUSTED, proposed=True, speaker=Speaker.AGENT)
        for session, end in stored
        for memory in home.memories.find_like(end)
        if memory.trust is Trust.TRUSTED and memory.source.session in (None, session)
    ]
    if found:
        why = "an agent stored it out of text from outside"
        with part_of(home, run, "distrust", subject=subject_of(found), why=why) as change:
            change.put(found)


def is_owners(memory: Memory) -> bool:
    """Whether a memory is the owner's word."""
    return memory.speaker is Speaker.OWNER


def wish(home: Home, memories: Sequence[Memory], what: str) -> None:
    """Note in the review queue what an agent wants of memories: ``retired``, ``kept out``, other words."""
    agent = home.actor.agent or ""
    detail = shorten(one_line(home.redactor.clean(f"{agent} wants it {what}")), _DETAIL_CHARACTERS)
    with home.database.transaction():
        for memory in memories:
            home.reviews.add(memory.id, Reason.WISH, detail, to_ms(home.now()) or 0, once=True)


def keep(change: Change, memories: Sequence[Memory]) -> None:
    """The owner keeps what agents proposed, or what they nodded to: from now on it is told as what the owner accepts,
    and counts as their word.
    """
    home = change.home
    for one in (one for one in memories if one.proposed or one.as_worded() != one):
        kept = replace(one.as_worded(), proposed=False)
        change.put([kept])
        home.comparisons.wait(kept.id)
        await_models(home, kept, one)
