"""What was handed over to a session: which handoffs are due to it, each to one session alone. Light: hooks ask it.

A handoff belongs to the session that claimed it first, by a file of its name in ``run/handoffs`` that is made once.
Nobody waits for it. Whether it was delivered is in that session's state; a claim without a delivery runs out after a
minute, and the next session gets what nobody was given.
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
_MOST_BYTES = 1_000
_MOST = 3


def due(
    home: Home, project: str | None, session: str | None, *, own: bool = False
) -> list[Handoff]:
    """The handoffs of a project that a session may be given, the latest first; at most three.

    Not its own, unless ``own``: after a compaction or a reset it forgot what it handed over. Not those that another
    session was given, or is being given. Without a session all of them: nobody is given anything then.
    """
    if not project:
        return []
    since = home.now() - HANDED_FOR
    found = [one for one in home.handoffs.waiting(project) if one.written >= since]
    mine = [one for one in found if own or not session or one.session != session]
    return [one for one in mine if not session or _is_free(home, one, session)][:_MOST]


def claim(home: Home, handoff: Handoff, session: str | None) -> bool:
    """Take a handoff for a session, so that no other is given it; returns whether it has it now.

    Its own it needs not take: the next session is given it all the same. Where the home cannot be written to, nobody
    can tell, and all are given it.
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
            _put_aside(path, holder)
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
        with suppress(OSError):
            path.unlink()
    if home.handoffs.waits(handoff):
        return True
    forget_claim(home, handoff.id)  # another was given it since we looked
    return False


def _put_aside(path: Path, holder: str) -> None:
    """Take away a claim that ran out: of two who try, one finds it there. Raises OSError."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    os.rename(path, aside)
    try:
        if _holder(aside) != holder:  # another was faster, and took it
            with suppress(FileExistsError):
                os.link(aside, path)
    finally:
        aside.unlink()


def is_held(home: Home, handoff: Handoff, session: str | None) -> bool:
    """Whether a session took a handoff: it may not have been told, though."""
    return bool(session) and _holder(_path(home.settings.home, handoff.id)) == session


def let_go(home: Home, handoff_id: str, session: str | None) -> None:
    """Give back what was taken and did not fit."""
    path = _path(home.settings.home, handoff_id)
    if session and _holder(path) == session:
        with suppress(OSError):
            path.unlink()


def delivered(home: Home) -> Iterator[tuple[str, str]]:
    """The handoffs that reached the session that took them, as (id, session)."""
    home_path = home.settings.home
    for path in _claims(home_path):
        holder = _holder(path)
        if holder and path.name in read_state(home_path, holder).given:
            yield path.name, holder


def has_claim(home: Home, session: str) -> bool:
    """Whether a session took anything that it may not have been given yet."""
    return any(_holder(path) == session for path in _claims(home.settings.home))


def forget_claim(home: Home, handoff_id: str) -> None:
    """Nobody takes it any more."""
    with suppress(OSError):
        _path(home.settings.home, handoff_id).unlink()


def covered(handoff: Handoff, turns: Sequence[Turn]) -> frozenset[str]:
    """Those of a session's turns that its handoff tells of: what rules wrote quotes the owner, what anybody else wrote
    sums all of it up."""
    ids = [turn.id for turn in turns]
    if handoff.until in ids:
        known = list(turns[: ids.index(handoff.until) + 1])
    else:
        known = [turn for turn in turns if turn.time and turn.time <= handoff.said]
    return frozenset(
        turn.id for turn in known if turn.speaker is Speaker.OWNER or handoff.by != BY_RULES
    )


def is_late(handoff: Handoff, started_ms: int) -> bool:
    """Whether it was written after a session began, of one that had ended before: the session missed it."""
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
    """The session that took a handoff; empty while it is writing its name."""
    try:
        with os.fdopen(files.open_file(path, os.O_RDONLY), "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _claims(home: Path) -> list[Path]:
    with suppress(OSError):
        return [
            path for path in (home / "run" / "handoffs").iterdir() if not path.name.startswith(".")
        ]
    return []


def _path(home: Path, handoff_id: str) -> Path:
    return home / "run" / "handoffs" / handoff_id
