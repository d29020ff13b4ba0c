"""Transcripts → sessions in the index → memories in the vault → vectors."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nacre.archive.keep import archive
from nacre.errors import InvalidInput
from nacre.extraction.estimate import foresee
from nacre.extraction.learn import learn
from nacre.home.change import Run, part_of
from nacre.home.home import Home
from nacre.home.operations import memories_in_entry
from nacre.indexing.vectors import embed_pending
from nacre.ingestion import discovery
from nacre.ingestion.read import jobs_for, read_archive, read_jobs
from nacre.ingestion.read_tally import ReadTally
from nacre.ingestion.requests import IngestOptions
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage
from nacre.parsing.parse import Job
from nacre.platform.ids import to_ms
from nacre.spending.permission import is_set, rests
from nacre.spending.tracing import MOST_REFS, counted, noting
from nacre.tombstones.erasure import erase_bytes
from nacre.values.reports import IngestReport, OnProgress, Problem, Progress
from nacre.values.trace import Step, TraceKind
from nacre.vault import ledger
from nacre.vault.layout import LEDGER


def ingest(
    home: Home, options: IngestOptions | None = None, on_progress: OnProgress | None = None, *, run: Run | None = None
) -> IngestReport:  # fmt: skip
    """Read transcripts, learn from what is new, make the vectors. Raises NotFound for a path that does not exist, and
    InvalidInput where older sessions cannot be asked for.

    What it writes is one operation, or part of the ``run``; others write in between. Text is searchable when reading
    ends. One bad file never stops the others: it is in the report.
    """
    if run is None:
        with home.run("ingest") as own:
            return ingest(home, options, on_progress, run=own)
    wanted = options or IngestOptions()
    if wanted.older:
        check_older(home, wanted)
    with noting(home, TraceKind.INDEX, _subject(wanted)) as trace:
        report = _Ingest(home, run, wanted, on_progress or (lambda _: None)).complete()
        told = counted({**read_counts(report), **learned_counts(report)})
        if told:
            trace.add(Step("reads and learns", output=told, refs=tuple(report.memories[:MOST_REFS])))
        learned = counted({"sessions": report.sessions, "memories": len(report.memories)})
        trace.outcome = learned or counted({"transcripts archived": report.archived.files}) or "nothing new"
    return report


def check_older(home: Home, options: IngestOptions) -> None:
    """Raises InvalidInput where older sessions cannot be asked for."""
    if not options.extract:
        raise InvalidInput("the writer reads older sessions to write memories", hint="leave --no-extract out")
    if not home.settings.flag("extraction.enabled"):
        raise InvalidInput("extraction is off: no writer reads", hint="nacre config set extraction.enabled true")
    if not is_set(home):
        raise InvalidInput("no writer is set that could read older sessions", hint="nacre writer set")
    if rests(home.settings):
        told = "the writer is paused, or waits for the mains: it reads no older sessions now"
        raise InvalidInput(told, hint="nacre writer tells which")


def _subject(options: IngestOptions) -> str:
    """What is read, for its trace."""
    if options.from_archive:
        return "the archive"
    if not options.paths:
        return "what discovery finds" if options.reads else "what waits"
    more = f" and {len(options.paths) - 1} more" if len(options.paths) > 1 else ""
    return f"{options.paths[0]}{more}"


class _Ingest:
    """One run: its stages, and what they found."""

    def __init__(self, home: Home, run: Run, options: IngestOptions, notify: OnProgress) -> None:
        self._home = home
        self._run = run
        self._options = options
        self._notify = notify
        self._tally = ReadTally()
        self._named: Sequence[Path] = options.paths

    def complete(self) -> IngestReport:
        """Go through all stages."""
        began, started = self._home.now(), time.perf_counter()
        catch_up(self._home)
        if not self._options.from_archive:  # a database that is being made anew may never take its place
            fold_usage(self._home)
        self._read()
        report = IngestReport(**self._tally.in_report(), read_seconds=time.perf_counter() - started)
        report = self._learn(report)
        self._note_paths(report)
        report = replace(report, archived=archive(self._home, self._notify))
        report = self._embed(report)
        erase_bytes(self._home)
        self._home.sessions.save_ingest(
            self._home.ids(), to_ms(began) or 0, to_ms(self._home.now()) or 0, files=report.files,
            sessions=report.sessions, turns=report.turns, memories=len(report.memories), skipped=report.skipped,
        )  # fmt: skip
        return replace(report, seconds=time.perf_counter() - started)

    def _read(self) -> None:
        """Read the archive where it is wanted, then files, then those of projects that were met in them."""
        options, home = self._options, self._home
        discovers = options.reads and (options.discover or not options.paths)
        found = self._found(discovers=discovers) if options.reads else None
        known = discovery.projects_of(home)
        jobs = self._jobs(found)
        if options.from_archive:
            read_archive(home, self._run, self._tally, self._notify)
        read_jobs(home, self._run, jobs, self._tally, self._notify)
        if discovers and (met := discovery.projects_of(home) - known):
            jobs = self._jobs(discovery.only_like(discovery.find_in_projects(home, met), options.globs))
            read_jobs(home, self._run, jobs, self._tally, self._notify)

    def _found(self, *, discovers: bool) -> discovery.Findings:
        """The files to read; with patterns, those that fit are what a rebuild looks for."""
        options = self._options
        found = discovery.only_like(discovery.find(self._home, options.paths, with_discovery=discovers), options.globs)
        if options.globs:
            folders = [path.expanduser().absolute() for path in options.paths]
            below = (file.path for file in found.files if any(file.path.is_relative_to(one) for one in folders))
            self._named = tuple(below)
        return found

    def _jobs(self, found: discovery.Findings | None) -> list[Job]:
        if found is None:
            return []
        if self._options.puts_off:
            found = discovery.without_put_off(self._home, found)
        self._tally.problems += found.problems
        return jobs_for(self._home, found.files, self._tally, force=self._options.force)

    def _learn(self, report: IngestReport) -> IngestReport:
        """Learn memories from what waits, where that is wanted."""
        if not (self._options.extract and self._home.settings.flag("extraction.enabled")):
            return report
        foreseen = foresee(self._home, older=self._options.older)
        if foreseen:
            self._notify(Progress("learning", 0, 1, foreseen))
        lessons = learn(self._home, self._notify, run=self._run, older=self._options.older)
        return replace(
            report, foreseen=foreseen, memories=lessons.memories, duplicates=lessons.duplicates,
            changed=lessons.changed, ended=lessons.ended, doubted=lessons.doubted, candidates=lessons.candidates,
            decided=lessons.decided, extraction=lessons.by_model,
            problems=(*report.problems, *(Problem("dedup", f"{note}; the rules decided") for note in lessons.notes)),
        )  # fmt: skip

    def _note_paths(self, report: IngestReport) -> None:
        options = self._options
        if options.paths and options.remember_paths and report.files:
            _note_paths(self._home, self._run, self._named, report.memories)

    def _embed(self, report: IngestReport) -> IngestReport:
        """Make the vectors that are missing, where they are wanted."""
        if not self._options.vectors:
            return report
        most = self._options.vector_seconds
        made = embed_pending(self._home, self._notify, seconds=math.inf if most is None else most)
        return replace(report, vectors_made=made.made, vectors_left=made.left, vectors_note=made.note)


def read_counts(report: IngestReport) -> dict[str, int]:
    """What was read, for a trace."""
    if not report.files:
        return {}
    return {
        "files": report.files, "sessions": report.sessions, "turns": report.turns, "left out": report.left_out,
        "excluded": sum(report.excluded.values()), "corrupt lines": report.corrupt,
    }  # fmt: skip


def learned_counts(report: IngestReport) -> dict[str, int]:
    """What was learned, for a trace."""
    by_model = report.extraction
    return {
        "memories": len(report.memories), "candidates": report.candidates, "known already": report.duplicates,
        "changed": report.changed, "ended": report.ended, "doubted": report.doubted,
        "sessions shown to a model": by_model.sessions if by_model else 0,
    }  # fmt: skip


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


def unread(home: Home, files: Sequence[discovery.FoundFile]) -> list[Job]:
    """Those of some files that changed since they were read, or never were."""
    return jobs_for(home, files, ReadTally())


def read_changed(home: Home, jobs: Sequence[Job], named: Sequence[Path] = ()) -> IngestReport:
    """Make just these files searchable: nothing is learned yet.

    ``named`` paths are noted in the ledger, as in an ingest.
    """
    started = time.perf_counter()
    tally = ReadTally()
    read_jobs(home, None, jobs, tally, lambda _: None)
    if named and tally.files:
        _note_paths(home, None, named, ())
    seconds = time.perf_counter() - started
    return IngestReport(**tally.in_report(), read_seconds=seconds, seconds=seconds)
