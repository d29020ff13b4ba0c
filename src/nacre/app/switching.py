"""Another embedding model: what it takes, going over to it, going back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.app.context import Context
from nacre.app.embedding import Embedded, embed_pending, is_switching, passages, passages_by_hash
from nacre.app.sending import Place, asked, hold, place_of, say_yes, wants_yes
from nacre.app.spending import left_today
from nacre.errors import (
    Conflict,
    EmbedderHeld,
    EmbedderUnavailable,
    InvalidInput,
    NacreError,
    NotFound,
    SettingsInvalid,
)
from nacre.model.prompting import MILLION
from nacre.model.reports import Progress
from nacre.settings import VECTORS, check, write_setting
from nacre.text import count_tokens

if TYPE_CHECKING:
    from nacre.storage.vectors import Vectors

_KEY = "embedding.model"
_PAGE = 1_000


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


def status(context: Context) -> Standing:
    """Which model made which vectors, how many texts wait, where texts go. Asks no model.

    Raises EmbedderUnavailable where numpy is missing.
    """
    wanted = context.settings[_KEY]
    used, other = context.vectors, context.other_vectors
    switching = is_switching(context)
    in_making = "kept" if other.were_used() else "making"
    place, problem, held = Place(), None, None
    try:
        place = place_of(context.settings, wanted)
        held = hold(context, wanted)
        if switching and not held:
            held = hold(context, str(used.setting()))
        if wanted != "none":
            context.embedder_of(wanted)
    except EmbedderUnavailable as error:
        problem = error
    return Standing(wanted, place, _lot(used, "in_use"), _lot(other, in_making), switching, problem, held)


def plan(context: Context, name: str) -> Plan:
    """What it takes to go over to a model, or on with it. Sends nothing, and needs no key.

    Raises EmbedderUnavailable, SettingsInvalid.
    """
    setting = _named(name)
    place = place_of(context.settings, setting)
    model = _model_of(context, setting, place)
    texts = tokens = 0
    for text in _texts_to_embed(context, model):
        texts += 1
        tokens += count_tokens(text)
    cost = None if place.price is None else place.price * tokens / MILLION
    return Plan(
        setting, model, context.vectors.setting(), place, texts, tokens, cost,
        wants_yes=wants_yes(context.settings, setting) is not None, left=left_today(context, VECTORS),
    )  # fmt: skip


def plan_back(context: Context) -> Plan:
    """What it takes to go back to the model of before. Raises as :func:`back`."""
    return plan(context, _before(context))


def try_one(context: Context, name: str) -> Trial:
    """Embed one short text. Raises EmbedderUnavailable."""
    started = time.perf_counter()
    vectors = asked(context.embedder_of(_named(name))).embed(["Does this model answer?"])
    return Trial(vectors.shape[1], time.perf_counter() - started)


def switch(context: Context, name: str, notify: Callable[[Progress], None], *, forgets_old: bool = False) -> Embedded:
    """Set a model, make its vectors beside those in use, and exchange them; the old ones are kept, or forgotten then.

    That is a yes to where the texts go, these and those to come. An interruption loses little: :func:`resume`, the next
    ingest or the watcher goes on. Raises SettingsInvalid.
    """
    changed = _with(context, _named(name))
    made = embed_pending(changed, notify, is_asked=True)
    if forgets_old and not is_switching(changed):
        forget_old(changed)
    return made


def resume(context: Context, notify: Callable[[Progress], None]) -> Embedded:
    """Go on with the vectors that are missing; a yes, as :func:`switch` is one."""
    return embed_pending(say_yes(context, context.settings[_KEY]), notify, is_asked=True)


def back(context: Context, notify: Callable[[Progress], None]) -> tuple[str, Embedded]:
    """Go back to the model of before: at once where its vectors are kept. Returns its name in the settings.

    In the middle of going over to another, that is given up; what was made for it stays. Raises NotFound where nothing
    is kept, EmbedderUnavailable where the model of before is not there any more.
    """
    setting = _before(context)
    if is_switching(context):
        return setting, embed_pending(_with(context, setting), notify, is_asked=True)
    kept = context.other_vectors
    if context.embedder_of(setting).name != kept.model():
        raise EmbedderUnavailable(f"the model that made the kept vectors, {kept.model()}, is not there any more")
    before = _with(context, setting)  # first: if all ends here, the next ingest goes back
    before.other_vectors.take_place()
    return setting, embed_pending(before, notify, is_asked=True)


def _before(context: Context) -> str:
    """The setting of the model to go back to. Raises NotFound."""
    if is_switching(context):
        return str(context.vectors.setting())
    kept = context.other_vectors
    if kept.model() is None or not kept.were_used():
        raise NotFound("no vectors of another model are kept", hint="nacre embed switch makes them anew")
    return str(kept.setting())


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
    if context.settings[_KEY] != setting and origin.startswith("$"):
        raise SettingsInvalid(f"{origin} says {context.settings[_KEY]!r}", hint=f"unset {origin.removeprefix('$')}")
    context = say_yes(context, setting)  # first: alone it changes nothing
    if context.settings[_KEY] != setting:
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


def _model_of(context: Context, setting: str, place: Place) -> str:
    """The name that vectors of a model have; a provider's is known without a key. Raises EmbedderUnavailable."""
    try:
        return context.embedder_of(setting).name
    except EmbedderUnavailable:
        if not place.model:
            raise
        return place.model


def _texts_to_embed(context: Context, model: str) -> Iterator[str]:
    """The passages that have no vector of a model yet, each once."""
    is_in_use = context.vectors.model() == model
    vectors = context.vectors if is_in_use else context.other_vectors
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
