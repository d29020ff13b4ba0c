"""Compare the vault with its remote and merge the two; :mod:`nacre.sync.import_remote` writes the result."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nacre.errors import RepositoryUnusable
from nacre.git.repository import Entries, Head, NewCommit, PastCommit
from nacre.history.commit import author_of
from nacre.history.commit_message import BEGINNING, RecordedOperation, read_message, write_message
from nacre.home.home import Home
from nacre.tombstones.erasure import without_words
from nacre.tombstones.tombstones import Barred, Gate, standing_tombstones, told_in
from nacre.values.operation import SYNC, Operation
from nacre.vault.identity import Tree, id_in, is_document
from nacre.vault.layout import LEDGER, is_memory_file
from nacre.vault.ledger import Entry
from nacre.vault.ledger import read as read_ledger
from nacre.vault.merge_notes import MergeOutcome, Note
from nacre.vault.merging import MergedVault, merge_ledgers, merge_vaults
from nacre.vault.merging_document import listed, read_document, with_values

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


def plan_join(home: Home, head: Head, theirs: str, *, rewritten_from: str | None, dry_run: bool) -> Plan:
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
        commit = _commit(home, head.commit, plan.changes, (theirs,), _told(plan.operation, plan.changes))
    return replace(plan, commit=commit)


def plan_merge(home: Home, base: Tree, here: Tree, there: Tree, *, is_rewritten: bool = False) -> tuple[Plan, Tree]:
    """Merge two vaults that were made from ``base``: what changes here, and what both are to hold.

    ``is_rewritten``: what there is no more was taken out on purpose.
    """
    merged = merge_vaults(base, here, there)
    operation = Operation(home.ids(), home.now(), SYNC)
    _tell_united(merged, operation)
    forgotten, notes = _leave_out_forgotten(merged, here)
    changes = changes_between(here, merged.files)
    operation = replace(operation, subject=f"{counted(changes)} from the remote")
    given_up = united_in(changes) | forgotten | (_taken_out(changes, merged) if is_rewritten else frozenset())
    return Plan(None, changes, notes, given_up, operation), merged.files


def changes_between(before: Tree, after: Tree) -> dict[str, FileChange]:
    """The files that differ."""
    changes = {path: FileChange(before.get(path), after.get(path)) for path in sorted({*before, *after})}
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
    return [path for path in paths if is_document(path) or len({tree.get(path) for tree in trees}) > 1]


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
    blobs = [{path: tree[path][1] for path in paths if path in tree and _is_plain(tree, path)} for tree in trees]
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


def _told(operation: Operation, changes: Mapping[str, FileChange]) -> list[tuple[Operation, Sequence[str]]]:
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
    names = [f"{commit.id}:{path}" for commit in commits for path in commit.paths if is_document(path)]
    return any(
        barred.bars_document(name.partition(":")[2], data) or barred.names_in(data)
        for name, data in home.repository.read(names).items()
    )


def _tell_united(merged: MergedVault, operation: Operation) -> None:
    """Say in the ledger which ids were given up, for machines that only receive the result."""
    lines = b"".join(
        Entry(operation.id, operation.at, _UNITE, {"memory": kept, "given_up": given_up}).line().encode() + b"\n"
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
        str(entry.details["given_up"]) for entry in read_ledger(new)
        if entry.action == _UNITE and "given_up" in entry.details
    )  # fmt: skip


def _leave_out_forgotten(merged: MergedVault, here: Tree) -> tuple[frozenset[str], tuple[Note, ...]]:
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
    notes = [note for note in merged.notes if note.memory not in forgotten and note.path not in gone]
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
    gone = {id_in(one.before) for path, one in changes.items() if one.before and is_memory_file(path)}
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
