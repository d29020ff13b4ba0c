"""New memories, judged by a model: what each claims, which others it is at odds with, which todos it shows to be done.

They wait in a queue, which a crash or a spent budget leaves as it is. No lock and no transaction is held while a model
is asked; before anything is written, each memory is looked at again, and what changed meanwhile is asked anew.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nacre.app.background import JUDGE_LOCK
from nacre.app.claiming import tell_claim
from nacre.app.comparing import SUPERSEDES, compare, last_said, outranks
from nacre.app.conflicts import RESOLVE
from nacre.app.context import Context
from nacre.app.embedding import embed_memories
from nacre.app.models import may_judge, model_for, waits_for_models
from nacre.app.operating import explain, operating
from nacre.app.rivals import is_settled, open_todos, rivals
from nacre.app.scanning import catch_up
from nacre.app.superseding import doubted, ended, without_doubt
from nacre.app.tracing import tracing
from nacre.app.using import queue_reviews
from nacre.app.writing import apply_intents, commit, entry, intend_claim
from nacre.dedup.contradiction import (
    AUTO_SUPERSEDE,
    Bearing,
    JudgeAnswer,
    Judgement,
    Outcome,
    TodosAnswer,
    finished,
    judge_prompt,
    judgements,
    resolve,
    todos_prompt,
)
from nacre.dedup.judge import Relation
from nacre.errors import AnswerUnusable, BudgetSpent, EditConflict, ModelRefused, ModelUnavailable
from nacre.llm.answers import ask, schema_of
from nacre.lock import FileLock
from nacre.model.memory import Claim, Link, Memory
from nacre.model.prompting import Task
from nacre.model.reports import Progress
from nacre.model.session import Speaker
from nacre.model.trace import Step, TraceKind
from nacre.protocols import LanguageModel
from nacre.storage.claims import Judged
from nacre.storage.times import to_ms
from nacre.text import normalise
from nacre.vault import ledger

OnProgress = Callable[[Progress], None]

JUDGE = "judge"
"""What the ledger calls an operation of a model that judges."""

MOST_TRIES = 5
"""After so many answers that could not be used, or changes while a model was asked, a memory waits no more."""

_PORTION = 20
_BACKOFF_MS = 60_000
_REFUSED_MS = 3_600_000
_BUDGET_MS = 3_600_000
_BY_RULES = "rules"


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


@dataclass(frozen=True, slots=True)
class Found:
    """Another memory, how it stands to the one in question, what becomes of the two, and who said so."""

    other: Memory
    judged: Judgement
    outcome: Outcome
    by: str
    is_todo: bool = False


@dataclass(frozen=True, slots=True)
class Looked:
    """A memory as it was when a model was asked, and what it said; ``is_claimless``: that it claims nothing."""

    memory: Memory
    claim: Claim | None
    found: tuple[Found, ...]
    is_claimless: bool = False


def judge_waiting(
    context: Context, *, background: bool = True, seconds: float = math.inf, on_progress: OnProgress | None = None
) -> JudgeReport:
    """Judge the memories that wait, the longest waiting first, for so many seconds at most.

    ``background``: nobody asked for it in so many words; else what failed is tried at once. One process at a time does
    it. A model that does not answer, or a budget that is spent, ends it: the rest waits for another time.
    """
    waiting = context.claims.waiting().count
    if not (waits_for_models(context) if background else may_judge(context)):
        return JudgeReport(waiting=waiting, note="no language model is set for it" if waiting else None)
    lock = FileLock(context.settings.home / JUDGE_LOCK)
    if not lock.acquire():
        return JudgeReport(waiting=waiting, note="another process is at it")
    try:
        catch_up(context)
        run = _Run(context, background, time.monotonic() + seconds, on_progress)
        embed_memories(context)
        if not background:
            context.claims.hurry()
        try:
            run.go()
        finally:
            run.close()
        embed_memories(context)  # what was written anew
    finally:
        lock.release()
    return JudgeReport(**run.counts, waiting=context.claims.waiting().count, note=run.note)


@dataclass
class _Run:
    """Judging that goes on."""

    context: Context
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
        total = self.context.claims.waiting().count
        while due := self.context.claims.due(self.now(), _PORTION):
            for memory_id, tries in due:
                if self.note or time.monotonic() >= self.deadline:
                    return
                self.one(memory_id, tries)
                if self.on_progress:
                    self.on_progress(Progress("judging", self.counts.get("judged", 0), total))

    def now(self) -> int:
        return to_ms(self.context.now()) or 0

    def one(self, memory_id: str, tries: int) -> None:
        """One memory: judged, tried again later, or given up."""
        context = self.context
        try:
            with tracing(context, TraceKind.CONTRADICTION, memory_id) as trace:
                looked = self.look(memory_id)
                for one in looked.found if looked else ():
                    trace.add(_step(looked.memory if looked else one.other, one))
            if looked is None:
                context.claims.done(memory_id)
            elif self.apply(looked):
                self.count("judged")
            else:
                self.again(memory_id, tries, "it was changed while a model was asked")
        except (AnswerUnusable, EditConflict) as error:
            self.again(memory_id, tries, error.message)
        except ModelUnavailable as error:
            self.stop(error.message, int((error.after_seconds or 0) * 1000) or _BACKOFF_MS)
        except BudgetSpent as error:
            self.stop(error.message, _BUDGET_MS)
        except ModelRefused as error:
            self.stop(error.message, _REFUSED_MS)

    def again(self, memory_id: str, tries: int, why: str) -> None:
        """Try a memory again later, unless that was done often enough."""
        if tries + 1 >= MOST_TRIES:
            self.context.claims.done(memory_id)
            self.count("given_up")
            return
        self.context.claims.postpone(memory_id, self.now() + _BACKOFF_MS * 2**tries, why)

    def stop(self, why: str, wait_ms: int) -> None:
        """Leave all that waits for another time."""
        self.note = why
        self.context.claims.postpone_all(self.now() + wait_ms, why)

    def model(self, task: Task) -> LanguageModel | None:
        """The model of a task, opened once."""
        if task not in self.models:
            self.models[task] = model_for(self.context, task, background=self.background)
        return self.models[task]

    def close(self) -> None:
        """Let go of the models."""
        for model in self.models.values():
            if model:
                model.close()

    def look(self, memory_id: str) -> Looked | None:
        """What models and rules say of a memory; ``None`` where it is not there any more, or holds no more."""
        context = self.context
        memory = context.memories.find(memory_id)
        if memory is None or memory.retired or memory.superseded_by:
            return None
        claim, told = memory.claim, self.model(Task.CLAIMS) if memory.claim is None else None
        if told:
            claim = tell_claim(context, told, memory)
        claiming = replace(memory, claim=claim)
        others = rivals(context, claiming)
        judge = self.model(Task.CONTRADICTION) if others else None
        found = {one.other.id: one for one in _by_rules(claiming, others, is_alone=judge is None)}
        rest = [other for other in others if other.id not in found]
        if judge and rest:
            found |= {one.other.id: one for one in _judged(context, judge, claiming, rest)}
        done = self.todos(claiming)
        is_claimless = told is not None and claim is None
        return Looked(memory, claim if told else None, (*found.values(), *done), is_claimless)

    def todos(self, memory: Memory) -> list[Found]:
        """The open todos that a memory shows to be done."""
        candidates = open_todos(self.context, memory)
        model = self.model(Task.TODOS) if candidates else None
        if model is None:
            return []
        answer = ask(model, todos_prompt(memory, candidates, schema_of(TodosAnswer)), TodosAnswer)
        found = []
        for todo, quote in finished(answer, memory, candidates):
            is_ours = last_said(memory) >= last_said(todo)
            is_sure = memory.speaker is Speaker.OWNER or todo.speaker is not Speaker.OWNER
            outcome = Outcome.SUPERSEDED if is_sure else Outcome.PENDING
            if is_ours:
                judged = Judgement(Bearing.SUPERSEDES, 1.0, f"done: {quote}")
                found.append(Found(todo, judged, outcome, model.name, is_todo=True))
        return found

    def apply(self, looked: Looked) -> bool:
        """Write what was found; ``False`` where a memory is not what it was when a model was asked."""
        context = self.context
        with context.vault_lock:
            catch_up(context)
            present = context.memories.find(looked.memory.id)
            if present is None or present.retired or present.superseded_by:
                context.claims.done(looked.memory.id)
                return True
            if not _is_as_it_was(looked.memory, present):
                return False
            found = [one for one in looked.found if self.holds(present, one)]
            with (
                context.database.transaction(),
                operating(context, JUDGE, subject=present.subject),
            ):
                change = _Change(context, present, looked.claim)
                for one in sorted(found, key=lambda one: _order(present, one)):
                    change.take(one)
                change.write()
                if looked.is_claimless:
                    context.claims.claimless(present.id)
                if len(found) == len(looked.found):
                    context.claims.done(present.id)
            apply_intents(context)
            if change.pending:
                queue_reviews(context)
        self.count("claims", int(looked.claim is not None))
        self.count("superseded", change.superseded)
        self.count("conflicts", change.pending)
        self.count("todos", change.todos)
        return len(found) == len(looked.found)

    def holds(self, memory: Memory, one: Found) -> bool:
        """Whether the other memory is what it was, and nobody settled the pair meanwhile."""
        other = self.context.memories.find(one.other.id)
        is_open = other is not None and not is_settled(memory, other, self.context.claims.judged())
        return other is not None and is_open and _is_as_it_was(one.other, other)


def _by_rules(memory: Memory, others: Sequence[Memory], *, is_alone: bool) -> list[Found]:
    """Where two memories claim something of one key, the rules decide first, and no model is asked.

    ``is_alone``: no model judges, so that other values of one key are for a person to settle.
    """
    claim = memory.claim
    same = {other.id: other.claim for other in others if claim and other.claim and other.claim.key == claim.key}
    found = []
    for one in compare(memory, [other for other in others if other.id in same]):
        theirs = same[one.other.id]
        if one.verdict.relation is Relation.SUPERSEDES:
            judged = Judgement(Bearing.SUPERSEDES, 1.0, one.verdict.reason)
            found.append(Found(one.other, judged, Outcome.SUPERSEDED, _BY_RULES))
        elif is_alone and claim and theirs and normalise(theirs.object) != normalise(claim.object):
            why = f"{claim.key}: {theirs.object} and {claim.object}"
            judged = Judgement(Bearing.CONTRADICTS, min(theirs.confidence, claim.confidence), why)
            found.append(Found(one.other, judged, Outcome.PENDING, _BY_RULES))
    return found


def _judged(context: Context, model: LanguageModel, memory: Memory, others: Sequence[Memory]) -> list[Found]:
    days = [(other, last_said(other).date()) for other in others]
    prompt = judge_prompt(memory, last_said(memory).date(), days, schema_of(JudgeAnswer))
    answer = ask(model, prompt, JudgeAnswer, lambda answer: judgements(answer, len(others)))
    found = judgements(answer, len(others))
    sure = context.settings["contradiction.auto_supersede"]
    judged = []
    for other, one in zip(others, found, strict=True):
        one = replace(one, explanation=context.redactor.clean(one.explanation))
        earlier, later = in_order(memory, other)
        judged.append(Found(other, one, resolve(earlier, later, one, sure), model.name))
    return judged


def in_order(memory: Memory, other: Memory) -> tuple[Memory, Memory]:
    """Two memories, the one that was said earlier first."""
    return (other, memory) if last_said(memory) >= last_said(other) else (memory, other)


def _order(memory: Memory, one: Found) -> tuple[bool, bool]:
    """What ends the memory in question comes first: then it ends no other."""
    is_later = in_order(memory, one.other)[1] is memory
    return is_later, one.outcome is not Outcome.SUPERSEDED


def _is_as_it_was(before: Memory, now: Memory) -> bool:
    """Whether nothing of a memory changed that a model saw or that decides; where it was said again does not count."""
    return replace(before, links=(), confirmed=(), claim=None) == replace(now, links=(), confirmed=(), claim=None)


def _step(memory: Memory, one: Found) -> Step:
    said = f"{one.judged.bearing.value} ({one.judged.confidence:.2f}): {one.judged.explanation}"
    return Step("judged", one.other.subject, f"{said} → {one.outcome.value}", refs=(memory.id, one.other.id))


@dataclass
class _Change:
    """What becomes of one memory and others, as they are to be written."""

    context: Context
    memory: Memory
    claim: Claim | None
    others: dict[str, Memory] = field(default_factory=dict)
    entries: list[ledger.Entry] = field(default_factory=list)
    kept: list[tuple[Memory, Memory, Found]] = field(default_factory=list)
    calmed: list[str] = field(default_factory=list)
    superseded: int = 0
    pending: int = 0
    todos: int = 0

    def take(self, one: Found) -> None:
        """Let one judgement have its effect; once the memory in question is ended, it has none."""
        if self.memory.superseded_by:
            return
        other = self.context.memories.find(one.other.id) or one.other
        earlier, later = in_order(self.memory, other)
        if one.outcome is Outcome.SUPERSEDED:
            self._end(earlier, without_doubt(later, earlier.id), one)
        elif one.outcome is Outcome.PENDING:
            self._doubt(earlier, without_doubt(later, earlier.id), one)
        elif without_doubt(later, earlier.id) != later and one.judged.confidence > AUTO_SUPERSEDE:
            self._calm(earlier, without_doubt(later, earlier.id), one)

    def _calm(self, earlier: Memory, later: Memory, one: Found) -> None:
        """What the rules doubted holds, as the model sees it."""
        self._set(later)
        told = {"choice": "keep-both", "relation": one.judged.bearing.value, "confidence": one.judged.confidence}
        self.entries.append(
            entry(
                self.context, RESOLVE, memory=earlier.id, by=later.id, judge=one.by, reason=one.judged.explanation,
                **told,
            )
        )  # fmt: skip
        self.calmed.append(earlier.id)

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
        if one.by != _BY_RULES:
            told |= {"relation": one.judged.bearing.value, "confidence": one.judged.confidence}
        return entry(self.context, "supersede", memory=earlier.id, by=later.id, **told)

    def write(self) -> None:
        """Write all of it. Call in a transaction, within an operation."""
        context = self.context
        before = {memory.id: memory for memory in context.memories.in_any_state([self.memory.id, *self.others])}
        claiming = replace(self.memory, claim=self.claim or self.memory.claim)
        if self.memory == before[self.memory.id]:
            if self.claim:
                intend_claim(context, claiming)
            changed = []
        else:
            changed = [claiming]
        changed += [memory for memory in self.others.values() if memory != before.get(memory.id)]
        if changed:
            commit(context, changed, self.entries)
        at = to_ms(context.now()) or 0
        for earlier, later, one in self.kept:
            judged = Judged(one.judged.bearing.value, one.judged.confidence, one.by, None)
            context.claims.keep(earlier.id, later.id, judged, at)
            if one.judged.bearing is Bearing.CONTRADICTS and not outranks(earlier, later):
                context.claims.contradict(earlier.id)
        for memory_id in self.calmed:
            if not context.reviews.doubts([memory_id]):
                context.reviews.dismiss_doubt(memory_id, at)
        explain(context, self._why())

    def _why(self) -> str | None:
        said = {
            "superseded": self.superseded,
            "in doubt": self.pending,
            "in doubt no more": len(self.calmed),
            "done": self.todos,
            "claim": int(bool(self.claim)),
        }
        return ", ".join(f"{number} {what}" for what, number in said.items() if number) or None
