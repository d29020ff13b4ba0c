"""Vectors follow the text: what has none yet gets one, in small steps that may be interrupted between any two.

Where another model is set than the one whose vectors are in use, those of the new one are made beside them, and take
their place when none is missing. Until then every search goes by the old ones; texts that come meanwhile get both.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from msgspec import Meta

from nacre.base.ids import content_hash
from nacre.base.request import Request
from nacre.base.text import count_tokens, pieces
from nacre.errors import (
    EmbedderHeld,
    EmbedderUnavailable,
    InvalidInput,
    NacreError,
    SettingsInvalid,
    StoreUnusable,
)
from nacre.home.consent import (
    Place,
    asked,
    configured_embedder,
    embedder_in_use,
    embedder_of,
    hold,
    note_held,
    place_of,
    say_yes,
    wants_yes,
)
from nacre.home.home import BUNDLED, Home
from nacre.home.spending import left_today
from nacre.known_settings import VECTORS, check
from nacre.llm.local_model import is_measured, probes, seen_by
from nacre.memories.compare import settle
from nacre.protocols import Embedder, RemoteEmbedder
from nacre.settings import write_setting
from nacre.store.schema import UNREADABLE
from nacre.values.models import MILLION
from nacre.values.reports import OnProgress, Progress, StoreOutcome

if TYPE_CHECKING:
    from nacre.store.search import Vectors

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
    home: Home,
    notify: OnProgress,
    *,
    limit: int | None = None,
    seconds: float = math.inf,
    is_asked: bool = False,
) -> Embedded:
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
        self,
        home: Home,
        notify: OnProgress,
        limit: int | None,
        deadline: float,
        *,
        is_asked: bool,
    ) -> None:
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
        return (
            self._limit is not None and self.done >= self._limit
        ) or time.monotonic() >= self._deadline

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
        self.note = (
            f"no vectors: {error.message}" if not self.done else f"no more vectors: {error.message}"
        )
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
            rows := _in_portions(
                lambda most: _embed_memories(vectors, embedder, most), STEP_MEMORIES
            )
        ):
            if settles:
                settle(self._home, rows)
            self._count(len(rows))
        step = embedder.step if isinstance(embedder, RemoteEmbedder) else STEP_TURNS
        while not self.is_over() and (
            made := _in_portions(
                lambda most: _embed_turns(vectors, embedder, self._home.earlier, most), step
            )
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
    questions = embedder.within(_PROBE_SECONDS, question=True).embed(
        [question for question, _ in probes()]
    )
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


# ----------------------------------------------------------------------------
# Another embedding model: what it takes, and going over to it.


_KEY = "embedding.model"
_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Lot:
    """The vectors of one model. ``state`` is ``in_use`` or ``making``; ``waiting`` are texts without one."""

    setting: str
    model: str
    state: str
    dimensions: int
    passages: int
    memories: int
    waiting: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How the vectors stand. ``problem`` is what keeps the model that is set from being asked.

    ``held`` is what keeps texts from going to it by themselves, or to the model in use.
    """

    wanted: str
    place: Place
    in_use: Lot | None
    other: Lot | None
    switching: bool
    problem: NacreError | None = None
    held: EmbedderHeld | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What going over to a model takes. ``cost`` in US dollars, ``None`` where the price is not known.

    ``wants_yes``: nobody said yes yet to where the texts go. ``left`` of today's budget for what is made in the
    background, in millionths of a US dollar.
    """

    setting: str
    model: str
    used: str | None
    place: Place
    texts: int
    tokens: int
    cost: Decimal | None
    wants_yes: bool = False
    left: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """One text embedded: how many numbers a vector has, and the seconds that took."""

    dimensions: int
    seconds: float


def status(home: Home) -> Standing:
    """Which model made which vectors, how many texts wait, where texts go. Asks no model.

    Raises EmbedderUnavailable where numpy is missing.
    """
    wanted = home.settings[_KEY]
    used, other = home.vectors, home.other_vectors
    switching = is_switching(home)
    place, problem, held = Place(), None, None
    try:
        place = place_of(home.settings, wanted)
        held = hold(home, wanted)
        if switching and not held:
            held = hold(home, str(used.setting()))
        if wanted != "none":
            embedder_of(home, wanted)
    except EmbedderUnavailable as error:
        problem = error
    return Standing(
        wanted, place, _lot(used, "in_use"), _lot(other, "making"), switching, problem, held
    )


def plan(home: Home, name: str) -> Plan:
    """What it takes to go over to a model, or on with it. Sends nothing, and needs no key.

    Raises EmbedderUnavailable, SettingsInvalid.
    """
    setting = _named(name)
    place = place_of(home.settings, setting)
    model = _model_of(home, setting, place)
    texts = tokens = 0
    for text in _texts_to_embed(home, model):
        texts += 1
        tokens += count_tokens(text)
    cost = None if place.price is None else place.price * tokens / MILLION
    return Plan(
        setting,
        model,
        home.vectors.setting(),
        place,
        texts,
        tokens,
        cost,
        wants_yes=wants_yes(home.settings, setting) is not None,
        left=left_today(home, VECTORS),
    )


def try_one(home: Home, name: str) -> Trial:
    """Embed one short text. Raises EmbedderUnavailable."""
    started = time.perf_counter()
    vectors = asked(embedder_of(home, _named(name))).embed(["Does this model answer?"])
    return Trial(vectors.shape[1], time.perf_counter() - started)


def switch(home: Home, name: str, notify: OnProgress) -> Embedded:
    """Set a model, make its vectors beside those in use, exchange them, and drop the old ones.

    That is a yes to where the texts go, these and those to come. An interruption loses little: :func:`resume`, the next
    ingest or the watcher goes on. To name the model in use gives a switch up. Raises SettingsInvalid.
    """
    return embed_pending(_with(home, _named(name)), notify, is_asked=True)


def resume(home: Home, notify: OnProgress) -> Embedded:
    """Go on with the vectors that are missing; a yes, as :func:`switch` is one."""
    return embed_pending(say_yes(home, home.settings[_KEY]), notify, is_asked=True)


def _named(name: str) -> str:
    """A model's name as it stands in the settings; a folder by its whole path."""
    if name == "none":
        raise InvalidInput(
            "none is no model", hint="to do without vectors: nacre config set embedding.model none"
        )
    if name.startswith("onnx:"):
        name = f"onnx:{Path(name.removeprefix('onnx:')).expanduser().absolute()}"
    setting: str = check(_KEY, name)
    return setting


def _with(home: Home, setting: str) -> Home:
    """The home with another model, from now on. Raises SettingsInvalid where a variable says otherwise."""
    origin = home.settings.values[_KEY].origin
    if home.settings[_KEY] != setting and origin.startswith("$"):
        raise SettingsInvalid(
            f"{origin} says {home.settings[_KEY]!r}", hint=f"unset {origin.removeprefix('$')}"
        )
    home = say_yes(home, setting)  # first: alone it changes nothing
    if home.settings[_KEY] != setting:
        write_setting(home.settings.config, _KEY, setting)
    return replace(home, settings=home.settings.having(_KEY, setting))


def _lot(vectors: Vectors, state: str) -> Lot | None:
    model = vectors.model()
    if model is None:
        return None
    return Lot(
        setting=vectors.setting() or "",
        model=model,
        state=state,
        dimensions=vectors.dimensions(),
        passages=vectors.count(),
        memories=vectors.count_memories(),
        waiting=sum(vectors.missing()),
        bytes=vectors.size(),
    )


def _model_of(home: Home, setting: str, place: Place) -> str:
    """The name that vectors of a model have; a provider's is known without a key. Raises EmbedderUnavailable."""
    try:
        return embedder_of(home, setting).name
    except EmbedderUnavailable:
        if not place.model:
            raise
        return place.model


def _texts_to_embed(home: Home, model: str) -> Iterator[str]:
    """The passages that have no vector of a model yet, each once."""
    is_in_use = home.vectors.model() == model
    vectors = home.vectors if is_in_use else home.other_vectors
    is_begun = vectors.model() == model
    memories = (
        vectors.memories_to_embed(-1) if is_begun else [(0, *one) for one in vectors.memory_texts()]
    )
    for _, subject, content in memories:
        yield from passages(f"{subject}. {content}")
    seen: set[bytes] = set()
    row = 0
    while page := vectors.turns_after(row, _PAGE):
        row = page[-1][0]
        said = {digest: part for _, text in page for digest, part in passages_by_hash(text).items()}
        known = vectors.known(list(said)) if is_begun else {}
        fresh = said.keys() - seen - known.keys()
        seen |= fresh
        yield from (said[digest] for digest in fresh)


# ----------------------------------------------------------------------------
# Requests about the model that makes the vectors.


class ModelRequest(Request, frozen=True, kw_only=True):
    """An embedding model."""

    name: Annotated[
        str, Meta(description="minilm, onnx:FOLDER, or PROVIDER:MODEL, with @N for N dimensions.")
    ]


# ----------------------------------------------------------------------------
# What is answered to requests about the embedding model; :mod:`nacre.serve.catalogue` lists them.


def plan_answers(home: Home, request: ModelRequest) -> Plan:
    """What it takes to go over to a model, or on with it; nothing is sent. Raises EmbedderUnavailable."""
    return plan(home, request.name)


def try_one_answers(home: Home, request: ModelRequest) -> Trial:
    """Embed one short text. Raises EmbedderUnavailable."""
    return try_one(home, request.name)


def switch_answers(
    home: Home, request: ModelRequest, on_progress: OnProgress | None = None
) -> Embedded:
    """Have another model make the vectors. Raises EmbedderUnavailable, SettingsInvalid."""
    return switch(home, request.name, on_progress or _ignore)


def resume_answers(home: Home, on_progress: OnProgress | None = None) -> Embedded:
    """Go on with the vectors that are missing."""
    return resume(home, on_progress or _ignore)


def _ignore(_: Progress) -> None:
    """Nobody waits for it."""
