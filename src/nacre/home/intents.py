"""Intents: writes to the vault that are durable in the database, and are brought to their files from there.

A crash leaves them; whoever writes next, or opens the home, completes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.home.home import Home
from nacre.home.operations import close_left_open, left_open
from nacre.platform.ids import bytes_hash
from nacre.values.memory import Link, Memory
from nacre.values.operation import Intent, SeenMemoryFile
from nacre.vault.document import render
from nacre.vault.layout import LEDGER, path_for

_GROUP = 200
"""Writes that are marked as done in one transaction, which takes some ten milliseconds."""


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
    path = new_path(home, ours)
    with home.database.transaction():
        home.memories.put(ours)
        home.files.forget(intent.path)
        write = replace(write_memory(home, path, render(ours), None, ours), operation=intent.operation)
        home.files.intend([write])
        if intent.operation:
            home.journal.touch(intent.operation, [write])
        home.files.give_up(intent.seq)
    return _apply_write(home, home.files.intents()[-1])


def write_memory(home: Home, path: str, document: str, base: bytes | None, memory: Memory) -> Intent:
    """The write of a memory's file, which the index expects from now on. ``base`` is the hash of what is there now."""
    encoded = document.encode("utf-8", errors="replace")
    home.files.save(SeenMemoryFile(path, memory.id, 0, len(encoded), bytes_hash(encoded)))
    return Intent("write", path, document, base, memory.id)


def new_path(home: Home, memory: Memory) -> str:
    """A path that no file has, for a memory."""
    return path_for(memory, lambda path: home.files.is_taken(path) or home.vault.exists(path))
