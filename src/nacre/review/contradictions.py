"""New memories, judged by a model: what each claims, which others it is at odds with, which todos it shows to be done.

They wait in a queue, which a crash or a spent budget leaves as it is. No lock and no transaction is held while a model
is asked; before anything is written, each memory is looked at again, and what changed meanwhile is asked anew.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nacre.dedup.comparison import SUPERSEDES, outranks
from nacre.dedup.contradiction import Bearing, Resolution
from nacre.dedup.supersession import doubted, ended, without_doubt
from nacre.errors import AnswerUnusable, BudgetSpent, EditConflict, ModelRefused, ModelUnavailable, PromptTooLong
from nacre.history.schedule import JUDGE_LOCK
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.indexing.vectors import embed_memories
from nacre.memories.scan import catch_up
from nacre.memories.usage import queue_reviews
from nacre.platform.ids import to_ms
from nacre.platform.locks import FileLock
from nacre.protocols import LanguageModel
from nacre.review.conflicts import RESOLVE
from nacre.review.judgements import BY_RULES, TOGETHER, Found, Looked, in_order, look_at
from nacre.review.rivals import is_settled
from nacre.spending.models import may_judge, model_for, waits_for_models
from nacre.storage.claims import Due
from nacre.values.memory import Claim, Link, Memory
from nacre.values.model_calls import Task
from nacre.values.reports import OnProgress, Progress
from nacre.values.review import JudgedPair, Reason
from nacre.vault import ledger

JUDGE = "judge"
"""What the ledger calls an operation of a model that judges."""

MOST_TRIES = 5
"""After so many answers that could not be used, or changes while a model was asked, a memory waits no more."""

_BACKOFF_MS = 60_000
_REFUSED_MS = 3_600_000
_BUDGET_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What was judged: memories that were looked at, claims that were told, memories that were superseded, pairs that
    wait for a person, todos that were done, memories that were given up; how many wait still, and why it stopped early.
    """

    judged: int = 0
    claims: int = 0
    superseded: int = 0
    conflicts: int = 0
    todos: int = 0
    given_up: int = 0
    waiting: int = 0
    note: str | None = None


def judge_waiting(
    home: Home, *, background: bool = True, seconds: float = math.inf, on_progress: OnProgress | None = None
) -> JudgeReport:
    """Judge the memories that wait, the longest waiting first, for so many seconds at most.

    ``background``: nobody asked for it in so many words; else what failed is tried at once. One process at a time does
    it. A model that does not answer, or a budget that is spent, ends it: the rest waits for another time.
    """
    waiting = home.claims.waiting().count
    if not (waits_for_models(home) if background else may_judge(home)):
        return JudgeReport(waiting=waiting, note="no language model is set for it" if waiting else None)
    lock = FileLock(home.settings.home / JUDGE_LOCK)
    if not lock.acquire():
        return JudgeReport(waiting=waiting, note="another process is at it")
    try:
        catch_up(home)
        run = _Run(home, background, time.monotonic() + seconds, on_progress)
        embed_memories(home)
        if not background:
            home.claims.hurry()
        try:
            run.go()
        finally:
            run.close()
        embed_memories(home)  # what was written anew
    finally:
        lock.release()
    return JudgeReport(**run.counts, waiting=home.claims.waiting().count, note=run.note)


@dataclass
class _Run:
    """Judging that goes on."""

    home: Home
    background: bool
    deadline: float
    on_progress: OnProgress | None
    note: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    models: dict[Task, LanguageModel | None] = field(default_factory=dict)

    def count(self, name: str, by: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + by

    def go(self) -> None:
        """Until nothing is due, time is up or a model fails."""
        total = self.home.claims.waiting().count
        while due := self.home.claims.due(self.now(), TOGETHER):
            if self.note or time.monotonic() >= self.deadline:
                return
            self.some(due)
            if self.on_progress:
                self.on_progress(Progress("judging", self.counts.get("judged", 0), total))

    def now(self) -> int:
        return to_ms(self.home.now()) or 0

    def some(self, due: Sequence[Due]) -> None:
        """A few memories: models are asked about all of them side by side, and what follows is written in order."""
        waiting = {one.memory: one for one in due}
        asked = []
        for one in due:
            memory = self.home.memories.find(one.memory)
            if memory is None or not memory.is_active:
                self.home.claims.done(one.memory)
            else:
                asked.append(Looked(memory, is_reworded=one.reworded))
        try:
            look_at(self.home, asked, self.model)
        except ModelRefused as error:
            self.stop(error.message, _REFUSED_MS)
            return
        for looked in asked:
            self.end(looked, waiting[looked.memory.id].tries)

    def end(self, one: Looked, tries: int) -> None:
        """What was found is written; or the memory is tried again later, or given up."""
        memory_id = one.memory.id
        try:
            if one.error:
                raise one.error
            if one.is_left:
                return
            if self.apply(one):
                self.count("judged")
            elif not one.is_partial:
                self.again(memory_id, tries, "it was changed while a model was asked")
        except (PromptTooLong, AnswerUnusable, EditConflict) as error:
            self.again(memory_id, tries, error.message)
        except ModelUnavailable as error:
            self.stop(error.message, _BACKOFF_MS)
        except BudgetSpent as error:
            self.stop(error.message, _BUDGET_MS)
        except ModelRefused as error:
            self.stop(error.message, _REFUSED_MS)

    def again(self, memory_id: str, tries: int, why: str) -> None:
        """Try a memory again later, unless that was done often enough."""
        if tries + 1 >= MOST_TRIES:
            self.home.claims.done(memory_id)
            self.count("given_up")
            return
        self.home.claims.postpone(memory_id, self.now() + _BACKOFF_MS * 2**tries, why)

    def stop(self, why: str, wait_ms: int) -> None:
        """Leave all that waits for another time."""
        self.note = why
        self.home.claims.postpone_all(self.now() + wait_ms, why)

    def model(self, task: Task) -> LanguageModel | None:
        """The model of a task, opened once."""
        if task not in self.models:
            self.models[task] = model_for(self.home, task, background=self.background)
        return self.models[task]

    def close(self) -> None:
        """Let go of the models."""
        for model in self.models.values():
            if model:
                model.close()

    def apply(self, looked: Looked) -> bool:
        """Write what was found; ``False`` where a memory is not what it was when a model was asked."""
        home = self.home
        with home.change(JUDGE) as change:
            catch_up(home)
            present = home.memories.find(looked.memory.id)
            if present is None or not present.is_active:
                home.claims.done(looked.memory.id)
                return True
            if not _is_as_it_was(looked.memory, present):
                return False
            found = [one for one in looked.found if self.holds(present, one)]
            is_whole = not looked.is_partial and not any(self.is_changed(one.other) for one in looked.found)
            change.describe(subject=present.subject)
            judgement = _Judgement(change, present, looked.claim, is_claimless=looked.is_claimless)
            with change.transaction():
                for one in sorted(found, key=lambda one: _order(present, one)):
                    judgement.take(one)
                judgement.write()
                if looked.is_claimless:
                    home.claims.claimless(present.id)
                if is_whole:
                    home.claims.done(present.id)
            if judgement.pending:
                queue_reviews(home)
        self.count("claims", int(looked.claim is not None))
        self.count("superseded", judgement.superseded)
        self.count("conflicts", judgement.pending)
        self.count("todos", judgement.todos)
        return is_whole

    def is_changed(self, before: Memory) -> bool:
        """Whether another memory holds still, and is not what it was: then it has to be judged anew."""
        other = self.home.memories.find(before.id)
        holds = other is not None and other.is_active
        return other is not None and holds and not _is_as_it_was(before, other)

    def holds(self, memory: Memory, one: Found) -> bool:
        """Whether the other memory is what it was, and nobody settled the pair meanwhile."""
        other = self.home.memories.find(one.other.id)
        is_open = other is not None and not is_settled(memory, other, self.home.claims.judged())
        return other is not None and is_open and _is_as_it_was(one.other, other)


def _order(memory: Memory, one: Found) -> tuple[bool, bool]:
    """What ends the memory in question comes first: then it ends no other."""
    is_later = in_order(memory, one.other)[1] is memory
    return is_later, one.outcome is not Resolution.SUPERSEDED


def _is_as_it_was(before: Memory, now: Memory) -> bool:
    """Whether nothing of a memory changed that a model saw or that decides; where it was said again does not count."""
    return replace(before, links=(), confirmed=(), claim=None) == replace(now, links=(), confirmed=(), claim=None)


@dataclass
class _Judgement:
    """What becomes of one memory and others, as they are to be written."""

    change: Change
    memory: Memory
    claim: Claim | None
    is_claimless: bool = False
    others: dict[str, Memory] = field(default_factory=dict)
    entries: list[ledger.Entry] = field(default_factory=list)
    kept: list[tuple[Memory, Memory, Found]] = field(default_factory=list)
    calmed: list[tuple[Memory, Memory]] = field(default_factory=list)
    superseded: int = 0
    pending: int = 0
    todos: int = 0

    def take(self, one: Found) -> None:
        """Let one judgement have its effect; once the memory in question is ended, it has none."""
        if self.memory.superseded_by:
            return
        other = self.change.home.memories.find(one.other.id) or one.other
        before = in_order(self.memory, other)
        earlier, later = without_doubt(before[0], before[1].id), without_doubt(before[1], before[0].id)
        if one.outcome is Resolution.SUPERSEDED:
            self._end(earlier, later, one)
        elif one.outcome is Resolution.PENDING:
            self._doubt(earlier, later, one)
        elif one.judged.says_both_hold and (earlier, later) != before:
            self._calm(earlier, later, one)

    def _calm(self, earlier: Memory, later: Memory, one: Found) -> None:
        """What the rules doubted holds, as the model sees it."""
        self._set(earlier, later)
        told = {"choice": "keep-both", "relation": one.judged.bearing.value, "confidence": one.judged.confidence}
        self.entries.append(
            self.change.entry(
                RESOLVE, memory=earlier.id, by=later.id, judge=one.by, reason=one.judged.explanation,
                **told,
            )
        )  # fmt: skip
        self.calmed.append((earlier, later))

    def _end(self, earlier: Memory, later: Memory, one: Found) -> None:
        reason = one.judged.explanation or one.judged.bearing.value
        later = replace(later, links=(*later.links, Link(SUPERSEDES, earlier.id, reason)))
        self._set(ended(earlier, later), later)
        self.entries.append(self._entry(earlier, later, one, reason))
        self.superseded += not one.is_todo
        self.todos += one.is_todo

    def _doubt(self, earlier: Memory, later: Memory, one: Found) -> None:
        self._set(earlier, doubted(later, earlier.id, one.judged.explanation or one.judged.bearing.value))
        self.kept.append((earlier, later, one))
        self.pending += 1

    def _set(self, *memories: Memory) -> None:
        for memory in memories:
            if memory.id == self.memory.id:
                self.memory = memory
            else:
                self.others[memory.id] = memory

    def _entry(self, earlier: Memory, later: Memory, one: Found, reason: str) -> ledger.Entry:
        told: dict[str, Any] = {"reason": reason, "judge": one.by}
        if one.by != BY_RULES:
            told |= {"relation": one.judged.bearing.value, "confidence": one.judged.confidence}
        return self.change.entry("supersede", memory=earlier.id, by=later.id, **told)

    def write(self) -> None:
        """Write all of it."""
        home = self.change.home
        before = {memory.id: memory for memory in home.memories.in_any_state([self.memory.id, *self.others])}
        claiming = replace(self.memory, claim=None if self.is_claimless else self.claim or self.memory.claim)
        if self.memory == before[self.memory.id] and not (self.is_claimless and self.memory.claim):
            if self.claim:
                self.change.set_claim(claiming)
            changed = []
        else:
            changed = [claiming]
        changed += [memory for memory in self.others.values() if memory != before.get(memory.id)]
        if changed:
            self.change.put(changed, self.entries)
        at = to_ms(home.now()) or 0
        for earlier, later, one in self.kept:
            judged = JudgedPair(one.judged.bearing.value, one.judged.confidence, one.by, None)
            home.claims.keep(earlier.id, later.id, judged, at)
            if one.judged.bearing is Bearing.CONTRADICTS and not outranks(earlier, later):
                home.claims.contradict(earlier.id)
        pairs = [*self.calmed, *((earlier, later) for earlier, later, _ in self.kept)]
        for memory in {memory.id: memory for pair in pairs for memory in pair}:
            if not home.reviews.doubts([memory]):
                home.reviews.settle(memory, Reason.CONTRADICTED, at)
        self.change.explain(self._why())

    def _why(self) -> str | None:
        said = {
            "superseded": self.superseded,
            "in doubt": self.pending,
            "in doubt no more": len(self.calmed),
            "done": self.todos,
            "claim": int(bool(self.claim)),
        }
        return ", ".join(f"{number} {what}" for what, number in said.items() if number) or None
