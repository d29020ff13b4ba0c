"""The vault's git history: committing operations and reading them from commits.

Commit messages are readable in ``git log`` and can be parsed by nacre:

::

   2 operations: retire, store

   - retire: Lunch is at noon
     why: the canteen closed
     by: command line
     path: global/fact/lunch.md
     path: retired/global/fact/lunch.md
   - store: Lunch is at one
     path: global/fact/lunch-2.md

   Nacre-Operation: 0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81
   Nacre-Operation: 0198f3c2-8a00-7c3e-9b1e-5f0c2a4d6e82
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, bytes_hash
from nacre.base.link import start_process
from nacre.base.locks import FileLock
from nacre.base.text import one_line, shorten, to_bytes, to_text
from nacre.errors import NacreError, RepositoryBusyError, UnusableRepositoryError
from nacre.home.home import Home
from nacre.home.location import without_secrets
from nacre.memories.edit import scan
from nacre.memories.tombstones import FORGET, Barred, Gate
from nacre.values.memory import ADOPT, EDIT, FOREIGN, REMOVE, SYNC, WITHHELD, Operation
from nacre.vault.files import GIT_FOLDER, LEDGER, is_memory_file
from nacre.vault.git import Head, NewCommit, PastCommit
from nacre.vault.merging import id_in

Clean = Callable[[str], str]
_Changes = dict[str, bytes | None]
OperationPaths = tuple[Operation, Sequence[str]]
"""An operation and the files that it changed."""

BEGINNING = "Begin the history of the vault"
"""Message of the first commit, which belongs to no operation."""

MOST_PATHS = 20
"""Maximum number of files in a shared commit. Larger operations get their own commit.

An operation with an :func:`unnamed` file also gets its own commit.
"""

_SUBJECT_CHARACTERS = 72
_TRAILER = "Nacre-Operation"
_TRAILERS = re.compile(rf"^{_TRAILER}: (\S+)\s*$", re.MULTILINE)
_ITEM = re.compile(r"^- (\S+?): ?(.*)$")


@frozen
class RecordedOperation:
    """An operation that a commit message describes.

    ``paths`` is ``None`` if all files of the commit belong to the operation.
    """

    operation: Operation
    paths: tuple[str, ...] | None


def unnamed(path: str, clean: Clean) -> bool:
    """Return True if a file name contains a line break or a secret, which no commit may mention."""
    return "\n" in path or clean(path) != path


def write_message(operations: Sequence[OperationPaths], clean: Clean) -> str:
    """Return the commit message for operations and the files that they changed."""
    lines = [clean(_title([operation for operation, _ in operations])), ""]
    for operation, paths in operations:
        lines.append(f"- {operation.action}: {clean(operation.subject or '')}".rstrip())
        lines += [f"  why: {clean(operation.why)}"] if operation.why else []
        lines += [f"  by: {clean(operation.by)}"] if operation.by else []
        if len(paths) <= MOST_PATHS and not any(unnamed(path, clean) for path in paths):
            lines += [f"  path: {path}" for path in paths]
        else:
            lines.append(f"  {len(paths)} files")
    lines += ["", *(f"{_TRAILER}: {operation.id}" for operation, _ in operations), ""]
    return "\n".join(lines)


def read_message(message: str, commit: str) -> list[RecordedOperation]:
    """Return the operations that a commit message describes, or none if nacre did not write it."""
    ids = _TRAILERS.findall(message)
    items: list[list[str]] = []
    for line in message.splitlines()[1:]:
        if _ITEM.match(line):
            items.append([line])
        elif line.startswith("  ") and items:
            items[-1].append(line.strip())
    items += [[] for _ in ids[len(items) :]]
    return [
        _parsed_operation(op, item, commit, is_alone=len(ids) == 1)
        for op, item in zip(ids, items, strict=False)
    ]


def _parsed_operation(
    op: str, item: Sequence[str], commit: str, *, is_alone: bool
) -> RecordedOperation:
    match = _ITEM.match(item[0]) if item else None
    action, subject = match.groups() if match else ("commit", "")
    facts = [line.split(": ", 1) for line in item[1:] if ": " in line]
    first = dict(reversed(facts))
    paths = tuple(value for name, value in facts if name == "path")
    return RecordedOperation(
        Operation(
            op, time_of(op), action, subject or None, first.get("why"), first.get("by"), commit
        ),
        None if is_alone else paths,
    )


def time_of(op: str) -> datetime:
    """Return the time encoded in an operation's UUIDv7, or 1970 for any other id."""
    try:
        return at_ms(int(op.replace("-", "")[:12], 16))
    except (ValueError, OverflowError, OSError):
        return at_ms(0)


def _title(operations: Sequence[Operation]) -> str:
    if len(operations) == 1:
        only = operations[0]
        return shorten(
            f"{only.action}: {only.subject}" if only.subject else only.action, _SUBJECT_CHARACTERS
        )
    counted = Counter(operation.action for operation in operations)
    names = (f"{many} {action}" if many > 1 else action for action, many in sorted(counted.items()))
    return shorten(f"{len(operations)} operations: {', '.join(names)}", _SUBJECT_CHARACTERS)


# -- Operations from history, cached in the database -----------------------------------------------
# An operation found in the history is no longer pending, so a crash after a commit is harmless.


_BATCH = 500


def catch_up(home: Home) -> None:
    """Add the operations in new commits to the journal.

    Raises GitUnavailableError or UnusableRepositoryError.
    """
    repository = home.repository
    if not repository.exists:
        return
    head = repository.head().commit
    last_read = home.journal.git_state("read")
    if head is None or head == last_read:
        return
    is_rewritten = not repository.is_ancestor(last_read, head)
    commits = list(repository.history(None if is_rewritten else last_read))
    if is_rewritten:
        with home.transaction():
            home.journal.forget_past()
    for start in range(0, len(commits), _BATCH):
        part = commits[start : start + _BATCH]
        recorded = [
            (commit, operation) for commit in part for operation in operations_of(home, commit)
        ]
        files = _files(home, [item for item in recorded if not _is_known(home, item[1])])
        with home.transaction():
            for commit, operation in recorded:
                _record(home, commit, operation, files, Gate(home).refresh())
            home.journal.set_git_state("read", part[-1].id)


def operations_of(home: Home, commit: PastCommit) -> list[RecordedOperation]:
    """Return the operations in a commit.

    A commit by another program counts as one operation, and a clean merge counts as none.
    """
    message = home.redactor.clean(commit.message)
    operations = read_message(message, commit.id)
    if operations or not commit.paths or commit.message == BEGINNING:
        return operations
    if commit.is_merge and not set(home.repository.changed_by_merge(commit.id)) - {LEDGER}:
        return []
    title = shorten(one_line(message.partition("\n")[0]), 120) or None
    operation = Operation(commit.id, commit.at, FOREIGN, title, committed=commit.id)
    return [RecordedOperation(operation, None)]


def _is_known(home: Home, recorded: RecordedOperation) -> bool:
    return home.journal.find(recorded.operation.id) is not None


def _record(
    home: Home,
    commit: PastCommit,
    recorded: RecordedOperation,
    files: Mapping[str, bytes],
    barred: Barred,
) -> None:
    if _is_known(home, recorded):
        home.journal.committed(recorded.operation.id, commit.id)
        return
    contents = {path: files.get(f"{commit.id}:{path}", b"") for path in _paths(commit, recorded)}
    barred_paths = {path for path, data in contents.items() if barred.bars_document(path, data)}
    operation = recorded.operation
    if barred_paths or any(barred.names_in(data) for data in contents.values()):
        operation = replace(operation, subject=None, why=None)
    home.journal.add_past(
        operation,
        ((path, id_in(data) or "") for path, data in contents.items() if path not in barred_paths),
    )


def _paths(commit: PastCommit, recorded: RecordedOperation) -> Iterable[str]:
    return (
        path
        for path in (commit.paths if recorded.paths is None else recorded.paths)
        if path != LEDGER
    )


def _files(
    home: Home, recorded: Sequence[tuple[PastCommit, RecordedOperation]]
) -> dict[str, bytes]:
    needed = [
        (commit, path)
        for commit, operation in recorded
        for path in _paths(commit, operation)
        if is_memory_file(path)
    ]
    contents = home.repository.read([f"{commit.id}:{path}" for commit, path in needed])
    removed = {
        f"{commit.parent}:{path}": f"{commit.id}:{path}" for commit, path in needed if commit.parent
    }
    former = home.repository.read(
        [name for name, present in removed.items() if present not in contents]
    )
    return contents | {removed[name]: data for name, data in former.items()}


# -- Preparing the repository ----------------------------------------------------------------------


OWN_FILES = {
    ".gitattributes": "* -text\nledger.jsonl merge=union\n",
    ".gitignore": ".*.tmp\n.*.sw?\n.#*\n*~\n.DS_Store\nThumbs.db\n.obsidian/workspace*.json\n.trash/\n",
}
"""Configuration files of the vault's repository.

They make git keep bytes unchanged, merge ledgers, and ignore temporary files and Obsidian's
workspace.
"""


def prepare(home: Home) -> Head:
    """Create the repository if needed and return its HEAD.

    Raises GitUnavailableError, or UnusableRepositoryError if the repository cannot accept commits.
    """
    if not home.repository.exists or not home.repository.is_whole:
        home.repository.create()
    head = fit_to_commit(home)
    for path, text in OWN_FILES.items() if head.commit is None else ():
        if not home.vault.exists(path):
            home.vault.write(path, text, base=None)
    return head


def fit_to_commit(home: Home) -> Head:
    """Return HEAD if the repository can accept commits.

    Raises GitUnavailableError, or UnusableRepositoryError if it cannot.
    """
    home.repository.git.version()
    home.repository.check()
    return settled_head(home)


def settled_head(home: Home) -> Head:
    """Return HEAD.

    Raises UnusableRepositoryError if HEAD is detached, or during a merge, rebase or similar.
    """
    repository = home.repository
    head = repository.head()
    if head.branch is None:
        raise UnusableRepositoryError(
            "the vault's repository has a detached HEAD",
            hint=f"git -C {repository.root} switch main; after that, nacre commits again",
        )
    begun = repository.in_progress()
    if begun:
        raise UnusableRepositoryError(
            f"a {begun} is in progress in the vault's repository",
            hint=f"finish or abort it: git -C {repository.root} status",
        )
    return head


# -- Background commits ----------------------------------------------------------------------------
# Commands only check whether a commit is due.


COMMIT_LOCK = "commit.lock"
SYNC_LOCK = "sync.lock"
REMOTE_LOCK = "remote.lock"
KEPT_WITHOUT_GIT = 500
"""Number of recent operations whose text is kept if git is off."""


_COMMIT_AFTER_OPERATIONS = 100
"""Number of pending operations that are committed regardless of their age."""

_SYNC_EVERY = timedelta(seconds=300)


def _tried(home: Home, lock: str) -> datetime:
    """Return the start time of the last background process: the lock file's modification time."""
    path = home.settings.home / lock
    return datetime.fromtimestamp(path.stat().st_mtime if path.exists() else 0, UTC)


def _start(home: Home, lock: str, interval: timedelta, *arguments: str) -> bool:
    if abs(home.clock() - _tried(home, lock)) < interval:
        return False
    (home.settings.home / lock).touch(mode=0o600)
    start_process(home.settings.home, home.settings.environ, *arguments)
    return True


def commit_in_background(home: Home) -> None:
    """Start a background commit if one is due. Without git, only shorten the journal.

    A commit is due if many operations are pending, or one for longer than
    ``git.commit_after_seconds``. That time must also have passed since the last commit started.
    """
    settings = home.settings
    count, oldest = home.journal.count_pending()
    if (
        not settings.flag("git.enabled")
        or shutil.which("git", path=settings.environ.get("PATH")) is None
    ):
        # The text of the last operations is kept for undo.
        if count > 2 * KEPT_WITHOUT_GIT:
            with home.transaction():
                home.journal.keep_last(KEPT_WITHOUT_GIT)
        return
    if not settings.flag("git.background") or oldest is None:
        return
    if not home.vault.exists(GIT_FOLDER):
        prepare(home)
    patience = timedelta(seconds=settings.whole("git.commit_after_seconds"))
    if count >= _COMMIT_AFTER_OPERATIONS or home.now() - oldest >= patience:
        _start(home, COMMIT_LOCK, patience, "admin", "commit", "--quiet")


def sync_in_background(home: Home) -> bool:
    """Start a background sync if one is enabled and due, and return True if it was started."""
    flags = ("sync.auto", "git.enabled", "git.background")
    return all(map(home.settings.flag, flags)) and _start(
        home, SYNC_LOCK, _SYNC_EVERY, "sync", "--quiet"
    )


def exchange_in_background(home: Home) -> None:
    """Start a background data exchange with the home's server, if one is due."""
    settings = home.settings
    if not settings.text("remote.url") or home.database.server:
        return
    interval = timedelta(seconds=settings.whole("remote.every_seconds"))
    _start(home, REMOTE_LOCK, interval, "server", "remote", "sync", "--quiet")


# -- The committer ---------------------------------------------------------------------------------
# The committer moves whole operations from the journal into the repository, never while a memory is being written.
# Commits are built from the journal, because files can be incomplete. Then the branch is moved to the new commits in
# one step. If it has moved meanwhile, the commits are built again. An operation is removed from the journal only
# when it is found in the history, so that no crash loses or duplicates it.


OPERATIONS_A_COMMIT = 100
_MAX_OPERATIONS_PER_RUN = 2000
_MAX_TRIES = 5
_NO_COMMIT = "-"
UNWRITTEN = "not written yet"
"""The reason not to commit a file that another process is about to write."""

_MAX_FILE_BYTES = 20_000_000


@frozen
class UncommittedFile:
    """A file that cannot be committed now, with the reason."""

    path: str
    reason: str


_Held = dict[str, UncommittedFile]
"""Files that cannot be committed now, by path."""


@frozen
class Committed:
    """The result of a commit run.

    Each commit is given by its id and title. ``held`` lists skipped files.
    """

    commits: tuple[tuple[str, str], ...] = ()
    operations: int = 0
    waiting: int = 0
    held: tuple[UncommittedFile, ...] = ()
    note: str | None = None


@dataclass
class _Plan:
    blobs: dict[str, str]
    clean: Clean
    ledger: bytearray = field(default_factory=bytearray)
    lines: set[bytes] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    busy: set[str] = field(default_factory=set)
    commits: list[NewCommit] = field(default_factory=list)
    current: list[OperationPaths] = field(default_factory=list)
    changes: _Changes = field(default_factory=dict)
    empty: list[Operation] = field(default_factory=list)
    operations: int = 0
    is_ledger_changed: bool = False

    def seal(self) -> None:
        if self.current:
            if self.is_ledger_changed:
                self.changes[LEDGER] = bytes(self.ledger)
            message = write_message(self.current, self.clean)
            at = max(operation.at for operation, _ in self.current)
            self.commits.append(NewCommit(message, at, dict(self.changes)))
            self.operations += len(self.current)
        self.current, self.changes, self.is_ledger_changed = [], {}, False

    def append(self, lines: Sequence[bytes]) -> None:
        torn = b"" if not self.ledger or self.ledger.endswith(b"\n") else b"\n"
        self.ledger += torn + b"".join(line + b"\n" for line in lines)
        self.lines.update(lines)
        self.is_ledger_changed = True


def commit_operations(home: Home, *, patience_seconds: float = 20.0) -> Committed:
    """Commit all finished operations, then any other changes in the vault.

    Raises GitUnavailableError, StoreBusyError if another process is committing, or
    UnusableRepositoryError if the repository cannot accept commits.
    """
    if not home.settings.flag("git.enabled"):
        return Committed(
            waiting=home.journal.count_pending()[0], note="git is off (git.enabled = false)"
        )
    with FileLock(home.settings.home / COMMIT_LOCK, patience_seconds):
        prepare(home)
        return _commit_all(home)


def commit_quietly(home: Home) -> None:
    """Read manual edits and commit, ignoring errors, which ``nacre admin doctor`` reports."""
    with contextlib.suppress(NacreError):
        scan(home)
        commit_operations(home, patience_seconds=0)
        home.repository.tidy()


def _commit_all(home: Home) -> Committed:
    commits: list[tuple[str, str]] = []
    operations = 0
    held_files: _Held = {}
    step_index(home)
    while True:
        new_commits, count = _commit_once(home, held_files, _plan)
        commits += new_commits
        operations += count
        if not new_commits:
            break
    note = step_index(home)
    for _ in range(_MAX_TRIES):
        new_commits, count = ([], 0) if note else _commit_once(home, held_files, _adopt)
        if not new_commits:
            break
        commits += new_commits
        operations += count
        note = step_index(home)
    pending = len(home.journal.pending())
    return Committed(tuple(commits), operations, pending, tuple(held_files.values()), note)


def _commit_once(
    home: Home,
    held_files: _Held,
    planned: Callable[[Home, str | None, _Held], _Plan],
) -> tuple[list[tuple[str, str]], int]:
    for _ in range(_MAX_TRIES):
        catch_up(home)
        head = home.repository.head()
        plan = planned(home, head.commit, held_files)
        for operation in plan.empty:
            with home.transaction():
                if operation.action in (EDIT, REMOVE, ADOPT, SYNC) or head.commit is None:
                    home.journal.drop(operation.id)
                    continue
                paths = [path for path, _ in home.journal.touched(operation.id)]
                last = home.repository.last_change(paths) or head.commit
                home.journal.committed(operation.id, last)
        if not plan.commits:
            return [], 0
        ids = home.repository.add_commits(plan.commits, head.commit)
        if home.repository.move_head(ids[-1], head.commit, f"nacre: {plan.operations} operations"):
            catch_up(home)
            titles = (commit.message.partition("\n")[0] for commit in plan.commits)
            return list(zip(ids, titles, strict=True)), plan.operations
    raise RepositoryBusyError(
        "the vault's branch keeps changing", hint="run nacre admin commit to try again"
    )


def _plan(home: Home, commit: str | None, held_files: _Held) -> _Plan:
    pending = home.journal.pending(limit=_MAX_OPERATIONS_PER_RUN)
    tree = home.repository.tree(commit if pending else None)
    present = home.repository.read([tree[LEDGER][1]]).values() if LEDGER in tree else ()
    ledger = b"".join(present)
    blobs = {path: blob for path, (_, blob) in tree.items()}
    plan = _Plan(blobs, home.redactor.clean, bytearray(ledger), set(ledger.split(b"\n")))
    plan.busy = {
        path
        for unfinished in home.journal.unfinished()
        for path, _ in home.journal.touched(unfinished.id)
    }
    plan.ignored = home.repository.list_ignored(
        sorted(home.files.journal_paths()) if pending else ()
    )
    if commit is None and pending:
        _begin(home, plan, pending[0].at)
    held_files.clear()
    for operation in pending:
        _add(home, plan, operation, held_files)
    plan.seal()
    if not plan.operations:
        plan.commits.clear()
    return plan


def _begin(home: Home, plan: _Plan, at: datetime) -> None:
    files: _Changes = {}
    for path in OWN_FILES:
        with contextlib.suppress(FileNotFoundError):
            files[path] = home.vault.read(path)
    plan.commits.append(NewCommit(f"{BEGINNING}\n", at, files))
    plan.blobs |= {
        path: home.repository.blob_id(data) for path, data in files.items() if data is not None
    }


def _add(home: Home, plan: _Plan, operation: Operation, held_files: _Held) -> None:
    written, lines = _written(home, operation, held_files, plan.busy)
    if written is None:
        return
    like = next(iter(plan.blobs.values()), None)
    changes = {
        path: data
        for path, data in written.items()
        if path not in plan.ignored
        and plan.blobs.get(path) != (None if data is None else home.repository.blob_id(data, like))
    }
    fresh = [line for line in lines if line not in plan.lines]
    if not changes and not fresh:
        plan.empty.append(operation)
        return
    is_large = len(changes) > MOST_PATHS or any(
        unnamed(path, home.redactor.clean) for path in changes
    )
    if is_large or changes.keys() & plan.changes.keys() or len(plan.current) >= OPERATIONS_A_COMMIT:
        plan.seal()
    plan.current.append((operation, sorted(changes)))
    plan.changes |= changes
    for path, data in changes.items():
        plan.blobs[path] = "" if data is None else home.repository.blob_id(data, like)
        if data is None:
            del plan.blobs[path]
    if fresh:
        plan.append(fresh)
    if is_large:
        plan.seal()


def _written(
    home: Home, operation: Operation, held_files: _Held, busy: Collection[str]
) -> tuple[_Changes | None, list[bytes]]:
    contents: _Changes = {}
    lines: list[bytes] = []
    reason = UNWRITTEN if home.journal.is_unapplied(operation.id) else ""
    for intent in home.journal.written_by(operation.id):
        if intent.action == "append":
            lines.append(to_bytes(intent.document or ""))
        elif intent.action == "remove":
            contents[intent.path] = None
        else:
            text = intent.document if intent.document is not None else _mended(home, intent.path)
            reason = reason or (WITHHELD if text is None else "")
            contents[intent.path] = to_bytes(text or "")
            reason = reason or (WITHHELD if home.redactor.clean(intent.path) != intent.path else "")
    if not reason and contents.keys() & {*held_files, *busy}:
        reason = "waiting for earlier changes"
    if reason:
        for path in contents:
            held_files.setdefault(path, UncommittedFile(path, reason))
        return None, []
    return contents, lines


def _mended(home: Home, path: str) -> str | None:
    """Return the text of a file that was held back for a secret, if the secret is gone."""
    try:
        data = home.vault.read(path)
    except FileNotFoundError:
        return None
    seen_file = home.files.at(path)
    if seen_file is None or seen_file.hash != bytes_hash(data):
        return None
    return without_secrets(home.redactor, to_text(data))


def step_index(home: Home) -> str | None:
    """Update git's index so that ``git status`` is clean, and return a message if that fails.

    Changes that the user has staged stay staged.
    """
    head = home.repository.head().commit
    last_indexed = home.journal.git_state("index")
    if (head or _NO_COMMIT) == last_indexed:
        return None
    try:
        old = None
        if head and last_indexed is None:  # a new database
            old = head if home.repository.list_staged() else None
        elif last_indexed != _NO_COMMIT and home.repository.is_ancestor(last_indexed, head):
            old = last_indexed
        if head:
            home.repository.update_index(old, head)
    except (RepositoryBusyError, UnusableRepositoryError) as error:
        return f"git status is out of date: {error.message}"
    with home.transaction():
        home.journal.set_git_state("index", head or _NO_COMMIT)
    return None


def _adopt(home: Home, _: str | None, held_files: _Held) -> _Plan:
    changes = _unrecorded(home, held_files)
    plan = _Plan({}, home.redactor.clean)
    if changes:
        paths = sorted(changes)
        subject = paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
        adoption = Operation(home.ids(), home.now(), ADOPT, subject, "found in the vault")
        plan.current, plan.changes = _forgotten(home, changes) or ([(adoption, paths)], changes)
    plan.seal()
    return plan


def _forgotten(home: Home, changes: _Changes) -> tuple[list[OperationPaths], _Changes] | None:
    runs = [operation for operation in home.journal.without_texts() if operation.action == FORGET]
    removed = [path for path, data in changes.items() if data is None and is_memory_file(path)]
    if not runs and removed:
        barred = Barred(home.tombstones.all())
        former = home.repository.read([f"HEAD:{path}" for path in removed])
        removed = [
            path for path in removed if barred.bars_document(path, former.get(f"HEAD:{path}", b""))
        ]
        runs = [Operation(home.ids(), home.now(), FORGET)] if removed else []
    removals = {path: data for path, data in changes.items() if path == LEDGER or path in removed}
    # The commit message must not name forgotten files.
    return ([(operation, ()) for operation in runs], removals) if runs and removals else None


def _unrecorded(home: Home, held_files: _Held) -> _Changes:
    contents: _Changes = {}
    seen_files = home.files.indexed()
    busy = home.files.journal_paths()
    for state, path in home.repository.list_changed():
        if (
            state not in ("??", " M", " D", " T")
            or path.endswith("/")
            or path in held_files
            or path in busy
        ):
            continue
        try:
            data = home.vault.read(path)
        except FileNotFoundError:
            if not (is_memory_file(path) and path in seen_files):
                contents[path] = None
            continue
        except NacreError as error:
            held_files[path] = UncommittedFile(path, error.message)
            continue
        if is_memory_file(path) and (
            path not in seen_files or seen_files[path].hash != bytes_hash(data)
        ):
            held_files[path] = UncommittedFile(path, "not readable as a memory")
        elif reason := _unfit(home, path, data):
            held_files[path] = UncommittedFile(path, reason)
        else:
            contents[path] = data
    return contents


def _unfit(home: Home, path: str, data: bytes) -> str | None:
    if home.redactor.clean(path) != path:
        return WITHHELD
    if len(data) > _MAX_FILE_BYTES:
        return f"is larger than {_MAX_FILE_BYTES // 1_000_000} MB"
    is_text = b"\0" not in data[:8192]
    if is_text and without_secrets(home.redactor, to_text(data)) is None:
        return WITHHELD
    return None
