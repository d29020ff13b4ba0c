"""Who changed this file, when and why: the deeds of agents, grouped by what they were asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from nacre.home.home import Home
from nacre.sessions.requests import DidQuery
from nacre.storage.file_history import plain_path
from nacre.text.passages import words
from nacre.values.file_history import FileChange, FileHistory, FileUse
from nacre.values.recall import Filter
from nacre.values.session import Action, Flag, Session, SessionKind, Speaker, StoredSession, StoredTurn, ToolCall, Turn

_USES_READ = 2_000
_REQUESTS_READ = 5
_TELLING_WORDS = 4
_WORDS_AHEAD = 200
_DRIVE = re.compile(r"^[a-zA-Z]:")


@dataclass(slots=True)
class _Group:
    session: int
    request: int | None
    uses: list[FileUse] = field(default_factory=list)
    commands: list[tuple[int, ToolCall]] = field(default_factory=list)

    @property
    def last_seq(self) -> int:
        """Where its last deed stands."""
        return max([*(use.seq for use in self.uses), *(seq for seq, _ in self.commands)])


def did(home: Home, query: DidQuery) -> FileHistory:
    """What agents did to a file or to what lies in a folder, the newest first."""
    named = find_files(home, query.path)
    uses = home.deeds.uses(list(named), query.wanted, reads=True, limit=_USES_READ) if named else []
    counted = [use for use in uses if query.reads or use.action is Action.EDIT]
    groups = _grouped(home, counted)
    if query.commands:
        _add_commands(home, query, groups)
    ordered = sorted(groups, key=lambda group: _moment(home, group), reverse=True)
    page = ordered[query.offset : query.offset + query.limit]
    return FileHistory(
        asked=query.path,
        paths=tuple(sorted({named[use.file] for use in uses} or named.values())),
        changes=tuple(_change(home, group, uses, named) for group in page),
        edits=sum(use.action is Action.EDIT for use in uses),
        reads=sum(use.action is Action.READ for use in uses),
        sessions=len({use.session for use in counted}),
        more=len(ordered) > query.offset + query.limit,
    )


def find_files(home: Home, asked: str) -> dict[int, str]:
    """The files that fit what a person names, by row: the file itself, else every file whose path ends so, else all
    that lie in such a folder. Where a relative path lies is not known: ``src/a.py`` fits ``/code/x/src/a.py``, and the
    other way round."""
    wanted = _forms(asked)
    name = wanted[0].rsplit("/", 1)[-1]
    files = home.deeds.files_named(name)
    exact = {row: path for row, path in files if any(_same(path, form) for form in wanted)}
    if exact:
        return exact
    loose = {row: path for row, path in files if any(_ends_alike(path, form) for form in wanted)}
    return loose or _below(home, wanted)


def request_before(home: Home, session: Session, row: int, seq: int) -> StoredTurn | None:
    """What was asked for before a place in a session: the latest request that says something, else the latest one."""
    by = Speaker.OWNER if session.kind is SessionKind.MAIN else Speaker.AGENT
    rows = home.deeds.requests(row, seq, by=by, limit=_REQUESTS_READ)
    turns = home.sessions.by_rows(rows)
    ordered = [turns[row] for row in rows if row in turns]
    if by is Speaker.AGENT:
        first = home.sessions.turns_of(row, limit=1)
        return next(iter(first), None)
    telling = (turn for turn in ordered if len(words(turn.turn.text)) >= _TELLING_WORDS)
    return next(telling, ordered[0] if ordered else None)


def _forms(asked: str) -> list[str]:
    """A path as named, and from the folder that nacre runs in."""
    plain = plain_path(str(Path(asked).expanduser()) if asked.startswith("~") else asked)
    found = [plain]
    if not _is_whole(plain):
        here = plain_path(str(Path.cwd() / plain))
        if os.path.exists(Path.cwd() / plain):  # which is false, too, where no file can have that name
            found.insert(0, here)
    return found


def _same(path: str, form: str) -> bool:
    return path == form or (bool(_DRIVE.match(path)) and path.lower() == form.lower())


def _ends_alike(path: str, form: str) -> bool:
    """Whether one path may be the other as told from another folder; two whole paths are what they are."""
    if _is_whole(path) and _is_whole(form):
        return False
    one, other = _components(path.lower()), _components(form.lower())
    shorter = min(len(one), len(other))
    return shorter > 0 and one[-shorter:] == other[-shorter:]


def _is_whole(path: str) -> bool:
    return path.startswith("/") or bool(_DRIVE.match(path))


def _below(home: Home, wanted: Sequence[str]) -> dict[int, str]:
    found = {}
    for row, path in home.deeds.all_files():
        for form in wanted:
            inside = f"{form.rstrip('/')}/"
            if path.startswith(inside) or (not form.startswith("/") and f"/{inside}" in path):
                found[row] = path
    return found


def _components(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _grouped(home: Home, uses: Iterable[FileUse]) -> list[_Group]:
    groups: dict[tuple[int, int | None], _Group] = {}
    for use in uses:
        group = _group(home, groups, use.session, use.seq)
        group.uses.append(use)
    return list(groups.values())


def _group(home: Home, groups: dict[tuple[int, int | None], _Group], session: int, seq: int) -> _Group:
    stored = home.sessions.get(session)
    asked = request_before(home, stored.session, session, seq)
    key = (session, asked.row if asked else None)
    return groups.setdefault(key, _Group(*key))


def _add_commands(home: Home, query: DidQuery, groups: list[_Group]) -> None:
    """Commands that name the file, where nothing else tells of them."""
    name = plain_path(query.path).rsplit("/", 1)[-1]
    wanted = Filter(projects=(query.wanted.project,) if query.wanted.project else (), strict=True)
    found = home.turn_search.match_parts([name], wanted, _USES_READ)
    turns = home.sessions.by_rows([row for row, _, _ in found])
    known = {(group.session, group.request): group for group in groups}
    for stored in turns.values():
        for call in stored.turn.tool_calls:
            if call.action is Action.RUN and name in call.input:
                _group(home, known, stored.session, stored.seq).commands.append((stored.seq, call))
    groups[:] = list(known.values())


def _moment(home: Home, group: _Group) -> tuple[float, int]:
    times = [use.time for use in group.uses if use.time]
    stored = home.sessions.get(group.session)
    time: datetime | None = max(times) if times else stored.ended or stored.session.started
    return time.timestamp() if time else 0.0, group.last_seq


def _change(home: Home, group: _Group, uses: Sequence[FileUse], named: dict[int, str]) -> FileChange:
    stored = home.sessions.get(group.session)
    turns = {item.row: item for item in home.sessions.by_rows([use.turn for use in group.uses]).values()}
    files = {use.file for use in group.uses}
    within = [use for use in uses if use.session == group.session and use.turn in turns]
    last = max(group.uses, key=lambda use: use.seq, default=None)
    request = home.sessions.by_rows([group.request])[group.request].turn if group.request else None
    calls = [call for item in turns.values() for call in item.turn.tool_calls]
    paths = {plain_path(named[file]) for file in files}
    return FileChange(
        path=named[last.file] if last else "",
        session=stored.session,
        project=stored.project,
        seq=group.last_seq,
        time=max((use.time for use in group.uses if use.time), default=stored.ended),
        edits=sum(use.action is Action.EDIT for use in within),
        reads=sum(use.action is Action.READ for use in within),
        commands=tuple(call for _, call in group.commands),
        failed=sum(call.failed for call in calls if paths & {plain_path(path) for path in call.paths}),
        request=request,
        words=said_of(home, stored, group.last_seq),
    )


def said_of(home: Home, stored: StoredSession, seq: int) -> Turn | None:
    """What the agent said of what it was doing at a place of a session: its last words before the owner's next."""
    said = None
    for item in home.sessions.turns_of(stored.row, first=seq, limit=_WORDS_AHEAD):
        turn = item.turn
        if turn.speaker is Speaker.OWNER and not turn.flags & Flag.META:
            break
        if turn.speaker is Speaker.AGENT and turn.text and not turn.flags & Flag.SUMMARY:
            said = turn
    return said
