"""Memories that may be out of date: files that they name were changed in sessions since (seed facts 2.6)."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from nacre.code.find import ends_alike
from nacre.code.mentions import catch_up_mentions, symbol_parts
from nacre.code.repository import read_file, toplevel
from nacre.code.requests import StaleRequest
from nacre.code.values import StaleFile, StaleMemory, Staleness
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.memories.scan import catch_up
from nacre.memories.store import get
from nacre.platform.ids import to_ms
from nacre.storage.code.mentions import Mention
from nacre.values.memory import Memory
from nacre.values.review import LEAST_REVIEWED, Reason

MOST_MEMORIES = 500
"""Memories checked per run, the latest first (seed facts 2.6)."""

LEAST_MARKED = 0.2
"""Least confidence at which a context shows it: two sessions that changed the files within a month."""

_SESSIONS = 5
"""Sessions from which on their number adds no more confidence."""

_LAG_DAYS = 60
"""Days between memory and last change from which on time adds no more confidence."""

_STILL_THERE = 0.3
"""Factor of the confidence if every symbol that a memory names is still in the files."""

_LEAST_CHARACTERS = {"marked": 3, "fence": 4}


def stale(home: Home, asked: StaleRequest) -> Staleness:
    """Memories whose files were changed since, the surest first; one memory where it is named. Raises NotFound.

    The confidence is ``min(1, sessions / 5) · min(1, days / 60)``, times what the symbols say: 0.3 where all are still
    in the files, 0.3 + 0.7 · the share that is missing, 1 where all are, or nothing can be looked at.
    """
    catch_up(home)
    catch_up_mentions(home)
    if asked.memory:
        memories = [get(home, asked.memory)]
    else:
        held = home.code_mentions.with_paths(asked.project, MOST_MEMORIES)
        memories = list(home.memories.rows_of(held).values())
    named = home.code_mentions.within([one.id for one in memories])
    kept = home.reviews.stale_kept()
    assessed = (_assess(home, memory, named[memory.id], asked, kept.get(memory.id)) for memory in memories)
    found = [one for one in assessed if one is not None]
    found.sort(key=lambda one: (-one.confidence, one.memory.id))
    return Staleness(tuple(found[: asked.limit]), len(memories), len(found))


def note_stale(home: Home) -> int:
    """Look which memories may be out of date, for contexts and the review queue; returns how many.

    Nothing is noted where nothing can be written.
    """
    if home.database.unwritable:
        return 0
    found = stale(home, StaleRequest(limit=MOST_MEMORIES)).memories
    marked = [(one.memory.id, one.confidence, one.why) for one in found if one.confidence >= LEAST_MARKED]
    home.memories.set_stale(marked)
    at = to_ms(home.now()) or 0
    with home.database.transaction():
        for memory, confidence, why in marked:
            if confidence >= LEAST_REVIEWED:
                home.reviews.add(memory, Reason.STALE, why, at, once=True)
    return len(marked)


def confidence_of(sessions: int, lag_days: float, symbols: int, missing: int) -> float:
    """The confidence that a memory is out of date, 0 to 1 (seed facts 2.6)."""
    changed = min(1.0, sessions / _SESSIONS) * min(1.0, max(0.0, lag_days) / _LAG_DAYS)
    share = missing / symbols if symbols else 1.0
    return changed * (_STILL_THERE + (1 - _STILL_THERE) * share)


def _assess(
    home: Home, memory: Memory, named: Sequence[Mention], asked: StaleRequest, kept: datetime | None
) -> StaleMemory | None:
    """``kept``: when the owner last said in review that it holds."""
    said = max(memory.last_said, kept or memory.last_said)
    since = max(said, home.now() - timedelta(days=asked.days))
    paths = [one.written for one in named if one.manner == "path"]
    if memory.evergreen or not memory.is_active or not paths:
        return None
    changes = _changes(home, memory, paths, since, said)
    sessions = {session for held in changes.values() for session, _, _ in held}
    if len(sessions) < asked.least_sessions:
        return None
    root = _root(home, memory, asked.folder)
    files = tuple(_file(path, held, root) for path, held in sorted(changes.items()))
    lag = (max(one.last for one in files) - said) / timedelta(days=1)
    symbols = _symbols(named)
    missing = _missing(root, [one.path for one in files if not one.is_gone], symbols) if root else None
    confidence = confidence_of(len(sessions), lag, len(symbols) if missing is not None else 0, len(missing or ()))
    return StaleMemory(
        memory, round(confidence, 4), files, len(sessions), round(lag, 2), tuple(symbols), tuple(missing or ()),
        is_checked=missing is not None,
    )  # fmt: skip


def _changes(
    home: Home, memory: Memory, paths: Iterable[str], since: datetime, said: datetime
) -> dict[str, list[tuple[int, datetime, int]]]:  # fmt: skip
    """The named files that sessions changed which began after the memory was last said: path → session, time, edits."""
    rows: dict[int, str] = {}
    for path in paths:
        for row, touched in home.deeds.files_named(path.rsplit("/", 1)[-1]):
            if ends_alike(touched, path):
                rows[row] = path
    found: dict[str, list[tuple[int, datetime, int]]] = defaultdict(list)
    for row, session, began, last, count in home.code.edits(list(rows), since, memory.project):
        if began is None or began > said:
            found[rows[row]].append((session, last, count))
    return found


def _file(path: str, held: Sequence[tuple[int, datetime, int]], root: Path | None) -> StaleFile:
    is_gone = root is not None and not path.startswith("/") and "/" in path and not os.path.lexists(root / path)
    return StaleFile(
        path, sum(count for *_, count in held), len({session for session, *_ in held}),
        max(last for _, last, _ in held), is_gone,
    )  # fmt: skip


def _symbols(named: Sequence[Mention]) -> list[str]:
    """Names in backticks and in blocks of code: their last parts."""
    found = dict.fromkeys(
        symbol_parts(one.written)[-1]
        for one in named
        if len(one.written) >= _LEAST_CHARACTERS.get(one.manner, 10_000) and symbol_parts(one.written)
    )
    return list(found)


def _missing(root: Path, paths: Sequence[str], symbols: Sequence[str]) -> list[str] | None:
    """The symbols that no file contains as a word; ``None`` if no file can be read."""
    held = [data for path in paths if (data := read_file(root, path.lstrip("/"))) is not None]
    texts = [data.decode("utf-8", "replace") for data in held]
    if paths and not texts:
        return None
    return [one for one in symbols if not any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text) for text in texts)]


def _root(home: Home, memory: Memory, folder: str | None) -> Path | None:
    """The working tree that a memory's files lie in: where its project's code was read, else the folder asked from, if
    that is the project's."""
    if memory.project is None:
        return None
    read = home.code.find(memory.project)
    if read and os.path.isdir(read.root):
        return Path(read.root)
    if not folder or not os.path.isdir(folder) or project_of_folder(home, Path(folder)) != memory.project:
        return None
    return toplevel(Path(folder), home.settings.environ)
