"""Read what a session wrote until now, without looking at all the others: its transcript, through its cursor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from nacre.home.home import Home
from nacre.ingestion import discovery
from nacre.ingestion.ingest import read_changed, unread
from nacre.values.filters import SessionFilter
from nacre.values.reports import IngestReport
from nacre.values.session import StoredSession

RECENT_SECONDS = 86_400
_MOST_RECENT = 20
_MOST_BYTES = 50_000_000
"""What is larger all together is for an ingest, which tells how it goes on."""


def read_session(home: Home, session: str, transcript: str | None = None) -> StoredSession | None:
    """Make a session searchable up to its last line; the session as it is known then, ``None`` where it is not.

    Where nobody says which file it writes, it is the one that it was read from before, else those that its tool wrote
    to within a day.
    """
    known = find_session(home, session)
    paths = [Path(transcript)] if transcript else [Path(known.file)] if known and known.file else []
    paths = [path for path in paths if path.is_absolute() and os.path.isfile(path)]  # which says no where Path raises
    read_files(home, paths or list(_of_tool(home, session.partition(":")[0])))
    return find_session(home, session) or (_written_to(home, paths[0]) if paths else None)


def read_files(home: Home, paths: list[Path]) -> IngestReport | None:
    """Make the transcripts among some files searchable, as far as they changed; the latest, where these are many."""
    files = discovery.look(home, paths).files[-_MOST_RECENT:]
    jobs = unread(home, files)
    while len(jobs) > 1 and sum(job.unread for job in jobs) > _MOST_BYTES:
        jobs = jobs[1:]
    return read_changed(home, jobs) if jobs else None


def read_recent(home: Home) -> IngestReport | None:
    """Make searchable what any tool wrote within a day."""
    return read_files(home, list(_of_tool(home, None)))


def read_beside(home: Home, transcript: str | None) -> IngestReport | None:
    """Make searchable what was written within a day to files beside a transcript: of sessions that ended unseen."""
    if not transcript or not Path(transcript).is_absolute():
        return None
    own = Path(transcript)
    try:
        beside = [path for path in own.parent.iterdir() if path.suffix == own.suffix and path != own]
    except OSError:
        return None
    return read_files(home, [path for path in beside if _is_recent(home, path)])


def find_session(home: Home, session: str) -> StoredSession | None:
    """The session of an id, where it was read."""
    return next((one for one in home.sessions.find(session) if one.session.id == session), None)


def _written_to(home: Home, path: Path) -> StoredSession | None:
    """The latest session of a transcript: for hosts whose own name of it is another."""
    newest = home.sessions.newest(SessionFilter(), limit=_MOST_RECENT)
    return next((one for one in newest if one.file == str(path)), None)


def _of_tool(home: Home, tool: str | None) -> Iterator[Path]:
    """Files that a tool, or any, wrote to within a day."""
    projects = tuple(sorted(discovery.projects_of(home)))
    for adapter, root in discovery.tool_roots(home, projects, []):
        if tool in (None, adapter.tool):
            yield from (path for path in discovery.below(root) if _is_recent(home, path))


def _is_recent(home: Home, path: Path) -> bool:
    try:
        changed = discovery.footprint(path)[1]
    except OSError:
        return False
    return home.clock().timestamp() - changed / 1e9 < RECENT_SECONDS
