"""Read files that a person edited in the vault, and update the index and related memories."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, from_ms
from nacre.base.text import to_text
from nacre.errors import (
    DiskFullError,
    EditConflictError,
    InvalidMemoryError,
    UnusableVaultError,
)
from nacre.home.change import Change, read_pages
from nacre.home.home import Home
from nacre.home.location import redact, with_former_names, without_secrets
from nacre.home.operations import apply_intents, left_open
from nacre.memories.erasure import apply_tombstones
from nacre.memories.judge import reconcile, release
from nacre.memories.tombstones import is_ledger_new
from nacre.values.codec import stamp
from nacre.values.memory import (
    ADOPT,
    EDIT,
    REMOVE,
    WITHHELD,
    Intent,
    Memory,
    Retirement,
    SeenMemoryFile,
)
from nacre.vault.documents import adjust, adopt, parse, read_place, render, values_of
from nacre.vault.files import GIT_FOLDER, FileStat, LedgerEntry, Place, is_memory_file
from nacre.vault.merging import id_in

DELETED = "its file was deleted"
MOVED = "its file was moved to retired/"
_MANY_FILES = 20


@frozen
class _ReadFile:
    stat: FileStat
    text: str
    digest: bytes
    memory: Memory
    values: dict[str, Any]
    front_place: Place

    @property
    def has_id(self) -> bool:
        return bool(self.values.get("id"))


@frozen
class _FollowUp:
    """Work that remains after reading edited files.

    ``nameless`` files have no id yet, ``deferred`` files are indexed last, and ``misplaced``
    memories are in a folder that contradicts their front matter.
    """

    nameless: list[tuple[_ReadFile, _FollowUp]] = field(default_factory=list)
    deferred: list[_ReadFile] = field(default_factory=list)
    misplaced: list[Memory] = field(default_factory=list)
    changed: list[tuple[Memory | None, Memory]] = field(default_factory=list)
    retired: list[Memory] = field(default_factory=list)
    returned: list[Memory] = field(default_factory=list)
    entries: list[LedgerEntry] = field(default_factory=list)
    written: list[Intent] = field(default_factory=list)

    @property
    def follows(self) -> bool:
        return bool(self.misplaced or self.changed or self.retired or self.returned)

    def add(self, other: _FollowUp) -> None:
        self.misplaced.extend(other.misplaced)
        self.changed.extend(other.changed)
        self.retired.extend(other.retired)
        self.returned.extend(other.returned)


def _is_changed(stat: FileStat, index_file: SeenMemoryFile | None) -> bool:
    return index_file is None or (index_file.mtime_ns, index_file.size) != (
        stat.mtime_ns,
        stat.size,
    )


def read_changes(home: Home) -> int:
    """Index manual edits of the vault, and return the number of edited files.

    Edits and moves form one operation, and deletions another.
    """
    with home.change(REMOVE, why=DELETED) as removal, home.change(EDIT) as change:
        return _read_edits(change, removal)


def _read_edits(change: Change, removal: Change) -> int:
    home = change.home
    index_files, pending = home.files.indexed(), home.files.awaited_paths()
    stats = {stat.path: stat for stat in home.vault.scan()}
    changed = {
        path: stat
        for path, stat in stats.items()
        if path not in pending and _is_changed(stat, index_files.get(path))
    }
    missing = _missing_files(home, index_files, stats)
    moved_ids = {_id_in(home, path) for path in changed} if missing else set()
    follow_up = _FollowUp()
    if not index_files and len(changed) > _MANY_FILES:
        change.describe(action=ADOPT)
    is_in_git = not index_files and home.vault.exists(
        GIT_FOLDER
    )  # a new database: git has the history

    def journal_edits() -> None:
        _journal(change, [] if is_in_git else follow_up.written)
        follow_up.written.clear()

    with home.transaction():
        home.files.keep_unreadable(
            {(path, stat.mtime_ns, stat.size) for path, stat in stats.items()}
        )
        removed: list[Intent] = []
        for missed in missing:
            intents = follow_up.written if missed.memory in moved_ids else removed
            intents.append(_removal_of(home, missed))
        _journal(removal, removed)
        count = _read_all(change, changed, index_files, follow_up, journal_edits)
        for file in follow_up.deferred:  # now in a single transaction
            _accept(change, file, changed, index_files, follow_up)
        journal_edits()
        _follow(change, follow_up)
    for part in (change, removal):
        part.keep_open()
    _retire_unfiled(removal, home.files.unfiled())
    removal.keep_open()
    _give_ids(change, follow_up.nameless)
    return count + len(missing)


def _read_all(
    change: Change,
    changed: Mapping[str, FileStat],
    index_files: Mapping[str, SeenMemoryFile],
    follow_up: _FollowUp,
    journal_edits: Callable[[], None] | None = None,
) -> int:
    count = 0
    for path, stat in changed.items():
        file = _read(change.home, stat, index_files.get(path))
        if file:
            _accept(change, file, changed, index_files, follow_up, defers=journal_edits is not None)
            count += 1
        if journal_edits:
            change.home.database.yield_write_lock(journal_edits)
    return count


def read_written(change: Change, paths: Iterable[str]) -> None:
    """Index files that a sync or a scrub has just written, without recording their text again."""
    home = change.home
    index_files = {path: file for path in paths if (file := home.files.at(path))}
    stats = {path: stat for path in paths if is_memory_file(path) and (stat := _stat(home, path))}
    changed = {
        path: stat for path, stat in stats.items() if _is_changed(stat, index_files.get(path))
    }
    missing = [file for path, file in index_files.items() if path not in stats]
    follow_up = _FollowUp()
    with home.transaction():
        for file in missing:
            home.files.forget(file.path)
        _read_all(change, changed, index_files, follow_up)
        _journal(change, [intent for intent in follow_up.written if intent.document is None])
        for item in (follow_up, *(work for _, work in follow_up.nameless)):
            item.returned.clear()
        _follow(change, follow_up)
    _retire_unfiled(
        change, [file.memory for file in missing if home.files.file_of(file.memory) is None]
    )
    _give_ids(change, follow_up.nameless)


def _stat(home: Home, path: str) -> FileStat | None:
    if not path.isprintable():
        return None  # a scan reports the remedy
    try:
        return home.vault.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _missing_files(
    home: Home, index_files: Mapping[str, SeenMemoryFile], stats: Mapping[str, FileStat]
) -> list[SeenMemoryFile]:
    pending = home.files.pending_paths()
    missing = [
        file for path, file in index_files.items() if path not in stats and path not in pending
    ]
    if len(missing) - len(stats.keys() - index_files.keys()) <= max(
        _MANY_FILES, len(index_files) // 2
    ):
        return missing
    home.problems.append(
        f"{len(missing)} of {len(index_files)} memory files are missing at once, so nothing was retired: "
        "restore them, or run `nacre admin db rebuild` to accept the vault as it is"
    )
    return []


def _removal_of(home: Home, file: SeenMemoryFile) -> Intent:
    memory = home.memories.find(file.memory)
    home.files.forget(file.path)
    return Intent(
        "remove", file.path, memory=file.memory, former=render(memory) if memory else None
    )


def _journal(change: Change, intents: list[Intent]) -> None:
    change.intend(
        [intent for intent in intents if intent.action == "remove" or intent.document], applied=True
    )
    for intent in intents:
        if intent.action == "seen" and intent.document is None:
            with change.home.change(EDIT, why=WITHHELD) as withheld:
                withheld.intend([intent], applied=True)


def _read(home: Home, stat: FileStat, index_file: SeenMemoryFile | None) -> _ReadFile | None:
    try:
        if refusal := stat.refusal or home.files.why_unreadable(
            stat.path, stat.mtime_ns, stat.size
        ):
            raise InvalidMemoryError(refusal)
        data = home.vault.read(stat.path)
    except FileNotFoundError:
        return None
    except (InvalidMemoryError, UnusableVaultError) as error:
        home.problems.append(f"{stat.path}: {error.message}")
        return None
    digest = bytes_hash(data)
    if index_file and index_file.hash == digest:
        home.files.save(replace(index_file, mtime_ns=stat.mtime_ns, size=stat.size))
        return None
    try:
        text = data.decode("utf-8")
        memory = _memory_in(home, text, stat, index_file)
        values = values_of(text)
        return _ReadFile(stat, text, digest, memory, values, read_place(values))
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except InvalidMemoryError as error:
        reason = error.message
    home.problems.append(f"{stat.path}: {reason}")
    if without_secrets(home.redactor, to_text(data)) is not None:
        home.files.set_unreadable(stat.path, stat.mtime_ns, stat.size, reason)
    return None


def _memory_in(home: Home, text: str, stat: FileStat, index_file: SeenMemoryFile | None) -> Memory:
    new_id = (lambda: index_file.memory) if index_file else home.ids
    modified = from_ms(stat.modified_ns // 1_000_000) or home.now()
    written = parse(text, stat.path, new_id=new_id, modified=modified)
    memory = redact(home.redactor, written)
    if memory.content != written.content:
        home.problems.append(f"{stat.path} seems to contain a secret, which recall leaves out")
    return memory


def _with_own_id(
    change: Change,
    file: _ReadFile,
    changed: Collection[str],
    follow_up: _FollowUp,
    index_file: SeenMemoryFile | None,
) -> _ReadFile:
    home = change.home
    path, memory = file.stat.path, file.memory
    twin = home.files.file_of(memory.id)
    if twin is None or twin.path == path:
        return file
    exists = home.vault.exists(twin.path) or twin.path in home.files.pending_paths()
    if not exists or (twin.path in changed and _id_in(home, twin.path) != memory.id):
        home.files.forget(twin.path)  # moved, or swapped names with a different file
        return file
    if twin.path.startswith("retired/") and not memory.retired:
        home.files.forget(twin.path)
        change.intend([Intent("remove", twin.path, base=twin.hash, memory=memory.id)])
        return file
    home.problems.append(f"{path} has the same id as {twin.path}; it was read as a separate memory")
    # A crash prevented the assigned id from being written.
    has_reserved_id = index_file is not None and not index_file.hash
    copy = replace(memory, id=index_file.memory if index_file and has_reserved_id else home.ids())
    if not has_reserved_id:
        follow_up.entries.append(change.entry("copy", memory=copy.id, of=memory.id, path=path))
    text = adjust(file.text, {"id": None})
    return replace(file, memory=copy, text=text, values={**file.values, "id": None})


def _id_in(home: Home, path: str) -> str | None:
    try:
        return id_in(home.vault.read(path))
    except (FileNotFoundError, InvalidMemoryError, UnusableVaultError):
        return None


def _accept(
    change: Change,
    file: _ReadFile,
    changed: Collection[str],
    index_files: Mapping[str, SeenMemoryFile],
    total: _FollowUp,
    *,
    defers: bool = False,
) -> None:
    home, index_file = change.home, index_files.get(file.stat.path)
    file = _with_own_id(change, file, changed, total, index_file)
    memory, front_place = file.memory, file.front_place
    before = home.memories.find(memory.id)
    is_same_memory = index_file is not None and index_file.memory == memory.id
    former_memory = (
        before if is_same_memory or index_file is None else home.memories.find(index_file.memory)
    )
    former_text = render(former_memory) if index_file and former_memory else None
    if before and is_same_memory and front_place.differs(before.kind, before.project):
        is_settled = front_place.project not in (None, before.project)
        memory = replace(
            memory,
            kind=front_place.kind or memory.kind,
            project=front_place.project or memory.project,
            inbox=memory.inbox and not is_settled,
        )
    if before and file.has_id:
        memory = with_former_names(home, memory, file.stat.path)
    follow_up = _follow_up_of(file, before, memory)
    if file.has_id and follow_up.follows:
        if defers:
            total.deferred.append(file)
            return
        total.add(follow_up)
    stat = file.stat
    entry = SeenMemoryFile(stat.path, memory.id, stat.mtime_ns, stat.size, file.digest)
    home.files.save(entry if file.has_id else replace(entry, mtime_ns=0, hash=b""))
    home.memories.put(memory)
    if file.has_id:
        total.written.append(_seen_intent(home, stat.path, file.text, memory.id, former_text))
    else:
        total.nameless.append((file, follow_up))


def _follow_up_of(file: _ReadFile, before: Memory | None, memory: Memory) -> _FollowUp:
    follow_up = _FollowUp()
    if memory is not file.memory or file.front_place.differs(memory.kind, memory.project):
        follow_up.misplaced.append(memory)
    if memory.links or (before and (before.links or before.superseded_by)):
        follow_up.changed.append((before, memory))
    if before and memory.retired and not before.retired and not file.values.get("retired"):
        follow_up.retired.append(memory)
    elif before and before.retired and not memory.retired:
        follow_up.returned.append(memory)
    return follow_up


def _seen_intent(
    home: Home, path: str, text: str, memory: str, former: str | None = None
) -> Intent:
    return Intent("seen", path, without_secrets(home.redactor, text), memory=memory, former=former)


def _follow(change: Change, follow_up: _FollowUp) -> None:
    home = change.home
    change.put(follow_up.misplaced, follow_up.entries)
    change.put(reconcile(home, follow_up.changed))
    retired = []
    for memory in follow_up.retired:
        present = home.memories.find(memory.id) or memory
        reason = present.retired.reason if present.retired else None
        retired.append(replace(present, retired=Retirement(home.now(), reason or MOVED)))
    entries = [change.entry("retire", memory=memory.id, reason=MOVED) for memory in retired]
    entries += [change.entry("restore", memory=memory.id) for memory in follow_up.returned]
    if entries:
        returned = [home.memories.find(memory.id) or memory for memory in follow_up.returned]
        change.put([*retired, *returned, *release(home, retired)], entries)


def _give_ids(change: Change, nameless: list[tuple[_ReadFile, _FollowUp]]) -> None:
    home = change.home
    for file, follow_up in nameless:
        path, memory = file.stat.path, file.memory
        is_dated = {"created", "updated"} & file.values.keys()
        created = {} if is_dated else {"created": stamp(memory.created)}
        # No pending write, because secrets in the text must not enter the database.
        document = adopt(file.text, {"id": memory.id, **created})
        try:
            home.vault.write(path, document, base=file.digest)
            stat = home.vault.stat(path)
        except (EditConflictError, UnusableVaultError, FileNotFoundError):
            continue
        digest = bytes_hash(document.encode("utf-8"))
        with home.transaction():
            home.files.save(SeenMemoryFile(path, memory.id, stat.mtime_ns, stat.size, digest))
            _journal(change, [_seen_intent(home, path, document, memory.id)])
            _follow(change, follow_up)


def _retire_unfiled(change: Change, unfiled: Sequence[str]) -> None:
    if not unfiled:
        return
    home = change.home
    retirement = Retirement(home.now(), DELETED)
    with home.transaction():
        for memory_id in unfiled:
            change.yield_locks()
            memory = home.memories.find(memory_id)
            if memory is None or home.files.file_of(memory_id):
                continue  # handled by another process
            if memory.retired:
                home.memories.delete(memory_id)
                continue
            reactivated = [old for old in release(home, [memory]) if old.id not in unfiled]
            entry = change.entry("retire", memory=memory_id, reason=DELETED)
            change.put([replace(memory, retired=retirement), *reactivated], [entry])


# -- Scanning ------------------------------------------------------------------
#
# Every command first compares the stat of all files, and the hash of files with a changed stat.


_CATCH_UP_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0
_MIN_PATIENCE_SECONDS = 0.3


def scan(home: Home, *, patience_seconds: float = _PATIENCE_SECONDS) -> int:
    """Index changed memory files and return their number.

    Memories whose files are missing are retired, unless most files are missing. Invalid files are
    reported in ``home.problems`` and keep their last valid version in the index.
    """
    home.problems.clear()
    if home.database.unwritable:
        return 0
    read_pages(home)
    if is_ledger_new(home) or home.tombstones.due():
        # First, so that forgotten files do not count as deleted by a person.
        apply_tombstones(home, patient=False)
    count = _catch_edits(home, patience_seconds)
    unreadable = (f"{path}: {reason}" for path, reason in home.files.file_states()[2].items())
    home.problems[:] = dict.fromkeys([*home.problems, *unreadable])
    if count or is_ledger_new(home):
        apply_tombstones(home, patient=False)
    return count


def _catch_edits(home: Home, patience_seconds: float) -> int:
    # A difference counts only if two scans agree, because other processes can write during a scan.
    different = _differences(home)
    was_edited = bool(different and different & _differences(home))
    if not was_edited and not home.files.has_intents() and not left_open(home):
        return 0
    with home.vault_lock.if_free(patience_seconds if was_edited else 0.0) as is_locked:
        if is_locked:
            apply_intents(home)  # an interrupted write would hide edits of the same files
            return read_changes(home)
    if was_edited:
        home.problems.append("recent manual edits are not read yet: another process is writing")
    return 0


def catch_up(home: Home, seconds: float = _CATCH_UP_SECONDS) -> None:
    """Index changed memory files, waiting at most ``seconds``. A full disk is no error."""
    try:
        scan(home, patience_seconds=max(seconds, _MIN_PATIENCE_SECONDS))
    except DiskFullError as error:
        home.problems.append(f"recent manual edits are not read yet: {error.message}")


def _differences(home: Home) -> set[tuple[str, int, int]]:
    stats = home.vault.times()
    index_times, pending, _ = home.files.file_states()
    if stats == index_times:
        return set()
    paths = {
        path
        for path in stats.keys() | index_times.keys()
        if stats.get(path) != index_times.get(path)
    } - pending
    return {(path, *stats.get(path, (0, -1))) for path in paths}
