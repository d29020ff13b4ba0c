"""Vectors follow the text: what has none yet gets one, in small steps that may be interrupted between any two.

Where another model is set than the one whose vectors are in use, those of the new one are made beside them, and take
their place when none is missing. Until then every search goes by the old ones; texts that come meanwhile get both.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from nacre.dedup.neighbours import settle
from nacre.embed.calibration import is_measured, probes, seen_by
from nacre.errors import EmbedderHeld, EmbedderUnavailable, StoreUnusable
from nacre.home.home import BUNDLED, Home
from nacre.platform.ids import content_hash
from nacre.protocols import Embedder, RemoteEmbedder
from nacre.spending.embedders import configured_embedder, embedder_in_use, embedder_of
from nacre.spending.embedding_consent import asked, note_held, wants_yes
from nacre.storage.database import UNREADABLE
from nacre.text.passages import pieces
from nacre.values.reports import OnProgress, Progress, StoreOutcome

if TYPE_CHECKING:
    from nacre.storage.search.vectors import Vectors

T = TypeVar("T")

PASSAGE_CHARACTERS = 900
"""About 220 tokens of English: the bundled model reads 256."""

MAX_PASSAGES_A_TURN = 24
"""A turn longer than this is a paste; its beginning says what it is."""

STEP_TURNS = 128
STEP_MEMORIES = 64
_AFTER_A_STORE_SECONDS = 2.0
_PROBE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Embedded:
    """Texts that got vectors, texts that still have none, and why, if something stood in the way; with the way out."""

    made: int
    left: int
    note: str | None = None
    tokens: int = 0
    """What a provider counted."""


def embed_pending(
    home: Home, notify: OnProgress, *, limit: int | None = None, seconds: float = math.inf,
    is_asked: bool = False,
) -> Embedded:  # fmt: skip
    """Make the vectors that are missing: memories first, then turns. An interruption loses one step at most.

    Turns older than ``embedding.turns_newer_than`` get none.
    It stops between two steps once ``limit`` texts are done or ``seconds`` have passed, and where the model does not
    answer, or no text may go to it: the texts wait. ``is_asked``: a person said so, and knows what goes where.
    """
    wanted = home.settings.text("embedding.model")
    if wanted == "none":
        return Embedded(0, 0, "the vector lane is off (embedding.model = none)")
    work = _Work(home, notify, limit, time.monotonic() + seconds, is_asked=is_asked)
    before = _tokens(home)
    try:
        if not home.vectors.model() and not sum(home.vectors.missing()):
            return Embedded(0, 0)
        if not home.vectors.model():
            _begin(home, wanted, is_asked=is_asked)
        if is_switching(home):
            _switch(home, work)
        else:
            home.vectors.begin(configured_embedder(home).name, wanted)
            if home.other_vectors.model():  # of a switch that was given up, or a crash left them
                home.other_vectors.drop()
            work.fill(home.vectors, work.chosen(configured_embedder(home)))
    except EmbedderUnavailable as error:
        work.stop(error)
    except KeyboardInterrupt:
        work.note = "interrupted; the next ingest goes on"
    return Embedded(work.done, work.left(), work.note, _tokens(home) - before)


def _tokens(home: Home) -> int:
    """What the embedding models that were loaded used so far."""
    return sum(one.tokens for one in home.embedders.values() if isinstance(one, RemoteEmbedder))


def _begin(home: Home, wanted: str, *, is_asked: bool) -> None:
    """Choose who makes the first vectors.

    In a database that is made anew the model whose vectors the old one had in use, which are taken over; the bundled
    model, as long as nobody said yes to where texts would go; else the one that is set.
    """
    held = None if is_asked else wants_yes(home.settings, wanted)
    first = _before(home) or (BUNDLED if held else wanted)
    try:
        home.vectors.begin(embedder_of(home, first).name, first)
    except EmbedderUnavailable as error:
        if first == wanted or held:
            raise held or error from error
        home.vectors.begin(embedder_of(home, wanted).name, wanted)


def _before(home: Home) -> str | None:
    """Whose vectors were in use in the database that this one is to replace."""
    with contextlib.suppress(StoreUnusable, *UNREADABLE):
        return home.earlier.setting() if home.earlier else None
    return None


def is_switching(home: Home) -> bool:
    """Whether vectors are in use that another model made than the one that is set. Raises EmbedderUnavailable."""
    used, wanted = home.vectors.setting(), home.settings.text("embedding.model")
    return wanted != "none" and used not in (None, wanted)


def _switch(home: Home, work: _Work) -> None:
    """Keep the vectors in use whole, make those of the new model, and exchange them when none is missing."""
    wanted = home.settings.text("embedding.model")
    try:
        work.fill(home.vectors, embedder_in_use(home))  # which nobody asked for: they are going
    except EmbedderHeld as error:
        work.stop(error)
    except EmbedderUnavailable as error:  # the new ones replace them
        work.note = f"{home.vectors.setting()} answers no more: {error.message}"
    work.looks_at(home.other_vectors)
    if not work.is_asked and (held := wants_yes(home.settings, wanted)):
        raise held
    home.other_vectors.begin(configured_embedder(home).name, wanted)
    while not work.is_over():
        before = work.done
        work.fill(home.other_vectors, work.chosen(configured_embedder(home)), settles=False)
        if home.other_vectors.exchange():
            work.exchanged = True
            work.note = None
            return
        if work.done == before:
            return


class _Work:
    """Makes vectors, and counts them."""

    def __init__(
        self, home: Home, notify: OnProgress, limit: int | None, deadline: float, *,
        is_asked: bool,
    ) -> None:  # fmt: skip
        self.done = 0
        self.note: str | None = None
        self.exchanged = False
        self.is_asked = is_asked
        self._home = home
        self._notify = notify
        self._limit = limit
        self._deadline = deadline
        self._total = 0
        self._filled: Vectors | None = None

    def is_over(self) -> bool:
        """Whether no further step is to be begun."""
        return (self._limit is not None and self.done >= self._limit) or time.monotonic() >= self._deadline

    def left(self) -> int:
        """Texts that still wait for the vectors that were made last."""
        if self._filled is None or self.exchanged:
            return 0
        return sum(self._filled.missing())

    def chosen(self, embedder: Embedder) -> Embedder:
        """The model that is set, as somebody asked for it, if they did."""
        return asked(embedder) if self.is_asked else embedder

    def looks_at(self, vectors: Vectors) -> None:
        """Count what is left of these."""
        self._filled = vectors

    def stop(self, error: EmbedderUnavailable) -> None:
        """Tell why no more vectors are made."""
        self.note = f"no vectors: {error.message}" if not self.done else f"no more vectors: {error.message}"
        if isinstance(error, EmbedderHeld):
            self.note = f"{error.message}; {error.hint}"
            note_held(self._home, self._home.settings.text("embedding.model"), error)

    def fill(self, vectors: Vectors, embedder: Embedder, *, settles: bool = True) -> None:
        """Make the vectors of a model that are missing. Raises EmbedderUnavailable."""
        self.looks_at(vectors)
        vectors.reach_back(self._home.settings.whole("embedding.turns_newer_than"))
        self._total = self.done + sum(vectors.missing())
        if self._total > self.done:
            _look_at_probes(vectors, embedder)
        while not self.is_over() and (
            rows := _in_portions(lambda most: _embed_memories(vectors, embedder, most), STEP_MEMORIES)
        ):
            if settles:
                settle(self._home, rows)
            self._count(len(rows))
        step = embedder.step if isinstance(embedder, RemoteEmbedder) else STEP_TURNS
        while not self.is_over() and (
            made := _in_portions(lambda most: _embed_turns(vectors, embedder, self._home.earlier, most), step)
        ):
            self._count(made)

    def _count(self, made: int) -> None:
        self.done += made
        self._notify(Progress("vectors", self.done, self._total))


def _in_portions(make: Callable[[int], T], most: int) -> T:
    """What one step makes: of so many texts, or of fewer where no budget has room for them. Raises EmbedderHeld."""
    while True:
        try:
            return make(most)
        except EmbedderHeld as error:
            if most == 1 or not error.for_less:
                raise
            most //= 2


def _look_at_probes(vectors: Vectors, embedder: Embedder) -> None:
    """Note how a model sees the probes, once, where nobody measured what its cosines mean."""
    if not isinstance(embedder, RemoteEmbedder) or is_measured(embedder.name) or vectors.seen():
        return
    questions = embedder.within(_PROBE_SECONDS, question=True).embed([question for question, _ in probes()])
    vectors.note_seen(seen_by(questions, embedder.embed([passage for _, passage in probes()])))


def embed_memories(home: Home, *, begins: bool = False) -> dict[str, StoreOutcome]:
    """Give memories just written their vectors, the newest first, for two seconds; the next ingest makes the rest.

    A home without any vectors gets its first ones where ``begins``; else it is left to the next ingest. Returns what
    became of memories that repeat or replace others by their meaning.
    """
    outcomes: dict[str, StoreOutcome] = {}
    home.memories.has_new_rows = False
    try:
        if home.settings.text("embedding.model") == "none" or not home.vectors.memories_to_embed(1):
            return outcomes  # without a look at the model, which takes long to load
        if begins and home.vectors.model() is None:
            _begin(home, home.settings.text("embedding.model"), is_asked=False)
        if not has_vectors(home):
            return outcomes
        embedder = embedder_in_use(home)
        if isinstance(embedder, RemoteEmbedder):
            if not is_measured(embedder.name) and not home.vectors.seen():
                return outcomes  # what its cosines mean is learned in the next ingest
            embedder = embedder.within(_AFTER_A_STORE_SECONDS)
        deadline = time.monotonic() + _AFTER_A_STORE_SECONDS
        while time.monotonic() < deadline and (rows := _embed_memories(home.vectors, embedder)):
            outcomes |= settle(home, rows)
    except EmbedderUnavailable:
        pass
    return outcomes


def has_vectors(home: Home) -> bool:
    """Whether this home has vectors, and the model that made them is there. Raises EmbedderUnavailable."""
    model = home.vectors.model()
    return model is not None and model == embedder_in_use(home).name


def _embed_memories(vectors: Vectors, embedder: Embedder, most: int = STEP_MEMORIES) -> list[int]:
    waiting = vectors.memories_to_embed(most)
    if not waiting:
        return []
    texts = {row: passages(f"{subject}. {content}") for row, subject, content in waiting}
    found = embedder.embed([text for parts in texts.values() for text in parts])
    made, at = {}, 0
    for row, parts in texts.items():
        made[row] = found[at : at + len(parts)]
        at += len(parts)
    vectors.add_memory_vectors(made)
    return [row for row, _, _ in waiting]


def _embed_turns(vectors: Vectors, embedder: Embedder, earlier: Vectors | None, most: int) -> int:
    waiting = vectors.turns_to_embed(most)
    if not waiting:
        vectors.pass_over()
        return 0
    said = {row: passages_by_hash(text) for row, text in waiting}
    texts = {digest: text for found in said.values() for digest, text in found.items()}
    known = vectors.known(list(texts))
    if earlier and len(known) < len(texts):
        with contextlib.suppress(StoreUnusable, *UNREADABLE):  # they are made anew
            vectors.take_over(earlier, [digest for digest in texts if digest not in known])
        known = vectors.known(list(texts))
    fresh = [digest for digest in texts if digest not in known]
    found = embedder.embed([texts[digest] for digest in fresh])
    hashes = {row: list(parts) for row, parts in said.items()}
    vectors.add_turn_passages(hashes, fresh, found, through=waiting[-1][0])
    return len(waiting)


def passages_by_hash(text: str) -> dict[bytes, str]:
    """The passages of a text by the hash of their words: each is embedded once, however often it is said."""
    return {content_hash(part): part for part in passages(text)}


def passages(text: str) -> list[str]:
    """A text in pieces that the embedding model can read whole."""
    return pieces(text, PASSAGE_CHARACTERS)[:MAX_PASSAGES_A_TURN] or [text]
