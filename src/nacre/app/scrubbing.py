"""Apply the present rules to all that is stored: what was kept before a rule was known goes now.

In steps that may be interrupted between any two: each leaves what it has done, and a second scrub finds the rest. A
scrub that changed something ends by writing the database anew, so that no page of the file holds the old words.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from nacre.app import packing
from nacre.app.chronicle import catch_up
from nacre.app.context import Context
from nacre.app.embedding import embed_pending
from nacre.app.operating import intend, operating
from nacre.app.packing import DAMAGED, FOLDER, folder_of
from nacre.app.scanning import scan
from nacre.app.sharding import purge_shards
from nacre.app.using import fold_usage
from nacre.app.writing import apply_intents, entry, redacted, save
from nacre.errors import MemoryInvalid, Unavailable
from nacre.model.memory import Memory
from nacre.model.reports import Progress
from nacre.model.scrub import ScrubReport
from nacre.storage.scrubbing import StoredTexts, TextTable, clean_stored, clean_value
from nacre.storage.vault_index import Intent, SeenMemoryFile
from nacre.vault.document import parse
from nacre.vault.files import file_hash
from nacre.vault.front_matter import load, merge, split
from nacre.vault.layout import LEDGER, is_memory_file, path_for, slugify

SCRUB = "scrub"
"""What ledger and history call it."""

_REASON = "the rules of redaction"
_BEGUN = "scrub.unfinished"
"""A file that is there while a scrub runs: what an interrupted one took out may still lie in free pages."""

_COPIES = (".old", ".before-", ".bak")
_DATABASE_FILES = ("", "-wal", "-shm")
_OWN_FILES = frozenset({"config.toml"})
_LARGEST_BYTES = 200_000_000

Notify = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """What a scrub does: look only, also rewrite the vault's history, remove old copies, make vectors anew."""

    dry_run: bool = False
    history: bool = False
    remove_copies: bool = False
    vectors: bool = True


@dataclass(slots=True)
class _Tally:
    """Counts what is found in the place that is being looked at."""

    context: Context
    place: str = ""
    found: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    changed: Counter[str] = field(default_factory=Counter)

    def at(self, place: str) -> _Tally:
        self.place = place
        return self

    def clean(self, text: str) -> str:
        """A text without secrets, counted."""
        redacted_text = self.context.redactor.redact(text)
        if redacted_text.found:
            self.found[self.place].update(redacted_text.found)
        return redacted_text.text if redacted_text.found else text

    def stored(self, text: str | None) -> str | None:
        return clean_stored(text, self.clean) if text else text


def scrub(context: Context, options: ScrubOptions, notify: Notify = lambda _: None) -> ScrubReport:
    """Look through everything that is stored and take out what the rules now know.

    Raises StoreBusy while another process writes or reads all the time, RepositoryUnusable where history is to be
    rewritten and cannot be.
    """
    began = time.perf_counter()
    scan(context)
    fold_usage(context)
    tally = _Tally(context)
    commits = None
    begun = context.settings.home / _BEGUN
    is_unfinished = begun.exists()
    if not options.dry_run:
        begun.touch(mode=0o600)
    with context.vault_lock:
        with operating(context, SCRUB, why=_REASON):
            _scrub_memories(context, tally.at("memories"), options)
            _scrub_vault(context, tally.at("vault"), options)
        apply_intents(context)
        _scrub_database(context, tally, options, notify)
        _scrub_files(context, tally.at("files"), options)
        _scrub_archive(context, tally.at("archive"), options)
        if options.history:
            commits = _scrub_history(context, tally.at("history"), options)
        if not options.dry_run:
            if tally.changed or is_unfinished or options.history:
                scan(context)
                purge_shards(context)
                StoredTexts(context.database).purge()
            begun.unlink(missing_ok=True)
    copies = list_copies(context)
    removed = _remove(copies) if options.remove_copies and not options.dry_run else ()
    left = 0
    if tally.changed and not options.dry_run and options.vectors:
        left = embed_pending(context, notify).left
    return ScrubReport(
        options.dry_run, {place: dict(rules) for place, rules in tally.found.items()}, turns=tally.changed["turns"],
        memories=tally.changed["memories"], files=tally.changed["files"], commits=commits,
        copies=tuple(copy for copy in copies if copy not in removed), removed=removed,
        elsewhere=tuple(_elsewhere(context, has_history=options.history)), vectors_left=left,
        seconds=time.perf_counter() - began,
    )  # fmt: skip


def list_copies(context: Context) -> tuple[Path, ...]:
    """Older copies of the database beside it: what rebuilds, resets and migrations keep."""
    database = context.settings.database
    beside = sorted(database.parent.glob(f"{database.name}*")) if database.parent.is_dir() else []
    return tuple(
        path for path in beside
        if any(mark in path.name.removeprefix(database.name) for mark in _COPIES) and path.is_file()
    )  # fmt: skip


def _scrub_memories(context: Context, tally: _Tally, options: ScrubOptions) -> None:
    """Memories whose words the index has; their files follow through the usual way of writing."""
    changed: list[Memory] = []
    for memory_id in sorted(context.memories.all_ids()):
        memory = context.memories.find(memory_id)
        if memory is None:
            continue
        cleaned = redacted(context, memory)
        if cleaned != memory:
            for text in (memory.subject, memory.content, *memory.tags, memory.author or "", memory.canonical_key or ""):
                tally.clean(text)
            changed.append(cleaned)
    tally.changed["memories"] += len(changed)
    if changed and not options.dry_run:
        save(context, changed, [entry(context, SCRUB, count=len(changed), reason=_REASON)])
    if not options.dry_run:
        _rename(context)


def _rename(context: Context) -> None:
    """A file is named after its subject: where that lost a secret, the name loses it, too."""
    moves: list[tuple[Intent, Intent]] = []
    for file in context.files.seen().values():
        memory = context.memories.find(file.memory)
        if memory is None or not _is_named_after_more(file.path, memory.subject):
            continue
        text = context.vault.read(file.path).decode("utf-8", "replace")
        taken = {write.path for write, _ in moves}
        path = path_for(memory, lambda path, taken=taken: path in taken or context.files.is_taken(path))  # type: ignore[misc]
        moves.append(
            (
                Intent("write", path, text, None, memory.id),
                Intent("remove", file.path, base=file.hash, memory=memory.id),
            )
        )
    if not moves:
        return
    with operating(context, SCRUB, subject=f"the names of {len(moves)} files", why=_REASON):
        with context.database.transaction():
            for write, remove in moves:
                context.files.forget(remove.path)
                data = (write.document or "").encode("utf-8", "replace")
                context.files.save(SeenMemoryFile(write.path, write.memory or "", 0, len(data), file_hash(data)))
                intend(context, (write, remove))
        apply_intents(context)
        with context.database.transaction():
            for write, remove in moves:
                context.journal.rename(remove.path, write.path)
    apply_intents(context)


def _is_named_after_more(path: str, subject: str) -> bool:
    """Whether a file's name says what a subject with a marker in it no longer says."""
    if "[REDACTED:" not in subject and "[private]" not in subject:
        return False
    stem, slug = PurePosixPath(path).stem, slugify(subject)
    return not (stem == slug or re.fullmatch(r"-[0-9a-f]+", stem.removeprefix(slug)))


def _scrub_vault(context: Context, tally: _Tally, options: ScrubOptions) -> None:
    """What else the vault's files say: comments, pages, files that a person wrote, the ledger."""
    writes: list[Intent] = []
    for path, data in _text_files(context.settings.vault, skipped={".git"}):
        name = path.relative_to(context.settings.vault).as_posix()
        text = data.decode("utf-8")
        cleaned = _clean_document(text, tally)
        if cleaned == text:
            continue
        tally.changed["files"] += 1
        if options.dry_run:
            continue
        if name == LEDGER:
            context.vault.write(LEDGER, cleaned, base=file_hash(data))
            with context.database.transaction():
                context.journal.set_ledger_end(*context.vault.append(LEDGER, []))
        else:
            known = context.files.at(name) if is_memory_file(name) else None
            writes.append(Intent("write", name, cleaned, file_hash(data), known.memory if known else None))
    if writes:
        _write(context, writes)


def _write(context: Context, writes: list[Intent]) -> None:
    """Bring files to what they say without secrets, and have the index read them again."""
    with operating(context, SCRUB, subject=f"{len(writes)} files", why=_REASON):
        with context.database.transaction():
            intend(context, writes)
        apply_intents(context)
        with context.database.transaction():
            for write in writes:
                context.files.distrust(write.path)
    apply_intents(context)


def _scrub_database(context: Context, tally: _Tally, options: ScrubOptions, notify: Notify) -> None:
    stored = StoredTexts(context.database)
    _scrub_turns(context, stored, tally.at("turns"), options, notify)
    for table in stored.tables():
        tally.at(table.name)
        for rows in stored.batches(table):
            changed = [(row, texts) for row in rows if (texts := _new_texts(table, row, tally))]
            tally.changed["rows"] += len(changed)
            if changed and not options.dry_run:
                with context.database.transaction():
                    for row, texts in changed:
                        stored.rewrite(table, row[: len(table.keys)], texts)
            context.vault_lock.let_others()
    tally.changed = +tally.changed


def _scrub_turns(
    context: Context, stored: StoredTexts, tally: _Tally, options: ScrubOptions, notify: Notify
) -> None:  # fmt: skip
    total = sum(turns for _, _, turns, *_ in context.sessions.counts())
    done = 0
    for turns in stored.turns():
        looked_at = [
            ((text, tools, author), (row, tally.clean(text), tally.stored(tools), tally.stored(author)))
            for row, text, tools, author in turns
        ]
        changed = [new for old, new in looked_at if new[1:] != old]
        if changed and not options.dry_run:
            with context.database.transaction():
                for new in changed:
                    stored.rewrite_turn(*new)
        tally.changed["turns"] += len(changed)
        done += len(turns)
        context.vault_lock.let_others()
        notify(Progress("scrubbing", done, max(done, total)))


def _new_texts(table: TextTable, row: Sequence[Any], tally: _Tally) -> dict[str, str]:
    """The columns of a row that change, as they are to be."""
    pairs = zip(table.columns, row[len(table.keys) :], strict=True)
    cleaned = {column: (text, tally.stored(text)) for column, text in pairs if text}
    return {column: new for column, (old, new) in cleaned.items() if new is not None and new != old}


def _scrub_files(context: Context, tally: _Tally, options: ScrubOptions) -> None:
    """Logs, spools, saved queries, and whatever else lies in the home."""
    database = context.settings.database.name
    skipped = {context.settings.vault.name, FOLDER, *(f"{database}{suffix}" for suffix in _DATABASE_FILES)}
    for path, data in _text_files(context.settings.home, skipped=skipped):
        if path.name in _OWN_FILES or path.name.startswith(database):
            continue
        text = data.decode("utf-8")
        cleaned = _clean_lines(text, tally) if path.suffix in (".json", ".jsonl", ".taken") else tally.clean(text)
        if cleaned != text:
            tally.changed["files"] += 1
            if not options.dry_run:
                _replace(path, cleaned)


def _scrub_archive(context: Context, tally: _Tally, options: ScrubOptions) -> None:
    """What is kept of transcripts, line by line."""

    def clean_all(texts: Sequence[str]) -> list[str]:
        cleaned = context.redactor.clean_all(texts)
        return [old if old == new else tally.clean(old) for old, new in zip(texts, cleaned, strict=True)]

    for state in context.archive.all():
        if state.pack and packing.clean(context, state, clean_all, dry_run=options.dry_run):
            tally.changed["archived"] += 1
        context.vault_lock.let_others()


def _scrub_history(context: Context, tally: _Tally, options: ScrubOptions) -> int:
    """Every version that git keeps; returns how many commits there are."""
    repository = context.repository
    if not repository.exists:
        return 0
    from nacre.git.rewriting import rewrite_history  # only where history is rewritten

    def clean(data: bytes) -> bytes:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return data
        return _clean_document(text, tally).encode("utf-8")

    commits = rewrite_history(repository, clean, partial(_renamed, context), dry_run=options.dry_run)
    head = repository.head().commit
    if head and not options.dry_run:
        context.journal.set_git_state("index", head)
        catch_up(context)
    return commits


def _renamed(context: Context, path: str, data: bytes) -> str:
    """What a file of the history is called now that its contents are ``data``: as it is called today, if it is."""
    try:
        memory = parse(data.decode("utf-8"), path, new_id=lambda: "", modified=datetime.now(UTC))
    except (MemoryInvalid, UnicodeDecodeError):
        return path
    if not memory.id or not is_memory_file(path) or not _is_named_after_more(path, memory.subject):
        return path
    today = context.files.file_of(memory.id)
    name = PurePosixPath(today.path).name if today else f"{slugify(memory.subject)}-{memory.id[-8:]}.md"
    return str(PurePosixPath(path).with_name(name))


def _clean_document(text: str, tally: _Tally) -> str:
    """A file of the vault without secrets; its front matter is cleaned value by value, so that it stays YAML."""
    front, body = split(text)
    if front is None:
        return _clean_lines(text, tally)
    try:
        values = load(front)
    except MemoryInvalid:
        return tally.clean(text)
    changed = {key: new for key, value in values.items() if (new := clean_value(value, tally.clean)) != value}
    merged = merge(front, changed, []) if changed else front
    head = text[: len(text) - len(body)]
    return head.replace(front, tally.clean(merged), 1) + tally.clean(body)


def _clean_lines(text: str, tally: _Tally) -> str:
    """A text without secrets; lines that are JSON stay so."""
    lines = text.split("\n")
    if not any(line[:1] in ("{", "[") for line in lines):
        return tally.clean(text)
    cleaned = [clean_stored(line, tally.clean) if line[:1] in ("{", "[") else tally.clean(line) for line in lines]
    return "\n".join(cleaned)


def _text_files(folder: Path, *, skipped: set[str]) -> Iterator[tuple[Path, bytes]]:
    """Files below a folder that are text, with their bytes; links are not followed."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (name in skipped and Path(parent) == folder))
        for name in sorted(names):
            path = Path(parent, name)
            if (Path(parent) == folder and name in skipped) or path.is_symlink() or name.endswith(".lock"):
                continue
            if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
                continue
            data = path.read_bytes()
            if b"\0" not in data and _is_utf8(data):
                yield path, data


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _remove(copies: tuple[Path, ...]) -> tuple[Path, ...]:
    for copy in copies:
        try:
            copy.unlink(missing_ok=True)
        except OSError as error:
            raise Unavailable(f"cannot remove {copy}: {error.strerror}", hint="remove it by hand") from error
    return copies


def _elsewhere(context: Context, *, has_history: bool) -> Iterator[str]:
    """What a scrub of this home does not reach."""
    repository = context.repository
    if repository.exists:
        if not has_history:
            yield "versions before this in the vault's git history: nacre scrub --history rewrites it"
        remotes = repository.git.attempt("remote").stdout.decode("utf-8", "replace").split()
        if remotes:
            names = ", ".join(remotes)
            yield f"the vault's remotes ({names}) and every clone of them: they keep the old commits"
    transcripts = sum(Path(file.path).exists() for file in context.sessions.seen_files())
    if transcripts:
        yield f"the {transcripts:,} transcripts of your agents that nacre reads: they are not nacre's to change"
    if any(folder_of(context).glob(f"*/*{DAMAGED}")):
        yield f"damaged parts of the archive, in {folder_of(context)}"
    yield "backups and exports that were made before"
    yield "whoever saw it: a key that leaked must be replaced where it was made"
