"""Compare two measurements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nacre.base.frozen import frozen
from nacre.cli.command import Paper, bold, dim
from nacre.errors import InvalidInputError

_MEASURES = ("recall", "recall_any_kind", "must_recall", "precision", "score", "composite")
_COUNTS = ("memories", "duplicates", "skip_hits", "long")

Record = Mapping[str, Any]


@frozen
class Change:
    """The earlier and the current value of a figure."""

    name: str
    before: float | None
    now: float | None


@frozen
class SessionChange:
    """A session whose score changed, with the labels gained and lost."""

    session: str
    before: float
    now: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@frozen
class Changes:
    """Changes in total, and in each session that both measurements have."""

    overall: tuple[Change, ...]
    sessions: tuple[SessionChange, ...]

    def record(self) -> dict[str, Any]:
        return asdict(self)


@frozen
class Figures:
    """An earlier measurement."""

    record: Record

    def changes_to(self, now: Record) -> Changes:
        overall = tuple(
            Change(name, self.record[part].get(name), now[part].get(name))
            for part, names in (
                ("overall", (*_MEASURES, *_COUNTS)),
                ("fixtures_overall", _MEASURES),
            )
            for name in names
            if now[part]["sessions"] and name in now[part]
        )
        before = {
            item["session"]: item for item in (*self.record["sessions"], *self.record["fixtures"])
        }
        sessions = (
            _session_change(before[item["session"]], item)
            for item in (*now["sessions"], *now["fixtures"])
            if item["session"] in before
        )
        changed = (
            change
            for change in sessions
            if change.before != change.now or change.gained or change.lost
        )
        return Changes(overall, tuple(changed))


def read_figures(file: Path) -> Figures:
    """Read figures written by ``--save`` or ``--json``. Raises InvalidInputError."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        missing = {"overall", "sessions", "fixtures", "fixtures_overall"} - set(record)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"{file} contains no figures: {error}", hint="save them with --save"
        ) from error
    if missing:
        raise InvalidInputError(
            f"{file} contains no figures of this benchmark", hint="save them with --save"
        )
    return Figures(record)


def write_figures(file: Path, record: Record) -> None:
    """Save a measurement."""
    file.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def render_changes(paper: Paper, changes: Changes) -> None:
    """Print the changes."""
    paper.heading("Changes")
    rows = [
        [change.name, _shown(change.before), "→", _shown(change.now)] for change in changes.overall
    ]
    paper.table(rows, indent=2)
    for change in changes.sessions:
        paper.blank()
        paper.line(
            bold(change.session), f"  {_shown(change.before)} → {_shown(change.now)}", indent=2
        )
        for sign, statements in (("+", change.gained), ("-", change.lost)):
            for statement in statements:
                paper.line(f"{sign} {statement}", indent=4, hang=2)
    if not changes.sessions:
        paper.line(dim("No session changed."), indent=2)


def _session_change(before: Record, now: Record) -> SessionChange:
    had, has = _met(before), _met(now)
    return SessionChange(
        now["session"],
        _score(before),
        _score(now),
        tuple(sorted(has - had)),
        tuple(sorted(had - has)),
    )


def _met(session: Record) -> set[str]:
    statements = {item["statement"] for item in session.get("found", ())}
    return statements | {
        f"{item['subject']}: {', '.join(item['terms'])}"
        for item in session.get("expected", ())
        if item["hit"]
    }


def _score(session: Record) -> float:
    return float(session["score"] if "score" in session else session["composite"])


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f}" if isinstance(value, float) else str(value)
