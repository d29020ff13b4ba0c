"""Embedding of memories and turns, comparison of memories by vectors, and the embedding model.

Missing vectors are computed in small steps and can be interrupted between steps. If a different
model is configured and answers, the current vectors are deleted and computed again, memories first.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate
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
from nacre.home.change import Change
from nacre.home.home import BUNDLED, Home
from nacre.home.spending import (
    daily_budget,
    embedder_in_use,
    embedder_of,
    grant_consent,
    missing_consent,
    place_of,
    refusal,
)
from nacre.known_settings import check
from nacre.llm.calibration import calibration_of, is_measured, probes, seen_by
from nacre.memories.judge import Relation, compare
from nacre.memories.placement import confirm, put, rarity_of
from nacre.operations import operation
from nacre.protocols import Embedder, RemoteEmbedder
from nacre.settings import write_setting
from nacre.store.schema import UNREADABLE
from nacre.values.memory import Memory, Retirement
from nacre.values.models import MILLION, Place
from nacre.values.reports import OnProgress, Progress, StoreOutcome

if TYPE_CHECKING:
    import numpy as np

    from nacre.store.search import Vectors

    Matrix = np.typing.NDArray[np.float32]

T = TypeVar("T")

PASSAGE_CHARACTERS = 900
"""Maximum number of characters in a passage, about 220 English tokens. The bundled model reads 256 tokens."""

MAX_PASSAGES_A_TURN = 24
"""Maximum number of passages per turn. Longer turns are pasted text, and their beginning is enough."""

STEP_TURNS = 128
STEP_MEMORIES = 64
_AFTER_STORE_SECONDS = 2.0
_PROBE_SECONDS = 30.0
_TRIAL = "Does this model answer?"


@frozen
class Embedded:
    """Counts of the embedded and remaining texts.

    ``note`` explains why the work stopped early, and what to do about it.
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
    """Compute missing vectors, first of memories, then of turns.

    This stops after ``limit`` texts or ``seconds``. Set ``is_asked`` if the user requested this,
    and thereby agreed to send texts to the model.
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
        if home.vectors.setting() != setting:
            _replace_model(home, work)
        else:
            home.vectors.begin(work.model().name, setting)
        work.fill(work.model())
    except EmbedderUnavailableError as error:
        work.stop(error)
    except KeyboardInterrupt:
        work.note = "interrupted; the next ingest continues"
    return Embedded(work.done, work.count_missing(), work.note, _tokens(home) - before)


def _tokens(home: Home) -> int:
    return sum(
        embedder.tokens
        for embedder in home.embedders.values()
        if isinstance(embedder, RemoteEmbedder)
    )


def _choose_first_model(home: Home, setting: str, *, is_asked: bool) -> None:
    # The bundled model is used until the user agrees to send texts to the configured one.
    held = None if is_asked else missing_consent(home.settings, setting)
    first = BUNDLED if held else setting
    with contextlib.suppress(UnusableStoreError, *UNREADABLE):
        # A rebuilt database keeps the model of the earlier vectors.
        first = (home.earlier and home.earlier.setting()) or first
    try:
        home.vectors.begin(embedder_of(home, first).name, first)
    except EmbedderUnavailableError as error:
        if first == setting or held:
            raise held or error from error
        home.vectors.begin(embedder_of(home, setting).name, setting)


def _replace_model(home: Home, work: _Work) -> None:
    setting = home.settings.text("embedding.model")
    try:
        if not work.is_asked and (held := missing_consent(home.settings, setting)):
            raise held
        work.model().embed([_TRIAL])
    except EmbedderUnavailableError:
        with contextlib.suppress(EmbedderUnavailableError):
            # Until the configured model answers, the former one computes missing vectors.
            work.fill(embedder_in_use(home))
        raise
    home.vectors.begin(work.model().name, setting)


class _Work:
    def __init__(
        self, home: Home, notify: OnProgress, limit: int | None, deadline: float, *, is_asked: bool
    ) -> None:
        self.done = 0
        self.note: str | None = None
        self.is_asked = is_asked
        self._home = home
        self._notify = notify
        self._limit = limit
        self._deadline = deadline
        self._total = 0

    def is_over(self) -> bool:
        return (
            self._limit is not None and self.done >= self._limit
        ) or time.monotonic() >= self._deadline

    def count_missing(self) -> int:
        try:
            return sum(self._home.vectors.missing())
        except EmbedderUnavailableError:
            return 0

    def model(self) -> Embedder:
        return embedder_of(self._home, is_requested=self.is_asked)

    def stop(self, error: EmbedderUnavailableError) -> None:
        self.note = (
            f"no vectors: {error.message}" if not self.done else f"no more vectors: {error.message}"
        )
        if isinstance(error, EmbedderHeldError):
            self.note = f"{error.message}; {error.hint}"

    def fill(self, embedder: Embedder) -> None:
        vectors = self._home.vectors
        self._total = self.done + sum(vectors.missing())
        if self._total > self.done:
            _look_at_probes(vectors, embedder)
        while not self.is_over() and (
            rows := _with_smaller_steps(
                lambda limit: _embed_memories(vectors, embedder, limit), STEP_MEMORIES
            )
        ):
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
    while True:
        try:
            return step(size)
        except EmbedderHeldError as error:
            if size == 1 or error.reason != "budget":
                raise
            size //= 2


def _look_at_probes(vectors: Vectors, embedder: Embedder) -> None:
    """Calibrate a remote model with test sentences if nacre has no calibration for it."""
    if not isinstance(embedder, RemoteEmbedder) or is_measured(embedder.name) or vectors.seen():
        return
    questions = embedder.within(_PROBE_SECONDS, question=True).embed(
        [question for question, _ in probes()]
    )
    vectors.note_seen(seen_by(questions, embedder.embed([passage for _, passage in probes()])))


def embed_memories(home: Home) -> dict[str, StoreOutcome]:
    """Embed new memories for at most two seconds, newest first.

    Returns the outcome, by id, for each memory that repeats or replaces another. The next ingest
    embeds the rest.
    """
    outcomes: dict[str, StoreOutcome] = {}
    home.memories.has_new_rows = False
    try:
        if not home.settings.embeds or not home.vectors.memories_to_embed(1):
            return outcomes  # before loading the model, which is slow
        if home.vectors.model() is None:
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
    """Return True if the home has vectors from the current model.

    Raises EmbedderUnavailableError.
    """
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
    """Embed several texts, each given as passages, in one call."""
    matrix = embedder.embed([part for parts in texts.values() for part in parts])
    ends = accumulate(map(len, texts.values()))
    return {
        key: matrix[end - len(parts) : end]
        for (key, parts), end in zip(texts.items(), ends, strict=True)
    }


def _embed_turns(vectors: Vectors, embedder: Embedder, earlier: Vectors | None, limit: int) -> int:
    pending = vectors.turns_to_embed(limit)
    if not pending:
        vectors.pass_over()
        return 0
    passages_by_row = {row: passages_by_hash(text) for row, text in pending}
    texts = {digest: text for parts in passages_by_row.values() for digest, text in parts.items()}
    existing = vectors.rows_of_passages(list(texts))
    if earlier and len(existing) < len(texts):
        with contextlib.suppress(UnusableStoreError, *UNREADABLE):  # then computed again
            vectors.take_over(earlier, [digest for digest in texts if digest not in existing])
        existing = vectors.rows_of_passages(list(texts))
    new = [digest for digest in texts if digest not in existing]
    vectors_made = embedder.embed([texts[digest] for digest in new])
    hashes = {row: list(parts) for row, parts in passages_by_row.items()}
    vectors.add_turn_passages(hashes, new, vectors_made, through=pending[-1][0])
    return len(pending)


def passages_by_hash(text: str) -> dict[bytes, str]:
    """Return the passages of a text by hash, so that repeated ones are embedded only once."""
    return {content_hash(part): part for part in passages(text)}


def passages(text: str) -> list[str]:
    """Split a text into passages that fit the embedding model."""
    return pieces(text, PASSAGE_CHARACTERS)[:MAX_PASSAGES_A_TURN] or [text]


# -- Comparing memories by vectors ---------------------------------------------


AUTO_LINKS = 3
"""Number of nearest memories to link."""

_MAX_NEIGHBOURS = 24


def settle(home: Home, rows: Sequence[int]) -> dict[str, StoreOutcome]:
    """Link memories to their nearest neighbours, and compare new memories with them.

    Returns the outcome for each changed memory. The links are stored only in the index.
    """
    memories_by_row = home.memories.by_rows(rows)
    memories = {row: memory for row, memory in memories_by_row.items() if not memory.superseded_by}
    near = {row: _neighbours(home, row, memory) for row, memory in memories.items()}
    limits = calibration_of(home.vectors.model(), home.vectors.seen())
    with home.transaction():
        for row, memory in memories.items():
            home.database.yield_write_lock()
            alike = {other.id: cosine for other, cosine in near[row] if cosine >= limits.link}
            home.comparisons.link_alike(memory.id, dict(list(alike.items())[:AUTO_LINKS]))
    pending = home.comparisons.queued(rows)
    if not pending:
        return {}
    row_of = {memory.id: row for row, memory in memories.items()}
    outcomes = {}
    with home.change("settle", why="compared by similarity") as change, change.transaction():
        for memory_id in home.comparisons.queued(rows):
            if change.yield_locks():
                pending = home.comparisons.queued(rows)
            if memory_id not in pending:
                continue  # handled by another process
            home.comparisons.settled(memory_id)
            outcome = _settle(change, memory_id, near.get(row_of.get(memory_id, 0), []))
            if outcome:
                outcomes[memory_id] = outcome
    return outcomes


def _neighbours(home: Home, row: int, memory: Memory) -> list[tuple[Memory, float]]:
    cosines = {hit.row: hit.cosine for hit in home.vectors.near_memory(row, limit=_MAX_NEIGHBOURS)}
    neighbours = home.memories.by_rows(list(cosines))
    return [
        (neighbours[other], cosine)
        for other, cosine in cosines.items()
        if other in neighbours
        and neighbours[other].shares_place(memory)
        and not neighbours[other].superseded_by
    ]


def _settle(
    change: Change, memory_id: str, near: Sequence[tuple[Memory, float]]
) -> StoreOutcome | None:
    home = change.home
    memory = home.memories.find(memory_id)
    cosines = {other.id: cosine for other, cosine in near}
    present = [home.memories.find(other) for other in cosines]
    active = [other for other in present if other and other.is_active]
    if memory is None or not memory.is_active or not active:
        return None
    vectors = home.vectors
    comparisons = compare(
        memory,
        active,
        cosines=cosines,
        model=vectors.model(),
        mean_cosines=vectors.seen(),
        rarity=rarity_of(home),
    )
    repeated = next((comparison for comparison in comparisons if comparison.repeats), None)
    if repeated:
        remaining, absorbed = repeated.other, memory
        if remaining.last_said > absorbed.last_said:
            remaining, absorbed = absorbed, remaining
        if absorbed.is_owners:
            confirm(change, remaining, absorbed)
        reason = f"says the same as {remaining.id}"
        retired = replace(absorbed, retired=Retirement(change.home.now(), reason))
        change.put([retired], [change.entry("retire", memory=absorbed.id, reason=reason)])
        return StoreOutcome("known", remaining.id, repeated.verdict.reason)
    if any(
        comparison.verdict.relation not in (Relation.RELATED, Relation.UNRELATED)
        for comparison in comparisons
    ):
        return put(change, memory, comparisons)
    return None


# -- Switching the model -------------------------------------------------------


_KEY = "embedding.model"
_PAGE_TURNS = 1_000


@frozen
class Lot:
    """The vectors of one model. ``waiting`` is the number of texts that have none yet."""

    setting: str
    model: str
    dimensions: int
    passages: int
    memories: int
    waiting: int
    bytes: int


@frozen
class Standing:
    """The configured model and the vectors in use.

    ``problem`` explains why the model cannot be used, and ``held`` why texts are not sent to it
    automatically.
    """

    wanted: str
    place: Place
    in_use: Lot | None
    problem: NacreError | None = None
    held: EmbedderHeldError | None = None


@frozen
class Plan:
    """The work and the cost of switching to a model.

    ``cost`` is in US dollars, or ``None`` if unknown. ``wants_yes`` is True if the user has yet to
    agree to sending texts. ``left`` is today's background budget in millionths of a US dollar.
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
    """The result of embedding one text."""

    dimensions: int
    seconds: float


@operation("embed", daemon=False)
def status(home: Home) -> Standing:
    """Return the models, the numbers of vectors and pending texts, and where texts are sent.

    No model is called. Raises EmbedderUnavailableError if numpy is missing.
    """
    setting = home.settings[_KEY]
    used = home.vectors.setting()
    place, problem, refused = Place(), None, None
    try:
        place = place_of(home.settings, setting)
        refused = refusal(home, setting)
        if used and not refused and setting != "none":
            refused = refusal(home, used)
        if setting != "none":
            embedder_of(home, setting)
    except EmbedderUnavailableError as error:
        problem = error
    model, vectors = home.vectors.model(), home.vectors
    in_use = model and Lot(
        setting=used or "",
        model=model,
        dimensions=vectors.dimensions(),
        passages=vectors.count(),
        memories=vectors.count_memories(),
        waiting=sum(vectors.missing()),
        bytes=vectors.size(),
    )
    return Standing(setting, place, in_use or None, problem, refused)


Name = Annotated[str, bounds("minilm, or PROVIDER:MODEL, with @N for N dimensions.")]


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
        wants_yes=missing_consent(home.settings, setting) is not None,
        left=daily_budget(home).remaining,
    )


@operation("embed-try")
def try_one(home: Home, name: Name) -> Trial:
    """Embed one short text. Raises EmbedderUnavailableError."""
    started = time.perf_counter()
    vectors = embedder_of(home, _full_name(name), is_requested=True).embed([_TRIAL])
    return Trial(vectors.shape[1], time.perf_counter() - started)


@operation("embed-switch", writes=True, takes_long=True, owners=True, command="writer embedding")
def switch(
    home: Home,
    on_progress: OnProgress = lambda _: None,
    *,
    name: Name,
) -> Embedded:
    """Switch to another embedding model. The user thereby agrees to send texts to the model.

    If the new model answers, the current vectors are deleted and computed again. After an
    interruption, :func:`resume`, the next ingest or the daemon continues. Raises
    InvalidSettingsError if an environment variable sets another model.
    """
    setting, origin = _full_name(name), home.settings.values[_KEY].origin
    if home.settings[_KEY] != setting and origin.startswith("$"):
        raise InvalidSettingsError(
            f"{origin} already sets the model to {home.settings[_KEY]!r}",
            hint=f"unset {origin.removeprefix('$')} first",
        )
    home = grant_consent(home, setting)  # consent first, because consent alone has no effect
    if home.settings[_KEY] != setting:
        write_setting(home.settings.config, _KEY, setting)
    home = replace(home, settings=home.settings.having(_KEY, setting))
    return embed_pending(home, on_progress, is_asked=True)


@operation("embed-resume", writes=True, takes_long=True)
def resume(home: Home, on_progress: OnProgress = lambda _: None) -> Embedded:
    """Compute the missing vectors. The user thereby agrees to send texts to the model."""
    return embed_pending(grant_consent(home, home.settings[_KEY]), on_progress, is_asked=True)


def _full_name(name: str) -> str:
    if name == "none":
        raise InvalidInputError(
            "none is not a model", hint="to turn vectors off: nacre config set embedding.model none"
        )
    setting: str = check(_KEY, name)
    return setting


def _texts_to_embed(home: Home, model: str) -> Iterator[str]:
    vectors = home.vectors
    is_begun = vectors.model() == model
    memories = (
        vectors.memories_to_embed(-1)
        if is_begun
        else [(0, *text) for text in vectors.memory_texts()]
    )
    for _, subject, content in memories:
        yield from passages(f"{subject}. {content}")
    digests: set[bytes] = set()
    row = 0
    while page := vectors.turns_after(row, _PAGE_TURNS):
        row = page[-1][0]
        parts = {
            digest: part for _, text in page for digest, part in passages_by_hash(text).items()
        }
        existing = vectors.rows_of_passages(list(parts)) if is_begun else {}
        new = parts.keys() - digests - existing.keys()
        digests |= new
        yield from (parts[digest] for digest in new)
