"""Material to measure with: copies of transcripts that count as new, homes with many turns, notes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.indexing.vectors import passages
from nacre.platform.ids import content_hash
from nacre.platform.lazy import Module
from nacre.spending.embedders import configured_embedder
from nacre.values.filters import SessionFilter
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import StoredSession, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Module("numpy")

Origins = Callable[[Sequence[tuple[int, str]]], Sequence[str]]

_ID = re.compile(
    rb'("(?:sessionId|session_id|uuid|parentUuid|logicalParentUuid|leafUuid|messageId|requestId|agentId|promptId|'
    rb'toolUseID|parentToolUseID|sourceToolAssistantUUID|sourceToolUseID|tool_use_id|id)"\s*:\s*"[^"\\]+)"'
)
_NOISE = 0.35
"""Length of the random vector added to a unit vector: the cosine to the original becomes about .94."""

_STEP = 2000
_PLACES = ("harbour", "quarry", "orchard", "foundry", "granary", "chapel", "mill", "observatory", "brewery", "tannery")
_THINGS = ("ledger", "gateway", "scheduler", "archive", "importer", "dashboard", "mailer", "indexer", "proxy", "cache")


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


def multiply_turns(home: Home, turns: int, notify: OnProgress) -> int:
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


def scatter_vectors(
    home: Home, notify: OnProgress, origins: Origins | None = None,
    known: dict[bytes, NDArray[np.float32]] | None = None,
) -> int:  # fmt: skip
    """Give every turn that waits for vectors passages of its own; returns how many passages there are.

    A passage that is repeated is kept once: repeated turns would share a few vectors, and the scan would be cheaper
    than in life. So each text is embedded once, and every turn with that text gets its vectors with some noise.
    ``origins`` gives other texts to embed in place of those of the turns; it gets rows and texts of turns. ``known``
    keeps what was embedded.
    """
    noise = np.random.default_rng(home.vectors.count())
    known = {} if known is None else known
    home.vectors.begin(configured_embedder(home).name)
    done, total = 0, home.vectors.missing()[0]
    while waiting := home.vectors.turns_to_embed(_STEP):
        texts = origins(waiting) if origins else [text for _, text in waiting]
        digests: dict[int, list[bytes]] = {}
        vectors: list[NDArray[np.float32]] = []
        for (row, _), text in zip(waiting, texts, strict=True):
            origin = content_hash(text)
            if origin not in known:
                known[origin] = configured_embedder(home).embed(passages(text))
            digests[row] = [content_hash(f"{row}/{at}") for at in range(len(known[origin]))]
            vectors.append(known[origin])
        fresh = [digest for of_turn in digests.values() for digest in of_turn]
        home.vectors.add_turn_passages(digests, fresh, _noisy(np.concatenate(vectors), noise), through=waiting[-1][0])
        done += len(waiting)
        notify(Progress("vectors", done, total))
    return home.vectors.count()


def _noisy(vectors: NDArray[np.float32], noise: np.random.Generator) -> NDArray[np.float32]:
    """Unit vectors, each moved a little."""

    spread = noise.standard_normal(vectors.shape, np.float32) * (_NOISE / vectors.shape[1] ** 0.5)
    moved = vectors + spread
    unit: NDArray[np.float32] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return unit


def draw_questions(home: Home, count: int) -> list[str]:
    """Beginnings of what owners typed, drawn the same way every time."""
    texts = [" ".join(text.split()[:16]) for (text,) in home.database.all("list_typed")]
    return random.Random(0).sample(texts, min(count, len(texts)))  # noqa: S311 - a repeatable draw


def write_notes(home: Path, memories: int) -> None:
    """Lay so many facts into the vault of ``home``; the next look for edits by hand takes them in."""
    kept = home / "vault" / "global" / "fact"
    kept.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in range(memories):
        (kept / f"note-{number}.md").write_text(f"# {subject(number)}\n\n{statement(number)}\n")


def subject(number: int) -> str:
    """What the note of this number is about."""
    return f"The {_PLACES[number % 10]} {_THINGS[number // 10 % 10]} {number // 100}"


def statement(number: int) -> str:
    """What the note of this number says."""
    return f"{subject(number)} listens on port {20_000 + number} and is restarted by team {number % 7}."
