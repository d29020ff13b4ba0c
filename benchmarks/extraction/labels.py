"""Labels written by people, which say what should be learned from a session.

In nacre's own format, ``session`` is an object, and labels have ``content_terms``. In agenr's
fixtures, ``session`` is a name, and expectations have ``subject_contains``.
``benchmarks/README.md`` describes both.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nacre.base.frozen import frozen
from nacre.errors import InvalidInputError, NotFoundError

_MARK = '"must_extract"'


@frozen
class Label:
    """A fact that should be learned.

    A memory matches if it contains a term from each of the ``groups``. ``importance`` is the
    sensible range, including both ends. ``weight`` is 1 for required labels and less for optional
    ones.
    """

    kinds: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    statement: str
    evidence: tuple[str, ...] = ()
    importance: tuple[float, float] = (1, 10)
    weight: float = 1.0


@frozen
class Expectation:
    """An expectation in an agenr fixture. ``most`` is the maximum importance, if any."""

    kind: str
    subject: str
    terms: tuple[str, ...]
    least: float = 0
    most: float | None = None
    reason: str = ""


@frozen
class Skip:
    """A pattern for memories that must not be stored, and the reason."""

    pattern: re.Pattern[str]
    reason: str


@frozen
class Labelled:
    """A labelled session, with either ``labels`` or ``expectations``.

    ``least`` and ``most`` are the sensible range for the number of memories. ``ceiling`` is the
    maximum importance. ``names`` are possible names of the session's file, most specific first.
    """

    slug: str
    path: Path
    tool: str
    names: tuple[str, ...]
    session_id: str | None
    description: str
    skips: tuple[Skip, ...]
    least: int
    most: int
    labels: tuple[Label, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    is_fixture: bool = False
    ceiling: float | None = None


def load_labels(folder: Path, only: Collection[str] = ()) -> list[Labelled]:
    """Read all labelled sessions in a folder and its subfolders. Raises NotFoundError, InvalidInputError.

    A slug is the name of the label's file, or its relative path if two files have the same name.
    """
    sessions = [read_labels(path) for path in sorted(folder.rglob("*.json")) if _is_label(path)]
    if not sessions:
        raise NotFoundError(
            f"no labels in {folder}",
            hint="labels are JSON files with must_extract: benchmarks/README.md",
        )
    counts = Counter(item.slug for item in sessions)
    unique = [
        item
        if counts[item.slug] == 1
        else replace(item, slug=item.path.relative_to(folder).with_suffix("").as_posix())
        for item in sessions
    ]
    unknown = set(only) - {item.slug for item in unique}
    if unknown:
        raise NotFoundError(
            f"no labels named {', '.join(sorted(unknown))}",
            hint=f"available: {', '.join(item.slug for item in unique)}",
        )
    return [item for item in unique if not only or item.slug in only]


def read_labels(path: Path) -> Labelled:
    """Read a file with labels. Raises InvalidInputError with the reason."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return (
            _read_fixture(path, data) if isinstance(data["session"], str) else _read_own(path, data)
        )
    except KeyError as error:
        raise InvalidInputError(
            f"{path} has no {error}", hint="benchmarks/README.md describes labels"
        ) from error
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"{path} contains no labels: {error}", hint="benchmarks/README.md describes labels"
        ) from error


def _is_label(path: Path) -> bool:
    """Return True if a JSON file contains labels. Transcripts in the same folder can be JSON, too."""
    return path.is_file() and _MARK in path.read_text(encoding="utf-8", errors="replace")


def _read_own(path: Path, data: Mapping[str, Any]) -> Labelled:
    session = data["session"]
    file = str(session["file"])
    return Labelled(
        slug=path.stem,
        path=path,
        tool=str(session["tool"]),
        names=(file, *map(str, session.get("aliases", ())), path.stem),
        session_id=session.get("session_id"),
        description=str(data.get("description", "")),
        skips=tuple(
            Skip(re.compile(item["pattern"]), str(item["reason"]))
            for item in data.get("must_skip", ())
        ),
        least=int(data["acceptable_range"]["min"]),
        most=int(data["acceptable_range"]["max"]),
        labels=tuple(_read_label(item) for item in data["must_extract"]),
    )


def _read_label(item: Mapping[str, Any]) -> Label:
    low, high = item["importance"]
    return Label(
        kinds=_strings(item["kind"]),
        groups=tuple(_strings(group) for group in item["content_terms"]),
        statement=str(item["statement"]),
        evidence=tuple(str(place) for place in item.get("evidence", ())),
        importance=(low, high),
        weight=float(item.get("weight", 1)),
    )


def _strings(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _read_fixture(path: Path, data: Mapping[str, Any]) -> Labelled:
    name = str(data["session"])
    ceiling = data.get("importance_ceiling")
    return Labelled(
        slug=path.stem,
        path=path,
        tool="openclaw",
        names=(name, f"{name}.jsonl", path.stem),
        session_id=None,
        description=str(data.get("description", "")),
        skips=tuple(
            Skip(_loose(str(item["pattern"])), str(item["reason"]))
            for item in data.get("must_skip", ())
        ),
        least=int(data["acceptable_range"]["min"]),
        most=int(data["acceptable_range"]["max"]),
        expectations=tuple(_read_expectation(item) for item in data["must_extract"]),
        is_fixture=True,
        ceiling=ceiling.get("max_allowed") if isinstance(ceiling, Mapping) else ceiling,
    )


def _read_expectation(item: Mapping[str, Any]) -> Expectation:
    return Expectation(
        kind=str(item["type"]),
        subject=str(item["subject_contains"]),
        terms=tuple(item.get("content_contains", ())),
        least=item.get("min_importance") or 0,
        most=item.get("max_importance"),
        reason=str(item.get("reason", "")),
    )


def _loose(pattern: str) -> re.Pattern[str]:
    """Compile a pattern from agenr. It is case-insensitive, and literal if it is not a regular expression."""
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error:
        return re.compile(re.escape(pattern), re.IGNORECASE)
