"""Read what a session wrote until now, without looking at all the others: its transcript, through its cursor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from nacre.app import finding
from nacre.app.context import Context
from nacre.app.ingesting import read_jobs, unread
from nacre.model.reports import IngestReport
from nacre.storage.sessions import SessionFilter, StoredSession

RECENT_SECONDS = 86_400
_MOST_RECENT = 20
_MOST_BYTES = 50_000_000
"""What is larger all together is for an ingest, which tells how it goes on."""


def read_session(context: Context, session: str, transcript: str | None = None) -> StoredSession | None:
    """Make a session searchable up to its last line; the session as it is known then, ``None`` where it is not.

    Where nobody says which file it writes, it is the one that it was read from before, else those that its tool wrote
    to within a day.
    """
    known = find_session(context, session)
    paths = [Path(transcript)] if transcript else [Path(known.file)] if known and known.file else []
    paths = [path for path in paths if path.is_absolute() and os.path.isfile(path)]  # which says no where Path raises
    read_files(context, paths or list(_of_tool(context, session.partition(":")[0])))
    return find_session(context, session) or (_written_to(context, paths[0]) if paths else None)


def read_files(context: Context, paths: list[Path]) -> IngestReport | None:
    """Make the transcripts among some files searchable, as far as they changed; the latest, where these are many."""
    files = finding.look(context, paths).files[-_MOST_RECENT:]
    jobs = unread(context, files)
    while len(jobs) > 1 and sum(job.unread for job in jobs) > _MOST_BYTES:
        jobs = jobs[1:]
    return read_jobs(context, jobs) if jobs else None


def read_recent(context: Context) -> IngestReport | None:
    """Make searchable what any tool wrote within a day."""
    return read_files(context, list(_of_tool(context, None)))


def read_beside(context: Context, transcript: str | None) -> IngestReport | None:
    """Make searchable what was written within a day to files beside a transcript: of sessions that ended unseen."""
    if not transcript or not Path(transcript).is_absolute():
        return None
    own = Path(transcript)
    try:
        beside = [path for path in own.parent.iterdir() if path.suffix == own.suffix and path != own]
    except OSError:
        return None
    return read_files(context, [path for path in beside if _is_recent(context, path)])


def find_session(context: Context, session: str) -> StoredSession | None:
    """The session of an id, where it was read."""
    return next((one for one in context.sessions.find(session) if one.session.id == session), None)


def _written_to(context: Context, path: Path) -> StoredSession | None:
    """The latest session of a transcript: for hosts whose own name of it is another."""
    newest = context.sessions.newest(SessionFilter(), limit=_MOST_RECENT)
    return next((one for one in newest if one.file == str(path)), None)


def _of_tool(context: Context, tool: str | None) -> Iterator[Path]:
    """Files that a tool, or any, wrote to within a day."""
    projects = tuple(sorted(finding.projects_of(context)))
    for adapter, root in finding.tool_roots(context, projects, []):
        if tool in (None, adapter.tool):
            yield from (path for path in finding.below(root) if _is_recent(context, path))


def _is_recent(context: Context, path: Path) -> bool:
    try:
        changed = finding.footprint(path)[1]
    except OSError:
        return False
    return context.clock().timestamp() - changed / 1e9 < RECENT_SECONDS
