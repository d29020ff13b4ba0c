"""Requests for a language model's decisions about new memories.

The model decides only if the rules are unsure how a new memory relates to stored memories. No lock
or transaction is held while the model decides, so the decision is checked again under the lock when
the memory is placed (:mod:`nacre.memories.placement`). If no model is permitted, or the model fails
or times out, only the rules place the memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from nacre.base.frozen import frozen
from nacre.errors import EmbedderUnavailableError, NacreError
from nacre.home import consent
from nacre.home.home import Home
from nacre.home.spending import NONE, Answer, ask_all, is_final, model_for, name_for
from nacre.llm import calibration, failures
from nacre.memories import placement
from nacre.memories import vectors as memories_vectors
from nacre.memories.decision import Asking
from nacre.memories.judge import (
    LONGEST,
    Action,
    Choice,
    Comparison,
    Decision,
    compare,
    decide,
    prompt_for,
    standing_for,
)
from nacre.protocols import LanguageModel
from nacre.values.memory import Memory, by_id
from nacre.values.session import Task

if TYPE_CHECKING:
    import numpy as np

_Answer = Answer[Choice] | NacreError | None

AT_ONCE = 4
"""Maximum number of concurrent questions."""

_MAX_NEAR = 5
_MAX_BY_WORDS = 12
_MAX_BY_MEANING = 48
_MAX_TITLE_CHARACTERS = 80


@dataclass
class Decisions:
    """A model's decisions about new memories.

    ``by_memory``: mapping from memory ids to decisions. ``count``: number of questions. ``note``:
    reason why answers are missing.
    """

    by_memory: dict[str, Decision] = field(default_factory=dict)
    count: int = 0
    note: str | None = None

    def of(self, memory: Memory) -> Decision | None:
        """Return the decision about a memory, if any."""
        return self.by_memory.get(memory.id)


@frozen
class Doubtful:
    """A new memory for which a model decides whether to store it or change a stored memory.

    ``near``: similar stored memories, nearest first.
    """

    memory: Memory
    near: tuple[Memory, ...]


def decisions(home: Home, memories: Iterable[Memory], asking: Asking) -> Decisions:
    """Ask a model about new memories and return the model's decisions.

    ``memories`` are in the order in which they will be stored. Call this without holding a lock or
    a transaction. The ``note`` of the result reports failures of the model.
    """
    if not may_ask(home, asking):
        return Decisions(
            note="no language model is set (nacre config set models.default)"
            if asking.online
            else None
        )
    undecided = [memory for memory in memories if not _is_settled(home, memory)]
    if not undecided:
        return Decisions()
    try:
        model = model_for(home, Task.DEDUP, background=not asking.online)
    except NacreError as error:
        return Decisions(note=_note(error))
    if model is None:
        return Decisions()
    try:
        doubtful = list(_doubtful(home, undecided, asking))
        return _decide(home, model, doubtful, asking.seconds) if doubtful else Decisions()
    except EmbedderUnavailableError as error:
        is_expected = home.settings.text("embedding.model") == "none" and not asking.online
        return Decisions(note=None if is_expected else _note(error))
    finally:
        model.close()


def weigh(
    home: Home, memories: Sequence[Memory]
) -> Iterable[tuple[Memory, list[Comparison], dict[str, float]]]:
    """Compare each new memory with similar stored memories and with earlier new memories.

    Yields each memory, the comparisons, and a mapping from memory ids to cosine similarities.
    Raises EmbedderUnavailableError.
    """
    vectors = _Vectors(home)
    vectors.make(memories)
    for at, memory in enumerate(memories):
        cosines_by_row = vectors.of_index(memory)
        nearest = sorted(cosines_by_row, key=lambda row: -cosines_by_row[row])[:_MAX_BY_MEANING]
        rows = dict.fromkeys((*home.comparisons.alike(memory, limit=_MAX_BY_WORDS), *nearest))
        stored = home.memories.by_rows(list(rows))
        cosines = {
            stored[row].id: cosines_by_row[row] for row in stored.keys() & cosines_by_row.keys()
        }
        others = [
            other
            for other in (*stored.values(), *memories[:at])
            if other.shares_place(memory) and not (other.superseded_by or other.id == memory.id)
        ]
        vectors.make([other for other in others if other.id not in cosines])
        cosines |= {
            other.id: vectors.cosine(memory, other) for other in others if other.id not in cosines
        }
        model, seen = consent.embedder_in_use(home).name, home.vectors.seen()
        yield (
            memory,
            compare(
                memory,
                others,
                cosines=cosines,
                model=model,
                seen=seen,
                rarity=placement.rarity_of(home),
            ),
            cosines,
        )


def _doubtful(home: Home, memories: Sequence[Memory], asking: Asking) -> Iterable[Doubtful]:
    limits = calibration.calibration_of(consent.embedder_in_use(home).name, home.vectors.seen())
    min_cosine = limits.ask if asking.threshold is None else asking.threshold
    outcomes = _Outcomes()
    for memory, comparisons, cosines in weigh(home, memories):
        if any(item.repeats or item.replaces or item.is_replaced for item in comparisons):
            outcomes.judged(memory, comparisons)
            continue
        near = [
            item.other
            for item in comparisons
            if cosines[item.other.id] >= min_cosine and len(item.other.content) <= LONGEST
        ]
        near.sort(key=lambda other: -cosines[other.id])
        if near:
            yield Doubtful(memory, outcomes.all(near)[:_MAX_NEAR])


def may_ask(home: Home, asking: Asking) -> bool:
    """Return True if a model for new memories is configured and calls are permitted."""
    is_enabled = home.settings.flag("models.background") if asking.online is None else asking.online
    return bool(is_enabled) and name_for(home, Task.DEDUP) != NONE


def _is_settled(home: Home, memory: Memory) -> bool:
    """Return True if a memory need not be compared.

    The text is already stored or too long, or a rule retires such memories.
    """
    same = home.memories.find(home.memories.same_content(memory.content, memory.project) or "")
    return (
        (same is not None and not same.retired)
        or len(memory.content) > LONGEST
        or standing_for(home, memory) is not None
    )


class _Vectors:
    def __init__(self, home: Home) -> None:
        self._embedder = consent.embedder_in_use(home)
        self._index = home.vectors.of(self._embedder.name)
        self._has_index = memories_vectors.has_vectors(home)
        self._own: dict[str, np.typing.NDArray[np.float32]] = {}

    def make(self, memories: Iterable[Memory]) -> None:
        """Compute the missing vectors of some memories."""
        texts = {
            memory.id: memories_vectors.passages(f"{memory.subject}. {memory.content[:LONGEST]}")
            for memory in memories
            if memory.id not in self._own
        }
        if texts:
            self._own |= memories_vectors.embed_parts(self._embedder, texts)

    def of_index(self, memory: Memory) -> dict[int, float]:
        """Return a mapping from the rows of indexed memories to similarities with ``memory``."""
        best: dict[int, float] = {}
        for piece in self._own[memory.id] if self._has_index else ():
            for row, cosine in self._index.memory_cosines(piece).items():
                best[row] = max(best.get(row, -1.0), cosine)
        return best

    def cosine(self, memory: Memory, other: Memory) -> float:
        """Return the highest cosine similarity between any passages of two memories."""
        return float((self._own[memory.id] @ self._own[other.id].T).max())


def _decide(
    home: Home, model: LanguageModel, doubtful: Sequence[Doubtful], seconds: float | None
) -> Decisions:
    result = Decisions(count=len(doubtful))
    session = _Deciding(home, model, seconds, result)
    for item, answer in zip(doubtful, session.ask(doubtful), strict=True):
        session.take(item, answer)
    if seconds is not None and result.note is None and len(result.by_memory) < len(doubtful):
        result.note = (
            f"{model.name} did not answer within {seconds:g} seconds (dedup.model_seconds)"
        )
    return result


class _Deciding:
    """Questions to a model about a series of new memories.

    Each question takes earlier decisions into account. If a decision changes a stored memory, later
    questions about that memory are asked again.
    """

    def __init__(
        self, home: Home, model: LanguageModel, seconds: float | None, result: Decisions
    ) -> None:
        longest = home.settings.number("models.timeout_seconds")
        self._home = home
        self._model = model
        self._result = result
        self._until = None if seconds is None else time.monotonic() + seconds
        self._seconds_each = longest if seconds is None else min(seconds, longest)
        self._outcomes = _Outcomes()
        self._is_over = False

    def ask(self, doubtful: Sequence[Doubtful]) -> list[_Answer]:
        """Ask the model about memories and return one answer per memory.

        An answer is ``None`` if time ran out or the model is no longer available.
        """
        if self._is_over:
            return [None] * len(doubtful)
        prompts = [
            prompt_for(item.memory, item.near, seconds=self._seconds_each) for item in doubtful
        ]
        questions = [partial(failures.ask, self._model, prompt, Choice) for prompt in prompts]
        seconds = None if self._until is None else max(0.0, self._until - time.monotonic())
        answers = ask_all(self._home, questions, AT_ONCE, seconds)
        self._is_over = any(map(is_final, answers))
        return answers

    def take(self, item: Doubtful, answer: _Answer) -> None:
        """Record the decision in an answer. If there is no decision, record the reason."""
        decision, target = self._decision_of(item, answer)
        if target and self._outcomes.of(target) != target:
            item = replace(item, near=self._outcomes.all(item.near))
            decision, target = self._decision_of(item, *self.ask([item]))
        if decision is None:
            return
        self._result.by_memory[item.memory.id] = decision
        if target:
            self._outcomes.follow(self._home, item.memory, target, decision)

    def _decision_of(
        self, item: Doubtful, answer: _Answer
    ) -> tuple[Decision | None, Memory | None]:
        if not isinstance(answer, Answer):
            self._result.note = self._result.note or (_note(answer) if answer else None)
            return None, None
        decision = decide(answer.value, item.memory, item.near, self._model.name)
        clean = self._home.redactor.clean
        decision = replace(decision, reason=clean(decision.reason), merged=clean(decision.merged))
        return decision, next((other for other in item.near if other.id == decision.target), None)


class _Outcomes:
    """Tracks which memories replace others according to the decisions so far."""

    def __init__(self) -> None:
        self._as: dict[str, Memory] = {}

    def of(self, memory: Memory) -> Memory:
        """Return the memory that will replace a memory, or the memory itself."""
        while (after := self._as.get(memory.id)) and after.id != memory.id:
            memory = after
        return after or memory

    def all(self, memories: Iterable[Memory]) -> tuple[Memory, ...]:
        """Return the memories that supersede the given memories, without duplicates."""
        return tuple(by_id(map(self.of, memories)).values())

    def follow(self, home: Home, memory: Memory, target: Memory, decision: Decision) -> None:
        """Apply a model's decision."""
        if decision.action is Action.SUPERSEDE:
            self._lead(target, memory)
        elif decision.action is Action.UPDATE:
            self._as[target.id] = self._as[memory.id] = placement.unite(
                home, target, memory, decision
            )
        elif decision.action is Action.AMEND:
            self._as[target.id] = placement.keep_rest(home, target, memory, decision)
        elif decision.action is Action.SKIP:
            self._lead(memory, target)

    def judged(self, memory: Memory, comparisons: Sequence[Comparison]) -> None:
        """Record the replacements that follow from the comparisons of a memory."""
        covering = [comparison for comparison in comparisons if comparison.repeats] or [
            comparison for comparison in comparisons if comparison.is_replaced
        ]
        if covering:
            self._lead(memory, covering[0].other)
            return
        for comparison in comparisons:
            if comparison.replaces:
                self._lead(comparison.other, memory)

    def _lead(self, memory: Memory, to: Memory) -> None:
        """Record that ``to`` replaces a memory that has no replacement yet."""
        to = self.of(to)
        if to.id != memory.id:
            self._as[memory.id] = to


def count_by_action(decisions: Iterable[Decision]) -> Mapping[str, int]:
    """Return the number of decisions per action."""
    actions = [decision.action for decision in decisions]
    return {action.value: actions.count(action) for action in Action if action in actions}


def _note(error: NacreError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{error.message}{hint}"
