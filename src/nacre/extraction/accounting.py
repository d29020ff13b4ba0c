"""Which statements of a session its memories account for, and which a writer passed over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nacre.storage.memories import Known
from nacre.text.passages import words
from nacre.values.candidate import Candidate
from nacre.values.memory import Memory

_COMPARED = 2_000


def accounted_for(stated: Sequence[Memory], known: Sequence[Known]) -> set[str]:
    """The ids of those statements of a session that its memories account for.

    A memory accounts for one statement of its kind in its turns: the likest, so that the text of the memory need not
    be what was said. What is left over was not learned yet.
    """
    pairs = sorted(
        (-_likeness(one.content, other.content), at, by)
        for at, one in enumerate(stated)
        for by, other in enumerate(known)
        if one.kind is other.kind and other.turns & set(one.source.turns)
    )
    found: dict[int, int] = {}
    for _, at, by in pairs:
        if at not in found and by not in found.values():
            found[at] = by
    return {stated[at].id for at in found}


def _likeness(text: str, other: str) -> float:
    """The share of the words of two texts that both have, 0 to 1."""
    some, others = set(words(text[:_COMPARED])), set(words(other[:_COMPARED]))
    return len(some & others) / max(1, len(some | others))


def passed_over(found: Sequence[Candidate], written: Sequence[Candidate]) -> list[Candidate]:
    """What the owner said plainly in turns from which a writer wrote less than was said plainly there."""
    plain = [one for one in found if not one.held]
    said = Counter(turn for one in plain for turn in one.turns)
    told = Counter(turn for one in written for turn in one.turns)
    return [one for one in plain if any(told[turn] < said[turn] for turn in one.turns)]
