"""Coming in: a plan of what another memory holds, then its execution. A second import adds nothing.

What comes from outside is untrusted, whatever it says of itself, unless the owner says otherwise: it is searchable,
ends nothing that is there, and brings neither ledger nor project pages nor sessions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from nacre.dedup.comparison import SUPERSEDES, compare
from nacre.dedup.placement import await_models, place, put, write_touched
from nacre.dedup.supersession import agreed
from nacre.errors import MemoryInvalid
from nacre.home.change import Change, Run
from nacre.home.home import Home
from nacre.home.projects import known_or_named, read_pages, write_new_page
from nacre.home.redaction import clean_values, redacted
from nacre.indexing.vectors import embed_pending
from nacre.ingestion.ingest import ingest
from nacre.ingestion.requests import IngestOptions
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage
from nacre.portability.edits import edited_statements, is_untouched, origin_of
from nacre.portability.requests import ImportOptions
from nacre.portability.sources.registry import detect, get_source
from nacre.portability.sources.shape import ORIGIN
from nacre.portability.sources.source import Found, ImportSource, Operation, Page, Skipped, Talk, Transcript
from nacre.portability.sources.tree import Tree, open_tree
from nacre.storage.memories import memory_hash
from nacre.values.memory import MAX_BODY_BYTES, Memory
from nacre.values.reports import IngestReport, OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Trust
from nacre.vault import ledger
from nacre.vault.layout import LEDGER, slugify

BATCH = 20
"""Memories written at a time: others get their turn between."""

_ENTRIES = 50
_CANDIDATES = 12
_ENDING = frozenset({SUPERSEDES, "contradicts"})


class Action(StrEnum):
    """What becomes of a memory that is offered."""

    ADD = "add"
    UPDATE = "update"
    TRUST = "trust"
    BRING_BACK = "bring back"
    KNOWN = "known"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Step:
    """One memory, what is to become of it, and why; ``same_as`` is the id of the one it repeats."""

    memory: Memory
    action: Action
    reason: str | None = None
    usage: Usage | None = None
    same_as: str | None = None


@dataclass(slots=True)
class ImportPlan:
    """Everything that was found, and what is to become of it."""

    options: ImportOptions
    source: ImportSource
    steps: list[Step] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    entries: list[ledger.Entry] = field(default_factory=list)
    transcripts: list[Path] = field(default_factory=list)
    sessions: int = 0
    turns: int = 0

    def count(self, action: Action) -> int:
        """How many memories an action is planned for."""
        return sum(step.action is action for step in self.steps)

    @property
    def kinds(self) -> dict[str, int]:
        """How many memories of each kind are to be added."""
        return dict(Counter(step.memory.kind.value for step in self.steps if step.action is Action.ADD).most_common())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        todo = any(step.action not in (Action.KNOWN, Action.DUPLICATE) for step in self.steps)
        return not (todo or self.pages or self.entries or self.transcripts or self.sessions)


@dataclass(slots=True)
class ImportReport:
    """What was done. ``duplicates`` turned out to be repetitions only when they were compared with each other."""

    added: list[str] = field(default_factory=list)
    updated: int = 0
    trusted: int = 0
    brought_back: int = 0
    duplicates: int = 0
    pages: int = 0
    entries: int = 0
    sessions: int = 0
    turns: int = 0
    ingest: IngestReport | None = None


def plan_import(home: Home, options: ImportOptions) -> ImportPlan:
    """Look at what is there and decide what to do; nothing is changed.

    Raises NotFound, InvalidInput for what no source recognises or is damaged.
    """
    if options.trust:
        home.actor.require_owner("nacre import --trust")
    catch_up(home)
    fold_usage(home)
    tree = open_tree(options.path, home.redactor.clean)
    source = detect(tree) if options.source == "auto" else get_source(options.source)
    plan = ImportPlan(options, source)
    found: list[Found] = []
    for item in source.read(tree):
        if isinstance(item, Found):
            found.append(item)
        else:
            _note(home, plan, item)
    _only_new(home, plan)
    _withhold(plan)
    candidates = [shaped for item in found if (shaped := _candidate(home, plan, item))]
    _Sorter(home, plan, candidates).sort()
    return plan


def carry_out(home: Home, plan: ImportPlan, on_progress: OnProgress | None = None) -> ImportReport:
    """Do what is planned, a batch at a time, as one operation; what a crash leaves is a plan for the next import.

    Raises OwnerOnly where an agent imports conversations: the owner's words are learned from them.
    """
    if plan.transcripts:
        home.actor.require_owner("nacre import of conversations")
    with home.run("import", why=_why(plan)) as run:
        return _carry_out(home, run, plan, on_progress)


def _carry_out(home: Home, run: Run, plan: ImportPlan, on_progress: OnProgress | None) -> ImportReport:
    notify = on_progress or (lambda _: None)
    report = ImportReport()
    _write_pages(home, run, plan, report)
    _write_memories(home, run, plan, report, notify)
    _write_entries(run, plan)
    report.entries = len(plan.entries)
    if plan.sessions:
        _write_talks(home, plan, report, notify)
    if plan.transcripts:
        ingested = IngestOptions(paths=tuple(plan.transcripts), vectors=plan.options.vectors)
        report.ingest = ingest(home, ingested, on_progress, run=run)
    elif plan.options.vectors and (report.added or report.brought_back):
        embed_pending(home, notify)
    return report


def _note(home: Home, plan: ImportPlan, item: object) -> None:
    match item:
        case Skipped():
            plan.skipped.append(item)
        case Transcript(path):
            plan.transcripts.append(path)
        case Talk():
            if home.sessions.find(item.session.id):
                return
            plan.sessions += 1
            plan.turns += len(item.turns)
        case Page(path):
            if home.vault.exists(path):
                plan.skipped.append(Skipped(path, "there is a page already"))
            else:
                plan.pages.append(item)
        case Operation(values):
            plan.entries += ledger.read(ledger.encode(clean_values(home.redactor, values)))


def _only_new(home: Home, plan: ImportPlan) -> None:
    """Ledger entries that this ledger does not have, each once."""
    try:
        known = {one.line() for one in ledger.read(home.vault.read(LEDGER))}
    except FileNotFoundError:
        known = set()
    plan.entries = list({line: one for one in plan.entries if (line := one.line()) not in known}.values())


def _withhold(plan: ImportPlan) -> None:
    """Without the owner's word, nothing comes in that says how nacre is to behave, or what was said to whom."""
    if plan.options.trust:
        return
    held = ((plan.pages, "project pages"), (plan.entries, "ledger entries"), (range(plan.sessions), "sessions"))
    for items, name in held:
        if items:
            plan.skipped.append(Skipped(f"{len(items)} {name}", "only with --trust"))
    plan.pages, plan.entries, plan.sessions, plan.turns = [], [], 0, 0


def _candidate(home: Home, plan: ImportPlan, item: Found) -> Step | None:
    """A memory as it may come in: without secrets, in its project, trusted only where the owner says so."""
    try:
        memory = redacted(home.redactor, item.memory)
        if len(memory.content.encode("utf-8", "replace")) > MAX_BODY_BYTES:
            raise MemoryInvalid("it is larger than 1 MB")
    except MemoryInvalid as error:
        plan.skipped.append(Skipped(item.memory.source.file or item.memory.id, error.message))
        return None
    project = home.redactor.clean(plan.options.project or "") or memory.project
    if project is None and item.cwd and not memory.inbox:
        project = known_or_named(home, Path(item.cwd))
    memory = replace(memory, project=slugify(project) or None if project else None)
    is_own = plan.source.name == "nacre"
    trust = (memory.trust if is_own else Trust.TRUSTED) if plan.options.trust else Trust.UNTRUSTED
    memory = replace(memory, trust=trust)
    return Step(memory, Action.ADD, usage=item.usage if plan.options.trust else None)


class _Sorter:
    """Tells what is new from what is known, and maps links to what is there."""

    def __init__(self, home: Home, plan: ImportPlan, candidates: Sequence[Step]) -> None:
        self.home = home
        self.plan = plan
        self.candidates = candidates
        self.offered: dict[bytes, str] = {}
        self.edited = edited_statements(home, plan.source.name, [step.memory for step in candidates])

    def sort(self) -> None:
        taken: set[str] = set()
        for step in self.candidates:
            if step.memory.id in taken:
                self.plan.skipped.append(Skipped(step.memory.id, "offered twice under one id"))
                continue
            taken.add(step.memory.id)
            self.plan.steps.append(self.decide(step))
        same = {step.memory.id: step.same_as for step in self.plan.steps if step.same_as}
        self.plan.steps = [self.linked(step, same, taken) for step in self.plan.steps]

    def decide(self, step: Step) -> Step:
        memory = step.memory
        present = self.home.memories.find(memory.id)
        if present:
            return self.known(step, present)
        before = self.edited.get(memory.id)
        if before and _may_follow(step, before) and not self.home.memories.same_content(memory.content, memory.project):
            return _followed(step, before)
        digest = memory_hash(memory.content, memory.project)
        same = self.home.memories.same_content(memory.content, memory.project)
        reason = "the same words are here"
        if same is None and digest in self.offered:
            same, reason = self.offered[digest], "said twice in what is imported"
        if same is None and memory.is_active:
            same, reason = self.repetition(memory)
        if same:
            return replace(step, action=Action.DUPLICATE, reason=reason, same_as=same)
        self.offered[digest] = memory.id
        return step

    def known(self, step: Step, present: Memory) -> Step:
        """What was imported before, or is nacre's own: ours stays, unless only theirs was edited since."""
        if self.plan.options.trust and present.was_taken_out and not step.memory.retired:
            back = replace(present, retired=None, trust=step.memory.trust)
            return replace(step, memory=back, action=Action.BRING_BACK, reason="taken out here, and not by you")
        state = "retired here" if present.retired else "imported before" if ORIGIN in present.extra else "here already"
        if self.plan.options.trust and present.trust is Trust.UNTRUSTED and step.memory.trust is Trust.TRUSTED:
            return replace(step, memory=replace(present, trust=Trust.TRUSTED), action=Action.TRUST, reason=state)
        theirs, ours = origin_of(step.memory), origin_of(present)
        if not theirs or not ours or theirs.get("hash") == ours.get("hash") or present.retired:
            return replace(step, action=Action.KNOWN, reason=state)
        if not is_untouched(present):
            return replace(step, action=Action.KNOWN, reason="edited here and there: ours stays")
        if not _may_follow(step, present):
            return replace(step, action=Action.KNOWN, reason="edited there, and yours: it follows with --trust")
        return _followed(step, present)

    def repetition(self, memory: Memory) -> tuple[str | None, str]:
        """The active memory that says the same in other words."""
        rows = self.home.comparisons.alike(memory, limit=_CANDIDATES)
        others = {one.id: one for one in self.home.memories.by_rows(rows).values()}
        active = [one for one in others.values() if not one.superseded_by]
        again = next((one for one in compare(memory, active) if one.repeats), None)
        return (again.other.id, again.verdict.reason) if again else (None, "")

    def linked(self, step: Step, same: Mapping[str, str], offered: set[str]) -> Step:
        """Links lead to what is there; untrusted ones end nothing of the owner's."""
        if step.action is not Action.ADD:
            return step
        links = [replace(link, to=same.get(link.to, link.to)) for link in step.memory.links]
        if not self.plan.options.trust:
            links = [link for link in links if link.rel not in _ENDING or link.to in offered]
        by = step.memory.superseded_by
        memory = replace(
            step.memory, links=tuple(dict.fromkeys(link for link in links if link.to != step.memory.id)),
            superseded_by=same.get(by, by) if by else None,
        )  # fmt: skip
        return replace(step, memory=memory)


def _may_follow(step: Step, present: Memory) -> bool:
    """Whether a memory may take the words of its source: what somebody vouched for takes none that nobody did."""
    return step.memory.is_vouched or not present.is_vouched


def _followed(step: Step, present: Memory) -> Step:
    """What is here, with the words that its source has now."""
    new = replace(
        present, content=step.memory.content, subject=step.memory.subject, updated=step.memory.updated, claim=None,
        trust=step.memory.trust, extra={**present.extra, ORIGIN: dict(origin_of(step.memory))},
    )  # fmt: skip
    return replace(step, memory=new, action=Action.UPDATE, reason="edited there since")


def _write_memories(home: Home, run: Run, plan: ImportPlan, report: ImportReport, notify: OnProgress) -> None:
    todo = [step for step in plan.steps if step.action not in (Action.KNOWN, Action.DUPLICATE)]
    same: dict[str, str] = {}
    touched: set[str] = set()
    with run.part() as change, change.transaction():
        for done, step in enumerate(todo, start=1):
            _write(change, step, report, same, touched)
            change.yield_locks(lambda: write_touched(change, touched))
            if done % BATCH == 0:
                notify(Progress("importing", done, len(todo), f"{len(report.added):,} memories"))
        write_touched(change, touched)
    notify(Progress("importing", len(todo), len(todo), f"{len(report.added):,} memories"))
    _mend_links(home, run, report.added, same)


def _write(change: Change, step: Step, report: ImportReport, same: dict[str, str], touched: set[str]) -> None:
    if step.action is Action.ADD:
        _add(change, step, report, same, touched)
    else:
        before = change.home.memories.find(step.memory.id)
        comes_back = step.action is Action.BRING_BACK
        entries = [change.entry("unretire", memory=step.memory.id)] if comes_back else []
        others = agreed(change.home, [(None, step.memory)]) if comes_back else []
        change.put([step.memory, *others], entries)
        await_models(change.home, step.memory, before)
        report.updated += step.action is Action.UPDATE
        report.trusted += step.action is Action.TRUST
        report.brought_back += comes_back


def _add(change: Change, step: Step, report: ImportReport, same: dict[str, str], touched: set[str]) -> None:
    memory = step.memory
    if change.home.memories.find(memory.id):
        return  # another import was faster
    if not memory.is_active:
        put(change, memory, ())
    else:
        outcome = place(change, memory, touched=touched)
        if outcome.action != "stored":
            report.duplicates += 1
            same[memory.id] = outcome.memory_id
            return
    if step.usage:
        change.home.usage.adopt(memory.id, step.usage)
    report.added.append(memory.id)


def _mend_links(home: Home, run: Run, added: Sequence[str], same: dict[str, str]) -> None:
    """What turned out to repeat another memory is linked as that one."""
    if not same:
        return
    changed = []
    for memory in filter(None, map(home.memories.find, added)):
        links = tuple(dict.fromkeys(replace(link, to=same.get(link.to, link.to)) for link in memory.links))
        by = same.get(memory.superseded_by or "", memory.superseded_by)
        if (links, by) != (memory.links, memory.superseded_by):
            changed.append(replace(memory, links=links, superseded_by=by))
    for start in range(0, len(changed), BATCH):
        with run.part() as change:
            change.put(changed[start : start + BATCH])


def _write_pages(home: Home, run: Run, plan: ImportPlan, report: ImportReport) -> None:
    for page in plan.pages:
        report.pages += write_new_page(run, page.path, home.redactor.clean(page.document))
    if plan.pages:
        read_pages(home)


def _write_entries(run: Run, plan: ImportPlan) -> None:
    """Lines of another ledger keep the ids of their operations, so that they are known when they are met again."""
    for start in range(0, len(plan.entries), _ENTRIES):
        with run.part() as change:
            change.append(plan.entries[start : start + _ENTRIES])


def _why(plan: ImportPlan) -> str:
    return f"from {plan.source.label}, {plan.options.path}, {'trusted' if plan.options.trust else 'untrusted'}"


def _talks(tree: Tree, source: ImportSource) -> Iterator[Talk]:
    return (item for item in source.read(tree) if isinstance(item, Talk))


def _write_talks(home: Home, plan: ImportPlan, report: ImportReport, notify: OnProgress) -> None:
    """Sessions that are not here yet; nothing is learned from them: what they taught comes with the memories."""
    for talk in _talks(open_tree(plan.options.path, home.redactor.clean), plan.source):
        if home.sessions.find(talk.session.id):
            continue
        with home.database.transaction():
            row = home.sessions.upsert(talk.session, project=talk.project, file=talk.file)
            report.turns += home.sessions.add_turns(talk.session, row, talk.turns)
            home.sessions.refresh([row])
            home.sessions.mark_extracted(row, len(talk.turns))
        report.sessions += 1
        notify(Progress("importing", report.sessions, plan.sessions, "sessions"))
