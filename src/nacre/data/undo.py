"""Listing, showing and undoing the operations in the journal and the history."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, content_hash, to_ms
from nacre.base.text import to_bytes, to_text
from nacre.data.history import Committed, catch_up, commit_operations
from nacre.data.scrub import SCRUB
from nacre.errors import (
    ConflictError,
    GitUnavailableError,
    InvalidMemoryError,
    NotFoundError,
    UnusableRepositoryError,
    refuse_several,
)
from nacre.home.change import FEW, read_pages
from nacre.home.change import Change as VaultChange
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.home.operations import is_going_on
from nacre.home.views import Change, Difference, FieldChange, Listed, OperationDiff, Version
from nacre.memories.edit import scan
from nacre.memories.erasure import FORGETTING
from nacre.memories.judge import release
from nacre.memories.store import get
from nacre.memories.tombstones import FORGET
from nacre.operations import operation
from nacre.values.fields import Limit, Offset, OnlyProject
from nacre.values.memory import (
    ADOPT,
    FOREIGN,
    RENAME,
    UNDONE,
    Intent,
    Memory,
    Operation,
    Retirement,
    SeenMemoryFile,
    SessionFilter,
)
from nacre.vault import documents, merging
from nacre.vault.files import LEDGER, is_memory_file


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
    """Return an operation by its id, or by the first or last characters (at least four).

    Raises NotFoundError, or ConflictError if several match.
    """
    operations = home.journal.find_like(reference.strip().lower())
    if not operations:
        raise NotFoundError(f"there is no operation {reference!r}", hint="nacre log shows ids")
    refuse_several((operation.id for operation in operations), reference, "operations")
    return operations[0]


def resolve_operation(home: Home, reference: str | None) -> Operation:
    """Return an operation by its id, or the last one that changed a given memory.

    The default is the latest operation. Raises NotFoundError, or ConflictError if several match.
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
            hint="nacre log shows all operations",
        )
    return last[0]


def look(home: Home) -> None:
    """Read manual edits and new commits, so that these count as operations."""
    scan(home)
    with contextlib.suppress(GitUnavailableError, UnusableRepositoryError):
        catch_up(home)


def changes_of(home: Home, operation: Operation) -> list[Change]:
    """Return the changes made by an operation.

    Raises NotFoundError if the contents of its files are no longer stored.
    """
    touched = dict(home.journal.touched(operation.id))
    if operation.committed:
        states = _committed(home, operation.committed, list(touched))
    else:
        states = _pending(home, operation)
        if touched and not states:
            raise NotFoundError(
                "the former contents of the files are no longer stored",
                hint="turn on git.enabled to keep the whole history",
            )
    return _by_memory(touched, states)


def memory_of(version: Version) -> Memory | None:
    """Parse a version of a file as a memory, or return ``None`` if it is invalid."""
    try:
        return documents.parse(
            version.text, version.path, new_id=lambda: "", modified=datetime.fromtimestamp(0, UTC)
        )
    except InvalidMemoryError:
        return None


_States = dict[str, tuple[str | None, str | None]]
"""File contents before and after an operation, keyed by path."""


def _pending(home: Home, operation: Operation) -> _States:
    states = {}
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
        fields.insert(0, FieldChange(_FILE, *places))
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
# affects the same field, nothing is undone.


UNDO = "undo"
_MAX_SEARCHED = 500
"""Maximum number of operations considered for undo."""

_FILE = "file"
_PERMANENT = frozenset({FORGET, FORGETTING, SCRUB})
_LISTED = "nacre undo reverts the last operation that can be undone; nacre log lists all"


@frozen
class Step:
    """The effect of an undo on a memory or file.

    ``action`` is ``bring back``, ``change back``, ``retire``, ``remove`` or ``conflict``, and
    ``clashes`` names the fields that were changed later.
    """

    action: str
    change: Change
    memory: Memory | None = None
    clashes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The memory's subject, or the file's path."""
        memory = self.memory or memory_of(self.change.latest)
        return memory.subject if memory and self.change.memory else self.change.latest.path


@frozen
class Undoing:
    """A planned or completed undo. Only a completed undo has an id (``op``).

    ``waiting`` contains the memories that return to the review queue.
    """

    operation: Operation
    steps: tuple[Step, ...]
    op: str | None = None
    waiting: tuple[Memory, ...] = ()

    @property
    def conflicts(self) -> list[Step]:
        """The steps that later changes make impossible."""
        return [step for step in self.steps if step.action == "conflict"]


@operation("undo", writes=True, owners=True)
def undo(home: Home, operation: OperationId = None) -> Undoing:
    """Undo an operation, by default the last operation that was not undone. An undo can be undone, too.

    Raises ConflictError if a later operation changed the same fields of a memory.
    """
    look(home)
    edition = home.database.edition()
    # git runs and every file is read before other processes have to wait
    planned, changes = _find_undoable(home, operation)
    target = planned.operation
    why = f"undoes {target.action} {_end(target)}"
    with home.change(UNDO, subject=target.subject, why=why) as change:
        if scan(home) or home.database.edition() != edition:
            planned = _planned(home, target, changes)
        if planned.conflicts:
            named = "; ".join(
                f"{step.subject} ({', '.join(step.clashes)})" for step in planned.conflicts[:5]
            )
            raise ConflictError(
                f"later changes affect the same fields: {named}",
                hint=_remedy(home, planned),
            )
        if not planned.steps and not planned.waiting:
            raise ConflictError(
                f"this operation is already fully undone: {target.action} {_end(target)}"
                if changes
                else f"nothing of this {target.action} is left to undo: {_end(target)}",
                hint=_LISTED,
            )
        _do(change, planned)
    read_pages(home)
    return replace(planned, op=change.operation.id)


def _remedy(home: Home, planned: Undoing) -> str:
    changes = [step.change for step in planned.conflicts]
    keys = {key for change in changes for key in (change.memory, change.latest.path) if key}
    for later in home.journal.operations(limit=_MAX_SEARCHED):
        if later.id == planned.operation.id:
            break
        if any(keys.intersection(touched) for touched in home.journal.touched(later.id)):
            return f"first undo the later {later.action}: nacre undo {_end(later)}"
    return "nacre log shows the later changes"


def _find_undoable(home: Home, reference: str | None) -> tuple[Undoing, list[Change]]:
    for candidate in [find_operation(home, reference)] if reference else not_undone(home):
        if candidate.action in _PERMANENT:
            raise ConflictError(f"a {candidate.action} cannot be undone", hint=_LISTED)
        if is_going_on(home, candidate):
            raise ConflictError(
                "this operation is still running", hint="wait for it or stop it, then undo it"
            )
        try:
            changes = changes_of(home, candidate)
        except NotFoundError:
            if reference:
                raise
            continue
        planned = _planned(home, candidate, changes)
        if reference or planned.steps or planned.waiting:
            return planned, changes
    raise NotFoundError(
        "there is nothing to undo",
        hint="nacre log shows operations; to revert an undo, give its own id",
    )


def not_undone(home: Home) -> Iterator[Operation]:
    """Yield the operations that an undo without an id can revert, newest first.

    Undos, and edits by the user or other programs, can be undone only with an id.
    """
    undone = set()
    for listed in home.journal.operations(limit=_MAX_SEARCHED):
        if _end(listed) in undone:
            continue
        if listed.action not in (UNDO, ADOPT, FOREIGN, *_PERMANENT):
            yield listed
        elif listed.action == UNDO:
            undone.add((listed.why or "").rpartition(" ")[2])


def _end(operation: Operation) -> str:
    return operation.id[-8:]


def _planned(home: Home, operation: Operation, changes: Sequence[Change]) -> Undoing:
    steps = (_step(home, operation, change) for change in changes)
    needed_steps = tuple(step for step in steps if step)
    at = to_ms(operation.at) or 0
    reviewed = (
        *home.memories.rows_of(home.reviews.settled_at(at)).values(),
        *(candidate.memory for candidate in home.candidates.settled_at(at)),
    )
    return Undoing(operation, needed_steps, waiting=reviewed)


def _do(change: VaultChange, planned: Undoing) -> None:
    home = change.home
    memories = sorted({step.change.memory for step in planned.steps if step.change.memory})
    removed = []
    is_stale = False
    entries = []
    with change.transaction():
        for planned_step in planned.steps:
            step = _step(home, planned.operation, planned_step.change) if is_stale else planned_step
            if step is None:
                continue
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


def _take(change: VaultChange, step: Step) -> None:
    before, after = step.change.before, step.change.after
    if step.action in ("change back", "retire"):
        change.put([step.memory] if step.memory else [])
    elif step.action == "bring back" and before:
        _bring_back(change, before, after, step.memory)
    elif step.action == "remove" and after:
        base = content_hash(after.text)
        change.intend([Intent("remove", after.path, base=base, former=after.text)])
    elif step.action == "conflict":
        change.home.problems.append(f"{step.subject} was just changed, so it was not undone")


def _step(home: Home, operation: Operation, change: Change) -> Step | None:
    if not change.memory or not is_memory_file(change.latest.path):
        return _file_step(home, operation, change)
    present = home.memories.find(change.memory)
    before, after = (
        memory_of(version) if version else None for version in (change.before, change.after)
    )
    if present is None:
        return Step("bring back", change, before) if before else None
    if after is None and before is not None:
        # The memory was permanently deleted by the operation, but exists again, so nothing is left to undo.
        return None
    if before is None:  # created by the operation; it is retired, so that it is not learned again
        if present.retired:
            return None
        return Step("retire", change, replace(present, retired=Retirement(home.now(), UNDONE)))
    if _is_as_left(home, change) and redact(home.redactor, before) == before:
        return Step("bring back", change, replace(before, id=present.id))
    merged, clashes = _merge(home, change, present)
    if clashes:
        return Step("conflict", change, present, clashes)
    if _parts_of(replace(merged, updated=present.updated)) == _parts_of(present):
        return None
    return Step("change back", change, replace(merged, updated=home.now()))


def _file_step(home: Home, operation: Operation, change: Change) -> Step | None:
    present, path = _text(home, change.latest.path), change.latest.path
    after = change.after.text if change.after else None
    before = change.before.text if change.before else None
    is_page = operation.action != RENAME and path.endswith("/project.md")
    if present == before:
        return None
    if is_page and before is None:
        # The page of a project with sessions is kept, and so is a page that was changed since.
        slug = path.removeprefix("projects/").removesuffix("/project.md")
        criteria = SessionFilter(project=slug, subagents=True)
        if present != after or home.sessions.newest(criteria, limit=1):
            return None
    if present == after:
        return Step("bring back" if before is not None else "remove", change)
    if is_page and present is not None and change.after and change.before:
        merged = _merge_texts(change.after, Version(path, present), change.before)
        if merged and not _clashes(merged):
            return Step("bring back", replace(change, before=Version(path, merged.text)))
    return Step("conflict", change, None, (_FILE,))


def _is_as_left(home: Home, change: Change) -> bool:
    file, before, after = home.files.file_of(change.memory), change.before, change.after
    if file is None or before is None or after is None or file.path != after.path:
        return False
    if before.path != file.path and home.vault.exists(before.path):
        return False
    try:
        # The index does not contain the exact text.
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
    change: VaultChange, before: Version, after: Version | None, memory: Memory | None
) -> None:
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


def _merge(home: Home, change: Change, present: Memory) -> tuple[Memory, tuple[str, ...]]:
    file = home.files.file_of(present.id)
    text = _text(home, file.path) if file else None
    after, before = change.after, change.before
    if file is None or text is None or after is None or before is None:
        return present, (_FILE,)
    merged = _merge_texts(after, Version(file.path, text), before)
    if merged is None:
        return present, (_FILE,)
    result = documents.parse(
        merged.text, merged.path, new_id=lambda: present.id, modified=present.updated
    )
    return replace(redact(home.redactor, result), id=present.id), _clashes(merged)


def _merge_texts(
    after: Version, present: Version, before: Version
) -> merging.MergedDocument | None:
    return merging.merge_versions(
        *(
            merging.Version(version.path, to_bytes(version.text))
            for version in (after, present, before)
        )
    )


def _clashes(merged: merging.MergedDocument) -> tuple[str, ...]:
    return tuple(
        "content" if name == "body" else name for name in merged.fields if name not in merging.LISTS
    )


def _parts_of(memory: Memory) -> list[object]:
    values = (getattr(memory, field.name) for field in fields(Memory) if field.name != "id")
    return [frozenset(value) if isinstance(value, tuple) else value for value in values]


# -- Operations ----------------------------------------------------------------------------------


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
    operation = resolve_operation(home, reference)
    return OperationDiff(operation, tuple(map(_difference, changes_of(home, operation))))


@operation("undo-plan")
def plan_undo(
    home: Home,
    *,
    operation: OperationId = None,
) -> Undoing:
    """Return the effects of undoing an operation. Raises NotFoundError, ConflictError."""
    look(home)
    return _find_undoable(home, operation)[0]


@operation("commit", writes=True)
def commit(home: Home) -> Committed:
    """Commit pending operations to the vault's git history.

    Raises GitUnavailableError, UnusableRepositoryError, StoreBusyError.
    """
    scan(home)
    return commit_operations(home)
