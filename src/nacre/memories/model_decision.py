"""Ask a language model about new memories of which the rules cannot tell what they are to those that are there.

No lock and no transaction is held meanwhile: what is decided is checked again, under the lock, when the memory is
placed (:mod:`nacre.dedup.placement`). Where no model may be asked, or it fails or takes too long, there is no
decision, and the rules alone place the memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from nacre.dedup.comparison import Comparison, compare
from nacre.dedup.decision_prompt import Action, Choice, Decision, decide, prompt_for
from nacre.dedup.judge import LONGEST
from nacre.dedup.placement import left_of, rarity_of, united
from nacre.dedup.retirement_rules import standing_for
from nacre.embed.calibration import calibration_of
from nacre.errors import EmbedderUnavailable, NacreError
from nacre.home.home import Home
from nacre.indexing.vectors import has_vectors, passages
from nacre.llm.answers import ask
from nacre.memories.requests import Asking
from nacre.protocols import LanguageModel
from nacre.spending.embedders import embedder_in_use
from nacre.spending.models import NONE, model_for, name_for
from nacre.spending.parallel import Answered, ask_all, is_final
from nacre.spending.tracing import Run, tracing
from nacre.text.passages import shorten
from nacre.values.memory import Memory
from nacre.values.model_calls import Task
from nacre.values.trace import Step, TraceKind

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.typing.NDArray[np.float32]

_Answer = Answered[Choice] | NacreError | None

AT_ONCE = 4
"""So many questions are asked side by side."""

_SHOWN = 5
_SHOWN_MORE = 10
_BY_WORDS = 12
_BY_MEANING = 48
_TITLE_CHARACTERS = 80


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


def decisions(home: Home, memories: Iterable[Memory], asking: Asking) -> Decisions:
    """What a model decides about new memories that are about to be placed, in the order in which they will be.

    They are looked at only where a model may be asked. Call it without a lock, and without a transaction. It raises
    nothing that a model does wrong.
    """
    if not may_ask(home, asking):
        return Decisions(note="no language model is set (nacre setup)" if asking.online else None)
    wanted = [memory for memory in memories if not _is_settled(home, memory)]
    if not wanted:
        return Decisions()
    try:
        model = model_for(home, Task.DEDUP, background=not asking.online)
    except NacreError as error:
        return Decisions(note=_note(error))
    if model is None:
        return Decisions()
    try:
        doubtful = list(_doubtful(home, wanted, asking))
        return _decide(home, model, doubtful, asking.seconds) if doubtful else Decisions()
    except EmbedderUnavailable as error:
        is_meant = home.settings.text("embedding.model") == "none" and not asking.online
        return Decisions(note=None if is_meant else _note(error))
    finally:
        model.close()


def weigh(home: Home, memories: Sequence[Memory]) -> Iterable[tuple[Memory, list[Comparison], dict[str, float]]]:
    """Each new memory, how the rules compare it with those near to it, and the cosines of these by id.

    Those before it in ``memories`` count as stored. Raises EmbedderUnavailable.
    """
    meanings = _Meanings(home)
    meanings.make(memories)
    for at, memory in enumerate(memories):
        indexed = meanings.of_index(memory)
        nearest = sorted(indexed, key=lambda row: -indexed[row])[:_BY_MEANING]
        rows = dict.fromkeys((*home.comparisons.alike(memory, limit=_BY_WORDS), *nearest))
        found = home.memories.by_rows(list(rows))
        cosines = {found[row].id: indexed[row] for row in found.keys() & indexed.keys()}
        others = [one for one in (*found.values(), *memories[:at]) if _may_meet(memory, one)]
        meanings.make([one for one in others if one.id not in cosines])
        cosines |= {one.id: meanings.cosine(memory, one) for one in others if one.id not in cosines}
        model, seen = embedder_in_use(home).name, home.vectors.seen()
        yield memory, compare(memory, others, cosines=cosines, model=model, seen=seen, rarity=rarity_of(home)), cosines


def _doubtful(home: Home, memories: Sequence[Memory], asking: Asking) -> Iterable[Doubtful]:
    is_more = home.settings.flag("dedup.aggressive") if asking.aggressive is None else asking.aggressive
    limits = calibration_of(embedder_in_use(home).name, home.vectors.seen())
    least = _least(home, asking, limits.ask_more if is_more else limits.ask)
    shown = _SHOWN_MORE if is_more else _SHOWN
    becoming = _Becoming()
    for memory, found, cosines in weigh(home, memories):
        if any(one.repeats or one.replaces or one.is_replaced for one in found):
            becoming.judged(memory, found)
            continue  # the rules are sure
        near = [one.other for one in found if cosines[one.other.id] >= least and len(one.other.content) <= LONGEST]
        near.sort(key=lambda one: -cosines[one.id])
        if near:
            yield Doubtful(memory, becoming.all(near)[:shown])


def _least(home: Home, asking: Asking, usual: float) -> float:
    """The cosine from which a model is asked: the call's, else the setting's, else what is usual for the vectors."""
    if asking.threshold is not None:
        return asking.threshold
    return home.settings.number("dedup.threshold") or usual


def may_ask(home: Home, asking: Asking) -> bool:
    """Whether a model is set that decides about new memories, and may be asked."""
    wanted = home.settings.flag("models.background") if asking.online is None else asking.online
    return bool(wanted) and name_for(home, Task.DEDUP) != NONE


def _is_settled(home: Home, memory: Memory) -> bool:
    """Whether the rules know what becomes of a memory without a look at others, or it is too long to be judged."""
    same = home.memories.find(home.memories.same_content(memory.content, memory.project) or "")
    return (
        (same is not None and not same.retired)
        or len(memory.content) > LONGEST
        or standing_for(home, memory) is not None
    )


def _may_meet(memory: Memory, other: Memory) -> bool:
    return other.shares_place(memory) and not (other.superseded_by or other.id == memory.id)


class _Meanings:
    """The vectors of memories, those of the index where they are there, else made on the spot."""

    def __init__(self, home: Home) -> None:
        self._embedder = embedder_in_use(home)
        self._index = home.vectors.of(self._embedder.name)
        self._has_index = has_vectors(home)
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


def _decide(home: Home, model: LanguageModel, doubtful: Sequence[Doubtful], seconds: float | None) -> Decisions:
    subject = shorten(doubtful[0].memory.subject, _TITLE_CHARACTERS)
    more = f" and {len(doubtful) - 1:,} more" if len(doubtful) > 1 else ""
    decided = Decisions(asked=len(doubtful))
    with tracing(home, TraceKind.DEDUP, subject + more) as run:
        deciding = _Deciding(home, model, seconds, decided, run)
        for one, answer in zip(doubtful, deciding.ask(doubtful), strict=True):
            deciding.take(one, answer)
        run.outcome = _outcome(decided)
    if seconds is not None and decided.note is None and len(decided.made) < len(doubtful):
        decided.note = f"{model.name} did not answer within {seconds:g} seconds (dedup.model_seconds)"
    return decided


class _Deciding:
    """Answers about new memories, taken in the order in which these are placed.

    All are asked about as things are now. Where what one is about is to be changed by another before it, the answer
    would be void by then: that one is asked about again, as things will be.
    """

    def __init__(
        self, home: Home, model: LanguageModel, seconds: float | None, decided: Decisions, run: Run
    ) -> None:  # fmt: skip
        longest = home.settings.number("models.timeout_seconds")
        self._home = home
        self._model = model
        self._decided = decided
        self._run = run
        self._until = None if seconds is None else time.monotonic() + seconds
        self._each = longest if seconds is None else min(seconds, longest)
        self._becoming = _Becoming()
        self._is_over = False

    def ask(self, doubtful: Sequence[Doubtful]) -> list[_Answer]:
        """The answers; ``None`` where there is none in time, or nobody to be asked any more."""
        if self._is_over:
            return [None] * len(doubtful)
        questions = [partial(self._choose, one) for one in doubtful]
        left = None if self._until is None else max(0.0, self._until - time.monotonic())
        answers = ask_all(self._home, questions, AT_ONCE, left)
        self._is_over = any(map(is_final, answers))
        return answers

    def take(self, one: Doubtful, answer: _Answer) -> None:
        """Note what was decided, or why nothing was."""
        made = self._made(one, answer)
        target = next((other for other in one.near if made and other.id == made.target), None)
        if target and self._becoming.of(target) != target:
            one = replace(one, near=self._becoming.all(one.near))
            (answer,) = self.ask([one])
            made = self._made(one, answer)
            target = next((other for other in one.near if made and other.id == made.target), None)
        if made is None:
            return
        self._decided.made[one.memory.id] = made
        if target:
            self._becoming.follow(self._home, one.memory, target, made)

    def _choose(self, one: Doubtful) -> Choice:
        return ask(self._model, prompt_for(one.memory, one.near, seconds=self._each), Choice)

    def _made(self, one: Doubtful, answer: _Answer) -> Decision | None:
        if not isinstance(answer, Answered):
            self._decided.note = self._decided.note or (_note(answer) if answer else None)
            told = _step(one, answer.message, "failed") if answer else _step(one, "not answered", "skipped")
            self._run.add(told)
            return None
        made = decide(answer.value, one.memory, one.near, self._model.name)
        clean = self._home.redactor.clean
        made = replace(made, reason=clean(made.reason), merged=clean(made.merged))
        self._run.add(_step(one, f"{made.action}: {made.reason}"))
        return made


class _Becoming:
    """What memories are to be once those before them are placed: what they are, rewritten, or one in their place."""

    def __init__(self) -> None:
        self._as: dict[str, Memory] = {}

    def of(self, memory: Memory) -> Memory:
        """What a memory is to be."""
        while (after := self._as.get(memory.id)) and after.id != memory.id:
            memory = after
        return after or memory

    def all(self, memories: Iterable[Memory]) -> tuple[Memory, ...]:
        """Each of them once, in their order."""
        return tuple({one.id: one for one in map(self.of, memories)}.values())

    def follow(self, home: Home, memory: Memory, target: Memory, made: Decision) -> None:
        """A decision of a model takes effect."""
        if made.action is Action.SUPERSEDE:
            self._lead(target, memory)
        elif made.action is Action.UPDATE:
            self._as[target.id] = self._as[memory.id] = united(home, target, memory, made)
        elif made.action is Action.AMEND:
            self._as[target.id] = left_of(home, target, memory, made)
        elif made.action is Action.SKIP:
            self._lead(memory, target)

    def judged(self, memory: Memory, found: Sequence[Comparison]) -> None:
        """The rules are sure about a memory and others."""
        gone = [one for one in found if one.repeats] or [one for one in found if one.is_replaced]
        if gone:
            self._lead(memory, gone[0].other)
            return
        for one in found:
            if one.replaces:
                self._lead(one.other, memory)

    def _lead(self, one: Memory, to: Memory) -> None:
        """One is not there any more, and the other is; never in a circle, as that one leads nowhere yet."""
        to = self.of(to)
        if to.id != one.id:
            self._as[one.id] = to


def _step(one: Doubtful, told: str, status: str = "done") -> Step:
    """What became of an answer; that the model was asked is a step of its own, with its time and cost."""
    return Step(
        "decide",
        shorten(one.memory.content, _TITLE_CHARACTERS),
        told,
        status,
        (one.memory.id, *(other.id for other in one.near)),
    )


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
