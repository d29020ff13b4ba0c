"""The write path of the vault.

One transaction records what is to be written, whole, beside the index rows: from that commit on a memory is durable.
Then the files are written and the intents cleared. What a crash leaves is completed when the home is opened next.

Whoever writes holds ``context.vault_lock`` from reading what it builds on until its files are written: another process
never sees a row whose file is still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from nacre.app.context import Context
from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.model.memory import Link, Memory
from nacre.storage.vault_index import Intent, SeenMemoryFile
from nacre.vault import ledger
from nacre.vault.document import adjust, render, rewrite
from nacre.vault.files import file_hash
from nacre.vault.layout import LEDGER, folder_of, path_for

BATCH = 500


def save(context: Context, memories: Sequence[Memory], entries: Sequence[ledger.Entry] = ()) -> None:
    """Write memories, new or changed, and ledger entries; durable when it returns.

    A file that cannot be written now stays an intent, and is told in ``context.problems``. Raises EditConflict when a
    file changed since the index last saw it.
    """
    with context.vault_lock:
        commit(context, memories, entries)
        apply_intents(context)


def commit(
    context: Context,
    memories: Sequence[Memory],
    entries: Sequence[ledger.Entry] = (),
    also: Callable[[], None] | None = None,
) -> None:
    """The durable half of :func:`save`: index rows and intents, with what ``also`` does in the same transaction.

    At most 500 memories a transaction; entries and ``also`` go with the last one. Call with the vault lock held.
    """
    for start in range(0, max(1, len(memories)), BATCH):
        is_last = start + BATCH >= len(memories)
        with context.database.transaction():
            for memory in memories[start : start + BATCH]:
                context.files.intend(_intents_for(context, memory))
                context.memories.put(memory)
            if is_last:
                context.files.intend(Intent("append", LEDGER, entry.line()) for entry in entries)
                if also:
                    also()


def intend_importance(context: Context, memory: Memory, note: ledger.Entry) -> None:
    """Record a new importance: the one line of front matter that says it, the index, the ledger.

    The rest of the file stays as it is, also ``updated``. Call in a transaction, with the vault lock held. Raises
    EditConflict when the file changed since the index last saw it.
    """
    file = context.files.file_of(memory.id)
    text = _present_text(context, file) if file else None
    if file is None or text is None:
        return
    write = _write(context, file.path, adjust(text, {"importance": memory.importance}), file.hash, memory)
    context.files.intend([replace(write, action="adjust"), Intent("append", LEDGER, note.line())])
    context.memories.set_importance(memory.id, memory.importance)


def apply_intents(context: Context) -> int:
    """Bring the vault up to the index; returns how many writes were done.

    A write that fails keeps its intent, and so do later ones to the same file; the others go on.
    """
    if not context.files.has_intents():
        return 0
    with context.vault_lock:
        done: list[tuple[Intent, SeenMemoryFile | None]] = []
        stuck: set[str] = set()
        for intent in context.files.intents():
            if intent.path in stuck:
                continue
            try:
                done += _apply(context, intent)
            except (VaultUnusable, MemoryInvalid) as error:
                stuck.add(intent.path)
                context.problems.append(f"{intent.path}: not written yet: {error.message}")
        context.vault.sync_folders({intent.path for intent, _ in done})
        with context.database.transaction():
            for intent, written in done:
                if written:
                    context.files.save(written)
                context.files.done(intent.seq)
    return len(done)


def _intents_for(context: Context, memory: Memory) -> list[Intent]:
    file = context.files.file_of(memory.id)
    if file is None:
        return [_write(context, _new_path(context, memory), render(memory), None, memory)]
    text = _present_text(context, file)
    base = file.hash if text is not None else None
    document = rewrite(text, memory) if text is not None else render(memory)
    if str(PurePosixPath(file.path).parent) == folder_of(memory):
        return [_write(context, file.path, document, base, memory)]
    path = _new_path(context, memory)
    context.files.forget(file.path)
    return [_write(context, path, document, None, memory), Intent("remove", file.path, base=base)]


def _new_path(context: Context, memory: Memory) -> str:
    return path_for(memory, lambda path: context.files.is_taken(path) or context.vault.exists(path))


def _write(context: Context, path: str, document: str, base: bytes | None, memory: Memory) -> Intent:
    encoded = document.encode("utf-8", errors="replace")
    context.files.save(SeenMemoryFile(path, memory.id, 0, len(encoded), file_hash(encoded)))
    return Intent("write", path, document, base, memory.id)


def _present_text(context: Context, file: SeenMemoryFile) -> str | None:
    """What a memory's file says now; a write that is still pending counts as done."""
    pending = context.files.pending_document(file.path)
    if pending is not None:
        return pending
    try:
        data = context.vault.read(file.path)
    except FileNotFoundError:
        return None
    if file_hash(data) != file.hash:
        raise EditConflict(
            f"{file.path} was changed while nacre worked on it", hint="repeat the command: it reads the new version"
        )
    return data.decode("utf-8", errors="replace")


def _apply(context: Context, intent: Intent) -> list[tuple[Intent, SeenMemoryFile | None]]:
    match intent.action:
        case "remove":
            _apply_remove(context, intent)
        case "append":
            context.vault.append(intent.path, intent.document or "")
        case _:
            return _apply_write(context, intent)
    return [(intent, None)]


def _apply_remove(context: Context, intent: Intent) -> None:
    """Take the old file away, unless someone changed it since: then it stays, and is read as what it is now."""
    try:
        present = file_hash(context.vault.read(intent.path))
    except FileNotFoundError:
        return
    if intent.base is not None and present != intent.base:
        context.problems.append(f"{intent.path}: was edited meanwhile, so it stays beside its new place")
        return
    context.vault.remove(intent.path)


def _apply_write(context: Context, intent: Intent) -> list[tuple[Intent, SeenMemoryFile | None]]:
    document = intent.document or ""
    base = intent.base if context.vault.exists(intent.path) else None
    try:
        context.vault.write(intent.path, document, base=base)
    except EditConflict:
        if intent.action == "adjust" or _is_overtaken(context, intent):
            return [(intent, None)]
        return _keep_both(context, intent)
    if intent.memory is None:
        return [(intent, None)]
    stat = context.vault.stat(intent.path)
    digest = file_hash(document.encode("utf-8", errors="replace"))
    return [(intent, SeenMemoryFile(intent.path, intent.memory, stat.mtime_ns, stat.size, digest))]


def _is_overtaken(context: Context, intent: Intent) -> bool:
    """Whether the file holds what a later write of nacre's own was to put there: a crash left both to be done again."""
    present = file_hash(context.vault.read(intent.path))
    later = (other for other in context.files.intents() if other.seq > intent.seq and other.path == intent.path)
    return any(other.document and file_hash(other.document.encode("utf-8", "replace")) == present for other in later)


def _keep_both(context: Context, intent: Intent) -> list[tuple[Intent, SeenMemoryFile | None]]:
    """Someone edited the file meanwhile: theirs stays, ours becomes a memory of its own beside it.

    Ours turns into another intent in one transaction, so that a crash on the way makes no second copy.
    """
    memory = context.memories.find(intent.memory or "")
    if memory is None:
        context.problems.append(f"{intent.path}: was edited meanwhile; that version is kept")
        return [(intent, None)]
    context.problems.append(f"{intent.path}: was edited meanwhile; both versions are kept")
    ours = replace(memory, id=context.ids(), links=(*memory.links, Link("alternative_to", memory.id)))
    path = _new_path(context, ours)
    with context.database.transaction():
        context.memories.put(ours)
        context.files.forget(intent.path)
        write = _write(context, path, render(ours), None, ours)
        context.files.intend([write])
        context.files.done(intent.seq)
    return _apply_write(context, context.files.intents()[-1])


def entry(context: Context, action: str, **details: object) -> ledger.Entry:
    """A new ledger entry, redacted: its details may quote the owner."""
    return ledger.Entry(context.ids(), context.now(), action, clean_values(context, details))


def redacted(context: Context, memory: Memory) -> Memory:
    """A memory without secrets in any of its texts. Raises MemoryInvalid when nothing is left."""
    clean = context.redactor.clean
    subject, content = clean(memory.subject).strip(), clean(memory.content).strip()
    if not content:
        raise MemoryInvalid("a memory needs content", hint="say what is to be remembered")
    if not subject:
        raise MemoryInvalid("a memory needs a subject", hint="a few words that say what it is about")
    return replace(
        memory,
        subject=subject,
        content=content,
        tags=tuple(clean(tag) for tag in memory.tags),
        triggers=tuple(clean(trigger) for trigger in memory.triggers),
        author=clean(memory.author) if memory.author else None,
        canonical_key=clean(memory.canonical_key) if memory.canonical_key else None,
        extra=clean_values(context, memory.extra),
    )


def clean_values(context: Context, value: Any) -> Any:
    """JSON values without secrets in any of their texts."""
    if isinstance(value, str):
        return context.redactor.clean(value)
    if isinstance(value, dict):
        return {key: clean_values(context, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_values(context, item) for item in value]
    return value
