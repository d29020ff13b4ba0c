"""Read what a session wrote until now, without looking at all the others: its transcript, through its cursor.

Any process can run a hook, so the path in its input is only a hint: it selects one of the files that its tool's
readers would find by themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from nacre.home.home import Home
from nacre.ingestion import discovery
from nacre.ingestion.ingest import read_changed, unread
from nacre.transcripts.adapter import Root
from nacre.values.filters import SessionFilter
from nacre.values.reports import IngestReport
from nacre.values.session import StoredSession

RECENT_SECONDS = 86_400
_MOST_RECENT = 20
_MOST_BYTES = 50_000_000
"""What is larger all together is for an ingest, which tells how it goes on."""


def read_session(home: Home, session: str, transcript: str | None = None) -> StoredSession | None:
    """Make a session searchable up to its last line; the session as it is known then, ``None`` where it is not.

    Without a transcript in a folder of its tool, read the file that the session was read from before, else the files
    that its tool wrote to within a day.
    """
    tool = session.partition(":")[0]
    named = _own_transcript(home, tool, transcript)
    if named and os.path.isfile(named):
        read_files(home, [named], tool)
        return find_session(home, session) or _written_to(home, named)
    known = find_session(home, session)
    before = known.file if known else None
    read_files(home, [Path(before)] if before and os.path.isfile(before) else _of_tool(home, tool), tool)
    return find_session(home, session)


def _own_transcript(home: Home, tool: str, transcript: str | None) -> Path | None:
    """The name under which discovery finds a transcript of a tool; ``None`` for any other file.

    Links are resolved. The file need not exist yet.
    """
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
    """Make the transcripts among some files searchable, as far as they changed; the latest, where these are many.

    With ``tool``, only its own readers read them.
    """
    files = discovery.look(home, paths).files[-_MOST_RECENT:]
    jobs = [replace(job, reader=tool) for job in unread(home, files)]
    while len(jobs) > 1 and sum(job.unread for job in jobs) > _MOST_BYTES:
        jobs = jobs[1:]
    return read_changed(home, jobs) if jobs else None


def read_recent(home: Home) -> IngestReport | None:
    """Make searchable what any tool wrote within a day."""
    return read_files(home, _of_tool(home, None))


def read_beside(home: Home, session: str, transcript: str | None) -> IngestReport | None:
    """Make searchable what was written within a day to files beside a transcript: of sessions that ended unseen."""
    tool = session.partition(":")[0]
    own = _own_transcript(home, tool, transcript)
    if own is None:
        return None
    try:
        beside = [path for path in own.parent.iterdir() if path.suffix == own.suffix and path != own]
    except OSError:
        return None
    own_files = [path for path in beside if _is_recent(home, path) and _own_transcript(home, tool, str(path)) == path]
    return read_files(home, own_files, tool)


def find_session(home: Home, session: str) -> StoredSession | None:
    """The session of an id, where it was read."""
    return next((one for one in home.sessions.find(session) if one.session.id == session), None)


def _written_to(home: Home, path: Path) -> StoredSession | None:
    """The latest session of a transcript: for hosts whose own name of it is another."""
    newest = home.sessions.newest(SessionFilter(), limit=_MOST_RECENT)
    return next((one for one in newest if one.file == str(path)), None)


def _of_tool(home: Home, tool: str | None) -> list[Path]:
    """Files that a tool, or any, wrote to within a day."""
    return [path for root in _roots(home, tool) for path in discovery.below(root) if _is_recent(home, path)]


def _roots(home: Home, tool: str | None) -> Iterator[Root]:
    """Return the folders in which a tool, or any, keeps transcripts."""
    found = discovery.tool_roots(home, discovery.projects_of(home), [])
    return (root for adapter, root in found if tool in (None, adapter.tool))


def _is_recent(home: Home, path: Path) -> bool:
    try:
        changed = discovery.footprint(path)[1]
    except OSError:
        return False
    return home.clock().timestamp() - changed / 1e9 < RECENT_SECONDS
