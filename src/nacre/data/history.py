"""The message of a commit: for people who read ``git log``, and for nacre, which reads its operations back from it.

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

from nacre.base.ids import at_ms, bytes_hash, to_ms
from nacre.base.link import start_process
from nacre.base.locks import FileLock
from nacre.base.text import one_line, shorten
from nacre.errors import NacreError, RepositoryBusy, RepositoryUnusable
from nacre.home.home import Home
from nacre.home.location import without_secrets
from nacre.home.spending import waits_for_models
from nacre.memories.edit import scan
from nacre.memories.tombstones import FORGET, Barred, Gate
from nacre.memories.usage import write_listings
from nacre.settings import Settings
from nacre.values.memory import ADOPT, EDIT, FOREIGN, REMOVE, SYNC, WITHHELD, Operation
from nacre.vault.files import GIT_FOLDER, LEDGER, is_memory_file
from nacre.vault.git import Author, Head, NewCommit, PastCommit

Clean = Callable[[str], str]

BEGINNING = "Begin the history of the vault"
"""The message of the first commit, which holds no operation."""

MOST_PATHS = 20
"""An operation on more files, or on :func:`unnamed` ones, has a commit to itself, which need not name them."""

_SUBJECT_CHARACTERS = 72
_TRAILER = "Nacre-Operation"
_TRAILERS = re.compile(rf"^{_TRAILER}: (\S+)\s*$", re.MULTILINE)
_ITEM = re.compile(r"^- (\S+?): ?(.*)$")


@dataclass(frozen=True, slots=True)
class RecordedOperation:
    """An operation as a message tells it; ``paths`` is ``None`` when all that the commit changed is its own."""

    operation: Operation
    paths: tuple[str, ...] | None


def unnamed(path: str, clean: Clean) -> bool:
    """Whether a message cannot tell the name of a file: it holds what looks like a secret, or an end of a line."""
    return "\n" in path or clean(path) != path


def write_message(told: Sequence[tuple[Operation, Sequence[str]]], clean: Clean) -> str:
    """The message of a commit that holds operations, each with the files it changed.

    ``clean`` takes secrets out of a text: in words that came from elsewhere, too.
    """
    lines = [clean(_title([operation for operation, _ in told])), ""]
    for operation, paths in told:
        lines.append(f"- {operation.action}: {clean(operation.subject or '')}".rstrip())
        lines += [
            f"  {name}: {clean(text)}"
            for name, text in (("why", operation.why), ("by", operation.by))
            if text
        ]
        if len(paths) <= MOST_PATHS and not any(unnamed(path, clean) for path in paths):
            lines += [f"  path: {path}" for path in paths]
        else:
            lines.append(f"  {len(paths)} files")
    return "\n".join([*lines, "", *(f"{_TRAILER}: {operation.id}" for operation, _ in told)]) + "\n"


def read_message(message: str, commit: str) -> list[RecordedOperation]:
    """The operations that a message tells; empty for a commit that nacre did not make."""
    ids = _TRAILERS.findall(message)
    items: list[list[str]] = []
    for line in message.splitlines()[1:]:
        if _ITEM.match(line):
            items.append([line])
        elif line.startswith("  ") and items:
            items[-1].append(line.strip())
    items += [[] for _ in ids[len(items) :]]
    return [
        _told(op, item, commit, is_alone=len(ids) == 1)
        for op, item in zip(ids, items, strict=False)
    ]


def _told(op: str, item: Sequence[str], commit: str, *, is_alone: bool) -> RecordedOperation:
    match = _ITEM.match(item[0]) if item else None
    action, subject = match.groups() if match else ("commit", "")
    facts = [line.partition(": ") for line in item[1:]]
    why, by = (
        next((value for name, _, value in facts if name == wanted), None)
        for wanted in ("why", "by")
    )
    paths = tuple(value for name, _, value in facts if name == "path")
    return RecordedOperation(
        Operation(op, time_of(op), action, subject or None, why, by, commit),
        None if is_alone else paths,
    )


def time_of(op: str) -> datetime:
    """Return the time of an operation from its UUIDv7, in milliseconds; 1970 for an id without a time."""
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
    names = (
        f"{count} {action}" if count > 1 else action for action, count in sorted(counted.items())
    )
    return shorten(f"{len(operations)} operations: {', '.join(names)}", _SUBJECT_CHARACTERS)


# ----------------------------------------------------------------------------
# What the repository's history tells of operations, kept in the database so that it is found quickly.
#
# Also how a commit is acknowledged: whatever history holds is pending no more, also after a crash
# between the two.


_ID = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?:(?!---).*\n)*?id:[ \t]*[\"']?([\w-]+)")
_BATCH = 500


def catch_up(home: Home) -> None:
    """Read the commits that are new since the last time. Raises GitUnavailable, RepositoryUnusable."""
    repository = home.repository
    if not repository.exists:
        return
    head = repository.head().commit
    read = home.journal.git_state("read")
    if head is None or head == read:
        return
    is_rewritten = not repository.is_ancestor(read, head)
    commits = list(repository.history(None if is_rewritten else read))
    if is_rewritten:
        with home.database.transaction():
            home.journal.forget_past()
    for start in range(0, len(commits), _BATCH):
        part = commits[start : start + _BATCH]
        told = [(commit, one) for commit in part for one in _told_chronicle(home, commit)]
        files = _files(home, [(commit, one) for commit, one in told if not _is_known(home, one)])
        with home.database.transaction():
            for commit, one in told:
                _record(home, commit, one, files, Gate(home).refresh())
            home.journal.set_git_state("read", part[-1].id)


def _told_chronicle(home: Home, commit: PastCommit) -> list[RecordedOperation]:
    """The operations of a commit; one that somebody else made is one, unless it only merges what is told already."""
    message = home.redactor.clean(commit.message)
    found = read_message(message, commit.id)
    if found or not commit.paths or commit.message == BEGINNING:
        return found
    if commit.is_merge and not set(home.repository.changed_by_merge(commit.id)) - {LEDGER}:
        return []
    title = shorten(one_line(message.partition("\n")[0]), 120)
    return [
        RecordedOperation(
            Operation(commit.id, commit.at, FOREIGN, title or None, committed=commit.id), None
        )
    ]


def _is_known(home: Home, told: RecordedOperation) -> bool:
    return home.journal.find(told.operation.id) is not None


def _record(
    home: Home,
    commit: PastCommit,
    told: RecordedOperation,
    files: Mapping[str, bytes],
    barred: Barred,
) -> None:
    """Record an operation that history tells: without words where they are of what is forgotten."""
    if _is_known(home, told):
        home.journal.committed(told.operation.id, commit.id)
        return
    found = {path: files.get(f"{commit.id}:{path}", b"") for path in _paths(commit, told)}
    gone = {path for path, data in found.items() if barred.bars_document(path, data)}
    operation = told.operation
    if gone or any(barred.names_in(data) for data in found.values()):
        operation = replace(operation, subject=None, why=None)
    home.journal.add_past(
        operation, ((path, _id(data)) for path, data in found.items() if path not in gone)
    )


def _paths(commit: PastCommit, told: RecordedOperation) -> Iterable[str]:
    return (path for path in (commit.paths if told.paths is None else told.paths) if path != LEDGER)


def _files(home: Home, told: Sequence[tuple[PastCommit, RecordedOperation]]) -> dict[str, bytes]:
    """``<commit>:<path>`` → what the file of a memory says; what it said before where it is gone."""
    wanted = [
        (commit, path)
        for commit, one in told
        for path in _paths(commit, one)
        if is_memory_file(path)
    ]
    found = home.repository.read([f"{commit.id}:{path}" for commit, path in wanted])
    gone = {
        f"{commit.parent}:{path}": f"{commit.id}:{path}" for commit, path in wanted if commit.parent
    }
    former = home.repository.read([name for name, present in gone.items() if present not in found])
    return found | {gone[name]: data for name, data in former.items()}


def _id(data: bytes) -> str:
    match = _ID.match(data)
    return match.group(1).decode() if match else ""


# ----------------------------------------------------------------------------
# Make the vault a git repository, and see that it can take commits.


OWN_FILES = {
    ".gitattributes": "* -text\nledger.jsonl merge=union\n",
    ".gitignore": ".*.tmp\n.*.sw?\n.#*\n*~\n.DS_Store\nThumbs.db\n.obsidian/workspace*.json\n.trash/\n",
}
"""Bytes stay as they are, also on Windows; a plain git client merges the ledger as it is meant; no temporaries, and
nothing of which windows Obsidian has open and of its bin."""


def prepare(home: Home) -> Head:
    """Make the vault a repository where it is none, and make sure that it can take commits; returns where HEAD stands.

    Raises GitUnavailable, RepositoryUnusable.
    """
    if not home.repository.exists or not home.repository.is_whole:
        home.repository.create()
    head = fit_to_commit(home)
    for path, text in OWN_FILES.items() if head.commit is None else ():
        if not home.vault.exists(path):
            home.vault.write(path, text, base=None)
    return head


def fit_to_commit(home: Home) -> Head:
    """Where HEAD stands in a repository that can take commits. Raises GitUnavailable, RepositoryUnusable."""
    home.repository.git.version()
    home.repository.check()
    return settled_head(home)


def settled_head(home: Home) -> Head:
    """Where HEAD stands, with nothing begun. Raises RepositoryUnusable."""
    repository = home.repository
    head = repository.head()
    if head.branch is None:
        raise RepositoryUnusable(
            "the vault's repository has a detached HEAD",
            hint=f"git -C {repository.root} switch main; then nacre commits again",
        )
    begun = repository.in_progress()
    if begun:
        raise RepositoryUnusable(
            f"a {begun} is going on in the vault's repository",
            hint=f"finish or abort it: git -C {repository.root} status",
        )
    return head


# ----------------------------------------------------------------------------
# When to commit without being asked, and the process that does it. A command pays a look at the clock
# for it.


COMMIT_LOCK = "commit.lock"
SYNC_LOCK = "sync.lock"
JUDGE_LOCK = "judge.lock"
REMOTE_LOCK = "remote.lock"
_JUDGE_EVERY = timedelta(seconds=20)
KEPT_WITHOUT_GIT = 500
"""Where git is off or missing, the texts of so many operations are kept, at least."""


def is_due(home: Home) -> bool:
    """Whether it is time to commit in the background: something waits long enough, or much does.

    Never more often than once in ``git.commit_after_seconds``, and not where git is off or missing.
    """
    settings = home.settings
    if not settings.flag("git.enabled") or not settings.flag("git.background"):
        return False
    waiting, oldest = home.journal.waiting()
    if not waiting or oldest is None:
        return False
    patience = timedelta(seconds=settings.whole("git.commit_after_seconds"))
    if waiting < settings.whole("git.commit_after_operations") and home.now() - oldest < patience:
        return False
    lock = settings.home / COMMIT_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    return tried is None or home.clock() - tried >= patience


def commit_in_background(home: Home) -> None:
    """Start a process that commits, if it is time. It keeps neither the caller waiting nor its pipes open.

    In a vault without a repository the repository is made here, once. Without git, the journal is kept short instead.
    """
    if (
        not home.settings.flag("git.enabled")
        or shutil.which("git", path=home.settings.environ.get("PATH")) is None
    ):
        _shorten_journal(home)
        return
    is_new = not home.vault.exists(GIT_FOLDER)
    if is_new and home.settings.flag("git.background") and home.journal.waiting()[0]:
        prepare(home)
    if not is_due(home):
        return
    (home.settings.home / COMMIT_LOCK).touch(mode=0o600)
    _start(home.settings, "commit", "--quiet")


def sync_in_background(home: Home) -> bool:
    """Start a process that syncs, if that is wanted and time; it commits, too. Nobody waits for the network."""
    settings = home.settings
    if (
        not settings.flag("sync.auto")
        or not settings.flag("git.enabled")
        or not settings.flag("git.background")
    ):
        return False
    lock = settings.home / SYNC_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    if tried and home.clock() - tried < timedelta(seconds=settings.whole("sync.every_seconds")):
        return False
    lock.touch(mode=0o600)
    _start(settings, "sync", "--quiet")
    return True


def exchange_in_background(home: Home) -> None:
    """Start a process that exchanges with the server that the home is kept in step with, if that is time."""
    settings = home.settings
    if not settings.text("remote.url") or home.database.is_server:
        return
    lock = settings.home / REMOTE_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    if tried is None or abs(home.clock() - tried) >= timedelta(
        seconds=settings.whole("remote.every_seconds")
    ):
        lock.touch(mode=0o600)
        _start(settings, "remote", "sync", "--quiet")


def judge_in_background(home: Home) -> None:
    """Start a process that has a model judge new memories, if any wait; no more often than every twenty seconds."""
    if not home.settings.flag("contradiction.after_commands") or not waits_for_models(home):
        return
    if not home.claims.due(to_ms(home.now()) or 0, 1):
        return
    lock = home.settings.home / JUDGE_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    if tried is None or abs(home.clock() - tried) >= _JUDGE_EVERY:
        lock.touch(mode=0o600)
        _start(home.settings, "conflicts", "judge", "--quiet", "--background")


def _start(settings: Settings, *arguments: str) -> None:
    start_process(str(settings.home), settings.environ, *arguments)


def _shorten_journal(home: Home) -> None:
    """Without git, keep the texts of the last operations, for undo."""
    if home.journal.waiting()[0] > 2 * KEPT_WITHOUT_GIT:
        with home.database.transaction():
            home.journal.keep_last(KEPT_WITHOUT_GIT)


# ----------------------------------------------------------------------------
# The one committer: whole operations from the journal into the repository. Never in the write path.
#
# Commits are built beside the branch, from the journal and not from files that somebody may be
# writing, and the branch
# moves to them in one step, unless somebody else moved it meanwhile: then they are built anew. What
# history holds is
# acknowledged by reading it (:mod:`nacre.data.history`), so that a crash at any point neither
# loses nor doubles one.


OPERATIONS_A_COMMIT = 100
_OPERATIONS_A_RUN = 2000
_TRIES = 5
_NOTHING = "-"
UNWRITTEN = "not written yet"
"""Why a file is held that another process is just about to write."""

_LARGEST_BYTES = 20_000_000

_Told = tuple[Operation, Sequence[str]]
_Changes = dict[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Held:
    """A file that no commit takes now, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Committed:
    """What a run did: commits (each an id with its title), how many operations they hold, what waits and why."""

    commits: tuple[tuple[str, str], ...] = ()
    operations: int = 0
    waiting: int = 0
    held: tuple[Held, ...] = ()
    note: str | None = None


@dataclass
class _Plan:
    """Commits that are being put together on top of a tree."""

    blobs: dict[str, str]
    clean: Clean
    ledger: bytearray = field(default_factory=bytearray)
    lines: set[bytes] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    busy: set[str] = field(default_factory=set)
    commits: list[NewCommit] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    told: list[_Told] = field(default_factory=list)
    changes: _Changes = field(default_factory=dict)
    empty: list[Operation] = field(default_factory=list)
    operations: int = 0
    is_ledger_changed: bool = False

    def seal(self) -> None:
        """End the commit that is being filled."""
        if self.told:
            if self.is_ledger_changed:
                self.changes[LEDGER] = bytes(self.ledger)
            message = write_message(self.told, self.clean)
            at = max(operation.at for operation, _ in self.told)
            self.commits.append(NewCommit(message, at, dict(self.changes)))
            self.titles.append(message.partition("\n")[0])
            self.operations += len(self.told)
        self.told, self.changes, self.is_ledger_changed = [], {}, False

    def append(self, lines: Sequence[bytes]) -> None:
        """Let the ledger grow."""
        torn = b"" if not self.ledger or self.ledger.endswith(b"\n") else b"\n"
        self.ledger += torn + b"".join(line + b"\n" for line in lines)
        self.lines.update(lines)
        self.is_ledger_changed = True


def commit_operations(home: Home, *, patience_seconds: float = 20.0) -> Committed:
    """Commit every whole operation, then other files that lie in the vault.

    Raises GitUnavailable, RepositoryUnusable (broken, detached, in the middle of a merge), StoreBusy when another
    process commits.
    """
    if not home.settings.flag("git.enabled"):
        write_listings(home)
        return Committed(waiting=home.journal.waiting()[0], note="git is off (git.enabled = false)")
    with FileLock(home.settings.home / COMMIT_LOCK, patience_seconds):
        prepare(home)
        write_listings(home)
        return _commit_all(home)


def commit_quietly(home: Home) -> None:
    """What runs in the background: look, commit, tidy. What stands in its way is told by ``nacre doctor``."""
    with contextlib.suppress(NacreError):
        scan(home)
        commit_operations(home, patience_seconds=0)
        home.repository.tidy()


def author_of(home: Home) -> Author:
    """Who commits: as the settings say, else as git's own say, else nacre."""
    own = home.repository.identity() or Author("nacre", "nacre@localhost")
    return Author(
        home.settings.text("git.author_name") or own.name,
        home.settings.text("git.author_email") or own.email,
    )


def _commit_all(home: Home) -> Committed:
    commits: list[tuple[str, str]] = []
    operations = 0
    author = author_of(home)
    held: dict[str, Held] = {}
    if home.journal.git_state("index") is None:
        _know_index(home)
    while True:
        made, count = _commit_once(home, author, held, _plan)
        commits += made
        operations += count
        if not made:
            break
    note = step_index(home)
    for _ in range(_TRIES):
        made, count = ([], 0) if note else _commit_once(home, author, held, _adopt)
        if not made:
            break
        commits += made
        operations += count
        note = step_index(home)
    waiting = len(home.journal.pending())
    return Committed(tuple(commits), operations, waiting, tuple(held.values()), note)


def _commit_once(
    home: Home,
    author: Author,
    held: dict[str, Held],
    planned: Callable[[Home, str | None, dict[str, Held]], _Plan],
) -> tuple[list[tuple[str, str]], int]:
    """Commit what is planned, up to a bound; tries again when the branch moves meanwhile."""
    for _ in range(_TRIES):
        catch_up(home)
        head = home.repository.head()
        plan = planned(home, head.commit, held)
        for operation in plan.empty:
            _settle_empty(home, operation, head.commit)
        if not plan.commits:
            return [], 0
        ids = home.repository.add_commits(plan.commits, head.commit, author)
        if home.repository.move_head(ids[-1], head.commit, f"nacre: {plan.operations} operations"):
            catch_up(home)
            return list(zip(ids, plan.titles, strict=True)), plan.operations
    raise RepositoryBusy("the vault's branch keeps moving", hint="nacre commit tries again")


def _plan(home: Home, commit: str | None, held: dict[str, Held]) -> _Plan:
    pending = home.journal.pending(limit=_OPERATIONS_A_RUN)
    tree = home.repository.tree(commit if pending else None)
    present = home.repository.read([tree[LEDGER][1]]).values() if LEDGER in tree else ()
    ledger = b"".join(present)
    blobs = {path: blob for path, (_, blob) in tree.items()}
    plan = _Plan(blobs, home.redactor.clean, bytearray(ledger), set(ledger.split(b"\n")))
    plan.busy = {
        path for one in home.journal.unfinished() for path, _ in home.journal.touched(one.id)
    }
    plan.ignored = home.repository.ignored(sorted(home.files.journal_paths()) if pending else ())
    if commit is None and pending:
        _begin(home, plan, pending[0].at)
    held.clear()
    for operation in pending:
        _add(home, plan, operation, held)
    plan.seal()
    if not plan.operations:
        plan.commits.clear()
    return plan


def _begin(home: Home, plan: _Plan, at: datetime) -> None:
    """Put the files that make the repository a vault's below everything else, unless the owner has their own."""
    files: dict[str, bytes | None] = {}
    for path in OWN_FILES:
        with contextlib.suppress(FileNotFoundError):
            files[path] = home.vault.read(path)
    plan.commits.append(NewCommit(f"{BEGINNING}\n", at, files))
    plan.titles.append(BEGINNING)
    plan.blobs |= {
        path: home.repository.blob_id(data) for path, data in files.items() if data is not None
    }


def _add(home: Home, plan: _Plan, operation: Operation, held: dict[str, Held]) -> None:
    """Put an operation into the plan, or aside when it or what it builds on cannot be committed now."""
    written, lines = _written(home, operation, held, plan.busy)
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
    if is_large or changes.keys() & plan.changes.keys() or len(plan.told) >= OPERATIONS_A_COMMIT:
        plan.seal()
    plan.told.append((operation, sorted(changes)))
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
    home: Home, operation: Operation, held: dict[str, Held], busy: Collection[str]
) -> tuple[dict[str, bytes | None] | None, list[bytes]]:
    """What an operation left in each file, and its lines for the ledger; ``None`` when it has to wait."""
    found: dict[str, bytes | None] = {}
    lines: list[bytes] = []
    reason = UNWRITTEN if home.journal.is_unapplied(operation.id) else ""
    for intent in home.journal.written_by(operation.id):
        if intent.action == "append":
            lines.append((intent.document or "").encode("utf-8", "replace"))
        elif intent.action == "remove":
            found[intent.path] = None
        else:
            text = intent.document if intent.document is not None else _mended(home, intent.path)
            reason = reason or (WITHHELD if text is None else "")
            found[intent.path] = (text or "").encode("utf-8", "replace")
            reason = reason or (WITHHELD if home.redactor.clean(intent.path) != intent.path else "")
    if not reason and (found.keys() & held.keys() or any(path in busy for path in found)):
        reason = "waits for what was done before"
    if reason:
        for path in found:
            held.setdefault(path, Held(path, reason))
        return None, []
    return found, lines


def _mended(home: Home, path: str) -> str | None:
    """The text of a file that held a secret, when the settings allow it by now."""
    try:
        data = home.vault.read(path)
    except FileNotFoundError:
        return None
    seen = home.files.at(path)
    if seen is None or seen.hash != bytes_hash(data):
        return None
    return without_secrets(home.redactor, data.decode("utf-8", "replace"))


def _settle_empty(home: Home, operation: Operation, commit: str | None) -> None:
    """An operation whose words are in history already: somebody committed or pulled them."""
    with home.database.transaction():
        if operation.action in (EDIT, REMOVE, ADOPT, SYNC) or commit is None:
            home.journal.drop(operation.id)
        else:
            paths = [path for path, _ in home.journal.touched(operation.id)]
            home.journal.committed(operation.id, home.repository.last_change(paths) or commit)


def _know_index(home: Home) -> None:
    """A new database: bring git's own index along where a crash left it behind; what the owner staged stays staged."""
    head = home.repository.head().commit
    with contextlib.suppress(RepositoryBusy, RepositoryUnusable):
        if head:
            home.repository.update_index(head if home.repository.staged() else None, head)
    home.journal.set_git_state("index", head or _NOTHING)


def step_index(home: Home) -> str | None:
    """Bring git's own index along, so that ``git status`` is clean; returns what stands in the way."""
    head = home.repository.head().commit
    known = home.journal.git_state("index")
    if head is None or head == known:
        return None
    try:
        is_there = known != _NOTHING and home.repository.is_ancestor(known, head)
        home.repository.update_index(known if is_there else None, head)
    except (RepositoryBusy, RepositoryUnusable) as error:
        return f"git status lags behind: {error.message}"
    with home.database.transaction():
        home.journal.set_git_state("index", head)
    return None


def _adopt(home: Home, _: str | None, held: dict[str, Held]) -> _Plan:
    """Plan to commit what a person put into the vault, as ``git add`` would, and what no journal knows of."""
    changes = _unrecorded(home, held)
    plan = _Plan({}, home.redactor.clean)
    if changes:
        plan.told, plan.changes = _forgotten(home, changes) or (_adopted(home, changes), changes)
    plan.seal()
    return plan


def _adopted(home: Home, changes: _Changes) -> list[_Told]:
    paths = sorted(changes)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return [
        (Operation(home.ids(), home.now(), ADOPT, f"{paths[0]}{more}", "found in the vault"), paths)
    ]


def _forgotten(home: Home, changes: _Changes) -> tuple[list[_Told], _Changes] | None:
    """What forgetting took away, which no journal holds, under its own name and without those of the files."""
    runs = [one for one in home.journal.without_texts() if one.action == FORGET]
    removed = [path for path, data in changes.items() if data is None and is_memory_file(path)]
    if not runs and removed:
        barred = Barred(home.tombstones.all())
        former = home.repository.read([f"HEAD:{path}" for path in removed])
        removed = [
            path for path in removed if barred.bars_document(path, former.get(f"HEAD:{path}", b""))
        ]
        runs = [Operation(home.ids(), home.now(), FORGET)] if removed else []
    gone = {path: data for path, data in changes.items() if path == LEDGER or path in removed}
    return ([(one, ()) for one in runs], gone) if runs and gone else None


def _unrecorded(home: Home, held: dict[str, Held]) -> dict[str, bytes | None]:
    """What differs from HEAD in the work tree and no operation accounts for."""
    found: dict[str, bytes | None] = {}
    seen = home.files.seen()
    busy = home.files.journal_paths()
    for state, path in home.repository.changed():
        if (
            state not in ("??", " M", " D", " T")
            or path.endswith("/")
            or path in held
            or path in busy
        ):
            continue
        try:
            data = home.vault.read(path)
        except FileNotFoundError:
            if not (is_memory_file(path) and path in seen):
                found[path] = None
            continue
        except NacreError as error:
            held[path] = Held(path, error.message)
            continue
        if is_memory_file(path) and (path not in seen or seen[path].hash != bytes_hash(data)):
            held[path] = Held(path, "could not be read as a memory")
        elif reason := _unfit(home, path, data):
            held[path] = Held(path, reason)
        else:
            found[path] = data
    return found


def _unfit(home: Home, path: str, data: bytes) -> str | None:
    """Why a file is not to be committed."""
    if home.redactor.clean(path) != path:
        return WITHHELD
    if len(data) > _LARGEST_BYTES:
        return f"is larger than {_LARGEST_BYTES // 1_000_000} MB"
    if b"\0" in data[:8192]:
        return None
    return (
        None
        if without_secrets(home.redactor, data.decode("utf-8", "replace")) is not None
        else WITHHELD
    )
