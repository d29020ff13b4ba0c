"""Transcripts → sessions in the index → memories in the vault → vectors."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nacre.app import finding
from nacre.app.archiving import archive, withhold
from nacre.app.context import Context
from nacre.app.embedding import embed_pending, passages
from nacre.app.erasing import erase_bytes
from nacre.app.estimating import Estimate, estimate_learning, estimate_vectors, foresee
from nacre.app.excluding import Exclusions
from nacre.app.learning import Lessons, learn
from nacre.app.naming import kept_name
from nacre.app.operating import explain, operating, running, told_of
from nacre.app.packing import read_index
from nacre.app.project_pages import resolve_project
from nacre.app.reading import Batch, Event, FileDone, FileFailed, Job, count_processes, read_files, recognise
from nacre.app.rereading import missing, read_archived
from nacre.app.scanning import catch_up
from nacre.app.sharding import fill_shards
from nacre.app.tombstones import Gate
from nacre.app.using import fold_usage
from nacre.app.writing import apply_intents, entry, save
from nacre.errors import NacreError
from nacre.model.cursor import Cursor
from nacre.model.reports import IngestPlan, IngestReport, Problem, Progress
from nacre.model.session import Session, Turn
from nacre.storage.sessions import TurnBatch
from nacre.storage.times import to_ms
from nacre.text import count_tokens
from nacre.transcripts.registry import is_guess
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

COMMIT_TURNS = 400
"""Stored in 30 ms or so: for that long others wait who write."""

_REST_SECONDS = 0.005

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What an ingest does: which paths, whether discovery adds to them, whether it learns and makes vectors.

    Without paths discovery always runs. Named paths are noted in the ledger, so that a rebuild finds them again.
    ``force`` reads files again from the start, also unchanged ones; known turns and memories stay as they are.
    ``from_archive`` also reads what the archive has and no transcript tells any more. Unless it ``reads``, it learns
    only from what was read before. Vectors are made for so many seconds at most. ``in_chunks`` shows a language model
    no session as a whole. ``puts_off`` leaves alone what the owner put off (``watch.changed_since``).
    """

    paths: tuple[Path, ...] = ()
    discover: bool = False
    remember_paths: bool = True
    extract: bool = True
    vectors: bool = True
    force: bool = False
    from_archive: bool = False
    reads: bool = True
    vector_seconds: float = math.inf
    in_chunks: bool = False
    puts_off: bool = False


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
    context: Context, options: IngestOptions | None = None, on_progress: OnProgress | None = None
) -> IngestReport:
    """Read transcripts, learn from what is new, make the vectors. Raises NotFound for a path that does not exist.

    What it writes is one operation; others write in between. Text is searchable when reading ends. One bad file never
    stops the others: it is in the report.
    """
    with running(context, "ingest"):
        report = _ingest(context, options or IngestOptions(), on_progress)
    apply_intents(context)
    return report


def _ingest(context: Context, options: IngestOptions, on_progress: OnProgress | None) -> IngestReport:
    started = time.perf_counter()
    notify = on_progress or (lambda _: None)
    began = context.now()
    catch_up(context)
    if not options.from_archive:  # a database that is being made anew may never take its place
        fold_usage(context)
    discovers = options.reads and (options.discover or not options.paths)
    projects = finding.projects_of(context)
    findings = finding.Findings([], [])
    if options.reads:
        findings = finding.find(context, options.paths, with_discovery=discovers)
        if options.puts_off:
            findings = finding.without_put_off(context, findings)
    tallies = _Tallies(problems=findings.problems)
    jobs = _jobs(context, findings.files, tallies, force=options.force)
    if options.from_archive:
        _read_archive(context, tallies, notify)
    _read(context, jobs, tallies, notify)
    if discovers and (met := finding.projects_of(context) - projects):
        beside = finding.find_in_projects(context, met)
        if options.puts_off:
            beside = finding.without_put_off(context, beside)
        tallies.problems += beside.problems
        _read(context, _jobs(context, beside.files, tallies, force=options.force), tallies, notify)
    read_seconds = time.perf_counter() - started
    learns = options.extract and context.settings["extraction.enabled"]
    foreseen = foresee(context) if learns else None
    if foreseen:
        notify(Progress("learning", 0, 1, foreseen))
    lessons = learn(context, notify, in_chunks=options.in_chunks) if learns else None
    if options.paths and options.remember_paths and tallies.files:
        _note_paths(context, options.paths, lessons.memories if lessons else ())
    archived = archive(context, notify)
    made = embed_pending(context, notify, seconds=options.vector_seconds) if options.vectors else None
    fill_shards(context, notify)
    erase_bytes(context)
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
    context.sessions.save_ingest(
        context.ids(), to_ms(began) or 0, to_ms(context.now()) or 0, files=report.files, sessions=report.sessions,
        turns=report.turns, memories=len(report.memories), skipped=report.skipped,
    )  # fmt: skip
    return report


def _undecided(lessons: Lessons | None) -> Iterator[Problem]:
    for note in lessons.notes if lessons else ():
        yield Problem("dedup", f"{note}; the rules decided")


def plan(context: Context, options: IngestOptions) -> IngestPlan:
    """What :func:`ingest` would read, by size and by what files look like; changes nothing. Raises NotFound."""
    findings = finding.find(context, options.paths, with_discovery=options.discover or not options.paths)
    tallies = _Tallies(problems=findings.problems)
    unread = 0
    for job in _jobs(context, findings.files, tallies, force=options.force):
        try:
            adapter = recognise(job)
        except NacreError as error:
            told = error.message.removeprefix(f"{job.path} ")
            tallies.problems.append(Problem(str(job.path), told, error.hint))
            continue
        if adapter is None:
            tallies.unrecognised += 1
        elif adapter.tool in context.settings["ingest.exclude_tools"]:
            tallies.excluded[str(job.path)] = "tool"
        else:
            tallies.tools[adapter.tool] += 1
            unread += job.size if adapter.whole else job.unread
    return IngestPlan(
        files=tallies.tools.total(), bytes=unread, tools=dict(tallies.tools),
        skipped=tallies.skipped + tallies.unrecognised, unrecognised=tallies.unrecognised,
        excluded=dict(Counter(tallies.excluded.values())), problems=tuple(tallies.problems),
    )  # fmt: skip


def estimate(context: Context, options: IngestOptions) -> Estimate:
    """What learning would cost if models did it, from what waits and from what is not read yet; stores nothing.

    Raises NotFound for a path that does not exist.
    """
    findings = finding.find(context, options.paths, with_discovery=options.discover or not options.paths)
    problems = list(findings.problems)
    jobs = _jobs(context, findings.files, _Tallies(), force=options.force)
    said = 0

    def counted() -> Iterator[tuple[Session, Sequence[Turn]]]:
        nonlocal said
        for session, turns in _unstored(context, jobs, problems):
            said += sum(count_tokens(part) for turn in turns for part in passages(turn.text))
            yield session, turns

    found = estimate_learning(context, counted(), problems)
    return replace(found, vectors=estimate_vectors(context, said))


def _unstored(
    context: Context, jobs: Sequence[Job], problems: list[Problem]
) -> Iterator[tuple[Session, Sequence[Turn]]]:  # fmt: skip
    """Sessions of transcripts, one file after another; nothing of them is kept."""
    exclusions = Exclusions(context)
    gate = Gate(context)
    sessions: dict[Session, list[Turn]] = {}
    for event in read_files(jobs, context.redactor, exclusions.tools):
        if isinstance(event, FileFailed):
            problems += [event.problem] if event.problem else []
        elif isinstance(event, FileDone):
            yield from sessions.items()
            sessions = {}
        elif not exclusions.reason(event.session) and gate.admits(event.session):
            sessions.setdefault(event.session, []).extend(event.turns)


def named_before(context: Context) -> set[Path]:
    """Paths that were once named to ingest, from the ledger."""
    try:
        entries = list(ledger.read(context.vault.read(LEDGER)))
    except FileNotFoundError:
        return set()
    named = [item.details.get("paths") for item in entries if item.action == "ingest"]
    return {Path(path) for paths in named if isinstance(paths, list) for path in paths if isinstance(path, str)}


def _note_paths(context: Context, paths: Sequence[Path], memories: Sequence[str]) -> None:
    """What was named, in the ledger's line of this run, for a rebuild to find it; each once."""
    wanted = [str(path.absolute()) for path in paths]
    known = named_before(context)
    fresh = [path for path in wanted if Path(path) not in known]
    if fresh:
        with context.vault_lock, operating(context, "ingest", in_run=True):
            save(context, (), [entry(context, "ingest", paths=fresh, **told_of(memories))])
            with context.database.transaction():
                explain(context, None if memories else f"{fresh[0]} was read")


def _jobs(context: Context, files: Sequence[finding.FoundFile], tallies: _Tallies, *, force: bool) -> list[Job]:
    jobs = []
    for file in files:
        known = _cursor(context, file.path)
        if known and not force and (known[1].size, known[1].mtime_ns) == (file.size, file.mtime_ns):
            tallies.skipped += 1
            continue
        tool, cursor = known if known and not force else (None, None)
        jobs.append(Job(file.path, file.size, tool, cursor, file.is_named, file.is_expected, file.mtime_ns))
    return jobs


def _cursor(context: Context, path: Path) -> tuple[str, Cursor] | None:
    """Where the reading of a file ended. Names are looked at for secrets only where the name itself is not known."""
    known = context.sessions.cursor(str(path))
    kept = str(path) if known else kept_name(context.redactor, str(path))
    return known or (context.sessions.cursor(kept) if kept != str(path) else None)


def _read(context: Context, jobs: Sequence[Job], tallies: _Tallies, notify: OnProgress) -> None:
    context.database.relax()
    try:
        _read_and_store(context, jobs, tallies, notify)
    finally:
        context.database.tighten()


def _read_and_store(context: Context, jobs: Sequence[Job], tallies: _Tallies, notify: OnProgress) -> None:
    total = sum(job.size for job in jobs)
    exclusions = Exclusions(context)
    events = _events(context, jobs, exclusions)

    def tell(seconds: float) -> None:
        rate = tallies.bytes_done / 1_000_000 / seconds
        note = f"{tallies.files:,} of {len(jobs):,} files, {tallies.turns:,} turns, {rate:.0f} MB/s"
        notify(Progress("reading", tallies.bytes_done, total, note))

    _store_all(context, events, exclusions, tallies, tell)
    notify(Progress("reading", total, total, f"{tallies.turns:,} turns"))


def _read_archive(context: Context, tallies: _Tallies, notify: OnProgress) -> None:
    """What the archive has and no transcript tells any more: first, for it is older than what is told."""
    tallies.problems += [Problem("archive", told, "nacre archive verify") for told in read_index(context)]
    states = missing(context)
    exclusions = Exclusions(context)
    context.database.relax()
    try:
        wanted = [state for state in states if state.tool not in exclusions.tools]
        tell = lambda _: notify(Progress("reading", tallies.turns, tallies.turns, "the archive"))  # noqa: E731
        _store_all(context, read_archived(context, wanted), exclusions, tallies, tell)
    finally:
        context.database.tighten()
    held_back = tallies.left_out | tallies.withheld
    with context.database.transaction():
        withhold(context, [(state.tool, state.path) for state in states if Path(state.path) in held_back])
    tallies.files += len(states)


def _store_all(
    context: Context, events: Iterable[Event], exclusions: Exclusions, tallies: _Tallies, tell: Callable[[float], None]
) -> None:  # fmt: skip
    started = time.perf_counter()
    gate = Gate(context)
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
            _store(context, pending, tallies, gate)
            pending, waiting = [], 0
            stored_at = time.perf_counter()
            tell(stored_at - started)
    _store(context, pending, tallies, gate)


def _events(context: Context, jobs: Sequence[Job], exclusions: Exclusions) -> Iterator[Event]:
    settings = context.settings
    processes = count_processes(jobs, settings["ingest.workers"])
    if processes == 1:
        return read_files(jobs, context.redactor, exclusions.tools)
    from nacre.app.wire import Setup  # 20 ms that pay where much is to be read
    from nacre.app.workers import read_in_processes

    setup = Setup(tuple(settings["redaction.patterns"]), tuple(settings["redaction.allow"]), tuple(exclusions.tools))
    return read_in_processes(jobs, context.redactor, setup, processes)


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


def _store(context: Context, events: Sequence[Batch | FileDone], tallies: _Tallies, gate: Gate) -> None:
    gate.refresh()
    batches = [event for event in events if isinstance(event, Batch)]
    sessions = dict.fromkeys(batch.session for batch in batches if gate.admits(batch.session))
    projects = {session: resolve_project(context, session) for session in sessions}
    told = {batch.session: batch.project for batch in batches if batch.project}
    projects |= {session: project for session, project in told.items() if session in projects}
    with context.database.transaction():
        gate.refresh()  # what was forgotten just now stays away
        touched: set[int] = set()
        waiting: list[TurnBatch] = []

        def flush() -> None:
            _add_turns(context, waiting, tallies)
            waiting.clear()
            context.sessions.refresh(sorted(touched))
            touched.clear()

        for event in events:
            context.database.breathe(flush)
            if isinstance(event, Batch):
                touched |= _store_batch(context, event, projects, tallies, gate, waiting)
            else:
                touched |= _forget_gone(context, event, flush)
                _save_cursor(context, event, leaves_out=event.path in tallies.left_out)
                if event.path in tallies.left_out or event.path in tallies.withheld:
                    withhold(context, [(event.tool, kept_name(context.redactor, str(event.path)))])
        flush()
    for event in events:
        if isinstance(event, FileDone):
            tallies.files += 1
            tallies.bytes_done += event.size
            tallies.bytes_read += event.bytes_read
            tallies.tools[event.tool] += 1
            tallies.unknown.update(event.tally.unknown)
            tallies.corrupt += event.tally.corrupt + event.tally.oversized


def _forget_gone(context: Context, done: FileDone, flush: Callable[[], None]) -> set[int]:
    """Forget what a file does not hold any more, or only seemed to hold; returns the rows of sessions it touched."""
    name = kept_name(context.redactor, str(done.path))
    known = context.sessions.cursor(name)
    touched: set[int] = set()
    if known and known[0] != done.tool and is_guess(known[0]):
        flush()
        touched |= context.sessions.retain(known[0], name, {})
    if done.present is not None:
        flush()
        touched |= context.sessions.retain(done.tool, name, done.present)
    return touched


def _store_batch(
    context: Context, batch: Batch, projects: Mapping[Session, str | None], tallies: _Tallies, gate: Gate,
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
        if not turns and not context.sessions.find(session.id):
            return set()
    row = context.sessions.upsert(titled, project=projects[session], file=kept_name(context.redactor, str(batch.path)))
    if turns:
        waiting.append((session.tool, row, turns))
    return {row}


def _add_turns(context: Context, batches: Sequence[TurnBatch], tallies: _Tallies) -> None:
    for (_, row, _), added in zip(batches, context.sessions.add_batches(batches), strict=True):
        tallies.turns += added
        if added:
            tallies.sessions.add(row)


def _save_cursor(context: Context, done: FileDone, *, leaves_out: bool) -> None:
    """A file that something was left out of is read from its beginning each time: what is carried over quotes it."""
    cursor = replace(done.cursor, offset=0, carry={}) if leaves_out else done.cursor
    goes_on = done.present is None and done.bytes_read < done.cursor.size
    context.sessions.save_cursor(
        kept_name(context.redactor, str(done.path)), done.tool, cursor, done.tally, goes_on=goes_on
    )


def unread(context: Context, files: Sequence[finding.FoundFile]) -> list[Job]:
    """Those of some files that changed since they were read, or never were."""
    return _jobs(context, files, _Tallies(), force=False)


def read_jobs(context: Context, jobs: Sequence[Job], named: Sequence[Path] = ()) -> IngestReport:
    """Make just these files searchable: nothing is learned yet. ``named`` paths are noted in the ledger, as in an
    ingest."""
    started = time.perf_counter()
    tallies = _Tallies()
    _read(context, jobs, tallies, lambda _: None)
    if named and tallies.files:
        _note_paths(context, named, ())
        apply_intents(context)
    seconds = time.perf_counter() - started
    return IngestReport(
        files=tallies.files, sessions=len(tallies.sessions), turns=tallies.turns, bytes_read=tallies.bytes_read,
        skipped=tallies.unrecognised, unrecognised=tallies.unrecognised, read_seconds=seconds, seconds=seconds,
        tools=dict(tallies.tools), unknown=dict(tallies.unknown), corrupt=tallies.corrupt,
        excluded=dict(Counter(tallies.excluded.values())), problems=tuple(tallies.problems),
    )  # fmt: skip
