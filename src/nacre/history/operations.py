"""Operations, looked at: the list of them, and what one of them changed, from the journal or from the history."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from nacre.errors import Conflict, GitUnavailable, MemoryInvalid, NotFound, RepositoryUnusable
from nacre.history.chronicle import catch_up
from nacre.home.home import Home
from nacre.memories.scan import scan
from nacre.memories.store import get
from nacre.values.memory import Memory
from nacre.values.operation import Operation
from nacre.vault import front_matter
from nacre.vault.document import parse
from nacre.vault.layout import LEDGER, is_memory_file
from nacre.views import Change, Difference, FieldChange, Listed, Version

_PATH = "file"


def log(
    home: Home, *, reference: str | None = None, project: str | None = None, action: str | None = None,
    limit: int = 50, offset: int = 0,
) -> list[Listed]:  # fmt: skip
    """Operations, the newest first: all, those on one memory, in one project, of one action.

    Raises NotFound, Conflict.
    """
    look(home)
    memory = _memory_meant(home, reference) if reference else None
    found = home.journal.operations(memory=memory, project=project, action=action, limit=limit, offset=offset)
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
        raise Conflict(f"{reference!r} means several operations: {names}", hint="give more of the id")
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
        raise NotFound("nothing was done yet" if memory is None else "no operation on it is known", hint="nacre log")
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
        return parse(version.text, version.path, new_id=lambda: "", modified=datetime.fromtimestamp(0, UTC))
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
    known |= _head_texts(home, [path for path, row in firsts.items() if home.journal.before(row) is None])
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
    return {name.removeprefix("HEAD:"): data.decode("utf-8", "replace") for name, data in found.items()}


def _committed(home: Home, commit: str, paths: Sequence[str]) -> _States:
    paths = [path for path in paths if path != LEDGER]
    names = [f"{commit}:{path}" for path in paths] + [f"{commit}^:{path}" for path in paths]
    found = {name: data.decode("utf-8", "replace") for name, data in home.repository.read(names).items()}
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
        line for line in difflib.unified_diff(before[1], after[1], lineterm="", n=2) if line[:3] not in ("---", "+++")
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
    front, body = front_matter.split(version.text)
    try:
        values = front_matter.load(front) if front else {}
    except MemoryInvalid:
        return {}, version.text.splitlines()
    return values, body.strip().splitlines()
