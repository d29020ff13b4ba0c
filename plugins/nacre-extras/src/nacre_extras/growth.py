"""Build a large home from real sessions.

New sessions have new ids, and contain sentences from other turns of the same speaker. With plain
copies, the search index would be too regular and compress too well.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from nacre.base.frozen import frozen
from nacre.home.home import Home
from nacre.values.memory import SessionFilter
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Speaker, StoredSession, Turn
from nacre_extras.speed import add_copy, scatter_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SENTENCE = re.compile(r"[^.!?。\n]*[.!?。\n]+\s*|[^.!?。\n]+$")
_EXCHANGED = 0.4
_SESSIONS_A_TRANSACTION = 20
_DAYS = 365


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
    """Add sessions to a home until it has ``turns`` turns. Return the number of turns.

    ``have``: current number of turns. The same ``have`` always yields the same content.
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
            time=turn.time - moved if turn.time else None,
            text=recombined(turn.text, material.sentences[turn.speaker], draw),
        )
        for turn in said
    ]
    return add_copy(context, stored, turns, copy, started=started and started - moved)


def recombined(text: str, others: tuple[str, ...], draw: random.Random) -> str:
    """Return a text with some sentences replaced by sentences from other turns."""
    return "".join(
        draw.choice(others) if others and draw.random() < _EXCHANGED else sentence
        for sentence in _SENTENCE.findall(text)
    )


def scatter(
    context: Home,
    material: Material,
    notify: OnProgress,
    known: dict[bytes, NDArray[np.float32]] | None = None,
) -> int:
    """Store made-up vectors for turns without vectors. Return the number of passages.

    The vectors are those of the original turns with some noise, because embedding a million turns
    takes hours. ``known`` keeps embeddings for another home built from the same sessions.
    """
    texts = {turn.id: turn.text for _, said in material.sessions for turn in said}

    def origins(waiting: Sequence[tuple[int, str]]) -> list[str]:
        turns = context.sessions.by_rows([row for row, _ in waiting])
        ids = [turns[row].turn.id for row, _ in waiting]
        return [
            texts.get(one) or texts.get(one.rpartition("-")[0], text)
            for one, (_, text) in zip(ids, waiting, strict=True)
        ]

    return scatter_vectors(context, notify, origins, known)
