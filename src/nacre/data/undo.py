"""Listing, showing and undoing operations from the journal or the history."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, content_hash, to_ms
from nacre.base.text import to_bytes, to_text
from nacre.data.history import Committed, catch_up, commit_operations
from nacre.errors import (
    ConflictError,
    GitUnavailableError,
    InvalidMemoryError,
    NotFoundError,
    UnusableRepositoryError,
)
from nacre.home import views
from nacre.home.change import FEW, read_pages
from nacre.home.change import Change as change_Change
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.home.operations import is_going_on
from nacre.home.views import Change, Difference, FieldChange, Listed, OperationDiff, Version
from nacre.memories.edit import scan
from nacre.memories.judge import release
from nacre.memories.store import get
from nacre.operations import operation
from nacre.values.fields import Limit, Offset, OnlyProject
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


@operation("log", by_key=True)
def log(
    home: Home,
    *,
    reference: Annotated[str | None, bounds("Only operations on this memory.")] = None,
    project: OnlyProject = None,
    action: Annotated[
        str | None, bounds("Only operations of this kind: store, dream, undo ...")
    ] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> list[Listed]:
    """Return operations, newest first. Raises NotFoundError, ConflictError."""
    look(home)
    operations = home.journal.operations(
        memory=_memory_id(home, reference) if reference else None,
        project=project,
        action=action,
        limit=limit,
        offset=max(0, offset),
    )
    return [Listed(operation, tuple(memories_of(home, operation))) for operation in operations]


def _memory_id(home: Home, reference: str) -> str:
    """Return a memory's id. For a deleted memory, give the full id. Raises NotFoundError, ConflictError."""
    try:
        return get(home, reference).id
    except NotFoundError:
        if home.journal.operations(memory=reference, limit=1):
            return reference
        raise


def memories_of(home: Home, operation: Operation) -> list[str]:
    """Return the ids of the memories that an operation changed."""
    return list(dict.fromkeys(memory for _, memory in home.journal.touched(operation.id) if memory))


def find_operation(home: Home, reference: str) -> Operation:
    """Return an operation by id, or by at least four characters at the id's start or end.

    Raises NotFoundError, ConflictError.
    """
    operations = home.journal.find_like(reference.strip().lower())
    if not operations:
        raise NotFoundError(f"there is no operation {reference!r}", hint="nacre log shows ids")
    if len(operations) > 1:
        names = ", ".join(operation.id for operation in operations)
        raise ConflictError(
            f"{reference!r} matches several operations: {names}",
            hint="give more characters of the id",
        )
    return operations[0]


def operation_meant(home: Home, reference: str | None) -> Operation:
    """Return the operation that a reference means. If the reference is a memory, return the memory's last operation.

    Without a reference, return the last operation of all. Raises NotFoundError, ConflictError.
    """
    look(home)
    if reference:
        with contextlib.suppress(NotFoundError):
            return find_operation(home, reference)
    memory = get(home, reference).id if reference else None
    last = home.journal.operations(memory=memory, limit=1)
    if not last:
        raise NotFoundError(
            "there are no operations yet" if memory is None else "this memory has no operations",
            hint="nacre log",
        )
    return last[0]


def look(home: Home) -> None:
    """Read manual edits and new commits."""
    scan(home)
    with contextlib.suppress(GitUnavailableError, UnusableRepositoryError):
        catch_up(home)


def changes_of(home: Home, operation: Operation) -> list[Change]:
    """Return the changes made by an operation.

    Raises NotFoundError if the texts before and after the operation are no longer stored.
    """
    touched = dict(home.journal.touched(operation.id))
    if operation.committed:
        states = _committed(home, operation.committed, list(touched))
    else:
        states = _pending(home, operation)
        if touched and not states:
            raise NotFoundError(
                "the old texts of this operation are gone",
                hint="turn on git.enabled to keep the whole history",
            )
    return _by_memory(touched, states)


def differences(changes: Iterable[Change]) -> list[Difference]:
    """Return which fields and lines each change has modified."""
    return [_difference(change) for change in changes]


def memory_of(version: Version) -> Memory | None:
    """Return the memory in a version of a file, or ``None`` if it is invalid."""
    try:
        return parse(
            version.text, version.path, new_id=lambda: "", modified=datetime.fromtimestamp(0, UTC)
        )
    except InvalidMemoryError:
        return None


_States = dict[str, tuple[str | None, str | None]]
"""Text before and after an operation, keyed by path."""


def _pending(home: Home, operation: Operation) -> _States:
    states: _States = {}
    rows = [row for row in home.journal.written_by(operation.id) if row.action != "append"]
    firsts = {row.path: row for row in reversed(rows)}
    befores = {path: home.journal.before(row) for path, row in firsts.items()}
    texts = {path: before[1] if before else None for path, before in befores.items()}
    texts |= _head_texts(home, [path for path, before in befores.items() if before is None])
    for row in rows:
        former = texts[row.path] if texts[row.path] is not None else firsts[row.path].former
        states[row.path] = (former, None if row.action == "remove" else row.document)
    return states


def _head_texts(home: Home, paths: Sequence[str]) -> dict[str, str | None]:
    try:
        repository = home.repository
        if not paths or not repository.exists or repository.head().commit is None:
            return {}
        contents = repository.read([f"HEAD:{path}" for path in paths])
    except (GitUnavailableError, UnusableRepositoryError):
        return {}
    return {name.removeprefix("HEAD:"): to_text(data) for name, data in contents.items()}


def _committed(home: Home, commit: str, paths: Sequence[str]) -> _States:
    paths = [path for path in paths if path != LEDGER]
    names = [f"{commit}:{path}" for path in paths] + [f"{commit}^:{path}" for path in paths]
    texts = {name: to_text(data) for name, data in home.repository.read(names).items()}
    return {path: (texts.get(f"{commit}^:{path}"), texts.get(f"{commit}:{path}")) for path in paths}


def _by_memory(touched: dict[str, str], states: _States) -> list[Change]:
    """Return one change for each memory or other file. A moved memory is still one memory."""
    changes: dict[str, Change] = {}
    for path, (before, after) in states.items():
        if before == after:
            continue
        memory = touched.get(path, "")
        key = memory or path
        memory_change = changes.get(key, Change(memory, None, None))
        if before is not None and memory_change.before is None:
            memory_change = replace(memory_change, before=Version(path, before))
        if after is not None:
            memory_change = replace(memory_change, after=Version(path, after))
        changes[key] = memory_change
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
    lines = tuple(
        line
        for line in difflib.unified_diff(before[1], after[1], lineterm="", n=2)
        if not line.startswith(("---", "+++", "@@"))
    )
    memory = memory_of(change.latest) if is_memory_file(change.latest.path) else None
    subject = memory.subject if memory else change.latest.path
    return Difference(change, subject, tuple(fields), lines)


def _parts(version: Version | None) -> tuple[dict[str, Any], list[str]]:
    if version is None:
        return {}, []
    front, body = documents.split(version.text)
    try:
        values = documents.load(front) if front else {}
    except InvalidMemoryError:
        return {}, version.text.splitlines()
    return values, body.strip().splitlines()


# -- Undo ------------------------------------------------------------------------------------------
# Fields that the operation changed are restored, and later changes to other fields are kept. If a later change
# concerns the same field, nothing is undone, unless the user forces it. Then both versions are kept.


UNDO = "undo"
_MAX_SEARCHED = 500
"""Maximum number of operations considered for undo."""

_FILE = "file"


@frozen
class Step:
    """The effect of an undo on a memory or file.

    ``action``: ``bring back``, ``change back``, ``retire``, ``remove``, ``keep both``, ``conflict`` or ``leave``.
    ``clashes``: names of fields that were changed after the operation.
    """

    action: str
    change: views.Change
    memory: Memory | None = None
    clashes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The memory's subject, or the file's path."""
        memory = self.memory or memory_of(self.change.latest)
        return memory.subject if memory and self.change.memory else self.change.latest.path


@frozen
class Undoing:
    """The steps of a planned or completed undo.

    ``op``: id of the completed undo. ``waiting``: memories and candidates that return to the review queue, because the
    undo reverts a review decision.
    """

    operation: Operation
    steps: tuple[Step, ...]
    op: str | None = None
    waiting: tuple[Memory, ...] = ()

    @property
    def conflicts(self) -> list[Step]:
        """The steps that are in conflict with later changes."""
        return [step for step in self.steps if step.action == "conflict"]


@operation("undo", writes=True, owners=True)
def undo(home: Home, operation: OperationId = None, *, force: Force = False) -> Undoing:
    """Undo an operation, by default the last operation that was not undone. An undo can be undone, too.

    Raises ConflictError if a later operation changed the same fields of a memory. With ``force``, the memory keeps its
    current version, and the old version is stored as a linked memory.
    """
    target, changes = _found(home, operation)  # git runs before the lock is taken
    scan(home)
    edition = home.database.edition()
    planned = _planned(
        home, target, changes, force=force
    )  # reads every file before other processes have to wait
    why = f"undoes {target.action} {_end(target)}"
    with home.change(UNDO, subject=target.subject, why=why) as change:
        if scan(home) or home.database.edition() != edition:
            planned = _planned(home, target, changes, force=force)
        if planned.conflicts:
            named = "; ".join(
                f"{step.subject} ({', '.join(step.clashes)})" for step in planned.conflicts[:5]
            )
            raise ConflictError(
                f"{len(planned.conflicts)} changed later in the same fields: {named}",
                hint="--force keeps both versions, with a link between them",
            )
        if not planned.steps and not planned.waiting:
            raise _nothing_left(home, target)
        _do(change, planned, force=force)
    read_pages(home)
    return replace(planned, op=change.operation_id)


def _found(home: Home, reference: str | None) -> tuple[Operation, list[views.Change]]:
    look(home)
    for found in [find_operation(home, reference)] if reference else not_undone(home):
        if is_going_on(home, found):
            raise ConflictError(
                "this operation is still running", hint="wait for it or stop it, then undo it"
            )
        changes = changes_of(home, found)
        if reference or changes or found.action not in DECISIONS or _decided(home, found):
            return found, changes
    raise NotFoundError(
        "there is nothing to undo",
        hint="nacre log shows operations; to revert an undo, give its own id",
    )


def _decided(home: Home, operation: Operation) -> tuple[Memory, ...]:
    """Return the memories and candidates whose latest review decision was made in an operation."""
    at = to_ms(operation.at) or 0
    memories = home.memories.rows_of(home.reviews.settled_at(at)).values()
    return (*memories, *(candidate.memory for candidate in home.candidates.settled_at(at)))


def not_undone(home: Home) -> Iterator[Operation]:
    """Yield operations that are neither undos nor undone, newest first.

    Edits by the user and other programs are omitted, because they can be undone only by id.
    """
    undone: set[str] = set()
    for listed in home.journal.operations(limit=_MAX_SEARCHED):
        if _end(listed) in undone:
            continue
        if listed.action not in (UNDO, ADOPT, FOREIGN):
            yield listed
        else:
            undone.add((listed.why or "").rpartition(" ")[2])


def _nothing_left(home: Home, operation: Operation) -> ConflictError:
    earlier = next(
        (candidate for candidate in not_undone(home) if candidate.id < operation.id),
        None,
    )
    hint = "nacre log shows other operations"
    if earlier:
        about = f" ({earlier.subject})" if earlier.subject else ""
        hint = f"nacre undo {_end(earlier)} reverts the previous operation, {earlier.action}{about}"
    return ConflictError(
        f"this operation is already fully undone: {operation.action} {_end(operation)}",
        hint=hint,
    )


def _end(operation: Operation) -> str:
    return operation.id[-8:]


def _planned(
    home: Home, operation: Operation, changes: Sequence[views.Change], *, force: bool
) -> Undoing:
    steps = (_step(home, operation, change, force=force) for change in changes)
    needed_steps = tuple(step for step in steps if step.action != "leave")
    return Undoing(operation, needed_steps, waiting=_decided(home, operation))


def _do(change: change_Change, planned: Undoing, *, force: bool) -> None:
    home = change.home
    memories = sorted({step.change.memory for step in planned.steps if step.change.memory})
    removed: list[Memory] = []
    is_stale = False
    entries: list[LedgerEntry] = []
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
            memory_id = step.change.memory
            if memory_id and (is_retired := _is_retired(home, step)) != was_retired:
                # It is recorded like any other retirement or restoration of a memory.
                action, reason = ("retire", UNDONE) if is_retired else ("restore", None)
                entries.append(change.entry(action, memory=memory_id, reason=reason))
            if step.action == "retire" and step.memory:
                removed.append(step.memory)
            is_stale = (len(planned.steps) > FEW and change.yield_locks()) or is_stale
        settled = to_ms(planned.operation.at) or 0
        for reviewed in planned.waiting:
            home.reviews.reopen(reviewed.id, settled)
        for candidate in home.candidates.settled_at(settled):
            home.candidates.unsettle(candidate.memory.id)
        for memory in release(home, removed):
            if memory.id not in memories:
                change.put([memory])
        change.append(
            [*entries, change.entry(UNDO, of=planned.operation.id, memories=memories[:20])]
        )


def _settled_at(operation: Operation, step: Step) -> set[datetime]:
    """Return the times of the review decisions that an undo reverts."""
    after = memory_of(step.change.after) if step.change.memory and step.change.after else None
    if after is None or step.action not in ("bring back", "change back"):
        return set()
    return {operation.at, after.updated, *([after.retired.at] if after.retired else [])}


def _is_retired(home: Home, step: Step) -> bool:
    present = home.memories.find(step.change.memory) if step.change.memory else None
    return present is None or present.retired is not None


def _take(change: change_Change, step: Step) -> None:
    before, after = step.change.before, step.change.after
    if step.action in ("change back", "keep both", "retire"):
        change.put([step.memory] if step.memory else [])
    elif step.action == "bring back" and before:
        _bring_back(change, before, after, step.memory)
    elif step.action == "remove" and after:
        base = content_hash(after.text)
        change.intend([Intent("remove", after.path, base=base, former=after.text)])
    elif step.action == "conflict":
        change.home.problems.append(f"{step.subject}: was just changed, so it stays")


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
        # The memory was permanently deleted by the operation, but exists again, so nothing is left to undo.
        return Step("leave", change)
    if before is None:  # created by the operation; it is retired, so that it is not learned again
        if present.retired:
            return Step("leave", change)
        return Step("retire", change, replace(present, retired=Retirement(home.now(), UNDONE)))
    if _is_as_left(home, change) and redact(home.redactor, before) == before:
        return Step("bring back", change, replace(before, id=present.id))
    merged, clashes = _merge(home, change, present)
    if clashes and not force:
        return Step("conflict", change, present, clashes)
    if clashes:
        former = replace(
            before,
            id=home.ids(),
            links=(*before.links, Link("alternative_to", present.id, "as it was before an undo")),
            superseded_by=None,
            canonical_key=None,
        )
        return Step("keep both", change, former, clashes)
    if _same(replace(merged, updated=present.updated), present):
        return Step("leave", change)
    return Step("change back", change, replace(merged, updated=home.now()))


def _file_step(home: Home, operation: Operation, change: views.Change) -> Step:
    """Return the step for a file that is not a memory and is restored as a whole."""
    present, path = _text(home, change.latest.path), change.latest.path
    after = change.after.text if change.after else None
    before = change.before.text if change.before else None
    if present == before:
        return Step("leave", change)
    if present != after:
        return Step("conflict", change, None, (_FILE,))
    if before is not None:
        return Step("bring back", change)
    if operation.action != RENAME and path.endswith("/project.md"):
        # The page of a project with sessions is kept.
        slug = path.removeprefix("projects/").removesuffix("/project.md")
        if home.sessions.newest(SessionFilter(project=slug, subagents=True), limit=1):
            return Step("leave", change)
    return Step("remove", change)


def _is_as_left(home: Home, change: views.Change) -> bool:
    """Return True if a memory's file is unchanged since the operation, and the file's old path is free.

    The index is not compared, because it does not contain the exact text.
    """
    file, before, after = home.files.file_of(change.memory), change.before, change.after
    if file is None or before is None or after is None or file.path != after.path:
        return False
    if before.path != file.path and home.vault.exists(before.path):
        return False
    try:
        data = home.vault.read(file.path)
    except FileNotFoundError:
        return False
    return bytes_hash(data) == file.hash and to_text(data) == after.text


def _text(home: Home, path: str) -> str | None:
    try:
        return to_text(home.vault.read(path))
    except FileNotFoundError:
        return None


def _bring_back(
    change: change_Change, before: Version, after: Version | None, memory: Memory | None
) -> None:
    """Restore the exact bytes of a file."""
    home = change.home
    intents = []
    if memory is not None:
        if after is not None and after.path != before.path:
            home.files.forget(after.path)
            base = content_hash(after.text)
            intents.append(
                Intent("remove", after.path, base=base, memory=memory.id, former=after.text)
            )
        home.files.save(SeenMemoryFile(before.path, memory.id, 0, 0, content_hash(before.text)))
        home.memories.put(memory)
    present = _text(home, before.path)
    present_hash = content_hash(present) if present is not None else None
    write = Intent(
        "write",
        before.path,
        before.text,
        present_hash,
        memory.id if memory else None,
        former=present,
    )
    change.intend([write, *intents])


def _merge(home: Home, change: views.Change, present: Memory) -> tuple[Memory, tuple[str, ...]]:
    """Revert an operation's changes, but keep later changes. Return the memory and the fields in conflict."""
    file = home.files.file_of(present.id)
    text = _text(home, file.path) if file else None
    after, before = change.after, change.before
    if file is None or text is None or after is None or before is None:
        return present, (_FILE,)
    merged = merge_versions(
        *(
            merging.Version(version.path, to_bytes(version.text))
            for version in (after, Version(file.path, text), before)
        )
    )
    if merged is None:
        return present, (_FILE,)
    path, document = merged
    clashes = tuple(
        "content" if name == "body" else name for name in document.fields if name not in LISTS
    )
    result = parse(document.text, path, new_id=lambda: present.id, modified=present.updated)
    return replace(redact(home.redactor, result), id=present.id), clashes


def _same(left: Memory, right: Memory) -> bool:
    for field in fields(Memory):
        here, there = getattr(left, field.name), getattr(right, field.name)
        if isinstance(here, tuple):
            here, there = frozenset(here), frozenset(there)
        if here != there and field.name != "id":
            return False
    return True


# -- Operations ----------------------------------------------------------------------------------


Force = Annotated[bool, bounds("Keep both versions of memories that have changed since then.")]
OperationId = Annotated[
    str | None,
    bounds("The operation's id or its end; default: the last one that is not undone."),
]


@operation("diff", by_key=True)
def diff(
    home: Home,
    *,
    reference: Annotated[
        str | None,
        bounds("An operation's id, or a memory (its last operation); default: the last operation."),
    ] = None,
) -> OperationDiff:
    """Return the changes made by an operation. Raises NotFoundError, ConflictError."""
    operation = operation_meant(home, reference)
    return OperationDiff(operation, tuple(differences(changes_of(home, operation))))


@operation("undo-plan")
def plan_undo(
    home: Home,
    *,
    operation: OperationId = None,
    force: Force = False,
) -> Undoing:
    """Return the effects of undoing an operation. Raises NotFoundError, ConflictError."""
    target, changes = _found(home, operation)
    return _planned(home, target, changes, force=force)


@operation("commit", writes=True)
def commit(home: Home) -> Committed:
    """Commit pending operations to the vault's git history.

    Raises GitUnavailableError, UnusableRepositoryError, StoreBusyError.
    """
    scan(home)
    return commit_operations(home)
