"""Build a large home from real sessions.

New sessions have new ids, and contain sentences from other turns of the same speaker. With plain
copies, the search index would be too regular and compress too well.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.home.home import Home
from nacre.home.spending import embedder_of
from nacre.memories.vectors import passages
from nacre.values.memory import SessionFilter
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Flag, Speaker, StoredSession, Turn

_SENTENCE = re.compile(r"[^.!?。\n]*[.!?。\n]+\s*|[^.!?。\n]+$")
_EXCHANGED = 0.4
_SESSIONS_A_TRANSACTION = 20
_DAYS = 365
_STEP = 2000
_NOISE = 0.35
"""Length of the random vector that is added to a vector of length 1."""


@frozen
class Material:
    """Data for building a large home: sessions with turns, and each speaker's sentences."""

    sessions: tuple[tuple[StoredSession, tuple[Turn, ...]], ...]
    sentences: dict[Speaker, tuple[str, ...]]

    @property
    def turns(self) -> int:
        return sum(len(said) for _, said in self.sessions)


def gather(context: Home) -> Material:
    """Return all sessions of a home and the sentences of each speaker."""
    stored = context.sessions.newest(SessionFilter(subagents=True), limit=1_000_000)
    sessions = tuple(
        (item, tuple(found.turn for found in context.sessions.turns_of(item.row)))
        for item in stored
    )
    sentences: dict[Speaker, list[str]] = defaultdict(list)
    for _, said in sessions:
        for turn in said:
            sentences[turn.speaker] += _SENTENCE.findall(turn.text)
    return Material(sessions, {speaker: tuple(found) for speaker, found in sentences.items()})


def grow(context: Home, material: Material, have: int, turns: int, notify: OnProgress) -> int:
    """Add sessions to a home until it has ``turns`` turns, and return the number of turns.

    ``have`` is the current number of turns. The same ``have`` always yields the same content.
    """
    draw = random.Random(have)  # noqa: S311 - a repeatable draw
    endless = _endless(material, draw)
    while have < turns and material.turns:
        with context.database.transaction():
            for _ in range(_SESSIONS_A_TRANSACTION):
                stored, said = next(endless)
                have += _add(context, stored, said[: max(0, turns - have)], draw, material)
        notify(Progress("turns", have, turns))
    return have


def _endless(
    material: Material, draw: random.Random
) -> Iterator[tuple[StoredSession, tuple[Turn, ...]]]:
    while True:
        order = list(material.sessions)
        draw.shuffle(order)
        yield from order


def _add(
    context: Home,
    stored: StoredSession,
    said: tuple[Turn, ...],
    draw: random.Random,
    material: Material,
) -> int:
    if not said:
        return 0
    copy = f"{draw.getrandbits(48):012x}"
    moved = timedelta(days=draw.randrange(_DAYS))
    started = stored.session.started
    turns = [
        replace(
            turn,
            id=f"{turn.id}-{copy}",
            time=turn.time - moved if turn.time else None,
            text=recombined(turn.text, material.sentences[turn.speaker], draw),
        )
        for turn in said
    ]
    session = replace(
        stored.session,
        native_id=f"{stored.session.native_id}-{copy}",
        started=started and started - moved,
    )
    row = context.sessions.upsert(session, project=stored.project, file=None)
    added = context.sessions.add_turns(session, row, turns)
    context.sessions.refresh([row])
    return added


def recombined(text: str, others: tuple[str, ...], draw: random.Random) -> str:
    """Return a text with some sentences replaced by sentences from other turns."""
    return "".join(
        draw.choice(others) if others and draw.random() < _EXCHANGED else sentence
        for sentence in _SENTENCE.findall(text)
    )


def scatter(context: Home, material: Material, notify: OnProgress) -> int:
    """Store made-up vectors for turns without vectors. Return the number of passages.

    The vectors are those of the original turns with some noise, because embedding a million turns
    takes hours, and searching a few shared vectors would be unrealistically fast.
    """
    originals = {turn.id: turn.text for _, said in material.sessions for turn in said}
    embedder, known = embedder_of(context), dict[str, NDArray[np.float32]]()
    noise = np.random.default_rng(context.vectors.count())
    context.vectors.begin(embedder.name)
    done, total = 0, context.vectors.missing()[0]
    while waiting := context.vectors.turns_to_embed(_STEP):
        turns = context.sessions.by_rows([row for row, _ in waiting])
        digests: dict[int, list[bytes]] = {}
        vectors: list[NDArray[np.float32]] = []
        for row, text in waiting:
            name = turns[row].turn.id
            origin = originals.get(name) or originals.get(name.rpartition("-")[0], text)
            if origin not in known:
                known[origin] = embedder.embed(passages(origin))
            digests[row] = [content_hash(f"{row}/{at}") for at in range(len(known[origin]))]
            vectors.append(known[origin])
        fresh = [digest for of_turn in digests.values() for digest in of_turn]
        context.vectors.add_turn_passages(
            digests, fresh, _noisy(np.concatenate(vectors), noise), through=waiting[-1][0]
        )
        done += len(waiting)
        notify(Progress("vectors", done, total))
    return context.vectors.count()


def _noisy(vectors: NDArray[np.float32], noise: np.random.Generator) -> NDArray[np.float32]:
    spread = noise.standard_normal(vectors.shape, np.float32) * (_NOISE / vectors.shape[1] ** 0.5)
    moved = vectors + spread
    unit: NDArray[np.float32] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return unit


def draw_questions(material: Material, count: int) -> list[str]:
    """Return the first words of random turns of the owner. The same sessions yield the same turns."""
    texts = sorted(
        {
            " ".join(turn.text[:160].split()[:16])
            for _, said in material.sessions
            for turn in said
            if turn.speaker is Speaker.OWNER
            and 20 <= len(turn.text) <= 2000
            and not turn.flags & (Flag.META | Flag.SUMMARY | Flag.SIDECHAIN)
        }
    )
    return random.Random(0).sample(texts, min(count, len(texts)))  # noqa: S311 - a repeatable draw
