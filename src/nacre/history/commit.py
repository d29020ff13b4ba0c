"""The one committer: whole operations from the journal into the repository. Never in the write path.

Commits are built beside the branch, from the journal and not from files that somebody may be writing, and the branch
moves to them in one step, unless somebody else moved it meanwhile: then they are built anew. What history holds is
acknowledged by reading it (:mod:`nacre.history.chronicle`), so that a crash at any point neither loses nor doubles one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from nacre.errors import NacreError, RepositoryBusy, RepositoryUnusable
from nacre.git.repository import Author, NewCommit
from nacre.history.chronicle import catch_up
from nacre.history.commit_message import BEGINNING, MOST_PATHS, Clean, unnamed, write_message
from nacre.history.preparation import OWN_FILES, prepare
from nacre.history.schedule import COMMIT_LOCK
from nacre.home.home import Home
from nacre.home.redaction import without_secrets
from nacre.memories.listing import write_listings
from nacre.memories.scan import scan
from nacre.platform.ids import bytes_hash
from nacre.platform.locks import FileLock
from nacre.tombstones.tombstones import FORGET, Barred
from nacre.values.operation import ADOPT, EDIT, REMOVE, SYNC, WITHHELD, Operation
from nacre.vault.layout import LEDGER, is_memory_file

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
        home.settings.text("git.author_name") or own.name, home.settings.text("git.author_email") or own.email
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
    home: Home, author: Author, held: dict[str, Held], planned: Callable[[Home, str | None, dict[str, Held]], _Plan]
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
    plan.busy = {path for one in home.journal.unfinished() for path, _ in home.journal.touched(one.id)}
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
    plan.blobs |= {path: home.repository.blob_id(data) for path, data in files.items() if data is not None}


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
    is_large = len(changes) > MOST_PATHS or any(unnamed(path, home.redactor.clean) for path in changes)
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
    return [(Operation(home.ids(), home.now(), ADOPT, f"{paths[0]}{more}", "found in the vault"), paths)]


def _forgotten(home: Home, changes: _Changes) -> tuple[list[_Told], _Changes] | None:
    """What forgetting took away, which no journal holds, under its own name and without those of the files."""
    runs = [one for one in home.journal.without_texts() if one.action == FORGET]
    removed = [path for path, data in changes.items() if data is None and is_memory_file(path)]
    if not runs and removed:
        barred = Barred(home.tombstones.all())
        former = home.repository.read([f"HEAD:{path}" for path in removed])
        removed = [path for path in removed if barred.bars_document(path, former.get(f"HEAD:{path}", b""))]
        runs = [Operation(home.ids(), home.now(), FORGET)] if removed else []
    gone = {path: data for path, data in changes.items() if path == LEDGER or path in removed}
    return ([(one, ()) for one in runs], gone) if runs and gone else None


def _unrecorded(home: Home, held: dict[str, Held]) -> dict[str, bytes | None]:
    """What differs from HEAD in the work tree and no operation accounts for."""
    found: dict[str, bytes | None] = {}
    seen = home.files.seen()
    busy = home.files.journal_paths()
    for state, path in home.repository.changed():
        if state not in ("??", " M", " D", " T") or path.endswith("/") or path in held or path in busy:
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
    return None if without_secrets(home.redactor, data.decode("utf-8", "replace")) is not None else WITHHELD
