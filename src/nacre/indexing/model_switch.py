"""Another embedding model: what it takes, and going over to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.errors import (
    EmbedderHeld,
    EmbedderUnavailable,
    InvalidInput,
    NacreError,
    SettingsInvalid,
)
from nacre.home.home import Home
from nacre.indexing.vectors import Embedded, embed_pending, is_switching, passages, passages_by_hash
from nacre.known_settings import VECTORS, check
from nacre.settings import write_setting
from nacre.spending.budget import left_today
from nacre.spending.embedders import embedder_of
from nacre.spending.embedding_consent import Place, asked, hold, place_of, say_yes, wants_yes
from nacre.text.passages import count_tokens
from nacre.values.model_calls import MILLION
from nacre.values.reports import OnProgress

if TYPE_CHECKING:
    from nacre.storage.search.vectors import Vectors

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
    return Standing(wanted, place, _lot(used, "in_use"), _lot(other, "making"), switching, problem, held)


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
        setting, model, home.vectors.setting(), place, texts, tokens, cost,
        wants_yes=wants_yes(home.settings, setting) is not None, left=left_today(home, VECTORS),
    )  # fmt: skip


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
        raise InvalidInput("none is no model", hint="to do without vectors: nacre config set embedding.model none")
    if name.startswith("onnx:"):
        name = f"onnx:{Path(name.removeprefix('onnx:')).expanduser().absolute()}"
    setting: str = check(_KEY, name)
    return setting


def _with(home: Home, setting: str) -> Home:
    """The home with another model, from now on. Raises SettingsInvalid where a variable says otherwise."""
    origin = home.settings.values[_KEY].origin
    if home.settings[_KEY] != setting and origin.startswith("$"):
        raise SettingsInvalid(f"{origin} says {home.settings[_KEY]!r}", hint=f"unset {origin.removeprefix('$')}")
    home = say_yes(home, setting)  # first: alone it changes nothing
    if home.settings[_KEY] != setting:
        write_setting(home.settings.config, _KEY, setting)
    return replace(home, settings=home.settings.having(_KEY, setting))


def _lot(vectors: Vectors, state: str) -> Lot | None:
    model = vectors.model()
    if model is None:
        return None
    return Lot(
        setting=vectors.setting() or "", model=model, state=state, dimensions=vectors.dimensions(),
        passages=vectors.count(), memories=vectors.count_memories(), waiting=sum(vectors.missing()),
        bytes=vectors.size(),
    )  # fmt: skip


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
    memories = vectors.memories_to_embed(-1) if is_begun else [(0, *one) for one in vectors.memory_texts()]
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
