"""What an ingest would read and cost; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from nacre.errors import NacreError
from nacre.extraction.estimate import Estimate, estimate_learning, estimate_vectors
from nacre.home.exclusions import Exclusions
from nacre.home.home import Home
from nacre.indexing.vectors import passages
from nacre.ingestion import discovery
from nacre.ingestion.read import jobs_for
from nacre.ingestion.read_tally import ReadTally
from nacre.ingestion.requests import IngestOptions
from nacre.parsing.parse import FileDone, FileFailed, Job, read_files, recognise
from nacre.text.passages import count_tokens
from nacre.tombstones.tombstones import Gate
from nacre.values.reports import IngestPlan, Problem
from nacre.values.session import Session, Turn


def plan(home: Home, options: IngestOptions) -> IngestPlan:
    """What an ingest would read, by size and by what files look like; changes nothing. Raises NotFound."""
    findings = _findings(home, options)
    tally = ReadTally(problems=findings.problems)
    unread = sum(_unread_bytes(home, job, tally) for job in jobs_for(home, findings.files, tally, force=options.force))
    told = tally.in_report()
    return IngestPlan(
        files=tally.tools.total(), bytes=unread,
        **{name: told[name] for name in ("tools", "skipped", "unrecognised", "excluded", "problems")},
    )  # fmt: skip


def _unread_bytes(home: Home, job: Job, tally: ReadTally) -> int:
    """Bytes of a file that are still to be read; counts it as what it looks like."""
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


def estimate(home: Home, options: IngestOptions) -> Estimate:
    """What learning would cost if models did it, from what waits and from what is not read yet; stores nothing.

    Raises NotFound for a path that does not exist.
    """
    findings = _findings(home, options)
    problems = list(findings.problems)
    jobs = jobs_for(home, findings.files, ReadTally(), force=options.force)
    tokens = 0

    def counted() -> Iterator[tuple[Session, Sequence[Turn]]]:
        nonlocal tokens
        for session, turns in unstored(home, jobs, problems):
            tokens += sum(count_tokens(part) for turn in turns for part in passages(turn.text))
            yield session, turns

    found = estimate_learning(home, counted(), problems, older=options.older)
    return replace(found, vectors=estimate_vectors(home, tokens))


def _findings(home: Home, options: IngestOptions) -> discovery.Findings:
    found = discovery.find(home, options.paths, with_discovery=options.discover or not options.paths)
    return discovery.only_like(found, options.globs)


def sessions_in(home: Home, paths: Sequence[Path]) -> Iterator[tuple[Session, Sequence[Turn]]]:
    """The sessions of some transcripts that are not read yet; nothing of them is kept. Raises NotFound."""
    files = discovery.find(home, paths, with_discovery=False).files
    return unstored(home, jobs_for(home, files, ReadTally()), [])


def unstored(
    home: Home, jobs: Sequence[Job], problems: list[Problem]
) -> Iterator[tuple[Session, Sequence[Turn]]]:  # fmt: skip
    """Sessions of transcripts, one file after another; nothing of them is kept."""
    exclusions = Exclusions(home.settings)
    gate = Gate(home)
    sessions: dict[Session, list[Turn]] = {}
    for event in read_files(jobs, home.redactor, exclusions.tools):
        if isinstance(event, FileFailed):
            problems += [event.problem] if event.problem else []
        elif isinstance(event, FileDone):
            yield from sessions.items()
            sessions = {}
        elif not exclusions.reason(home, event.session) and gate.admits(event.session):
            sessions.setdefault(event.session, []).extend(event.turns)
