"""Read transcripts into sessions and turns: which files have something new, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from nacre.archive.keep import withhold
from nacre.archive.pack_store import read_index
from nacre.archive.reread import missing, read_archived
from nacre.home.change import Run
from nacre.home.exclusions import Exclusions
from nacre.home.home import Home
from nacre.ingestion.discovery import FoundFile
from nacre.ingestion.read_tally import ReadTally
from nacre.ingestion.store_turns import TurnStore
from nacre.memories.agent_rights import distrust
from nacre.parsing import workers
from nacre.parsing.names import kept_name
from nacre.parsing.parse import Event, Job, count_processes, read_files
from nacre.values.cursor import Cursor
from nacre.values.reports import OnProgress, Problem, Progress


def jobs_for(home: Home, files: Sequence[FoundFile], tally: ReadTally, *, force: bool = False) -> list[Job]:
    """What is to be read of some files: those that did not change are skipped, unless ``force``."""
    jobs = []
    identities = tuple(home.settings.texts("owner.identities"))
    for file in files:
        known = _cursor(home, file.path)
        if known and not force and (known[1].size, known[1].mtime_ns) == (file.size, file.mtime_ns):
            tally.skipped += 1
            continue
        tool, cursor = known if known and not force else (None, None)
        jobs.append(Job(file.path, file.size, tool, cursor, file.is_named, file.is_expected, file.mtime_ns, identities))
    return jobs


def read_jobs(home: Home, run: Run | None, jobs: Sequence[Job], tally: ReadTally, notify: OnProgress) -> None:
    """Read files and store what they hold."""
    total = sum(job.size for job in jobs)
    exclusions = Exclusions(home.settings)

    def tell(seconds: float) -> None:
        rate = tally.bytes_done / 1_000_000 / seconds
        note = f"{tally.files:,} of {len(jobs):,} files, {tally.turns:,} turns, {rate:.0f} MB/s"
        notify(Progress("reading", tally.bytes_done, total, note))

    _store(home, TurnStore(home, run, exclusions, tally), _events(home, jobs, exclusions), tell)
    distrust(home, run, sorted(tally.distrusted))
    notify(Progress("reading", total, total, f"{tally.turns:,} turns"))


def read_archive(home: Home, run: Run | None, tally: ReadTally, notify: OnProgress) -> None:
    """Read what the archive has and no transcript holds any more; it is older than what transcripts hold."""
    tally.problems += [Problem("archive", problem, "nacre archive verify") for problem in read_index(home)]
    states = missing(home)
    exclusions = Exclusions(home.settings)
    wanted = [state for state in states if state.tool not in exclusions.tools]

    def tell(_: float) -> None:
        notify(Progress("reading", tally.turns, tally.turns, "the archive"))

    _store(home, TurnStore(home, run, exclusions, tally), read_archived(home, wanted), tell)
    held_back = tally.left_out | tally.withheld
    with home.database.transaction():
        withhold(home, [(state.tool, state.path) for state in states if Path(state.path) in held_back])
    tally.files += len(states)


def _store(home: Home, store: TurnStore, events: Iterable[Event], tell: Callable[[float], None]) -> None:
    home.database.relax()
    try:
        store.store_all(events, tell)
    finally:
        home.database.tighten()


def _cursor(home: Home, path: Path) -> tuple[str, Cursor] | None:
    """Where the reading of a file ended. Names are looked at for secrets only where the name itself is not known."""
    known = home.sessions.cursor(str(path))
    kept = str(path) if known else kept_name(home.redactor, str(path))
    return known or (home.sessions.cursor(kept) if kept != str(path) else None)


def _events(home: Home, jobs: Sequence[Job], exclusions: Exclusions) -> Iterator[Event]:
    settings = home.settings
    processes = count_processes(jobs, settings.whole("ingest.workers"))
    if processes == 1:
        return read_files(jobs, home.redactor, exclusions.tools)
    patterns, allow, kinds = settings.redaction
    setup = workers.Setup(tuple(patterns), tuple(allow), kinds, tuple(exclusions.tools))
    return workers.read_in_processes(jobs, home.redactor, setup, processes)
