"""Import memories from other systems, and capture hosts' own memories.

Statements in notes have no ids and are identified by their words. An edited statement therefore
looks like a removed and an added statement, which are paired if they share enough words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from enum import StrEnum
from operator import itemgetter
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, content_hash
from nacre.base.plain import mapping
from nacre.base.text import to_bytes, words
from nacre.data.export import ImportOptions
from nacre.data.importers import (
    MOST_BYTES,
    ORIGIN,
    ImportedMemory,
    ImportSource,
    Operation,
    Page,
    Skipped,
    Talk,
    Transcript,
    detect,
    get_source,
    open_tree,
    project_of,
    words_hash,
)
from nacre.errors import (
    InvalidInputError,
    InvalidMemoryError,
    NotFoundError,
)
from nacre.home.change import Change, Run, known_or_named, read_pages, write_new_page
from nacre.home.home import Home
from nacre.home.location import clean_values, redact
from nacre.hosts import own_memory
from nacre.hosts.host import MemoryPlace
from nacre.hosts.registry import ALL_HOSTS
from nacre.hosts.ways import places_of
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.edit import catch_up
from nacre.memories.judge import SUPERSEDES, compare, reconcile
from nacre.memories.placement import place as placement_place
from nacre.memories.placement import put, write_touched
from nacre.memories.usage import fold_usage
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.store.memories import memory_hash
from nacre.values.memory import MAX_BODY_BYTES, Memory
from nacre.values.reports import IngestReport, OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Trust
from nacre.vault import files

_MIN_LIKENESS = 0.6
"""Minimum similarity of an edited statement to its original, from 0 to 1."""

_STATEMENT = "#"


def origin_of(memory: Memory) -> Mapping[str, str]:
    """Return the origin of an imported memory, or an empty mapping for other memories."""
    return mapping(memory.extra, ORIGIN)


def is_untouched(memory: Memory) -> bool:
    """Return True if a memory's content has not changed since its import."""
    return words_hash(memory.content) == origin_of(memory).get("hash")


def edited_statements(home: Home, source: str, offered: Sequence[Memory]) -> dict[str, Memory]:
    """Find the memories whose statements were edited in the source since the last import.

    Returns each old memory by the id of the new one, except memories also edited in nacre.
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

_MAX_SIMILAR = 12
_ENDING_RELATIONS = frozenset({SUPERSEDES, "contradicts"})


class Action(StrEnum):
    """The decision about a memory to import."""

    ADD = "add"
    UPDATE = "update"
    TRUST = "trust"
    BRING_BACK = "bring back"
    PRESENT = "known"
    DUPLICATE = "duplicate"


@frozen
class Step:
    """The decision about one memory to import, with the reason.

    ``same_as`` is the id of the memory that it duplicates.
    """

    memory: Memory
    action: Action
    reason: str | None = None
    usage: Usage | None = None
    same_as: str | None = None


@dataclass(slots=True)
class ImportPlan:
    """The content of an import, with a decision about each memory."""

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
        """Return the number of memories with the given decision."""
        return sum(step.action is action for step in self.steps)

    @property
    def kinds(self) -> dict[str, int]:
        """The number of new memories of each kind."""
        return dict(
            Counter(
                step.memory.kind.value for step in self.steps if step.action is Action.ADD
            ).most_common()
        )

    @property
    def is_empty(self) -> bool:
        """True if the plan changes nothing."""
        todo = any(step.action not in (Action.PRESENT, Action.DUPLICATE) for step in self.steps)
        return not (todo or self.pages or self.entries or self.transcripts or self.sessions)


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    ``duplicates`` counts memories that turned out to be duplicates only after they were added.
    """

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
    items = []
    for item in source.read(tree):
        match item:
            case ImportedMemory():
                items.append(item)
            case Skipped():
                plan.skipped.append(item)
            case Transcript(path):
                plan.transcripts.append(path)
            case Talk() if not home.sessions.find(item.session.id):
                plan.sessions += 1
                plan.turns += len(item.turns)
            case Page(path) if home.vault.exists(path):
                plan.skipped.append(Skipped(path, "a page already exists"))
            case Page():
                plan.pages.append(item)
            case Operation(values):
                plan.entries += files.read(files.encode(clean_values(home.redactor, values)))
    present = {entry.line() for entry in files.read(home.ledger())}
    new_entries = {entry.line(): entry for entry in plan.entries if entry.line() not in present}
    plan.entries = list(new_entries.values())
    _withhold(plan)
    _add_steps(home, plan, items)
    return plan


def carry_out(
    home: Home, plan: ImportPlan, on_progress: OnProgress = lambda _: None
) -> ImportReport:
    """Carry out an import plan. After a crash, the next import completes the work.

    Raises OwnerOnlyError if an agent imports conversations, which would count as the user's words.
    """
    if plan.transcripts:
        home.actor.require_owner("nacre data import of conversations")
    trust = "trusted" if plan.options.trust else "untrusted"
    why = f"from {plan.source.label}, {plan.options.path}, {trust}"
    report = ImportReport()
    with home.run("import", why=why) as run:
        for page in plan.pages:
            report.pages += write_new_page(run, page.path, home.redactor.clean(page.document))
        if plan.pages:
            read_pages(home)
        _write_memories(home, run, plan, report, on_progress)
        # A later import recognises the entries of another vault by their original ids.
        if plan.entries:
            with run.part() as change:
                change.append(plan.entries)
        report.entries = len(plan.entries)
        if plan.sessions:
            _write_talks(home, plan, report, on_progress)
        if plan.transcripts:
            ingested = IngestOptions(paths=tuple(plan.transcripts), vectors=plan.options.vectors)
            report.ingest = ingest(home, ingested, on_progress, run=run)
        elif plan.options.vectors and (report.added or report.brought_back):
            embed_pending(home, on_progress)
    return report


def _withhold(plan: ImportPlan) -> None:
    if plan.options.trust:
        return
    withheld = (
        (plan.pages, "project pages"),
        (plan.entries, "ledger entries"),
        (range(plan.sessions), "sessions"),
    )
    for items, name in withheld:
        if items:
            plan.skipped.append(Skipped(f"{len(items)} {name}", "requires --trust"))
    plan.pages, plan.entries, plan.sessions, plan.turns = [], [], 0, 0


def _candidate(home: Home, plan: ImportPlan, item: ImportedMemory) -> Step | None:
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
    memory = replace(memory, project=files.slugify(project) or None if project else None)
    is_own = plan.source.name == "nacre"
    trust = (memory.trust if is_own else Trust.TRUSTED) if plan.options.trust else Trust.UNTRUSTED
    memory = replace(memory, trust=trust)
    return Step(memory, Action.ADD, usage=item.usage if plan.options.trust else None)


def _add_steps(home: Home, plan: ImportPlan, items: Sequence[ImportedMemory]) -> None:
    candidates = [shaped for item in items if (shaped := _candidate(home, plan, item))]
    edited = edited_statements(home, plan.source.name, [step.memory for step in candidates])
    ids = set()
    ids_by_digest: dict[bytes, str] = {}
    for step in candidates:
        if step.memory.id in ids:
            plan.skipped.append(Skipped(step.memory.id, "two records with the same id"))
            continue
        ids.add(step.memory.id)
        plan.steps.append(_decide(home, plan, step, edited, ids_by_digest))


def _decide(
    home: Home,
    plan: ImportPlan,
    step: Step,
    edited: Mapping[str, Memory],
    ids_by_digest: dict[bytes, str],
) -> Step:
    memory = step.memory
    present = home.memories.find(memory.id)
    if present:
        return _decide_about_present(plan, step, present)
    same = home.memories.same_content(memory.content, memory.project)
    before = edited.get(memory.id)
    if before and not same and _may_replace(step, before):
        return _updating(step, before)
    digest = memory_hash(memory.content, memory.project)
    reason = "same text as an existing memory"
    if same is None and digest in ids_by_digest:
        same, reason = ids_by_digest[digest], "same text twice in the import"
    if same is None and memory.is_active:
        same, reason = _repetition(home, memory)
    if same:
        return replace(step, action=Action.DUPLICATE, reason=reason, same_as=same)
    ids_by_digest[digest] = memory.id
    return step


def _decide_about_present(plan: ImportPlan, step: Step, present: Memory) -> Step:
    trust = step.memory.trust
    if plan.options.trust and present.was_taken_out and not step.memory.retired:
        back = replace(present, retired=None, trust=trust)
        reason = "removed here by an undo"
        return replace(step, memory=back, action=Action.BRING_BACK, reason=reason)
    state = "imported before" if ORIGIN in present.extra else "already here"
    state = "retired here" if present.retired else state
    if plan.options.trust and (present.trust, trust) == (Trust.UNTRUSTED, Trust.TRUSTED):
        trusted = replace(present, trust=trust)
        return replace(step, memory=trusted, action=Action.TRUST, reason=state)
    theirs, ours = origin_of(step.memory), origin_of(present)
    is_edited = theirs and ours and theirs.get("hash") != ours.get("hash")
    if is_edited and not present.retired:
        if is_untouched(present) and _may_replace(step, present):
            return _updating(step, present)
        state = (
            "edited there, but trusted here: needs --trust"
            if is_untouched(present)
            else "edited in both places; kept as it is here"
        )
    return replace(step, action=Action.PRESENT, reason=state)


def _repetition(home: Home, memory: Memory) -> tuple[str | None, str]:
    rows = home.comparisons.alike(memory, limit=_MAX_SIMILAR)
    similar = {other.id: other for other in home.memories.by_rows(rows).values()}
    active = [other for other in similar.values() if not other.superseded_by]
    again = next((other for other in compare(memory, active) if other.repeats), None)
    return (again.other.id, again.verdict.reason) if again else (None, "")


def _may_replace(step: Step, present: Memory) -> bool:
    return step.memory.is_vouched or not present.is_vouched


def _updating(step: Step, present: Memory) -> Step:
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
    todo = [step for step in plan.steps if step.action not in (Action.PRESENT, Action.DUPLICATE)]
    same = {step.memory.id: step.same_as for step in plan.steps if step.same_as}
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
    # A duplicate can be found after a memory that links to it was written.
    added = [memory for memory in map(home.memories.find, report.added) if memory]
    changed = [new for memory in added if (new := _redirected(home, memory, same)) != memory]
    for start in range(0, len(changed), BATCH):
        with run.part() as change:
            change.put(changed[start : start + BATCH])


def _chains(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Group memories that supersede each other, because they must be written together."""
    by_id = {step.memory.id: step for step in steps}
    chains: dict[str, list[tuple[int, Step]]] = {}
    for step in steps:
        last, visited = step, set[str]()
        while (by := last.memory.superseded_by) in by_id and by not in visited:
            visited.add(by)
            last = by_id[by]
        chains.setdefault(last.memory.id, []).append((len(visited), step))
    for chain in chains.values():
        yield [step for _, step in sorted(chain, key=itemgetter(0))]


def _redirected(home: Home, memory: Memory, same: Mapping[str, str]) -> Memory:
    links = [replace(link, to=same.get(link.to, link.to)) for link in memory.links]
    ended_ids = {link.to for link in links if link.rel in _ENDING_RELATIONS}
    # An untrusted import must not retire the user's memories.
    protected_ids = {
        other.id
        for other in home.memories.in_any_state(sorted(ended_ids))
        if other.is_vouched and not memory.is_vouched
    }
    kept = (
        link
        for link in links
        if link.to != memory.id and not (link.rel in _ENDING_RELATIONS and link.to in protected_ids)
    )
    by = memory.superseded_by
    return replace(
        memory, links=tuple(dict.fromkeys(kept)), superseded_by=same.get(by, by) if by else None
    )


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
    memory = _redirected(change.home, step.memory, same)
    if change.home.memories.find(memory.id):
        return  # another import added it first
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


def _write_talks(home: Home, plan: ImportPlan, report: ImportReport, notify: OnProgress) -> None:
    for talk in plan.source.read(open_tree(plan.options.path, home.redactor.clean)):
        if not isinstance(talk, Talk):
            continue
        if home.sessions.find(talk.session.id):
            continue
        with home.transaction():
            row = home.sessions.upsert(
                talk.session, project=project_of(talk.project), file=talk.file
            )
            report.turns += home.sessions.add_turns(talk.session, row, talk.turns)
            home.sessions.refresh([row])
            # The import already contains the memories of this session.
            home.sessions.mark_extracted(row, len(talk.turns))
        report.sessions += 1
        notify(Progress("importing", report.sessions, plan.sessions, "sessions"))


# -- Capture of hosts' own memories ----------------------------------------------------------------
# If a host writes notes although its own memory is off, they are imported as an agent's untrusted statements. A file or
# folder is read again only if its notes have changed.


_MAX_NOTES = 5_000


@frozen
class Captured:
    """The result of importing the notes that a host keeps itself.

    ``problem`` explains a failure.
    """

    host: str
    path: Path
    added: int = 0
    updated: int = 0
    problem: str = ""


def capture(home: Home, hosts: Sequence[str] = ()) -> list[Captured]:
    """Import new notes from the hosts' own memories, by default from those that are switched off.

    After a crash, the next call completes the import.
    """
    folder = home.settings.home
    state = own_memory.load(folder)
    captures = []
    for host in hosts or state.hosts:
        for place in _places(home, host):
            notes = _digest(place.path)
            if state.read.get(str(place.path), "") == notes:
                continue
            captured = Captured(host, place.path)
            if notes:
                captured = _import_notes(home, place, captured)
            captures.append(captured)
            state = replace(state, read={**state.read, str(place.path): notes})
            own_memory.save(folder, state)
    return captures


def _places(home: Home, host: str) -> Sequence[MemoryPlace]:
    own = ALL_HOSTS[host].own_memory if host in ALL_HOSTS else None
    return own(places_of(home.settings)) if own else ()


def _import_notes(home: Home, place: MemoryPlace, captured: Captured) -> Captured:
    try:
        plan = plan_import(home, ImportOptions(path=place.path, source=place.source, vectors=False))
    except (InvalidInputError, NotFoundError) as error:
        return replace(captured, problem=error.message)
    report = carry_out(home, plan) if not plan.is_empty else ImportReport()
    return replace(captured, added=len(report.added), updated=report.updated)


def _digest(path: Path) -> str:
    parts = []
    for note in _notes(path):
        with suppress(OSError):
            content = note.read_bytes() if note.stat().st_size <= MOST_BYTES else b""
            parts.append(f"{note.relative_to(path)}\0{bytes_hash(content).hex()}\0")
    return content_hash("".join(parts)).hex() if parts else ""


def _notes(path: Path) -> Iterator[Path]:
    if path.is_symlink():
        return
    if path.is_file():
        yield path
    elif path.is_dir():
        paths = (note for note in path.rglob("*.md") if note.is_file() and not note.is_symlink())
        yield from sorted(note for _, note in zip(range(_MAX_NOTES), paths, strict=False))


# -- Operations ----------------------------------------------------------------------------------


@operation("import", writes=True, takes_long=True)
def import_(
    home: Home, request: ImportOptions, on_progress: OnProgress = lambda _: None
) -> ImportReport:
    """Import memories from another system or an account's export. Raises NotFoundError, InvalidInputError."""
    return carry_out(home, plan_import(home, request), on_progress)
