"""What people do to files in an editor is read as a change of the vault, with all that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from nacre.base.ids import bytes_hash
from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.home.change import Change, read_pages
from nacre.home.home import Home
from nacre.home.location import redacted, with_former_names, without_secrets
from nacre.home.operations import apply_intents, left_open
from nacre.memories.erasure import apply_tombstones
from nacre.memories.judge import agreed, released, retire_due
from nacre.memories.placement import await_models
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
from nacre.vault.documents import Stated, adopt, load, parse, render, split, stated, without_id
from nacre.vault.files import GIT_FOLDER, FileStat, LedgerEntry, is_memory_file

DELETED = "its file was deleted"
MOVED = "its file was moved to retired/"
_MANY_FILES = 20


@dataclass(frozen=True, slots=True)
class _Nameless:
    """A file that is to get its memory's id, and a date that does not change when the file is copied.

    ``text`` is what it says, ``base`` the hash of its bytes, ``rest`` what follows once it has its id.
    """

    path: str
    text: str
    base: bytes
    memory: str
    created: str | None
    rest: _Rest

    @property
    def identity(self) -> dict[str, str]:
        """What its front matter lacks."""
        return {"id": self.memory, **({"created": self.created} if self.created else {})}


@dataclass(frozen=True, slots=True)
class _Found:
    """A file as it was read: its text, the hash of its bytes, the memory in it, what its front matter says."""

    stat: FileStat
    text: str
    digest: bytes
    memory: Memory
    said: Stated
    has_id: bool


@dataclass(frozen=True, slots=True)
class _Rest:
    """What people wrote, for the journal, and what is left to do once the index knows.

    Left are files without an id, memories whose folder and front matter differ, those whose succession a person may
    have changed, and those that went to ``retired/`` or came back. In a file that stayed where it was, front matter was
    edited, so the file moves; in one that was moved, front matter follows. What is ``deferred`` counts as not read yet:
    what follows from it is known when all is read, and belongs to the same transaction. What is new ``awaits`` a model,
    unless the whole vault is: then only what a person just wrote does, which has no id yet.
    """

    awaits: bool = True

    nameless: list[_Nameless] = field(default_factory=list)
    deferred: list[_Found] = field(default_factory=list)
    misplaced: list[Memory] = field(default_factory=list)
    changed: list[tuple[Memory | None, Memory]] = field(default_factory=list)
    retired: list[Memory] = field(default_factory=list)
    returned: list[Memory] = field(default_factory=list)
    entries: list[LedgerEntry] = field(default_factory=list)
    written: list[Intent] = field(default_factory=list)

    @property
    def follows(self) -> bool:
        """Whether anything is left to do for a memory."""
        return bool(self.misplaced or self.changed or self.retired or self.returned)

    def add(self, other: _Rest) -> None:
        """Put what is left to do for one memory to that of all."""
        self.misplaced.extend(other.misplaced)
        self.changed.extend(other.changed)
        self.retired.extend(other.retired)
        self.returned.extend(other.returned)


def _is_changed(stat: FileStat, known: SeenMemoryFile | None) -> bool:
    return known is None or (known.mtime_ns, known.size) != (stat.mtime_ns, stat.size)


def read_changes(home: Home, *, from_remote: bool) -> int:
    """Read what people did: what differs from what was seen, except where a write waits.

    What they wrote and moved is one operation, what they deleted is another. Others wait until the end: files without
    an id get theirs there, and who looked before would give them another.
    """
    with home.change(REMOVE, why=DELETED) as removal, home.change(EDIT) as change:
        return _read_edits(change, removal, from_remote=from_remote)


def _read_edits(change: Change, removal: Change, *, from_remote: bool) -> int:
    home = change.home
    seen, pending = home.files.seen(), home.files.awaited_paths()
    stats = {stat.path: stat for stat in home.vault.scan()}
    changed = {
        path: stat
        for path, stat in stats.items()
        if path not in pending and _is_changed(stat, seen.get(path))
    }
    gone = _gone_paths(home, seen, stats, from_remote=from_remote)
    moved = {_id_in(home, path) for path in changed} if gone else set()
    left = _Rest(awaits=bool(seen))
    if not seen and len(changed) > _MANY_FILES:
        change.describe(action=ADOPT)
    is_known = not seen and home.vault.exists(
        GIT_FOLDER
    )  # a new database; git tells what happened before

    def write_down() -> None:
        _journal(change, [] if is_known else left.written)
        left.written.clear()

    with home.database.transaction():
        home.files.keep_unreadable(
            {(path, stat.mtime_ns, stat.size) for path, stat in stats.items()}
        )
        left.written.extend(_gone(home, seen[path]) for path in gone if seen[path].memory in moved)
        _journal(
            removal, [_gone(home, seen[path]) for path in gone if seen[path].memory not in moved]
        )
        taken = _read_all(change, changed, seen, left, write_down)
        for found in left.deferred:  # in one transaction from here on
            _accept(home, _own(change, found, changed, left, seen.get(found.stat.path)), seen, left)
        write_down()
        _finish(change, left, from_remote=from_remote)
    for one in (change, removal):
        one.keep_open()
    _retire_unfiled(removal, home.files.unfiled())
    removal.keep_open()
    _give_ids(change, left.nameless)
    return taken + len(gone)


def _read_all(
    change: Change,
    changed: Mapping[str, FileStat],
    seen: Mapping[str, SeenMemoryFile],
    left: _Rest,
    write_down: Callable[[], None] | None = None,
) -> int:
    """Read files that changed; returns how many held something new. With ``write_down``, others may write in between,
    and what follows from a file waits until all are read."""
    taken = 0
    for path, stat in changed.items():
        found = _read(change.home, stat, seen.get(path))
        if found:
            found = _own(change, found, changed, left, seen.get(path))
            _accept(change.home, found, seen, left, defers=write_down is not None)
            taken += 1
        if write_down:
            change.home.database.yield_write_lock(write_down)
    return taken


def read_written(change: Change, paths: Iterable[str], *, awaits: bool) -> None:
    """Read files that a sync or a scrub just wrote, and do what follows from them, in one transaction.

    No write of them is pending. What they say is in the journal already, or history has it. ``awaits``: models are to
    judge what is new.
    """
    home = change.home
    seen = {path: file for path in paths if (file := home.files.at(path))}
    stats = {path: stat for path in paths if is_memory_file(path) and (stat := _stat(home, path))}
    changed = {path: stat for path, stat in stats.items() if _is_changed(stat, seen.get(path))}
    gone = [file for path, file in seen.items() if path not in stats]
    left = _Rest(awaits=awaits)
    with home.database.transaction():
        for file in gone:
            home.files.forget(file.path)
        _read_all(change, changed, seen, left)
        _journal(change, [one for one in left.written if one.document is None])
        _finish(change, left, from_remote=True)
    _retire_unfiled(
        change, [file.memory for file in gone if home.files.file_of(file.memory) is None]
    )
    _give_ids(change, left.nameless)


def _stat(home: Home, path: str) -> FileStat | None:
    """A file as a scan would see it; ``None`` when it is not there."""
    if not path.isprintable():
        return None  # a scan says what is to be done
    try:
        return home.vault.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _finish(change: Change, rest: _Rest, *, from_remote: bool) -> None:
    """All is read: intend what follows from it, in the transaction that takes it in."""
    for one in (rest, *(file.rest for file in rest.nameless)) if from_remote else ():
        one.returned.clear()
    _follow(change, rest)


def _gone_paths(
    home: Home,
    seen: Mapping[str, SeenMemoryFile],
    stats: Mapping[str, FileStat],
    *,
    from_remote: bool,
) -> list[str]:
    """Paths whose file is not there any more; none where so much is gone that the folder itself may be away."""
    pending = home.files.pending_paths()
    gone = [path for path in seen if path not in stats and path not in pending]
    if from_remote or len(gone) - len(stats.keys() - seen.keys()) <= max(
        _MANY_FILES, len(seen) // 2
    ):
        return gone
    home.problems.append(
        f"{len(gone)} of {len(seen)} memory files are gone at once, so nothing was retired: bring them back, "
        "or run `nacre db rebuild` to take the vault as it is"
    )
    return []


def _gone(home: Home, file: SeenMemoryFile) -> Intent:
    """A file is not there any more."""
    memory = home.memories.find(file.memory)
    home.files.forget(file.path)
    return Intent(
        "remove", file.path, memory=file.memory, former=render(memory) if memory else None
    )


def _journal(change: Change, written: list[Intent]) -> None:
    """Put what people wrote in the journal; what holds a secret waits there on its own until it is mended."""
    change.intend(
        [intent for intent in written if intent.action == "remove" or intent.document], applied=True
    )
    for intent in written:
        if intent.action == "seen" and intent.document is None:
            with change.home.change(EDIT, why=WITHHELD) as apart:
                apart.intend([intent], applied=True)


def _read(home: Home, stat: FileStat, known: SeenMemoryFile | None) -> _Found | None:
    """A file that changed; ``None`` when its bytes did not, or when it is no memory, which is reported and, unless it
    holds a secret, remembered: it is read again when it changes."""
    try:
        if known_reason := stat.refusal or home.files.why_unreadable(
            stat.path, stat.mtime_ns, stat.size
        ):
            raise MemoryInvalid(known_reason)
        data = home.vault.read(stat.path)
    except FileNotFoundError:
        return None
    except (MemoryInvalid, VaultUnusable) as error:
        home.problems.append(f"{stat.path}: {error.message}")
        return None
    digest = bytes_hash(data)
    if known and known.hash == digest:
        home.files.save(replace(known, mtime_ns=stat.mtime_ns, size=stat.size))
        return None
    try:
        return _understood(home, data, digest, stat, known)
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except MemoryInvalid as error:
        reason = error.message
    home.problems.append(f"{stat.path}: {reason}")
    if without_secrets(home.redactor, data.decode("utf-8", "replace")) is not None:
        home.files.set_unreadable(stat.path, stat.mtime_ns, stat.size, reason)
    return None


def _understood(
    home: Home, data: bytes, digest: bytes, stat: FileStat, known: SeenMemoryFile | None
) -> _Found:
    """Raises UnicodeDecodeError, MemoryInvalid."""
    text = data.decode("utf-8")
    memory = _memory_in(home, text, stat, known)
    return _Found(stat, text, digest, memory, stated(text), has_id=_says(text, "id"))


def _memory_in(home: Home, text: str, stat: FileStat, known: SeenMemoryFile | None) -> Memory:
    """The memory in a file, without secrets; one without an id keeps the id its place had before."""
    new_id = (lambda: known.memory) if known else home.ids
    written = parse(text, stat.path, new_id=new_id, modified=_modified(home, stat))
    memory = redacted(home.redactor, written)
    if memory.content != written.content:
        home.problems.append(
            f"{stat.path}: holds what looks like a secret; it is recalled without it"
        )
    return memory


def _modified(home: Home, stat: FileStat) -> datetime:
    """When a file was last written, by the clock of whoever wrote it."""
    try:
        return datetime.fromtimestamp(stat.modified_ns // 1_000_000 / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return home.now()


def _own(
    change: Change,
    found: _Found,
    changed: Collection[str],
    rest: _Rest,
    known: SeenMemoryFile | None,
) -> _Found:
    """A file with an id that is its own: a copy of another file becomes a memory beside it, and keeps its words."""
    home = change.home
    path, memory = found.stat.path, found.memory
    twin = home.files.file_of(memory.id)
    if twin is None or twin.path == path:
        return found
    is_there = home.vault.exists(twin.path) or twin.path in home.files.pending_paths()
    if not is_there or (twin.path in changed and _id_in(home, twin.path) != memory.id):
        home.files.forget(twin.path)  # that file was moved, or swapped names with another
        return found
    if twin.path.startswith("retired/") and not memory.retired:
        home.files.forget(twin.path)
        change.intend([Intent("remove", twin.path, base=twin.hash, memory=memory.id)])
        return found
    home.problems.append(f"{path} has the id of {twin.path}; it was read as a memory of its own")
    is_told = known is not None and not known.hash  # a crash came before the new id was in the file
    own = replace(memory, id=known.memory if known and is_told else home.ids())
    if not is_told:
        rest.entries.append(change.entry("copy", memory=own.id, of=memory.id, path=path))
    return replace(found, memory=own, text=without_id(found.text), has_id=False)


def _id_in(home: Home, path: str) -> str | None:
    """The id that a file says it has, now."""
    try:
        front, _ = split(home.vault.read(path).decode("utf-8"))
        return str(load(front).get("id") or "") if front else None
    except (FileNotFoundError, UnicodeDecodeError, MemoryInvalid, VaultUnusable):
        return None


def _says(text: str, name: str) -> bool:
    front, _ = split(text)
    return bool(front and load(front).get(name))


def _accept(
    home: Home,
    found: _Found,
    seen_before: Mapping[str, SeenMemoryFile],
    rest: _Rest,
    *,
    defers: bool = False,
) -> None:
    """Take in what a file says; where ``defers``, and more follows from it, leave it for the last transaction."""
    memory, said = found.memory, found.said
    known = seen_before.get(found.stat.path)
    before = home.memories.find(memory.id)
    stayed = known is not None and known.memory == memory.id
    formerly = before if stayed or known is None else home.memories.find(known.memory)
    former = render(formerly) if known and formerly else None
    if before and stayed and said.differs(before.kind, before.project):
        is_settled = said.project not in (None, before.project)
        memory = replace(
            memory,
            kind=said.kind or memory.kind,
            project=said.project or memory.project,
            inbox=memory.inbox and not is_settled,
        )
    if before and found.has_id:
        memory = with_former_names(home, memory, found.stat.path)
    follows = _what_follows(found, before, memory)
    if found.has_id and follows.follows:
        if defers:
            rest.deferred.append(found)
            return
        rest.add(follows)
    stat = found.stat
    seen = SeenMemoryFile(stat.path, memory.id, stat.mtime_ns, stat.size, found.digest)
    home.files.save(seen if found.has_id else replace(seen, mtime_ns=0, hash=b""))
    home.memories.put(memory)
    if rest.awaits or not found.has_id:
        await_models(home, memory, before)
    if found.has_id:
        rest.written.append(_seen(home, stat.path, found.text, memory.id, former))
    else:
        front, _ = split(found.text)
        is_dated = bool(front and {"created", "updated"} & load(front).keys())
        created = None if is_dated else stamp(memory.created)
        rest.nameless.append(
            _Nameless(stat.path, found.text, found.digest, memory.id, created, follows)
        )


def _what_follows(found: _Found, before: Memory | None, memory: Memory) -> _Rest:
    """What must be done beside taking in a memory that was something else, or nothing, before."""
    rest = _Rest()
    if memory is not found.memory or found.said.differs(memory.kind, memory.project):
        rest.misplaced.append(memory)
    if memory.links or (before and (before.links or before.superseded_by)):
        rest.changed.append((before, memory))
    if before and memory.retired and not before.retired and not _says(found.text, "retired"):
        rest.retired.append(memory)
    elif before and before.retired and not memory.retired:
        rest.returned.append(memory)
    return rest


def _seen(home: Home, path: str, text: str, memory: str, former: str | None = None) -> Intent:
    return Intent("seen", path, without_secrets(home.redactor, text), memory=memory, former=former)


def _follow(change: Change, rest: _Rest) -> None:
    """Write what must be written because of what people did; each step builds on the one before.

    It belongs to the transaction that reads what they did: after a crash, what follows would not be known any more.
    """
    home = change.home
    change.put(rest.misplaced, rest.entries)
    change.put(agreed(home, rest.changed))
    retired = [_retired(home, memory) for memory in rest.retired]
    entries = [change.entry("retire", memory=memory.id, reason=MOVED) for memory in retired]
    entries += [change.entry("restore", memory=memory.id) for memory in rest.returned]
    if entries:
        returned = [home.memories.find(memory.id) or memory for memory in rest.returned]
        change.put([*retired, *returned, *released(home, retired)], entries)


def _retired(home: Home, memory: Memory) -> Memory:
    """A memory whose file a person moved to ``retired/``, as it is now, with the time and a reason."""
    present = home.memories.find(memory.id) or memory
    reason = present.retired.reason if present.retired else None
    return replace(present, retired=Retirement(home.now(), reason or MOVED))


def _give_ids(change: Change, nameless: list[_Nameless]) -> None:
    """Write ids into files that had none.

    Not by intent: the words of a file that a person wrote do not pass through the database unredacted. A crash before
    this is mended by the next scan, which finds the file still without the hash it should have.
    """
    home = change.home
    for file in nameless:
        document = adopt(file.text, file.identity)
        try:
            home.vault.write(file.path, document, base=file.base)
            stat = home.vault.stat(file.path)
        except (EditConflict, VaultUnusable, FileNotFoundError):
            continue
        digest = bytes_hash(document.encode("utf-8"))
        with home.database.transaction():
            home.files.save(
                SeenMemoryFile(file.path, file.memory, stat.mtime_ns, stat.size, digest)
            )
            _journal(change, [_seen(home, file.path, document, file.memory)])
            _follow(change, file.rest)


def _retire_unfiled(change: Change, unfiled: Sequence[str]) -> None:
    """A file that a person deleted is a retirement, its words stay in ``retired/``; deleted there too, it is gone.

    A crash between two leaves the others without a file, which the next scan finds.
    """
    if not unfiled:
        return
    home = change.home
    retirement = Retirement(home.now(), DELETED)
    with home.database.transaction():
        for memory_id in unfiled:
            change.yield_locks()
            memory = home.memories.find(memory_id)
            if memory is None or home.files.file_of(memory_id):
                continue  # another process was faster
            if memory.retired:
                home.memories.delete(memory_id)
                continue
            back = [one for one in released(home, [memory]) if one.id not in unfiled]
            told = change.entry("retire", memory=memory_id, reason=DELETED)
            change.put([replace(memory, retired=retirement), *back], [told])


# ----------------------------------------------------------------------------
# Edits made in any editor are seen by the next command: a stat scan, and a hash where something
# changed.


_LOOKS = 2
_A_MOMENT = 1.0
_PATIENCE_SECONDS = 5.0
_LEAST_PATIENCE_SECONDS = 0.3


def scan(
    home: Home, *, from_remote: bool = False, patience_seconds: float = _PATIENCE_SECONDS
) -> int:
    """Complete what a crash left, then bring the index up to the vault; returns how many files had changed.

    Where most files are gone at once, nothing is retired, unless it came ``from_remote``: what is gone is meant to be
    gone, then, and what came back is in the ledger. What the ledger says is forgotten goes, also when it came from
    another machine.

    A file that is not well formed is reported in ``home.problems``; its last good version stays in the index. Where
    nothing changed, which is nearly always, no lock is taken and nothing is written. What another process is just
    about to write is no change: nobody waits for it. Nothing is looked at where nothing can be written.
    """
    home.problems.clear()
    if home.database.unwritable:
        return 0
    read_pages(home)
    if is_ledger_new(home) or home.tombstones.due():
        apply_tombstones(
            home, patient=False
        )  # before files that are gone are taken for deleted by a person
    taken = _catch_edits(home, patience_seconds, from_remote=from_remote)
    told = set(home.problems)
    unreadable = (f"{path}: {reason}" for path, reason in home.files.seen_now()[2].items())
    home.problems.extend(one for one in unreadable if one not in told)
    if taken or is_ledger_new(home):
        apply_tombstones(home, patient=False)
    retire_due(home)
    return taken


def _catch_edits(home: Home, patience_seconds: float, *, from_remote: bool) -> int:
    was_edited = _was_edited(home)
    if not was_edited and not home.files.has_intents() and not left_open(home):
        return 0
    with home.vault_lock.if_free(patience_seconds if was_edited else 0.0) as is_ours:
        if is_ours:
            apply_intents(home)  # what a crash left hides what people did to the same files
            return read_changes(home, from_remote=from_remote)
    if was_edited:
        home.problems.append(
            "what was edited by hand just now is not read yet: another process is writing"
        )
    return 0


def catch_up(home: Home, seconds: float = _A_MOMENT) -> None:
    """Scan; wait for so long at most."""
    scan(home, patience_seconds=max(seconds, _LEAST_PATIENCE_SECONDS))


def _was_edited(home: Home) -> bool:
    """Whether a file is new, gone, or not as it was last seen, by another hand than nacre's.

    Files are looked at one after the other while others write: what differs for two looks in the same way, does.
    """
    before: set[tuple[str, int, int]] | None = None
    for _ in range(_LOOKS):
        different = _differences(home)
        before = different if before is None else before & different
        if not before:
            return False
    return True


def _differences(home: Home) -> set[tuple[str, int, int]]:
    """Path, time and size of files that are new, gone, or not as last seen; without those of pending writes."""
    stats = home.vault.times()
    seen, pending, _ = home.files.seen_now()
    if stats == seen:
        return set()
    paths = {
        path for path in stats.keys() | seen.keys() if stats.get(path) != seen.get(path)
    } - pending
    return {(path, *stats.get(path, (0, -1))) for path in paths}
