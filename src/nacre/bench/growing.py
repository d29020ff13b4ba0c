"""A large home from real sessions: fresh ids, whole sentences exchanged between turns of the same speaker.

A copy with the same words would make every word as common as it is in the little there is, and its postings a regular
pattern that compresses too well. Whole sentences, drawn from all sessions, keep the words, their frequencies and the
length of turns as people and agents wrote them.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from nacre.bench.repeating import noisy
from nacre.home.home import Home
from nacre.indexing.vectors import passages
from nacre.platform.ids import content_hash
from nacre.spending.embedders import configured_embedder
from nacre.storage.sessions import SessionFilter, StoredSession
from nacre.values.reports import Progress
from nacre.values.session import Speaker, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SENTENCE = re.compile(r"[^.!?。\n]*[.!?。\n]+\s*|[^.!?。\n]+$")
_EXCHANGED = 0.4
_SESSIONS_A_TRANSACTION = 20
_DAYS = 365
_STEP = 2000


@dataclass(frozen=True, slots=True)
class Material:
    """Real sessions with their turns, and every sentence in them by who said it."""

    sessions: tuple[tuple[StoredSession, tuple[Turn, ...]], ...]
    sentences: dict[Speaker, tuple[str, ...]]

    @property
    def turns(self) -> int:
        """How many there are."""
        return sum(len(said) for _, said in self.sessions)


def gather(home: Home) -> Material:
    """What a home holds, to grow from."""
    stored = home.sessions.newest(SessionFilter(subagents=True), limit=1_000_000)
    sessions = tuple((one, tuple(found.turn for found in home.sessions.turns_of(one.row))) for one in stored)
    sentences: dict[Speaker, list[str]] = defaultdict(list)
    for _, said in sessions:
        for turn in said:
            sentences[turn.speaker] += _SENTENCE.findall(turn.text)
    return Material(sessions, {speaker: tuple(found) for speaker, found in sentences.items()})


def grow(home: Home, material: Material, have: int, turns: int, notify: Callable[[Progress], None]) -> int:
    """Add sessions to a home that has ``have`` turns until there are ``turns``; returns how many there are then.

    What comes depends on ``have`` alone.
    """
    draw = random.Random(have)  # noqa: S311 - a repeatable draw
    endless = _endless(material, draw)
    while have < turns and material.turns:
        with home.database.transaction():
            for _ in range(_SESSIONS_A_TRANSACTION):
                stored, said = next(endless)
                have += _add(home, stored, said[: max(0, turns - have)], draw, material)
        notify(Progress("turns", have, turns))
    return have


def _endless(material: Material, draw: random.Random) -> Iterator[tuple[StoredSession, tuple[Turn, ...]]]:
    while True:
        order = list(material.sessions)
        draw.shuffle(order)
        yield from order


def _add(home: Home, stored: StoredSession, said: tuple[Turn, ...], draw: random.Random, material: Material) -> int:
    if not said:
        return 0
    copy = f"{draw.getrandbits(48):012x}"
    moved = timedelta(days=draw.randrange(_DAYS))
    session = replace(stored.session, native_id=f"{stored.session.native_id}-{copy}")
    if session.started:
        session = replace(session, started=session.started - moved)
    row = home.sessions.upsert(session, project=stored.project, file=None)
    turns = [
        replace(
            turn, id=f"{turn.id}-{copy}", time=turn.time - moved if turn.time else None,
            text=recombined(turn.text, material.sentences[turn.speaker], draw),
        )
        for turn in said
    ]  # fmt: skip
    added = home.sessions.add_turns(session, row, turns)
    home.sessions.refresh([row])
    return added


def recombined(text: str, others: tuple[str, ...], draw: random.Random) -> str:
    """A text with some of its sentences exchanged for those of others."""
    return "".join(
        draw.choice(others) if others and draw.random() < _EXCHANGED else sentence
        for sentence in _SENTENCE.findall(text)
    )


def scatter(home: Home, material: Material, notify: Callable[[Progress], None]) -> int:
    """Give every turn that waits for vectors passages of its own; returns how many passages there are.

    A turn has those of the turn it grew from, with some noise: its words are partly others, and embedding a million
    turns takes hours.
    """
    import numpy as np

    noise = np.random.default_rng(home.vectors.count())
    texts = {turn.id: passages(turn.text) for _, said in material.sessions for turn in said}
    known: dict[str, NDArray[np.float32]] = {}
    home.vectors.begin(configured_embedder(home).name)
    done, total = 0, home.vectors.missing()[0]
    while waiting := home.vectors.turns_to_embed(_STEP):
        turns = home.sessions.by_rows([row for row, _ in waiting])
        said: dict[int, list[bytes]] = {}
        vectors: list[NDArray[np.float32]] = []
        for row, text in waiting:
            origin = turns[row].turn.id
            origin = origin if origin in texts else origin.rpartition("-")[0]
            if origin not in known:
                known[origin] = configured_embedder(home).embed(texts.get(origin) or passages(text))
            said[row] = [content_hash(f"{row}/{at}") for at in range(len(known[origin]))]
            vectors.append(known[origin])
        fresh = [digest for digests in said.values() for digest in digests]
        moved = noisy(np.concatenate(vectors), noise)
        home.vectors.add_turn_passages(said, fresh, moved, through=waiting[-1][0])
        done += len(waiting)
        notify(Progress("vectors", done, total))
    return home.vectors.count()
