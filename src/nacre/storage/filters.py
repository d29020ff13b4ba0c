"""A :class:`~nacre.model.recall.Filter` as SQL: fixed fragments, bound values. The only place that composes SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from nacre.model.memory import Scope
from nacre.model.recall import Filter
from nacre.storage.times import to_ms

_VISIBLE = {
    Scope.PRIVATE: (Scope.PRIVATE, Scope.PERSONAL, Scope.PUBLIC),
    Scope.PERSONAL: (Scope.PERSONAL, Scope.PUBLIC),
    Scope.PUBLIC: (Scope.PUBLIC,),
}


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition (``1`` when nothing restricts) and the values it binds, in order."""

    sql: str
    values: tuple[object, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether everything passes."""
        return not self.values and self.sql == "1"


def memory_clause(wanted: Filter, today: date | None = None) -> Clause:
    """The condition on ``active_memories m``; with ``today``, what is no longer true does not pass."""
    parts = [
        *_project_parts("m.project", wanted),
        *_time_parts("m.created", wanted),
        *_among("m.kind", wanted.kinds),
        *_among("m.expiry", wanted.expiry),
    ]
    if wanted.scope != Scope.PRIVATE:
        parts += _among("m.scope", _VISIBLE[wanted.scope])
    if today is not None:
        parts.append(("(m.valid_until IS NULL OR m.valid_until >= ?)", (today.isoformat(),)))
    if wanted.min_importance is not None:
        parts.append(("m.importance >= ?", (wanted.min_importance,)))
    if wanted.user_only:
        parts.append(("m.speaker = 'owner'", ()))
    if wanted.tags:
        marks = ", ".join("?" * len(wanted.tags))
        tags = tuple(tag.lower() for tag in wanted.tags)
        parts.append((f"m.id IN (SELECT g.memory FROM tags g WHERE lower(g.tag) IN ({marks}))", tags))  # noqa: S608
    return _all(parts)


def turn_clause(wanted: Filter) -> Clause:
    """The condition on ``turns t JOIN sessions s``; turns are private."""
    parts = [
        *_project_parts("s.project", wanted),
        *_time_parts("t.time", wanted),
        *_among("s.tool", wanted.tools),
    ]
    if wanted.user_only:
        parts.append(("t.speaker = 'owner'", ()))
    if wanted.scope != Scope.PRIVATE:
        parts.append(("0", ()))
    return _all(parts)


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


def _among(column: str, options: Sequence[str]) -> list[tuple[str, tuple[object, ...]]]:
    if not options:
        return []
    return [(f"{column} IN ({', '.join('?' * len(options))})", tuple(str(option) for option in options))]


def _all(parts: list[tuple[str, tuple[object, ...]]]) -> Clause:
    if not parts:
        return Clause("1")
    return Clause(" AND ".join(sql for sql, _ in parts), tuple(value for _, values in parts for value in values))
