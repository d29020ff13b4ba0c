"""The write path of the vault.

One transaction records what is to be written, whole, beside the index rows: from that commit on a memory is durable.
Then the files are written and the intents cleared. What a crash leaves is completed when the home is opened next.

Whoever writes holds ``home.vault_lock`` from reading what it builds on until its files are written: another process
never sees a row whose file is still to come. Every write belongs to an operation (:mod:`nacre.home.operations`); it
stays in the journal until git has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.home.home import Home
from nacre.home.operations import close, close_left_open, goes_on, intend, left_open, operating
from nacre.platform.ids import bytes_hash
from nacre.storage.vault_index import Intent, SeenMemoryFile
from nacre.text.passages import shorten
from nacre.values.memory import Claim, Link, Memory
from nacre.values.operation import Operation
from nacre.vault import ledger
from nacre.vault.document import adjust, claim_values, render, rewrite
from nacre.vault.layout import LEDGER, folder_of, path_for

BATCH = 500
FEW = 20
"""So many memories that are written together are there all or none after a crash, however slow the machine is; more
may stand for a while as some of them."""
_GROUP = 200
"""So many writes are marked as done in one transaction, which takes some ten milliseconds."""


def save(home: Home, memories: Sequence[Memory], entries: Sequence[ledger.Entry] = ()) -> None:
    """Write memories, new or changed, and ledger entries; durable when it returns.

    A file that cannot be written now stays an intent, and is told in ``home.problems``. Raises EditConflict when a
    file changed since the index last saw it.
    """
    with home.vault_lock:
        commit(home, memories, entries)
        apply_intents(home)


def commit(
    home: Home,
    memories: Sequence[Memory],
    entries: Sequence[ledger.Entry] = (),
    also: Callable[[], None] | None = None,
) -> None:
    """The durable half of :func:`save`: index rows and intents, with what ``also`` does in the same transaction.

    Up to 20 memories are one transaction; more of them several, each of 500 at most, which let others write. Entries
    and ``also`` go with the last one. Call with the vault lock held. Where no operation is going on, this is one, named
    by its first entry.
    """
    is_own = not home.operations
    with _operation_of(home, memories, entries) as operation:
        for start in range(0, max(1, len(memories)), BATCH):
            is_last = start + BATCH >= len(memories)
            with home.database.transaction():
                for memory in memories[start : start + BATCH]:
                    intend(home, _intents_for(home, memory))
                    home.memories.put(memory)
                    if len(memories) > FEW:
                        home.database.yield_write_lock()
                if is_last:
                    lines = (replace(entry, op=operation.id).line() for entry in entries)
                    intend(home, [Intent("append", LEDGER, line) for line in lines])
                    if also:
                        also()
                    if is_own:
                        close(home, operation)


def rest(home: Home, first: Callable[[], object] | None = None) -> bool:
    """Between two parts of a long job that may each stand alone: let others write, to the database and the vault.

    Call with the vault lock held, in the job's own transaction, within its operation. Where that lasted long enough,
    ``first`` makes what was written so far whole, all of it reaches its files, and whoever waits has a turn; the
    operation goes on. Returns whether another wrote: what the job knows of the vault may have changed then.
    """

    def between() -> None:
        apply_intents(home)
        goes_on(home)
        home.vault_lock.let_others()

    return home.database.yield_write_lock(first, between)


def intend_importance(home: Home, memory: Memory, note: ledger.Entry) -> None:
    """Record a new importance: the one line of front matter that says it, the index, the ledger.

    The rest of the file stays as it is, also ``updated``. Call in a transaction, with the vault lock held. Raises
    EditConflict when the file changed since the index last saw it.
    """
    file = home.files.file_of(memory.id)
    text = _present_text(home, file) if file else None
    if file is None or text is None:
        return
    write = _write(home, file.path, adjust(text, {"importance": memory.importance}), file.hash, memory)
    write = replace(write, action="adjust", former=without_secrets(home, text))
    with operating(home, note.action, subject=memory.subject, op=note.op) as operation:
        intend(home, [write, Intent("append", LEDGER, replace(note, op=operation.id).line())])
    home.memories.set_importance(memory.id, memory.importance)


def intend_claim(home: Home, memory: Memory) -> None:
    """Record the claim of a memory: the one line of front matter that says it, and the index; as a step of importance.

    Call in a transaction, within an operation, with the vault lock held. Raises EditConflict.
    """
    file = home.files.file_of(memory.id)
    text = _present_text(home, file) if file else None
    if file is None or text is None or memory.claim is None:
        return
    write = _write(home, file.path, adjust(text, {"claim": claim_values(memory.claim)}), file.hash, memory)
    intend(home, [replace(write, action="adjust", former=without_secrets(home, text))])
    home.memories.set_claim(memory.id, memory.claim)


def intend_removal(home: Home, memory: Memory) -> None:
    """Record that a memory goes for good: its file and its row. What it said stays in the journal and in the history.

    Call in a transaction, within an operation, with the vault lock held. Raises EditConflict when the file changed
    since the index last saw it.
    """
    file = home.files.file_of(memory.id)
    text = _present_text(home, file) if file else None
    if file:
        home.files.forget(file.path)
        base = file.hash if text is not None else None
        former = without_secrets(home, text)
        intend(home, [Intent("remove", file.path, base=base, memory=memory.id, former=former)])
    home.memories.delete(memory.id)


def apply_intents(home: Home) -> int:
    """Bring the vault up to the index; returns how many writes were done.

    A write that fails keeps its intent, and so do later ones to the same file or of the same memory: the old file stays
    until the new one is there. The others go on.
    """
    if not home.files.has_intents() and not left_open(home):
        return 0
    done = 0
    stuck: set[str] = set()
    with home.vault_lock:
        close_left_open(home)
        intents = home.files.intents()
        for start in range(0, len(intents), _GROUP):
            done += _apply_group(home, intents[start : start + _GROUP], stuck)
    return done


def _apply_group(home: Home, intents: Sequence[Intent], stuck: set[str]) -> int:
    """Some writes, which wait for the disk together; ``stuck`` are paths and memories of those that cannot be done."""
    done: list[Applied] = []
    home.vault.write_ahead({one.path: one.document or "" for one in reversed(intents) if one.action == "write"})
    for intent in intents:
        if intent.path in stuck or intent.memory in stuck or intent.action == "append":
            continue
        try:
            done.append(_apply(home, intent))
        except (VaultUnusable, MemoryInvalid) as error:
            stuck |= {intent.path, intent.memory or intent.path}
            home.problems.append(f"{intent.path}: not written yet: {error.message}")
    lines = [intent for intent in intents if intent.action == "append"]
    end = _append(home, lines) if lines else None
    home.vault.sync_folders({one.intent.path for one in done})
    with home.database.transaction():
        for one in done:
            if one.file:
                home.files.save(one.file)
            if one.is_done:
                home.files.done(one.intent.seq)
            else:
                home.files.give_up(one.intent.seq)
        if end:
            home.journal.set_ledger_end(*end)
            for intent in lines:
                home.files.done(intent.seq)
    return len(done) + (len(lines) if end else 0)


@dataclass(frozen=True, slots=True)
class Applied:
    """An intent that was looked after: the file it left, and whether it was done or given up."""

    intent: Intent
    file: SeenMemoryFile | None = None
    is_done: bool = True


def _append(home: Home, lines: Sequence[Intent]) -> tuple[int, bytes] | None:
    """Write what is new in the ledger, at once; ``None`` when it cannot be written now."""
    try:
        return home.vault.append(LEDGER, [line.document or "" for line in lines], home.journal.ledger_end())
    except (VaultUnusable, MemoryInvalid) as error:
        home.problems.append(f"{LEDGER}: not written yet: {error.message}")
        return None


def _operation_of(
    home: Home, memories: Sequence[Memory], entries: Sequence[ledger.Entry]
) -> AbstractContextManager[Operation]:
    """The operation that some writes are when nobody said which."""
    subject = subject_of(memories)
    if entries:
        return operating(
            home, entries[0].action, subject=subject, why=entries[0].details.get("reason"), op=entries[0].op
        )
    is_new = bool(memories) and home.memories.find(memories[0].id) is None
    return operating(home, "store" if is_new else "update", subject=subject)


def subject_of(memories: Sequence[Memory]) -> str | None:
    """What an operation on some memories is about, in words."""
    if not memories:
        return None
    more = len({memory.id for memory in memories}) - 1
    return f"{shorten(memories[0].subject, 80)} and {more} more" if more else memories[0].subject


def _intents_for(home: Home, memory: Memory) -> list[Intent]:
    file = home.files.file_of(memory.id)
    if file is None:
        return [_write(home, _new_path(home, memory), render(memory), None, memory)]
    text = _present_text(home, file)
    base = file.hash if text is not None else None
    former = without_secrets(home, text)
    document = rewrite(text, memory) if text is not None else render(memory)
    if str(PurePosixPath(file.path).parent) == folder_of(memory):
        return [replace(_write(home, file.path, document, base, memory), former=former)]
    path = _new_path(home, memory)
    home.files.forget(file.path)
    return [
        _write(home, path, document, None, memory),
        Intent("remove", file.path, base=base, memory=memory.id, former=former),
    ]


def _new_path(home: Home, memory: Memory) -> str:
    return path_for(memory, lambda path: home.files.is_taken(path) or home.vault.exists(path))


def _write(home: Home, path: str, document: str, base: bytes | None, memory: Memory) -> Intent:
    encoded = document.encode("utf-8", errors="replace")
    home.files.save(SeenMemoryFile(path, memory.id, 0, len(encoded), bytes_hash(encoded)))
    return Intent("write", path, document, base, memory.id)


def _present_text(home: Home, file: SeenMemoryFile) -> str | None:
    """What a memory's file says now; a write that is still pending counts as done."""
    pending = home.files.pending_document(file.path)
    if pending is not None:
        return pending
    try:
        data = home.vault.read(file.path)
    except FileNotFoundError:
        return None
    if bytes_hash(data) != file.hash:
        raise EditConflict(
            f"{file.path} was changed while nacre worked on it", hint="repeat the command: it reads the new version"
        )
    return data.decode("utf-8", errors="replace")


def _apply(home: Home, intent: Intent) -> Applied:
    if intent.action == "remove":
        return Applied(intent, is_done=_apply_remove(home, intent))
    return _apply_write(home, intent)


def _apply_remove(home: Home, intent: Intent) -> bool:
    """Take the old file away, unless someone changed it since: then it stays, and is read as what it is now."""
    try:
        present = bytes_hash(home.vault.read(intent.path))
    except FileNotFoundError:
        return True
    if intent.base is not None and present != intent.base:
        home.problems.append(f"{intent.path}: was edited meanwhile, so it stays beside its new place")
        return False
    home.vault.remove(intent.path)
    return True


def _apply_write(home: Home, intent: Intent) -> Applied:
    document = intent.document or ""
    base = intent.base if home.vault.exists(intent.path) else None
    try:
        home.vault.write(intent.path, document, base=base)
    except EditConflict:
        if _is_overtaken(home, intent):
            return Applied(intent)
        return Applied(intent, is_done=False) if intent.action == "adjust" else _keep_both(home, intent)
    if intent.memory is None:
        return Applied(intent)
    stat = home.vault.stat(intent.path)
    digest = bytes_hash(document.encode("utf-8", errors="replace"))
    return Applied(intent, SeenMemoryFile(intent.path, intent.memory, stat.mtime_ns, stat.size, digest))


def _is_overtaken(home: Home, intent: Intent) -> bool:
    """Whether the file holds what a later write of nacre's own was to put there: a crash left both to be done again."""
    present = bytes_hash(home.vault.read(intent.path))
    later = (other for other in home.files.intents() if other.seq > intent.seq and other.path == intent.path)
    return any(other.document and bytes_hash(other.document.encode("utf-8", "replace")) == present for other in later)


def _keep_both(home: Home, intent: Intent) -> Applied:
    """Someone edited the file meanwhile: theirs stays, ours becomes a memory of its own beside it.

    Ours turns into another intent in one transaction, so that a crash on the way makes no second copy.
    """
    memory = home.memories.find(intent.memory or "")
    if memory is None:
        home.problems.append(f"{intent.path}: was edited meanwhile; that version is kept")
        return Applied(intent, is_done=False)
    home.problems.append(f"{intent.path}: was edited meanwhile; both versions are kept")
    ours = replace(memory, id=home.ids(), links=(*memory.links, Link("alternative_to", memory.id)))
    path = _new_path(home, ours)
    with home.database.transaction():
        home.memories.put(ours)
        home.files.forget(intent.path)
        write = replace(_write(home, path, render(ours), None, ours), operation=intent.operation)
        home.files.intend([write])
        if intent.operation:
            home.journal.touch(intent.operation, [write])
        home.files.give_up(intent.seq)
    return _apply_write(home, home.files.intents()[-1])


def entry(home: Home, action: str, **details: object) -> ledger.Entry:
    """A new ledger entry, redacted: its details may quote the owner. It belongs to the operation that is going on."""
    op = home.operations[-1].id if home.operations else home.ids()
    return ledger.Entry(op, home.now(), action, clean_values(home, details))


def without_secrets(home: Home, text: str | None) -> str | None:
    """A text, unless it holds what looks like a secret: what a person wrote does not pass through the database then."""
    return text if text is None or home.redactor.clean(text) == text else None


def redacted(home: Home, memory: Memory) -> Memory:
    """A memory without secrets in any of its texts. Raises MemoryInvalid when nothing is left."""
    clean = home.redactor.clean
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
        claim=_cleaned(memory.claim, clean) if memory.claim else None,
        suppressed_contexts=tuple(clean(text) for text in memory.suppressed_contexts),
        source=replace(memory.source, file=clean(memory.source.file)) if memory.source.file else memory.source,
        links=tuple(replace(link, reason=clean(link.reason)) if link.reason else link for link in memory.links),
        retired=replace(memory.retired, reason=clean(memory.retired.reason))
        if memory.retired and memory.retired.reason
        else memory.retired,
        extra=clean_values(home, memory.extra),
    )


def _cleaned(claim: Claim, clean: Callable[[str], str]) -> Claim:
    entity, attribute = clean(claim.entity), clean(claim.attribute)
    return replace(
        claim, entity=entity, attribute=attribute, predicate=clean(claim.predicate), object=clean(claim.object)
    )


def clean_values(home: Home, value: Any) -> Any:
    """JSON values without secrets in any of their texts."""
    if isinstance(value, str):
        return home.redactor.clean(value)
    if isinstance(value, dict):
        return {key: clean_values(home, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_values(home, item) for item in value]
    return value
