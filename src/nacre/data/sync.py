"""Sync the vault with a git remote: compare, merge, write files, and exchange commits."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.base.request import Request
from nacre.base.text import count, to_text
from nacre.data import history
from nacre.data.history import (
    COMMIT_LOCK,
    SYNC_LOCK,
    UNWRITTEN,
    Committed,
    OperationPaths,
    RecordedOperation,
    UncommittedFile,
    commit_operations,
    prepare,
    settled_head,
    step_index,
    write_message,
)
from nacre.errors import (
    EditConflictError,
    HistoryRewrittenError,
    InvalidInputError,
    NacreError,
    RemoteMovedError,
    RepositoryBusyError,
    SecretFoundError,
    StoreBusyError,
    UnusableRepositoryError,
    UnusableVaultError,
)
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import clean_values, without_secrets
from nacre.home.operations import apply_intents
from nacre.memories import vectors
from nacre.memories.edit import catch_up, read_written, scan
from nacre.memories.erasure import apply_tombstones, erase_written_bytes, without_words
from nacre.memories.tombstones import Barred, Gate, forgetting_in, standing_tombstones
from nacre.operations import operation
from nacre.values.codec import stamp
from nacre.values.memory import EDIT, SYNC, Intent, Operation
from nacre.vault import remotes
from nacre.vault.documents import MergeOutcome, Note, adjust
from nacre.vault.files import LEDGER, LedgerEntry, is_memory_file
from nacre.vault.files import read as read_ledger
from nacre.vault.git import TIMEOUT_SECONDS as TIMEOUT_SECONDS_GIT
from nacre.vault.git import Entries, Head, NewCommit, PastCommit
from nacre.vault.merging import (
    MergedVault,
    Tree,
    as_list,
    id_in,
    is_document,
    merge_ledgers,
    merge_vaults,
    read_document,
)

_GIT_REMOTE = "origin"
_JOIN_MESSAGE = "Merge changes from the remote\n"
_UNITE = "unite"
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


@frozen
class FileChange:
    """A file's content before and after a change, each ``None`` if the file did not exist."""

    before: bytes | None
    after: bytes | None


Changes = Mapping[str, FileChange]
"""File changes by path."""


@frozen
class Plan:
    """A planned merge, with the files that it changes. A preview has no ``commit``.

    ``given_up`` contains the ids of memories that were merged into others or are missing from a
    rewritten history.
    """

    commit: str | None
    changes: Changes
    notes: tuple[Note, ...] = ()
    given_up: frozenset[str] = frozenset()
    operation: Operation | None = None
    left_out: tuple[str, ...] = ()


def plan_join(
    home: Home, head: Head, theirs: str, *, rewritten_from: str | None, dry_run: bool
) -> Plan:
    """Plan the merge of HEAD with a fetched commit.

    ``rewritten_from`` is the last shared commit if the remote's history was rewritten; local
    changes are then reapplied on top of the new history. Raises UnusableRepositoryError for paths
    that a vault must not contain.
    """
    repository = home.repository
    local, remote_tree = repository.tree(head.commit), repository.tree(theirs)
    refuse_paths(remote_tree)
    left_out = tuple(sorted(path for path in remote_tree if not _is_plain(remote_tree, path)))
    if head.commit is None or (not rewritten_from and repository.is_ancestor(head.commit, theirs)):
        paths = sorted({path for path, _ in local.items() ^ remote_tree.items()})
        changes = changes_between(*_contents(home, (local, remote_tree), paths))
        return Plan(theirs, changes, given_up=united_in(changes), left_out=left_out)
    base_commit = rewritten_from or repository.merge_base(head.commit, theirs)
    trees = (repository.tree(base_commit), local, remote_tree)
    all_paths = sorted({path for tree in trees for path in tree})
    paths = [
        path
        for path in all_paths
        if is_document(path) or len({tree.get(path) for tree in trees}) > 1
    ]
    base, ours, remote = _contents(home, trees, paths)
    plan, merged = plan_merge(home, base, ours, remote, is_rewritten=bool(rewritten_from))
    plan = replace(plan, left_out=left_out)
    if dry_run:
        return plan
    assert plan.operation is not None  # noqa: S101 - a merge has an operation
    if rewritten_from or _tells_forgotten(home, head, theirs):
        onto = changes_between(remote, merged)
        operations = [
            *_unsent(home, head, rewritten_from or theirs, onto),
            *_as_operations(plan.operation, onto),
        ]
        commit = _commit(home, theirs, onto, (), operations)
    else:
        commit = _commit(
            home, head.commit, plan.changes, (theirs,), _as_operations(plan.operation, plan.changes)
        )
    return replace(plan, commit=commit)


def plan_merge(
    home: Home, base: Tree, local: Tree, remote_tree: Tree, *, is_rewritten: bool = False
) -> tuple[Plan, Tree]:
    """Merge the local and the remote vault. Return the plan and the merged files.

    Set ``is_rewritten`` if files missing from the remote were removed deliberately.
    """
    merged = merge_vaults(base, local, remote_tree)
    operation = Operation(home.ids(), home.now(), SYNC)
    # The ledger tells other machines which memories were merged.
    lines = b"".join(
        LedgerEntry(operation.id, operation.at, _UNITE, {"memory": remaining, "given_up": given_up})
        .line()
        .encode()
        + b"\n"
        for given_up, remaining in sorted(merged.united.items())
    )
    if lines:
        merged.files[LEDGER] = merge_ledgers(merged.files.get(LEDGER, b""), lines)
    forgotten, notes = _leave_out_forgotten(merged, local)
    changes = changes_between(local, merged.files)
    operation = replace(operation, subject=f"{counted(changes)} from the remote")
    given_up = (
        united_in(changes)
        | forgotten
        | (_taken_out(changes, merged) if is_rewritten else frozenset())
    )
    return Plan(None, changes, notes, given_up, operation), merged.files


def changes_between(before: Tree, after: Tree) -> dict[str, FileChange]:
    """Return the files that differ between two trees, with both contents."""
    changes = {
        path: FileChange(before.get(path), after.get(path)) for path in sorted({*before, *after})
    }
    return {path: change for path, change in changes.items() if change.before != change.after}


def _operations_in(home: Home, since: str | None, until: str) -> list[RecordedOperation]:
    operations = {
        recorded.operation.id: recorded
        for commit in home.repository.history(since, until)
        for recorded in history.operations_of(home, commit)
        if recorded.operation.action != SYNC
    }
    return list(operations.values())


def _contents(home: Home, trees: Sequence[Entries], paths: Sequence[str]) -> list[dict[str, bytes]]:
    blobs = [
        {path: tree[path][1] for path in paths if path in tree and _is_plain(tree, path)}
        for tree in trees
    ]
    needed = sorted({blob for present in blobs for blob in present.values()})
    contents = home.repository.read(needed)
    return [{path: contents[blob] for path, blob in present.items()} for present in blobs]


def _commit(
    home: Home,
    parent: str,
    changes: Changes,
    merged: tuple[str, ...],
    operations: Sequence[OperationPaths],
) -> str:
    files = {path: change.after for path, change in changes.items()}
    message = write_message(operations, home.redactor.clean) if operations else _JOIN_MESSAGE
    commit = NewCommit(message, home.now(), files, merged)
    return home.repository.add_commits([commit], parent)[-1]


def _as_operations(operation: Operation, changes: Changes) -> list[OperationPaths]:
    return [(operation, [*changes])] if changes.keys() - {LEDGER} else []


def _unsent(home: Home, head: Head, since: str, onto: Changes) -> list[OperationPaths]:
    """Return unpushed operations from the database, because commits can contain forgotten text."""
    unsent: list[OperationPaths] = []
    for recorded in _operations_in(home, since, head.commit or since):
        operation = home.journal.find(recorded.operation.id)
        if operation and "-" in operation.id:
            touched = [path for path, _ in home.journal.touched(operation.id) if path in onto]
            unsent += [(operation, touched)] if touched else []
    return unsent


def _tells_forgotten(home: Home, head: Head, theirs: str) -> bool:
    barred = Gate(home).refresh()
    commits = home.repository.history(theirs, head.commit or theirs) if barred else ()
    names = [
        f"{commit.id}:{path}" for commit in commits for path in commit.paths if is_document(path)
    ]
    return any(
        barred.bars_document(name.partition(":")[2], data) or barred.names_in(data)
        for name, data in home.repository.read(names).items()
    )


def united_in(changes: Changes) -> frozenset[str]:
    """Return the ids of memories that were merged into others, according to new ledger lines."""
    ledger = changes.get(LEDGER, FileChange(None, None))
    old_lines = set((ledger.before or b"").splitlines())
    new = b"\n".join(line for line in (ledger.after or b"").splitlines() if line not in old_lines)
    return frozenset(
        str(entry.details["given_up"])
        for entry in read_ledger(new)
        if entry.action == _UNITE and "given_up" in entry.details
    )


def _leave_out_forgotten(
    merged: MergedVault, local: Tree
) -> tuple[frozenset[str], tuple[Note, ...]]:
    barred = Barred(standing_tombstones([*forgetting_in(merged.files.get(LEDGER, b""))]))
    if not barred:
        return frozenset(), merged.notes
    ledger = to_text(merged.files[LEDGER])
    merged.files[LEDGER] = without_words(ledger, barred.memories).encode()
    removed = {}
    for path, data in list(merged.files.items()):
        named = barred.names_in(data) if is_memory_file(path) else ()
        if (named or data != local.get(path)) and barred.bars_document(path, data):
            del merged.files[path]
            removed[path] = id_in(data) or ""
        elif named:
            merged.files[path] = _without_links(data, named)
    forgotten = barred.memories.union(removed.values())
    notes = [
        note for note in merged.notes if note.memory not in forgotten and note.path not in removed
    ]
    present = {
        id_in(data) or "" for path, data in local.items() if is_memory_file(path)
    } & forgotten
    notes += [Note(MergeOutcome.FORGOTTEN, "", memory) for memory in sorted(present)]
    return frozenset(removed.values()), tuple(notes)


def _without_links(data: bytes, to: Collection[str]) -> bytes:
    text = to_text(data)
    links = as_list(read_document(text).values.get("links"))
    remaining = [link for link in links if not (isinstance(link, dict) and link.get("to") in to)]
    return adjust(text, {"links": remaining}).encode() if remaining != links else data


def _taken_out(changes: Changes, merged: MergedVault) -> frozenset[str]:
    remaining = {id_in(data) for path, data in merged.files.items() if is_document(path)}
    removed = {
        id_in(change.before)
        for path, change in changes.items()
        if change.before and is_memory_file(path)
    }
    return frozenset(memory for memory in removed - remaining if memory)


def _is_plain(tree: Entries, path: str) -> bool:
    return tree[path][0].startswith("100")


def refuse_paths(tree: Iterable[str]) -> None:
    """Raise UnusableRepositoryError if a file system could mistake a path for git's own folder."""
    for path in tree:
        for part in path.split("/"):
            name = _INVISIBLE.sub("", part).casefold().rstrip(" .")
            if name in ("", ".git", "git~1") or "\\" in part or "\n" in part or part in (".", ".."):
                raise UnusableRepositoryError(
                    f"the remote has a file that nacre does not write: {path!r}",
                    hint="remove it from the remote's branch, then sync again",
                )


def counted(changes: Iterable[str]) -> str:
    """Return the number of changed files as text, such as "3 files", ignoring the ledger."""
    return count(len(set(changes) - {LEDGER}), "file")


# -- Writing remote changes into the vault ---------------------------------------------------------
# The files are written and indexed under the vault lock, unless they were edited, so that no scan mistakes them for
# manual edits. Finally, the branch is moved in one step, unless it has moved. After a crash or concurrent edit, the
# next sync finds the written files on both sides.


_VAULT_CHANGED = "the vault changed during the sync"


def take_in(home: Home, head: Head, plan: Plan, held_files: Mapping[str, str]) -> str | None:
    """Write a plan to the vault and move the branch to its commit.

    Returns a message if a file was edited meanwhile. ``held_files`` maps uncommitted files to
    reasons. Raises EditConflictError if the remote changed one of them.
    """
    assert plan.commit is not None  # noqa: S101 - a preview is not written
    home.problems.clear()
    with FileLock(home.settings.home / COMMIT_LOCK):
        if home.repository.head() != head:
            return _VAULT_CHANGED
        obstacle = write_plan(home, plan, held_files)
        if obstacle:
            return obstacle
        if not home.repository.move_head(plan.commit, head.commit, "nacre sync"):
            return "the vault's branch changed during the sync"
        step_index(home)
        problems = [*home.problems]
        scan(home)
        home.problems[:] = dict.fromkeys((*problems, *home.problems))
    return None


def forget_first(home: Home, theirs: str) -> tuple[Note, ...]:
    """Delete memories that were forgotten on the remote, before a merge can restore them.

    Returns a note about each, without its text. Raises UnusableVaultError if the vault is not
    writable.
    """
    remote_ledger = b"".join(home.repository.read([f"{theirs}:{LEDGER}"]).values())
    present = _present(home, LEDGER)
    local_lines = set((present or b"").splitlines())
    lines = b"".join(
        entry.line().encode() + b"\n"
        for entry in forgetting_in(remote_ledger)
        if entry.line().encode() not in local_lines
    )
    if not lines:
        return ()
    before = home.memories.all_ids()
    with home.run(SYNC) as run, run.part() as change:
        apply_intents(home)
        _written(change, {LEDGER: FileChange(present, merge_ledgers(present or b"", lines))})
    apply_tombstones(home)
    return tuple(
        Note(MergeOutcome.FORGOTTEN, "", memory)
        for memory in sorted(before - home.memories.all_ids())
    )


def write_plan(home: Home, plan: Plan, held_files: Mapping[str, str]) -> str | None:
    """Write a plan to the vault without committing, and return a message if an edit prevents this.

    Raises EditConflictError if a held file changed, or UnusableVaultError if the vault is not
    writable.
    """
    files = {path: change for path, change in plan.changes.items() if path != LEDGER}
    if obstacle := _edited(home, files, held_files):
        return obstacle
    op, subject = (plan.operation.id, plan.operation.subject) if plan.operation else (None, None)
    with home.run(
        SYNC, subject=subject or f"{counted(plan.changes)} from the remote", op=op
    ) as run:
        with run.part() as change:
            apply_intents(home)
            obstacle = _written(change, _ledger(home, plan))
        if obstacle:
            return obstacle
        apply_tombstones(home)
        with run.part() as change:
            apply_intents(home)
            obstacle = _edited(home, files, held_files) or _written(change, files, plan.given_up)
            if obstacle:
                return obstacle
            with home.change(EDIT) as reading:
                read_written(reading, files)
    return None


def _written(change: Change, changes: Changes, given_up: Collection[str] = ()) -> str | None:
    home = change.home
    if home.files.has_intents():
        return _VAULT_CHANGED
    _write(change, changes, given_up)
    edited = next(
        (path for path, item in changes.items() if _present(home, path) != item.after), None
    )
    if edited and home.files.has_intents():
        raise UnusableVaultError(
            next(iter(home.problems[-1:]), f"{edited} is not writable"),
            hint="free some space or check its permissions, then sync again; nothing was lost",
        )
    return f"{edited} was edited during the sync" if edited else None


def _ledger(home: Home, plan: Plan) -> dict[str, FileChange]:
    ledger = plan.changes.get(LEDGER)
    if ledger is None or ledger.after is None:
        return {}
    present = _present(home, LEDGER)
    if present is not None and present != ledger.before:
        return {LEDGER: FileChange(present, merge_ledgers(ledger.after, present))}
    return {LEDGER: ledger}


def _write(change: Change, planned: Changes, given_up: Collection[str]) -> None:
    home = change.home
    changes = {
        path: file_change
        for path, file_change in planned.items()
        if _present(home, path) != file_change.after
    }
    intents, direct = [], []
    for path, file_change in sorted(changes.items(), key=lambda item: item[1].after is None):
        text = _text(file_change.after)
        base = None if file_change.before is None else bytes_hash(file_change.before)
        former = without_secrets(home.redactor, _text(file_change.before))
        if file_change.after is None:
            intents.append(Intent("remove", path, base=base, former=former))
        elif text is None or without_secrets(home.redactor, text) is None:
            # A pending write would put the secret in the text into the database.
            direct.append((path, base))
        else:
            intents.append(Intent("write", path, text, base, former=former))
    with home.transaction():
        change.intend(intents)
        if intents:
            home.journal.touch(change.operation.id, _named(changes))
        for memory in given_up:  # otherwise, a scan would report a manual deletion
            if file := home.files.file_of(memory):
                home.files.forget(file.path)
            home.memories.delete(memory)
    change.apply()
    if home.files.has_intents():
        change.apply()  # removes a file that blocks a folder's path
    for path, base in direct:
        try:
            home.vault.write_bytes(path, changes[path].after or b"", base=base)
        except (EditConflictError, UnusableVaultError) as error:
            home.problems.append(f"{path}: {error.message}")


def _named(changes: Changes) -> Iterator[tuple[str, str]]:
    for path, change in changes.items():
        memory = id_in(change.after or change.before or b"") if is_memory_file(path) else None
        if memory:
            yield path, memory


def _edited(home: Home, changes: Changes, held_files: Mapping[str, str]) -> str | None:
    for path, change in changes.items():
        if _present(home, path) in (change.before, change.after):
            continue
        if path in held_files:
            raise EditConflictError(
                f"{path} has a problem ({held_files[path]}) and also changed at the remote",
                hint="correct the file or move it out of the vault, then sync again",
            )
        return f"{path} was edited during the sync"
    return None


def _present(home: Home, path: str) -> bytes | None:
    try:
        return home.vault.read(path, any_size=True)
    except FileNotFoundError:
        return None
    except UnusableVaultError:
        place = home.vault.root / path
        if place.is_dir() or any(parent.is_file() for parent in place.parents):
            return None
        raise


def _text(data: bytes | None) -> str | None:
    try:
        return data.decode() if data is not None and b"\0" not in data else None
    except UnicodeDecodeError:
        return None


# -- Requests --------------------------------------------------------------------------------------


class SyncRequest(Request):
    """Synchronise the vault with a git remote."""

    remote: Annotated[
        str | None,
        bounds("The address, or the name of a git remote. Later syncs reuse it."),
    ] = None
    dry_run: Annotated[bool, bounds("Show what would be done, but change nothing.")] = False
    timeout_seconds: Annotated[float, bounds("Maximum time per git call, in seconds.", gt=0)] = (
        TIMEOUT_SECONDS_GIT
    )
    accept_rewritten: Annotated[bool, bounds("Accept a rewritten history of the remote.")] = False
    patience_seconds: Annotated[
        float, bounds("Maximum wait for another sync, in seconds.", ge=0)
    ] = 20.0


# -- Sync: fetch, merge by memory and field, check for secrets, push -------------------------------


TIMEOUT_SECONDS = 60.0

_MAX_TRIES = 5
_MAX_LISTED_FINDS = 5
_STATE = "sync"
_REPORT_FAILURE_AFTER = timedelta(days=1)


class State(StrEnum):
    """The outcome of a sync."""

    NO_REMOTE = "no_remote"
    UP_TO_DATE = "up_to_date"
    SYNCED = "synced"
    PLANNED = "planned"


@frozen
class Synced:
    """The result of a sync. ``held`` lists files that could not be committed."""

    state: State
    remote: str | None = None
    url: str | None = None
    branch: str | None = None
    sent: int = 0
    received: int = 0
    notes: tuple[Note, ...] = ()
    held: tuple[UncommittedFile, ...] = ()
    left_out: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@frozen
class LastSync:
    """The result of the last sync. Only a failed sync has ``failing_since`` and ``message``."""

    at: str
    succeeded: str | None = None
    failing_since: str | None = None
    message: str | None = None
    hint: str | None = None
    is_reported: bool = False


@operation("sync", writes=True, takes_long=True, owners=("remote",))
def sync(home: Home, request: SyncRequest | None = None) -> Synced:
    """Commit pending operations, merge the remote's commits, and push.

    Raises RemoteUnreachableError, RemoteRefusedError, HistoryRewrittenError, SecretFoundError,
    UnusableRepositoryError, GitUnavailableError, EditConflictError, StoreBusyError. After an error,
    the next sync continues.
    """
    request = request or SyncRequest()
    if not home.settings.flag("git.enabled"):
        raise UnusableRepositoryError(
            "git is off, so sync is not possible", hint="nacre config set git.enabled true"
        )
    with (
        FileLock(home.settings.home / SYNC_LOCK, request.patience_seconds),
        _outcome_kept(home, request),
    ):
        committed = _commit_sync(home, request)
        local = settled_head(home).branch or ""
        remote = _remote(home, request, local)
        if remote is None:
            return Synced(State.NO_REMOTE, held=committed.held, problems=tuple(home.problems))
        branch = remote.branch(local)
        synced = Synced(State.UP_TO_DATE, remote.name, remote.url(), branch, held=committed.held)
        if request.dry_run:
            return _plan(home, remote, synced, request)
        remote.follow(local, branch)
        synced = _exchange(home, remote, synced, request)
        erase_written_bytes(home)
        return synced


def sync_quietly(home: Home) -> None:
    """Sync, ignoring errors, which ``nacre admin doctor`` reports."""
    with contextlib.suppress(NacreError):
        sync(home, SyncRequest(timeout_seconds=TIMEOUT_SECONDS, patience_seconds=0))


def last_sync(home: Home) -> LastSync | None:
    """Return the result of the last sync, or ``None`` before the first one."""
    text = home.journal.git_state(_STATE)
    try:
        return LastSync(**json.loads(text)) if text else None
    except (ValueError, TypeError):  # the next sync rewrites the file
        return None


def long_failing(home: Home) -> LastSync | None:
    """Return the last sync if syncs have failed for a day, but only once, to warn the user."""
    last = last_sync(home)
    if last is None or last.is_reported or not last.failing_since:
        return None
    if home.clock() - datetime.fromisoformat(last.failing_since) < _REPORT_FAILURE_AFTER:
        return None
    _keep(home, replace(last, is_reported=True))
    return last


def _commit_sync(home: Home, request: SyncRequest) -> Committed:
    if request.dry_run:
        prepare(home)
        return Committed(waiting=home.journal.count_pending()[0])
    catch_up(home)
    return commit_operations(home)


def _remote(home: Home, request: SyncRequest, branch: str) -> remotes.Remote | None:
    configured = remotes.Remote(home.repository, _GIT_REMOTE, request.timeout_seconds)
    if request.remote is None:
        return configured if configured.url() else None
    named = replace(configured, name=request.remote)
    if request.remote.replace("-", "").replace("_", "").isalnum() and named.url():
        return named
    url = remotes.check_url(request.remote, Path.cwd())
    if Path(url) == home.vault.root or home.vault.root in Path(url).parents:
        raise InvalidInputError("the remote is inside the vault", hint="choose a folder elsewhere")
    by_url = replace(configured, name=url)
    if request.dry_run:
        return by_url
    if url != configured.url():
        # An unreachable address must not replace a working one.
        remote_branch = by_url.branch(branch)
        configured.set_url(url)
        if not configured.tracked_branch(branch):
            configured.follow(branch, remote_branch)
    return configured


def _exchange(home: Home, remote: remotes.Remote, synced: Synced, request: SyncRequest) -> Synced:
    reason = "the remote keeps changing"
    for _ in range(_MAX_TRIES):
        head = home.repository.head()
        theirs = remote.fetch(synced.branch or "")
        rewritten_from = _rewritten_from(home, remote, theirs, request)
        if theirs and (rewritten_from or not home.repository.is_ancestor(theirs, head.commit)):
            if forgotten := forget_first(home, theirs):
                synced = replace(
                    synced, notes=(*synced.notes, *forgotten), held=_commit_sync(home, request).held
                )
                head = home.repository.head()
            plan = plan_join(home, head, theirs, rewritten_from=rewritten_from, dry_run=False)
            reasons = {file.path: file.reason for file in synced.held if file.reason != UNWRITTEN}
            obstacle = take_in(home, head, plan, reasons)
            synced = _with_problems(synced, home)
            synced = replace(synced, held=_commit_sync(home, request).held)
            if obstacle:
                reason = obstacle
                continue
            synced = _received(home, synced, plan, head, theirs)
        synced = _with_problems(synced, home)
        try:
            return _send(home, remote, synced, theirs)
        except RemoteMovedError:
            _commit_sync(home, request)
    raise RepositoryBusyError(reason, hint="try again in a moment; nothing was lost")


def _plan(home: Home, remote: remotes.Remote, synced: Synced, request: SyncRequest) -> Synced:
    head = home.repository.head()
    theirs = remote.fetch(synced.branch or "")
    pending = home.journal.count_pending()[0]
    rewritten_from = _rewritten_from(home, remote, theirs, request)
    if theirs and (rewritten_from or not home.repository.is_ancestor(theirs, head.commit)):
        plan = plan_join(home, head, theirs, rewritten_from=rewritten_from, dry_run=True)
        synced = _received(home, synced, plan, head, theirs)
    sent = len(_operations_in(home, theirs, head.commit)) if head.commit else 0
    return replace(synced, state=State.PLANNED, sent=sent + pending, problems=tuple(home.problems))


def _received(home: Home, synced: Synced, plan: Plan, head: Head, theirs: str) -> Synced:
    received = len(_operations_in(home, head.commit, theirs))
    return replace(
        synced,
        state=State.SYNCED,
        received=synced.received + received,
        notes=(*synced.notes, *plan.notes),
        left_out=plan.left_out,
    )


def _with_problems(synced: Synced, home: Home) -> Synced:
    return replace(synced, problems=tuple(dict.fromkeys((*synced.problems, *home.problems))))


def _send(home: Home, remote: remotes.Remote, synced: Synced, theirs: str | None) -> Synced:
    head, branch = home.repository.head().commit, synced.branch or ""
    if head is None:
        return synced
    if head == theirs:
        remote.remember(head, branch)
        return synced
    commits = list(home.repository.history(theirs, head))
    _refuse_secrets(home, commits, home.repository.new_blobs(head, theirs))
    sent = len(_operations_in(home, theirs, head))
    remote.push(head, branch)
    return replace(synced, state=State.SYNCED, sent=sent)


def _rewritten_from(
    home: Home, remote: remotes.Remote, theirs: str | None, request: SyncRequest
) -> str | None:
    synced = remote.last_synced() if theirs else None
    if synced is None or theirs is None or home.repository.is_ancestor(synced, theirs):
        return None
    if request.accept_rewritten:
        return synced
    raise HistoryRewrittenError(
        f"the remote's history was rewritten: commit {synced[:8]} of the last sync is gone",
        hint=(
            "nothing was changed. Inspect the new history (git fetch, git log). To accept it: "
            "nacre sync --accept-rewritten"
        ),
    )


def _refuse_secrets(home: Home, commits: Sequence[PastCommit], blobs: Mapping[str, str]) -> None:
    rules_by_path = {}
    for blob, data in home.repository.read(sorted(blobs)).items():
        if b"\0" not in data[:8192] and (rules := _secrets(home, to_text(data))):
            rules_by_path[blobs[blob]] = rules
    for path in set(blobs.values()):
        if rules := _secrets(home, path):
            rules_by_path[home.redactor.clean(path)] = f"its name: {rules}"
    for past in commits:
        if rules := _secrets(home, past.message):
            rules_by_path[f"the message of commit {past.id[:8]}"] = rules
    if rules_by_path:
        finds = [f"{path} ({rules})" for path, rules in sorted(rules_by_path.items())]
        listing = "; ".join(finds[:_MAX_LISTED_FINDS])
        unlisted = len(finds) - _MAX_LISTED_FINDS
        more = f" and {unlisted} more" if unlisted > 0 else ""
        raise SecretFoundError(
            f"nothing was sent: {listing}{more} seems to contain a secret",
            hint="remove it from files and history with nacre admin scrub --history, or allow it with redaction.allow",
        )


def _secrets(home: Home, text: str) -> str:
    return ", ".join(sorted(home.redactor.redact(text).counts))


@contextlib.contextmanager
def _outcome_kept(home: Home, request: SyncRequest) -> Iterator[None]:
    if request.dry_run:
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
    values = clean_values(home.redactor, asdict(last))
    with contextlib.suppress(StoreBusyError), home.transaction():
        home.journal.set_git_state(_STATE, json.dumps(values))


# -- After each operation of a command, the daemon or an agent's server ----------------------------


def keep_history(home: Home, *, commits: bool = True) -> None:
    """Embed new memories.

    Unless ``commits`` is False, also start any sync or commit that is due.
    """
    if home.database.unwritable:
        return
    embed_new_memories(home)
    if not commits:
        return
    history.exchange_in_background(home)
    if home.settings.flag("sync.auto") and history.sync_in_background(home):
        return
    if home.journal.count_pending()[0]:
        history.commit_in_background(home)


def embed_new_memories(home: Home) -> None:
    """Compute vectors for the memories that this process has stored."""
    if home.memories.has_new_rows:
        vectors.embed_memories(home)


def warnings_of(home: Home, *, of_sync: bool = True) -> list[str]:
    """Return warnings for the user about failing syncs or a read-only database."""
    warnings = []
    if of_sync and home.settings.flag("sync.auto") and (last := long_failing(home)):
        since = last.failing_since
        warnings.append(f"syncing has failed since {since}: {last.message}; {last.hint}")
    if why := home.database.unwritable:
        blocked = "vault writes are blocked, and manual edits are not read"
        warnings.append(f"{blocked}: {why.message}; {why.hint}")
    return warnings
