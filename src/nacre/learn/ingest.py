"""Reading of transcripts into sessions and turns, followed by learning and embedding."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeGuard

from msgspec import structs

from nacre.base.bounds import bounds
from nacre.base.environment import install_hint
from nacre.base.ids import to_ms
from nacre.base.request import Request
from nacre.base.text import count, normalise, shorten, stems, written
from nacre.errors import InvalidInputError, NacreError
from nacre.home import workers
from nacre.home.archive import archive, missing, read_archived, read_index, withhold
from nacre.home.change import Exclusions, Run, part_of, resolve_project
from nacre.home.home import Home
from nacre.home.operations import memories_in_entry
from nacre.home.parsing import (
    Batch,
    Event,
    FileDone,
    FileFailed,
    Job,
    count_processes,
    kept_name,
    recognise,
)
from nacre.home.parsing import read_files as parsing_read_files
from nacre.home.spending import has_writer
from nacre.learn import discovery
from nacre.learn.discovery import FoundFile
from nacre.learn.estimate import Estimate, estimate_learning
from nacre.learn.explicit import SURE, is_stated, limit_score
from nacre.learn.learn import learn
from nacre.learn.pasted import reads_as_rule
from nacre.learn.reading import may_be_others
from nacre.learn.sentences import Statement, language_of, utterances
from nacre.memories import projects
from nacre.memories import store as remembering
from nacre.memories.edit import catch_up
from nacre.memories.erasure import erase_written_bytes
from nacre.memories.requests import StoreRequest, distrust
from nacre.memories.statements import adds, read
from nacre.memories.store import OwnerWords, Rehearsal
from nacre.memories.tombstones import Gate
from nacre.memories.usage import fold_usage
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.readers import gemini_cli
from nacre.readers.adapter import Root
from nacre.readers.conversation import memories_made
from nacre.readers.generic import TOOL_MARKDOWN
from nacre.readers.registry import is_guess
from nacre.recall.pins import check_pins
from nacre.store.sessions import TurnBatch
from nacre.values.memory import Kind, SessionFilter, Source
from nacre.values.reports import (
    IngestPlan,
    IngestReport,
    OnProgress,
    Problem,
    Progress,
    StoreOutcome,
)
from nacre.values.session import Cursor, Session, StoredSession, Trust, Turn
from nacre.vault import files
from nacre.vault.files import LEDGER


@dataclass(slots=True)
class ReadTally:
    """Counts and problems of a run that reads transcripts."""

    files: int = 0
    turns: int = 0
    skipped: int = 0
    unrecognised: int = 0
    bytes_done: int = 0
    bytes_read: int = 0
    corrupt: int = 0
    oversized: int = 0
    sessions: set[int] = field(default_factory=set)
    left_out: set[Path] = field(default_factory=set)
    withheld: set[Path] = field(default_factory=set)
    """Paths of files with content that must not be archived."""

    distrusted: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of a session id and the end of a memory id, for memories that come from external text."""

    tools: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    unread: dict[str, list[str]] = field(default_factory=dict)
    """Names of files in unknown formats, keyed by the tool's label."""

    excluded: dict[str, str] = field(default_factory=dict)
    """Reason for each exclusion (``tool``, ``project`` or ``path``), keyed by file or session."""

    def count_done(self, event: FileDone) -> None:
        self.files += 1
        self.bytes_done += event.size
        self.bytes_read += event.bytes_read
        self.tools[event.tool] += 1
        self.unknown.update(event.tally.unknown)
        self.corrupt += event.tally.corrupt + event.tally.oversized
        self.oversized += event.tally.oversized

    def count_failed(self, event: FileFailed) -> None:
        self.bytes_done += event.size
        if event.is_excluded:
            self.excluded[str(event.path)] = "tool"
        elif event.is_own:
            self.excluded[str(event.path)] = "nacre's own call"
        elif event.problem:
            self.problems.append(event.problem)
        else:
            self.unrecognised += 1
            self.empty += [str(event.path)] if event.is_empty else []
            if event.unread_of:
                self.unread.setdefault(event.unread_of, []).append(event.path.name)

    def in_report(self) -> dict[str, Any]:
        """Return the counts as fields of :class:`IngestReport`."""
        return {
            "files": self.files,
            "sessions": len(self.sessions),
            "turns": self.turns,
            "bytes_read": self.bytes_read,
            "skipped": self.skipped + self.unrecognised,
            "unrecognised": self.unrecognised,
            "left_out": len(self.left_out),
            "tools": dict(self.tools),
            "unknown": dict(self.unknown),
            "corrupt": self.corrupt,
            "oversized": self.oversized,
            "excluded": dict(Counter(self.excluded.values())),
            "empty": tuple(self.empty),
            "unread": tuple(
                f"not understood: {count(len(names), 'file')} of {label} "
                f"({shorten(', '.join(names), 160)}); update nacre, or {install_hint('extras')}"
                for label, names in self.unread.items()
            ),
            "problems": tuple(self.problems),
        }


# -- Storage of sessions and turns -----------------------------------------------------------------


COMMIT_TURNS = 400
"""Number of turns per transaction. Each transaction blocks other writers for about 30 ms."""

_LOCK_PAUSE_SECONDS = 0.005


class TurnStore:
    """A store for new sessions and turns that leaves out excluded and forgotten content."""

    def __init__(
        self, home: Home, run: Run | None, exclusions: Exclusions, tally: ReadTally
    ) -> None:
        self._home = home
        self._run = run
        self._exclusions = exclusions
        self._tally = tally
        self._gate = Gate(home)
        self._projects: Mapping[Session, str | None] = {}
        self._touched: set[int] = set()
        self._batches: list[TurnBatch] = []

    def store_all(self, events: Iterable[Event], on_commit: Callable[[float], None]) -> None:
        """Store the sessions and turns in ``events``, and pass the elapsed time to ``on_commit``."""
        self._home.database.relax()
        try:
            started = time.perf_counter()
            pending: list[Batch | FileDone] = []
            size = 0
            stored_at = 0.0
            for event in events:
                if self._is_kept(event):
                    pending.append(event)
                    size += len(event.turns) if isinstance(event, Batch) else 1
                if size >= COMMIT_TURNS:
                    # Processes that wait for the lock retry every few milliseconds.
                    time.sleep(max(0.0, stored_at + _LOCK_PAUSE_SECONDS - time.perf_counter()))
                    self._store(pending)
                    pending, size = [], 0
                    stored_at = time.perf_counter()
                    on_commit(stored_at - started)
            self._store(pending)
        finally:
            self._home.database.tighten()

    def _is_kept(self, event: Event) -> TypeGuard[Batch | FileDone]:
        if isinstance(event, FileFailed):
            self._tally.count_failed(event)
            return False
        if isinstance(event, Batch) and (why := self._exclusions.reason(self._home, event.session)):
            self._tally.excluded[event.session.id] = why
            self._tally.withheld.add(event.path)
            return False
        return True

    def _store(self, events: Sequence[Batch | FileDone]) -> None:
        self._home.check_place()
        self._gate.refresh()
        batches = [event for event in events if isinstance(event, Batch)]
        sessions = dict.fromkeys(
            batch.session for batch in batches if self._gate.admits(batch.session)
        )
        # A project named in a file takes precedence over the file's folder.
        named_projects = {batch.session: batch.project for batch in batches if batch.project}
        self._projects = {
            session: resolve_project(self._home, session, run=self._run) for session in sessions
        } | {session: project for session, project in named_projects.items() if session in sessions}
        self._touched.clear()
        self._batches.clear()
        with self._home.database.transaction():
            self._gate.refresh()  # another process might have forgotten content
            for event in events:
                self._home.database.yield_write_lock(self._flush)
                if isinstance(event, Batch):
                    self._add(event)
                else:
                    self._finish_file(event)
            self._flush()
        for event in events:
            if isinstance(event, FileDone):
                self._tally.count_done(event)

    def _add(self, batch: Batch) -> None:
        session = batch.session
        if session not in self._projects or not self._gate.admits(session):
            self._tally.left_out.add(batch.path)
            return
        if self._is_copy(session):
            return
        project = self._projects[session]
        turns = self._gate.filter_turns(session, project, batch.turns)
        titled = self._gate.clean_title(session)
        if len(turns) < len(batch.turns) or titled != session:
            self._tally.left_out.add(batch.path)
            if not turns and not self._home.sessions.find(session.id):
                return
        row = self._home.sessions.upsert(
            titled,
            project=project,
            file=self._name_of(batch),
            is_stated=bool(batch.project or session.repository),
        )
        self._tally.distrusted.update(
            (session.id, id_end)
            for turn in turns
            if turn.trust is Trust.UNTRUSTED
            for id_end in memories_made((turn,))
        )
        if turns:
            self._batches.append((session.tool, row, turns))
        self._touched.add(row)

    def _is_copy(self, session: Session) -> bool:
        sessions = self._home.sessions
        if session.tool == TOOL_MARKDOWN:
            return any(
                row.session.native_id == session.native_id and not is_guess(row.session.tool)
                for row in sessions.find(session.native_id)
            )
        # The original replaces an exported copy.
        if copy := find_session(self._home, f"{TOOL_MARKDOWN}:{session.native_id}"):
            self._flush()
            erasing = self._home.erasing
            erasing.delete_turns(copy.row, [place.row for place in erasing.places_in(copy.row)])
            erasing.delete_sessions([copy.row])
        return False

    def _finish_file(self, event: FileDone) -> None:
        name = self._name_of(event)
        stored_cursor = self._home.sessions.cursor(name)
        if stored_cursor and stored_cursor[0] != event.tool and is_guess(stored_cursor[0]):
            self._flush()
            self._touched |= self._home.sessions.retain(stored_cursor[0], name, {})
        if event.present is not None:
            self._flush()
            self._touched |= self._home.sessions.retain(event.tool, name, event.present)
        left_out = event.path in self._tally.left_out
        cursor = replace(event.cursor, offset=0, carry={}) if left_out else event.cursor
        goes_on = event.present is None and event.bytes_read < event.cursor.size
        self._home.sessions.save_cursor(name, event.tool, cursor, event.tally, goes_on=goes_on)
        if left_out or event.path in self._tally.withheld:
            withhold(self._home, [(event.tool, name)])

    def _flush(self) -> None:
        for (_, row, _), added in zip(
            self._batches, self._home.sessions.add_batches(self._batches), strict=True
        ):
            self._tally.turns += added
            if added:
                self._tally.sessions.add(row)
        self._batches.clear()
        self._home.sessions.refresh(sorted(self._touched))
        self._touched.clear()

    def _name_of(self, event: Batch | FileDone) -> str:
        return kept_name(self._home.redactor, str(event.path))


# -- Reading of transcripts ------------------------------------------------------------------------


def jobs_for(
    home: Home, files: Sequence[FoundFile], tally: ReadTally | None = None, *, force: bool = False
) -> list[Job]:
    """Return a reading job for each new or changed file, or for every file if ``force`` is True."""
    jobs = []
    identities = tuple(home.settings.texts("owner.identities"))
    for file in files:
        stored_cursor = _cursor(home, file.path)
        if (
            stored_cursor
            and not force
            and (stored_cursor[1].size, stored_cursor[1].mtime_ns) == (file.size, file.mtime_ns)
        ):
            if tally:
                tally.skipped += 1
            continue
        tool, cursor = stored_cursor if stored_cursor and not force else (None, None)
        jobs.append(
            Job(
                file.path,
                file.size,
                tool,
                cursor,
                file.is_named,
                file.expected_of,
                file.mtime_ns,
                identities,
            )
        )
    return jobs


def read_jobs(
    home: Home, run: Run | None, jobs: Sequence[Job], tally: ReadTally, notify: OnProgress
) -> None:
    """Read transcripts and store their sessions and turns."""
    total = sum(job.size for job in jobs)
    exclusions = Exclusions(home.settings)

    def on_commit(seconds: float) -> None:
        rate = tally.bytes_done / 1_000_000 / seconds
        note = f"{tally.files:,} of {len(jobs):,} files, {tally.turns:,} turns, {rate:.0f} MB/s"
        notify(Progress("reading", tally.bytes_done, total, note))

    TurnStore(home, run, exclusions, tally).store_all(_events(home, jobs, exclusions), on_commit)
    _find_hashed_folders(home, run)
    distrust(home, run, sorted(tally.distrusted))
    notify(Progress("reading", total, total, f"{tally.turns:,} turns"))


def _find_hashed_folders(home: Home, run: Run | None) -> None:
    """Find the folders of Gemini CLI sessions, which record only a hash of their folder."""
    unplaced = home.sessions.without_folder(gemini_cli.TOOL)
    paths = map(Path, home.sessions.folders() if unplaced else ())
    folders = {str(folder) for path in paths for folder in (path, *path.parents)}
    for stored in map(home.sessions.get, unplaced):
        if folder := gemini_cli.folder_of_hash(stored.file or "", folders):
            placed = replace(stored.session, cwd=folder)
            project = resolve_project(home, placed, run=run)
            home.sessions.upsert(placed, project=project, file=stored.file)


def _cursor(home: Home, path: Path) -> tuple[str, Cursor] | None:
    cursor = home.sessions.cursor(str(path))
    # The redacted name comes second, because redaction is slow.
    redacted_name = str(path) if cursor else kept_name(home.redactor, str(path))
    return cursor or (home.sessions.cursor(redacted_name) if redacted_name != str(path) else None)


def _events(home: Home, jobs: Sequence[Job], exclusions: Exclusions) -> Iterator[Event]:
    settings = home.settings
    processes = count_processes(jobs, settings.whole("ingest.workers"))
    if processes == 1:
        return parsing_read_files(jobs, home.redactor, exclusions.tools)
    return workers.read_in_processes(
        jobs, home.redactor, settings.redaction, exclusions.tools, processes
    )


# -- Requests --------------------------------------------------------------------------------------


class IngestOptions(Request):
    """Options for reading transcripts.

    Without ``paths``, nacre looks in the usual places. Given paths are recorded, so that a rebuild
    reads them again. Files in ``paths`` can have any name.
    """

    paths: Annotated[
        tuple[Path, ...], bounds("Files and folders; default: all that discovery finds.")
    ] = ()
    discover: Annotated[bool, bounds("Run discovery in addition to the paths.")] = False
    remember_paths: Annotated[bool, bounds("Record the paths for a rebuild.")] = True
    extract: Annotated[bool, bounds("Learn memories from the new turns.")] = True
    vectors: Annotated[bool, bounds("Compute vectors for new texts.")] = True
    force: Annotated[
        bool,
        bounds("Read files again from the start; known turns and memories do not change."),
    ] = False
    older: Annotated[
        bool,
        bounds("Let the writer also read sessions from before it was set, within its budget."),
    ] = False
    from_archive: Annotated[
        bool, bounds("Also read archived transcripts whose files are gone.")
    ] = False
    reads: Annotated[bool, bounds("False: learn only from turns that were read before.")] = True
    vector_seconds: Annotated[
        float | None, bounds("Time limit for vectors in seconds; default: none.")
    ] = None
    puts_off: Annotated[bool, bounds("Skip sessions that watch.changed_since postpones.")] = False


# -- Ingest: transcripts, sessions in the index, memories in the vault, vectors --------------------


@operation("ingest", writes=True, takes_long=True, owners=("paths", "older"))
def ingest(
    home: Home,
    options: IngestOptions | None = None,
    on_progress: OnProgress = lambda _: None,
    *,
    run: Run | None = None,
) -> IngestReport:
    """Read transcripts, learn memories from new turns, and embed the new texts.

    The texts are searchable before the learning starts. If ``run`` is given, the changes belong to
    this operation. Unreadable files are reported and skipped. Raises NotFoundError for a missing
    path, and InvalidInputError if older sessions are not available.
    """
    if run is None:
        with home.run("ingest") as own:
            return ingest(home, options, on_progress, run=own)
    options = options or IngestOptions()
    if options.older:
        check_older(home, options)
    return _Ingest(home, run, options, on_progress).complete()


def check_older(home: Home, options: IngestOptions) -> None:
    """Raise InvalidInputError if no writer can read older sessions."""
    if not options.extract:
        raise InvalidInputError(
            "older sessions are only read to learn memories", hint="leave out --no-extract"
        )
    if not home.settings.flag("extraction.enabled"):
        raise InvalidInputError(
            "extraction is turned off, so no writer reads sessions",
            hint="nacre config set extraction.enabled true",
        )
    if not has_writer(home.settings):
        raise InvalidInputError("no writer is set to read older sessions", hint="nacre writer set")
    if home.settings.flag("writer.paused"):
        message = "the writer is paused and reads no older sessions now"
        raise InvalidInputError(message, hint="see nacre writer")


class _Ingest:
    def __init__(self, home: Home, run: Run, options: IngestOptions, notify: OnProgress) -> None:
        self._home = home
        self._run = run
        self._options = options
        self._notify = notify
        self._tally = ReadTally()
        self._hints: tuple[str, ...] = ()

    def complete(self) -> IngestReport:
        began, started, options = self._home.now(), time.perf_counter(), self._options
        catch_up(self._home)
        # The temporary database of a rebuild might be discarded, so it must not consume the usage spool.
        if not options.from_archive:
            fold_usage(self._home)
        self._read()
        report, tally = self._learn(), self._tally.in_report()
        tally["problems"] += report.problems
        tally["unread"] += tuple(discovery.missing_readers(self._home))
        report = replace(report, **tally, hints=self._hints)
        if options.paths and options.remember_paths and report.files:
            _note_paths(self._home, self._run, options.paths, report.memories)
        report = replace(report, archived=archive(self._home, self._notify))
        report = self._embed(report)
        erase_written_bytes(self._home)
        check_pins(self._home)
        self._home.sessions.save_ingest(
            self._home.ids(),
            to_ms(began) or 0,
            self._home.now_ms(),
            files=report.files,
            sessions=report.sessions,
            turns=report.turns,
            memories=len(report.memories),
            skipped=report.skipped,
        )
        return replace(report, seconds=time.perf_counter() - started)

    def _read(self) -> None:
        options, home = self._options, self._home
        discovers = options.reads and (options.discover or not options.paths)
        findings = _findings(home, options) if options.reads else None
        known_projects, before = discovery.projects_of(home), _facts(home)
        jobs = self._jobs(findings)
        if options.from_archive:
            self._tally.problems += [
                Problem("archive", problem, "nacre admin doctor --deep")
                for problem in read_index(home)
            ]
            states = missing(home)
            exclusions = Exclusions(home.settings)
            included = [state for state in states if state.tool not in exclusions.tools]

            def on_commit(_: float) -> None:
                self._notify(
                    Progress("reading", self._tally.turns, self._tally.turns, "the archive")
                )

            TurnStore(home, self._run, exclusions, self._tally).store_all(
                read_archived(home, included), on_commit
            )
            held_back = self._tally.left_out | self._tally.withheld
            with home.transaction():
                withhold(
                    home,
                    [(state.tool, state.path) for state in states if Path(state.path) in held_back],
                )
            self._tally.files += len(states)
        read_jobs(home, self._run, jobs, self._tally, self._notify)
        if discovers and (new_projects := discovery.projects_of(home) - known_projects):
            jobs = self._jobs(discovery.find_in_projects(home, new_projects))
            read_jobs(home, self._run, jobs, self._tally, self._notify)
        if _facts(home) != before:
            projects.settle(home, self._run)
            self._hints = tuple(projects.rename_hints(home).values())

    def _jobs(self, findings: discovery.Findings | None) -> list[Job]:
        if findings is None:
            return []
        if self._options.puts_off:
            findings = discovery.without_put_off(self._home, findings)
        self._tally.problems += findings.problems
        return jobs_for(self._home, findings.files, self._tally, force=self._options.force)

    def _learn(self) -> IngestReport:
        if not (self._options.extract and self._home.settings.flag("extraction.enabled")):
            return IngestReport()
        return learn(self._home, self._notify, run=self._run, older=self._options.older)

    def _embed(self, report: IngestReport) -> IngestReport:
        if not self._options.vectors:
            return report
        seconds = self._options.vector_seconds
        result = embed_pending(
            self._home, self._notify, seconds=math.inf if seconds is None else seconds
        )
        return replace(
            report, vectors_made=result.made, vectors_left=result.left, vectors_note=result.note
        )


def _facts(home: Home) -> tuple[object, object]:
    return home.project_contents.places(), home.files.project_keys()


def list_named_paths(home: Home) -> set[Path]:
    """Return the paths given to earlier ingests, as recorded in the ledger."""
    try:
        entries = list(files.read(home.vault.read(LEDGER)))
    except FileNotFoundError:
        return set()
    path_lists = [item.details.get("paths") for item in entries if item.action == "ingest"]
    return {
        Path(path)
        for paths in path_lists
        if isinstance(paths, list)
        for path in paths
        if isinstance(path, str)
    }


def _note_paths(home: Home, run: Run, paths: Sequence[Path], memories: Sequence[str]) -> None:
    absolute = [str(path.absolute()) for path in paths]
    recorded = list_named_paths(home)
    fresh = [path for path in absolute if Path(path) not in recorded]
    if fresh:
        with part_of(home, run, "ingest") as change:
            change.note("ingest", paths=fresh, **memories_in_entry(memories))
            change.explain(None if memories else f"{fresh[0]} was read")


def read_changed(home: Home, jobs: Sequence[Job]) -> IngestReport:
    """Make the transcripts of ``jobs`` searchable without learning from them."""
    started = time.perf_counter()
    tally = ReadTally()
    read_jobs(home, None, jobs, tally, lambda _: None)
    return IngestReport(**tally.in_report(), seconds=time.perf_counter() - started)


# -- Plans and estimates ---------------------------------------------------------------------------


@operation("ingest-plan")
def plan(home: Home, options: IngestOptions) -> IngestPlan:
    """Estimate what an ingest would read, without changing anything. Raises NotFoundError."""
    findings = _findings(home, options)
    tally = ReadTally(problems=findings.problems)
    unread = sum(
        _unread_bytes(home, job, tally)
        for job in jobs_for(home, findings.files, tally, force=options.force)
    )
    report = tally.in_report()
    return IngestPlan(
        files=tally.tools.total(),
        bytes=unread,
        **{
            name: report[name]
            for name in ("tools", "skipped", "unrecognised", "excluded", "problems")
        },
    )


def _unread_bytes(home: Home, job: Job, tally: ReadTally) -> int:
    try:
        adapter = recognise(job)
    except NacreError as error:
        problem = error.message.removeprefix(f"{job.path} ")
        tally.problems.append(Problem(str(job.path), problem, error.hint))
        return 0
    if adapter is None:
        tally.unrecognised += 1
        return 0
    if adapter.tool in home.settings.texts("ingest.exclude_tools"):
        tally.excluded[str(job.path)] = "tool"
        return 0
    tally.tools[adapter.tool] += 1
    return job.size if adapter.whole else job.unread


@operation("ingest-estimate", takes_long=True)
def estimate(home: Home, options: IngestOptions) -> Estimate:
    """Estimate the cost of learning from new turns, and store nothing.

    Raises NotFoundError for a path that does not exist.
    """
    findings = _findings(home, options)
    problems = list(findings.problems)
    jobs = jobs_for(home, findings.files, force=options.force)
    return estimate_learning(
        home, iter_unstored(home, jobs, problems), problems, older=options.older
    )


def _findings(home: Home, options: IngestOptions) -> discovery.Findings:
    return discovery.find(home, options.paths, with_discovery=options.discover or not options.paths)


def iter_unstored(
    home: Home, jobs: Sequence[Job], problems: list[Problem]
) -> Iterator[tuple[Session, Sequence[Turn]]]:
    """Read the transcripts of ``jobs`` and yield their sessions, without storing anything."""
    exclusions = Exclusions(home.settings)
    gate = Gate(home)
    sessions: dict[Session, list[Turn]] = {}
    for event in parsing_read_files(jobs, home.redactor, exclusions.tools):
        if isinstance(event, FileFailed):
            problems += [event.problem] if event.problem else []
        elif isinstance(event, FileDone):
            yield from sessions.items()
            sessions = {}
        elif not exclusions.reason(home, event.session) and gate.admits(event.session):
            sessions.setdefault(event.session, []).extend(event.turns)


# -- Reading of running sessions -------------------------------------------------------------------
# Only the session's own transcript is read, starting at the saved cursor. Because any process can run a hook, the path
# in a hook's input can only select a file that the tool's readers would find.


RECENT_SECONDS = 86_400
_MAX_FILES = 20
_MAX_BYTES = 50_000_000
"""Maximum number of bytes to read here. ``nacre ingest`` reads more and shows its progress."""


def read_session(home: Home, session: str, transcript: str | None = None) -> StoredSession | None:
    """Store a session's new turns and return the session, or ``None`` if it is unknown.

    Unless ``transcript`` is in a folder of the tool, read the session's known file, or else the
    tool's files of the last day.
    """
    tool = session.partition(":")[0]
    path = _own_transcript(home, tool, transcript)
    if path and os.path.isfile(path):
        read_files(home, [path], tool)
        # Some hosts report a session id that differs from the one in the transcript.
        newest = home.sessions.newest(SessionFilter(), limit=_MAX_FILES)
        return find_session(home, session) or next(
            (row for row in newest if row.file == str(path)), None
        )
    stored = find_session(home, session)
    file = stored.file if stored else None
    read_files(
        home, [Path(file)] if file and os.path.isfile(file) else _recent_files(home, tool), tool
    )
    return find_session(home, session)


def _own_transcript(home: Home, tool: str, transcript: str | None) -> Path | None:
    if not transcript or not os.path.isabs(transcript):
        return None
    try:
        real = Path(os.path.realpath(transcript))
    except (OSError, ValueError):
        return None
    for root in _roots(home, tool):
        folder = os.path.realpath(root.folder)
        if real.is_relative_to(folder):
            path = root.folder / real.relative_to(folder)
            if discovery.fits(root, path):
                return path
    return None


def read_files(home: Home, paths: list[Path], tool: str | None = None) -> IngestReport | None:
    """Read the changed transcripts in ``paths``, or only the latest if there are too many."""
    files = discovery.look(home, paths).files[-_MAX_FILES:]
    jobs = [replace(job, reader=tool) for job in jobs_for(home, files)]
    while len(jobs) > 1 and sum(job.unread for job in jobs) > _MAX_BYTES:
        jobs = jobs[1:]
    return read_changed(home, jobs) if jobs else None


def read_recent(home: Home, tool: str | None = None, but: str | None = None) -> IngestReport | None:
    """Read the transcripts of the last day from one tool or all tools, except the path ``but``."""
    return read_files(home, [path for path in _recent_files(home, tool) if str(path) != but], tool)


def find_session(home: Home, session: str) -> StoredSession | None:
    """Return the stored session with the given id, or ``None``."""
    return next((row for row in home.sessions.find(session) if row.session.id == session), None)


def _recent_files(home: Home, tool: str | None) -> list[Path]:
    return [
        path
        for root in _roots(home, tool)
        for path in discovery.below(root)
        if _is_recent(home, path)
    ]


def _roots(home: Home, tool: str | None) -> Iterator[Root]:
    roots = discovery.tool_roots(home, discovery.projects_of(home), [])
    return (root for adapter, root in roots if tool in (None, adapter.tool))


def _is_recent(home: Home, path: Path) -> bool:
    try:
        changed = discovery.footprint(path)[1]
    except OSError:
        return False
    return home.clock().timestamp() - changed / 1e9 < RECENT_SECONDS


# -- Storing for an agent --------------------------------------------------------------------------
# Web pages can make an agent store something, so the agent's word is not enough. If the owner typed a memory
# verbatim in the current session, the memory is the owner's and gets the time of that turn. Otherwise the memory is
# only the agent's proposal, because reordered or partial words can mean the opposite.


_RECENT_PERIOD = timedelta(days=1)
_MAX_SESSIONS = 20
_MIN_QUOTE_CHARACTERS = 12
"""Minimum length of a quote. Shorter ones, such as "yes, do that", mean nothing alone."""


@operation("store", writes=True, by_key=True)
def store(home: Home, new: StoreRequest) -> StoreOutcome:
    """Store a memory (see :func:`nacre.memories.store.store`). Raises InvalidMemoryError."""
    new, statement = _with_speaker(home, new)
    outcome = remembering.store(home, new, statement)
    return replace(
        outcome, proposed=outcome.action == "stored" and statement is None and home.actor.is_agent
    )


@operation("store-rehearse", by_key=True)
def rehearse(home: Home, new: StoreRequest) -> Rehearsal:
    """Describe what :func:`store` would do, and why, without writing. Raises InvalidMemoryError."""
    new, statement = _with_speaker(home, new)
    return remembering.rehearse(home, new, statement)


def _with_speaker(home: Home, new: StoreRequest) -> tuple[StoreRequest, OwnerWords | None]:
    session = new.source.session or home.settings.session
    if not (new.quote and home.actor.is_agent) or len(new.quote.strip()) < _MIN_QUOTE_CHARACTERS:
        return new, None
    project = remembering.project_asked_for(home, new)
    for stored in _sessions(home, session):
        if stored.project and project not in (None, stored.project):
            continue
        for turn, statements in _turns_with_quote(home, stored, new):
            texts = [statement.text for statement in statements]
            is_named = all(stems(trigger) in stems(new.content) for trigger in new.triggers)
            if is_named and _is_verbatim(texts, new.content):
                if new.subject and adds(new.subject, [*texts, new.content]) is not None:
                    new = structs.replace(new, subject=None)
                new = structs.replace(new, project=stored.project or new.project)
                is_mixed = any(statement.mixed for statement in statements)
                return new, OwnerWords(Source(stored.session.id, (turn.id,)), turn.time, is_mixed)
    return new, None


def _sessions(home: Home, session: str | None) -> Iterator[StoredSession]:
    if session:
        stored = read_session(home, session)
        yield from [stored] if stored else []
        return
    # The host does not name the session.
    read_recent(home)
    yield from home.sessions.newest(
        SessionFilter(since=home.now() - _RECENT_PERIOD), limit=_MAX_SESSIONS
    )


def _turns_with_quote(
    home: Home, session: StoredSession, new: StoreRequest
) -> Iterator[tuple[Turn, Sequence[Statement]]]:
    turns = home.sessions.all_turns(session.row)
    spoken = utterances(turns)
    is_rule = new.kind is Kind.PREFERENCE or reads_as_rule(new.content)
    for at in reversed(range(len(spoken))):
        texts = [statement.text for statement in spoken[at].statements]
        covered = _covering(texts, normalise(new.quote or ""))
        if not covered or limit_score(spoken, at, covered.stop - 1) < SURE:
            continue
        statements = spoken[at].statements[covered.start : covered.stop]
        if any(
            statement.marked or (is_rule and may_be_others(statement)) for statement in statements
        ):
            continue
        index = spoken[at].index
        later = (
            read(statement.text)
            for utterance in spoken[at + 1 :]
            for statement in utterance.statements
        )
        about = read(new.content).words
        if not any(
            departure.subject <= about for reading in later for departure in reading.departures
        ):
            yield turns[index], statements


def _is_verbatim(statements: Sequence[str], content: str) -> bool:
    return all(map(is_stated, statements)) and _without_layout(
        " ".join(statements)
    ) == _without_layout(content)


def _without_layout(text: str) -> str:
    return written(language_of(text).trim(text))


def _covering(statements: Sequence[str], text: str) -> range | None:
    plain = [normalise(statement) for statement in statements]
    for length in range(1, len(plain) + 1):
        for first in range(len(plain) - length + 1):
            if text in " ".join(plain[first : first + length]):
                return range(first, first + length)
    return None
