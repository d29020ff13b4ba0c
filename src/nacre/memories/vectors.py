"""Embedding of memories and turns, and switching the embedding model.

Missing vectors are computed in small steps and can be interrupted between steps. If a different
model is configured, its vectors are computed separately and replace the current vectors when
complete. Until then, searches use the current vectors, and new texts get vectors from both models.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.text import count_tokens, pieces
from nacre.errors import (
    EmbedderHeldError,
    EmbedderUnavailableError,
    InvalidInputError,
    InvalidSettingsError,
    NacreError,
    UnusableStoreError,
)
from nacre.home.consent import (
    as_requested,
    configured_embedder,
    embedder_in_use,
    embedder_of,
    hold,
    place_of,
    say_yes,
    wants_yes,
)
from nacre.home.home import BUNDLED, Home
from nacre.home.spending import tighter_budget
from nacre.known_settings import check
from nacre.llm.calibration import is_measured, probes, seen_by
from nacre.memories.compare import settle
from nacre.operations import operation
from nacre.protocols import Embedder, RemoteEmbedder
from nacre.settings import write_setting
from nacre.store.schema import UNREADABLE
from nacre.values.models import MILLION, Place
from nacre.values.reports import OnProgress, Progress, StoreOutcome

if TYPE_CHECKING:
    import numpy as np

    from nacre.store.search import Vectors

    Matrix = np.typing.NDArray[np.float32]

T = TypeVar("T")

PASSAGE_CHARACTERS = 900
"""Maximum number of characters of a passage, about 220 English tokens. The bundled model reads 256 tokens."""

MAX_PASSAGES_A_TURN = 24
"""Maximum number of passages per turn. A longer turn is pasted text, which is identified by its start."""

STEP_TURNS = 128
STEP_MEMORIES = 64
_AFTER_STORE_SECONDS = 2.0
_PROBE_SECONDS = 30.0


@frozen
class Embedded:
    """The result of embedding texts.

    ``made``: number of embedded texts. ``left``: number of waiting texts. ``note``: reason why
    embedding stopped early, and what to do.
    """

    made: int
    left: int
    note: str | None = None
    tokens: int = 0
    """Tokens counted by the provider."""


def embed_pending(
    home: Home,
    notify: OnProgress,
    *,
    limit: int | None = None,
    seconds: float = math.inf,
    is_asked: bool = False,
) -> Embedded:
    """Compute missing vectors of memories, then of turns.

    Work stops after ``limit`` texts or after ``seconds``. Work also stops if the model does not
    answer, or if texts must not be sent to the model. Finished steps are kept. ``is_asked`` means
    that the user requested the work and agreed to send texts to the model.
    """
    setting = home.settings.text("embedding.model")
    if setting == "none":
        return Embedded(0, 0, "vectors are off (embedding.model = none)")
    work = _Work(home, notify, limit, time.monotonic() + seconds, is_asked=is_asked)
    before = _tokens(home)
    try:
        if not home.vectors.model() and not sum(home.vectors.missing()):
            return Embedded(0, 0)
        if not home.vectors.model():
            _choose_first_model(home, setting, is_asked=is_asked)
        if is_switching(home):
            _switch(home, work)
        else:
            home.vectors.begin(configured_embedder(home).name, setting)
            if home.other_vectors.model():  # left by a crash or an abandoned switch
                home.other_vectors.drop()
            work.fill(home.vectors, work.model())
    except EmbedderUnavailableError as error:
        work.stop(error)
    except KeyboardInterrupt:
        work.note = "interrupted; the next ingest continues"
    return Embedded(work.done, work.left(), work.note, _tokens(home) - before)


def _tokens(home: Home) -> int:
    return sum(
        embedder.tokens
        for embedder in home.embedders.values()
        if isinstance(embedder, RemoteEmbedder)
    )


def _choose_first_model(home: Home, setting: str, *, is_asked: bool) -> None:
    """Choose the model that computes the first vectors.

    A rebuilt database uses the model of the old vectors, which are reused. Otherwise, the
    configured model is chosen, or the bundled model until the user agrees to send texts to the
    configured model.
    """
    refusal = None if is_asked else wants_yes(home.settings, setting)
    first = BUNDLED if refusal else setting
    with contextlib.suppress(UnusableStoreError, *UNREADABLE):
        first = (home.earlier and home.earlier.setting()) or first
    try:
        home.vectors.begin(embedder_of(home, first).name, first)
    except EmbedderUnavailableError as error:
        if first == setting or refusal:
            raise refusal or error from error
        home.vectors.begin(embedder_of(home, setting).name, setting)


def is_switching(home: Home) -> bool:
    """Return True if the current vectors are not from the configured model.

    Raises EmbedderUnavailableError.
    """
    current, setting = home.vectors.setting(), home.settings.text("embedding.model")
    return setting != "none" and current not in (None, setting)


def _switch(home: Home, work: _Work) -> None:
    """Compute the vectors of the configured model, and then replace the current vectors."""
    setting = home.settings.text("embedding.model")
    try:
        # Not marked as requested by the user, because these vectors will be replaced.
        work.fill(home.vectors, embedder_in_use(home))
    except EmbedderHeldError as error:
        work.stop(error)
    except EmbedderUnavailableError as error:  # the new vectors will replace these vectors
        work.note = f"{home.vectors.setting()} no longer answers: {error.message}"
    work.filled = home.other_vectors
    if not work.is_asked and (refusal := wants_yes(home.settings, setting)):
        raise refusal
    home.other_vectors.begin(configured_embedder(home).name, setting)
    while not work.is_over():
        before = work.done
        work.fill(home.other_vectors, work.model(), settles=False)
        if home.other_vectors.exchange():
            work.exchanged = True
            work.note = None
            return
        if work.done == before:
            return


class _Work:
    def __init__(
        self, home: Home, notify: OnProgress, limit: int | None, deadline: float, *, is_asked: bool
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
        self.filled: Vectors | None = None

    def is_over(self) -> bool:
        return (
            self._limit is not None and self.done >= self._limit
        ) or time.monotonic() >= self._deadline

    def left(self) -> int:
        """Return the number of texts without a vector of the latest model."""
        return 0 if self.filled is None or self.exchanged else sum(self.filled.missing())

    def model(self) -> Embedder:
        """Return the configured model, marked as requested if the user asked for the work."""
        embedder = configured_embedder(self._home)
        return as_requested(embedder) if self.is_asked else embedder

    def stop(self, error: EmbedderUnavailableError) -> None:
        self.note = (
            f"no vectors: {error.message}" if not self.done else f"no more vectors: {error.message}"
        )
        if isinstance(error, EmbedderHeldError):
            self.note = f"{error.message}; {error.hint}"

    def fill(self, vectors: Vectors, embedder: Embedder, *, settles: bool = True) -> None:
        """Compute the missing vectors of a model. Raises EmbedderUnavailableError."""
        self.filled = vectors
        self._total = self.done + sum(vectors.missing())
        if self._total > self.done:
            _look_at_probes(vectors, embedder)
        while not self.is_over() and (
            rows := _with_smaller_steps(
                lambda limit: _embed_memories(vectors, embedder, limit), STEP_MEMORIES
            )
        ):
            if settles:
                settle(self._home, rows)
            self._count(len(rows))
        step = embedder.step if isinstance(embedder, RemoteEmbedder) else STEP_TURNS
        while not self.is_over() and (
            count := _with_smaller_steps(
                lambda limit: _embed_turns(vectors, embedder, self._home.earlier, limit), step
            )
        ):
            self._count(count)

    def _count(self, count: int) -> None:
        self.done += count
        self._notify(Progress("vectors", self.done, self._total))


def _with_smaller_steps(step: Callable[[int], T], size: int) -> T:
    """Run a step with ``size`` texts, or with fewer texts if the budget is too small.

    Raises EmbedderHeldError.
    """
    while True:
        try:
            return step(size)
        except EmbedderHeldError as error:
            if size == 1 or not error.for_less:
                raise
            size //= 2


def _look_at_probes(vectors: Vectors, embedder: Embedder) -> None:
    """Measure a remote model with test texts, unless nacre contains measurements of it."""
    if not isinstance(embedder, RemoteEmbedder) or is_measured(embedder.name) or vectors.seen():
        return
    questions = embedder.within(_PROBE_SECONDS, question=True).embed(
        [question for question, _ in probes()]
    )
    vectors.note_seen(seen_by(questions, embedder.embed([passage for _, passage in probes()])))


def embed_memories(home: Home, *, begins: bool = False) -> dict[str, StoreOutcome]:
    """Embed new memories for at most two seconds, newest first.

    Returns the outcomes of memories whose meaning repeats or replaces another memory, keyed by id.
    The next ingest continues the work. Without ``begins``, nothing is done if there are no vectors
    yet.
    """
    outcomes: dict[str, StoreOutcome] = {}
    home.memories.has_new_rows = False
    try:
        if home.settings.text("embedding.model") == "none" or not home.vectors.memories_to_embed(1):
            return outcomes  # before loading the model, which is slow
        if begins and home.vectors.model() is None:
            _choose_first_model(home, home.settings.text("embedding.model"), is_asked=False)
        if not has_vectors(home):
            return outcomes
        embedder = embedder_in_use(home)
        if isinstance(embedder, RemoteEmbedder):
            if not is_measured(embedder.name) and not home.vectors.seen():
                return outcomes  # the next ingest calibrates it
            embedder = embedder.within(_AFTER_STORE_SECONDS)
        deadline = time.monotonic() + _AFTER_STORE_SECONDS
        while time.monotonic() < deadline and (rows := _embed_memories(home.vectors, embedder)):
            outcomes |= settle(home, rows)
    except EmbedderUnavailableError:
        pass
    return outcomes


def has_vectors(home: Home) -> bool:
    """Return True if the home has vectors and their model is available. Raises EmbedderUnavailableError."""
    model = home.vectors.model()
    return model is not None and model == embedder_in_use(home).name


def _embed_memories(vectors: Vectors, embedder: Embedder, limit: int = STEP_MEMORIES) -> list[int]:
    pending = vectors.memories_to_embed(limit)
    if not pending:
        return []
    texts = {row: passages(f"{subject}. {content}") for row, subject, content in pending}
    vectors.add_memory_vectors(embed_parts(embedder, texts))
    return list(texts)


def embed_parts(embedder: Embedder, texts: Mapping[T, Sequence[str]]) -> dict[T, Matrix]:
    """Embed the passages of several texts in one call."""
    made = embedder.embed([part for parts in texts.values() for part in parts])
    ends = accumulate(map(len, texts.values()))
    return {
        key: made[end - len(parts) : end]
        for (key, parts), end in zip(texts.items(), ends, strict=True)
    }


def _embed_turns(vectors: Vectors, embedder: Embedder, earlier: Vectors | None, limit: int) -> int:
    pending = vectors.turns_to_embed(limit)
    if not pending:
        vectors.pass_over()
        return 0
    passages_by_row = {row: passages_by_hash(text) for row, text in pending}
    texts = {digest: text for parts in passages_by_row.values() for digest, text in parts.items()}
    existing = vectors.known(list(texts))
    if earlier and len(existing) < len(texts):
        with contextlib.suppress(UnusableStoreError, *UNREADABLE):  # then computed again
            vectors.take_over(earlier, [digest for digest in texts if digest not in existing])
        existing = vectors.known(list(texts))
    new = [digest for digest in texts if digest not in existing]
    vectors_made = embedder.embed([texts[digest] for digest in new])
    hashes = {row: list(parts) for row, parts in passages_by_row.items()}
    vectors.add_turn_passages(hashes, new, vectors_made, through=pending[-1][0])
    return len(pending)


def passages_by_hash(text: str) -> dict[bytes, str]:
    """Return a text's passages by content hash, so that repeated passages are embedded once."""
    return {content_hash(part): part for part in passages(text)}


def passages(text: str) -> list[str]:
    """Split a text into pieces that fit the embedding model."""
    return pieces(text, PASSAGE_CHARACTERS)[:MAX_PASSAGES_A_TURN] or [text]


# -- Switching the model -------------------------------------------------------


_KEY = "embedding.model"
_PAGE_TURNS = 1_000


@frozen
class Lot:
    """The vectors of one model.

    ``state``: ``in_use`` or ``making``. ``waiting``: number of texts without a vector.
    """

    setting: str
    model: str
    state: str
    dimensions: int
    passages: int
    memories: int
    waiting: int
    bytes: int


@frozen
class Standing:
    """The state of the vectors.

    ``problem``: reason why the configured model cannot be used. ``held``: reason why nacre does not
    send texts to a model automatically.
    """

    wanted: str
    place: Place
    in_use: Lot | None
    other: Lot | None
    switching: bool
    problem: NacreError | None = None
    held: EmbedderHeldError | None = None


@frozen
class Plan:
    """The work and the cost of switching to a model.

    ``cost``: cost in US dollars, or ``None`` if the price is unknown. ``wants_yes``: True if the
    user has not yet agreed to send texts to the model. ``left``: today's remaining background
    budget in millionths of a US dollar.
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


@frozen
class Trial:
    """The result of embedding one text: dimensions and duration in seconds."""

    dimensions: int
    seconds: float


@operation("embed", daemon=False)
def status(home: Home) -> Standing:
    """Return the models, the numbers of vectors and pending texts, and where texts go.

    No model is called. Raises EmbedderUnavailableError if numpy is missing.
    """
    setting = home.settings[_KEY]
    current, other = home.vectors, home.other_vectors
    switching = is_switching(home)
    place, problem, refusal = Place(), None, None
    try:
        place = place_of(home.settings, setting)
        refusal = hold(home, setting)
        if switching and not refusal:
            refusal = hold(home, str(current.setting()))
        if setting != "none":
            embedder_of(home, setting)
    except EmbedderUnavailableError as error:
        problem = error
    return Standing(
        setting,
        place,
        _lot_of(current, "in_use"),
        _lot_of(other, "making"),
        switching,
        problem,
        refusal,
    )


Name = Annotated[str, bounds("minilm, onnx:FOLDER, or PROVIDER:MODEL, with @N for N dimensions.")]


@operation("embed-plan")
def plan(home: Home, name: Name) -> Plan:
    """Estimate the effort of switching to a model, or of completing a switch.

    Sends nothing and needs no key.

    Raises EmbedderUnavailableError, InvalidSettingsError.
    """
    setting = _full_name(name)
    place = place_of(home.settings, setting)
    try:
        model = embedder_of(home, setting).name
    except EmbedderUnavailableError:
        if not place.model:
            raise
        model = place.model
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
        left=tighter_budget(home).left,
    )


@operation("embed-try")
def try_one(home: Home, name: Name) -> Trial:
    """Embed one short text. Raises EmbedderUnavailableError."""
    started = time.perf_counter()
    vectors = as_requested(embedder_of(home, _full_name(name))).embed(["Does this model answer?"])
    return Trial(vectors.shape[1], time.perf_counter() - started)


@operation("embed-switch", writes=True, takes_long=True, owners=True, command="writer embedding")
def switch(
    home: Home,
    on_progress: OnProgress = lambda _: None,
    *,
    name: Name,
) -> Embedded:
    """Switch to another embedding model. The user thereby agrees to send texts to the model.

    The vectors of the new model are computed, and then replace the current vectors. After an
    interruption, :func:`resume`, the next ingest or the daemon continues. To abandon an unfinished
    switch, switch to the current model. Raises InvalidSettingsError if an environment variable sets
    another model.
    """
    setting, origin = _full_name(name), home.settings.values[_KEY].origin
    if home.settings[_KEY] != setting and origin.startswith("$"):
        raise InvalidSettingsError(
            f"{origin} already sets the model to {home.settings[_KEY]!r}",
            hint=f"unset {origin.removeprefix('$')} first",
        )
    home = say_yes(home, setting)  # consent first, because consent alone has no effect
    if home.settings[_KEY] != setting:
        write_setting(home.settings.config, _KEY, setting)
    home = replace(home, settings=home.settings.having(_KEY, setting))
    return embed_pending(home, on_progress, is_asked=True)


@operation("embed-resume", writes=True, takes_long=True)
def resume(home: Home, on_progress: OnProgress = lambda _: None) -> Embedded:
    """Compute the missing vectors. The user thereby agrees to send texts to the model."""
    return embed_pending(say_yes(home, home.settings[_KEY]), on_progress, is_asked=True)


def _full_name(name: str) -> str:
    if name == "none":
        raise InvalidInputError(
            "none is not a model", hint="to turn vectors off: nacre config set embedding.model none"
        )
    if name.startswith("onnx:"):
        name = f"onnx:{Path(name.removeprefix('onnx:')).expanduser().absolute()}"
    setting: str = check(_KEY, name)
    return setting


def _lot_of(vectors: Vectors, state: str) -> Lot | None:
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


def _texts_to_embed(home: Home, model: str) -> Iterator[str]:
    is_in_use = home.vectors.model() == model
    vectors = home.vectors if is_in_use else home.other_vectors
    is_begun = vectors.model() == model
    memories = (
        vectors.memories_to_embed(-1)
        if is_begun
        else [(0, *text) for text in vectors.memory_texts()]
    )
    for _, subject, content in memories:
        yield from passages(f"{subject}. {content}")
    seen: set[bytes] = set()
    row = 0
    while page := vectors.turns_after(row, _PAGE_TURNS):
        row = page[-1][0]
        parts = {
            digest: part for _, text in page for digest, part in passages_by_hash(text).items()
        }
        existing = vectors.known(list(parts)) if is_begun else {}
        new = parts.keys() - seen - existing.keys()
        seen |= new
        yield from (parts[digest] for digest in new)
