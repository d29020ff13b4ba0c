"""Review requests, judgement of new memories, conflicts and candidates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import to_ms
from nacre.base.locks import FileLock
from nacre.base.text import count, normalise, shorten
from nacre.data.history import JUDGE_LOCK
from nacre.errors import (
    BudgetSpentError,
    ConflictError,
    DepartedError,
    EditConflictError,
    InvalidInputError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    NotFoundError,
    PromptTooLongError,
    UnusableAnswerError,
)
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.home.spending import Answer, ask_all, is_final, may_judge, model_for, waits_for_models
from nacre.home.views import Choice, Pair
from nacre.learn import explicit, sentences
from nacre.llm.failures import ask
from nacre.memories.compare import (
    Bearing,
    JudgeAnswer,
    Judgement,
    Resolution,
    TodosAnswer,
    find_finished,
    judge_prompt,
    judgements,
    todos_prompt,
)
from nacre.memories.compare import resolve as resolution_of
from nacre.memories.edit import catch_up
from nacre.memories.judge import (
    APART,
    SUPERSEDES,
    Action,
    Decision,
    Relation,
    add_doubt,
    compare,
    mark_ended,
    outranks,
    release,
    without_doubt,
)
from nacre.memories.placement import await_models, place, unite
from nacre.memories.store import get, queue_reviews, refuse_broken
from nacre.memories.vectors import embed_memories
from nacre.operations import operation
from nacre.protocols import LanguageModel
from nacre.review import claims
from nacre.review import judgements as review_judgements
from nacre.store.review import Due
from nacre.values.memory import (
    DROP,
    Claim,
    Confirmation,
    HeldCandidate,
    Link,
    Memory,
    Retirement,
    by_id,
)
from nacre.values.reports import OnProgress, Progress, StoreOutcome
from nacre.values.review import JudgedPair, Reason
from nacre.values.session import Task, Trust
from nacre.vault import files

Item = Annotated[
    str,
    bounds(
        "The id of a candidate or memory, or of a conflict: both memories' ids joined by +, or one if unambiguous."
    ),
]


Items = Annotated[tuple[Item, ...], bounds("Ids of the items.", min_length=1)]


GapReference = Annotated[str, bounds("The gap, by its id or the id of any of its cases.")]


# -- Judging pending memories -------------------------------------------------
# Memories are judged in small groups. Claims are extracted first. Then nacre's home is read, before
# parallel model calls, so that the order of the answers does not matter. Nothing is written here.


TOGETHER = 6
"""Number of memories judged in one group."""

AT_ONCE = 3
"""Maximum number of parallel questions to a model."""

BY_RULES = "rules"

Models = Callable[[Task], LanguageModel | None]
"""Function that returns the model of a task, or ``None``. Raises ModelRefusedError."""


@frozen
class PairFinding:
    """The judgement of two memories, its consequence, and who made it."""

    other: Memory
    judged: Judgement
    outcome: Resolution
    by: str
    is_todo: bool = False


@dataclass(slots=True)
class JudgedMemory:
    """A memory to judge, with the models' answers.

    ``memory``: the memory before the model calls. ``is_reworded``: True if the text has changed
    since the claim was extracted. ``is_claimless``: True if a model found no claim. ``error``: the
    reason for a missing answer. ``is_partial``: True if a comparison with an earlier memory failed.
    ``is_left``: True if no model was available.
    """

    memory: Memory
    is_reworded: bool = False
    claim: Claim | None = None
    findings: tuple[PairFinding, ...] = ()
    is_claimless: bool = False
    error: NacreError | None = None
    is_partial: bool = False
    is_left: bool = False

    @property
    def is_open(self) -> bool:
        """True if further questions can be asked."""
        return self.error is None and not self.is_left

    @property
    def claiming(self) -> Memory:
        is_told = self.claim or self.is_claimless
        return replace(self.memory, claim=self.claim) if is_told else self.memory


def look_at(home: Home, looked: Sequence[JudgedMemory], models: Models) -> None:
    """Judge each memory and store the results in ``looked``. Raises ModelRefusedError.

    The caller must not hold a lock. Later memories are compared with earlier ones.
    """
    _extract_claims(home, looked, models)
    questions = _Asking(home, models)
    for item in looked:
        if item.is_open:
            questions.about_rivals(item)
            questions.about_todos(item)
    questions.ask()


def _extract_claims(home: Home, looked: Sequence[JudgedMemory], models: Models) -> None:
    unclaimed = [item for item in looked if item.memory.claim is None or item.is_reworded]
    model = models(Task.CLAIMS) if unclaimed else None
    if model is None:
        return
    names: dict[str, None] = {}
    for at, item in enumerate(unclaimed):
        try:
            item.claim = claims.tell_claim(home, model, item.memory, also_known=tuple(names))
        except (
            UnusableAnswerError,
            ModelUnavailableError,
            ModelRefusedError,
            BudgetSpentError,
        ) as error:
            item.error = error
            if is_final(error):
                for unasked in unclaimed[at + 1 :]:
                    unasked.is_left = True
                return
            continue
        item.is_claimless = item.claim is None
        names |= {item.claim.entity: None} if item.claim else {}


class _Asking:
    """The questions about a group of memories."""

    def __init__(self, home: Home, models: Models) -> None:
        self._home = home
        self._models = models
        self._questions: list[tuple[JudgedMemory, Callable[[], Sequence[PairFinding]]]] = []
        self._earlier: list[Memory] = []
        self._pairs: dict[frozenset[str], JudgedMemory] = {}
        self._repeated: list[tuple[JudgedMemory, JudgedMemory]] = []

    def about_rivals(self, item: JudgedMemory) -> None:
        """Queue questions about memories that might contradict a memory.

        No pair is queued twice.
        """
        memory = item.claiming
        others = review_judgements.rivals(self._home, memory, beside=self._earlier)
        judge = self._models(Task.CONTRADICTION) if others else None
        item.findings = tuple(_by_rules(memory, others, is_alone=judge is None))
        self._earlier.append(memory)
        settled = {finding.other.id for finding in item.findings}
        unsettled = {}
        for other in others:
            pair = frozenset((memory.id, other.id))
            if pair in self._pairs and other.id not in settled:
                self._repeated.append((item, self._pairs[pair]))
            elif other.id not in settled:
                unsettled[pair] = other
        if judge and unsettled:
            self._pairs |= dict.fromkeys(unsettled, item)
            rivals = [*unsettled.values()]
            self._questions.append(
                (item, partial(_judge_rivals, self._home, judge, memory, rivals))
            )

    def about_todos(self, item: JudgedMemory) -> None:
        """Queue a question about todos that the memory might complete."""
        candidates = review_judgements.open_todos(self._home, item.memory)
        model = self._models(Task.TODOS) if candidates else None
        if model:
            self._questions.append((item, partial(_find_finished, model, item.memory, candidates)))

    def ask(self) -> None:
        """Ask all questions and store the answers.

        If a question about a pair fails, the later memory of the pair is marked as partial.
        """
        answers = ask_all(self._home, [question for _, question in self._questions], AT_ONCE)
        for (item, _), answer in zip(self._questions, answers, strict=True):
            if isinstance(answer, Answer):
                item.findings += tuple(answer.value)
            else:
                item.error = item.error or answer
                item.is_left = item.is_left or answer is None
        for later, earlier in self._repeated:
            later.is_partial = later.is_partial or not earlier.is_open


def _by_rules(memory: Memory, others: Sequence[Memory], *, is_alone: bool) -> list[PairFinding]:
    """Compare a memory by rules with others whose claims have the same key.

    ``is_alone``: True if no model judges. Then a person must decide between different values.
    """
    claim = memory.claim
    same = {
        other.id: other.claim
        for other in others
        if claim and other.claim and other.claim.key == claim.key
    }
    findings = []
    for comparison in compare(memory, [other for other in others if other.id in same]):
        other_claim = same[comparison.other.id]
        if comparison.verdict.relation is Relation.SUPERSEDES:
            judged = Judgement(Bearing.SUPERSEDES, 1.0, comparison.verdict.reason)
            findings.append(PairFinding(comparison.other, judged, Resolution.SUPERSEDED, BY_RULES))
        elif (
            is_alone
            and claim
            and other_claim
            and normalise(other_claim.object) != normalise(claim.object)
        ):
            why = f"{claim.key}: {other_claim.object} and {claim.object}"
            judged = Judgement(
                Bearing.CONTRADICTS, min(other_claim.confidence, claim.confidence), why
            )
            findings.append(PairFinding(comparison.other, judged, Resolution.PENDING, BY_RULES))
    return findings


def _judge_rivals(
    home: Home, model: LanguageModel, memory: Memory, others: Sequence[Memory]
) -> list[PairFinding]:
    prompt = judge_prompt(memory, others)
    answer = ask(model, prompt, JudgeAnswer, lambda answer: judgements(answer, len(others)))
    answers = judgements(answer, len(others))
    findings = []
    for other, judgement in zip(others, answers, strict=True):
        judgement = replace(judgement, explanation=home.redactor.clean(judgement.explanation))
        earlier, later = in_order(memory, other)
        findings.append(
            PairFinding(other, judgement, resolution_of(earlier, later, judgement), model.name)
        )
    return findings


def _find_finished(
    model: LanguageModel, memory: Memory, candidates: Sequence[Memory]
) -> list[PairFinding]:
    """Return a finding for each open todo that is done according to a memory."""
    answer = ask(model, todos_prompt(memory, candidates), TodosAnswer)
    findings = []
    for todo, quote in find_finished(answer, memory, candidates):
        is_sure = memory.is_owners or not todo.is_owners
        outcome = Resolution.SUPERSEDED if is_sure else Resolution.PENDING
        if memory.is_said_after(todo):
            judgement = Judgement(Bearing.SUPERSEDES, 1.0, f"done: {quote}")
            findings.append(PairFinding(todo, judgement, outcome, model.name, is_todo=True))
    return findings


def in_order(memory: Memory, other: Memory) -> tuple[Memory, Memory]:
    """Return two memories, starting with the earlier statement."""
    return (other, memory) if memory.is_said_after(other) else (memory, other)


# -- Merging into a second memory ---------------------------------------------


_BY = "you"
_REASON = "in review"


def target_of(home: Home, reference: str, memory: Memory) -> Memory:
    """Return the memory to merge into. Raises NotFoundError, ConflictError, InvalidMemoryError."""
    target = get(home, reference)
    if target.id == memory.id or not target.is_active:
        why = "the same memory" if target.id == memory.id else "superseded or retired"
        raise ConflictError(
            f"{target.subject!r} is {why}",
            hint="merge it into another memory; nacre list shows ids",
        )
    refuse_broken(home, target)
    return target


def words_of_both(target: Memory, memory: Memory) -> str:
    """Return the joined text of two memories, or the target's text if it contains the other text."""
    if normalise(memory.content) in normalise(target.content):
        return target.content
    between = "\n\n" if "\n" in target.content + memory.content else " "
    return f"{target.content.rstrip()}{between}{memory.content.strip()}"


def merge_into(change: Change, target: Memory, memory: Memory, content: str | None) -> Memory:
    """Write the target with the given content, and mark the target as trusted.

    If ``content`` is None, join both texts. The target keeps its subject, kind and speaker. Tags
    and evidence are combined. Raises InvalidInputError, EditConflictError.
    """
    home = change.home
    words = (words_of_both(target, memory) if content is None else content).strip()
    if not words:
        raise InvalidInputError(
            "the memory has no content", hint="leave out the content to join both texts"
        )
    merged = unite(
        home, target, memory, Decision(Action.UPDATE, _BY, _REASON, target.id, merged=words)
    )
    merged = replace(merged.as_worded(), trust=Trust.TRUSTED, proposed=False, updated=home.now())
    change.put([merged])
    home.usage.confirm(target.id)
    home.comparisons.wait(merged.id)
    await_models(home, merged, target)
    return merged


# -- Conflicts ----------------------------------------------------------------
# A pending pair is a ``contradicts`` link that rules or a model added to the newer memory's front
# matter. The link survives a rebuild and a sync. Decisions are stored in both files and the ledger,
# and can be undone.


RESOLVE = "resolve"
"""Operation name of conflict decisions in the ledger."""

_CONTRADICTS = "contradicts"
_MIN_REFERENCE_CHARACTERS = 4


def list_pending(home: Home) -> list[Pair]:
    """Import manual edits, and return the pairs in conflict, oldest first."""
    catch_up(home)
    return list_waiting(home)


def list_waiting(home: Home) -> list[Pair]:
    """Return the pairs in conflict without reading manual edits."""
    doubts = home.reviews.doubts()
    ids = sorted({memory for doubt in doubts for memory in (doubt.older, doubt.newer)})
    memories = by_id(home.memories.in_any_state(ids))
    judged = home.claims.judged()
    return [
        Pair(
            memories[doubt.older],
            memories[doubt.newer],
            doubt.reason,
            judged.get((doubt.older, doubt.newer)) or judged.get((doubt.newer, doubt.older)),
        )
        for doubt in doubts
    ]


def find(home: Home, reference: str) -> Pair:
    """Return the pair named by two ids joined with ``+``, or by an id that occurs in only one pair.

    Raises NotFoundError, ConflictError.
    """
    ends = [end.strip().lower() for end in reference.split("+")]
    pairs = []
    if len(ends) <= 2 and all(len(end) >= _MIN_REFERENCE_CHARACTERS for end in ends):
        pairs = [pair for pair in list_pending(home) if all(_is_in(pair, end) for end in ends)]
    if not pairs:
        raise NotFoundError(
            f"there is no conflict {reference!r}", hint="nacre review shows pending items"
        )
    if len(pairs) > 1:
        names = ", ".join(pair.id for pair in pairs)
        raise ConflictError(
            f"{reference!r} matches several conflicts: {names}", hint="give the id of one of them"
        )
    return pairs[0]


def _is_in(pair: Pair, reference: str) -> bool:
    return any(
        memory.id.endswith(reference) or memory.id.startswith(reference)
        for memory in (pair.older, pair.newer)
    )


def resolve(home: Home, pair: Pair, choice: Choice, reason: str | None = None) -> Pair:
    """Settle a pair as a person decided, and return both memories.

    With ``keep-new``, the newer memory supersedes the older memory. With ``keep-old``, the newer
    memory is retired. With ``keep-both``, both memories stay and no longer count as a conflict.
    Raises ConflictError if the pair is already settled.
    """
    home.actor.require_owner("nacre review resolve")
    clean = home.redactor.clean(reason) if reason else None
    why = f"{choice.value}: {clean}" if clean else choice.value
    with home.change(RESOLVE, subject=pair.older.subject, why=why) as change:
        catch_up(home)
        return settle(change, pair, choice, clean)


def settle(change: Change, pair: Pair, choice: Choice, reason: str | None = None) -> Pair:
    """Settle a conflict between two memories as part of ``change``.

    The caller must import manual edits first. ``reason`` must be redacted.
    """
    home = change.home
    older, newer = (home.memories.find(memory.id) for memory in (pair.older, pair.newer))
    if (
        older is None
        or newer is None
        or not (older.is_active and newer.is_active)
        or without_doubt(newer, older.id) == newer
    ):
        raise ConflictError(f"conflict {pair.id} is already settled", hint="nacre log shows how")
    others: list[Memory] = []
    why = next((link.reason for link in newer.links if link.to == older.id), None)
    older, newer = without_doubt(older, newer.id), without_doubt(newer, older.id)
    if choice is Choice.KEEP_NEW:
        newer = replace(newer, links=(*newer.links, Link(SUPERSEDES, older.id, why)))
        older = mark_ended(older, newer)
    elif choice is Choice.KEEP_OLD:
        cause = reason or pair.reason
        text = f"{older.id[-8:]} holds instead" + (f": {cause}" if cause else "")
        newer = replace(newer, retired=Retirement(home.now(), text))
        others = [memory for memory in release(home, [newer]) if memory.id != older.id]
    else:
        older = replace(older, links=(*older.links, Link(APART, newer.id)))
    note = change.entry(RESOLVE, memory=older.id, by=newer.id, choice=choice.value, reason=reason)
    change.put([older, newer, *others], [note])
    _close(change, replace(pair, older=older, newer=newer), choice)
    return replace(pair, older=older, newer=newer)


def _close(change: Change, pair: Pair, choice: Choice) -> None:
    """Close a settled conflict.

    If the older memory is in no other conflict, its review ends, too.
    """
    home = change.home
    judged = home.claims.judged().get((pair.older.id, pair.newer.id))
    with home.transaction():
        home.claims.settled(pair.older.id, pair.newer.id)
        was_counted = (
            judged and judged.relation == _CONTRADICTS and not outranks(pair.older, pair.newer)
        )
        if was_counted and choice is not Choice.KEEP_NEW:
            home.claims.uncontradict(pair.older.id)
        if not home.reviews.doubts([pair.older.id]):
            home.reviews.settle(pair.older.id, Reason.CONTRADICTED, to_ms(change.at) or 0)


# -- The queue of new memories ------------------------------------------------
# The queue survives a crash or a spent budget. Model calls run without a lock or transaction.
# Memories that change during a call are judged again.


JUDGE = "judge"
"""Operation name of model judgements in the ledger."""

MOST_TRIES = 5
"""A queued memory is abandoned after this many failed attempts."""

_BACKOFF_MS = 60_000
_REFUSED_MS = 3_600_000
_BUDGET_MS = 3_600_000


@frozen
class JudgeReport:
    """The results of judging queued memories.

    ``todos``: number of completed todos. ``given_up``: number of memories that are not tried again.
    ``note``: the reason for an early stop.
    """

    judged: int = 0
    claims: int = 0
    superseded: int = 0
    conflicts: int = 0
    todos: int = 0
    given_up: int = 0
    waiting: int = 0
    note: str | None = None


@operation("review-judge", writes=True, takes_long=True)
def judge_waiting(
    home: Home,
    *,
    background: Annotated[
        bool,
        bounds("Run as background work. Otherwise failed pairs are retried at once."),
    ] = True,
    seconds: Annotated[
        float | None, bounds("Maximum time in seconds; none: until all are judged.")
    ] = None,
    on_progress: OnProgress | None = None,
) -> JudgeReport:
    """Judge the queued memories with a model, the longest waiting first, for at most ``seconds``.

    If ``background`` is True, models must be permitted to run in the background. If ``background``
    is False, failed memories are retried immediately. Only one process can judge at a time. The run
    stops if a model is unavailable or the budget is spent.
    """
    waiting = home.claims.waiting().count
    if not (waits_for_models(home) if background else may_judge(home)):
        return JudgeReport(
            waiting=waiting, note="no language model is set for it" if waiting else None
        )
    lock = FileLock(home.settings.home / JUDGE_LOCK)
    if not lock.acquire():
        return JudgeReport(waiting=waiting, note="another process is running it")
    try:
        catch_up(home)
        run = _Run(
            home,
            background,
            time.monotonic() + (math.inf if seconds is None else seconds),
            on_progress,
        )
        embed_memories(home)
        if not background:
            home.claims.hurry()
        try:
            run.judge_all()
        finally:
            for model in filter(None, run.models.values()):
                model.close()
        embed_memories(home)  # memories written above
    finally:
        lock.release()
    return JudgeReport(**run.counts, waiting=home.claims.waiting().count, note=run.note)


@dataclass
class _Run:
    """One run that judges queued memories."""

    home: Home
    background: bool
    deadline: float
    on_progress: OnProgress | None
    note: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    models: dict[Task, LanguageModel | None] = field(default_factory=dict)

    def count(self, name: str, by: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + by

    def judge_all(self) -> None:
        """Judge memories until no memory is due, time is up or a model fails."""
        total = self.home.claims.waiting().count
        while due := self.home.claims.due(self.now(), TOGETHER):
            if self.note or time.monotonic() >= self.deadline:
                return
            self.judge_batch(due)
            if self.on_progress:
                self.on_progress(Progress("judging", self.counts.get("judged", 0), total))

    def now(self) -> int:
        return self.home.now_ms()

    def judge_batch(self, due: Sequence[Due]) -> None:
        """Ask models about a few memories in parallel, then write the results in order."""
        waiting = {entry.memory: entry for entry in due}
        items = []
        for entry in due:
            memory = self.home.memories.find(entry.memory)
            if memory is None or not memory.is_active:
                self.home.claims.done(entry.memory)
            else:
                items.append(JudgedMemory(memory, is_reworded=entry.reworded))
        try:
            look_at(self.home, items, self.model)
        except ModelRefusedError as error:
            self.stop(error.message, _REFUSED_MS)
            return
        for item in items:
            self.finish(item, waiting[item.memory.id].tries)

    def finish(self, item: JudgedMemory, tries: int) -> None:
        memory_id = item.memory.id
        try:
            if item.error:
                raise item.error
            if item.is_left:
                return
            if self.apply(item):
                self.count("judged")
            elif not item.is_partial:
                self.retry(memory_id, tries, "it changed while a model was asked")
        except (PromptTooLongError, UnusableAnswerError, EditConflictError) as error:
            self.retry(memory_id, tries, error.message)
        except ModelUnavailableError as error:
            self.stop(error.message, _BACKOFF_MS)
        except BudgetSpentError as error:
            self.stop(error.message, _BUDGET_MS)
        except ModelRefusedError as error:
            self.stop(error.message, _REFUSED_MS)

    def retry(self, memory_id: str, tries: int, why: str) -> None:
        """Postpone a memory, or abandon it after ``MOST_TRIES``."""
        if tries + 1 >= MOST_TRIES:
            self.home.claims.done(memory_id)
            self.count("given_up")
            return
        self.home.claims.postpone(memory_id, self.now() + _BACKOFF_MS * 2**tries, why)

    def stop(self, why: str, wait_ms: int) -> None:
        """Postpone the whole queue."""
        self.note = why
        self.home.claims.postpone_all(self.now() + wait_ms, why)

    def model(self, task: Task) -> LanguageModel | None:
        if task not in self.models:
            self.models[task] = model_for(self.home, task, background=self.background)
        return self.models[task]

    def apply(self, item: JudgedMemory) -> bool:
        """Write the findings. Return ``False`` if the memory changed meanwhile."""
        home = self.home
        with home.change(JUDGE) as change:
            catch_up(home)
            present = home.memories.find(item.memory.id)
            if present is None or not present.is_active:
                home.claims.done(item.memory.id)
                return True
            if not _is_unchanged(item.memory, present):
                return False
            findings = [
                finding for finding in item.findings if self.still_applies(present, finding)
            ]
            is_whole = not item.is_partial and not any(
                self.is_changed(finding.other) for finding in item.findings
            )
            change.describe(subject=present.subject)
            judgement = _Judgement(change, present, item.claim, is_claimless=item.is_claimless)
            with change.transaction():
                # A memory that is superseded supersedes nothing, so these findings come first.
                for finding in sorted(
                    findings,
                    key=lambda finding: (
                        in_order(present, finding.other)[1] is present,
                        finding.outcome is not Resolution.SUPERSEDED,
                    ),
                ):
                    judgement.take(finding)
                judgement.write()
                if is_whole:
                    home.claims.done(present.id)
            if judgement.pending:
                queue_reviews(home)
        self.count("claims", int(item.claim is not None))
        self.count("superseded", judgement.superseded)
        self.count("conflicts", judgement.pending)
        self.count("todos", judgement.todos)
        return is_whole

    def is_changed(self, before: Memory) -> bool:
        """Return True if a memory has changed since the comparison and must be judged again."""
        other = self.home.memories.find(before.id)
        return other is not None and other.is_active and not _is_unchanged(before, other)

    def still_applies(self, memory: Memory, finding: PairFinding) -> bool:
        """Return True if the other memory is unchanged and the pair is not settled yet."""
        other = self.home.memories.find(finding.other.id)
        return (
            other is not None
            and not review_judgements.is_settled(memory, other, self.home.claims.judged())
            and _is_unchanged(finding.other, other)
        )


def _is_unchanged(before: Memory, now: Memory) -> bool:
    """Return True if a memory is unchanged, apart from links, claims and confirmations."""
    return replace(before, links=(), confirmed=(), claim=None) == replace(
        now, links=(), confirmed=(), claim=None
    )


@dataclass
class _Judgement:
    """The pending changes to the judged memory and to other memories."""

    change: Change
    memory: Memory
    claim: Claim | None
    is_claimless: bool = False
    others: dict[str, Memory] = field(default_factory=dict)
    entries: list[files.LedgerEntry] = field(default_factory=list)
    kept: list[tuple[Memory, Memory, PairFinding]] = field(default_factory=list)
    calmed: list[tuple[Memory, Memory]] = field(default_factory=list)
    superseded: int = 0
    pending: int = 0
    todos: int = 0

    def take(self, finding: PairFinding) -> None:
        """Apply a finding, unless the judged memory is already superseded."""
        if self.memory.superseded_by:
            return
        other = self.change.home.memories.find(finding.other.id) or finding.other
        before = first, second = in_order(self.memory, other)
        earlier, later = without_doubt(first, second.id), without_doubt(second, first.id)
        if finding.outcome is Resolution.SUPERSEDED:
            self._end(earlier, later, finding)
        elif finding.outcome is Resolution.PENDING:
            self._doubt(earlier, later, finding)
        elif finding.judged.says_both_hold and (earlier, later) != before:
            self._withdraw_doubt(earlier, later, finding)

    def _withdraw_doubt(self, earlier: Memory, later: Memory, finding: PairFinding) -> None:
        self._set(earlier, later)
        self.entries.append(
            self.change.entry(
                RESOLVE,
                memory=earlier.id,
                by=later.id,
                judge=finding.by,
                reason=finding.judged.explanation,
                choice="keep-both",
                relation=finding.judged.bearing.value,
                confidence=finding.judged.confidence,
            )
        )
        self.calmed.append((earlier, later))

    def _end(self, earlier: Memory, later: Memory, finding: PairFinding) -> None:
        reason = finding.judged.explanation or finding.judged.bearing.value
        later = replace(later, links=(*later.links, Link(SUPERSEDES, earlier.id, reason)))
        self._set(mark_ended(earlier, later), later)
        details: dict[str, Any] = {"reason": reason, "judge": finding.by}
        if finding.by != BY_RULES:
            details["relation"] = finding.judged.bearing.value
            details["confidence"] = finding.judged.confidence
        self.entries.append(
            self.change.entry("supersede", memory=earlier.id, by=later.id, **details)
        )
        self.superseded += not finding.is_todo
        self.todos += finding.is_todo

    def _doubt(self, earlier: Memory, later: Memory, finding: PairFinding) -> None:
        reason = finding.judged.explanation or finding.judged.bearing.value
        self._set(earlier, add_doubt(later, earlier.id, reason))
        self.kept.append((earlier, later, finding))
        self.pending += 1

    def _set(self, *memories: Memory) -> None:
        for memory in memories:
            if memory.id == self.memory.id:
                self.memory = memory
            else:
                self.others[memory.id] = memory

    def write(self) -> None:
        home = self.change.home
        involved = home.memories.in_any_state([self.memory.id, *self.others])
        before = by_id(involved)
        claiming = replace(
            self.memory, claim=None if self.is_claimless else self.claim or self.memory.claim
        )
        if self.memory == before[self.memory.id] and not (self.is_claimless and self.memory.claim):
            if self.claim:
                self.change.set_claim(claiming)
            changed = []
        else:
            changed = [claiming]
        changed += [memory for memory in self.others.values() if memory != before.get(memory.id)]
        if changed:
            self.change.put(changed, self.entries)
        at = home.now_ms()
        for earlier, later, finding in self.kept:
            judgement = JudgedPair(
                finding.judged.bearing.value, finding.judged.confidence, finding.by, None
            )
            home.claims.keep(earlier.id, later.id, judgement, at)
            if finding.judged.bearing is Bearing.CONTRADICTS and not outranks(earlier, later):
                home.claims.contradict(earlier.id)
        pairs = [*self.calmed, *((earlier, later) for earlier, later, _ in self.kept)]
        for memory in {memory.id: memory for pair in pairs for memory in pair}:
            if not home.reviews.doubts([memory]):
                home.reviews.settle(memory, Reason.CONTRADICTED, at)
        counts = {
            "superseded": self.superseded,
            "in doubt": self.pending,
            "no longer in doubt": len(self.calmed),
            "done": self.todos,
            "claim": int(bool(self.claim)),
        }
        why = ", ".join(f"{number} {label}" for label, number in counts.items() if number)
        self.change.explain(why or None)


# -- Candidates ---------------------------------------------------------------


_SUBJECT_CHARACTERS = 60
_LATER_CHARACTERS = 300


def keep_reason(candidate: HeldCandidate) -> str:
    """Return the reason that is recorded when a candidate is kept."""
    return f"candidate {candidate.memory.id[-8:]} kept in review"


def keep(
    home: Home,
    candidate: HeldCandidate,
    *,
    content: str | None = None,
    into: str | None = None,
    anyway: bool = False,
) -> StoreOutcome:
    """Turn a candidate into a memory, optionally with new text, or merge the candidate into a memory.

    The result is trusted. Raises NotFoundError, ConflictError, DepartedError unless ``anyway`` is set, and
    InvalidInputError for empty content or content that depends on missing context.
    """
    if into is not None:
        return _merge(home, candidate, into, content)
    memory = redact(home.redactor, _with_content(candidate.memory, content))
    if content is None and explicit.leans(memory.content, sentences.language_of(memory.content)):
        raise InvalidInputError(
            f"“{memory.content}” refers to something that it does not name",
            hint="name it: nacre review keep ID --content WORDS",
        )
    kept = replace(memory.as_worded(), trust=Trust.TRUSTED, proposed=False)
    if anyway:
        kept = replace(kept, confirmed=(*kept.confirmed, Confirmation(home.now())))
    elif later := review_judgements.find_departure(home, kept):
        raise DepartedError(
            f"on {later.at.astimezone():%Y-%m-%d}, after the candidate, you said: "
            f"“{shorten(later.text, _LATER_CHARACTERS)}”",
            hint="drop the candidate, or keep it with --anyway",
        )
    with (
        home.change("keep", subject=kept.subject, why=keep_reason(candidate)) as change,
        change.transaction(),
    ):
        outcome = place(change, kept, by_hand=True)
        _settle(change, candidate.memory)
    return outcome


def _merge(home: Home, candidate: HeldCandidate, into: str, content: str | None) -> StoreOutcome:
    with home.change("merge", why=keep_reason(candidate)) as change:
        catch_up(home)
        target = target_of(home, into, candidate.memory)
        change.describe(subject=target.subject)
        with change.transaction():
            merge_into(change, target, redact(home.redactor, candidate.memory), content)
            _settle(change, candidate.memory)
    return StoreOutcome("updated", target.id)


def _settle(change: Change, memory: Memory) -> None:
    now = to_ms(change.at) or 0
    change.home.candidates.settle(memory.id, now)
    change.home.candidates.blank(now)


def drop(home: Home, candidates: Sequence[HeldCandidate]) -> list[Memory]:
    """Drop candidates for good. The journal and history keep none of the text."""
    memories = [candidate.memory for candidate in candidates]
    with (
        home.change(DROP, subject=count(len(memories), "candidate")) as change,
        change.transaction(),
    ):
        change.note(DROP, candidates=sorted(memory.id for memory in memories))
        for memory in memories:
            _settle(change, memory)
    return memories


def find_candidates(home: Home, reference: str) -> HeldCandidate | None:
    """Return the candidate whose id starts or ends with ``reference``. Raises ConflictError."""
    return single(home.candidates.find(reference.strip()), reference)


def single(candidates: Sequence[HeldCandidate], reference: str) -> HeldCandidate | None:
    """Return the only candidate, if any. Raises ConflictError if there are several."""
    if len(candidates) > 1:
        raise ConflictError(
            f"{reference!r} matches several candidates", hint="give more characters of the id"
        )
    return next(iter(candidates), None)


def _with_content(memory: Memory, content: str | None) -> Memory:
    if content is None:
        return memory
    if not content.strip():
        raise InvalidInputError(
            "the memory has no content", hint="nacre review drop removes a candidate"
        )
    subject = shorten(content.strip().rstrip(".。"), _SUBJECT_CHARACTERS)
    return replace(memory, content=content.strip(), subject=subject)
