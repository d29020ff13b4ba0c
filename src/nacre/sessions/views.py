"""Look at what is there: one memory with all that belongs to it, sessions, one session with its turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.home.lookup import find_session
from nacre.memories.scan import catch_up
from nacre.sessions.opening import opening_of
from nacre.values.filters import SessionFilter
from nacre.values.session import StoredSession, StoredTurn, ToolCall, Turn
from nacre.views import SessionLine, SessionPage, SessionView


def list_sessions(home: Home, wanted: SessionFilter, *, limit: int, offset: int = 0) -> SessionPage:
    """A page of sessions, the newest first."""
    found, total = home.sessions.page(wanted, limit=limit + 1, offset=offset)
    page = found[:limit]
    active = home.sessions.active([item.row for item in page])
    lines = [SessionLine(item, opening_of(home, item), active.get(item.row)) for item in page]
    tools = tuple(tool for tool, *_ in home.sessions.counts())
    return SessionPage(tuple(lines), len(found) > limit, total, tools)


def look_at_session(
    home: Home, reference: str | None, *, first: int = 0, limit: int = -1, folder: Path | None = None,
    around: str | None = None,
) -> SessionView:  # fmt: skip
    """A session by its id or the beginning of it, else the last one of the folder; its turns from ``first`` on.

    With ``around``, the turns before and after the one of that id. Raises NotFound, Conflict.
    """
    catch_up(home)
    session = find_session(home, reference, folder)
    if around is not None:
        place = home.sessions.place_of(session.row, around)
        if place is None:
            raise NotFound(f"the session has no turn {around!r}", hint="nacre sessions show lists its turns")
        first = max(0, place - max(0, limit) // 2)
    return _view(home, session, home.sessions.turns_of(session.row, first=first, limit=limit))


def look_at_end(home: Home, reference: str | None, *, limit: int, folder: Path | None = None) -> SessionView:
    """The same with its last turns."""
    catch_up(home)
    session = find_session(home, reference, folder)
    return _view(home, session, home.sessions.last_turns(session.row, limit))


def cleaned(home: Home, view: SessionView) -> SessionView:
    """A session as it goes out: with today's rules of redaction."""
    clean = home.redactor.clean
    session = view.session.session
    bare = replace(
        session,
        title=session.title and clean(session.title), cwd=session.cwd and clean(session.cwd),
        branch=session.branch and clean(session.branch), label=session.label and clean(session.label),
    )  # fmt: skip
    file = view.session.file
    return replace(
        view,
        session=replace(view.session, session=bare, file=file and clean(file)),
        turns=tuple(replace(item, turn=clean_turn(item.turn, clean)) for item in view.turns),
        opening=view.opening and clean(view.opening),
    )


def _view(home: Home, stored: StoredSession, turns: Sequence[StoredTurn]) -> SessionView:
    learned = [home.memories.find(known.id) for known in home.memories.known_of(stored.session.id)]
    memories = tuple(memory for memory in learned if memory and memory.is_active)
    children = home.sessions.children(stored.row)
    active = home.sessions.active([stored.row, *(child.row for child in children)])
    parents = home.sessions.find(f"{stored.session.tool}:{stored.session.parent}") if stored.session.parent else []
    return SessionView(
        stored, tuple(turns), memories, opening_of(home, stored), active.get(stored.row), next(iter(parents), None),
        tuple(SessionLine(child, opening_of(home, child), active.get(child.row)) for child in children),
    )  # fmt: skip


def clean_turn(turn: Turn, clean: Callable[[str], str]) -> Turn:
    """With the rules of today, as everything that goes out."""
    calls = tuple(_clean_call(call, clean) for call in turn.tool_calls)
    return replace(turn, text=clean(turn.text), author=turn.author and clean(turn.author), tool_calls=calls)


def _clean_call(call: ToolCall, clean: Callable[[str], str]) -> ToolCall:
    return replace(
        call, name=clean(call.name), input=clean(call.input), outcome=call.outcome and clean(call.outcome),
        paths=tuple(map(clean, call.paths)), error=call.error and clean(call.error),
        made=tuple(map(clean, call.made)),
    )  # fmt: skip
