"""Another embedding model: what it takes, going over to it, going back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.app.context import Context
from nacre.app.embedding import Embedded, embed_pending, is_switching, passages, passages_by_hash
from nacre.app.spending import today
from nacre.app.spooling import note_call
from nacre.errors import Conflict, EmbedderUnavailable, InvalidInput, NacreError, NotFound, SettingsInvalid
from nacre.model.prompting import MILLION, Tokens
from nacre.model.reports import Progress
from nacre.model.spending import DOLLAR, Call
from nacre.settings import Settings, check, write_setting
from nacre.text import count_tokens

if TYPE_CHECKING:
    from nacre.storage.vectors import Vectors

_KEY = "embedding.model"
_PAGE = 1_000
_LOCAL = ("minilm", "none")


@dataclass(frozen=True, slots=True)
class Place:
    """Where texts go for their vectors: a ``host``, empty where they stay within nacre. ``price``: see Destination."""

    host: str = ""
    is_here: bool = True
    price: Decimal | None = Decimal(0)


@dataclass(frozen=True, slots=True)
class Lot:
    """The vectors of one model. ``state`` is ``in_use``, ``making`` or ``kept``; ``waiting`` are texts without one."""

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
    """How the vectors stand. ``problem`` is what keeps the model that is set from being asked."""

    wanted: str
    place: Place
    in_use: Lot | None
    other: Lot | None
    switching: bool
    problem: NacreError | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What going over to a model takes. ``cost`` in US dollars, ``None`` where the price is not known."""

    setting: str
    model: str
    used: str | None
    place: Place
    texts: int
    tokens: int
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Trial:
    """One text embedded: how many numbers a vector has, and the seconds that took."""

    dimensions: int
    seconds: float


def status(context: Context) -> Standing:
    """Which model made which vectors, how many texts wait, where texts go. Asks no model.

    Raises EmbedderUnavailable where numpy is missing.
    """
    wanted = context.settings[_KEY]
    used, other = context.vectors, context.other_vectors
    switching = is_switching(context)
    in_making = "kept" if other.were_used() else "making"
    place, problem = Place(), None
    try:
        place = place_of(context.settings, wanted)
        if wanted != "none":
            context.embedder_of(wanted)
    except EmbedderUnavailable as error:
        problem = error
    return Standing(wanted, place, _lot(used, "in_use"), _lot(other, in_making), switching, problem)


def plan(context: Context, name: str) -> Plan:
    """What it takes to go over to a model. Sends nothing. Raises EmbedderUnavailable, SettingsInvalid."""
    setting = _named(name)
    embedder = context.embedder_of(setting)
    texts = tokens = 0
    if context.vectors.model() != embedder.name:
        for text in _texts_to_embed(context, embedder.name):
            texts += 1
            tokens += count_tokens(text)
    place = place_of(context.settings, setting)
    cost = None if place.price is None else place.price * tokens / MILLION
    return Plan(setting, embedder.name, context.vectors.setting(), place, texts, tokens, cost)


def try_one(context: Context, name: str) -> Trial:
    """Embed one short text. Raises EmbedderUnavailable."""
    started = time.perf_counter()
    vectors = context.embedder_of(_named(name)).embed(["Does this model answer?"])
    return Trial(vectors.shape[1], time.perf_counter() - started)


def switch(context: Context, name: str, notify: Callable[[Progress], None], *, forgets_old: bool = False) -> Embedded:
    """Set a model, make its vectors beside those in use, and exchange them; the old ones are kept, or forgotten then.

    An interruption loses little: :func:`resume`, the next ingest or the watcher goes on. Raises SettingsInvalid.
    """
    changed = _with(context, _named(name))
    made = embed_pending(changed, notify)
    if forgets_old and not is_switching(changed):
        forget_old(changed)
    return made


def resume(context: Context, notify: Callable[[Progress], None]) -> Embedded:
    """Go on with the vectors that are missing."""
    return embed_pending(context, notify)


def back(context: Context, notify: Callable[[Progress], None]) -> tuple[str, Embedded]:
    """Go back to the model of before: at once where its vectors are kept. Returns its name in the settings.

    In the middle of going over to another, that is given up; what was made for it stays. Raises NotFound where nothing
    is kept, EmbedderUnavailable where the model of before is not there any more.
    """
    if is_switching(context):
        setting = str(context.vectors.setting())
        return setting, embed_pending(_with(context, setting), notify)
    kept = context.other_vectors
    if kept.model() is None or not kept.were_used():
        raise NotFound("no vectors of another model are kept", hint="nacre embed switch makes them anew")
    setting = str(kept.setting())
    if context.embedder_of(setting).name != kept.model():
        raise EmbedderUnavailable(f"the model that made the kept vectors, {kept.model()}, is not there any more")
    before = _with(context, setting)  # first: if all ends here, the next ingest goes back
    before.other_vectors.take_place()
    return setting, embed_pending(before, notify)


def forget_old(context: Context) -> int:
    """Drop the vectors that are not in use; returns their bytes. Raises Conflict while they are in the making."""
    if is_switching(context):
        raise Conflict(
            "the vectors of the new model are in the making, and those of the old one are in use",
            hint="nacre embed resume goes on; nacre embed switch --back gives it up",
        )
    size = context.other_vectors.size()
    context.other_vectors.drop()
    return size


def note_cost(context: Context, setting: str, tokens: int, seconds: float) -> None:
    """Enter into the ledger what a provider's model read, as far as its price is known."""
    price = place_of(context.settings, setting).price
    cost = None if price is None else math.ceil(price * tokens / MILLION * DOLLAR)
    call = Call(
        context.ids(), context.clock(), today(context), "embedding", setting, is_background=False,
        tokens=Tokens(tokens), cost=cost, seconds=seconds, outcome="done",
    )  # fmt: skip
    note_call(context, call)


def place_of(settings: Settings, setting: str) -> Place:
    """Where the texts go that a model embeds. Raises EmbedderUnavailable."""
    if setting in _LOCAL or setting.startswith("onnx:"):
        return Place()
    from nacre.llm.embedding import destination  # httpx and all that, for whoever has a provider

    found = destination(settings, setting)
    return Place(found.host, found.is_here, found.price)


def _named(name: str) -> str:
    """A model's name as it stands in the settings; a folder by its whole path."""
    if name == "none":
        raise InvalidInput("none is no model", hint="to do without vectors: nacre config set embedding.model none")
    if name.startswith("onnx:"):
        name = f"onnx:{Path(name.removeprefix('onnx:')).expanduser().absolute()}"
    setting: str = check(_KEY, name)
    return setting


def _with(context: Context, setting: str) -> Context:
    """The home with another model, from now on. Raises SettingsInvalid where a variable says otherwise."""
    origin = context.settings.values[_KEY].origin
    if context.settings[_KEY] != setting:
        if origin.startswith("$"):
            raise SettingsInvalid(f"{origin} says {context.settings[_KEY]!r}", hint=f"unset {origin.removeprefix('$')}")
        write_setting(context.settings.config, _KEY, setting)
    return replace(context, settings=context.settings.having(_KEY, setting))


def _lot(vectors: Vectors, state: str) -> Lot | None:
    model = vectors.model()
    if model is None:
        return None
    return Lot(
        setting=vectors.setting() or "", model=model, state=state, dimensions=vectors.dimensions(),
        passages=vectors.count(), memories=vectors.count_memories(), waiting=sum(vectors.missing()),
        bytes=vectors.size(),
    )  # fmt: skip


def _texts_to_embed(context: Context, model: str) -> Iterator[str]:
    """The passages that have no vector of a model yet, each once."""
    vectors = context.other_vectors
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
