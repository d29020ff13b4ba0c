"""Edits made in any editor are seen by the next command: a stat scan, and a hash where something changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from nacre.app.context import Context
from nacre.app.operating import intend, operating, record_apart
from nacre.app.project_pages import read_pages
from nacre.app.superseding import agreed, released
from nacre.app.writing import BATCH, apply_intents, commit, entry, redacted, without_secrets
from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.model.memory import Memory, Retirement
from nacre.model.operation import ADOPT, EDIT, WITHHELD
from nacre.storage.vault_index import Intent, SeenMemoryFile
from nacre.vault.document import adopt, parse, render, stated, without_id
from nacre.vault.files import FileStat, file_hash
from nacre.vault.front_matter import load, split
from nacre.vault.layout import GIT_FOLDER

DELETED = "its file was deleted"
_MANY_FILES = 20


@dataclass(frozen=True, slots=True)
class _Nameless:
    """A file that is to get its memory's id: its text without one, and the hash of its bytes."""

    path: str
    text: str
    base: bytes
    memory: str


@dataclass(frozen=True, slots=True)
class _Rest:
    """What people wrote, for the journal, and what is left to do once the index knows.

    Left are files without an id, memories whose folder and front matter differ, and those whose succession a person
    may have changed. In a file that stayed where it was, front matter was edited, so the file moves; in one that was
    moved, front matter follows.
    """

    nameless: list[_Nameless]
    misplaced: list[Memory]
    changed: list[tuple[Memory | None, Memory]]
    written: list[Intent]


def scan(context: Context) -> int:
    """Complete what a crash left, then bring the index up to the vault; returns how many files had changed.

    A file that is not well formed is reported in ``context.problems``; its last good version stays in the index. Where
    nothing changed, which is nearly always, no lock is taken and nothing is written.
    """
    context.problems.clear()
    read_pages(context)
    if not context.files.has_intents() and not _differences(context):
        return 0
    with context.vault_lock:
        apply_intents(context)
        return _take_changes(context)


def _differences(context: Context) -> list[str]:
    """Paths whose file is new, gone, or not as it was last seen."""
    seen = context.files.seen()
    changed = []
    for stat in context.vault.scan():
        known = seen.pop(stat.path, None)
        if known is None or (known.mtime_ns, known.size) != (stat.mtime_ns, stat.size):
            changed.append(stat.path)
    return [*changed, *seen]


def _take_changes(context: Context) -> int:
    """With the lock held: what differs now is what people did."""
    seen = context.files.seen()
    stats = {stat.path: stat for stat in context.vault.scan()}
    pending = context.files.pending_paths()
    gone = [path for path in seen if path not in stats and path not in pending]
    changed = [
        stat
        for path, stat in stats.items()
        if path not in seen or (seen[path].mtime_ns, seen[path].size) != (stat.mtime_ns, stat.size)
    ]
    new = sum(stat.path not in seen for stat in changed)
    if len(gone) - new > max(_MANY_FILES, len(seen) // 2):
        context.problems.append(
            f"{len(gone)} of {len(seen)} memory files are gone at once, so nothing was retired: bring them back, "
            "or run `nacre db rebuild` to take the vault as it is"
        )
        gone = []
    taken = 0
    rest = _Rest([], [], [], [])
    is_known = not seen and context.vault.exists(GIT_FOLDER)  # a new database; git tells what happened before
    action = ADOPT if not seen and len(changed) > _MANY_FILES else EDIT
    with operating(context, action):
        for start in range(0, max(1, len(changed)), BATCH):
            with context.database.transaction():
                for path in gone if start == 0 else ():
                    rest.written.append(_gone(context, seen[path]))
                for stat in changed[start : start + BATCH]:
                    taken += _take(context, stat, seen.get(stat.path), rest)
                _journal(context, [] if is_known else rest.written)
                rest.written.clear()
        _give_ids(context, rest.nameless)
        commit(context, rest.misplaced)
        apply_intents(context)
        commit(context, agreed(context, rest.changed))
        apply_intents(context)
        _retire_unfiled(context, context.files.unfiled())
    apply_intents(context)
    return taken + len(gone)


def _gone(context: Context, file: SeenMemoryFile) -> Intent:
    """A file is not there any more."""
    memory = context.memories.find(file.memory)
    context.files.forget(file.path)
    return Intent("remove", file.path, memory=file.memory, former=render(memory) if memory else None)


def _journal(context: Context, written: list[Intent]) -> None:
    """Put what people wrote in the journal; what holds a secret waits there on its own until it is mended."""
    for intent in written:
        context.journal.withdraw(intent.path)
    intend(context, [intent for intent in written if intent.action == "remove" or intent.document], applied=True)
    for intent in written:
        if intent.action == "seen" and intent.document is None:
            record_apart(context, EDIT, intent, why=WITHHELD)


def _take(context: Context, stat: FileStat, known: SeenMemoryFile | None, rest: _Rest) -> int:
    try:
        data = context.vault.read(stat.path)
        digest = file_hash(data)
        if known and known.hash == digest:
            context.files.save(replace(known, mtime_ns=stat.mtime_ns, size=stat.size))
            return 0
        text = data.decode("utf-8")
        memory = _read(context, text, stat, known)
        said = stated(text)
    except FileNotFoundError:
        return 0
    except UnicodeDecodeError:
        context.problems.append(f"{stat.path}: it is not UTF-8 text")
        return 0
    except (MemoryInvalid, VaultUnusable) as error:
        context.problems.append(f"{stat.path}: {error.message}")
        return 0
    before = context.memories.find(known.memory) if known else None
    if before and before.id == memory.id and said.differs(before.kind, before.project):
        memory = replace(memory, kind=said.kind or memory.kind, project=said.project or memory.project)
        rest.misplaced.append(memory)
    elif said.differs(memory.kind, memory.project):
        rest.misplaced.append(memory)
    if memory.links or (before and (before.links or before.superseded_by)):
        rest.changed.append((before, memory))
    _accept(context, stat, text, digest, memory, rest, before)
    return 1


def _read(context: Context, text: str, stat: FileStat, known: SeenMemoryFile | None) -> Memory:
    """The memory in a file, without secrets; one without an id keeps the id its place had before."""
    modified = datetime.fromtimestamp(stat.mtime_ns // 1_000_000_000, UTC)
    new_id = (lambda: known.memory) if known else context.ids
    written = parse(text, stat.path, new_id=new_id, modified=modified)
    memory = redacted(context, written)
    if memory.content != written.content:
        context.problems.append(f"{stat.path}: holds what looks like a secret; it is recalled without it")
    return memory


def _accept(
    context: Context, stat: FileStat, text: str, digest: bytes, memory: Memory, rest: _Rest, before: Memory | None
) -> None:
    front, _ = split(text)
    has_id = bool(front and load(front).get("id"))
    twin = context.files.file_of(memory.id)
    if twin and twin.path != stat.path:
        if twin.path.startswith("retired/") and not memory.retired:
            context.files.forget(twin.path)
            intend(context, [Intent("remove", twin.path, base=twin.hash, memory=memory.id)])
        else:
            context.problems.append(f"{stat.path} has the id of {twin.path}; it was read as a memory of its own")
            memory, has_id, text = replace(memory, id=context.ids()), False, without_id(text)
    seen = SeenMemoryFile(stat.path, memory.id, stat.mtime_ns, stat.size, digest)
    context.files.save(seen if has_id else replace(seen, mtime_ns=0, hash=b""))
    context.memories.put(memory)
    if has_id:
        former = render(before) if before else None
        rest.written.append(_seen(context, stat.path, text, memory.id, former))
    else:
        rest.nameless.append(_Nameless(stat.path, text, digest, memory.id))


def _seen(context: Context, path: str, text: str, memory: str, former: str | None = None) -> Intent:
    return Intent("seen", path, without_secrets(context, text), memory=memory, former=former)


def _give_ids(context: Context, nameless: list[_Nameless]) -> None:
    """Write ids into files that had none.

    Not by intent: the words of a file that a person wrote do not pass through the database unredacted. A crash before
    this is mended by the next scan, which finds the file still without the hash it should have.
    """
    for file in nameless:
        document = adopt(file.text, {"id": file.memory})
        try:
            context.vault.write(file.path, document, base=file.base)
            stat = context.vault.stat(file.path)
        except (EditConflict, VaultUnusable, FileNotFoundError):
            continue
        digest = file_hash(document.encode("utf-8"))
        with context.database.transaction():
            context.files.save(SeenMemoryFile(file.path, file.memory, stat.mtime_ns, stat.size, digest))
            _journal(context, [_seen(context, file.path, document, file.memory)])


def _retire_unfiled(context: Context, unfiled: list[str]) -> None:
    """A file that a person deleted is a retirement, its words stay in ``retired/``; deleted there too, it is gone."""
    found = [memory for memory_id in unfiled if (memory := context.memories.find(memory_id))]
    with context.database.transaction():
        for memory in found:
            if memory.retired:
                context.memories.delete(memory.id)
    retirement = Retirement(context.now(), DELETED)
    deleted = [replace(memory, retired=retirement) for memory in found if not memory.retired]
    if deleted:
        entries = [entry(context, "retire", memory=memory.id, reason=DELETED) for memory in deleted]
        commit(context, [*deleted, *released(context, deleted)], entries)
        apply_intents(context)
