"""Much material from little: copies of transcripts that no reader takes for duplicates, and a home with many turns."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.indexing.vectors import passages
from nacre.platform.ids import content_hash
from nacre.spending.embedders import configured_embedder
from nacre.storage.sessions import SessionFilter, StoredSession
from nacre.values.reports import Progress
from nacre.values.session import Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ID = re.compile(
    rb'("(?:sessionId|session_id|uuid|parentUuid|logicalParentUuid|leafUuid|messageId|requestId|agentId|promptId|'
    rb'toolUseID|parentToolUseID|sourceToolAssistantUUID|sourceToolUseID|tool_use_id|id)"\s*:\s*"[^"\\]+)"'
)
_NOISE = 0.35
"""Length of the random vector added to a unit vector: the cosine to the original becomes about .94."""

_STEP = 2000


def copy_tree(tree: Path, target: Path, megabytes: int) -> float:
    """Repeat a tree's JSON lines with fresh ids until there are so many megabytes; returns how many there are.

    Raises NotFound for a tree without any.
    """
    files = sorted(path for path in tree.rglob("*.jsonl") if path.is_file())
    if not any(path.stat().st_size for path in files):
        raise NotFound(f"there are no .jsonl files in {tree}", hint="point at a folder of Claude Code projects")
    written, copy = 0, 0
    while True:
        for path in files:
            content = _ID.sub(rb'\g<1>-%x"' % copy, path.read_bytes())
            copied = target / f"copy-{copy:04}" / path.relative_to(tree)
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(content)
            written += len(content)
            if written >= megabytes * 1_000_000:
                return written / 1_000_000
        copy += 1


def multiply_turns(home: Home, turns: int, notify: Callable[[Progress], None]) -> int:
    """Repeat a home's sessions under new ids until it has so many turns; returns how many it has."""
    sessions = home.sessions.newest(SessionFilter(subagents=True), limit=1_000_000)
    originals = [(stored, [found.turn for found in home.sessions.turns_of(stored.row)]) for stored in sessions]
    have = sum(len(said) for _, said in originals)
    copy = 0
    while have and have < turns:
        copy += 1
        with home.database.transaction():
            for stored, said in originals:
                have += _add_copy(home, stored, said[: max(0, turns - have)], copy)
        notify(Progress("turns", have, turns))
    return have


def _add_copy(home: Home, stored: StoredSession, said: list[Turn], copy: int) -> int:
    if not said:
        return 0
    session = replace(stored.session, native_id=f"{stored.session.native_id}-{copy:x}")
    row = home.sessions.upsert(session, project=stored.project, file=None)
    added = home.sessions.add_turns(session, row, [replace(turn, id=f"{turn.id}-{copy:x}") for turn in said])
    home.sessions.refresh([row])
    return added


def scatter_vectors(home: Home, notify: Callable[[Progress], None]) -> int:
    """Give every turn passages of its own; returns how many there are.

    A passage said twice is kept once, so that repeated turns would share a few vectors and the scan would be cheaper
    than in life. So each text is embedded once and every turn that says it gets that vector with some noise.
    """
    import numpy as np

    noise = np.random.default_rng(0)
    known: dict[bytes, NDArray[np.float32]] = {}
    home.vectors.begin(configured_embedder(home).name)
    done, total = 0, home.vectors.missing()[0]
    while waiting := home.vectors.turns_to_embed(_STEP):
        said: dict[int, list[bytes]] = {}
        vectors: list[NDArray[np.float32]] = []
        for row, text in waiting:
            digest = content_hash(text)
            if digest not in known:
                known[digest] = configured_embedder(home).embed(passages(text))
            said[row] = [content_hash(f"{row}/{at}") for at in range(len(known[digest]))]
            vectors.append(known[digest])
        fresh = [digest for digests in said.values() for digest in digests]
        home.vectors.add_turn_passages(said, fresh, noisy(np.concatenate(vectors), noise), through=waiting[-1][0])
        done += len(waiting)
        notify(Progress("vectors", done, total))
    return home.vectors.count()


def noisy(vectors: NDArray[np.float32], noise: np.random.Generator) -> NDArray[np.float32]:
    """Unit vectors, each moved a little."""
    import numpy as np

    spread = noise.standard_normal(vectors.shape, np.float32) * (_NOISE / vectors.shape[1] ** 0.5)
    moved = vectors + spread
    unit: NDArray[np.float32] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return unit


def draw_questions(home: Home, count: int) -> list[str]:
    """Beginnings of what owners typed, drawn the same way every time."""
    typed = home.database.rows(
        "SELECT DISTINCT substr(text, 1, 160) FROM turns WHERE speaker = 'owner' AND flags & 14 = 0 "
        "AND length(text) BETWEEN 20 AND 2000 ORDER BY 1"
    )
    texts = [" ".join(text.split()[:16]) for (text,) in typed]
    return random.Random(0).sample(texts, min(count, len(texts)))  # noqa: S311 - a repeatable draw
