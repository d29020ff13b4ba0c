"""Import memories from other systems, and capture hosts' own memories.

Statements in notes have no ids and are identified by their words. An edited statement therefore looks like a removed
and an added statement, which are paired if enough words agree.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.text import to_bytes, words
from nacre.data import backup as backups
from nacre.data import export as exporting
from nacre.data.export import ExportReport, ExportRequest, ImportOptions
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
    detect,
    get_source,
    open_tree,
    words_hash,
)
from nacre.errors import (
    ConflictError,
    InvalidInputError,
    InvalidMemoryError,
    NotFoundError,
    UnavailableError,
)
from nacre.home.change import Change, Run, known_or_named, read_pages, write_new_page
from nacre.home.home import Home, territory
from nacre.home.location import clean_values, redact
from nacre.hosts import own_memory
from nacre.hosts.files import Places
from nacre.hosts.host import MemoryPlace
from nacre.hosts.registry import ALL_HOSTS
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.edit import catch_up
from nacre.memories.judge import SUPERSEDES, compare, reconcile
from nacre.memories.placement import place as placement_place
from nacre.memories.placement import put, write_touched
from nacre.memories.store import fold_usage
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.settings import Settings
from nacre.store.memories import memory_hash
from nacre.values.memory import MAX_BODY_BYTES, Memory
from nacre.values.reports import IngestReport, OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Trust
from nacre.vault import files
from nacre.vault.files import slugify

_MIN_LIKENESS = 0.6
"""Minimum share of the words, in the same order, that an edited statement keeps."""

_STATEMENT = "#"


def origin_of(memory: Memory) -> Mapping[str, str]:
    """Return a memory's origin, or an empty mapping if it was not imported."""
    value = memory.extra.get(ORIGIN)
    return value if isinstance(value, dict) else {}


def is_untouched(memory: Memory) -> bool:
    """Return True if a memory's words have not changed since the import."""
    return words_hash(memory.content) == origin_of(memory).get("hash")


def edited_statements(home: Home, source: str, offered: Sequence[Memory]) -> dict[str, Memory]:
    """Find the old memories of statements that were edited in the source.

    The result maps the id of the new memory to the old memory. Memories that were also edited in nacre are left out.
    """
    keys = {origin_of(memory).get("id", "") for memory in offered}
    statements = [memory for memory in offered if _file_of(memory)]
    present = [
        memory
        for memory in home.memories.of_files({_file_of(memory) for memory in statements})
        if origin_of(memory).get("from") == source and _file_of(memory)
    ]
    present_ids = {origin_of(memory)["id"] for memory in present}
    removed = [
        memory for memory in present if origin_of(memory)["id"] not in keys and is_untouched(memory)
    ]
    new = [memory for memory in statements if origin_of(memory)["id"] not in present_ids]
    likeness = sorted(
        (
            (share, statement.id, other)
            for statement in new
            for other in removed
            if _file_of(statement) == _file_of(other)
            and (share := _likeness(statement, other)) >= _MIN_LIKENESS
        ),
        key=lambda pair: (-pair[0], pair[1], pair[2].id),
    )
    pairs: dict[str, Memory] = {}
    for _, memory_id, other in likeness:
        if memory_id not in pairs and all(statement.id != other.id for statement in pairs.values()):
            pairs[memory_id] = other
    return pairs


def _file_of(memory: Memory) -> str:
    """Return the file that contains a statement, or "" if the memory is a whole file."""
    file, mark, _ = origin_of(memory).get("id", "").rpartition(_STATEMENT)
    return file if mark and file == memory.source.file else ""


def _likeness(left: Memory, right: Memory) -> float:
    return SequenceMatcher(None, words(left.content), words(right.content), autojunk=False).ratio()


# -- Import ----------------------------------------------------------------------------------------
# Imports are planned, then carried out. A second import adds nothing. Imported content is untrusted, regardless of its
# claims, unless the user decides otherwise. Untrusted content is searchable, but retires no existing memory and adds no
# ledger entries, project pages or sessions.


BATCH = 20
"""Number of memories in a batch. Other processes can write between batches."""

_ENTRIES_PER_PART = 50
_MAX_SIMILAR = 12
_ENDING_RELATIONS = frozenset({SUPERSEDES, "contradicts"})


class Action(StrEnum):
    """The decision about a memory to import."""

    ADD = "add"
    UPDATE = "update"
    TRUST = "trust"
    BRING_BACK = "bring back"
    KNOWN = "known"
    DUPLICATE = "duplicate"


@frozen
class Step:
    """A memory to import, the decision and the reason. ``same_as``: id of the memory that it duplicates."""

    memory: Memory
    action: Action
    reason: str | None = None
    usage: Usage | None = None
    same_as: str | None = None


@dataclass(slots=True)
class ImportPlan:
    """The items to import from a source, and the decision about each memory."""

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
        """Count the memories with an action."""
        return sum(step.action is action for step in self.steps)

    @property
    def kinds(self) -> dict[str, int]:
        """Number of memories to add for each kind."""
        return dict(
            Counter(
                step.memory.kind.value for step in self.steps if step.action is Action.ADD
            ).most_common()
        )

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to do."""
        todo = any(step.action not in (Action.KNOWN, Action.DUPLICATE) for step in self.steps)
        return not (todo or self.pages or self.entries or self.transcripts or self.sessions)


@dataclass(slots=True)
class ImportReport:
    """The result of an import. ``duplicates``: number of added memories that proved to be duplicates."""

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


@operation("import-plan", takes_long=True, daemon=False, http=False)
def plan_import(home: Home, options: ImportOptions) -> ImportPlan:
    """Read a source and plan what to do with each item. Nothing is changed.

    Raises NotFoundError. Raises InvalidInputError if the source is unknown or damaged.
    """
    if options.trust:
        home.actor.require_owner("nacre data import --trust")
    catch_up(home)
    fold_usage(home)
    tree = open_tree(options.path, home.redactor.clean)
    source = detect(tree) if options.source == "auto" else get_source(options.source)
    plan = ImportPlan(options, source)
    items: list[Found] = []
    for item in source.read(tree):
        if isinstance(item, Found):
            items.append(item)
        else:
            _note(home, plan, item)
    _only_new(home, plan)
    _withhold(plan)
    candidates = [shaped for item in items if (shaped := _candidate(home, plan, item))]
    _Sorter(home, plan, candidates).sort()
    return plan


def carry_out(home: Home, plan: ImportPlan, on_progress: OnProgress | None = None) -> ImportReport:
    """Carry out a plan. After a crash, the next import completes the plan.

    Raises OwnerOnlyError if an agent imports conversations, because nacre would learn from them as the user's own
    words.
    """
    if plan.transcripts:
        home.actor.require_owner("nacre data import of conversations")
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
                plan.skipped.append(Skipped(path, "a page already exists"))
            else:
                plan.pages.append(item)
        case Operation(values):
            plan.entries += files.read(files.encode(clean_values(home.redactor, values)))


def _only_new(home: Home, plan: ImportPlan) -> None:
    """Remove ledger entries from the plan if they already exist or occur twice."""
    present = {entry.line() for entry in files.read(home.ledger())}
    plan.entries = list(
        {line: entry for entry in plan.entries if (line := entry.line()) not in present}.values()
    )


def _withhold(plan: ImportPlan) -> None:
    """Remove project pages, ledger entries and sessions from the plan, unless the user trusts the source."""
    if plan.options.trust:
        return
    withheld = (
        (plan.pages, "project pages"),
        (plan.entries, "ledger entries"),
        (range(plan.sessions), "sessions"),
    )
    for items, name in withheld:
        if items:
            plan.skipped.append(Skipped(f"{len(items)} {name}", "only with --trust"))
    plan.pages, plan.entries, plan.sessions, plan.turns = [], [], 0, 0


def _candidate(home: Home, plan: ImportPlan, item: Found) -> Step | None:
    """Return the step that adds a memory without secrets, or ``None`` for an invalid memory.

    The memory is trusted only if the user trusts the source.
    """
    try:
        memory = redact(home.redactor, item.memory)
        if len(to_bytes(memory.content)) > MAX_BODY_BYTES:
            raise InvalidMemoryError("larger than 1 MB")
    except InvalidMemoryError as error:
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
    """Decides what to do with each memory of an import, and redirects links to existing memories."""

    def __init__(self, home: Home, plan: ImportPlan, candidates: Sequence[Step]) -> None:
        self.home = home
        self.plan = plan
        self.candidates = candidates
        self.offered: dict[bytes, str] = {}
        self.edited = edited_statements(
            home, plan.source.name, [step.memory for step in candidates]
        )

    def sort(self) -> None:
        ids: set[str] = set()
        for step in self.candidates:
            if step.memory.id in ids:
                self.plan.skipped.append(Skipped(step.memory.id, "two records with the same id"))
                continue
            ids.add(step.memory.id)
            self.plan.steps.append(self.decide(step))
        same = {step.memory.id: step.same_as for step in self.plan.steps if step.same_as}
        self.plan.steps = [self.linked(step, same, ids) for step in self.plan.steps]

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
        reason = "same text as an existing memory"
        if same is None and digest in self.offered:
            same, reason = self.offered[digest], "same text twice in the import"
        if same is None and memory.is_active:
            same, reason = self.repetition(memory)
        if same:
            return replace(step, action=Action.DUPLICATE, reason=reason, same_as=same)
        self.offered[digest] = memory.id
        return step

    def known(self, step: Step, present: Memory) -> Step:
        """Return what to do with a memory that exists already.

        The existing memory is updated only if it was edited in the source and not in nacre.
        """
        if self.plan.options.trust and present.was_taken_out and not step.memory.retired:
            back = replace(present, retired=None, trust=step.memory.trust)
            return replace(
                step, memory=back, action=Action.BRING_BACK, reason="removed here by an undo"
            )
        state = (
            "retired here"
            if present.retired
            else "imported before"
            if ORIGIN in present.extra
            else "already here"
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
            return replace(
                step, action=Action.KNOWN, reason="edited in both places; kept as it is here"
            )
        if not _may_follow(step, present):
            return replace(
                step, action=Action.KNOWN, reason="edited there, but trusted here: needs --trust"
            )
        return _followed(step, present)

    def repetition(self, memory: Memory) -> tuple[str | None, str]:
        """Return the id of an active memory with the same meaning, or ``None``, and the reason."""
        rows = self.home.comparisons.alike(memory, limit=_MAX_SIMILAR)
        similar = {other.id: other for other in self.home.memories.by_rows(rows).values()}
        active = [other for other in similar.values() if not other.superseded_by]
        again = next(
            (other for other in compare(memory, active) if other.repeats),
            None,
        )
        return (again.other.id, again.verdict.reason) if again else (None, "")

    def linked(self, step: Step, same: Mapping[str, str], offered: set[str]) -> Step:
        """Replace links to duplicates with links to existing memories.

        An untrusted memory loses links that would retire one of the user's memories.
        """
        if step.action is not Action.ADD:
            return step
        links = [replace(link, to=same.get(link.to, link.to)) for link in step.memory.links]
        if not self.plan.options.trust:
            links = [
                link for link in links if link.rel not in _ENDING_RELATIONS or link.to in offered
            ]
        by = step.memory.superseded_by
        memory = replace(
            step.memory,
            links=tuple(dict.fromkeys(link for link in links if link.to != step.memory.id)),
            superseded_by=same.get(by, by) if by else None,
        )
        return replace(step, memory=memory)


def _may_follow(step: Step, present: Memory) -> bool:
    """Return True if an import may replace the content of an existing memory."""
    return step.memory.is_vouched or not present.is_vouched


def _followed(step: Step, present: Memory) -> Step:
    new = replace(
        present,
        content=step.memory.content,
        subject=step.memory.subject,
        updated=step.memory.updated,
        trust=step.memory.trust,
        extra={**present.extra, ORIGIN: dict(origin_of(step.memory))},
    )
    return replace(step, memory=new, action=Action.UPDATE, reason="edited at the source")


def _write_memories(
    home: Home, run: Run, plan: ImportPlan, report: ImportReport, notify: OnProgress
) -> None:
    todo = [step for step in plan.steps if step.action not in (Action.KNOWN, Action.DUPLICATE)]
    same: dict[str, str] = {}
    touched: set[str] = set()
    with run.part() as change, change.transaction():
        done = 0
        for chain in _chains(todo):
            for step in chain:
                _write(change, step, report, same, touched)
            change.yield_locks(lambda: write_touched(change, touched))
            done += len(chain)
            notify(Progress("importing", done, len(todo), f"{len(report.added):,} memories"))
        write_touched(change, touched)
    notify(Progress("importing", len(todo), len(todo), f"{len(report.added):,} memories"))
    _mend_links(home, run, report.added, same)


def _chains(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield groups of memories that must be written together, because they supersede each other."""
    by_id = {step.memory.id: step for step in steps}
    chains: dict[str, list[tuple[int, Step]]] = {}
    for step in steps:
        last, seen = step, set[str]()
        while (by := last.memory.superseded_by) in by_id and by not in seen:
            seen.add(by)
            last = by_id[by]
        chains.setdefault(last.memory.id, []).append((len(seen), step))
    for chain in chains.values():
        yield [step for _, step in sorted(chain, key=itemgetter(0))]


def _write(
    change: Change, step: Step, report: ImportReport, same: dict[str, str], touched: set[str]
) -> None:
    if step.action is Action.ADD:
        _add(change, step, report, same, touched)
    else:
        comes_back = step.action is Action.BRING_BACK
        entries = [change.entry("unretire", memory=step.memory.id)] if comes_back else []
        agreeing = reconcile(change.home, [(None, step.memory)]) if comes_back else []
        change.put([step.memory, *agreeing], entries)
        report.updated += step.action is Action.UPDATE
        report.trusted += step.action is Action.TRUST
        report.brought_back += comes_back


def _add(
    change: Change, step: Step, report: ImportReport, same: dict[str, str], touched: set[str]
) -> None:
    memory = step.memory
    if change.home.memories.find(memory.id):
        return  # another import added it first
    by = same.get(memory.superseded_by or "", memory.superseded_by)
    memory = replace(memory, superseded_by=by)
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
    """Replace links to duplicates with links to the memories that were kept."""
    if not same:
        return
    changed = []
    for memory in filter(None, map(home.memories.find, added)):
        links = tuple(
            dict.fromkeys(replace(link, to=same.get(link.to, link.to)) for link in memory.links)
        )
        if links != memory.links:
            changed.append(replace(memory, links=links))
    for start in range(0, len(changed), BATCH):
        with run.part() as change:
            change.put(changed[start : start + BATCH])


def _write_pages(home: Home, run: Run, plan: ImportPlan, report: ImportReport) -> None:
    for page in plan.pages:
        report.pages += write_new_page(run, page.path, home.redactor.clean(page.document))
    if plan.pages:
        read_pages(home)


def _write_entries(run: Run, plan: ImportPlan) -> None:
    """Append the other vault's ledger entries. A later import recognises their original ids."""
    for start in range(0, len(plan.entries), _ENTRIES_PER_PART):
        with run.part() as change:
            change.append(plan.entries[start : start + _ENTRIES_PER_PART])


def _why(plan: ImportPlan) -> str:
    return f"from {plan.source.label}, {plan.options.path}, {'trusted' if plan.options.trust else 'untrusted'}"


def _write_talks(home: Home, plan: ImportPlan, report: ImportReport, notify: OnProgress) -> None:
    """Store new sessions. No memories are extracted, because the import contains them."""
    for talk in plan.source.read(open_tree(plan.options.path, home.redactor.clean)):
        if not isinstance(talk, Talk):
            continue
        if home.sessions.find(talk.session.id):
            continue
        with home.transaction():
            row = home.sessions.upsert(talk.session, project=talk.project, file=talk.file)
            report.turns += home.sessions.add_turns(talk.session, row, talk.turns)
            home.sessions.refresh([row])
            home.sessions.mark_extracted(row, len(talk.turns))
        report.sessions += 1
        notify(Progress("importing", report.sessions, plan.sessions, "sessions"))


# -- Capture of hosts' own memories ----------------------------------------------------------------
# If a host writes notes although its own memory is off, they are imported as an agent's untrusted words. A file or
# folder is read again only if its notes have changed.


_MAX_NOTES = 5_000


@frozen
class Captured:
    """The result of importing a file or folder from a host's own memory.

    ``problem`` describes why the import failed.
    """

    host: str
    path: Path
    added: int = 0
    updated: int = 0
    problem: str = ""


def capture(home: Home, hosts: Sequence[str] = ()) -> list[Captured]:
    """Import new notes from the memories that hosts keep themselves.

    By default, notes are imported from the hosts whose own memory is switched off. After a crash, the next call
    completes the import.
    """
    folder = home.settings.home
    state = own_memory.load(folder)
    captures: list[Captured] = []
    for host in hosts or state.hosts:
        for place in _places(home, host):
            notes = _digest(place.path)
            if state.read.get(str(place.path), "") == notes:
                continue
            captures.append(_imported(home, host, place) if notes else Captured(host, place.path))
            state = replace(state, read={**state.read, str(place.path): notes})
            own_memory.save(folder, state)
    return captures


def _places(home: Home, host: str) -> Sequence[MemoryPlace]:
    settings = home.settings
    places = Places(
        settings.user_home, settings.home.absolute(), settings.environ, settings.platform
    )
    own = ALL_HOSTS[host].own_memory if host in ALL_HOSTS else None
    return own(places) if own else ()


def _imported(home: Home, host: str, place: MemoryPlace) -> Captured:
    try:
        plan = plan_import(home, ImportOptions(path=place.path, source=place.source, vectors=False))
    except (InvalidInputError, NotFoundError) as error:
        return Captured(host, place.path, problem=error.message)
    if plan.is_empty:
        return Captured(host, place.path)
    report = carry_out(home, plan)
    return Captured(host, place.path, len(report.added), report.updated)


def _digest(path: Path) -> str:
    """Return a hash of all notes in a file or folder. If there are no notes, return ""."""
    hashed = hashlib.sha256()
    is_empty = True
    for note in _notes(path):
        try:
            content = note.read_bytes() if note.stat().st_size <= MOST_BYTES else b""
        except OSError:
            continue
        is_empty = False
        hashed.update(
            to_bytes(f"{note.relative_to(path)}\0{hashlib.sha256(content).hexdigest()}\0")
        )
    return "" if is_empty else hashed.hexdigest()


def _notes(path: Path) -> Iterator[Path]:
    if path.is_symlink():
        return
    if path.is_file():
        yield path
    elif path.is_dir():
        paths = (note for note in path.rglob("*.md") if note.is_file() and not note.is_symlink())
        yield from sorted(note for _, note in zip(range(_MAX_NOTES), paths, strict=False))


# -- Operations ----------------------------------------------------------------------------------


@operation("export", takes_long=True)
def export(
    home: Home, request: ExportRequest, on_progress: OnProgress | None = None
) -> ExportReport:
    """Write all data to one readable file. Raises ConflictError if it exists."""
    return exporting.export(
        home, request.target, request, overwrite=request.overwrite, on_progress=on_progress
    )


@operation("import", writes=True, takes_long=True)
def import_(
    home: Home, request: ImportOptions, on_progress: OnProgress | None = None
) -> ImportReport:
    """Import memories from another system or an account's export. Raises NotFoundError, InvalidInputError."""
    return carry_out(home, plan_import(home, request), on_progress)


@operation(
    "backup-restore",
    writes=True,
    takes_long=True,
    closed=True,
    owners=True,
    command="data backup restore",
)
def restore(
    settings: Settings,
    on_progress: OnProgress | None = None,
    *,
    backup: Annotated[Path, bounds("The backup's file.")],
    target: Annotated[
        Path | None, bounds("The folder of the home; default: the one from the settings.")
    ] = None,
    replace: Annotated[bool, bounds("Move an existing home aside and replace it.")] = False,
) -> backups.RestoreReport:
    """Restore a backup as a home. Raises NotFoundError, InvalidInputError, ConflictError, UnavailableError."""
    target = (target or settings.home).expanduser().absolute()
    if settings.server and target == settings.home:
        raise UnavailableError(
            "this memory is on a server, but a backup contains files",
            hint="--to FOLDER restores the files; docs/server.md describes how to restore a server",
        )
    if target != settings.home and territory(settings).holds(target):
        raise ConflictError(f"{target} is inside the existing home", hint="give a folder elsewhere")
    return backups.restore(backup, target, replace=replace, on_progress=on_progress)
