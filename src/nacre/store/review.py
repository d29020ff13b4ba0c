"""Candidates, the review queue and comparisons of memories."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from nacre.base import json as json_values
from nacre.base.frozen import frozen
from nacre.base.ids import from_ms
from nacre.base.text import STOP_WORDS, words
from nacre.store.memories import memory_hash
from nacre.store.schema import Clause, Indexed, Store, in_transaction, runs
from nacre.values.memory import HeldCandidate, Memory, Why
from nacre.values.review import QueuedReview, Reason

SECONDS_TO_UNDO = 24 * 3600
"""Time in seconds for which a candidate's text is kept after acceptance or rejection."""


class Candidates(Store):
    """Proposed memories, which are not in the vault yet."""

    def add(self, candidates: Iterable[HeldCandidate]) -> int:
        """Add candidates whose text is not pending or rejected yet, and return how many were added."""
        rows = [
            {
                "id": candidate.memory.id,
                "hash": memory_hash(candidate.memory.content, candidate.memory.project),
                "session": candidate.memory.source.session,
                "why": candidate.why.value,
                "detail": candidate.detail,
                "score": candidate.score,
                "found": candidate.found,
                "memory": json_values.encode(candidate.memory).decode(),
            }
            for candidate in candidates
        ]
        return sum(self._db.run("insert_candidate", **row) for row in rows)

    def pending(self) -> list[HeldCandidate]:
        """Return the pending candidates, likeliest first."""
        return self._records(HeldCandidate, "list_candidates")

    def find(self, reference: str) -> list[HeldCandidate]:
        """Find up to three candidates whose id starts or ends with ``reference``."""
        return self._records(HeldCandidate, "find_candidates", reference=reference)

    def with_words(self) -> list[HeldCandidate]:
        """Return all candidates, pending or settled, that still have their text."""
        return self._records(HeldCandidate, "list_worded_candidates")

    @runs("settle_candidate")
    def settle(self, candidate: str, at: int) -> None:
        """Mark a candidate as accepted or rejected, so that it is not offered again.

        ``at`` is in epoch milliseconds. The candidate keeps its text until :meth:`blank` is called.
        """

    def blank(self, now: int) -> None:
        """Delete the text of candidates that were settled over :data:`SECONDS_TO_UNDO` ago."""
        self._db.run("blank_settled_candidates", before=now - SECONDS_TO_UNDO * 1000)

    def settled(self, reference: str) -> list[HeldCandidate]:
        """Find up to three settled candidates whose id starts or ends with ``reference``.

        Only candidates that still have their text are found.
        """
        return self._records(HeldCandidate, "find_settled_candidates", reference=reference)

    def settled_at(self, at: int) -> list[HeldCandidate]:
        """Return candidates that were settled at a time (epoch milliseconds) and still have their
        text.
        """
        return self._records(HeldCandidate, "list_candidates_settled_at", at=at)

    @runs("unsettle_candidate")
    def unsettle(self, candidate: str) -> None:
        """Mark a candidate as pending again."""

    def delete(self, candidate_ids: Iterable[str]) -> None:
        self._db.run_each("delete_candidate", "id", candidate_ids)

    def settle_session(self, session: str) -> None:
        """Delete candidates that rules found in a session, because a model has now read it."""
        self._db.run("delete_candidates_of_session", session=session, why=Why.FOUND.value)

    def expire(self, before: int) -> int:
        """Delete candidates found before a time (epoch milliseconds), and return their number."""
        return self._db.run("delete_old_candidates", before=before)


# -- Review queue -------------------------------------------------------------


@frozen
class Doubt:
    """A memory that is probably outdated, the newer one that contradicts it, and the reason."""

    older: str
    newer: str
    reason: str | None


class Reviews(Store):
    """The queue of memories that the user should review."""

    @in_transaction
    def add(self, memory_id: str, reason: Reason, detail: str, at: int, *, once: bool) -> None:
        """Queue a memory for review, unless a review for the same reason is pending.

        With ``once``, a settled review with the same detail counts too.
        """
        about = {"memory": memory_id, "reason": reason.value, "detail": detail}
        if not self._db.one("find_review", **about, once=once):
            self._db.run("insert_review", **about, at=at, shown_by="[]")

    @in_transaction
    def doubt(self, memory_id: str, detail: str, at: int, shown_by: Iterable[str]) -> bool:
        """Queue a review of a possibly outdated memory, or update its pending one.

        ``shown_by`` lists the sessions that suggest this. Return False if a review with this detail
        already exists.
        """
        about = {"memory": memory_id, "reason": Reason.STALE.value, "detail": detail}
        more = {"at": at, "shown_by": sorted(set(shown_by))}
        if self._db.one("find_review_detail", **about):
            return False
        if not self._db.run("renew_review", **about, **more):
            self._db.run("insert_review", **about, **more)
        return True

    def delete_where(self, matches: Callable[[str], bool]) -> None:
        """Delete reviews whose detail or session ids match, within a transaction."""
        texts = self._db.all("list_review_texts")
        matching = [row for row, detail, shown_by in texts if matches(f"{detail}\n{shown_by}")]
        self._db.run_each("delete_review", "id", matching)

    def pending(self) -> list[QueuedReview]:
        """Return the pending reviews, oldest first."""
        return self._records(QueuedReview, "list_reviews")

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of candidates, doubtful memories and conflicts."""
        return self._db.one("count_waiting") or (0, 0, 0)

    def dismiss(self, memory_id: str, at: int) -> int:
        """Dismiss a memory's pending reviews, and return their number."""
        return self._db.run("dismiss_reviews", memory=memory_id, at=at)

    def settled(self, memory_id: str) -> tuple[int, int] | None:
        """Return when a memory was queued and decided on (epoch milliseconds), or ``None`` if the
        decision is pending.
        """
        row = self._db.one("find_settled_review", memory=memory_id)
        return (row[0], row[1]) if row else None

    def settled_at(self, at: int) -> list[str]:
        """Return memories whose reviews were settled at a time (epoch milliseconds)."""
        return self._db.column("list_settled_reviews", at=at)

    @runs("reopen_reviews")
    def reopen(self, memory: str, at: int) -> None:
        """Reopen a memory's reviews that were settled at a time (epoch milliseconds)."""

    @runs("settle_review")
    def settle(self, memory: str, reason: Reason, at: int) -> None:
        """Settle the pending review that a memory has for this reason."""

    def stale_kept(self) -> dict[str, datetime | None]:
        """Return outdated memories that the user chose to keep, with the time of the last
        decision.
        """
        return {memory: from_ms(at) for memory, at in self._db.all("list_stale_kept")}

    def low_quality(self) -> list[tuple[str, float, int]]:
        """Return (memory, quality, recall count) of active memories with low quality."""
        return self._db.all("list_low_quality")

    def doubts(
        self, memory_ids: Sequence[str] | None = None, *, both_ways: bool = False
    ) -> list[Doubt]:
        """Return doubts about the given memories, or about all, oldest first.

        A contradiction casts doubt on the older memory and, with ``both_ways``, also on the newer
        one.
        """
        return self._records(Doubt, "list_doubts", ids=memory_ids, both_ways=both_ways)

    def newer(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Map each memory that may be out of date to the newer ones that contradict it."""
        newer: dict[str, tuple[str, ...]] = {}
        for doubt in self.doubts(memory_ids, both_ways=True):
            newer[doubt.older] = (*newer.get(doubt.older, ()), doubt.newer)
        return newer

    @runs("delete_ended_doubts")
    def end_doubts(self, doubtful: Sequence[str]) -> None:
        """Delete pending reviews of contradictions, except for ``doubtful`` memories."""

    def proposed(self) -> list[str]:
        """Return active memories that agents proposed, oldest first."""
        return self._db.column("list_proposed")

    def unfounded(self, tools: Iterable[str]) -> list[str]:
        """Return active memories whose imported source document no longer contains them."""
        return self._db.column("list_unfounded", tools=sorted(tools))


# -- Comparing memories -------------------------------------------------------


MOST_ROWS = 2_000
"""Maximum total number of rows that contain the search words.

Rare words are used first, and common words only if there are few memories.
"""

MOST_WORDS = 16


class Comparisons(Store):
    """The queue of memories to compare with others, and the resulting similarity links."""

    def alike(self, memory: Memory, *, limit: int) -> list[int]:
        """Return rows of active memories in the same project with the same title, key or rare
        words.
        """
        titled = self._db.all(
            "list_memories_titled",
            project=memory.project,
            subject=memory.subject,
            canonical_key=memory.canonical_key,
            limit=limit,
        )
        rows = dict.fromkeys(row for (row,) in titled)
        rare_words = self._rarest_words(words(f"{memory.subject} {memory.content}"))
        if rare_words:
            same = Clause("m.project IS NOT DISTINCT FROM ?", (memory.project,))
            rows |= dict.fromkeys(self._db.words.best(Indexed.MEMORIES, rare_words, same, limit))
        return list(rows)

    def _rarest_words(self, text_words: Sequence[str]) -> list[str]:
        stems = {
            word: self._db.stems(word)[:1]
            for word in dict.fromkeys(text_words)
            if word not in STOP_WORDS
        }
        all_stems = sorted({stem[0] for stem in stems.values() if stem})
        counted = self._db.words.frequencies(Indexed.MEMORIES, all_stems)
        ranked = sorted((counted.get(stem[0], 0), word) for word, stem in stems.items() if stem)
        rare: list[str] = []
        rows = 0
        for count, word in ranked:
            rows += count
            if rare and (rows > MOST_ROWS or len(rare) == MOST_WORDS):
                break
            if count:
                rare.append(word)
        return rare

    @runs("insert_unsettled")
    def wait(self, memory: str) -> None:
        """Queue a new memory for comparison with others once it has a vector."""

    @runs("delete_unsettled")
    def settled(self, memory: str) -> None:
        """Remove a memory from the comparison queue."""

    def queued(self, rows: Sequence[int]) -> list[str]:
        """Return the queued memories in the given rows, oldest first."""
        return self._db.column("list_unsettled", rows=rows)

    def link_alike(self, memory_id: str, near: Mapping[str, float]) -> None:
        """Replace a memory's similarity links. ``near`` maps memory ids to cosines."""
        self._db.run("delete_auto_links", source=memory_id)
        links: list[dict[str, object]] = [
            {"source": memory_id, "target": other, "strength": round(cosine, 4)}
            for other, cosine in near.items()
        ]
        self._db.run_many("insert_auto_link", links)

    def stated_in(self, session: str, turn: str) -> list[tuple[str, bool]]:
        """Return the content of each memory learned from a turn, and whether the memory is
        superseded.
        """
        rows = self._db.all("list_stated", session=session)
        return [
            (text, bool(is_superseded))
            for turns, text, is_superseded in rows
            if turn in json.loads(turns)
        ]
