"""Memories that may say the same, in small groups: what a writer is to look at together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from nacre.dream.repetitions import is_told_alike
from nacre.embed.calibration import calibration_of
from nacre.home.home import Home
from nacre.memories.quality import is_protected
from nacre.platform.ids import content_hash
from nacre.values.memory import Expiry, Kind, Memory

MERGED = "merged"
"""The front-matter key of a memory whose words a writer made of several: who, when, of which, and why."""

MOST_TOGETHER = 8
"""Memories of a cluster (seed facts 1.4)."""

_MOST_SEEN = 20_000
_RESTS = timedelta(days=7)
"""So long nobody looks again at what was merged (seed facts 1.4)."""

_LONGEST = 1_500
_CLAIMS = frozenset({Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.LESSON, Kind.RELATIONSHIP})
_ASKED = 500

Cluster = tuple[Memory, ...]


def clusters(home: Home, memories: Sequence[Memory]) -> list[Cluster]:
    """Groups of vouched memories near in meaning, the nearest first: of one place, meant for as long, of kinds that may
    say the same.

    Every member is as near to every other as makes a model worth asking (``Calibration.ask_more``): with a chain of
    neighbours, its ends say different things (the seed's diameter floor). Empty without vectors.
    """
    protected = home.settings.texts("forgetting.protect")
    eligible = [one for one in memories if _is_eligible(one, home.now(), protected)]
    by_row = _by_row(home, eligible[-_MOST_SEEN:])
    limits = calibration_of(home.vectors.model(), home.vectors.seen())
    pairs = home.vectors.near_pairs(list(by_row), least=limits.ask_more)
    near = [pair for pair in pairs if may_be_one(by_row[pair[0]], by_row[pair[1]])]
    return [tuple(by_row[row] for row in sorted(group)) for group in _linked_completely(near)]


def _is_eligible(memory: Memory, now: datetime, protected: Sequence[str]) -> bool:
    is_kept = memory.expiry is Expiry.CORE or is_protected(memory, protected)
    return memory.is_vouched and not is_kept and len(memory.content) <= _LONGEST and not _rests(memory, now)


def _by_row(home: Home, memories: Sequence[Memory]) -> dict[int, Memory]:
    found: dict[int, Memory] = {}
    for start in range(0, len(memories), _ASKED):
        found |= home.memories.rows_of([one.id for one in memories[start : start + _ASKED]])
    return found


def may_be_one(one: Memory, other: Memory) -> bool:
    """Whether nothing but their words can tell two memories apart."""
    of_one_kind = one.kind is other.kind or {one.kind, other.kind} <= _CLAIMS
    return of_one_kind and one.shares_place(other) and is_told_alike(one, other)


def _rests(memory: Memory, now: datetime) -> bool:
    noted = memory.extra.get(MERGED)
    day = noted.get("at") if isinstance(noted, dict) else None
    try:
        return isinstance(day, str) and now - datetime.fromisoformat(day) < _RESTS
    except (TypeError, ValueError):
        return False


def _linked_completely(pairs: Sequence[tuple[int, int, float]]) -> Iterator[list[int]]:
    """Groups of two and more in which every pair is among ``pairs``, joined in their order."""
    joined = {frozenset(pair[:2]) for pair in pairs}
    group_of: dict[int, list[int]] = {}
    for one, other, _ in pairs:
        first, second = group_of.setdefault(one, [one]), group_of.setdefault(other, [other])
        if first is second or len(first) + len(second) > MOST_TOGETHER:
            continue
        if all(frozenset((mine, theirs)) in joined for mine in first for theirs in second):
            first += second
            group_of |= dict.fromkeys(second, first)
    seen: defaultdict[int, int] = defaultdict(int)
    for one, _, _ in pairs:
        group = group_of[one]
        seen[id(group)] += 1
        if seen[id(group)] == 1 and len(group) > 1:
            yield group


def fingerprint(cluster: Sequence[Memory]) -> str:
    """What tells a cluster from any other, and from itself with other words."""
    parts = sorted(f"{one.id}\0{one.kind}\0{one.content}" for one in cluster)
    return content_hash("\0".join(parts)).hex()[:16]
