"""Take out of the vault what the present rules know: of memories, of names, of all else that its files say.

What is to change is found without a lock. Then each part is changed as it is by then, and read, before others write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from nacre.forgetting.scrub_report import Tally, clean_document, text_files
from nacre.home.change import FEW, Change, Run
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.home.redaction import redacted
from nacre.memories.hand_edits import read_written
from nacre.platform.ids import bytes_hash
from nacre.values.codec import texts_of
from nacre.values.memory import NAMES, Memory
from nacre.values.operation import Intent, SeenMemoryFile
from nacre.vault.layout import LEDGER, is_memory_file, path_for, slugify

SCRUB = "scrub"
"""What ledger and history call it."""

REASON = "the rules of redaction"


def scrub_memories(home: Home, run: Run, tally: Tally, *, dry_run: bool) -> None:
    """Memories whose words the index has; their files follow through the usual way of writing."""
    changed = []
    for memory_id in sorted(home.memories.all_ids()):
        memory = home.memories.find(memory_id)
        if memory and redacted(home.redactor, memory) != memory:
            for text in texts_of(memory, NAMES):
                tally.clean(text)
            changed.append(memory_id)
    tally.changed["memories"] += len(changed)
    if dry_run:
        return
    _in_parts(run, changed, _redact)
    if changed:
        with run.part() as change:
            change.append([change.entry(SCRUB, count=len(changed), reason=REASON)])
    misnamed = [file.memory for file, _ in _misnamed(home, home.files.seen().values())]
    _in_parts(run, misnamed, _rename)


def scrub_files(home: Home, run: Run, tally: Tally, *, dry_run: bool) -> None:
    """What else the vault's files say: comments, pages, files that a person wrote, the ledger."""
    changed = []
    for path, data in text_files(home.settings.vault, skipped={".git"}):
        text = data.decode("utf-8")
        if clean_document(text, tally) != text:
            tally.changed["files"] += 1
            changed.append(path.relative_to(home.settings.vault).as_posix())
    if dry_run:
        return
    _in_parts(run, changed, _clean)


def is_named_after_more(path: str, subject: str) -> bool:
    """Whether a file's name says what a subject with a marker in it no longer says."""
    if "[REDACTED:" not in subject and "[private]" not in subject:
        return False
    stem, slug = PurePosixPath(path).stem, slugify(subject)
    return not (stem == slug or re.fullmatch(r"-[0-9a-f]+", stem.removeprefix(slug)))


def _in_parts(run: Run, names: Sequence[str], work: Callable[[Change, Sequence[str]], None]) -> None:
    """Work on some at a time; others write between two of them."""
    for start in range(0, len(names), FEW):
        with run.part() as change:
            apply_intents(change.home)
            work(change, names[start : start + FEW])


def _redact(change: Change, memory_ids: Sequence[str]) -> None:
    """As they are now: others write meanwhile."""
    found = (change.home.memories.find(memory_id) for memory_id in memory_ids)
    change.put([redacted(change.home.redactor, memory) for memory in found if memory])


def _misnamed(home: Home, files: Iterable[SeenMemoryFile]) -> Iterator[tuple[SeenMemoryFile, Memory]]:
    """Files whose name says what their memory no longer does."""
    for file in files:
        memory = home.memories.find(file.memory)
        if memory and is_named_after_more(file.path, memory.subject):
            yield file, memory


def _rename(change: Change, memory_ids: Sequence[str]) -> None:
    """A file is named after its subject: where that lost a secret, the name loses it, too."""
    files = (change.home.files.file_of(memory_id) for memory_id in memory_ids)
    rename(change, _misnamed(change.home, [file for file in files if file]))


def rename(change: Change, found: Iterable[tuple[SeenMemoryFile, Memory]]) -> list[str]:
    """Name files after the subjects of their memories; returns the paths that they had."""
    home = change.home
    moves: list[tuple[Intent, Intent]] = []
    for file, memory in found:
        text = home.vault.read(file.path).decode("utf-8", "replace")
        taken = {write.path for write, _ in moves}
        path = path_for(memory, lambda path, taken=taken: path in taken or home.files.is_taken(path))  # type: ignore[misc]
        write = Intent("write", path, text, None, memory.id)
        moves.append((write, Intent("remove", file.path, base=file.hash, memory=memory.id)))
    with home.database.transaction():
        for write, remove in moves:
            home.files.forget(remove.path)
            data = (write.document or "").encode("utf-8", "replace")
            home.files.save(SeenMemoryFile(write.path, write.memory or "", 0, len(data), bytes_hash(data)))
            change.intend((write, remove))
            if renamed := home.memories.find(write.memory or ""):
                home.memories.names.put(renamed)
    change.apply()
    with home.database.transaction():
        for write, remove in moves:
            home.journal.rename(remove.path, write.path)
    return [remove.path for _, remove in moves]


def _clean(change: Change, names: Sequence[str]) -> None:
    """Bring files to what they say without secrets, and read them again."""
    home = change.home
    writes = [write for name in names if (write := _cleaned(home, name))]
    change.intend(writes)
    change.apply()
    with home.database.transaction():
        for write in writes:
            home.files.distrust(write.path)
    read_written(change, [write.path for write in writes], awaits=False)


def _cleaned(home: Home, name: str) -> Intent | None:
    """What a file is to say; ``None`` where nothing is left to do, and for the ledger, which is written at once."""
    try:
        data = home.vault.read(name, whole=True)
        text = data.decode("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    cleaned = clean_document(text, Tally(home))
    if cleaned == text:
        return None
    if name != LEDGER:
        known = home.files.at(name) if is_memory_file(name) else None
        return Intent("write", name, cleaned, bytes_hash(data), known.memory if known else None)
    home.vault.write(LEDGER, cleaned, base=bytes_hash(data))
    with home.database.transaction():
        home.journal.set_ledger_end(*home.vault.append(LEDGER, []))
    return None
