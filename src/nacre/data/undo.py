"""Operations, looked at: the list of them, and what one of them changed, from the journal or from the history."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta

from nacre.base.ids import bytes_hash, to_ms
from nacre.base.request import Request
from nacre.data.history import Committed, catch_up, commit_operations
from nacre.errors import Conflict, GitUnavailable, MemoryInvalid, NotFound, RepositoryUnusable
from nacre.home import views
from nacre.home.change import FEW, read_pages
from nacre.home.change import Change as change_Change
from nacre.home.home import Home
from nacre.home.location import redacted
from nacre.home.operations import is_going_on
from nacre.home.views import Change, Difference, FieldChange, Listed, OperationDiff, Version
from nacre.memories.edit import scan
from nacre.memories.judge import released
from nacre.memories.store import get
from nacre.values.memory import (
    ADOPT,
    DECISIONS,
    FOREIGN,
    RENAME,
    UNDONE,
    Intent,
    Link,
    Memory,
    Operation,
    Retirement,
    SeenMemoryFile,
    SessionFilter,
)
from nacre.vault import documents, merging
from nacre.vault.documents import parse
from nacre.vault.files import LEDGER, LedgerEntry, is_memory_file
from nacre.vault.merging import LISTS, merge_versions

_PATH = "file"


def log(
    home: Home,
    *,
    reference: str | None = None,
    project: str | None = None,
    action: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> list[Listed]:
    """Operations, the newest first: all, those on one memory, in one project, of one action.

    Raises NotFound, Conflict.
    """
    look(home)
    memory = _memory_meant(home, reference) if reference else None
    found = home.journal.operations(
        memory=memory, project=project, action=action, limit=limit, offset=offset
    )
    return [Listed(one, tuple(memories_of(home, one))) for one in found]


def _memory_meant(home: Home, reference: str) -> str:
    """The id of a memory, also of one that is gone when all of its id is given. Raises NotFound, Conflict."""
    try:
        return get(home, reference).id
    except NotFound:
        if home.journal.operations(memory=reference, limit=1):
            return reference
        raise


def memories_of(home: Home, operation: Operation) -> list[str]:
    """The memories an operation touched."""
    return list(dict.fromkeys(memory for _, memory in home.journal.touched(operation.id) if memory))


def find_operation(home: Home, reference: str) -> Operation:
    """An operation by its id, or four characters at least of its beginning or end. Raises NotFound, Conflict."""
    found = home.journal.find_like(reference.strip().lower())
    if not found:
        raise NotFound(f"no operation is called {reference!r}", hint="nacre log shows ids")
    if len(found) > 1:
        names = ", ".join(operation.id for operation in found)
        raise Conflict(
            f"{reference!r} means several operations: {names}", hint="give more of the id"
        )
    return found[0]


def operation_meant(home: Home, reference: str | None) -> Operation:
    """The operation named, the last one on the memory named, or the last one of all. Raises NotFound, Conflict."""
    look(home)
    if reference:
        with contextlib.suppress(NotFound):
            return find_operation(home, reference)
    memory = get(home, reference).id if reference else None
    last = home.journal.operations(memory=memory, limit=1)
    if not last:
        raise NotFound(
            "nothing was done yet" if memory is None else "no operation on it is known",
            hint="nacre log",
        )
    return last[0]


def look(home: Home) -> None:
    """Take in what people did to files, and what came into the history."""
    scan(home)
    with contextlib.suppress(GitUnavailable, RepositoryUnusable):
        catch_up(home)


def changes_of(home: Home, operation: Operation) -> list[Change]:
    """What an operation changed. Raises NotFound where neither journal nor history has its texts any more."""
    touched = dict(home.journal.touched(operation.id))
    if operation.committed:
        states = _committed(home, operation.committed, list(touched))
    else:
        states = _pending(home, operation)
        if touched and not states:
            raise NotFound(
                "the texts of this operation are not kept any more",
                hint="with git on (git.enabled), nothing of the history is dropped",
            )
    return _by_memory(touched, states)


def differences(changes: Iterable[Change]) -> list[Difference]:
    """Changes as people read them."""
    return [_difference(change) for change in changes]


def memory_of(version: Version) -> Memory | None:
    """The memory in a version of a file; ``None`` when it is not well formed."""
    try:
        return parse(
            version.text, version.path, new_id=lambda: "", modified=datetime.fromtimestamp(0, UTC)
        )
    except MemoryInvalid:
        return None


_States = dict[str, tuple[str | None, str | None]]
"""Path → the text before and after."""


def _pending(home: Home, operation: Operation) -> _States:
    states: _States = {}
    known: dict[str, str | None] = {}
    rows = [row for row in home.journal.written_by(operation.id) if row.action != "append"]
    firsts = {row.path: row for row in reversed(rows)}
    for path, row in firsts.items():
        before = home.journal.before(row)
        known[path] = before[1] if before else None
    known |= _head_texts(
        home, [path for path, row in firsts.items() if home.journal.before(row) is None]
    )
    for row in rows:
        former = known[row.path] if known[row.path] is not None else firsts[row.path].former
        states[row.path] = (former, None if row.action == "remove" else row.document)
    return states


def _head_texts(home: Home, paths: Sequence[str]) -> dict[str, str | None]:
    try:
        repository = home.repository
        if not paths or not repository.exists or repository.head().commit is None:
            return {}
        found = repository.read([f"HEAD:{path}" for path in paths])
    except (GitUnavailable, RepositoryUnusable):
        return {}
    return {
        name.removeprefix("HEAD:"): data.decode("utf-8", "replace") for name, data in found.items()
    }


def _committed(home: Home, commit: str, paths: Sequence[str]) -> _States:
    paths = [path for path in paths if path != LEDGER]
    names = [f"{commit}:{path}" for path in paths] + [f"{commit}^:{path}" for path in paths]
    found = {
        name: data.decode("utf-8", "replace") for name, data in home.repository.read(names).items()
    }
    return {path: (found.get(f"{commit}^:{path}"), found.get(f"{commit}:{path}")) for path in paths}


def _by_memory(touched: dict[str, str], states: _States) -> list[Change]:
    """One change a memory: a file that went and one that came are the two sides of a move."""
    changes: dict[str, Change] = {}
    for path, (before, after) in states.items():
        if before == after:
            continue
        memory = touched.get(path, "")
        key = memory or path
        known = changes.get(key, Change(memory, None, None))
        if before is not None and known.before is None:
            known = replace(known, before=Version(path, before))
        if after is not None:
            known = replace(known, after=Version(path, after))
        changes[key] = known
    return [change for change in changes.values() if change.before != change.after]


def _difference(change: Change) -> Difference:
    before, after = (_parts(version) for version in (change.before, change.after))
    names = dict.fromkeys([*before[0], *after[0]])
    fields = [
        FieldChange(name, before[0].get(name), after[0].get(name))
        for name in names
        if before[0].get(name) != after[0].get(name)
    ]
    places = [version.path if version else None for version in (change.before, change.after)]
    if places[0] != places[1]:
        fields.insert(0, FieldChange(_PATH, *places))
    lines = [
        line
        for line in difflib.unified_diff(before[1], after[1], lineterm="", n=2)
        if line[:3] not in ("---", "+++")
    ]
    lines = [line for line in lines if not line.startswith("@@")]
    return Difference(change, _subject(change), tuple(fields), tuple(lines))


def _subject(change: Change) -> str:
    memory = memory_of(change.latest) if is_memory_file(change.latest.path) else None
    return memory.subject if memory else change.latest.path


def _parts(version: Version | None) -> tuple[dict[str, Any], list[str]]:
    """Front matter and the lines of the text."""
    if version is None:
        return {}, []
    front, body = documents.split(version.text)
    try:
        values = documents.load(front) if front else {}
    except MemoryInvalid:
        return {}, version.text.splitlines()
    return values, body.strip().splitlines()


# ----------------------------------------------------------------------------
# Undo an operation: bring back what it changed, and leave alone what was changed since.
#
# Field by field: what the operation changed and nobody touched since goes back; what a later
# operation changed stays, and
# where both changed the same field, nothing is undone unless the owner says so: then both versions
# are kept.


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
    planned = _planned(
        home, found, changes, force=force
    )  # it reads every file, and nobody is to wait meanwhile
    why = _WHY.format(action=found.action, id=_end(found))
    with home.change(UNDO, subject=found.subject, why=why) as change:
        if scan(home) or home.database.edition() != edition:
            planned = _planned(home, found, changes, force=force)
        if planned.conflicts:
            named = "; ".join(
                f"{step.subject} ({', '.join(step.clashes)})" for step in planned.conflicts[:5]
            )
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
            raise Conflict(
                "this operation is still going on", hint="wait for it, or end it, then undo it"
            )
        changes = changes_of(home, operation)
        if reference or changes or operation.action not in DECISIONS or _decided(home, operation):
            return operation, changes
    raise NotFound(
        "there is nothing to undo",
        hint="nacre log shows what was done; an undo is taken back by its own id",
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
    return Conflict(
        f"nothing of this operation is left to undo: {found.action} {_end(found)}", hint=hint
    )


def _end(operation: Operation) -> str:
    return operation.id[-8:]


def _planned(
    home: Home, operation: Operation, changes: Sequence[views.Change], *, force: bool
) -> Undoing:
    steps = (_step(home, operation, change, force=force) for change in changes)
    kept = tuple(step for step in steps if step.action != "leave")
    return Undoing(operation, kept, waiting=_decided(home, operation))


def _do(change: change_Change, planned: Undoing, *, force: bool) -> None:
    home = change.home
    memories = sorted({step.change.memory for step in planned.steps if step.change.memory})
    gone: list[Memory] = []
    is_stale = False
    told: list[LedgerEntry] = []
    with change.transaction():
        for planned_step in planned.steps:
            step = (
                _step(home, planned.operation, planned_step.change, force=force)
                if is_stale
                else planned_step
            )
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


def _retirement_told(change: change_Change, step: Step, was_retired: bool) -> Iterator[LedgerEntry]:
    """What the ledger is to say, as of any other retirement or return of a memory."""
    memory = step.change.memory
    if memory and (is_retired := _is_retired(change.home, step)) != was_retired:
        reason = {"reason": UNDONE} if is_retired else {}
        yield change.entry("retire" if is_retired else "restore", memory=memory, **reason)


def _take(change: change_Change, step: Step) -> None:
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
    before, after = (
        memory_of(version) if version else None for version in (change.before, change.after)
    )
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
        return (
            _both(home, change, present, before, clashes)
            if force
            else Step("conflict", change, present, clashes)
        )
    if _same(replace(merged, updated=present.updated), present):
        return Step("leave", change)
    return Step("change back", change, replace(merged, updated=home.now()))


def _unmake(home: Home, change: views.Change, present: Memory) -> Step:
    """The operation made the memory: it is retired, so that it does not come back from where it was learned."""
    if present.retired:
        return Step("leave", change)
    return Step("retire", change, replace(present, retired=Retirement(home.now(), UNDONE)))


def _both(
    home: Home, change: views.Change, present: Memory, before: Memory, clashes: tuple[str, ...]
) -> Step:
    former = replace(
        before,
        id=home.ids(),
        links=(*before.links, Link("alternative_to", present.id, "as it was before an undo")),
        superseded_by=None,
        canonical_key=None,
    )
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
    return name == "project.md" and bool(
        home.sessions.newest(SessionFilter(project=slug, subagents=True), limit=1)
    )


def _is_as_left(home: Home, change: views.Change) -> bool:
    """Whether the memory's file is as the operation left it and as the index knows it, and its former place is free.

    The index alone cannot tell: it has tags and links in an order of its own, and each of them once.
    """
    file = home.files.file_of(change.memory)
    if (
        file is None
        or change.before is None
        or change.after is None
        or file.path != change.after.path
    ):
        return False
    is_free = change.before.path == file.path or not home.vault.exists(change.before.path)
    try:
        data = home.vault.read(file.path)
    except FileNotFoundError:
        return False
    return (
        is_free
        and bytes_hash(data) == file.hash
        and data.decode("utf-8", "replace") == change.after.text
    )


def _text(home: Home, path: str) -> str | None:
    try:
        return home.vault.read(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def _bring_back(change: change_Change, undone: views.Change, memory: Memory | None) -> None:
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
            intents.append(
                Intent("remove", after.path, base=base, memory=memory.id, former=after.text)
            )
        home.files.save(
            SeenMemoryFile(
                before.path, memory.id, 0, 0, bytes_hash(before.text.encode("utf-8", "replace"))
            )
        )
        home.memories.put(memory)
    present = _text(home, before.path)
    known = bytes_hash(present.encode("utf-8", "replace")) if present is not None else None
    write = Intent(
        "write", before.path, before.text, known, memory.id if memory else None, former=present
    )
    change.intend([write, *intents])


def _remove(change: change_Change, after: Version) -> None:
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
    versions = (
        _version(left),
        merging.Version(file.path, text.encode("utf-8", "replace")),
        _version(former),
    )
    merged = merge_versions(*versions)
    if merged is None:
        return present, (_FILE,)
    path, document = merged
    clashes = tuple(_NAMES.get(name, name) for name in document.fields if name not in LISTS)
    result = parse(document.text, path, new_id=lambda: present.id, modified=present.updated)
    return replace(redacted(home.redactor, result), id=present.id), clashes


def _version(version: Version) -> merging.Version:
    return merging.Version(version.path, version.text.encode("utf-8", "replace"))


def _same(one: Memory, other: Memory) -> bool:
    """Whether two memories say the same; the order of their tags, links and other lists does not count."""
    names = [field.name for field in fields(Memory) if field.name != "id"]
    return all(_unordered(getattr(one, name)) == _unordered(getattr(other, name)) for name in names)


def _unordered(value: object) -> object:
    return frozenset(value) if isinstance(value, tuple) else value


# ----------------------------------------------------------------------------
# Requests about what was done, and to undo it.


class LogRequest(Request, frozen=True, kw_only=True):
    """Operations, the newest first: all, those on one memory, in one project, or of one action."""

    reference: Annotated[str | None, Meta(description="Only those on this memory.")] = None
    project: Annotated[str | None, Meta(description="Only those in this project, by its slug.")] = (
        None
    )
    action: Annotated[
        str | None, Meta(description="Only those that did this: store, dream, undo ...")
    ] = None
    limit: Annotated[int, Meta(description="Operations at most.", ge=0)] = 50
    offset: Annotated[int, Meta(description="Items to skip.", ge=0)] = 0


class DiffRequest(Request, frozen=True, kw_only=True):
    """What an operation changed."""

    reference: Annotated[
        str | None,
        Meta(
            description="An operation's id, or a memory for the last one on it; by default, the last."
        ),
    ] = None


class UndoRequest(Request, frozen=True, kw_only=True):
    """Bring back what an operation changed."""

    operation: Annotated[
        str | None,
        Meta(
            description="The operation's id, or its end; by default, the last one that is not undone."
        ),
    ] = None
    force: Annotated[bool, Meta(description="Keep both versions of what was changed since.")] = (
        False
    )


# ----------------------------------------------------------------------------
# What is answered to requests about what was done; :mod:`nacre.serve.catalogue` lists them.


def log_answers(home: Home, request: LogRequest) -> list[Listed]:
    """Operations, the newest first. Raises NotFound, Conflict."""
    return log(
        home,
        reference=request.reference,
        project=request.project,
        action=request.action,
        limit=max(0, request.limit),
        offset=max(0, request.offset),
    )


def diff(home: Home, request: DiffRequest) -> OperationDiff:
    """What an operation changed. Raises NotFound, Conflict."""
    operation = operation_meant(home, request.reference)
    return OperationDiff(operation, tuple(differences(changes_of(home, operation))))


def plan_undo_answers(home: Home, request: UndoRequest) -> Undoing:
    """What undoing an operation would change. Raises NotFound, Conflict."""
    return plan_undo(home, request.operation, force=request.force)


def undo_answers(home: Home, request: UndoRequest) -> Undoing:
    """Bring back what an operation changed. Raises NotFound, Conflict."""
    return undo(home, request.operation, force=request.force)


def commit(home: Home) -> Committed:
    """Put what was done into the vault's git history. Raises GitUnavailable, RepositoryUnusable, StoreBusy."""
    scan(home)
    return commit_operations(home)
