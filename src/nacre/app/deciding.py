"""Ask a language model about new memories of which the rules cannot tell what they are to those that are there.

No lock and no transaction is held meanwhile: what is decided is checked again, under the lock, when the memory is
placed (:mod:`nacre.app.placing`). Where no model may be asked, where it fails or takes too long, there is no decision,
and the rules alone place the memory.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nacre.app.comparing import Comparison, compare
from nacre.app.context import Context
from nacre.app.embedding import has_vectors, passages
from nacre.app.models import NONE, model_for, name_for
from nacre.app.placing import rivals
from nacre.app.standing import standing_for
from nacre.app.tracing import tracing
from nacre.dedup.deciding import Action, Choice, Decision, decide, prompt_for
from nacre.dedup.judge import LONGEST
from nacre.embed.calibration import calibration_of
from nacre.errors import (
    AnswerUnusable,
    BudgetSpent,
    EmbedderUnavailable,
    ModelRefused,
    ModelUnavailable,
    NacreError,
    PromptTooLong,
)
from nacre.llm.answers import ask
from nacre.model.memory import Memory
from nacre.model.prompting import Task
from nacre.model.trace import Step, TraceKind
from nacre.protocols import LanguageModel
from nacre.text import shorten

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.typing.NDArray[np.float32]

AT_ONCE = 4
"""So many questions are asked side by side."""

_SHOWN = 5
_SHOWN_MORE = 10
_BY_WORDS = 12
_BY_MEANING = 48
_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked about new memories.

    ``online`` asks in so many words (or forbids it); left open, it is background work. ``aggressive`` asks about
    memories that are less alike, and shows ten instead of five; left open, the settings tell. ``threshold`` is the
    cosine of the nearest memory from which a model is asked, instead of the calibrated one. ``seconds`` is how long all
    answers together may take; ``None`` waits for each as long as models may take.
    """

    online: bool | None = None
    aggressive: bool | None = None
    threshold: float | None = None
    seconds: float | None = None


@dataclass
class Decisions:
    """What a model decided, by the new memory's id; how many it was asked about, and why some have no answer."""

    made: dict[str, Decision] = field(default_factory=dict)
    asked: int = 0
    note: str | None = None

    def of(self, memory: Memory) -> Decision | None:
        """The decision about a memory."""
        return self.made.get(memory.id)


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A new memory of which the rules cannot tell what it is to those near to it, the nearest first."""

    memory: Memory
    near: tuple[Memory, ...]


def decisions(context: Context, memories: Iterable[Memory], asking: Asking) -> Decisions:
    """What a model decides about new memories that are about to be placed, in the order in which they will be.

    They are looked at only where a model may be asked. Call it without a lock, and without a transaction. It raises
    nothing that a model does wrong.
    """
    if not _may_ask(context, asking):
        return Decisions(note="no language model is set (nacre setup)" if asking.online else None)
    wanted = [memory for memory in memories if not _is_settled(context, memory)]
    if not wanted:
        return Decisions()
    try:
        model = model_for(context, Task.DEDUP, background=not asking.online)
    except NacreError as error:
        return Decisions(note=_note(error))
    if model is None:
        return Decisions()
    try:
        doubtful = list(_doubtful(context, wanted, asking))
        return _decide(context, model, doubtful, asking.seconds) if doubtful else Decisions()
    except EmbedderUnavailable as error:
        is_meant = context.settings["embedding.model"] == "none" and not asking.online
        return Decisions(note=None if is_meant else _note(error))
    finally:
        model.close()


def weigh(context: Context, memories: Sequence[Memory]) -> Iterable[tuple[Memory, list[Comparison], dict[str, float]]]:
    """Each new memory, how the rules compare it with those near to it, and the cosines of these by id.

    Those before it in ``memories`` count as stored. Raises EmbedderUnavailable.
    """
    meanings = _Meanings(context)
    meanings.make(memories)
    for at, memory in enumerate(memories):
        indexed = meanings.of_index(memory)
        nearest = sorted(indexed, key=lambda row: -indexed[row])[:_BY_MEANING]
        rows = dict.fromkeys((*context.comparisons.alike(memory, rivals(memory), limit=_BY_WORDS), *nearest))
        found = context.memories.by_rows(list(rows))
        cosines = {found[row].id: indexed[row] for row in found.keys() & indexed.keys()}
        others = [one for one in (*found.values(), *memories[:at]) if _may_meet(memory, one)]
        meanings.make([one for one in others if one.id not in cosines])
        cosines |= {one.id: meanings.cosine(memory, one) for one in others if one.id not in cosines}
        model, seen = context.embedder_in_use.name, context.vectors.seen()
        yield memory, compare(memory, others, cosines=cosines, model=model, seen=seen), cosines


def _doubtful(context: Context, memories: Sequence[Memory], asking: Asking) -> Iterable[Doubtful]:
    is_more = context.settings["dedup.aggressive"] if asking.aggressive is None else asking.aggressive
    limits = calibration_of(context.embedder_in_use.name, context.vectors.seen())
    least = (limits.ask_more if is_more else limits.ask) if asking.threshold is None else asking.threshold
    shown = _SHOWN_MORE if is_more else _SHOWN
    for memory, found, cosines in weigh(context, memories):
        if any(one.repeats or one.replaces or one.is_replaced for one in found):
            continue  # the rules are sure
        near = [one.other for one in found if cosines[one.other.id] >= least and len(one.other.content) <= LONGEST]
        near.sort(key=lambda one: -cosines[one.id])
        if near:
            yield Doubtful(memory, tuple(near[:shown]))


def _may_ask(context: Context, asking: Asking) -> bool:
    wanted = context.settings["models.background"] if asking.online is None else asking.online
    return bool(wanted) and name_for(context, Task.DEDUP) != NONE


def _is_settled(context: Context, memory: Memory) -> bool:
    """Whether the rules know what becomes of a memory without a look at others, or it is too long to be judged."""
    same = context.memories.find(context.memories.same_content(memory.content, memory.project) or "")
    return (
        (same is not None and not same.retired)
        or len(memory.content) > LONGEST
        or standing_for(context, memory) is not None
    )


def _may_meet(memory: Memory, other: Memory) -> bool:
    is_apart = other.superseded_by or other.is_handoff or other.id == memory.id
    return other.project == memory.project and not is_apart


class _Meanings:
    """The vectors of memories, those of the index where they are there, else made on the spot."""

    def __init__(self, context: Context) -> None:
        self._embedder = context.embedder_in_use
        self._index = context.vectors.of(self._embedder.name)
        self._has_index = has_vectors(context)
        self._own: dict[str, Matrix] = {}

    def make(self, memories: Iterable[Memory]) -> None:
        """Make the vectors of memories that have none here yet."""
        texts = {
            one.id: passages(f"{one.subject}. {one.content[:LONGEST]}") for one in memories if one.id not in self._own
        }
        if not texts:
            return
        vectors = self._embedder.embed([text for found in texts.values() for text in found])
        at = 0
        for memory_id, found in texts.items():
            self._own[memory_id] = vectors[at : at + len(found)]
            at += len(found)

    def of_index(self, memory: Memory) -> dict[int, float]:
        """The cosines of stored memories whose vectors are in the index, by row."""
        best: dict[int, float] = {}
        for piece in self._own[memory.id] if self._has_index else ():
            for row, cosine in self._index.memory_cosines(piece).items():
                best[row] = max(best.get(row, -1.0), cosine)
        return best

    def cosine(self, one: Memory, other: Memory) -> float:
        """That of the two pieces that are nearest to each other."""
        return float((self._own[one.id] @ self._own[other.id].T).max())


def _decide(context: Context, model: LanguageModel, doubtful: Sequence[Doubtful], seconds: float | None) -> Decisions:
    subject = shorten(doubtful[0].memory.subject, _TITLE_CHARACTERS)
    more = f" and {len(doubtful) - 1:,} more" if len(doubtful) > 1 else ""
    longest = context.settings["models.timeout_seconds"]
    decided = Decisions(asked=len(doubtful))
    with tracing(context, TraceKind.DEDUP, subject + more) as run:
        answers = _ask_all(model, doubtful, seconds, longest if seconds is None else min(seconds, longest))
        for one, answer in zip(doubtful, answers, strict=True):
            if isinstance(answer, _Answer):
                made = decide(answer.choice, one.memory, one.near, model.name)
                clean = context.redactor.clean
                made = replace(made, reason=clean(made.reason), merged=clean(made.merged))
                decided.made[one.memory.id] = made
                run.add(_step(one, f"{made.action}: {made.reason}", model.name, seconds=answer.seconds))
            elif isinstance(answer, NacreError):
                decided.note = decided.note or _note(answer)
                run.add(_step(one, answer.message, model.name, "failed"))
            else:
                run.add(_step(one, "not answered", model.name, "skipped"))
        run.outcome = _outcome(decided)
    if seconds is not None and decided.note is None and len(decided.made) < len(doubtful):
        decided.note = f"{model.name} did not answer within {seconds:g} seconds (dedup.model_seconds)"
    return decided


@dataclass(frozen=True, slots=True)
class _Answer:
    choice: Choice
    seconds: float


def _ask_all(
    model: LanguageModel, doubtful: Sequence[Doubtful], seconds: float | None, each: float
) -> list[_Answer | NacreError | None]:
    """A model's answers about memories, asked side by side; ``None`` where it was not asked, or not done in time.

    One that is not to be had, refuses, or may cost no more is not asked again.
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # which only asking pays for

    is_over = threading.Event()

    def ask_about(one: Doubtful) -> _Answer | NacreError | None:
        if is_over.is_set():
            return None
        began = time.perf_counter()
        try:
            choice = ask(model, prompt_for(one.memory, one.near, seconds=each), Choice)
        except (PromptTooLong, AnswerUnusable) as error:
            return error
        except (ModelUnavailable, ModelRefused, BudgetSpent) as error:
            is_over.set()
            return error
        return _Answer(choice, time.perf_counter() - began)

    pool = ThreadPoolExecutor(AT_ONCE, "nacre-dedup")
    try:
        futures = [pool.submit(contextvars.copy_context().run, ask_about, one) for one in doubtful]
        wait(futures, seconds)
    finally:
        is_over.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return [future.result() if future.done() and not future.cancelled() else None for future in futures]


def _step(one: Doubtful, told: str, by: str, status: str = "done", seconds: float = 0.0) -> Step:
    said = shorten(one.memory.content, _TITLE_CHARACTERS)
    return Step("decide", said, told, status, _refs(one), seconds, by)


def _refs(one: Doubtful) -> tuple[str, ...]:
    return (one.memory.id, *(other.id for other in one.near))


def _outcome(decided: Decisions) -> str:
    counts = count_by_action(decided.made.values())
    missing = decided.asked - len(decided.made)
    told = [f"{number} {action}" for action, number in counts.items()]
    return ", ".join([*told, f"{missing} without an answer"] if missing else told)


def count_by_action(made: Iterable[Decision]) -> Mapping[str, int]:
    """How many decisions there are of each sort."""
    actions = [one.action for one in made]
    return {action.value: actions.count(action) for action in Action if action in actions}


def _note(error: NacreError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{error.message}{hint}"
