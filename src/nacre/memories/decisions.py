"""Requests for a language model's decisions about new memories.

The model decides only if the rules are unsure. No lock is held meanwhile, so the decision is checked
again when the memory is placed (:mod:`nacre.memories.placement`). Without a decision, only the rules
place the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from nacre.errors import EmbedderUnavailableError, NacreError
from nacre.home.home import Home
from nacre.home.spending import NONE, ask_all, embedder_in_use, model_for, name_for
from nacre.llm import calibration, failures
from nacre.memories import placement
from nacre.memories import vectors as memories_vectors
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
from nacre.memories.requests import Asking
from nacre.protocols import LanguageModel
from nacre.values.memory import Memory
from nacre.values.session import Task

if TYPE_CHECKING:
    import numpy as np

AT_ONCE = 4
"""Maximum number of simultaneous questions."""

_MAX_NEAR = 5
_MAX_BY_WORDS = 12
_MAX_BY_MEANING = 48


@dataclass
class Decisions:
    """A model's decisions about new memories.

    ``count`` is the number of questions asked, and ``note`` explains missing answers.
    """

    by_memory: dict[str, Decision] = field(default_factory=dict)
    count: int = 0
    note: str | None = None

    def of(self, memory: Memory) -> Decision | None:
        """Return the decision about a memory, if the model made one."""
        return self.by_memory.get(memory.id)


def ask_model(home: Home, memories: Iterable[Memory], asking: Asking) -> Decisions:
    """Ask a model about new memories, given in the order in which they will be stored.

    Call this without holding a lock or a transaction. Failures are reported in the result's
    ``note``.
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
        return _decide(home, model, [*_doubtful(home, undecided, asking)], asking.seconds)
    except EmbedderUnavailableError as error:
        is_expected = not home.settings.embeds and not asking.online
        return Decisions(note=None if is_expected else _note(error))
    finally:
        model.close()


def weigh(
    home: Home, memories: Sequence[Memory]
) -> Iterable[tuple[Memory, list[Comparison], dict[str, float]]]:
    """Compare each new memory with similar stored memories and with earlier new ones.

    Yields each memory with its comparisons, and its similarities by memory id. Raises
    EmbedderUnavailableError.
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
        candidates = [
            other
            for other in (*stored.values(), *memories[:at])
            if other.shares_place(memory) and not (other.superseded_by or other.id == memory.id)
        ]
        missing = [other for other in candidates if other.id not in cosines]
        vectors.make(missing)
        cosines |= {other.id: vectors.cosine(memory, other) for other in missing}
        yield (
            memory,
            compare(
                memory,
                candidates,
                cosines=cosines,
                model=embedder_in_use(home).name,
                mean_cosines=home.vectors.seen(),
                rarity=placement.rarity_of(home),
            ),
            cosines,
        )


def _doubtful(
    home: Home, memories: Sequence[Memory], asking: Asking
) -> Iterable[tuple[Memory, Sequence[Memory]]]:
    limits = calibration.calibration_of(embedder_in_use(home).name, home.vectors.seen())
    min_cosine = limits.ask if asking.threshold is None else asking.threshold
    for memory, comparisons, cosines in weigh(home, memories):
        if any(item.repeats or item.replaces or item.is_replaced for item in comparisons):
            continue
        near = [
            item.other
            for item in comparisons
            if cosines[item.other.id] >= min_cosine and len(item.other.content) <= LONGEST
        ]
        near.sort(key=lambda other: -cosines[other.id])
        if near:
            yield memory, near[:_MAX_NEAR]


def may_ask(home: Home, asking: Asking) -> bool:
    """Return True if a language model is configured and may be asked about new memories."""
    is_enabled = home.settings.flag("models.background") if asking.online is None else asking.online
    return bool(is_enabled) and name_for(home, Task.DEDUP) != NONE


def _is_settled(home: Home, memory: Memory) -> bool:
    same = home.memories.find(home.memories.same_content(memory.content, memory.project) or "")
    return (
        (same is not None and not same.retired)
        or len(memory.content) > LONGEST
        or standing_for(home, memory) is not None
    )


class _Vectors:
    def __init__(self, home: Home) -> None:
        self._embedder = embedder_in_use(home)
        self._index = home.vectors.of(self._embedder.name)
        self._has_index = memories_vectors.has_vectors(home)
        self._own: dict[str, np.typing.NDArray[np.float32]] = {}

    def make(self, memories: Iterable[Memory]) -> None:
        texts = {
            memory.id: memories_vectors.passages(f"{memory.subject}. {memory.content[:LONGEST]}")
            for memory in memories
            if memory.id not in self._own
        }
        if texts:
            self._own |= memories_vectors.embed_parts(self._embedder, texts)

    def of_index(self, memory: Memory) -> dict[int, float]:
        best: dict[int, float] = {}
        for piece in self._own[memory.id] if self._has_index else ():
            for row, cosine in self._index.memory_cosines(piece).items():
                best[row] = max(best.get(row, -1.0), cosine)
        return best

    def cosine(self, memory: Memory, other: Memory) -> float:
        return float((self._own[memory.id] @ self._own[other.id].T).max())


def _decide(
    home: Home,
    model: LanguageModel,
    doubtful: Sequence[tuple[Memory, Sequence[Memory]]],
    seconds: float | None,
) -> Decisions:
    result = Decisions(count=len(doubtful))
    longest = home.settings.number("models.timeout_seconds")
    seconds_each = longest if seconds is None else min(seconds, longest)
    questions = [
        partial(failures.ask, model, prompt_for(memory, near, seconds=seconds_each), Choice)
        for memory, near in doubtful
    ]
    clean = home.redactor.clean
    answers = ask_all(home, questions, AT_ONCE, seconds)
    for (memory, near), answer in zip(doubtful, answers, strict=True):
        if isinstance(answer, Choice):
            decision = decide(answer, memory, near, model.name)
            result.by_memory[memory.id] = replace(
                decision, reason=clean(decision.reason), merged=clean(decision.merged)
            )
        elif answer:
            result.note = result.note or _note(answer)
    if seconds is not None and result.note is None and len(result.by_memory) < len(doubtful):
        result.note = (
            f"{model.name} did not answer within {seconds:g} seconds (dedup.model_seconds)"
        )
    return result


def count_by_action(decisions: Iterable[Decision]) -> Mapping[str, int]:
    """Count decisions by action."""
    actions = [decision.action for decision in decisions]
    return {action.value: actions.count(action) for action in Action if action in actions}


def _note(error: NacreError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{error.message}{hint}"
