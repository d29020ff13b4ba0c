"""A :class:`~nacre.values.recall.Filter` as SQL: fixed fragments, bound values. The only place that composes SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from nacre.platform.days import day_interval
from nacre.platform.ids import to_ms
from nacre.values.memory import Scope
from nacre.values.recall import Filter

if TYPE_CHECKING:
    from nacre.values.filters import DeedFilter

_VISIBLE = {
    Scope.PRIVATE: (Scope.PRIVATE, Scope.PERSONAL, Scope.PUBLIC),
    Scope.PERSONAL: (Scope.PERSONAL, Scope.PUBLIC),
    Scope.PUBLIC: (Scope.PUBLIC,),
}

_IN_SESSIONS = """s.row IN (
    SELECT row FROM sessions WHERE tool || ':' || native_id IN (SELECT value FROM json_each(?))
    OR label IN (SELECT value FROM json_each(?))
)"""
_SAID_IN = """(m.session IN (SELECT value FROM json_each(?)) OR m.session IN (
    SELECT tool || ':' || native_id FROM sessions WHERE label IN (SELECT value FROM json_each(?))
))"""


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition (``TRUE`` where nothing restricts), the values that it binds in order, and the view that it is on."""

    sql: str
    values: tuple[object, ...] = ()
    source: str = "active_memories"

    def into(self, statement: str) -> str:
        """A fixed statement with the condition at ``{where}`` and the view at ``{source}``."""
        return statement.format(where=self.sql, source=self.source)

    @property
    def is_open(self) -> bool:
        """Whether everything passes."""
        return not self.values and self.sql == "TRUE"


def memory_clause(wanted: Filter, today: date | None = None, *, for_list: bool = False) -> Clause:
    """The condition on memories ``m``: on those that are active, or were on the day that ``as_of`` names.

    With ``today``, what is no longer true does not pass. What has expired by then passes only ``for_list``.
    """
    parts = [
        *_past_parts(wanted.as_of),
        *_project_parts("m.project", wanted),
        *_time_parts("m.created", wanted),
        *_among("m.kind", wanted.kinds),
        *_among("m.expiry", wanted.expiry),
        *_among("substr(m.session, 1, max(instr(m.session, ':') - 1, 0))", wanted.tools),
    ]
    if wanted.sessions:
        parts.append((_SAID_IN, (json.dumps(wanted.sessions),) * 2))
    if wanted.scope != Scope.PRIVATE:
        parts += _among("m.scope", _VISIBLE[wanted.scope])
    if today is not None and wanted.as_of is None:
        parts.append(("(m.valid_until IS NULL OR m.valid_until >= ?)", (today.isoformat(),)))
    if today is not None and not for_list:
        parts.append(("(m.expires_on IS NULL OR m.expires_on > ?)", (today.isoformat(),)))
    if wanted.min_importance is not None:
        parts.append(("m.importance >= ?", (wanted.min_importance,)))
    if wanted.owner_only:
        parts.append(("m.speaker = 'owner'", ()))
    if wanted.trusted:
        parts.append(("m.trust = 'trusted'", ()))
    if wanted.settled:
        parts.append(("m.inbox = 0 AND m.proposed = 0", ()))
    if wanted.tags:
        marks = ", ".join("?" * len(wanted.tags))
        tags = tuple(tag.lower() for tag in wanted.tags)
        parts.append((f"m.id IN (SELECT g.memory FROM tags g WHERE lower(g.tag) IN ({marks}))", tags))  # noqa: S608
    return replace(_all(parts), source="past_memories" if wanted.as_of else "active_memories")


FORMER = Clause("m.superseded_by IS NOT NULL", source="past_memories")
"""The condition on memories that something took the place of."""


_HOLDS_WORD = """(instr(lower(m.subject || ' ' || m.content), lower(?)) > 0
OR EXISTS (SELECT 1 FROM tags g WHERE g.memory = m.id AND instr(lower(g.tag), lower(?)) > 0))"""


def with_words(clause: Clause, words: Sequence[str]) -> Clause:
    """The condition, and that a memory's subject, content or tags contain each of some words."""
    if not words:
        return clause
    sql = " AND ".join((clause.sql, *(_HOLDS_WORD for _ in words)))
    return replace(clause, sql=sql, values=(*clause.values, *(word for word in words for _ in range(2))))


def turn_clause(wanted: Filter) -> Clause:
    """The condition on ``turns t JOIN sessions s``; turns are private."""
    parts = [
        *_project_parts("s.project", wanted),
        *_time_parts("t.time", wanted),
        *_session_parts(wanted),
        *_among("s.tool", wanted.tools),
    ]
    if wanted.sessions:
        parts.append((_IN_SESSIONS, (json.dumps(wanted.sessions),) * 2))
    if wanted.owner_only:
        parts.append(("t.speaker = 'owner'", ()))
    if wanted.trusted:
        parts.append(("t.trust = 'trusted'", ()))
    if wanted.as_of:
        parts.append(("t.time < ?", (to_ms(day_interval(wanted.as_of)[1]),)))
    if wanted.scope != Scope.PRIVATE:
        parts.append(("FALSE", ()))
    return _all(parts)


def deed_clause(wanted: DeedFilter) -> Clause:
    """The condition on what was done, in ``turns t JOIN sessions s``."""
    parts: list[tuple[str, tuple[object, ...]]] = []
    if wanted.project:
        parts.append(("s.project = ?", (wanted.project,)))
    if wanted.tool:
        parts.append(("s.tool = ?", (wanted.tool,)))
    if wanted.since:
        parts.append(("coalesce(t.time, s.ended) >= ?", (to_ms(wanted.since),)))
    return _all(parts)


def _past_parts(day: date | None) -> list[tuple[str, tuple[object, ...]]]:
    """What held on a day: it had begun, and had not ended; what was superseded that day had."""
    if day is None:
        return []
    began = "coalesce(m.valid_since, date(m.created / 1000, 'unixepoch', 'localtime')) <= ?"
    lasted = (
        "CASE WHEN m.superseded_by IS NULL THEN coalesce(m.valid_until >= ?, TRUE)"
        " ELSE coalesce(m.valid_until > ?, FALSE) END"
    )
    return [(began, (day.isoformat(),)), (lasted, (day.isoformat(), day.isoformat()))]


def _project_parts(column: str, wanted: Filter) -> list[tuple[str, tuple[object, ...]]]:
    parts: list[tuple[str, tuple[object, ...]]] = []
    if wanted.projects:
        marks = ", ".join("?" * len(wanted.projects))
        open_end = "" if wanted.strict else f" OR {column} IS NULL"
        parts.append((f"({column} IN ({marks}){open_end})", tuple(wanted.projects)))
    if wanted.exclude_projects:
        marks = ", ".join("?" * len(wanted.exclude_projects))
        parts.append((f"({column} IS NULL OR {column} NOT IN ({marks}))", tuple(wanted.exclude_projects)))
    return parts


def _time_parts(column: str, wanted: Filter) -> list[tuple[str, tuple[object, ...]]]:
    parts: list[tuple[str, tuple[object, ...]]] = []
    if wanted.since:
        parts.append((f"{column} >= ?", (to_ms(wanted.since),)))
    if wanted.until:
        parts.append((f"{column} < ?", (to_ms(wanted.until),)))
    return parts


def _session_parts(wanted: Filter) -> list[tuple[str, tuple[object, ...]]]:
    """What follows for a session from the times of its turns: there are few sessions, and many turns."""
    parts: list[tuple[str, tuple[object, ...]]] = []
    if wanted.since:
        parts.append(("(s.ended IS NULL OR s.ended >= ?)", (to_ms(wanted.since),)))
    if wanted.until:
        parts.append(("(s.started IS NULL OR s.started < ?)", (to_ms(wanted.until),)))
    return parts


def _among(column: str, options: Sequence[str]) -> list[tuple[str, tuple[object, ...]]]:
    if not options:
        return []
    return [(f"{column} IN ({', '.join('?' * len(options))})", tuple(str(option) for option in options))]


def _all(parts: list[tuple[str, tuple[object, ...]]]) -> Clause:
    if not parts:
        return Clause("TRUE")
    return Clause(" AND ".join(sql for sql, _ in parts), tuple(value for _, values in parts for value in values))
