"""Scrub data that was stored before the current redaction rules existed.

An interrupted scrub can be repeated and finds the remaining secrets. After changes, the database file is rewritten,
so that none of its pages contains the old text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from nacre.base.files import write_file
from nacre.base.text import to_text
from nacre.data.forget import (
    REASON,
    SCRUB,
    ScrubOptions,
    Tally,
    clean_document,
    clean_lines,
    is_named_after_more,
    scrub_files,
    scrub_memories,
    text_files,
)
from nacre.data.history import catch_up
from nacre.errors import InvalidMemoryError, UnavailableError
from nacre.home import archive_packs
from nacre.home.archive_packs import DAMAGED, FOLDER, folder_of
from nacre.home.home import Home
from nacre.memories.edit import scan
from nacre.memories.store import fold_usage
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.store.maintenance import StoredTexts, TextTable
from nacre.values.memory import ScrubReport
from nacre.values.reports import OnProgress, Progress
from nacre.vault.documents import parse
from nacre.vault.files import is_memory_file, slugify
from nacre.vault.remotes import rewrite_history

_UNFINISHED_FILE = "scrub.unfinished"
"""Name of a file that exists during a scrub. If it is left over, free pages can still contain removed text."""

_COPY_MARKS = (".old", ".before-", ".bak")
_DATABASE_FILES = ("", "-wal", "-shm")
_OWN_FILES = frozenset({"config.toml"})


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
        {place: dict(rules) for place, rules in tally.found.items()},
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


def list_copies(home: Home) -> tuple[Path, ...]:
    """Return the copies of the database that rebuilds, resets and migrations have kept."""
    database = home.settings.database
    beside = sorted(database.parent.glob(f"{database.name}*")) if database.parent.is_dir() else []
    return tuple(
        path
        for path in beside
        if any(mark in path.name.removeprefix(database.name) for mark in _COPY_MARKS)
        and path.is_file()
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
        looked_at = [
            (
                (text, tools, author),
                (row, tally.clean(text), tally.stored(tools), tally.stored(author)),
            )
            for row, text, tools, author in turns
        ]
        changed = [new for old, new in looked_at if new[1:] != old]
        if changed and not options.dry_run:
            with home.transaction():
                for new in changed:
                    stored.rewrite_turn(*new)
        tally.changed["turns"] += len(changed)
        processed += len(turns)
        home.vault_lock.let_others()
        notify(Progress("scrubbing", processed, max(processed, total)))


def _new_texts(table: TextTable, row: Sequence[Any], tally: Tally) -> dict[str, str]:
    """Return the cleaned texts of a row's columns that contain secrets."""
    pairs = zip(table.columns, row[len(table.keys) :], strict=True)
    cleaned = {column: (text, tally.stored(text)) for column, text in pairs if text}
    return {column: new for column, (old, new) in cleaned.items() if new is not None and new != old}


def _scrub_home(home: Home, tally: Tally, options: ScrubOptions) -> None:
    database = home.settings.database.name
    skipped = {
        home.settings.vault.name,
        FOLDER,
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
        if state.pack and archive_packs.clean(home, state, clean_all, dry_run=options.dry_run):
            tally.changed["archived"] += 1
        home.vault_lock.let_others()


def _scrub_history(home: Home, tally: Tally, options: ScrubOptions) -> int:
    """Scrub all versions in git and return the number of commits."""
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
    """Return the new path of a memory file in the history.

    The name changes if it contains words that were redacted from the memory's subject.
    """
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
    """Yield the places from which a scrub cannot remove secrets."""
    repository = home.repository
    if repository.exists:
        if not has_history:
            yield "earlier versions in the vault's git history: nacre admin scrub --history rewrites it"
        remotes = to_text(repository.git.attempt("remote").stdout).split()
        if remotes:
            names = ", ".join(remotes)
            yield f"the vault's remotes ({names}) and all clones: they keep the old commits"
    transcripts = sum(Path(file.path).exists() for file in home.sessions.seen_files())
    if transcripts:
        yield f"the {transcripts:,} transcripts of your agents: nacre does not change them"
    if any(folder_of(home).glob(f"*/*{DAMAGED}")):
        yield f"damaged parts of the archive, in {folder_of(home)}"
    yield "existing backups and exports"
    yield "readers: replace a leaked key at its provider"
