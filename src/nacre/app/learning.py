"""Sessions → memories: extraction over what is new, without saying twice what is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nacre.app.context import Context
from nacre.app.meaning import meaning_of
from nacre.app.using import learned_together
from nacre.app.writing import apply_intents, commit, redacted
from nacre.extract.candidate import Candidate
from nacre.extract.extractor import extract
from nacre.model.memory import Confidence, Memory, Source
from nacre.model.reports import Progress
from nacre.storage.memories import memory_hash
from nacre.storage.sessions import StoredSession, StoredTurn

BATCH_MEMORIES = 500


@dataclass(frozen=True, slots=True)
class Lessons:
    """The ids of new memories, and how many candidates were known already."""

    memories: tuple[str, ...]
    duplicates: int


def learn(context: Context, notify: Callable[[Progress], None]) -> Lessons:
    """Extract memories from every session with turns that extraction has not seen."""
    waiting = context.sessions.to_extract()
    learner = _Learner(context)
    for done, (row, begin) in enumerate(waiting):
        learner.session(row, begin)
        if len(learner.pending) >= BATCH_MEMORIES:
            learner.flush()
        notify(Progress("learning", done + 1, len(waiting), f"{len(learner.stored) + len(learner.pending)} memories"))
    learner.flush()
    return Lessons(tuple(learner.stored), learner.duplicates)


class _Learner:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.meaning = meaning_of(context)
        self.pending: list[Memory] = []
        self.seen: list[tuple[int, int]] = []
        self.hashes: set[bytes] = set()
        self.keys: set[tuple[str, str, str | None]] = set()
        self.stored: list[str] = []
        self.confirmed: list[str] = []
        self.duplicates = 0

    def session(self, row: int, begin: int) -> None:
        stored = self.context.sessions.get(row)
        turns = self.context.sessions.turns_of(row)
        said = [item.turn for item in turns]
        for candidate in extract(stored.session, said, begin=begin, meaning=self.meaning):
            memory = self.to_memory(candidate, stored, turns)
            if self.is_known(memory):
                self.duplicates += 1
            else:
                self.hashes.add(memory_hash(memory.content, memory.project))
                if memory.canonical_key:
                    self.keys.add((memory.canonical_key, memory.kind, memory.project))
                self.pending.append(memory)
        self.seen.append((row, turns[-1].seq + 1 if turns else 0))

    def to_memory(self, candidate: Candidate, stored: StoredSession, turns: Sequence[StoredTurn]) -> Memory:
        times = [item.turn.time for item in turns if item.turn.time and item.turn.id in candidate.turns]
        said = max(times, default=stored.ended or self.context.now()).replace(microsecond=0)
        memory = Memory(
            id=self.context.ids(), kind=candidate.kind, subject=candidate.subject, content=candidate.content,
            created=said, updated=said, importance=candidate.importance, expiry=candidate.expiry,
            project=stored.project, tags=candidate.tags, speaker=candidate.speaker, trust=candidate.trust,
            confidence=Confidence.INFERRED, canonical_key=candidate.canonical_key,
            source=Source(stored.session.id, candidate.turns, stored.file),
        )  # fmt: skip
        return redacted(self.context, memory)

    def is_known(self, memory: Memory) -> bool:
        """The same words, the same turns (also when the memory was edited or retired since), or the same key."""
        if memory_hash(memory.content, memory.project) in self.hashes:
            return True
        if memory.canonical_key and (memory.canonical_key, memory.kind, memory.project) in self.keys:
            return True
        return self.is_stored(memory)

    def is_stored(self, memory: Memory) -> bool:
        """Whether the home knows it; asked again with the lock held, since another process may have been quicker."""
        memories = self.context.memories
        same = memories.same_content(memory.content, memory.project)
        if same is None and memory.canonical_key:
            same = memories.same_key(memory.canonical_key, memory.kind, memory.project)
        if same:
            self.confirmed.append(same)
            return True
        return any(
            known.kind is memory.kind and known.turns & set(memory.source.turns)
            for known in memories.known_of(memory.source.session or "")
        )

    def flush(self) -> None:
        def also() -> None:
            for row, seq in self.seen:
                self.context.sessions.mark_extracted(row, seq)
            for memory_id in self.confirmed:
                self.context.usage.confirm(memory_id)
            learned_together(self.context, fresh)

        with self.context.vault_lock:
            fresh = [memory for memory in self.pending if not self.is_stored(memory)]
            commit(self.context, fresh, also=also)
            apply_intents(self.context)
        self.duplicates += len(self.pending) - len(fresh)
        self.stored += [memory.id for memory in fresh]
        self.pending, self.seen, self.confirmed = [], [], []
