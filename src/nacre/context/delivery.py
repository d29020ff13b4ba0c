"""Delivery of each handoff to only one session, fast enough for hooks.

The session that creates a claim file in ``run/handoffs`` gets the handoff, so that no locks are
needed. Its state records the delivery, without which the claim expires after a minute.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nacre.base import files
from nacre.context.hooks import read_state
from nacre.home.home import Home
from nacre.values.session import BY_RULES, HANDED_FOR, Handoff, Speaker, Turn

CLAIM_SECONDS = 60.0
_MAX_BYTES = 1_000
_MAX_HANDOFFS = 3


def due(
    home: Home, project: str | None, session: str | None, *, own: bool = False
) -> list[Handoff]:
    """Return the handoffs of a project that a session can receive, latest first.

    Handoffs that other sessions received or claimed are left out unless ``session`` is ``None``.
    Handoffs about the session itself are left out unless it needs them after a compaction or reset
    (``own``).
    """
    if not project:
        return []
    since = home.now() - HANDED_FOR
    recent = [item for item in home.handoffs.pending(project) if item.written >= since]
    candidates = [item for item in recent if own or not session or item.session != session]
    return [item for item in candidates if not session or _is_free(home, item, session)][
        :_MAX_HANDOFFS
    ]


def claim(home: Home, handoff: Handoff, session: str | None) -> bool:
    """Claim a handoff for a session, and return True if the session can receive it.

    A handoff about the session itself is not claimed, because the next session also needs it. If
    nacre's home is not writable, every session receives it.
    """
    if not session or handoff.session == session:
        return True
    path = _path(home.settings.home, handoff.id)
    holder = _holder(path)
    if holder == session:
        return True
    if not _is_free(home, handoff, session):
        return False
    try:
        files.make_folder(path.parent)
        if holder is not None:
            aside = path.with_name(f".{path.name}.{os.getpid()}")
            os.rename(path, aside)
            try:
                if _holder(aside) != holder:  # another session claimed the handoff first
                    with suppress(FileExistsError):
                        os.link(aside, path)
            finally:
                aside.unlink()
        descriptor = files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except (FileExistsError, FileNotFoundError):
        return _holder(path) == session
    except OSError:
        return True
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(session.encode("utf-8", "surrogatepass"))
        now = home.clock().timestamp()
        os.utime(path, (now, now))
    except OSError:
        forget_claim(home, handoff.id)
    if home.handoffs.is_pending(handoff):
        return True
    forget_claim(home, handoff.id)  # another session got the handoff in the meantime
    return False


def is_held(home: Home, handoff_id: str, session: str | None) -> bool:
    """Return True if the session has claimed the handoff."""
    return bool(session) and _holder(_path(home.settings.home, handoff_id)) == session


def iter_delivered(home: Home) -> Iterator[tuple[str, str]]:
    """Yield the id of each handoff that was delivered but is still claimed, and its session."""
    home_path = home.settings.home
    for path in _claims(home_path):
        holder = _holder(path)
        if holder and path.name in read_state(home_path, holder).given:
            yield path.name, holder


def has_claim(home: Home, session: str) -> bool:
    """Return True if any session has claimed a handoff."""
    return any(_holder(path) == session for path in _claims(home.settings.home))


def forget_claim(home: Home, handoff_id: str) -> None:
    """Delete the claim on a handoff."""
    with suppress(OSError):
        _path(home.settings.home, handoff_id).unlink()


def covered_turns(handoff: Handoff, turns: Sequence[Turn]) -> frozenset[str]:
    """Return the ids of the turns that a handoff summarises, only the owner's if no model wrote it."""
    ids = [turn.id for turn in turns]
    if handoff.until in ids:
        earlier = list(turns[: ids.index(handoff.until) + 1])
    else:
        earlier = [turn for turn in turns if turn.time and turn.time <= handoff.said]
    return frozenset(
        turn.id for turn in earlier if turn.speaker is Speaker.OWNER or handoff.by != BY_RULES
    )


def is_late(handoff: Handoff, started_ms: int) -> bool:
    """Return True if a handoff was written after the current session had started.

    The handoff's session must have ended before that.
    """
    started = datetime.fromtimestamp(started_ms / 1000, UTC)
    return handoff.said <= started <= handoff.written + timedelta(seconds=1)


def _is_free(home: Home, handoff: Handoff, session: str) -> bool:
    path = _path(home.settings.home, handoff.id)
    holder = _holder(path)
    if holder is None or holder == session:
        return True
    if handoff.id in read_state(home.settings.home, holder).given:
        return False
    with suppress(OSError):
        return home.clock().timestamp() - path.stat().st_mtime > CLAIM_SECONDS
    return True


def _holder(path: Path) -> str | None:
    """Return the claiming session, or "" while the claim file is being written."""
    try:
        with os.fdopen(files.open_file(path, os.O_RDONLY), "rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _claims(home: Path) -> list[Path]:
    return list((home / "run" / "handoffs").glob("[!.]*"))


def _path(home: Path, handoff_id: str) -> Path:
    return home / "run" / "handoffs" / handoff_id
