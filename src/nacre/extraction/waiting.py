"""Candidates that wait, while sessions are learned from: what the owner says again in another session rises."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta

from nacre.dedup.comparison import compare
from nacre.home.home import Home
from nacre.platform.ids import to_ms
from nacre.text.passages import words
from nacre.values.candidate import Candidate, HeldCandidate, Why
from nacre.values.memory import Memory
from nacre.values.session import Speaker

KEPT = timedelta(days=90)
"""So long a candidate waits."""

_ALIKE = 0.6
"""The share of its words that a statement has in common with one that it may say again: others are not compared."""


class WaitingCandidates:
    """What waits in a home, and what is found to wait or to rise until it is written."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[str, HeldCandidate] = {}
        self._by_word: defaultdict[str, set[str]] = defaultdict(set)
        self._new: list[HeldCandidate] = []
        self._risen: set[str] = set()
        self._read: list[str] = []
        self.count = 0
        """How many candidates began to wait."""

        for one in home.candidates.waiting():
            if one.why is Why.FOUND and not one.detail:
                self._note(one)

    def hold(self, candidate: Candidate, memory: Memory) -> list[Memory]:
        """Let a candidate wait, unless the owner says with it what waits already: then both, the earlier first."""
        is_said = candidate.held is Why.FOUND and not candidate.detail
        risen = self._rise(memory) if is_said else []
        if risen:
            return [*risen, memory]
        why = candidate.held or Why.FOUND
        waits = HeldCandidate(memory, why, candidate.detail or None, candidate.score, self._home.now())
        self._new.append(waits)
        if is_said:
            self._note(waits)
        return []

    def say(self, memory: Memory) -> list[Memory]:
        """What waits, and is said again in another session by a memory of the owner's: it waits no longer."""
        return self._rise(memory)

    def _rise(self, memory: Memory) -> list[Memory]:
        if memory.speaker is not Speaker.OWNER:
            return []
        said = words(memory.content)
        shared = Counter(known for word in set(said) for known in self._by_word.get(word, ()))
        alike = [self._known[known].memory for known, count in shared.items() if count >= _ALIKE * len(set(said))]
        found = [one.other for one in compare(memory, alike) if one.repeats and _is_elsewhere(memory, one.other)]
        for one in found:
            self._forget(one)
        return sorted(found, key=lambda one: one.created)

    def was_read(self, session: str) -> None:
        """A writer has read a session: what rules found in it waits no longer."""
        self._read.append(session)

    def write(self) -> None:
        """Write down what waits from now on, and what does no longer. Call in a transaction."""
        store = self._home.candidates
        for session in self._read:
            store.settle_session(session)
        known = self._home.memories.same_content
        self.count += store.add(one for one in self._new if not known(one.memory.content, one.memory.project))
        store.delete(self._risen)
        store.expire(to_ms(self._home.now() - KEPT) or 0)
        store.blank(to_ms(self._home.now()) or 0)
        self._new, self._read, self._risen = [], [], set()

    def _note(self, candidate: HeldCandidate) -> None:
        memory = candidate.memory
        self._known[memory.id] = candidate
        for word in set(words(memory.content)):
            self._by_word[word].add(memory.id)

    def _forget(self, memory: Memory) -> None:
        self._known.pop(memory.id, None)
        for word in set(words(memory.content)):
            self._by_word[word].discard(memory.id)
        self._risen.add(memory.id)
        self._new = [one for one in self._new if one.memory.id != memory.id]


def _is_elsewhere(memory: Memory, other: Memory) -> bool:
    """Whether two were said in different sessions, neither of which copies the other's messages."""
    if memory.source.session == other.source.session or memory.created == other.created:
        return False
    return not set(memory.source.turns) & set(other.source.turns)
