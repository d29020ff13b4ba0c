"""Notes that were edited since they were imported: a statement that is gone from a file, and the new one like it.

A statement has no name, and is known by its words. So an edit takes one away and brings another; which belongs to
which, their words tell.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from enum import StrEnum
from pathlib import Path

from nacre.base.text import words
from nacre.data import backup
from nacre.data import export as exporting
from nacre.data.backup import BackupReport, RestoreReport
from nacre.data.export import (
    BackupRequest,
    ExportReport,
    ExportRequest,
    ImportOptions,
    RestoreRequest,
)
from nacre.data.importers import (
    MOST_BYTES,
    ORIGIN,
    Found,
    ImportSource,
    Operation,
    Page,
    Skipped,
    Talk,
    Transcript,
    Tree,
    detect,
    get_source,
    open_tree,
    words_hash,
)
from nacre.errors import Conflict, InvalidInput, MemoryInvalid, NotFound, Unavailable
from nacre.home.change import Change, Run, known_or_named, read_pages, write_new_page
from nacre.home.home import Home, territory
from nacre.home.location import clean_values, redacted
from nacre.hosts import host as isolation
from nacre.hosts.files import Places
from nacre.hosts.host import MemoryPlace
from nacre.hosts.registry import HOSTS_REGISTRY
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.edit import catch_up
from nacre.memories.judge import SUPERSEDES, agreed, compare
from nacre.memories.placement import await_models, put, write_touched
from nacre.memories.placement import place as placement_place
from nacre.memories.store import fold_usage
from nacre.memories.vectors import embed_pending
from nacre.settings import Settings
from nacre.store.memories import memory_hash
from nacre.values.memory import MAX_BODY_BYTES, Memory
from nacre.values.reports import IngestReport, OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Trust
from nacre.vault import files
from nacre.vault.files import LEDGER, slugify

_ALIKE = 0.6
"""The share of words, in their order, that an edited statement keeps."""

_STATEMENT = "#"


def origin_of(memory: Memory) -> Mapping[str, str]:
    """Where a memory was imported from; nothing where it was not."""
    value = memory.extra.get(ORIGIN)
    return value if isinstance(value, dict) else {}


def is_untouched(memory: Memory) -> bool:
    """Whether a memory's words are those it was imported with."""
    return words_hash(memory.content) == origin_of(memory).get("hash")


def edited_statements(home: Home, source: str, offered: Sequence[Memory]) -> dict[str, Memory]:
    """By the id of a statement that is offered: the one here that it was before, unless it was edited here, too."""
    keys = {origin_of(memory).get("id", "") for memory in offered}
    statements = [memory for memory in offered if _file_of(memory)]
    present = [
        memory
        for memory in home.memories.of_files({_file_of(memory) for memory in statements})
        if origin_of(memory).get("from") == source and _file_of(memory)
    ]
    held = {origin_of(memory)["id"] for memory in present}
    gone = [
        memory for memory in present if origin_of(memory)["id"] not in keys and is_untouched(memory)
    ]
    new = [memory for memory in statements if origin_of(memory)["id"] not in held]
    likeness = sorted(
        (
            (share, one.id, other)
            for one in new
            for other in gone
            if _file_of(one) == _file_of(other) and (share := _likeness(one, other)) >= _ALIKE
        ),
        key=lambda found: (-found[0], found[1], found[2].id),
    )
    pairs: dict[str, Memory] = {}
    for _, memory_id, other in likeness:
        if memory_id not in pairs and all(one.id != other.id for one in pairs.values()):
            pairs[memory_id] = other
    return pairs


def _file_of(memory: Memory) -> str:
    """The file that a statement stands in; empty for a memory that is a file of its own."""
    file, mark, _ = origin_of(memory).get("id", "").rpartition(_STATEMENT)
    return file if mark and file == memory.source.file else ""


def _likeness(one: Memory, other: Memory) -> float:
    return SequenceMatcher(None, words(one.content), words(other.content), autojunk=False).ratio()


# ----------------------------------------------------------------------------
# Coming in: a plan of what another memory holds, then its execution. A second import adds nothing.
#
# What comes from outside is untrusted, whatever it says of itself, unless the owner says otherwise:
# it is searchable,
# ends nothing that is there, and brings neither ledger nor project pages nor sessions.


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
    entries: list[files.LedgerEntry] = field(default_factory=list)
    transcripts: list[Path] = field(default_factory=list)
    sessions: int = 0
    turns: int = 0

    def count(self, action: Action) -> int:
        """How many memories an action is planned for."""
        return sum(step.action is action for step in self.steps)

    @property
    def kinds(self) -> dict[str, int]:
        """How many memories of each kind are to be added."""
        return dict(
            Counter(
                step.memory.kind.value for step in self.steps if step.action is Action.ADD
            ).most_common()
        )

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


def _carry_out(
    home: Home, run: Run, plan: ImportPlan, on_progress: OnProgress | None
) -> ImportReport:
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
            plan.entries += files.read(files.encode(clean_values(home.redactor, values)))


def _only_new(home: Home, plan: ImportPlan) -> None:
    """Ledger entries that this ledger does not have, each once."""
    try:
        known = {one.line() for one in files.read(home.vault.read(LEDGER))}
    except FileNotFoundError:
        known = set()
    plan.entries = list(
        {line: one for one in plan.entries if (line := one.line()) not in known}.values()
    )


def _withhold(plan: ImportPlan) -> None:
    """Without the owner's word, nothing comes in that says how nacre is to behave, or what was said to whom."""
    if plan.options.trust:
        return
    held = (
        (plan.pages, "project pages"),
        (plan.entries, "ledger entries"),
        (range(plan.sessions), "sessions"),
    )
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
        self.edited = edited_statements(
            home, plan.source.name, [step.memory for step in candidates]
        )

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
        if (
            before
            and _may_follow(step, before)
            and not self.home.memories.same_content(memory.content, memory.project)
        ):
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
            return replace(
                step, memory=back, action=Action.BRING_BACK, reason="taken out here, and not by you"
            )
        state = (
            "retired here"
            if present.retired
            else "imported before"
            if ORIGIN in present.extra
            else "here already"
        )
        if (
            self.plan.options.trust
            and present.trust is Trust.UNTRUSTED
            and step.memory.trust is Trust.TRUSTED
        ):
            return replace(
                step,
                memory=replace(present, trust=Trust.TRUSTED),
                action=Action.TRUST,
                reason=state,
            )
        theirs, ours = origin_of(step.memory), origin_of(present)
        if not theirs or not ours or theirs.get("hash") == ours.get("hash") or present.retired:
            return replace(step, action=Action.KNOWN, reason=state)
        if not is_untouched(present):
            return replace(step, action=Action.KNOWN, reason="edited here and there: ours stays")
        if not _may_follow(step, present):
            return replace(
                step, action=Action.KNOWN, reason="edited there, and yours: it follows with --trust"
            )
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
            step.memory,
            links=tuple(dict.fromkeys(link for link in links if link.to != step.memory.id)),
            superseded_by=same.get(by, by) if by else None,
        )
        return replace(step, memory=memory)


def _may_follow(step: Step, present: Memory) -> bool:
    """Whether a memory may take the words of its source: what somebody vouched for takes none that nobody did."""
    return step.memory.is_vouched or not present.is_vouched


def _followed(step: Step, present: Memory) -> Step:
    """What is here, with the words that its source has now."""
    new = replace(
        present,
        content=step.memory.content,
        subject=step.memory.subject,
        updated=step.memory.updated,
        claim=None,
        trust=step.memory.trust,
        extra={**present.extra, ORIGIN: dict(origin_of(step.memory))},
    )
    return replace(step, memory=new, action=Action.UPDATE, reason="edited there since")


def _write_memories(
    home: Home, run: Run, plan: ImportPlan, report: ImportReport, notify: OnProgress
) -> None:
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


def _write(
    change: Change, step: Step, report: ImportReport, same: dict[str, str], touched: set[str]
) -> None:
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


def _add(
    change: Change, step: Step, report: ImportReport, same: dict[str, str], touched: set[str]
) -> None:
    memory = step.memory
    if change.home.memories.find(memory.id):
        return  # another import was faster
    if not memory.is_active:
        put(change, memory, ())
    else:
        outcome = placement_place(change, memory, touched=touched)
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
        links = tuple(
            dict.fromkeys(replace(link, to=same.get(link.to, link.to)) for link in memory.links)
        )
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


# ----------------------------------------------------------------------------
# Hosts' own memories that are turned off: what is written there all the same, by a tool or a shell,
# is imported.
#
# It is an agent's word, and untrusted. A file or folder is read again only when its notes changed.


_MOST_NOTES = 5_000


@dataclass(frozen=True, slots=True)
class Captured:
    """What was imported from one file or folder of a host's own memory; ``problem`` where it cannot be read."""

    host: str
    path: Path
    added: int = 0
    updated: int = 0
    problem: str = ""


def capture(home: Home, hosts: Sequence[str] = ()) -> list[Captured]:
    """Import what is new in the own memories of these hosts, or of all that are turned off.

    A crash leaves the rest to the next call.
    """
    folder = home.settings.home
    state = isolation.load(folder)
    done: list[Captured] = []
    for host in hosts or state.hosts:
        for place in _places(home, host):
            notes = _digest(place.path)
            if state.read.get(str(place.path), "") == notes:
                continue
            done.append(_imported(home, host, place) if notes else Captured(host, place.path))
            state = replace(state, read={**state.read, str(place.path): notes})
            isolation.save(folder, state)
    return done


def _places(home: Home, host: str) -> Sequence[MemoryPlace]:
    settings = home.settings
    places = Places(
        settings.user_home, settings.home.absolute(), settings.environ, settings.platform
    )
    own = HOSTS_REGISTRY[host].own_memory if host in HOSTS_REGISTRY else None
    return own(places) if own else ()


def _imported(home: Home, host: str, place: MemoryPlace) -> Captured:
    try:
        plan = plan_import(home, ImportOptions(path=place.path, source=place.source, vectors=False))
    except (InvalidInput, NotFound) as error:
        return Captured(host, place.path, problem=error.message)
    if plan.is_empty:
        return Captured(host, place.path)
    report = carry_out(home, plan)
    return Captured(host, place.path, len(report.added), report.updated)


def _digest(path: Path) -> str:
    """The hash of all notes of a file or folder; empty where there is none."""
    found = hashlib.sha256()
    is_empty = True
    for note in _notes(path):
        try:
            content = note.read_bytes() if note.stat().st_size <= MOST_BYTES else b""
        except OSError:
            continue
        is_empty = False
        found.update(
            f"{note.relative_to(path)}\0{hashlib.sha256(content).hexdigest()}\0".encode(
                "utf-8", "replace"
            )
        )
    return "" if is_empty else found.hexdigest()


def _notes(path: Path) -> Iterator[Path]:
    if path.is_symlink():
        return
    if path.is_file():
        yield path
    elif path.is_dir():
        found = (one for one in path.rglob("*.md") if one.is_file() and not one.is_symlink())
        yield from sorted(one for _, one in zip(range(_MOST_NOTES), found, strict=False))


# ----------------------------------------------------------------------------
# What is answered to requests for exports, imports and backups; :mod:`nacre.serve.catalogue` lists them.


def export(
    home: Home, request: ExportRequest, on_progress: OnProgress | None = None
) -> ExportReport:
    """Write everything into one file that others can read. Raises Conflict where it exists."""
    return exporting.export(
        home, request.target, request, overwrite=request.overwrite, on_progress=on_progress
    )


def import_(
    home: Home, request: ImportOptions, on_progress: OnProgress | None = None
) -> ImportReport:
    """Take in what another memory or an account's export holds. Raises NotFound, InvalidInput."""
    return carry_out(home, plan_import(home, request), on_progress)


def back_up(
    home: Home, request: BackupRequest, on_progress: OnProgress | None = None
) -> BackupReport:
    """Back up the whole home. Raises Conflict where the file exists."""
    return backup.create(home, request.target, overwrite=request.overwrite, on_progress=on_progress)


def restore(
    settings: Settings, request: RestoreRequest, on_progress: OnProgress | None = None
) -> RestoreReport:
    """Bring a backup back as a home. Raises NotFound, InvalidInput, Conflict, Unavailable."""
    target = (request.target or settings.home).expanduser().absolute()
    if settings.server and target == settings.home:
        raise Unavailable(
            "this memory is on a server, and a backup holds files",
            hint="--to FOLDER brings the files back; docs/server.md tells how a server is restored",
        )
    if target != settings.home and territory(settings).holds(target):
        raise Conflict(
            f"{target} is inside the home that is there", hint="name a folder somewhere else"
        )
    return backup.restore(request.backup, target, replace=request.replace, on_progress=on_progress)
