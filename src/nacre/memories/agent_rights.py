"""What an agent may do to memories: propose its own, and wish for changes of the owner's.

What an agent stores is proposed: it is found when searched for, is told nobody unasked, and ends nothing. It is the
owner's to keep (``nacre review``) or to say. What the owner said, the owner ends, edits or bars; that an agent wants it
goes into the review queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nacre.home.change import Change
from nacre.home.home import Home
from nacre.platform.ids import to_ms
from nacre.text.passages import one_line, shorten
from nacre.values.memory import Expiry, Memory
from nacre.values.review import Action, Reason
from nacre.values.session import Speaker

MOST_IMPORTANT = 7
"""The highest importance of what an agent stores."""

_DETAIL_CHARACTERS = 300


def as_proposed(memory: Memory) -> Memory:
    """A memory as an agent may store it: importance 7 at most, never ``core``, never for every project."""
    return replace(
        memory, speaker=Speaker.AGENT, proposed=True, importance=min(MOST_IMPORTANT, memory.importance),
        expiry=Expiry.PERMANENT if memory.expiry is Expiry.CORE else memory.expiry,
        inbox=memory.inbox or memory.project is None, canonical_key=None,
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


def is_owners(memory: Memory) -> bool:
    """Whether a memory is the owner's word."""
    return memory.speaker is Speaker.OWNER


def wish(home: Home, memories: Sequence[Memory], what: str) -> None:
    """Note in the review queue what an agent wants of memories: ``retired``, ``kept out``, other words."""
    agent = home.actor.agent or ""
    detail = shorten(one_line(home.redactor.clean(f"{agent} wants it {what}")), _DETAIL_CHARACTERS)
    with home.database.transaction():
        for memory in memories:
            home.reviews.add(memory.id, Reason.WISH, detail, Action.REVIEW, to_ms(home.now()) or 0, once=True)


def keep(change: Change, memories: Sequence[Memory]) -> None:
    """The owner keeps what agents proposed: from now on it is told as what the owner accepts."""
    kept = [replace(one, proposed=False, updated=change.home.now()) for one in memories if one.proposed]
    if kept:
        change.put(kept)
