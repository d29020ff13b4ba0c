"""Transcripts → sessions in the index → memories in the vault → vectors."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nacre.archive.keep import archive, withhold
from nacre.archive.pack_store import read_index
from nacre.archive.reread import missing, read_archived
from nacre.errors import NacreError
from nacre.extraction.estimate import Estimate, estimate_learning, estimate_vectors, foresee
from nacre.extraction.learn import Lessons, learn
from nacre.home.change import Run, part_of
from nacre.home.home import Home
from nacre.home.operations import memories_in_entry
from nacre.home.projects import resolve_project
from nacre.indexing.shards import fill_shards
from nacre.indexing.vectors import embed_pending, passages
from nacre.ingestion import discovery
from nacre.ingestion.exclusions import Exclusions
from nacre.ingestion.requests import IngestOptions
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage
from nacre.parsing.names import kept_name
from nacre.parsing.parse import Batch, Event, FileDone, FileFailed, Job, count_processes, read_files, recognise
from nacre.storage.sessions import TurnBatch
from nacre.storage.sqlite.times import to_ms
from nacre.text.passages import count_tokens
from nacre.tombstones.erasure import erase_bytes
from nacre.tombstones.tombstones import Gate
from nacre.transcripts.registry import is_guess
from nacre.values.cursor import Cursor
from nacre.values.reports import IngestPlan, IngestReport, Problem, Progress
from nacre.values.session import Session, Turn
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

COMMIT_TURNS = 400
"""Stored in 30 ms or so: for that long others wait who write."""

_REST_SECONDS = 0.005

OnProgress = Callable[[Progress], None]


@dataclass(slots=True)
class _Tallies:
    files: int = 0
    turns: int = 0
    skipped: int = 0
    unrecognised: int = 0
    bytes_done: int = 0
    bytes_read: int = 0
    corrupt: int = 0
    sessions: set[int] = field(default_factory=set)
    left_out: set[Path] = field(default_factory=set)
    withheld: set[Path] = field(default_factory=set)
    """Files with something that the archive must not have, either."""

    tools: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    excluded: dict[str, str] = field(default_factory=dict)
    """Why (``tool``, ``project`` or ``path``), by file or session."""


def ingest(
    home: Home, options: IngestOptions | None = None, on_progress: OnProgress | None = None, *, run: Run | None = None
) -> IngestReport:  # fmt: skip
    """Read transcripts, learn from what is new, make the vectors. Raises NotFound for a path that does not exist.

    What it writes is one operation, or part of the ``run``; others write in between. Text is searchable when reading
    ends. One bad file never stops the others: it is in the report.
    """
    if run:
        return _ingest(home, run, options or IngestOptions(), on_progress)
    with home.run("ingest") as own:
        return _ingest(home, own, options or IngestOptions(), on_progress)


def _ingest(home: Home, run: Run, options: IngestOptions, on_progress: OnProgress | None) -> IngestReport:
    started = time.perf_counter()
    notify = on_progress or (lambda _: None)
    began = home.now()
    catch_up(home)
    if not options.from_archive:  # a database that is being made anew may never take its place
        fold_usage(home)
    discovers = options.reads and (options.discover or not options.paths)
    projects = discovery.projects_of(home)
    findings = discovery.Findings([], [])
    if options.reads:
        findings = discovery.find(home, options.paths, with_discovery=discovers)
        if options.puts_off:
            findings = discovery.without_put_off(home, findings)
    tallies = _Tallies(problems=findings.problems)
    jobs = _jobs(home, findings.files, tallies, force=options.force)
    if options.from_archive:
        _read_archive(home, run, tallies, notify)
    _read(home, run, jobs, tallies, notify)
    if discovers and (met := discovery.projects_of(home) - projects):
        beside = discovery.find_in_projects(home, met)
        if options.puts_off:
            beside = discovery.without_put_off(home, beside)
        tallies.problems += beside.problems
        _read(home, run, _jobs(home, beside.files, tallies, force=options.force), tallies, notify)
    read_seconds = time.perf_counter() - started
    learns = options.extract and home.settings["extraction.enabled"]
    foreseen = foresee(home) if learns else None
    if foreseen:
        notify(Progress("learning", 0, 1, foreseen))
    lessons = learn(home, notify, in_chunks=options.in_chunks, run=run) if learns else None
    if options.paths and options.remember_paths and tallies.files:
        _note_paths(home, run, options.paths, lessons.memories if lessons else ())
    archived = archive(home, notify)
    made = embed_pending(home, notify, seconds=_most_seconds(options)) if options.vectors else None
    fill_shards(home, notify)
    erase_bytes(home)
    report = IngestReport(
        files=tallies.files, sessions=len(tallies.sessions), turns=tallies.turns,
        memories=lessons.memories if lessons else (), duplicates=lessons.duplicates if lessons else 0,
        skipped=tallies.skipped + tallies.unrecognised, unrecognised=tallies.unrecognised,
        left_out=len(tallies.left_out), bytes_read=tallies.bytes_read,
        read_seconds=read_seconds, seconds=time.perf_counter() - started, foreseen=foreseen,
        vectors_made=made.made if made else 0, vectors_left=made.left if made else 0,
        vectors_note=made.note if made else None, tools=dict(tallies.tools), unknown=dict(tallies.unknown),
        corrupt=tallies.corrupt, excluded=dict(Counter(tallies.excluded.values())), archived=archived,
        empty=tuple(tallies.empty), problems=(*tallies.problems, *_undecided(lessons)),
        decided=lessons.decided if lessons else {},
        extraction=lessons.by_model if lessons else None,
    )  # fmt: skip
    home.sessions.save_ingest(
        home.ids(), to_ms(began) or 0, to_ms(home.now()) or 0, files=report.files, sessions=report.sessions,
        turns=report.turns, memories=len(report.memories), skipped=report.skipped,
    )  # fmt: skip
    return report


def _undecided(lessons: Lessons | None) -> Iterator[Problem]:
    for note in lessons.notes if lessons else ():
        yield Problem("dedup", f"{note}; the rules decided")


def plan(home: Home, options: IngestOptions) -> IngestPlan:
    """What :func:`ingest` would read, by size and by what files look like; changes nothing. Raises NotFound."""
    findings = discovery.find(home, options.paths, with_discovery=options.discover or not options.paths)
    tallies = _Tallies(problems=findings.problems)
    unread = 0
    for job in _jobs(home, findings.files, tallies, force=options.force):
        try:
            adapter = recognise(job)
        except NacreError as error:
            told = error.message.removeprefix(f"{job.path} ")
            tallies.problems.append(Problem(str(job.path), told, error.hint))
            continue
        if adapter is None:
            tallies.unrecognised += 1
        elif adapter.tool in home.settings["ingest.exclude_tools"]:
            tallies.excluded[str(job.path)] = "tool"
        else:
            tallies.tools[adapter.tool] += 1
            unread += job.size if adapter.whole else job.unread
    return IngestPlan(
        files=tallies.tools.total(), bytes=unread, tools=dict(tallies.tools),
        skipped=tallies.skipped + tallies.unrecognised, unrecognised=tallies.unrecognised,
        excluded=dict(Counter(tallies.excluded.values())), problems=tuple(tallies.problems),
    )  # fmt: skip


def estimate(home: Home, options: IngestOptions) -> Estimate:
    """What learning would cost if models did it, from what waits and from what is not read yet; stores nothing.

    Raises NotFound for a path that does not exist.
    """
    findings = discovery.find(home, options.paths, with_discovery=options.discover or not options.paths)
    problems = list(findings.problems)
    jobs = _jobs(home, findings.files, _Tallies(), force=options.force)
    said = 0

    def counted() -> Iterator[tuple[Session, Sequence[Turn]]]:
        nonlocal said
        for session, turns in _unstored(home, jobs, problems):
            said += sum(count_tokens(part) for turn in turns for part in passages(turn.text))
            yield session, turns

    found = estimate_learning(home, counted(), problems)
    return replace(found, vectors=estimate_vectors(home, said))


def _unstored(
    home: Home, jobs: Sequence[Job], problems: list[Problem]
) -> Iterator[tuple[Session, Sequence[Turn]]]:  # fmt: skip
    """Sessions of transcripts, one file after another; nothing of them is kept."""
    exclusions = Exclusions(home)
    gate = Gate(home)
    sessions: dict[Session, list[Turn]] = {}
    for event in read_files(jobs, home.redactor, exclusions.tools):
        if isinstance(event, FileFailed):
            problems += [event.problem] if event.problem else []
        elif isinstance(event, FileDone):
            yield from sessions.items()
            sessions = {}
        elif not exclusions.reason(event.session) and gate.admits(event.session):
            sessions.setdefault(event.session, []).extend(event.turns)


def named_before(home: Home) -> set[Path]:
    """Paths that were once named to ingest, from the ledger."""
    try:
        entries = list(ledger.read(home.vault.read(LEDGER)))
    except FileNotFoundError:
        return set()
    named = [item.details.get("paths") for item in entries if item.action == "ingest"]
    return {Path(path) for paths in named if isinstance(paths, list) for path in paths if isinstance(path, str)}


def _note_paths(home: Home, run: Run | None, paths: Sequence[Path], memories: Sequence[str]) -> None:
    """What was named, in the ledger's line of this run, for a rebuild to find it; each once."""
    wanted = [str(path.absolute()) for path in paths]
    known = named_before(home)
    fresh = [path for path in wanted if Path(path) not in known]
    if fresh:
        with part_of(home, run, "ingest") as change:
            change.append([change.entry("ingest", paths=fresh, **memories_in_entry(memories))])
            change.explain(None if memories else f"{fresh[0]} was read")


def _most_seconds(options: IngestOptions) -> float:
    return math.inf if options.vector_seconds is None else options.vector_seconds


def _jobs(home: Home, files: Sequence[discovery.FoundFile], tallies: _Tallies, *, force: bool) -> list[Job]:
    jobs = []
    for file in files:
        known = _cursor(home, file.path)
        if known and not force and (known[1].size, known[1].mtime_ns) == (file.size, file.mtime_ns):
            tallies.skipped += 1
            continue
        tool, cursor = known if known and not force else (None, None)
        jobs.append(Job(file.path, file.size, tool, cursor, file.is_named, file.is_expected, file.mtime_ns))
    return jobs


def _cursor(home: Home, path: Path) -> tuple[str, Cursor] | None:
    """Where the reading of a file ended. Names are looked at for secrets only where the name itself is not known."""
    known = home.sessions.cursor(str(path))
    kept = str(path) if known else kept_name(home.redactor, str(path))
    return known or (home.sessions.cursor(kept) if kept != str(path) else None)


def _read(home: Home, run: Run | None, jobs: Sequence[Job], tallies: _Tallies, notify: OnProgress) -> None:
    home.database.relax()
    try:
        _read_and_store(home, run, jobs, tallies, notify)
    finally:
        home.database.tighten()


def _read_and_store(home: Home, run: Run | None, jobs: Sequence[Job], tallies: _Tallies, notify: OnProgress) -> None:
    total = sum(job.size for job in jobs)
    exclusions = Exclusions(home)
    events = _events(home, jobs, exclusions)

    def tell(seconds: float) -> None:
        rate = tallies.bytes_done / 1_000_000 / seconds
        note = f"{tallies.files:,} of {len(jobs):,} files, {tallies.turns:,} turns, {rate:.0f} MB/s"
        notify(Progress("reading", tallies.bytes_done, total, note))

    _store_all(home, run, events, exclusions, tallies, tell)
    notify(Progress("reading", total, total, f"{tallies.turns:,} turns"))


def _read_archive(home: Home, run: Run | None, tallies: _Tallies, notify: OnProgress) -> None:
    """What the archive has and no transcript tells any more: first, for it is older than what is told."""
    tallies.problems += [Problem("archive", told, "nacre archive verify") for told in read_index(home)]
    states = missing(home)
    exclusions = Exclusions(home)
    home.database.relax()
    try:
        wanted = [state for state in states if state.tool not in exclusions.tools]
        tell = lambda _: notify(Progress("reading", tallies.turns, tallies.turns, "the archive"))  # noqa: E731
        _store_all(home, run, read_archived(home, wanted), exclusions, tallies, tell)
    finally:
        home.database.tighten()
    held_back = tallies.left_out | tallies.withheld
    with home.database.transaction():
        withhold(home, [(state.tool, state.path) for state in states if Path(state.path) in held_back])
    tallies.files += len(states)


def _store_all(
    home: Home, run: Run | None, events: Iterable[Event], exclusions: Exclusions, tallies: _Tallies,
    tell: Callable[[float], None],
) -> None:  # fmt: skip
    started = time.perf_counter()
    gate = Gate(home)
    pending: list[Batch | FileDone] = []
    waiting = 0
    stored_at = 0.0
    for event in events:
        if isinstance(event, FileFailed):
            _count_failed(event, tallies)
        elif isinstance(event, Batch) and (why := exclusions.reason(event.session)):
            tallies.excluded[event.session.id] = why
            tallies.withheld.add(event.path)
        else:
            pending.append(event)
            waiting += len(event.turns) if isinstance(event, Batch) else 1
        if waiting >= COMMIT_TURNS:
            # Who waits for the lock asks again every few milliseconds.
            time.sleep(max(0.0, stored_at + _REST_SECONDS - time.perf_counter()))
            _store(home, run, pending, tallies, gate)
            pending, waiting = [], 0
            stored_at = time.perf_counter()
            tell(stored_at - started)
    _store(home, run, pending, tallies, gate)


def _events(home: Home, jobs: Sequence[Job], exclusions: Exclusions) -> Iterator[Event]:
    settings = home.settings
    processes = count_processes(jobs, settings["ingest.workers"])
    if processes == 1:
        return read_files(jobs, home.redactor, exclusions.tools)
    from nacre.parsing.wire import Setup  # noqa: PLC0415 - 20 ms that pay where much is to be read
    from nacre.parsing.workers import read_in_processes  # noqa: PLC0415 - as above

    setup = Setup(tuple(settings["redaction.patterns"]), tuple(settings["redaction.allow"]), tuple(exclusions.tools))
    return read_in_processes(jobs, home.redactor, setup, processes)


def _count_failed(event: FileFailed, tallies: _Tallies) -> None:
    tallies.bytes_done += event.size
    if event.is_excluded:
        tallies.excluded[str(event.path)] = "tool"
    elif event.is_own:
        tallies.excluded[str(event.path)] = "nacre's own call"
    elif event.problem:
        tallies.problems.append(event.problem)
    else:
        tallies.unrecognised += 1
        tallies.empty += [str(event.path)] if event.is_empty else []


def _store(home: Home, run: Run | None, events: Sequence[Batch | FileDone], tallies: _Tallies, gate: Gate) -> None:
    gate.refresh()
    batches = [event for event in events if isinstance(event, Batch)]
    sessions = dict.fromkeys(batch.session for batch in batches if gate.admits(batch.session))
    projects = {session: resolve_project(home, session, run=run) for session in sessions}
    told = {batch.session: batch.project for batch in batches if batch.project}
    projects |= {session: project for session, project in told.items() if session in projects}
    with home.database.transaction():
        gate.refresh()  # what was forgotten just now stays away
        touched: set[int] = set()
        waiting: list[TurnBatch] = []

        def flush() -> None:
            _add_turns(home, waiting, tallies)
            waiting.clear()
            home.sessions.refresh(sorted(touched))
            touched.clear()

        for event in events:
            home.database.yield_write_lock(flush)
            if isinstance(event, Batch):
                touched |= _store_batch(home, event, projects, tallies, gate, waiting)
            else:
                touched |= _forget_gone(home, event, flush)
                _save_cursor(home, event, leaves_out=event.path in tallies.left_out)
                if event.path in tallies.left_out or event.path in tallies.withheld:
                    withhold(home, [(event.tool, kept_name(home.redactor, str(event.path)))])
        flush()
    for event in events:
        if isinstance(event, FileDone):
            tallies.files += 1
            tallies.bytes_done += event.size
            tallies.bytes_read += event.bytes_read
            tallies.tools[event.tool] += 1
            tallies.unknown.update(event.tally.unknown)
            tallies.corrupt += event.tally.corrupt + event.tally.oversized


def _forget_gone(home: Home, done: FileDone, flush: Callable[[], None]) -> set[int]:
    """Forget what a file does not hold any more, or only seemed to hold; returns the rows of sessions it touched."""
    name = kept_name(home.redactor, str(done.path))
    known = home.sessions.cursor(name)
    touched: set[int] = set()
    if known and known[0] != done.tool and is_guess(known[0]):
        flush()
        touched |= home.sessions.retain(known[0], name, {})
    if done.present is not None:
        flush()
        touched |= home.sessions.retain(done.tool, name, done.present)
    return touched


def _store_batch(
    home: Home, batch: Batch, projects: Mapping[Session, str | None], tallies: _Tallies, gate: Gate,
    waiting: list[TurnBatch],
) -> set[int]:  # fmt: skip
    """Store a session, and let its turns wait, without what was forgotten; returns the sessions that it touched."""
    session = batch.session
    if session not in projects or not gate.admits(session):
        tallies.left_out.add(batch.path)
        return set()
    turns = gate.admitted(session, projects[session], batch.turns)
    titled = gate.titled(session)
    if len(turns) < len(batch.turns) or titled != session:
        tallies.left_out.add(batch.path)
        if not turns and not home.sessions.find(session.id):
            return set()
    row = home.sessions.upsert(titled, project=projects[session], file=kept_name(home.redactor, str(batch.path)))
    if turns:
        waiting.append((session.tool, row, turns))
    return {row}


def _add_turns(home: Home, batches: Sequence[TurnBatch], tallies: _Tallies) -> None:
    for (_, row, _), added in zip(batches, home.sessions.add_batches(batches), strict=True):
        tallies.turns += added
        if added:
            tallies.sessions.add(row)


def _save_cursor(home: Home, done: FileDone, *, leaves_out: bool) -> None:
    """A file that something was left out of is read from its beginning each time: what is carried over quotes it."""
    cursor = replace(done.cursor, offset=0, carry={}) if leaves_out else done.cursor
    goes_on = done.present is None and done.bytes_read < done.cursor.size
    home.sessions.save_cursor(kept_name(home.redactor, str(done.path)), done.tool, cursor, done.tally, goes_on=goes_on)


def unread(home: Home, files: Sequence[discovery.FoundFile]) -> list[Job]:
    """Those of some files that changed since they were read, or never were."""
    return _jobs(home, files, _Tallies(), force=False)


def read_jobs(home: Home, jobs: Sequence[Job], named: Sequence[Path] = ()) -> IngestReport:
    """Make just these files searchable: nothing is learned yet. ``named`` paths are noted in the ledger, as in an
    ingest."""
    started = time.perf_counter()
    tallies = _Tallies()
    _read(home, None, jobs, tallies, lambda _: None)
    if named and tallies.files:
        _note_paths(home, None, named, ())
    seconds = time.perf_counter() - started
    return IngestReport(
        files=tallies.files, sessions=len(tallies.sessions), turns=tallies.turns, bytes_read=tallies.bytes_read,
        skipped=tallies.unrecognised, unrecognised=tallies.unrecognised, read_seconds=seconds, seconds=seconds,
        tools=dict(tallies.tools), unknown=dict(tallies.unknown), corrupt=tallies.corrupt,
        excluded=dict(Counter(tallies.excluded.values())), problems=tuple(tallies.problems),
    )  # fmt: skip
