"""Scrub data that was stored before the current redaction rules existed.

An interrupted scrub can be repeated and finds the remaining secrets. After changes, the database file is rewritten,
so that none of its pages contains the old text.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.files import write_file
from nacre.base.ids import bytes_hash
from nacre.base.request import Request
from nacre.base.text import to_text
from nacre.data.history import catch_up
from nacre.errors import InvalidMemoryError, UnavailableError
from nacre.home import archive
from nacre.home.change import FEW, Change, Run
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.home.operations import apply_intents, new_path, write_memory
from nacre.memories.edit import read_written, scan
from nacre.memories.usage import fold_usage
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.store.maintenance import StoredTexts, TextTable, clean_stored
from nacre.values.codec import texts_of, with_texts
from nacre.values.memory import NAMES, Intent, Memory, ScrubReport, SeenMemoryFile
from nacre.values.reports import OnProgress, Progress
from nacre.vault.documents import load, merge, parse, split
from nacre.vault.files import LEDGER, is_memory_file, slugify
from nacre.vault.remotes import rewrite_history

_UNFINISHED_FILE = "scrub.unfinished"
"""File that exists during a scrub. If it remains, the database's free pages may contain removed text."""

_DATABASE_FILES = ("", "-wal", "-shm")
_OWN_FILES = frozenset({"config.toml"})


class ScrubOptions(Request):
    """Apply the current redaction rules to all stored data."""

    dry_run: Annotated[bool, bounds("Show what would be removed, but change nothing.")] = False
    history: Annotated[
        bool, bounds("Also rewrite the vault's git history; all commits get new ids.")
    ] = False
    remove_copies: Annotated[bool, bounds("Also remove older copies of the database.")] = False
    vectors: Annotated[bool, bounds("If false, the next ingest computes the vectors.")] = True


_COPY_MARKS = (".old", ".before-", ".bak")


@operation(
    "scrub",
    writes=True,
    takes_long=True,
    owners=("history", "remove_copies"),
    command="admin scrub",
)
def scrub(
    home: Home, options: ScrubOptions, on_progress: OnProgress = lambda _: None
) -> ScrubReport:
    """Remove all stored text that matches the redaction rules.

    Raises StoreBusyError if other processes use the database constantly, UnusableRepositoryError if
    the history cannot be rewritten.
    """
    began = time.perf_counter()
    scan(home)
    fold_usage(home)
    tally = Tally(home)
    commits = None
    begun = home.settings.home / _UNFINISHED_FILE
    is_unfinished = begun.exists()
    if not options.dry_run:
        begun.touch(mode=0o600)
    with home.run(SCRUB, why=REASON) as run:
        scrub_memories(home, run, tally.at("memories"), dry_run=options.dry_run)
        scrub_files(home, run, tally.at("vault"), dry_run=options.dry_run)
    with home.vault_lock:
        _scrub_database(home, tally, options, on_progress)
    _scrub_home(home, tally.at("files"), options)
    with home.vault_lock:
        _scrub_archive(home, tally.at("archive"), options)
        if options.history:
            commits = _scrub_history(home, tally.at("history"), options)
        if not options.dry_run:
            if tally.changed or is_unfinished or options.history:
                scan(home)
                StoredTexts(home.database_file).purge()
            begun.unlink(missing_ok=True)
    copies = list_copies(home)
    removed = _remove(copies) if options.remove_copies and not options.dry_run else ()
    remaining = 0
    if tally.changed and not options.dry_run and options.vectors:
        remaining = embed_pending(home, on_progress).left
    return ScrubReport(
        options.dry_run,
        {place: dict(rules) for place, rules in tally.secrets.items()},
        turns=tally.changed["turns"],
        memories=tally.changed["memories"],
        files=tally.changed["files"],
        commits=commits,
        copies=tuple(copy for copy in copies if copy not in removed),
        removed=removed,
        elsewhere=tuple(_unreached(home, has_history=options.history)),
        vectors_left=remaining,
        seconds=time.perf_counter() - began,
    )


def _scrub_database(home: Home, tally: Tally, options: ScrubOptions, notify: OnProgress) -> None:
    stored = StoredTexts(home.database_file)
    _scrub_turns(home, stored, tally.at("turns"), options, notify)
    for table in stored.tables():
        tally.at(table.name)
        for rows in stored.batches(table):
            changed = [(row, texts) for row in rows if (texts := _new_texts(table, row, tally))]
            tally.changed["rows"] += len(changed)
            if changed and not options.dry_run:
                with home.transaction():
                    for row, texts in changed:
                        stored.rewrite(table, row[: len(table.keys)], texts)
            home.vault_lock.let_others()
    tally.changed = +tally.changed


def _scrub_turns(
    home: Home, stored: StoredTexts, tally: Tally, options: ScrubOptions, notify: OnProgress
) -> None:
    total = sum(turns for _, _, turns, *_ in home.sessions.counts())
    processed = 0
    for turns in stored.turns():
        rows = [
            (
                (text, tools, author),
                (row, tally.clean(text), tally.stored(tools), tally.stored(author)),
            )
            for row, text, tools, author in turns
        ]
        changed = [new for old, new in rows if new[1:] != old]
        if changed and not options.dry_run:
            with home.transaction():
                for new in changed:
                    stored.rewrite_turn(*new)
        tally.changed["turns"] += len(changed)
        processed += len(turns)
        home.vault_lock.let_others()
        notify(Progress("scrubbing", processed, max(processed, total)))


def _new_texts(table: TextTable, row: Sequence[Any], tally: Tally) -> dict[str, str]:
    pairs = zip(table.columns, row[len(table.keys) :], strict=True)
    return {
        column: new
        for column, text in pairs
        if text and (new := clean_stored(text, tally.clean)) != text
    }


def _scrub_home(home: Home, tally: Tally, options: ScrubOptions) -> None:
    database = home.settings.database.name
    skipped = {
        home.settings.vault.name,
        archive.FOLDER,
        *(f"{database}{suffix}" for suffix in _DATABASE_FILES),
    }
    for path, text in text_files(home.settings.home, skipped=skipped):
        if path.name in _OWN_FILES or path.name.startswith(database):
            continue
        if _clean_file(path, text, tally) != text:
            tally.changed["files"] += 1
            if not options.dry_run:
                with home.vault_lock, suppress(FileNotFoundError):
                    text = path.read_bytes().decode("utf-8")
                    write_file(path, _clean_file(path, text, Tally(home)))


def _clean_file(path: Path, text: str, tally: Tally) -> str:
    is_lines = path.suffix in (".json", ".jsonl", ".taken")
    return clean_lines(text, tally) if is_lines else tally.clean(text)


def _scrub_archive(home: Home, tally: Tally, options: ScrubOptions) -> None:
    def clean_all(texts: Sequence[str]) -> list[str]:
        cleaned = home.redactor.clean_all(texts)
        return [
            old if old == new else tally.clean(old) for old, new in zip(texts, cleaned, strict=True)
        ]

    for state in home.archive.all():
        if state.pack and archive.clean(home, state, clean_all, dry_run=options.dry_run):
            tally.changed["archived"] += 1
        home.vault_lock.let_others()


def _scrub_history(home: Home, tally: Tally, options: ScrubOptions) -> int:
    repository = home.repository
    if not repository.exists:
        return 0

    def clean(data: bytes) -> bytes:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return data
        return clean_document(text, tally).encode("utf-8")

    commits = rewrite_history(repository, clean, partial(_renamed, home), dry_run=options.dry_run)
    head = repository.head().commit
    if head and not options.dry_run:
        home.journal.set_git_state("index", head)
        catch_up(home)
    return commits


def _renamed(home: Home, path: str, data: bytes) -> str:
    """Return the file's path without the words that were redacted from the memory's subject."""
    try:
        memory = parse(data.decode("utf-8"), path, new_id=lambda: "", modified=datetime.now(UTC))
    except (InvalidMemoryError, UnicodeDecodeError):
        return path
    if not memory.id or not is_memory_file(path) or not is_named_after_more(path, memory.subject):
        return path
    today = home.files.file_of(memory.id)
    name = (
        PurePosixPath(today.path).name
        if today
        else f"{slugify(memory.subject)}-{memory.id[-8:]}.md"
    )
    return str(PurePosixPath(path).with_name(name))


def list_copies(home: Home) -> tuple[Path, ...]:
    """Return the copies of the database that rebuilds, resets and migrations have left."""
    database = home.settings.database
    return tuple(
        path
        for path in sorted(database.parent.glob(f"{database.name}*"))
        if any(mark in path.name.removeprefix(database.name) for mark in _COPY_MARKS)
        and path.is_file()
    )


def _remove(copies: tuple[Path, ...]) -> tuple[Path, ...]:
    for copy in copies:
        try:
            copy.unlink(missing_ok=True)
        except OSError as error:
            raise UnavailableError(
                f"cannot remove {copy}: {error.strerror}", hint="remove it yourself"
            ) from error
    return copies


def _unreached(home: Home, *, has_history: bool) -> Iterator[str]:
    repository = home.repository
    if repository.exists:
        if not has_history:
            yield "earlier versions in the vault's git history: nacre admin scrub --history rewrites it"
        if names := ", ".join(repository.git.remote_urls()):
            yield f"the vault's remotes ({names}) and all clones: they keep the old commits"
    transcripts = sum(Path(file.path).exists() for file in home.sessions.seen_files())
    if transcripts:
        yield f"the {transcripts:,} transcripts of your agents: nacre does not change them"
    if any(archive.folder_of(home).glob(f"*/*{archive.DAMAGED}")):
        yield f"damaged parts of the archive, in {archive.folder_of(home)}"
    yield "existing backups and exports"
    yield "anyone who has seen a leaked key: replace the key at its provider"


# -- Removing secrets from text ---------------------------------------------------------------------


_MAX_TEXT_BYTES = 200_000_000


@dataclass(slots=True)
class Tally:
    """Counts of the secrets found in each area, and of the changed items of each kind."""

    home: Home
    place: str = ""
    secrets: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    changed: Counter[str] = field(default_factory=Counter)

    def at(self, place: str) -> Tally:
        self.place = place
        return self

    def clean(self, text: str) -> str:
        """Remove secrets from text and count them."""
        redacted_text = self.home.redactor.redact(text)
        if redacted_text.counts:
            self.secrets[self.place].update(redacted_text.counts)
        return redacted_text.text if redacted_text.counts else text

    def stored(self, text: str | None) -> str | None:
        return clean_stored(text, self.clean) if text else text


def clean_document(text: str, tally: Tally) -> str:
    """Remove secrets from a vault file, keeping its front matter valid YAML."""
    front, body = split(text)
    if front is None:
        return clean_lines(text, tally)
    try:
        values = load(front)
    except InvalidMemoryError:
        return tally.clean(text)
    changed = {
        key: new
        for key, value in values.items()
        if (new := with_texts(value, tally.clean, keys=True)) != value
    }
    merged = merge(front, changed, []) if changed else front
    head = text[: len(text) - len(body)]
    return head.replace(front, tally.clean(merged), 1) + tally.clean(body)


def clean_lines(text: str, tally: Tally) -> str:
    """Remove secrets from text, keeping JSON lines valid."""
    lines = text.split("\n")
    if not any(line[:1] in ("{", "[") for line in lines):
        return tally.clean(text)
    return "\n".join(clean_stored(line, tally.clean) for line in lines)


def text_files(folder: Path, *, skipped: set[str]) -> Iterator[tuple[Path, str]]:
    """Yield each text file below a folder, with its content. Symbolic links are not followed."""
    for parent, folders, names in os.walk(folder):
        omitted = skipped if Path(parent) == folder else set()
        folders[:] = sorted({*folders} - omitted)
        for name in sorted({*names} - omitted):
            path = Path(parent, name)
            if path.is_symlink() or name.endswith(".lock"):
                continue
            if not path.is_file() or path.stat().st_size > _MAX_TEXT_BYTES:
                continue
            data = path.read_bytes()
            if b"\0" not in data:
                with suppress(UnicodeDecodeError):
                    yield path, data.decode("utf-8")


# -- Scrubbing the vault ---------------------------------------------------------------------------
# Secrets are searched without a lock. Then each batch of files is read again and changed under the lock.


SCRUB = "scrub"

REASON = "the rules of redaction"


def scrub_memories(home: Home, run: Run, tally: Tally, *, dry_run: bool) -> None:
    """Remove secrets from all memories and rewrite their files."""
    changed = []
    for memory in home.memories.everything():
        if redact(home.redactor, memory) != memory:
            for text in texts_of(memory, NAMES):
                tally.clean(text)
            changed.append(memory.id)
    tally.changed["memories"] += len(changed)
    if dry_run:
        return
    _in_parts(run, changed, _redact)
    if changed:
        with run.part() as change:
            change.note(SCRUB, count=len(changed), reason=REASON)
    misnamed = [file.memory for file, _ in _misnamed(home, home.files.indexed().values())]
    _in_parts(run, misnamed, _rename)


def scrub_files(home: Home, run: Run, tally: Tally, *, dry_run: bool) -> None:
    """Remove secrets from all other text in the vault, such as pages and the ledger."""
    changed = []
    for path, text in text_files(home.settings.vault, skipped={".git"}):
        if clean_document(text, tally) != text:
            tally.changed["files"] += 1
            changed.append(path.relative_to(home.settings.vault).as_posix())
    if not dry_run:
        _in_parts(run, changed, _clean)


def is_named_after_more(path: str, subject: str) -> bool:
    """Return True if a file's name still contains words redacted from the memory's subject."""
    if "[REDACTED:" not in subject and "[private]" not in subject:
        return False
    stem, slug = PurePosixPath(path).stem, slugify(subject)
    return not (stem == slug or re.fullmatch(r"-[0-9a-f]+", stem.removeprefix(slug)))


def _in_parts(
    run: Run, names: Sequence[str], work: Callable[[Change, Sequence[str]], None]
) -> None:
    for start in range(0, len(names), FEW):
        with run.part() as change:
            apply_intents(change.home)
            work(change, names[start : start + FEW])


def _redact(change: Change, memory_ids: Sequence[str]) -> None:
    memories = (change.home.memories.find(memory_id) for memory_id in memory_ids)
    change.put([redact(change.home.redactor, memory) for memory in memories if memory])


def _misnamed(
    home: Home, files: Iterable[SeenMemoryFile]
) -> Iterator[tuple[SeenMemoryFile, Memory]]:
    for file in files:
        memory = home.memories.find(file.memory)
        if memory and is_named_after_more(file.path, memory.subject):
            yield file, memory


def _rename(change: Change, memory_ids: Sequence[str]) -> None:
    files = (change.home.files.file_of(memory_id) for memory_id in memory_ids)
    rename(change, _misnamed(change.home, [file for file in files if file]))


def rename(change: Change, misnamed: Iterable[tuple[SeenMemoryFile, Memory]]) -> list[str]:
    """Rename files to match the subjects of their memories, and return the old paths."""
    home = change.home
    moves = {}
    with home.transaction():
        for file, memory in misnamed:
            text = to_text(home.vault.read(file.path))
            path = moves[file.path] = new_path(home, memory)
            home.files.forget(file.path)
            write = write_memory(home, path, text, None, memory)
            remove = Intent("remove", file.path, base=file.hash, memory=memory.id)
            change.intend((write, remove))
            home.memories.names.put(memory)
    change.apply()
    with home.transaction():
        for old, new in moves.items():
            home.journal.rename(old, new)
    return list(moves)


def _clean(change: Change, names: Sequence[str]) -> None:
    home = change.home
    writes = [write for name in names if (write := _cleaned(home, name))]
    change.intend(writes)
    change.apply()
    with home.transaction():
        for write in writes:
            home.files.distrust(write.path)
    read_written(change, [write.path for write in writes])


def _cleaned(home: Home, name: str) -> Intent | None:
    try:
        data = home.vault.read(name, any_size=True)
        text = data.decode("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    cleaned = clean_document(text, Tally(home))
    if cleaned == text:
        return None
    if name != LEDGER:
        seen_file = home.files.at(name) if is_memory_file(name) else None
        return Intent(
            "write", name, cleaned, bytes_hash(data), seen_file.memory if seen_file else None
        )
    home.vault.write(LEDGER, cleaned, base=bytes_hash(data))
    with home.transaction():
        home.journal.set_ledger_end(*home.vault.append(LEDGER, []))
    return None
