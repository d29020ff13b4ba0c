"""Permanent deletion ("forgetting"), and removal of secrets from stored data ("scrubbing")."""

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

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, content_hash
from nacre.base.request import Request
from nacre.base.text import to_bytes, to_text
from nacre.errors import (
    ConflictError,
    EditConflictError,
    InvalidMemoryError,
    InvalidQueryError,
    NotFoundError,
    UnusableVaultError,
)
from nacre.home.change import FEW, Change, Run, page_path
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.home.operations import apply_intents
from nacre.home.projects import REFERENCE_CHARACTERS, references_of
from nacre.home.spending import fold_notes
from nacre.learn import discovery
from nacre.learn.ingest import jobs_for, read_changed
from nacre.memories import erasure
from nacre.memories.edit import catch_up, read_written
from nacre.memories.erasure import (
    apply_tombstones,
    clear_traces,
    clear_words,
    erase_written_bytes,
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
    read_forgetting,
    standing_tombstones,
    survey,
    tombstones_of,
    turn_texts,
    turn_value,
    words_value,
)
from nacre.memories.usage import write_listings
from nacre.operations import operation
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

_MAX_TEXT_BYTES = 200_000_000


@dataclass(slots=True)
class Tally:
    """Counts the secrets that were found, separately for each place."""

    home: Home
    place: str = ""
    found: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    changed: Counter[str] = field(default_factory=Counter)

    def at(self, place: str) -> Tally:
        self.place = place
        return self

    def clean(self, text: str) -> str:
        """Remove and count the secrets in text."""
        redacted_text = self.home.redactor.redact(text)
        if redacted_text.found:
            self.found[self.place].update(redacted_text.found)
        return redacted_text.text if redacted_text.found else text

    def stored(self, text: str | None) -> str | None:
        return clean_stored(text, self.clean) if text else text


def clean_document(text: str, tally: Tally) -> str:
    """Remove secrets from a vault file. Each value in front matter is cleaned, so that the YAML remains valid."""
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
        if (new := clean_value(value, tally.clean)) != value
    }
    merged = merge(front, changed, []) if changed else front
    head = text[: len(text) - len(body)]
    return head.replace(front, tally.clean(merged), 1) + tally.clean(body)


def clean_lines(text: str, tally: Tally) -> str:
    """Remove secrets from text. JSON lines remain valid."""
    lines = text.split("\n")
    if not any(line[:1] in ("{", "[") for line in lines):
        return tally.clean(text)
    cleaned = [
        clean_stored(line, tally.clean) if line[:1] in ("{", "[") else tally.clean(line)
        for line in lines
    ]
    return "\n".join(cleaned)


def text_files(folder: Path, *, skipped: set[str]) -> Iterator[tuple[Path, str]]:
    """Yield the path and contents of each text file below a folder, without following links."""
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
# Changes are found without a lock. Then each part is read again and changed under the lock.


SCRUB = "scrub"
"""Name of the scrub operation in the ledger and history."""

REASON = "the rules of redaction"


def scrub_memories(home: Home, run: Run, tally: Tally, *, dry_run: bool) -> None:
    """Scrub the indexed memories and rewrite their files."""
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
    misnamed = [file.memory for file, _ in _misnamed(home, home.files.seen().values())]
    _in_parts(run, misnamed, _rename)


def scrub_files(home: Home, run: Run, tally: Tally, *, dry_run: bool) -> None:
    """Scrub the other vault files: comments, pages, manually written files, and the ledger."""
    changed = []
    for path, text in text_files(home.settings.vault, skipped={".git"}):
        if clean_document(text, tally) != text:
            tally.changed["files"] += 1
            changed.append(path.relative_to(home.settings.vault).as_posix())
    if not dry_run:
        _in_parts(run, changed, _clean)


def is_named_after_more(path: str, subject: str) -> bool:
    """Return True if a file name contains words that were redacted from its memory's subject."""
    if "[REDACTED:" not in subject and "[private]" not in subject:
        return False
    stem, slug = PurePosixPath(path).stem, slugify(subject)
    return not (stem == slug or re.fullmatch(r"-[0-9a-f]+", stem.removeprefix(slug)))


def _in_parts(
    run: Run, names: Sequence[str], work: Callable[[Change, Sequence[str]], None]
) -> None:
    """Call ``work`` with batches of names. Between batches, other processes can write."""
    for start in range(0, len(names), FEW):
        with run.part() as change:
            apply_intents(change.home)
            work(change, names[start : start + FEW])


def _redact(change: Change, memory_ids: Sequence[str]) -> None:
    """Load the current versions of memories, and redact them."""
    memories = (change.home.memories.find(memory_id) for memory_id in memory_ids)
    change.put([redact(change.home.redactor, memory) for memory in memories if memory])


def _misnamed(
    home: Home, files: Iterable[SeenMemoryFile]
) -> Iterator[tuple[SeenMemoryFile, Memory]]:
    """Yield memory files whose names contain words that were redacted from the memory."""
    for file in files:
        memory = home.memories.find(file.memory)
        if memory and is_named_after_more(file.path, memory.subject):
            yield file, memory


def _rename(change: Change, memory_ids: Sequence[str]) -> None:
    """Rename files of memories whose subjects contained a secret."""
    files = (change.home.files.file_of(memory_id) for memory_id in memory_ids)
    rename(change, _misnamed(change.home, [file for file in files if file]))


def rename(change: Change, misnamed: Iterable[tuple[SeenMemoryFile, Memory]]) -> list[str]:
    """Rename files after the subjects of their memories, and return the old paths."""
    home = change.home
    moves: list[tuple[Intent, Intent]] = []
    for file, memory in misnamed:
        text = to_text(home.vault.read(file.path))
        taken_paths = {write.path for write, _ in moves}

        def is_taken(path: str, taken_paths: Set[str] = taken_paths) -> bool:
            return path in taken_paths or home.files.is_taken(path)

        path = path_for(memory, is_taken)
        write = Intent("write", path, text, None, memory.id)
        moves.append((write, Intent("remove", file.path, base=file.hash, memory=memory.id)))
    with home.transaction():
        for write, remove in moves:
            home.files.forget(remove.path)
            data = to_bytes(write.document or "")
            home.files.save(
                SeenMemoryFile(write.path, write.memory or "", 0, len(data), bytes_hash(data))
            )
            change.intend((write, remove))
            if renamed := home.memories.find(write.memory or ""):
                home.memories.names.put(renamed)
    change.apply()
    with home.transaction():
        for write, remove in moves:
            home.journal.rename(remove.path, write.path)
    return [remove.path for _, remove in moves]


def _clean(change: Change, names: Sequence[str]) -> None:
    """Remove secrets from files, and index the files again."""
    home = change.home
    writes = [write for name in names if (write := _cleaned(home, name))]
    change.intend(writes)
    change.apply()
    with home.transaction():
        for write in writes:
            home.files.distrust(write.path)
    read_written(change, [write.path for write in writes])


def _cleaned(home: Home, name: str) -> Intent | None:
    """Return an :class:`Intent` that redacts a file, if necessary. The ledger is redacted immediately."""
    try:
        data = home.vault.read(name, whole=True)
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


# -- Removing a text from file names and links -----------------------------------------------------


def clear_reasons(change: Change, match: Pattern) -> None:
    """Remove the reason of each link whose reason contains a text."""
    home = change.home
    for memory in [*home.memories.everything()]:
        links = tuple(
            replace(link, reason=None) if match.search(link.reason or "") else link
            for link in memory.links
        )
        if links != memory.links:
            with suppress(
                EditConflictError
            ):  # another process is editing the file, which the report lists
                change.set_links(replace(memory, links=links))


def rename_files(change: Change, match: Pattern) -> None:
    """Rename memory files that contain a text in their name, but not in the memory's subject."""
    home = change.home
    misnamed = []
    for path, file in home.files.seen().items():
        memory = home.memories.find(file.memory) if is_in_path(match, path) else None
        if memory and not match.search(memory.subject):
            misnamed.append((file, memory))
    for path in rename(change, misnamed):
        home.vault.forget(path)


# -- Requests --------------------------------------------------------------------------------------


class ForgetRequest(Request):
    """The content to forget. Select the content with one field, or with ``project`` and ``before``."""

    sessions: Annotated[tuple[str, ...], bounds("Sessions, by their ids.")] = ()
    memories: Annotated[tuple[str, ...], bounds("Memories, by their ids or subjects.")] = ()
    project: Annotated[str | None, bounds("A whole project, by its slug.")] = None
    match: Annotated[str | None, bounds("Everything that contains this text.")] = None
    regex: Annotated[bool, bounds("The text is a regular expression.")] = False
    before: Annotated[datetime | None, bounds("Everything from before this day.")] = None

    @property
    def how(self) -> str:
        """The name of the criterion that selects the content."""
        ways = {
            "session": self.sessions,
            "memory": self.memories,
            "match": self.match is not None,
            "before" if self.before else "project": self.project or self.before,
        }
        chosen = [way for way, value in ways.items() if value]
        if len(chosen) != 1:
            raise InvalidQueryError(
                "nothing selected: give a session, memory, text, project or day",
                hint="nacre forget --session ID | --memory ID | --match TEXT | --project P | --before DATE",
            )
        return chosen[0]


class ScrubOptions(Request):
    """Apply the current redaction rules to all stored data."""

    dry_run: Annotated[bool, bounds("Show what would be removed, but change nothing.")] = False
    history: Annotated[
        bool, bounds("Also rewrite the vault's git history; all commits get new ids.")
    ] = False
    remove_copies: Annotated[bool, bounds("Also remove older copies of the database.")] = False
    vectors: Annotated[bool, bounds("If false, the next ingest computes the vectors.")] = True


# -- Remaining copies ------------------------------------------------------------------------------
# Places that nacre cannot change and that might still contain forgotten content, each with a remedy.


_DELETE_HINT = "delete it, or keep it knowingly"
_PROFILE = "profile.md"
_MAX_SEARCHED_BYTES = 64 * 1024 * 1024


def pattern_of(request: ForgetRequest | ForgetPlan) -> Pattern | None:
    """Return the search pattern of a request, or ``None``. Raises InvalidQueryError."""
    return None if request.match is None else Pattern(request.match, is_regex=request.regex)


def unreached(home: Home, plan: ForgetPlan) -> tuple[Unreached, ...]:
    """Return the places that might still contain the forgotten content."""
    match = pattern_of(plan)
    transcripts = [file for file in plan.files if Path(file).exists()]
    remedy = "delete the host's file yourself; nacre no longer reads it"
    return (
        *(Unreached("transcript", file, remedy) for file in transcripts),
        *_git(home),
        *_copies(home),
        *_pages(home, plan),
        *(_quoting(home, match) if match else ()),
        Unreached(
            "copies elsewhere",
            "exports, backups on other disks, file system snapshots",
            "other machines delete it at their next sync; delete other copies yourself",
        ),
    )


def _git(home: Home) -> Iterator[Unreached]:
    repository = home.settings.vault / ".git"
    if home.database.server or not repository.exists():
        return
    yield Unreached("git history", str(home.vault.root), "nacre admin scrub --history")
    with suppress(OSError):
        config = (repository / "config").read_text(encoding="utf-8", errors="replace")
        for line in config.splitlines():
            if line.strip().startswith("url"):
                remote = line.partition("=")[2].strip()
                yield Unreached(
                    "git remote", remote, "rewrite or delete its history and every clone"
                )


def _copies(home: Home) -> Iterator[Unreached]:
    database = home.settings.database
    copies = {*database.parent.glob(f"{database.name}.*"), *database.parent.glob("nacre-*.db")}
    for file in sorted(copies):
        if file.is_file():
            yield Unreached("older database", str(file), _DELETE_HINT)
    for file in sorted((home.settings.home / "archive").glob("*/*.damaged")):
        yield Unreached("damaged part of the archive", str(file), _DELETE_HINT)
    folder = home.settings.home / "backups"
    if folder.is_dir() and any(folder.iterdir()):
        yield Unreached("backup", str(folder), _DELETE_HINT)
    if home.database.server:
        yield Unreached(
            "the server's disk",
            "deleted data until it is overwritten; its log and backups",
            "ask the administrator to run VACUUM FULL and to expire older backups (docs/forgetting.md)",
        )


def _pages(home: Home, plan: ForgetPlan) -> Iterator[Unreached]:
    """Yield the pages on which nacre has written a line about a forgotten memory."""
    forgotten = {memory.id[-REFERENCE_CHARACTERS:] for memory in plan.memories}
    for path in (*(page_path(project.slug) for project in home.files.projects()), _PROFILE):
        try:
            text = to_text(home.vault.read(path))
        except (OSError, UnusableVaultError):
            continue
        if any(forgotten.intersection(references_of(line)) for line in text.splitlines()):
            yield Unreached(
                "summary",
                str(home.vault.root / path),
                "nacre dream --tier 3 --no-writer removes the line",
            )


def _quoting(home: Home, match: Pattern) -> Iterator[Unreached]:
    """Yield places that still contain the text: files, and sessions' folder or branch names."""
    home_path, database = home.settings.home, home.settings.database
    for file in sorted(home_path.rglob("*")):
        inside = file.relative_to(home_path).parts
        if (
            ".git" in inside
            or inside[0] in ("archive", "backups")
            or file.name.startswith(database.name)
        ):
            continue
        if file.is_symlink() or not file.is_file():
            continue
        with suppress(OSError):
            is_searched = file.stat().st_size <= _MAX_SEARCHED_BYTES
            if is_searched and match.search(file.read_text(encoding="utf-8", errors="replace")):
                yield Unreached("still contains it", str(file), "edit or delete the file")
    for path in still_saying(home, match):
        yield Unreached("still contains it", str(home.vault.root / path), "rewrite it")
    for session in home.erasing.sessions():
        if match.search(f"{session.cwd or ''}\n{session.branch or ''}"):
            yield Unreached(
                "session's folder or branch",
                session.id,
                "nacre forget --session ID removes the session",
            )


# -- Forgetting ------------------------------------------------------------------------------------
# A plan is shown and confirmed, recorded as tombstones, and carried out. Tombstones are stored before anything is
# deleted, so that the next command can complete an interrupted run.


_HASHES_PER_ENTRY = 1000
_SINGLE = {TombstoneKind.KEY: "key", TombstoneKind.BEFORE: "before"}
_MAX_EXCERPTS = 200


@frozen
class Deletion:
    """A plan to forget, with its tombstones.

    The tombstones include the hash key and never leave the process.
    """

    plan: ForgetPlan
    tombstones: tuple[Tombstone, ...]


@operation("forget-plan", owners=("regex",), command="forget")
def plan(home: Home, request: ForgetRequest) -> ForgetPlan:
    """Return the effects of forgetting without changing anything.

    Raises InvalidQueryError, NotFoundError, ConflictError.
    """
    return prepare(home, request).plan


def prepare(home: Home, request: ForgetRequest) -> Deletion:
    """Prepare a deletion for :func:`forget`. Raises InvalidQueryError, NotFoundError, ConflictError."""
    how = request.how
    catch_up(home)
    # The gateway's database can contain messages that are not ingested yet.
    transcripts = sessions_folder(home.settings.home).glob("*.jsonl")
    if jobs := jobs_for(home, discovery.look(home, transcripts).files):
        read_changed(home, jobs)
    key = _key(home)
    targets, excerpts = _AIMS[how](home, request, bytes.fromhex(key.value))
    barred = Barred([key, *targets])
    affected = survey(home, barred)
    match = pattern_of(request)
    traces = 0
    if match:  # traces that quote the text, including unanswered questions
        fold_notes(home)
        traces = home.traces.count_where(lambda text: match.search(text) is not None)
    planned = replace(
        _planned(home, how, affected),
        excerpts=tuple(excerpts),
        match=request.match,
        regex=request.regex,
        traces=traces,
        held=erasure.count_forgotten(home, barred, match),
        project=request.project if how == "project" else None,
    )
    return Deletion(planned, _tombstones(home, how, affected, targets, key))


def forget(home: Home, deletion: Deletion) -> ForgetReport:
    """Carry out a deletion. If it is interrupted, the next command completes it.

    The report lists places that could not be reached. Raises OwnerOnlyError.
    """
    home.actor.require_owner("nacre forget")
    fold_usage(home)
    planned = deletion.plan
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
            waiting = (candidate.memory for candidate in home.candidates.with_words())
            home.candidates.delete(
                [
                    candidate.id
                    for candidate in waiting
                    if excerpt_of(match, memory_texts(candidate)) is not None
                ]
            )
            clear_traces(home, lambda text: match.search(text) is not None)
            erasure.erase_quoting(home, match)
        with change.transaction():
            change.append(_entries(change, deletion))
            home.tombstones.set("erase", "1")
    apply_tombstones(home)
    if planned.project:
        home.database.run("delete_code_project", project=planned.project)
    write_listings(home)
    run = change.operation_id
    is_done = not home.files.has_intents() and run not in home.tombstones.due()
    return ForgetReport(
        run, planned, is_done and erase_written_bytes(home), unreached(home, planned)
    )


@operation("forgotten")
def forgotten(home: Home) -> list[Forgotten]:
    """Complete interrupted runs, and return past runs, latest first."""
    catch_up(home)
    erase_written_bytes(home)
    entries = list(read_forgetting(home))
    holding = {
        tombstone.run
        for tombstone in standing_tombstones(entries)
        if tombstone.kind is not TombstoneKind.KEY
    }
    runs: dict[str, list[files.LedgerEntry]] = {}
    for item in entries:
        if item.action == FORGET:
            runs.setdefault(str(item.details.get("run") or item.op), []).append(item)
    return sorted(
        (_forgotten_run(run, items, holding) for run, items in runs.items()),
        key=lambda item: item.run,
        reverse=True,
    )


@operation("forget-allow-again", writes=True, owners=True, command="forget --allow-again")
def allow_again(
    home: Home,
    reference: Annotated[str, bounds("The id of a run (or its end), a session or a memory.")],
) -> Forgotten:
    """Allow nacre to read forgotten content again, if a transcript still contains the content.

    Raises NotFoundError, ConflictError.
    """
    runs = {run.run: run for run in forgotten(home) if not run.is_allowed}
    of, owner = _matching_runs(home, reference.strip(), runs)
    with home.vault_lock:
        with home.change(ALLOW_AGAIN) as change, change.transaction():
            change.note(ALLOW_AGAIN, of=of, **owner)
        heed_ledger(home)
        home.erasing.delete_held_cursors()
    return runs[of[-1]]


_Aim = tuple[list[Tombstone], list[Excerpt]]
"""The tombstones that a request needs, and excerpts of the matches."""


def _sessions_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:  # noqa: ARG001 - shared signature
    references = request.sessions
    return [Tombstone(TombstoneKind.SESSION, _session_id(home, name)) for name in references], []


def _session_id(home: Home, reference: str) -> str:
    sessions = home.sessions.find(reference.strip())
    if len(sessions) > 1:
        names = ", ".join(session.session.id for session in sessions)
        raise ConflictError(
            f"{reference!r} matches several sessions: {names}",
            hint="give more characters of the id",
        )
    if sessions:
        return sessions[0].session.id
    remains = home.memories.known_of(reference.strip()) or home.handoffs.of_session(
        reference.strip()
    )
    if remains:  # the transcript is deleted, but memories or handoffs from the session exist
        return reference.strip()
    raise NotFoundError(f"there is no session {reference!r}", hint="nacre sessions list shows ids")


def _memories_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:
    """Return tombstones for memories, their copies, and the turns from which they were learned."""
    ids = home.erasing.alike([get(home, reference).id for reference in request.memories])
    memories = home.memories.in_any_state(ids)
    shown: dict[str, set[str]] = {}
    for memory in memories:
        again = ((confirmation.session, confirmation.turns) for confirmation in memory.confirmed)
        for session, turn_ids in ((memory.source.session, memory.source.turns), *again):
            if session:
                shown.setdefault(session, set()).update(turn_ids)
    turns = [
        tombstone
        for session, wanted_turns in shown.items()
        for tombstone in _turns_of(home, key, session, wanted_turns)
    ]
    return [Tombstone(TombstoneKind.MEMORY, memory.id) for memory in memories] + turns, []


def _project_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:
    slug = request.project or ""
    sessions = [stored.id for stored in home.erasing.sessions() if stored.project == slug]
    memories = [memory.id for memory in home.memories.everything() if memory.project == slug]
    if not sessions and not memories:
        raise NotFoundError(
            f"there is no project {slug!r}", hint="nacre list shows the projects of memories"
        )
    until = home.now() + timedelta(seconds=1)
    return [
        *(Tombstone(TombstoneKind.SESSION, session) for session in sessions),
        *(Tombstone(TombstoneKind.MEMORY, memory) for memory in memories),
        _before(until, key, slug),
    ], []


def _time_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:
    if request.before is None or request.before > home.now():
        raise InvalidQueryError(
            "that day is in the future", hint="nacre forget --project P forgets a whole project"
        )
    return [_before(request.before, key, request.project)], []


def _text_aim(home: Home, request: ForgetRequest, key: bytes) -> _Aim:
    match = Pattern(request.match or "", is_regex=request.regex)
    sessions = {session.row: session for session in home.erasing.sessions()}
    excerpts, rows = [], []
    for turn in home.erasing.turn_texts():
        excerpt = excerpt_of(match, turn_texts(turn))
        if excerpt is not None:
            rows.append(turn.row)
            excerpts.append(Excerpt(sessions[turn.session].id, excerpt))
    turns = [
        tombstone for place in _in_pieces(home, rows) for tombstone in _turn_tombstones(key, place)
    ]
    memories = []
    for memory in home.memories.everything():
        excerpt = excerpt_of(match, memory_texts(memory))
        if excerpt is not None:
            memories.append(Tombstone(TombstoneKind.MEMORY, memory.id))
            excerpts.append(Excerpt(memory.id, excerpt))
    texts = {
        session.title
        for session in sessions.values()
        if session.title and match.search(session.title)
    }
    for handoff in (*home.handoffs.everything(), *home.handoffs.damaged()):
        excerpt = excerpt_of(match, [handoff.content])
        if excerpt is not None:
            texts.add(handoff.content)
            excerpts.append(Excerpt(handoff.id, excerpt))
    words = [Tombstone(TombstoneKind.WORDS, words_value(key, text)) for text in sorted(texts)]
    return turns + memories + words, excerpts[:_MAX_EXCERPTS]


_AIMS: dict[str, Callable[[Home, ForgetRequest, bytes], _Aim]] = {
    "session": _sessions_aim,
    "memory": _memories_aim,
    "project": _project_aim,
    "before": _time_aim,
    "match": _text_aim,
}


def _tombstones(
    home: Home, how: str, affected: Affected, targets: Sequence[Tombstone], key: Tombstone
) -> tuple[Tombstone, ...]:
    """Return tombstones for all affected content. They have the same effect on all machines."""
    secret = bytes.fromhex(key.value)
    stones: dict[tuple[TombstoneKind, str], Tombstone] = {
        (tombstone.kind, tombstone.value): tombstone for tombstone in targets
    }

    def add(more: Iterable[Tombstone]) -> None:
        stones.update(((stone.kind, stone.value), stone) for stone in more)

    add([key])
    for session in affected.sessions:
        if how != "match":
            add([Tombstone(TombstoneKind.SESSION, session.id)])
        for place in home.erasing.places_in(session.row):
            is_needed = how == "match" or is_shared(
                place
            )  # a copy in another session counts as the same turn
            add(_turn_tombstones(secret, place) if is_needed else ())
    for rows in affected.turns.values():
        for place in _in_pieces(home, rows):
            add(_turn_tombstones(secret, place))
    for memory in affected.memories:
        words = words_value(secret, memory.content)
        add(
            [
                Tombstone(TombstoneKind.MEMORY, memory.id),
                Tombstone(TombstoneKind.WORDS, words, owner=memory.id),
            ]
        )
    return tuple(stones.values())


def _planned(home: Home, how: str, affected: Affected) -> ForgetPlan:
    gone_ids = {memory.id for memory in affected.memories}
    retired = {memory.id for memory in affected.retired}
    losing = [
        memory
        for memory in affected.changed
        if memory.id not in retired
        and (before := home.memories.find(memory.id))
        and (before.source, before.confirmed) != (memory.source, memory.confirmed)
    ]
    files = {
        session.file for session in (*affected.sessions, *affected.turns, *affected.untitled)
    } | {memory.source.file for memory in affected.memories}
    return ForgetPlan(
        how=how,
        sessions={session.id: session.turns for session in affected.sessions},
        parts={session.id: len(rows) for session, rows in affected.turns.items()},
        memories=affected.memories,
        losing=tuple(memory for memory in losing if memory.id not in gone_ids),
        released=tuple(affected.retired),
        untitled=tuple(session.id for session in affected.untitled),
        handoffs=tuple(handoff.id for handoff in affected.handoffs),
        files=tuple(sorted(file for file in files if file)),
    )


def _turns_of(home: Home, key: bytes, session_id: str, turn_ids: set[str]) -> Iterator[Tombstone]:
    """Yield tombstones for a session's turns, even if the session is no longer in the index."""
    tool, _, native_id = session_id.partition(":")
    sessions = [
        session for session in home.sessions.find(session_id) if session.session.id == session_id
    ]
    places = [
        place
        for session in sessions
        for place in home.erasing.places_in(session.row)
        if place.id in turn_ids
    ]
    for place in places:
        yield from _turn_tombstones(key, place)
    for turn_id in sorted(turn_ids - {place.id for place in places}):
        yield Tombstone(
            TombstoneKind.TURN, turn_value(key, tool, native_id, turn_id), owner=session_id
        )


def _turn_tombstones(key: bytes, place: TurnPlace) -> Iterator[Tombstone]:
    owner = f"{place.tool}:{place.session_id}"
    native_id = "" if is_shared(place) else place.session_id
    yield Tombstone(
        TombstoneKind.TURN, turn_value(key, place.tool, native_id, place.id), owner=owner
    )


def _in_pieces(home: Home, rows: Sequence[int]) -> Iterator[TurnPlace]:
    for start in range(0, len(rows), 500):
        yield from home.erasing.places_of(rows[start : start + 500])


def _before(moment: datetime, key: bytes, project: str | None) -> Tombstone:
    scope = f" {project_value(key, project)}" if project else ""
    return Tombstone(TombstoneKind.BEFORE, f"{stamp(moment)}{scope}")


def _key(home: Home) -> Tombstone:
    """Return the hash key, which the first run on any machine creates."""
    keys = sorted(stone.value for stone in home.tombstones.all() if stone.kind is TombstoneKind.KEY)
    key = keys[0] if keys else content_hash(home.ids() + home.ids()).hex()
    return Tombstone(TombstoneKind.KEY, key)


def _entries(change: Change, deletion: Deletion) -> list[files.LedgerEntry]:
    """Return a run's ledger entries. Each entry contains up to a thousand hashes.

    The first entry's id is the run's id.
    """
    lines: list[dict[str, Any]] = [{}]
    hashes_on_line = 0
    for name, owner, hashes in _grouped(deletion.tombstones):
        for start in range(0, max(1, len(hashes)), _HASHES_PER_ENTRY):
            if hashes_on_line >= _HASHES_PER_ENTRY:
                lines.append({})
                hashes_on_line = 0
            piece = hashes[start : start + _HASHES_PER_ENTRY]
            lines[-1].setdefault(name, {})[owner] = piece
            hashes_on_line += len(piece) + 1
    entries = [change.entry(FORGET) for _ in lines]
    common = {"run": change.operation_id, "how": deletion.plan.how}
    single = {
        _SINGLE[stone.kind]: stone.value for stone in deletion.tombstones if stone.kind in _SINGLE
    }
    words = [
        stone.value
        for stone in deletion.tombstones
        if stone.kind is TombstoneKind.WORDS and not stone.owner
    ]
    lines[0] |= {**single, **({"words": words} if words else {})}
    return [
        replace(stone, details={**common, **line})
        for stone, line in zip(entries, lines, strict=True)
    ]


def _grouped(tombstones: Sequence[Tombstone]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (kind, owner, hashes) with the kinds ``sessions``, ``turns`` and ``memories``."""
    whole = {stone.value for stone in tombstones if stone.kind is TombstoneKind.SESSION}
    memories: dict[str, list[str]] = {
        stone.value: [] for stone in tombstones if stone.kind is TombstoneKind.MEMORY
    }
    turns: dict[str, list[str]] = {session: [] for session in sorted(whole)}
    for stone in tombstones:
        if stone.kind is TombstoneKind.TURN:
            turns.setdefault(stone.owner, []).append(stone.value)
        elif stone.kind is TombstoneKind.WORDS and stone.owner:
            memories.setdefault(stone.owner, []).append(stone.value)
    yield from (
        ("sessions" if owner in whole else "turns", owner, hashes)
        for owner, hashes in turns.items()
    )
    yield from (("memories", owner, hashes) for owner, hashes in memories.items())


def _forgotten_run(run: str, items: Sequence[files.LedgerEntry], holding: set[str]) -> Forgotten:
    stones = {(stone.kind, stone.value): stone for item in items for stone in tombstones_of(item)}
    of = {
        kind: [stone for stone in stones.values() if stone.kind is kind] for kind in TombstoneKind
    }
    before = next((stone.value.partition(" ")[0] for stone in of[TombstoneKind.BEFORE]), None)
    how = next((str(item.details["how"]) for item in items if item.details.get("how")), "")
    return Forgotten(
        run=run,
        at=min(item.at for item in items).astimezone(UTC),
        how=how,
        sessions=tuple(sorted(stone.value for stone in of[TombstoneKind.SESSION])),
        turns=len(of[TombstoneKind.TURN]),
        memories=len(of[TombstoneKind.MEMORY]),
        before=datetime.fromisoformat(before) if before and how == "before" else None,
        is_allowed=run not in holding,
    )


def _matching_runs(
    home: Home, reference: str, runs: dict[str, Forgotten]
) -> tuple[list[str], dict[str, str]]:
    """Return the runs of ``nacre forget`` that match a reference to a run, session or memory."""
    matching = [
        run for run in runs if run == reference or (len(reference) >= 4 and run.endswith(reference))
    ]
    if len(matching) > 1:
        raise ConflictError(
            f"{reference!r} matches several deletions: {', '.join(matching)}",
            hint="give more characters of the id",
        )
    if matching:
        return matching, {}
    for kind, name in ((TombstoneKind.SESSION, "session"), (TombstoneKind.MEMORY, "memory")):
        of = sorted(
            {
                stone.run
                for stone in home.tombstones.all()
                if stone.kind is kind and stone.value == reference
            }
        )
        if of:
            return of, {name: reference}
    raise NotFoundError(
        f"no deletion matches {reference!r}",
        hint="nacre forget --list shows them",
    )


# -- Operations ----------------------------------------------------------------------------------


@operation("forget", writes=True, takes_long=True, owners=True)
def forget_answers(home: Home, request: ForgetRequest) -> ForgetReport:
    """Delete content permanently. The report lists places that could not be reached.

    Raises InvalidQueryError, NotFoundError, ConflictError.
    """
    return forget(home, prepare(home, request))
