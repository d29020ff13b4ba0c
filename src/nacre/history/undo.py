"""Undo an operation: bring back what it changed, and leave alone what was changed since.

Field by field: what the operation changed and nobody touched since goes back; what a later operation changed stays, and
where both changed the same field, nothing is undone unless the owner says so: then both versions are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

from nacre import views
from nacre.dedup.supersession import released
from nacre.errors import Conflict, NotFound
from nacre.history.operations import changes_of, find_operation, look, memory_of
from nacre.home.change import FEW, Change
from nacre.home.home import Home
from nacre.home.operations import is_going_on
from nacre.home.projects import read_pages
from nacre.home.redaction import redacted
from nacre.memories.scan import scan
from nacre.platform.ids import bytes_hash, to_ms
from nacre.values.filters import SessionFilter
from nacre.values.memory import UNDONE, Link, Memory, Retirement
from nacre.values.operation import ADOPT, DECISIONS, FOREIGN, RENAME, Intent, Operation, SeenMemoryFile
from nacre.vault import identity
from nacre.vault.document import parse
from nacre.vault.layout import is_memory_file
from nacre.vault.ledger import Entry
from nacre.vault.merging import merge_versions
from nacre.vault.merging_document import LISTS
from nacre.views import Version

UNDO = "undo"
_WHY = "undoes {action} {id}"
_LOOKED_BACK = 500
"""Operations among which the last one to be undone is looked for."""

_FILE = "file"
_NAMES = {"body": "content"}


@dataclass(frozen=True, slots=True)
class Step:
    """What undo does to one memory or file.

    ``action`` is ``bring back``, ``change back``, ``retire``, ``remove``, ``keep both``, ``conflict`` or ``leave``;
    ``clashes`` names the fields that were changed since.
    """

    action: str
    change: views.Change
    memory: Memory | None = None
    clashes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """What it is about, in words."""
        known = self.memory or memory_of(self.change.latest)
        return known.subject if known and self.change.memory else self.change.latest.path


@dataclass(frozen=True, slots=True)
class Undoing:
    """An operation that is to be undone, or was, step by step; ``op`` is the id of the undo once it is done.

    ``waiting`` is what the operation decided in review, and waits there again: memories, and candidates.
    """

    operation: Operation
    steps: tuple[Step, ...]
    op: str | None = None
    waiting: tuple[Memory, ...] = ()

    @property
    def conflicts(self) -> list[Step]:
        """What was changed since in the same place."""
        return [step for step in self.steps if step.action == "conflict"]


def plan_undo(home: Home, reference: str | None, *, force: bool = False) -> Undoing:
    """What an undo would do. Raises NotFound, Conflict."""
    operation, changes = _found(home, reference)
    return _planned(home, operation, changes, force=force)


def undo(home: Home, reference: str | None, *, force: bool = False) -> Undoing:
    """Undo an operation, by default the last one that is not undone; itself an operation, which can be undone.

    Raises Conflict when something was changed since in the same place, unless ``force``: then the present version stays
    and the former one is kept beside it, linked.
    """
    found, changes = _found(home, reference)  # git is asked before the lock is taken
    scan(home)
    edition = home.database.edition()
    planned = _planned(home, found, changes, force=force)  # it reads every file, and nobody is to wait meanwhile
    why = _WHY.format(action=found.action, id=_end(found))
    with home.change(UNDO, subject=found.subject, why=why) as change:
        if scan(home) or home.database.edition() != edition:
            planned = _planned(home, found, changes, force=force)
        if planned.conflicts:
            named = "; ".join(f"{step.subject} ({', '.join(step.clashes)})" for step in planned.conflicts[:5])
            raise Conflict(
                f"{len(planned.conflicts)} changed since in the same place: {named}",
                hint="--force keeps the present version and the former one beside it, linked",
            )
        if not planned.steps and not planned.waiting:
            raise _nothing_left(home, found)
        _do(change, planned, force=force)
    read_pages(home)
    return replace(planned, op=change.operation_id)


def _found(home: Home, reference: str | None) -> tuple[Operation, list[views.Change]]:
    look(home)
    for operation in [find_operation(home, reference)] if reference else not_undone(home):
        if is_going_on(home, operation):
            raise Conflict("this operation is still going on", hint="wait for it, or end it, then undo it")
        changes = changes_of(home, operation)
        if reference or changes or operation.action not in DECISIONS or _decided(home, operation):
            return operation, changes
    raise NotFound(
        "there is nothing to undo", hint="nacre log shows what was done; an undo is taken back by its own id"
    )


def _decided(home: Home, operation: Operation) -> tuple[Memory, ...]:
    """What an operation decided in review, and nobody since: memories, and candidates whose words are still there."""
    at = to_ms(operation.at) or 0
    kept = home.memories.rows_of(home.reviews.settled_at(at)).values()
    return (*kept, *(one.memory for one in home.candidates.settled_at(at)))


def not_undone(home: Home) -> Iterator[Operation]:
    """The operations that are neither an undo nor undone, the last one first, so that one undo after the other goes
    further back.

    What people and other programs did to the vault's files is undone by its id alone.
    """
    undone: set[str] = set()
    for operation in home.journal.operations(limit=_LOOKED_BACK):
        if _end(operation) in undone:
            continue
        if operation.action not in (UNDO, ADOPT, FOREIGN):
            yield operation
        else:
            undone.add((operation.why or "").rpartition(" ")[2])


def _nothing_left(home: Home, found: Operation) -> Conflict:
    earlier = next((one for one in not_undone(home) if one.id < found.id), None)
    hint = "nacre log shows what else was done"
    if earlier:
        about = f" ({earlier.subject})" if earlier.subject else ""
        hint = f"nacre undo {_end(earlier)} takes back what was done before it, {earlier.action}{about}"
    return Conflict(f"nothing of this operation is left to undo: {found.action} {_end(found)}", hint=hint)


def _end(operation: Operation) -> str:
    return operation.id[-8:]


def _planned(home: Home, operation: Operation, changes: Sequence[views.Change], *, force: bool) -> Undoing:
    steps = (_step(home, operation, change, force=force) for change in changes)
    kept = tuple(step for step in steps if step.action != "leave")
    return Undoing(operation, kept, waiting=_decided(home, operation))


def _do(change: Change, planned: Undoing, *, force: bool) -> None:
    home = change.home
    memories = sorted({step.change.memory for step in planned.steps if step.change.memory})
    gone: list[Memory] = []
    is_stale = False
    told: list[Entry] = []
    with change.transaction():
        for planned_step in planned.steps:
            step = _step(home, planned.operation, planned_step.change, force=force) if is_stale else planned_step
            was_retired = _is_retired(home, step)
            _take(change, step)
            for at in _settled_at(planned.operation, step):
                home.reviews.reopen(step.change.memory, to_ms(at) or 0)
            told += _retirement_told(change, step, was_retired)
            if step.action == "retire" and step.memory:
                gone.append(step.memory)
            is_stale = (len(planned.steps) > FEW and change.yield_locks()) or is_stale
        settled = to_ms(planned.operation.at) or 0
        for one in planned.waiting:
            home.reviews.reopen(one.id, settled)
        for candidate in home.candidates.settled_at(settled):
            home.candidates.unsettle(candidate.memory.id)
        for one in released(home, gone):
            if one.id not in memories:
                change.put([one])
        change.append([*told, change.entry(UNDO, of=planned.operation.id, memories=memories[:20])])


def _settled_at(operation: Operation, step: Step) -> set[datetime]:
    """When that was settled in review which a memory waits for again: with what the operation made of it."""
    left = memory_of(step.change.after) if step.change.memory and step.change.after else None
    if left is None or step.action not in ("bring back", "change back"):
        return set()
    return {operation.at, left.updated, *([left.retired.at] if left.retired else [])}


def _is_retired(home: Home, step: Step) -> bool:
    """Whether the memory of a step is retired; one that is not there holds as little."""
    present = home.memories.find(step.change.memory) if step.change.memory else None
    return present is None or present.retired is not None


def _retirement_told(change: Change, step: Step, was_retired: bool) -> Iterator[Entry]:
    """What the ledger is to say, as of any other retirement or return of a memory."""
    memory = step.change.memory
    if memory and (is_retired := _is_retired(change.home, step)) != was_retired:
        reason = {"reason": UNDONE} if is_retired else {}
        yield change.entry("retire" if is_retired else "restore", memory=memory, **reason)


def _take(change: Change, step: Step) -> None:
    if step.action in ("change back", "keep both", "retire"):
        change.put([step.memory] if step.memory else [])
    elif step.action == "bring back" and step.change.before:
        _bring_back(change, step.change, step.memory)
    elif step.action == "remove" and step.change.after:
        _remove(change, step.change.after)
    elif step.action == "conflict":
        change.home.problems.append(f"{step.subject}: was changed meanwhile, and stays as it is")


def _step(home: Home, operation: Operation, change: views.Change, *, force: bool) -> Step:
    if not change.memory or not is_memory_file(change.latest.path):
        return _file_step(home, operation, change)
    present = home.memories.find(change.memory)
    before, after = (memory_of(version) if version else None for version in (change.before, change.after))
    if present is None:
        return Step("bring back", change, before) if before else Step("leave", change)
    if after is None and before is not None:
        # It was deleted for good, and is there again: that is what undoing would do.
        return Step("leave", change)
    if before is None:
        return _unmake(home, change, present)
    if _is_as_left(home, change) and redacted(home.redactor, before) == before:
        return Step("bring back", change, replace(before, id=present.id))
    merged, clashes = _merge(home, change, present)
    if clashes:
        return _both(home, change, present, before, clashes) if force else Step("conflict", change, present, clashes)
    if _same(replace(merged, updated=present.updated), present):
        return Step("leave", change)
    return Step("change back", change, replace(merged, updated=home.now()))


def _unmake(home: Home, change: views.Change, present: Memory) -> Step:
    """The operation made the memory: it is retired, so that it does not come back from where it was learned."""
    if present.retired:
        return Step("leave", change)
    return Step("retire", change, replace(present, retired=Retirement(home.now(), UNDONE)))


def _both(home: Home, change: views.Change, present: Memory, before: Memory, clashes: tuple[str, ...]) -> Step:
    former = replace(
        before, id=home.ids(), links=(*before.links, Link("alternative_to", present.id, "as it was before an undo")),
        superseded_by=None, canonical_key=None,
    )  # fmt: skip
    return Step("keep both", change, former, clashes)


def _file_step(home: Home, operation: Operation, change: views.Change) -> Step:
    """A file that holds no memory goes back as a whole."""
    present = _text(home, change.latest.path)
    after = change.after.text if change.after else None
    before = change.before.text if change.before else None
    if present == before:
        return Step("leave", change)
    if present != after:
        return Step("conflict", change, None, (_FILE,))
    if before is None and operation.action != RENAME and _is_needed(home, change.latest.path):
        return Step("leave", change)
    return Step("bring back" if before is not None else "remove", change)


def _is_needed(home: Home, path: str) -> bool:
    """Whether a file is the page of a project that sessions belong to: those an undo does not take back, unless
    it takes back the name of the project: they follow it."""
    folder, _, name = path.rpartition("/")
    slug = folder.removeprefix("projects/")
    return name == "project.md" and bool(home.sessions.newest(SessionFilter(project=slug, subagents=True), limit=1))


def _is_as_left(home: Home, change: views.Change) -> bool:
    """Whether the memory's file is as the operation left it and as the index knows it, and its former place is free.

    The index alone cannot tell: it has tags and links in an order of its own, and each of them once.
    """
    file = home.files.file_of(change.memory)
    if file is None or change.before is None or change.after is None or file.path != change.after.path:
        return False
    is_free = change.before.path == file.path or not home.vault.exists(change.before.path)
    try:
        data = home.vault.read(file.path)
    except FileNotFoundError:
        return False
    return is_free and bytes_hash(data) == file.hash and data.decode("utf-8", "replace") == change.after.text


def _text(home: Home, path: str) -> str | None:
    try:
        return home.vault.read(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def _bring_back(change: Change, undone: views.Change, memory: Memory | None) -> None:
    """Put a file back as it was, byte for byte."""
    home = change.home
    before, after = undone.before, undone.after
    if before is None:
        return
    intents = []
    if memory is not None:
        if after is not None and after.path != before.path:
            home.files.forget(after.path)
            base = bytes_hash(after.text.encode("utf-8", "replace"))
            intents.append(Intent("remove", after.path, base=base, memory=memory.id, former=after.text))
        home.files.save(
            SeenMemoryFile(before.path, memory.id, 0, 0, bytes_hash(before.text.encode("utf-8", "replace")))
        )
        home.memories.put(memory)
    present = _text(home, before.path)
    known = bytes_hash(present.encode("utf-8", "replace")) if present is not None else None
    write = Intent("write", before.path, before.text, known, memory.id if memory else None, former=present)
    change.intend([write, *intents])


def _remove(change: Change, after: Version) -> None:
    base = bytes_hash(after.text.encode("utf-8", "replace"))
    change.intend([Intent("remove", after.path, base=base, former=after.text)])


def _merge(home: Home, change: views.Change, present: Memory) -> tuple[Memory, tuple[str, ...]]:
    """Go from what the operation left to what was before, in what is there now; and the fields where that cannot be.

    It is the merge of a sync: the present version on one side, the former one on the other.
    """
    file = home.files.file_of(present.id)
    text = _text(home, file.path) if file else None
    left, former = change.after, change.before
    if file is None or text is None or left is None or former is None:
        return present, (_FILE,)
    versions = (_version(left), identity.Version(file.path, text.encode("utf-8", "replace")), _version(former))
    merged = merge_versions(*versions)
    if merged is None:
        return present, (_FILE,)
    path, document = merged
    clashes = tuple(_NAMES.get(name, name) for name in document.fields if name not in LISTS)
    result = parse(document.text, path, new_id=lambda: present.id, modified=present.updated)
    return replace(redacted(home.redactor, result), id=present.id), clashes


def _version(version: Version) -> identity.Version:
    return identity.Version(version.path, version.text.encode("utf-8", "replace"))


def _same(one: Memory, other: Memory) -> bool:
    """Whether two memories say the same; the order of their tags, links and other lists does not count."""
    names = [field.name for field in fields(Memory) if field.name != "id"]
    return all(_unordered(getattr(one, name)) == _unordered(getattr(other, name)) for name in names)


def _unordered(value: object) -> object:
    return frozenset(value) if isinstance(value, tuple) else value
