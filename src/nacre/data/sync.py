"""Compare the vault with its remote and merge the two; :mod:`nacre.data.sync` writes the result."""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated

from msgspec import Meta

from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.base.request import Request
from nacre.data import history
from nacre.data.history import (
    BEGINNING,
    COMMIT_LOCK,
    SYNC_LOCK,
    UNWRITTEN,
    Committed,
    Held,
    RecordedOperation,
    author_of,
    commit_operations,
    prepare,
    read_message,
    settled_head,
    step_index,
    write_message,
)
from nacre.errors import (
    EditConflict,
    HistoryRewritten,
    InvalidInput,
    NacreError,
    RemoteMoved,
    RepositoryBusy,
    RepositoryUnusable,
    SecretFound,
    StoreBusy,
    VaultUnusable,
)
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import clean_values, without_secrets
from nacre.home.operations import apply_intents
from nacre.home.spending import waits_for_models
from nacre.memories import vectors
from nacre.memories.edit import catch_up, read_written, scan
from nacre.memories.erasure import apply_tombstones, erase_bytes_erasure, without_words
from nacre.memories.placement import await_models
from nacre.memories.tombstones import Barred, Gate, standing_tombstones, told_in
from nacre.memories.usage import write_listings
from nacre.values.codec import stamp
from nacre.values.memory import EDIT, SYNC, Intent, Operation
from nacre.vault.documents import MergeOutcome, Note, split
from nacre.vault.files import LEDGER, LISTING, LedgerEntry, is_derived, is_memory_file
from nacre.vault.files import read as read_ledger
from nacre.vault.git import TIMEOUT_SECONDS as TIMEOUT_SECONDS_GIT
from nacre.vault.git import Entries, Head, NewCommit, PastCommit
from nacre.vault.merging import (
    MergedVault,
    Tree,
    id_in,
    is_document,
    listed,
    merge_ledgers,
    merge_vaults,
    read_document,
    with_values,
)
from nacre.vault.remotes import Remote, check_url

_READ_AT_ONCE = 2000
_DEEPEST = 3
_NOTHING_NEW = "Join what the remote has\n"
_UNITE = "unite"
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as it is here and as it is to be; ``None`` where there is none."""

    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be brought in: the commit to come to, and the files that change on the way.

    ``commit`` is ``None`` while a merge is only looked at. ``given_up`` are ids of memories that go without a trace:
    they were united with others, or taken out of a history that was rewritten.
    """

    commit: str | None
    changes: Mapping[str, FileChange]
    notes: tuple[Note, ...] = ()
    given_up: frozenset[str] = frozenset()
    operation: Operation | None = None
    left_out: tuple[str, ...] = ()


def plan_join(
    home: Home, head: Head, theirs: str, *, rewritten_from: str | None, dry_run: bool
) -> Plan:
    """Compare HEAD with a commit that was fetched, and merge them where both went on.

    ``rewritten_from`` is the commit the remote was at before somebody rewrote its history: what was done here since is
    put on top of it then. So it is where unsent commits hold what was forgotten elsewhere: they are never sent.
    Raises RepositoryUnusable for files that no vault can hold.
    """
    repository = home.repository
    here, there = repository.tree(head.commit), repository.tree(theirs)
    refuse_paths(there)
    left_out = tuple(sorted(path for path in there if not _is_plain(there, path)))
    if head.commit is None or (not rewritten_from and repository.is_ancestor(head.commit, theirs)):
        changes = _changes(home, here, there)
        return Plan(theirs, changes, given_up=united_in(changes), left_out=left_out)
    bases = [rewritten_from] if rewritten_from else repository.merge_bases(head.commit, theirs)
    trees = (_base(home, bases), here, there)
    paths = _wanted(trees)
    base, ours, remote = _contents(home, trees, paths)
    plan, merged = plan_merge(home, base, ours, remote, is_rewritten=bool(rewritten_from))
    plan = replace(plan, left_out=left_out)
    if dry_run:
        return plan
    assert plan.operation is not None  # noqa: S101 - a merge is one
    if rewritten_from or _tells_forgotten(home, head, theirs):
        onto = changes_between(remote, merged)
        told = [*_unsent(home, head, rewritten_from or theirs, onto), *_told(plan.operation, onto)]
        commit = _commit(home, theirs, onto, (), told)
    else:
        commit = _commit(
            home, head.commit, plan.changes, (theirs,), _told(plan.operation, plan.changes)
        )
    return replace(plan, commit=commit)


def plan_merge(
    home: Home, base: Tree, here: Tree, there: Tree, *, is_rewritten: bool = False
) -> tuple[Plan, Tree]:
    """Merge two vaults that were made from ``base``: what changes here, and what both are to hold.

    ``is_rewritten``: what there is no more was taken out on purpose.
    """
    merged = merge_vaults(base, here, there)
    operation = Operation(home.ids(), home.now(), SYNC)
    _tell_united(merged, operation)
    forgotten, notes = _leave_out_forgotten(merged, here)
    changes = changes_between(here, merged.files)
    operation = replace(operation, subject=f"{counted(changes)} from the remote")
    given_up = (
        united_in(changes)
        | forgotten
        | (_taken_out(changes, merged) if is_rewritten else frozenset())
    )
    return Plan(None, changes, notes, given_up, operation), merged.files


def changes_between(before: Tree, after: Tree) -> dict[str, FileChange]:
    """The files that differ."""
    changes = {
        path: FileChange(before.get(path), after.get(path)) for path in sorted({*before, *after})
    }
    return {path: change for path, change in changes.items() if change.before != change.after}


def operations_in(commits: Iterable[PastCommit]) -> list[RecordedOperation]:
    """Return the operations of commits; a commit of another git is one, too."""
    found: dict[str, RecordedOperation] = {}
    for commit in commits:
        told = read_message(commit.message, commit.id)
        if not told and commit.paths and not commit.is_merge and commit.message != BEGINNING:
            told = [RecordedOperation(Operation(commit.id, commit.at, "commit"), commit.paths)]
        found |= {one.operation.id: one for one in told if one.operation.action != SYNC}
    return list(found.values())


def _wanted(trees: Sequence[Entries]) -> list[str]:
    """The paths a merge is about: other files than documents that are the same everywhere stay out of it."""
    paths = sorted({path for tree in trees for path in tree})
    return [
        path for path in paths if is_document(path) or len({tree.get(path) for tree in trees}) > 1
    ]


def _base(home: Home, commits: Sequence[str], depth: int = 0) -> Entries:
    """What both sides were made from; where histories crossed, the merge of all that may be it."""
    if not commits:
        return {}
    found = dict(home.repository.tree(commits[0]))
    for other in commits[1:] if depth < _DEEPEST else ():
        there = home.repository.tree(other)
        inner = _base(home, home.repository.merge_bases(commits[0], other), depth + 1)
        trees = (inner, found, there)
        wanted = _wanted(trees)
        merged = merge_vaults(*_contents(home, trees, wanted))
        known = {blob for tree in trees for _, blob in tree.values()}
        stored = {path: _stored(home, data, known) for path, data in merged.files.items()}
        found = {path: entry for path, entry in found.items() if path not in wanted} | stored
    return found


def _stored(home: Home, data: bytes, known: Collection[str]) -> tuple[str, str]:
    blob = home.repository.blob_id(data, next(iter(known), None))
    return "100644", blob if blob in known else home.repository.store(data)


def _contents(home: Home, trees: Sequence[Entries], paths: Sequence[str]) -> list[dict[str, bytes]]:
    blobs = [
        {path: tree[path][1] for path in paths if path in tree and _is_plain(tree, path)}
        for tree in trees
    ]
    wanted = sorted({blob for present in blobs for blob in present.values()})
    found: dict[str, bytes] = {}
    for start in range(0, len(wanted), _READ_AT_ONCE):
        found |= home.repository.read(wanted[start : start + _READ_AT_ONCE])
    return [{path: found[blob] for path, blob in present.items()} for present in blobs]


def _changes(home: Home, here: Entries, there: Entries) -> dict[str, FileChange]:
    paths = sorted(path for path in {*here, *there} if here.get(path) != there.get(path))
    return changes_between(*_contents(home, (here, there), paths))


def _commit(
    home: Home,
    parent: str,
    changes: Mapping[str, FileChange],
    merged: tuple[str, ...],
    told: Sequence[tuple[Operation, Sequence[str]]],
) -> str:
    files = {path: change.after for path, change in changes.items()}
    message = write_message(told, home.redactor.clean) if told else _NOTHING_NEW
    commit = NewCommit(message, home.now(), files, merged)
    return home.repository.add_commits([commit], parent, author_of(home))[-1]


def _told(
    operation: Operation, changes: Mapping[str, FileChange]
) -> list[tuple[Operation, Sequence[str]]]:
    """A sync as an operation, unless it changes nothing but the ledger: then there is nothing to tell, or to undo."""
    return [(operation, [*changes])] if changes.keys() - {LEDGER} else []


def _unsent(
    home: Home, head: Head, since: str, onto: Mapping[str, FileChange]
) -> list[tuple[Operation, Sequence[str]]]:
    """Operations that no other machine has, as the database tells them: without the words of what is forgotten."""
    found: list[tuple[Operation, Sequence[str]]] = []
    for recorded in operations_in(home.repository.history(since, head.commit or since)):
        operation = home.journal.find(recorded.operation.id)
        if operation and "-" in operation.id:
            touched = [path for path, _ in home.journal.touched(operation.id) if path in onto]
            found += [(operation, touched)] if touched else []
    return found


def _tells_forgotten(home: Home, head: Head, theirs: str) -> bool:
    """Return True if a commit that was not sent yet holds or names a forgotten memory."""
    barred = Gate(home).refresh()
    commits = home.repository.history(theirs, head.commit or theirs) if barred else ()
    names = [
        f"{commit.id}:{path}" for commit in commits for path in commit.paths if is_document(path)
    ]
    return any(
        barred.bars_document(name.partition(":")[2], data) or barred.names_in(data)
        for name, data in home.repository.read(names).items()
    )


def _tell_united(merged: MergedVault, operation: Operation) -> None:
    """Say in the ledger which ids were given up, for machines that only receive the result."""
    lines = b"".join(
        LedgerEntry(operation.id, operation.at, _UNITE, {"memory": kept, "given_up": given_up})
        .line()
        .encode()
        + b"\n"
        for given_up, kept in sorted(merged.united.items())
    )
    if lines:
        merged.files[LEDGER] = merge_ledgers(merged.files.get(LEDGER, b""), lines)


def united_in(changes: Mapping[str, FileChange]) -> frozenset[str]:
    """Ids that new lines of the ledger say were given up."""
    ledger = changes.get(LEDGER, FileChange(None, None))
    known = set((ledger.before or b"").splitlines())
    new = b"\n".join(line for line in (ledger.after or b"").splitlines() if line not in known)
    return frozenset(
        str(entry.details["given_up"])
        for entry in read_ledger(new)
        if entry.action == _UNITE and "given_up" in entry.details
    )


def _leave_out_forgotten(
    merged: MergedVault, here: Tree
) -> tuple[frozenset[str], tuple[Note, ...]]:
    """Take out memories that either ledger forgot for good, also edited ones, and links to them.

    Returns their ids, and what is to be told of the merge, without their words.
    """
    barred = Barred(standing_tombstones([*told_in(merged.files.get(LEDGER, b""))]))
    if not barred:
        return frozenset(), merged.notes
    ledger = merged.files[LEDGER].decode("utf-8", "replace")
    merged.files[LEDGER] = without_words(ledger, barred.memories).encode()
    gone: dict[str, str] = {}
    for path, data in list(merged.files.items()):
        named = barred.names_in(data) if is_memory_file(path) else ()
        if (named or data != here.get(path)) and barred.bars_document(path, data):
            del merged.files[path]
            gone[path] = id_in(data) or ""
        elif named:
            merged.files[path] = _without_links(data, named)
    forgotten = barred.memories.union(gone.values())
    notes = [
        note for note in merged.notes if note.memory not in forgotten and note.path not in gone
    ]
    present = {id_in(data) or "" for path, data in here.items() if is_memory_file(path)} & forgotten
    notes += [Note(MergeOutcome.FORGOTTEN, "", memory) for memory in sorted(present)]
    return frozenset(gone.values()), tuple(notes)


def _without_links(data: bytes, to: Collection[str]) -> bytes:
    text = data.decode("utf-8", "replace")
    links = listed(read_document(text).values.get("links"))
    left = [one for one in links if not (isinstance(one, dict) and one.get("to") in to)]
    return with_values(text, {"links": left or None}).encode() if left != links else data


def _taken_out(changes: Mapping[str, FileChange], merged: MergedVault) -> frozenset[str]:
    """Memories that a rewritten history holds no more."""
    left = {id_in(data) for path, data in merged.files.items() if is_document(path)}
    gone = {
        id_in(one.before) for path, one in changes.items() if one.before and is_memory_file(path)
    }
    return frozenset(memory for memory in gone - left if memory)


def _is_plain(tree: Entries, path: str) -> bool:
    """Whether it is a file: no symbolic link, no repository within."""
    return tree[path][0].startswith("100")


def refuse_paths(tree: Iterable[str]) -> None:
    """Raises RepositoryUnusable for names that would reach into git's own folder, whatever the file system makes of
    them."""
    for path in tree:
        for part in path.split("/"):
            name = _INVISIBLE.sub("", part).casefold().rstrip(" .")
            if name in ("", ".git", "git~1") or "\\" in part or "\n" in part or part in (".", ".."):
                raise RepositoryUnusable(
                    f"the remote holds a file that nacre does not write: {path!r}",
                    hint="take it out of the remote's branch, then sync again",
                )


def counted(changes: Iterable[str]) -> str:
    """How many files change, in words; the ledger is not counted."""
    files = len(set(changes) - {LEDGER})
    return f"{files} file" if files == 1 else f"{files} files"


# ----------------------------------------------------------------------------
# Bring into the vault what a sync found at the remote, in parts between which others write.
#
# A part is written, each file only where it is still what it was, and read, before anybody else has
# the vault's lock: a
# scan in between finds nothing that it could take for a person's edit. Then the branch moves, in one
# step, unless
# somebody moved it meanwhile. A crash, or an edit, before that leaves parts that the next sync finds
# on both sides.


_FILES_A_PART = 30
_MANY = 100
_MEANWHILE = "the vault changed meanwhile"
_SUPERSEDES = b"supersedes"
_TOKEN = re.compile(r"[^\s\"'#,\[\]{}]+")


@dataclass(slots=True)
class _Part:
    """Files that change together: those of a memory, of what supersedes it, and what lies in the way of another."""

    changes: dict[str, FileChange] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)


def take_in(home: Home, head: Head, plan: Plan, held: Mapping[str, str]) -> str | None:
    """Write what changed and move the branch; returns what stands in the way, if something was edited just now.

    Parts may have been brought in then; the next merge has less to do. Raises EditConflict for a file that waits here
    because it cannot be committed (``held``: path → why).
    """
    assert plan.commit is not None  # noqa: S101 - nothing that was only looked at is brought in
    home.problems.clear()
    with FileLock(home.settings.home / COMMIT_LOCK):
        if home.repository.head() != head:
            return _MEANWHILE
        obstacle = write_plan(home, plan, held)
        if obstacle:
            return obstacle
        if not home.repository.move_head(plan.commit, head.commit, "nacre sync"):
            return "the vault's branch moved meanwhile"
        step_index(home)
        told = [*home.problems]
        scan(home)
        home.problems[:] = dict.fromkeys((*told, *home.problems))
    return None


def forget_first(home: Home, theirs: str) -> tuple[Note, ...]:
    """Carry out what the remote's ledger says is forgotten, before anything is merged: nothing brings it back then.

    Returns a note for each memory that went, without its words. Raises VaultUnusable.
    """
    there = b"".join(home.repository.read([f"{theirs}:{LEDGER}"]).values())
    present = _present(home, LEDGER)
    known = set((present or b"").splitlines())
    lines = b"".join(
        one.line().encode() + b"\n" for one in told_in(there) if one.line().encode() not in known
    )
    if not lines:
        return ()
    before = home.memories.all_ids()
    with home.run(SYNC) as run, run.part() as change:
        apply_intents(home)
        _written(change, _Part({LEDGER: FileChange(present, merge_ledgers(present or b"", lines))}))
    apply_tombstones(home)
    return tuple(
        Note(MergeOutcome.FORGOTTEN, "", memory)
        for memory in sorted(before - home.memories.all_ids())
    )


def write_plan(home: Home, plan: Plan, held: Mapping[str, str]) -> str | None:
    """Write what changed, and no commit; returns what stands in the way. Raises EditConflict, VaultUnusable."""
    files = {
        path: _over_listing(home, path, one) for path, one in plan.changes.items() if path != LEDGER
    }
    return _edited(home, files, held) or _in_parts(home, plan, files, held)


def _over_listing(home: Home, path: str, change: FileChange) -> FileChange:
    """A listing that nacre derived here gives way to one that the owner has in git elsewhere."""
    present = _present(home, path) if PurePosixPath(path).name == LISTING else None
    return FileChange(present, change.after) if present and is_derived(present) else change


def _in_parts(
    home: Home, plan: Plan, files: Mapping[str, FileChange], held: Mapping[str, str]
) -> str | None:
    """As one operation. First what the ledger says is forgotten goes, as if it came alone: no file brings it back."""
    op, subject = (plan.operation.id, plan.operation.subject) if plan.operation else (None, None)
    with home.run(
        SYNC, subject=subject or f"{counted(plan.changes)} from the remote", op=op
    ) as run:
        with run.part() as change:
            apply_intents(home)
            if home.files.has_intents():
                return _MEANWHILE
            obstacle = _written(change, _Part(_ledger(home, plan)))
        if obstacle:
            return obstacle
        apply_tombstones(home)
        parts = list(_parts(home, files, plan.given_up))  # nobody is to wait for that
        here = home.memories.all_ids()
        awaits = _new(files) <= max(_MANY, len(here))
        for part in parts:
            with run.part() as change:
                obstacle = _take_part(change, part, held, awaits=awaits)
            if obstacle:
                return obstacle
        if not awaits:
            _await_models(home, here)
    return None


def _new(files: Mapping[str, FileChange]) -> int:
    """How many memories come that are not here."""
    return sum(one.before is None for path, one in files.items() if is_memory_file(path))


def _await_models(home: Home, here: Collection[str]) -> None:
    """So much came that it is cheaper to judge what was here: each of the one is looked at beside the other.

    What came together was judged where it was made.
    """
    with home.database.transaction():
        for memory in home.memories.in_any_state(sorted(here)) if waits_for_models(home) else ():
            await_models(home, memory)


def _take_part(change: Change, part: _Part, held: Mapping[str, str], *, awaits: bool) -> str | None:
    """Write and read a part; returns what stands in the way."""
    home = change.home
    apply_intents(home)
    if home.files.has_intents():
        return _MEANWHILE
    obstacle = _edited(home, part.changes, held) or _written(change, part)
    if not obstacle:
        with home.change(EDIT) as reading:
            read_written(reading, part.changes, awaits=awaits)
    return obstacle


def _written(change: Change, part: _Part) -> str | None:
    """Write a part; returns what somebody edited at that moment. Raises VaultUnusable."""
    home = change.home
    _write(change, part)
    edited = next(
        (path for path, one in part.changes.items() if _present(home, path) != one.after), None
    )
    if edited and home.files.has_intents():
        raise VaultUnusable(
            next(iter(home.problems[-1:]), f"{edited} cannot be written"),
            hint="free some space, or see to its permissions; then sync again: nothing was lost",
        )
    return f"{edited} was edited meanwhile" if edited else None


def _parts(
    home: Home, changes: Mapping[str, FileChange], given_up: Collection[str]
) -> Iterator[_Part]:
    """What changes, in parts of some thirty files, each whole. ``given_up`` go with their files."""
    going = {file.path: memory for memory in given_up if (file := home.files.file_of(memory))}
    part = _Part(given_up={memory for memory in given_up if memory not in going.values()})
    for group in together(changes):
        part.changes |= {path: changes[path] for path in group}
        part.given_up |= {going.pop(path) for path in group if path in going}
        if len(part.changes) >= _FILES_A_PART:
            yield part
            part = _Part()
    part.given_up |= {*going.values()}
    if part.changes or part.given_up:
        yield part


def together(changes: Mapping[str, FileChange]) -> list[list[str]]:
    """Paths that change at once: what is one memory, what one supersedes, what lies where another has its folder."""
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = name = above[above[name]]
        return name

    places = {path: f"path {path.casefold()}" for path in changes}
    known = {
        id_in(data) or "" for one in changes.values() for data in (one.before, one.after) if data
    }
    for path, one in changes.items():
        names = [places[over] for over in _above(path) if over in places]
        names += [
            f"id {memory}"
            for data in (one.before, one.after)
            if data
            for memory in _ids_in(data, known)
        ]
        for name in names:
            above[top(name)] = top(places[path])
    groups: dict[str, list[str]] = defaultdict(list)
    for path in sorted(changes):
        groups[top(places[path])].append(path)
    return list(groups.values())


def _above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def _ids_in(data: bytes, known: Collection[str]) -> set[str]:
    """The id of a document, and those that it may say it supersedes."""
    own = id_in(data)
    if own is None or _SUPERSEDES not in data:
        return {own} if own else set()
    front, _ = split(data.decode("utf-8", errors="replace"))
    return {own, *_TOKEN.findall(front or "")} & {own, *known}


def _ledger(home: Home, plan: Plan) -> dict[str, FileChange]:
    """The ledger here may hold lines of operations that no commit has yet: they stay."""
    ledger = plan.changes.get(LEDGER)
    if ledger is None or ledger.after is None:
        return {}
    present = _present(home, LEDGER)
    if present is not None and present != ledger.before:
        return {LEDGER: FileChange(present, merge_ledgers(ledger.after, present))}
    return {LEDGER: ledger}


def _write(change: Change, part: _Part) -> None:
    """First what is new, then what goes; a file with a secret in it does not pass the database."""
    home = change.home
    changes = {path: one for path, one in part.changes.items() if _present(home, path) != one.after}
    intents, direct = [], []
    for path, one in sorted(changes.items(), key=lambda item: item[1].after is None):
        text = _text(one.after)
        base = None if one.before is None else bytes_hash(one.before)
        if one.after is None:
            intents.append(
                Intent(
                    "remove",
                    path,
                    base=base,
                    former=without_secrets(home.redactor, _text(one.before)),
                )
            )
        elif text is None or without_secrets(home.redactor, text) is None:
            direct.append(path)
        else:
            intents.append(
                Intent(
                    "write",
                    path,
                    text,
                    base,
                    former=without_secrets(home.redactor, _text(one.before)),
                )
            )
    with home.database.transaction():
        change.intend(intents)
        if intents:
            home.journal.touch(change.operation_id, [*_named(changes)])
        for memory in part.given_up:
            _forget(home, memory)
    change.apply()
    if home.files.has_intents():
        change.apply()  # a file was in the way of a folder, and is gone now
    for path in direct:
        _write_bytes(home, path, changes[path])


def _forget(home: Home, memory: str) -> None:
    """Take a memory out of the index, so that no scan takes it for one that a person deleted."""
    file = home.files.file_of(memory)
    if file:
        home.files.forget(file.path)
    home.memories.delete(memory)


def _write_bytes(home: Home, path: str, change: FileChange) -> None:
    base = None if change.before is None else bytes_hash(change.before)
    try:
        home.vault.write_bytes(path, change.after or b"", base=base)
    except (EditConflict, VaultUnusable) as error:
        home.problems.append(f"{path}: {error.message}")


def _named(changes: Mapping[str, FileChange]) -> Iterator[Intent]:
    """Which memories the files hold."""
    for path, change in changes.items():
        memory = id_in(change.after or change.before or b"") if is_memory_file(path) else None
        if memory:
            yield Intent("write", path, memory=memory)


def _edited(home: Home, changes: Mapping[str, FileChange], held: Mapping[str, str]) -> str | None:
    """What a person, or another process, did to a file since it was compared. Raises EditConflict."""
    for path, one in changes.items():
        if _present(home, path) in (one.before, one.after):
            continue
        if path in held:
            raise EditConflict(
                f"{path} waits here ({held[path]}), and the remote changed it, too",
                hint="mend the file, or move it out of the vault, then sync again",
            )
        return f"{path} was edited meanwhile"
    return None


def _present(home: Home, path: str) -> bytes | None:
    try:
        return home.vault.read(path, whole=True)
    except FileNotFoundError:
        return None
    except VaultUnusable:
        place = home.vault.root / path
        if place.is_dir() or any(parent.is_file() for parent in place.parents):
            return None
        raise


def _text(data: bytes | None) -> str | None:
    try:
        return data.decode() if data is not None and b"\0" not in data else None
    except UnicodeDecodeError:
        return None


# ----------------------------------------------------------------------------
# Requests to keep the vault in step with a remote.


class SyncRequest(Request, frozen=True, kw_only=True):
    """Keep the vault in step with a remote."""

    remote: Annotated[
        str | None, Meta(description="An address, or the name of a remote in git; none later.")
    ] = None
    dry_run: Annotated[bool, Meta(description="Say what would be done, and do nothing.")] = False
    timeout_seconds: Annotated[
        float, Meta(description="Longest time for each call, in seconds.", gt=0)
    ] = TIMEOUT_SECONDS_GIT
    accept_rewritten: Annotated[
        bool, Meta(description="Take a history that somebody rewrote at the remote as it is now.")
    ] = False
    patience_seconds: Annotated[
        float, Meta(description="Longest wait for another sync, in seconds.", ge=0)
    ] = 20.0


# ----------------------------------------------------------------------------
# Keep the vault in step with a remote: fetch, merge by memory and field, look for secrets, push.


TIMEOUT_SECONDS = 60.0

_TRIES = 5
_MOST_FINDS = 5
_READ_AT_ONCE_SYNC = 500
_STATE = "sync"
_LONG = timedelta(days=1)


class State(StrEnum):
    """How a sync ended."""

    NO_REMOTE = "no_remote"
    UP_TO_DATE = "up_to_date"
    SYNCED = "synced"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did: operations sent and received, what was merged, what could not be committed here."""

    state: State
    remote: str | None = None
    url: str | None = None
    branch: str | None = None
    sent: int = 0
    received: int = 0
    notes: tuple[Note, ...] = ()
    held: tuple[Held, ...] = ()
    left_out: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LastSync:
    """How the last sync ended: when, and since when it fails with which words."""

    at: str
    succeeded: str | None = None
    failing_since: str | None = None
    message: str | None = None
    hint: str | None = None
    told: bool = False


def sync(home: Home, wanted: SyncRequest | None = None) -> Synced:
    """Commit what is pending, bring in what the remote has, send what it has not.

    Raises RemoteUnreachable, RemoteRefused, HistoryRewritten, SecretFound, RepositoryUnusable, GitUnavailable,
    EditConflict, StoreBusy. Nothing is lost then: the next sync goes on.
    """
    wanted = wanted or SyncRequest()
    if not home.settings.flag("git.enabled"):
        raise RepositoryUnusable(
            "git is off, so there is nothing to sync", hint="nacre config set git.enabled true"
        )
    with (
        FileLock(home.settings.home / SYNC_LOCK, wanted.patience_seconds),
        _outcome_kept(home, wanted),
    ):
        committed = _commit_sync(home, wanted)
        local = settled_head(home).branch or ""
        remote = _remote(home, wanted, local)
        if remote is None:
            return Synced(State.NO_REMOTE, held=committed.held, problems=tuple(home.problems))
        branch = remote.branch(local)
        done = Synced(State.UP_TO_DATE, remote.name, remote.url(), branch, held=committed.held)
        if wanted.dry_run:
            return _plan(home, remote, done, wanted)
        remote.follow(local, branch)
        done = _exchange(home, remote, done, wanted)
        write_listings(home)
        erase_bytes_erasure(home)
        return done


def sync_quietly(home: Home) -> None:
    """What runs in the background: how it ends is kept for ``nacre doctor``."""
    with contextlib.suppress(NacreError):
        sync(home, SyncRequest(timeout_seconds=TIMEOUT_SECONDS, patience_seconds=0))


def last_sync(home: Home) -> LastSync | None:
    """How the last sync ended, ``None`` before the first."""
    text = home.journal.git_state(_STATE)
    try:
        return LastSync(**json.loads(text)) if text else None
    except (ValueError, TypeError):  # the next one notes it anew
        return None


def long_failing(home: Home) -> LastSync | None:
    """A sync that has failed for a day, to be told once; ``None`` where there is nothing to tell."""
    last = last_sync(home)
    if last is None or last.told or not last.failing_since:
        return None
    if home.clock() - datetime.fromisoformat(last.failing_since) < _LONG:
        return None
    _keep(home, replace(last, told=True))
    return last


def _commit_sync(home: Home, wanted: SyncRequest) -> Committed:
    if wanted.dry_run:
        prepare(home)
        return Committed(waiting=home.journal.waiting()[0])
    catch_up(home)
    return commit_operations(home)


def _remote(home: Home, wanted: SyncRequest, branch: str) -> Remote | None:
    """The remote that is set up, or the one that was asked for, which is set up now.

    Raises InvalidInput, RemoteRefused, RemoteUnreachable.
    """
    known = Remote(home.repository, home.settings.text("git.remote"), wanted.timeout_seconds)
    if wanted.remote is None:
        return known if known.url() else None
    named = replace(known, name=wanted.remote)
    if wanted.remote.replace("-", "").replace("_", "").isalnum() and named.url():
        return named
    url = check_url(wanted.remote, Path.cwd())
    if Path(url) == home.vault.root or home.vault.root in Path(url).parents:
        raise InvalidInput("the remote lies in the vault itself", hint="take a folder elsewhere")
    asked = replace(known, name=url)
    if wanted.dry_run:
        return asked
    if url != known.url():
        found = asked.branch(
            branch
        )  # an address that nobody answers at does not replace one that works
        known.set_url(url)
        if not known.followed(branch):
            known.follow(branch, found)
    return known


def _exchange(home: Home, remote: Remote, done: Synced, wanted: SyncRequest) -> Synced:
    """Bring in and send, again where somebody else was quicker."""
    reason = "the remote keeps moving"
    for _ in range(_TRIES):
        head = home.repository.head()
        theirs = remote.fetch(done.branch or "")
        rewritten_from = _rewritten_from(home, remote, theirs, wanted)
        if theirs and (rewritten_from or not home.repository.is_ancestor(theirs, head.commit)):
            if forgotten := forget_first(home, theirs):
                done = replace(
                    done, notes=(*done.notes, *forgotten), held=_commit_sync(home, wanted).held
                )
                head = home.repository.head()
            plan = plan_join(home, head, theirs, rewritten_from=rewritten_from, dry_run=False)
            waiting = {held.path: held.reason for held in done.held if held.reason != UNWRITTEN}
            obstacle = take_in(home, head, plan, waiting)
            done = _with_problems(done, home)
            done = replace(done, held=_commit_sync(home, wanted).held)
            if obstacle:
                reason = obstacle
                continue
            done = _received(home, done, plan, head, theirs)
        done = _with_problems(done, home)
        try:
            return _send(home, remote, done, theirs)
        except RemoteMoved:
            _commit_sync(home, wanted)
    raise RepositoryBusy(reason, hint="sync again in a moment; nothing was lost")


def _plan(home: Home, remote: Remote, done: Synced, wanted: SyncRequest) -> Synced:
    """What a sync would do now."""
    head = home.repository.head()
    theirs = remote.fetch(done.branch or "")
    waiting = home.journal.waiting()[0]
    rewritten_from = _rewritten_from(home, remote, theirs, wanted)
    if theirs and (rewritten_from or not home.repository.is_ancestor(theirs, head.commit)):
        plan = plan_join(home, head, theirs, rewritten_from=rewritten_from, dry_run=True)
        done = _received(home, done, plan, head, theirs)
    sent = len(operations_in(home.repository.history(theirs, head.commit))) if head.commit else 0
    return replace(done, state=State.PLANNED, sent=sent + waiting, problems=tuple(home.problems))


def _received(home: Home, done: Synced, plan: Plan, head: Head, theirs: str) -> Synced:
    received = len(operations_in(home.repository.history(head.commit, theirs)))
    return replace(
        done,
        state=State.SYNCED,
        received=done.received + received,
        notes=(*done.notes, *plan.notes),
        left_out=plan.left_out,
    )


def _with_problems(done: Synced, home: Home) -> Synced:
    return replace(done, problems=tuple(dict.fromkeys((*done.problems, *home.problems))))


def _send(home: Home, remote: Remote, done: Synced, theirs: str | None) -> Synced:
    """Push what the remote has not. Raises RemoteMoved, SecretFound, RemoteRefused, RemoteUnreachable."""
    head, branch = home.repository.head().commit, done.branch or ""
    if head is None:
        return done
    if head == theirs:
        remote.remember(head, branch)
        return done
    commits = list(home.repository.history(theirs, head))
    _refuse_secrets(home, commits, home.repository.new_blobs(head, theirs))
    sent = len(operations_in(commits))
    remote.push(head, branch)
    return replace(done, state=State.SYNCED, sent=sent)


def _rewritten_from(
    home: Home, remote: Remote, theirs: str | None, wanted: SyncRequest
) -> str | None:
    """The commit the remote was at when somebody rewrote its history since. Raises HistoryRewritten."""
    synced = remote.synced() if theirs else None
    if synced is None or theirs is None or home.repository.is_ancestor(synced, theirs):
        return None
    if wanted.accept_rewritten:
        return synced
    raise HistoryRewritten(
        f"somebody rewrote the history at the remote: commit {synced[:8]}, which it had at the last sync, is gone",
        hint="nothing was changed. Look at it (git fetch, git log), then take it as it is and put what is new here on "
        "top: nacre sync --accept-rewritten",
    )


def _refuse_secrets(home: Home, commits: Sequence[PastCommit], blobs: Mapping[str, str]) -> None:
    """Look at everything that would be sent for the first time: files and messages. Raises SecretFound."""
    names = sorted(blobs)
    found: dict[str, str] = {}
    for start in range(0, len(names), _READ_AT_ONCE_SYNC):
        for blob, data in home.repository.read(names[start : start + _READ_AT_ONCE_SYNC]).items():
            rules = (
                _secrets(home, data.decode("utf-8", "replace")) if b"\0" not in data[:8192] else ""
            )
            if rules:
                found[blobs[blob]] = rules
    for path in set(blobs.values()):
        if rules := _secrets(home, path):
            found[home.redactor.clean(path)] = f"its name: {rules}"
    for past in commits:
        if rules := _secrets(home, past.message):
            found[f"the message of commit {past.id[:8]}"] = rules
    if found:
        told = "; ".join(f"{path} ({rules})" for path, rules in sorted(found.items())[:_MOST_FINDS])
        more = f" and {len(found) - _MOST_FINDS} more" if len(found) > _MOST_FINDS else ""
        raise SecretFound(
            f"nothing was sent, because what looks like a secret is in {told}{more}",
            hint="take it out, also of the history: nacre scrub; or say that it is none: redaction.allow",
        )


def _secrets(home: Home, text: str) -> str:
    return ", ".join(sorted(home.redactor.redact(text).found))


@contextlib.contextmanager
def _outcome_kept(home: Home, wanted: SyncRequest) -> Iterator[None]:
    """Remember how a sync ends, for ``nacre doctor`` and the next command."""
    if wanted.dry_run:
        yield
        return
    before = last_sync(home) or LastSync("")
    now = stamp(home.now())
    try:
        yield
    except NacreError as error:
        since = before.failing_since or now
        _keep(
            home,
            replace(before, at=now, failing_since=since, message=error.message, hint=error.hint),
        )
        raise
    _keep(home, LastSync(now, now))


def _keep(home: Home, last: LastSync) -> None:
    values = clean_values(home.redactor, {name: getattr(last, name) for name in LastSync.__slots__})
    with contextlib.suppress(StoreBusy), home.database.transaction():
        home.journal.set_git_state(_STATE, json.dumps(values))


# ----------------------------------------------------------------------------
# What follows whatever was done, whoever runs it: a command, the daemon or an agent's server.


def keep_history(home: Home, *, commits: bool = True) -> None:
    """Embed new memories, then judge, sync and commit changes in the background, where that is wanted and due.

    Without ``commits`` changes are not synced or committed.
    """
    if home.database.unwritable:
        return
    embed_new_memories(home)
    if home.settings.flag("models.background"):
        history.judge_in_background(home)
    if not commits:
        return
    history.exchange_in_background(home)
    if home.settings.flag("sync.auto") and history.sync_in_background(home):
        return
    if home.journal.waiting()[0]:
        history.commit_in_background(home)


def embed_new_memories(home: Home) -> None:
    """Embed the memories that were written through this home, unless their operation already did."""
    if home.memories.has_new_rows:
        vectors.embed_memories(home, begins=True)


def warnings_of(home: Home, *, of_sync: bool = True) -> list[str]:
    """What a person should know beside an answer: that syncs fail, or that nothing can be written now."""
    found = []
    if of_sync and home.settings.flag("sync.auto"):
        last = long_failing(home)
        found += (
            [f"syncing has failed since {last.failing_since}: {last.message}; {last.hint}"]
            if last
            else []
        )
    why = home.database.unwritable
    return found + (
        [f"nothing is written, and edits by hand are not read: {why.message}; {why.hint}"]
        if why
        else []
    )
