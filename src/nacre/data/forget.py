"""What a scrub counts, and how it cleans a text, a document, the files of a folder."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from msgspec import Meta

from nacre.base.ids import bytes_hash, content_hash
from nacre.base.request import Request
from nacre.errors import (
    Conflict,
    EditConflict,
    MemoryInvalid,
    NotFound,
    QueryInvalid,
    VaultUnusable,
)
from nacre.home.change import FEW, Change, Run, page_path
from nacre.home.home import Home
from nacre.home.location import redacted
from nacre.home.operations import apply_intents
from nacre.home.projects import REFERENCE_CHARACTERS, references_of
from nacre.home.spending import fold_notes
from nacre.learn import discovery
from nacre.learn.ingest import read_changed, unread
from nacre.memories import erasure
from nacre.memories.edit import catch_up, read_written
from nacre.memories.erasure import (
    apply_tombstones,
    clear_told,
    clear_words,
    erase_bytes_erasure,
    remove_for_good,
    still_saying,
    withdraw_matching,
)
from nacre.memories.store import fold_usage, get
from nacre.memories.tombstones import (
    ALLOW_AGAIN,
    FORGET,
    Affected,
    Barred,
    Pattern,
    excerpt_of,
    heed_ledger,
    is_in_path,
    is_shared,
    memory_texts,
    project_value,
    standing_tombstones,
    survey,
    told,
    tombstones_of,
    turn_texts,
    turn_value,
    words_value,
)
from nacre.memories.usage import write_listings
from nacre.readers.nacre_chat import sessions_folder
from nacre.store.maintenance import clean_stored, clean_value
from nacre.values.codec import stamp, texts_of
from nacre.values.memory import (
    NAMES,
    Excerpt,
    ForgetPlan,
    ForgetReport,
    Forgotten,
    Intent,
    Memory,
    SeenMemoryFile,
    Tombstone,
    TombstoneKind,
    TurnPlace,
    Unreached,
)
from nacre.vault import files
from nacre.vault.documents import load, merge, split
from nacre.vault.files import LEDGER, is_memory_file, path_for, slugify

_LARGEST_BYTES = 200_000_000


@dataclass(slots=True)
class Tally:
    """Counts what is found in the place that is being looked at."""

    home: Home
    place: str = ""
    found: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    changed: Counter[str] = field(default_factory=Counter)

    def at(self, place: str) -> Tally:
        self.place = place
        return self

    def clean(self, text: str) -> str:
        """A text without secrets, counted."""
        redacted_text = self.home.redactor.redact(text)
        if redacted_text.found:
            self.found[self.place].update(redacted_text.found)
        return redacted_text.text if redacted_text.found else text

    def stored(self, text: str | None) -> str | None:
        return clean_stored(text, self.clean) if text else text


def clean_document(text: str, tally: Tally) -> str:
    """A file of the vault without secrets; its front matter is cleaned value by value, so that it stays YAML."""
    front, body = split(text)
    if front is None:
        return clean_lines(text, tally)
    try:
        values = load(front)
    except MemoryInvalid:
        return tally.clean(text)
    changed = {
        key: new
        for key, value in values.items()
        if (new := clean_value(value, tally.clean)) != value
    }
    merged = merge(front, changed, []) if changed else front
    head = text[: len(text) - len(body)]
    return head.replace(front, tally.clean(merged), 1) + tally.clean(body)


def clean_lines(text: str, tally: Tally) -> str:
    """A text without secrets; lines that are JSON stay so."""
    lines = text.split("\n")
    if not any(line[:1] in ("{", "[") for line in lines):
        return tally.clean(text)
    cleaned = [
        clean_stored(line, tally.clean) if line[:1] in ("{", "[") else tally.clean(line)
        for line in lines
    ]
    return "\n".join(cleaned)


def text_files(folder: Path, *, skipped: set[str]) -> Iterator[tuple[Path, bytes]]:
    """Files below a folder that are text, with their bytes; links are not followed."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not (name in skipped and Path(parent) == folder)
        )
        for name in sorted(names):
            path = Path(parent, name)
            if (
                (Path(parent) == folder and name in skipped)
                or path.is_symlink()
                or name.endswith(".lock")
            ):
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


# ----------------------------------------------------------------------------
# Take out of the vault what the present rules know: of memories, of names, of all else that its files
# say.
#
# What is to change is found without a lock. Then each part is changed as it is by then, and read,
# before others write.


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


def _in_parts(
    run: Run, names: Sequence[str], work: Callable[[Change, Sequence[str]], None]
) -> None:
    """Work on some at a time; others write between two of them."""
    for start in range(0, len(names), FEW):
        with run.part() as change:
            apply_intents(change.home)
            work(change, names[start : start + FEW])


def _redact(change: Change, memory_ids: Sequence[str]) -> None:
    """As they are now: others write meanwhile."""
    found = (change.home.memories.find(memory_id) for memory_id in memory_ids)
    change.put([redacted(change.home.redactor, memory) for memory in found if memory])


def _misnamed(
    home: Home, files: Iterable[SeenMemoryFile]
) -> Iterator[tuple[SeenMemoryFile, Memory]]:
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

        def is_taken(path: str, taken: Set[str] = taken) -> bool:
            return path in taken or home.files.is_taken(path)

        path = path_for(memory, is_taken)
        write = Intent("write", path, text, None, memory.id)
        moves.append((write, Intent("remove", file.path, base=file.hash, memory=memory.id)))
    with home.database.transaction():
        for write, remove in moves:
            home.files.forget(remove.path)
            data = (write.document or "").encode("utf-8", "replace")
            home.files.save(
                SeenMemoryFile(write.path, write.memory or "", 0, len(data), bytes_hash(data))
            )
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


# ----------------------------------------------------------------------------
# Take a text out of what stays: names of files, reasons of links.


def clear_reasons(change: Change, match: Pattern) -> None:
    """Links lose reasons that say a text."""
    home = change.home
    for memory in home.memories.in_any_state(sorted(home.memories.all_ids())):
        links = tuple(
            replace(link, reason=None) if match.search(link.reason or "") else link
            for link in memory.links
        )
        if links != memory.links:
            with suppress(EditConflict):  # somebody edits it just now: the report names the file
                change.set_links(replace(memory, links=links))


def rename_files(change: Change, match: Pattern) -> None:
    """A file is named after what its memory was first called: where only the name says a text, it gets another one."""
    home = change.home
    found = []
    for path, file in home.files.seen().items():
        memory = home.memories.find(file.memory) if is_in_path(match, path) else None
        if memory and not match.search(memory.subject):
            found.append((file, memory))
    for path in rename(change, found):
        remove_for_good(home, path)


# ----------------------------------------------------------------------------
# Requests to forget for good, and to take out secrets.


class ForgetRequest(Request, frozen=True, kw_only=True):
    """What is to be forgotten: one of these, or all of a project ``before`` a time."""

    sessions: Annotated[tuple[str, ...], Meta(description="Sessions, by their ids.")] = ()
    memories: Annotated[
        tuple[str, ...], Meta(description="Memories, by their ids or subjects.")
    ] = ()
    project: Annotated[str | None, Meta(description="A whole project, by its slug.")] = None
    match: Annotated[str | None, Meta(description="Whatever says this text.")] = None
    regex: Annotated[bool, Meta(description="The text is a regular expression.")] = False
    before: Annotated[datetime | None, Meta(description="What was said before then.")] = None

    @property
    def how(self) -> str:
        """What decides."""
        if (
            sum(
                map(
                    bool,
                    (
                        self.sessions,
                        self.memories,
                        self.match is not None,
                        self.project or self.before,
                    ),
                )
            )
            != 1
        ):
            raise QueryInvalid(
                "say what to forget: a session, a memory, a text, a project, or what was before a day",
                hint="nacre forget --session ID | --memory ID | --match TEXT | --project P | --before DATE",
            )
        if self.before:
            return "before"
        return (
            "session"
            if self.sessions
            else "memory"
            if self.memories
            else "match"
            if self.match is not None
            else "project"
        )


class AllowAgainRequest(Request, frozen=True, kw_only=True):
    """Let what was forgotten be read again."""

    reference: Annotated[
        str, Meta(description="The id of a run (or its end), of a session or of a memory.")
    ]


class ScrubOptions(Request, frozen=True, kw_only=True):
    """Apply the present rules of redaction to everything that is stored."""

    dry_run: Annotated[bool, Meta(description="Tell what would be taken out, change nothing.")] = (
        False
    )
    history: Annotated[
        bool, Meta(description="Also rewrite the vault's git history; all commits get new ids.")
    ] = False
    remove_copies: Annotated[
        bool, Meta(description="Also remove older copies of the database.")
    ] = False
    vectors: Annotated[bool, Meta(description="False: leave new vectors to the next ingest.")] = (
        True
    )


# ----------------------------------------------------------------------------
# Where what was forgotten may still be, outside of what nacre can delete; each place with what its
# owner can do.


_DELETE = "delete it, or keep it in the knowledge of what it holds"
_PROFILE = "profile.md"
_LARGEST = 64 * 1024 * 1024


def pattern_of(wanted: ForgetRequest | ForgetPlan) -> Pattern | None:
    """What is looked for, if a text is. Raises QueryInvalid."""
    return None if wanted.match is None else Pattern(wanted.match, is_regex=wanted.regex)


def unreached(home: Home, plan: ForgetPlan) -> tuple[Unreached, ...]:
    """What could not be reached. A text that was forgotten is looked for in the other files of the home."""
    match = pattern_of(plan)
    return (
        *_transcripts(plan),
        *_git(home),
        *_copies(home),
        *_on_server(home),
        *_pages(home, plan),
        *(_quoting(home, match) if match else ()),
        *(_named(home, match) if match else ()),
        Unreached(
            "copies elsewhere",
            "exports, backups on other disks, snapshots of the file system",
            "another machine forgets with its next sync; what was copied away is yours to delete",
        ),
    )


def _transcripts(plan: ForgetPlan) -> Iterator[Unreached]:
    for file in plan.files:
        if Path(file).exists():
            yield Unreached(
                "transcript", file, "the host's own file: delete it there; nacre reads it no more"
            )


def _git(home: Home) -> Iterator[Unreached]:
    repository = home.settings.vault / ".git"
    if home.database.is_server or not repository.exists():
        return
    yield Unreached("git history", str(home.vault.root), "nacre scrub --history")
    for remote in _remotes(repository / "config"):
        yield Unreached(
            "git remote",
            remote,
            "its history, and every clone of it, must be rewritten or deleted, too",
        )


def _remotes(config: Path) -> list[str]:
    try:
        lines = config.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.partition("=")[2].strip() for line in lines if line.strip().startswith("url")]


def _copies(home: Home) -> Iterator[Unreached]:
    database = home.settings.database
    found = {*database.parent.glob(f"{database.name}.*"), *database.parent.glob("nacre-*.db")}
    for file in sorted(found):
        if file.is_file():
            yield Unreached("older database", str(file), _DELETE)
    for file in sorted((home.settings.home / "archive").glob("*/*.damaged")):
        yield Unreached("damaged part of the archive", str(file), _DELETE)
    folder = home.settings.home / "backups"
    if folder.is_dir() and any(folder.iterdir()):
        yield Unreached("backup", str(folder), _DELETE)


def _on_server(home: Home) -> Iterator[Unreached]:
    if home.database.is_server:
        yield Unreached(
            "the server's disk",
            "what was deleted, until it is written over; its log and its backups",
            "its administrator runs VACUUM FULL, and lets backups of before expire (docs/forgetting.md)",
        )


def _pages(home: Home, plan: ForgetPlan) -> Iterator[Unreached]:
    """Pages with a line of nacre's that rests on a memory that was forgotten, whatever words the line has."""
    forgotten = {memory.id[-REFERENCE_CHARACTERS:] for memory in plan.memories}
    for path in (*(page_path(one.slug) for one in home.files.projects()), _PROFILE):
        try:
            text = home.vault.read(path).decode("utf-8", errors="replace")
        except (OSError, VaultUnusable):
            continue
        if any(forgotten.intersection(references_of(line)) for line in text.splitlines()):
            yield Unreached(
                "sums it up",
                str(home.vault.root / path),
                "nacre dream --tier 3 --no-writer takes the line out",
            )


def _quoting(home: Home, match: Pattern) -> Iterator[Unreached]:
    """Other files of the home that say it: pages of projects, notes, logs, saved queries."""
    home_path, database = home.settings.home, home.settings.database
    for file in sorted(home_path.rglob("*")):
        inside = file.relative_to(home_path).parts
        if (
            ".git" in inside
            or inside[0] in ("archive", "backups")
            or file.name.startswith(database.name)
        ):
            continue
        if file.is_file() and not file.is_symlink() and _says(file, match):
            yield Unreached("still says it", str(file), "edit or delete the file")
    for path in still_saying(home, match):
        yield Unreached("still says it", str(home.vault.root / path), "write it anew")


def _named(home: Home, match: Pattern) -> Iterator[Unreached]:
    """Sessions that took place in a folder or on a branch of that name."""
    for session in home.erasing.sessions():
        if match.search(f"{session.cwd or ''}\n{session.branch or ''}"):
            yield Unreached(
                "a session's folder or branch",
                session.id,
                "nacre forget --session ID takes the session",
            )


def _says(file: Path, match: Pattern) -> bool:
    try:
        if file.stat().st_size > _LARGEST:
            return False
        return match.search(file.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


# ----------------------------------------------------------------------------
# Forget for good: what goes is planned, told and asked, then written down as tombstones, then carried
# out.
#
# The tombstones are durable before anything is deleted: what a crash cuts short is completed by the
# next command.


_HASHES_AN_ENTRY = 1000
_SINGLE = {TombstoneKind.KEY: "key", TombstoneKind.BEFORE: "before"}
_EXCERPTS = 200


def plan(home: Home, wanted: ForgetRequest) -> ForgetPlan:
    """What forgetting would take; nothing is changed. Raises QueryInvalid, NotFound, Conflict."""
    how = wanted.how
    catch_up(home)
    _read_conversations(home)
    key = _key(home)
    aim = _AIMS[how](home, wanted, bytes.fromhex(key.value))
    barred = Barred([key, *aim.tombstones])
    found = survey(home, barred)
    match = pattern_of(wanted)
    traces = _traces(home, match) if match else 0
    held = erasure.held(home, barred, match)
    project = wanted.project if how == "project" else None
    return replace(
        _planned(home, how, found, aim, key),
        match=wanted.match,
        regex=wanted.regex,
        traces=traces,
        held=held,
        project=project,
    )


def _read_conversations(home: Home) -> None:
    """Make searchable what was said in channels since it was last read there: the gateway does that now and then."""
    transcripts = sessions_folder(home.settings.home).glob("*.jsonl")
    if jobs := unread(home, discovery.look(home, transcripts).files):
        read_changed(home, jobs)


def _traces(home: Home, match: Pattern) -> int:
    """How many traces quote a text: also what was only asked is forgotten."""
    fold_notes(home)
    return home.traces.count_where(lambda said: match.search(said) is not None)


def forget(home: Home, planned: ForgetPlan) -> ForgetReport:
    """Forget what was planned; durable when it returns, whatever happens on the way.

    The report says what could not be reached. Raises OwnerOnly.
    """
    home.actor.require_owner("nacre forget")
    fold_usage(home)
    match = pattern_of(planned)
    if match:
        withdraw_matching(home, match)
        erasure.erase_matching(home, match)
    with home.change(FORGET) as change:
        if match:
            apply_intents(home)
            clear_words(home, (), match)
            clear_reasons(change, match)
            rename_files(change, match)
            home.erasing.clear_journal(match.search)
            _clear_candidates(home, match)
            clear_told(home, match)
            erasure.erase_quoting(home, match)
        with change.transaction():
            change.append(_entries(change, planned))
            home.tombstones.set("erase", "1")
    apply_tombstones(home)
    if planned.project:
        home.code.forget(planned.project)
    write_listings(home)
    run = change.operation_id
    is_done = not home.files.has_intents() and run not in home.tombstones.due()
    return ForgetReport(
        run, planned, is_done and erase_bytes_erasure(home), unreached(home, planned)
    )


def _clear_candidates(home: Home, match: Pattern) -> None:
    """Delete the candidates that quote a text."""
    waiting = (one.memory for one in home.candidates.with_words())
    home.candidates.delete(
        [one.id for one in waiting if excerpt_of(match, memory_texts(one)) is not None]
    )


def forgotten(home: Home) -> list[Forgotten]:
    """What was forgotten so far, the latest first. Completes what was cut short."""
    catch_up(home)
    erase_bytes_erasure(home)
    entries = list(told(home))
    holding = {one.run for one in standing_tombstones(entries) if one.kind is not TombstoneKind.KEY}
    runs: dict[str, list[files.LedgerEntry]] = {}
    for item in entries:
        if item.action == FORGET:
            runs.setdefault(str(item.details.get("run") or item.op), []).append(item)
    return sorted(
        (_told_run(run, items, holding) for run, items in runs.items()),
        key=lambda one: one.run,
        reverse=True,
    )


def allow_again(home: Home, reference: str) -> Forgotten:
    """Let what was forgotten be read again, where a transcript still tells it: a whole run, or one session or memory.

    Takes the id of a run (or its end), of a session or of a memory. Raises NotFound, Conflict.
    """
    runs = {one.run: one for one in forgotten(home) if not one.is_allowed}
    of, whose = _meant(home, reference.strip(), runs)
    with home.vault_lock:
        with home.change(ALLOW_AGAIN) as change, change.transaction():
            change.append([change.entry(ALLOW_AGAIN, of=of, **whose)])
        heed_ledger(home)
        home.erasing.delete_held_cursors()
    return runs[of[-1]]


@dataclass(frozen=True, slots=True)
class _Aim:
    """Where a request points: tombstones (of no run yet), and what shows that it is meant."""

    tombstones: tuple[Tombstone, ...]
    excerpts: tuple[Excerpt, ...] = ()


def _sessions_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:  # noqa: ARG001 - as the others
    return _Aim(
        tuple(_tombstone(TombstoneKind.SESSION, _session_id(home, one)) for one in wanted.sessions)
    )


def _session_id(home: Home, reference: str) -> str:
    found = home.sessions.find(reference.strip())
    if len(found) > 1:
        names = ", ".join(one.session.id for one in found)
        raise Conflict(f"{reference!r} means several sessions: {names}", hint="give more of the id")
    if found:
        return found[0].session.id
    kept = home.memories.known_of(reference.strip()) or home.handoffs.of_session(reference.strip())
    if kept:  # its transcript is gone, what was learned from it is not
        return reference.strip()
    raise NotFound(f"no session is called {reference!r}", hint="nacre sessions list shows ids")


def _memories_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:
    """Memories, whatever says the same in the same words, and the turns that show them."""
    ids = home.erasing.alike([get(home, reference).id for reference in wanted.memories])
    found = home.memories.in_any_state(ids)
    shown: dict[str, set[str]] = {}
    for memory in found:
        again = ((one.session, one.turns) for one in memory.confirmed)
        for session, said in ((memory.source.session, memory.source.turns), *again):
            if session:
                shown.setdefault(session, set()).update(said)
    turns = [
        one
        for session, wanted_turns in shown.items()
        for one in _turns_of(home, key, session, wanted_turns)
    ]
    return _Aim((*(_tombstone(TombstoneKind.MEMORY, memory.id) for memory in found), *turns))


def _project_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:
    slug = wanted.project or ""
    sessions = [one.id for one in home.erasing.sessions() if one.project == slug]
    every = home.memories.in_any_state(sorted(home.memories.all_ids()))
    memories = [memory.id for memory in every if memory.project == slug]
    if not sessions and not memories:
        raise NotFound(
            f"no project is called {slug!r}", hint="nacre list shows the projects of memories"
        )
    until = home.now() + timedelta(seconds=1)
    return _Aim(
        (
            *(_tombstone(TombstoneKind.SESSION, session) for session in sessions),
            *(_tombstone(TombstoneKind.MEMORY, memory) for memory in memories),
            _before(until, key, slug),
        )
    )


def _time_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:
    if wanted.before is None or wanted.before > home.now():
        raise QueryInvalid(
            "that day is still to come", hint="nacre forget --project P forgets a whole project"
        )
    return _Aim((_before(wanted.before, key, wanted.project),))


def _text_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:
    match = Pattern(wanted.match or "", is_regex=wanted.regex)
    sessions = {one.row: one for one in home.erasing.sessions()}
    excerpts, rows = [], []
    for turn in home.erasing.turn_texts():
        found = excerpt_of(match, turn_texts(turn))
        if found is not None:
            rows.append(turn.row)
            excerpts.append(Excerpt(sessions[turn.session].id, found))
    turns = [one for place in _in_pieces(home, rows) for one in _turn_tombstones(key, place)]
    memories = []
    for memory in home.memories.in_any_state(sorted(home.memories.all_ids())):
        found = excerpt_of(match, memory_texts(memory))
        if found is not None:
            memories.append(_tombstone(TombstoneKind.MEMORY, memory.id))
            excerpts.append(Excerpt(memory.id, found))
    texts = {one.title for one in sessions.values() if one.title and match.search(one.title)}
    for handoff in (*home.handoffs.everything(), *home.handoffs.damaged()):
        found = excerpt_of(match, [handoff.content])
        if found is not None:
            texts.add(handoff.content)
            excerpts.append(Excerpt(handoff.id, found))
    words = [_tombstone(TombstoneKind.WORDS, words_value(key, text)) for text in sorted(texts)]
    return _Aim((*turns, *memories, *words), tuple(excerpts[:_EXCERPTS]))


_AIMS: dict[str, Callable[[Home, ForgetRequest, bytes], _Aim]] = {
    "session": _sessions_meant,
    "memory": _memories_meant,
    "project": _project_meant,
    "before": _time_meant,
    "match": _text_meant,
}


def _planned(home: Home, how: str, found: Affected, aim: _Aim, key: Tombstone) -> ForgetPlan:
    """Tombstones for all that goes, also for what goes with it, so that every machine comes to the same."""
    secret = bytes.fromhex(key.value)
    stones: dict[tuple[TombstoneKind, str], Tombstone] = {
        (one.kind, one.value): one for one in aim.tombstones
    }

    def add(more: Iterable[Tombstone]) -> None:
        stones.update(((one.kind, one.value), one) for one in more)

    add([key])
    for session in found.sessions:
        if how != "match":
            add([_tombstone(TombstoneKind.SESSION, session.id)])
        for place in home.erasing.places_in(session.row):
            is_needed = how == "match" or is_shared(
                place
            )  # a copy in another session is the same turn
            add(_turn_tombstones(secret, place) if is_needed else ())
    for rows in found.turns.values():
        for place in _in_pieces(home, rows):
            add(_turn_tombstones(secret, place))
    for memory in found.memories:
        words = words_value(secret, memory.content)
        add(
            [
                _tombstone(TombstoneKind.MEMORY, memory.id),
                _tombstone(TombstoneKind.WORDS, words, memory.id),
            ]
        )
    gone = {memory.id for memory in found.memories}
    retired = {memory.id for memory in found.retired}
    losing = [one for one in found.changed if one.id not in retired and _lost_evidence(home, one)]
    files = {session.file for session in (*found.sessions, *found.turns, *found.untitled)} | {
        one.source.file for one in found.memories
    }
    return ForgetPlan(
        how=how,
        tombstones=tuple(stones.values()),
        sessions={session.id: session.turns for session in found.sessions},
        parts={session.id: len(rows) for session, rows in found.turns.items()},
        memories=found.memories,
        losing=tuple(one for one in losing if one.id not in gone),
        released=tuple(found.retired),
        excerpts=aim.excerpts,
        untitled=tuple(session.id for session in found.untitled),
        handoffs=tuple(one.id for one in found.handoffs),
        files=tuple(sorted(file for file in files if file)),
    )


def _lost_evidence(home: Home, memory: Memory) -> bool:
    before = home.memories.find(memory.id)
    return before is not None and (before.source, before.confirmed) != (
        memory.source,
        memory.confirmed,
    )


def _turns_of(home: Home, key: bytes, session_id: str, turn_ids: set[str]) -> Iterator[Tombstone]:
    """Tombstones for turns of a session by their ids, also where the session is not in the index any more."""
    tool, _, native_id = session_id.partition(":")
    found = [one for one in home.sessions.find(session_id) if one.session.id == session_id]
    places = [
        place for one in found for place in home.erasing.places_in(one.row) if place.id in turn_ids
    ]
    for place in places:
        yield from _turn_tombstones(key, place)
    for turn_id in sorted(turn_ids - {place.id for place in places}):
        yield _tombstone(TombstoneKind.TURN, turn_value(key, tool, native_id, turn_id), session_id)


def _turn_tombstones(key: bytes, place: TurnPlace) -> Iterator[Tombstone]:
    owner = f"{place.tool}:{place.session_id}"
    native_id = "" if is_shared(place) else place.session_id
    yield _tombstone(TombstoneKind.TURN, turn_value(key, place.tool, native_id, place.id), owner)


def _in_pieces(home: Home, rows: Sequence[int]) -> Iterator[TurnPlace]:
    for start in range(0, len(rows), 500):
        yield from home.erasing.places_of(rows[start : start + 500])


def _tombstone(kind: TombstoneKind, value: str, owner: str = "") -> Tombstone:
    return Tombstone(kind, value, "", owner)


def _before(moment: datetime, key: bytes, project: str | None) -> Tombstone:
    scope = f" {project_value(key, project)}" if project else ""
    return _tombstone(TombstoneKind.BEFORE, f"{stamp(moment)}{scope}")


def _key(home: Home) -> Tombstone:
    """The key of the hashes: that of the first run, wherever it was; made anew where there is none."""
    keys = sorted(one.value for one in home.tombstones.all() if one.kind is TombstoneKind.KEY)
    made = keys[0] if keys else content_hash(home.ids() + home.ids()).hex()
    return _tombstone(TombstoneKind.KEY, made)


def _entries(change: Change, planned: ForgetPlan) -> list[files.LedgerEntry]:
    """The ledger's lines for a run, which has the id of the first: at most a thousand hashes each."""
    lines: list[dict[str, Any]] = [{}]
    held = 0
    for name, owner, hashes in _grouped(planned.tombstones):
        for start in range(0, max(1, len(hashes)), _HASHES_AN_ENTRY):
            if held >= _HASHES_AN_ENTRY:
                lines.append({})
                held = 0
            piece = hashes[start : start + _HASHES_AN_ENTRY]
            lines[-1].setdefault(name, {})[owner] = piece
            held += len(piece) + 1
    made = [change.entry(FORGET) for _ in lines]
    common = {"run": change.operation_id, "how": planned.how}
    single = {_SINGLE[one.kind]: one.value for one in planned.tombstones if one.kind in _SINGLE}
    words = [
        one.value for one in planned.tombstones if one.kind is TombstoneKind.WORDS and not one.owner
    ]
    lines[0] |= {**single, **({"words": words} if words else {})}
    return [replace(one, details={**common, **line}) for one, line in zip(made, lines, strict=True)]


def _grouped(tombstones: Sequence[Tombstone]) -> Iterator[tuple[str, str, list[str]]]:
    """(``sessions``, ``turns`` or ``memories``, whose, hashes)."""
    whole = {one.value for one in tombstones if one.kind is TombstoneKind.SESSION}
    memories: dict[str, list[str]] = {
        one.value: [] for one in tombstones if one.kind is TombstoneKind.MEMORY
    }
    turns: dict[str, list[str]] = {session: [] for session in sorted(whole)}
    for one in tombstones:
        if one.kind is TombstoneKind.TURN:
            turns.setdefault(one.owner, []).append(one.value)
        elif one.kind is TombstoneKind.WORDS and one.owner:
            memories.setdefault(one.owner, []).append(one.value)
    yield from (
        ("sessions" if owner in whole else "turns", owner, hashes)
        for owner, hashes in turns.items()
    )
    yield from (("memories", owner, hashes) for owner, hashes in memories.items())


def _told_run(run: str, items: Sequence[files.LedgerEntry], holding: set[str]) -> Forgotten:
    stones = {(one.kind, one.value): one for item in items for one in tombstones_of(item)}
    of = {kind: [one for one in stones.values() if one.kind is kind] for kind in TombstoneKind}
    before = next((one.value.partition(" ")[0] for one in of[TombstoneKind.BEFORE]), None)
    how = next((str(item.details["how"]) for item in items if item.details.get("how")), "")
    return Forgotten(
        run=run,
        at=min(item.at for item in items).astimezone(UTC),
        how=how,
        sessions=tuple(sorted(one.value for one in of[TombstoneKind.SESSION])),
        turns=len(of[TombstoneKind.TURN]),
        memories=len(of[TombstoneKind.MEMORY]),
        before=datetime.fromisoformat(before) if before and how == "before" else None,
        is_allowed=run not in holding,
    )


def _meant(
    home: Home, reference: str, runs: dict[str, Forgotten]
) -> tuple[list[str], dict[str, str]]:
    """The runs that are taken back, and of them the session or the memory, where it is not all."""
    found = [
        run for run in runs if run == reference or (len(reference) >= 4 and run.endswith(reference))
    ]
    if len(found) > 1:
        raise Conflict(
            f"{reference!r} means several runs: {', '.join(found)}", hint="give more of the id"
        )
    if found:
        return found, {}
    for kind, name in ((TombstoneKind.SESSION, "session"), (TombstoneKind.MEMORY, "memory")):
        of = sorted(
            {
                one.run
                for one in home.tombstones.all()
                if one.kind is kind and one.value == reference
            }
        )
        if of:
            return of, {name: reference}
    raise NotFound(
        f"nothing that was forgotten is called {reference!r}",
        hint="nacre forget --list shows what can be",
    )


# ----------------------------------------------------------------------------
# What is answered to requests to forget; :mod:`nacre.serve.catalogue` lists them.


def forget_answers(home: Home, request: ForgetRequest) -> ForgetReport:
    """Delete for good; the report says what could not be reached. Raises QueryInvalid, NotFound, Conflict."""
    return forget(home, plan(home, request))


def allow_again_answers(home: Home, request: AllowAgainRequest) -> Forgotten:
    """Let what was forgotten be read again, where a transcript still has it. Raises NotFound, Conflict."""
    return allow_again(home, request.reference)
