"""Vectors follow the text: what has none yet gets one, in small steps that may be interrupted between any two."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from nacre.app.context import Context
from nacre.app.settling import settle
from nacre.errors import EmbedderUnavailable
from nacre.ids import content_hash
from nacre.model.reports import Progress, StoreOutcome
from nacre.text import pieces

PASSAGE_CHARACTERS = 900
"""About 220 tokens of English: the bundled model reads 256."""

MAX_PASSAGES_A_TURN = 24
"""A turn longer than this is a paste; its beginning says what it is."""

STEP_TURNS = 128
STEP_MEMORIES = 64
_AFTER_A_STORE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Embedded:
    """Texts that got vectors, texts that still have none, and why, if something stood in the way."""

    made: int
    left: int
    note: str | None = None


def embed_pending(
    context: Context, notify: Callable[[Progress], None], *, limit: int | None = None, seconds: float = math.inf
) -> Embedded:
    """Make the vectors that are missing: memories first, then turns. An interruption loses one step at most.

    Turns older than ``embedding.turns_newer_than`` get none.
    It stops between two steps once ``limit`` texts are done or ``seconds`` have passed.
    """
    deadline = time.monotonic() + seconds
    if context.settings["embedding.model"] == "none":
        return Embedded(0, 0, "the vector lane is off (embedding.model = none)")
    try:
        if not context.vectors.model() and not sum(context.vectors.missing()):
            return Embedded(0, 0)
        context.vectors.begin(context.embedder.name)
        context.vectors.reach_back(context.settings["embedding.turns_newer_than"])
    except EmbedderUnavailable as error:
        return Embedded(0, 0, f"no vectors: {error.message}")
    total = sum(context.vectors.missing())
    done = 0
    try:
        while _goes_on(done, limit, deadline) and (rows := _embed_memories(context)):
            settle(context, rows)
            done += len(rows)
            notify(Progress("vectors", done, total))
        while _goes_on(done, limit, deadline) and (made := _embed_turns(context)):
            done += made
            notify(Progress("vectors", done, total))
    except KeyboardInterrupt:
        return Embedded(done, max(0, total - done), "interrupted; the next ingest goes on")
    return Embedded(done, max(0, total - done))


def embed_memories(context: Context) -> dict[str, StoreOutcome]:
    """Give memories just written their vectors, in a home that has vectors; elsewhere the next ingest makes all.

    What was stored in a crowd waits for its vector, too: of all that, no more is done than fits into two seconds.
    Returns what became of memories that repeat or replace others by their meaning.
    """
    outcomes: dict[str, StoreOutcome] = {}
    try:
        if context.settings["embedding.model"] == "none" or not context.vectors.memories_to_embed(1):
            return outcomes  # without a look at the model, which takes long to load
        if not has_vectors(context):
            return outcomes
        deadline = time.monotonic() + _AFTER_A_STORE_SECONDS
        while time.monotonic() < deadline and (rows := _embed_memories(context)):
            outcomes |= settle(context, rows)
    except EmbedderUnavailable:
        pass
    return outcomes


def has_vectors(context: Context) -> bool:
    """Whether this home has vectors of the present model. Raises EmbedderUnavailable."""
    model = context.vectors.model()
    return model is not None and model == context.embedder.name


def _goes_on(done: int, limit: int | None, deadline: float) -> bool:
    return (limit is None or done < limit) and time.monotonic() < deadline


def _embed_memories(context: Context) -> list[int]:
    waiting = context.vectors.memories_to_embed(STEP_MEMORIES)
    if not waiting:
        return []
    texts = {row: passages(f"{subject}. {content}") for row, subject, content in waiting}
    vectors = context.embedder.embed([text for found in texts.values() for text in found])
    made, at = {}, 0
    for row, found in texts.items():
        made[row] = vectors[at : at + len(found)]
        at += len(found)
    context.vectors.add_memory_vectors(made)
    return [row for row, _, _ in waiting]


def _embed_turns(context: Context) -> int:
    waiting = context.vectors.turns_to_embed(STEP_TURNS)
    if not waiting:
        context.vectors.pass_over()
        return 0
    said = {row: {content_hash(text): text for text in passages(text)} for row, text in waiting}
    texts = {digest: text for found in said.values() for digest, text in found.items()}
    known = context.vectors.known(list(texts))
    fresh = [digest for digest in texts if digest not in known]
    vectors = context.embedder.embed([texts[digest] for digest in fresh])
    hashes = {row: list(found) for row, found in said.items()}
    context.vectors.add_turn_passages(hashes, fresh, vectors, through=waiting[-1][0])
    return len(waiting)


def passages(text: str) -> list[str]:
    """A text in pieces that the embedding model can read whole."""
    return pieces(text, PASSAGE_CHARACTERS)[:MAX_PASSAGES_A_TURN] or [text]
