"""Texts that go elsewhere for their vectors: whether they may, and what that costs.

They go to no provider to whose host the owner has not said yes (``embedding.sends_to``), which ``nacre embed switch``
and ``nacre embed resume`` ask for. What nobody asked for in so many words keeps within the budgets of models: a call is
written down at what it may cost before it is made. Questions are looked at against the budget, and noted in a spool,
for recall writes in no database.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from nacre.base.times import shown_minute
from nacre.errors import EmbedderHeld, EmbedderUnavailable, NacreError, SettingsInvalid
from nacre.home.home import Home
from nacre.home.spending import (
    DAILY,
    TASKS,
    HomeBooks,
    OwnConnection,
    budget,
    is_priced,
    resets_at,
    unpriced,
)
from nacre.known_settings import VECTORS
from nacre.llm import embeddings
from nacre.protocols import CountedEmbedder, Embedder
from nacre.settings import Settings, write_setting
from nacre.store.journal import Spending
from nacre.values.models import DOLLAR, MILLION, Call, Tokens, dollars

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SENDS_TO = "embedding.sends_to"
_WITHIN = ("minilm", "none")
_FOR_QUESTIONS = 100
"""Texts leave that part of a budget to questions: a question costs next to nothing, and a day without them much."""


_A_PASSAGE = 300
"""About as many tokens as the passages have into which texts are taken apart."""


class Use(Enum):
    """Who wants a vector: a person in so many words, nacre by itself, or a question that is recalled."""

    ASKED = "asked"
    BACKGROUND = "background"
    QUESTION = "question"


@dataclass(frozen=True, slots=True)
class Place:
    """Where texts go for their vectors: a ``host``, empty where they stay within nacre.

    ``model`` is the name that vectors made there have, ``price`` US dollars for a million tokens, ``None`` where nobody
    knows. ``is_local``: they stay on this machine, as far as anybody can tell.
    """

    host: str = ""
    is_here: bool = True
    is_local: bool = True
    price: Decimal | None = Decimal(0)
    model: str = ""

    def cost(self, tokens: int) -> int | None:
        """What so many tokens cost, in millionths of a US dollar, rounded up."""
        return None if self.price is None else math.ceil(self.price * tokens * DOLLAR / MILLION)


def place_of(settings: Settings, setting: str) -> Place:
    """Where the texts go that a model embeds. Needs no key, and opens no model. Raises EmbedderUnavailable."""
    if setting in _WITHIN or setting.startswith("onnx:"):
        return Place()

    found = embeddings.destination(settings, setting)
    return Place(found.host, found.is_here, found.is_local, found.price, found.model)


def wants_yes(settings: Settings, setting: str) -> EmbedderHeld | None:
    """What to tell where texts would leave this machine, and nobody said yes to that. Raises EmbedderUnavailable."""
    place = place_of(settings, setting)
    if place.is_local or place.host in settings[SENDS_TO]:
        return None
    return EmbedderHeld(
        f"no text goes to {place.host} for {setting} before you say yes",
        hint="nacre embed resume tells what would go and what that costs, and asks",
        reason="no yes",
    )


def told_of(settings: Settings, setting: str) -> str | None:
    """What to tell whoever sets a model to which texts go, in a sentence. Raises EmbedderUnavailable."""
    if held := wants_yes(settings, setting):
        return f"{held.message}: {held.hint}"
    place = place_of(settings, setting)
    if place.is_local:
        return None
    return (
        f"texts go to {place.host} for {setting}, within the budget of each day: nacre embed resume --estimate tells "
        "how many, nacre embed resume makes all vectors at once"
    )


def say_yes(home: Home, setting: str) -> Home:
    """The home with a yes to where the texts go that a model embeds. Raises SettingsInvalid, EmbedderUnavailable."""
    if wants_yes(home.settings, setting) is None:
        return home
    origin = home.settings.values[SENDS_TO].origin
    if origin.startswith("$"):
        raise SettingsInvalid(
            f"{origin} goes before a yes", hint=f"add the host there, or unset {origin[1:]}"
        )
    hosts = [*home.settings[SENDS_TO], place_of(home.settings, setting).host]
    write_setting(home.settings.config, SENDS_TO, hosts)
    return replace(home, settings=home.settings.having(SENDS_TO, hosts))


def hold(
    home: Home,
    setting: str,
    use: Use = Use.BACKGROUND,
    tokens: int = _A_PASSAGE,
    spending: Spending | None = None,
) -> EmbedderHeld | None:
    """What keeps so many tokens from going to a model now, if something does. Raises EmbedderUnavailable."""
    if use is Use.ASKED:
        return None
    cost = place_of(home.settings, setting).cost(tokens)
    held = wants_yes(home.settings, setting)
    return held or (
        _beyond(home, setting, use, cost, spending or home.spending) if cost != 0 else None
    )


def _beyond(
    home: Home, setting: str, use: Use, cost: int | None, spending: Spending
) -> EmbedderHeld | None:
    """What to tell where no budget has room for a call."""
    if cost is None:
        why = unpriced(setting)
        return EmbedderHeld(why.message, hint=why.hint, reason="no price")
    in_all, of_task = spending.in_background(
        home.today(), VECTORS, partial(is_priced, home.settings)
    )
    for reason, task, spent in (("budget", None, in_all), ("task budget", VECTORS, of_task)):
        most = budget(home, task)
        if most is None:
            continue
        room = most if use is Use.QUESTION else most - most // _FOR_QUESTIONS
        if spent + cost > room:
            return _spent(home, reason, spent, most, for_less=spent < room)
    return None


def _spent(home: Home, reason: str, spent: int, most: int, *, for_less: bool) -> EmbedderHeld:
    whose, key = ("models", DAILY) if reason == "budget" else ("vectors", f"{TASKS}.{VECTORS}")
    if most <= 0:
        told = f"nothing may be paid for vectors in the background: {key} is 0"
        hint = "nacre embed resume makes those that wait"
    else:
        told = f"{whose} may cost {dollars(most)} a day in the background ({key}), and {dollars(spent)} are used"
        hint = f"it goes on at {shown_minute(resets_at(home))}, or now: nacre embed resume"
    return EmbedderHeld(told, hint=hint, reason=reason, for_less=for_less)


def note_held(home: Home, setting: str, held: EmbedderHeld) -> None:
    """Count in the ledger that texts were not sent."""
    if held.reason == "no yes" or home.database.unwritable:
        return
    with home.database.transaction():
        home.spending.refuse(home.today(), VECTORS, setting, held.reason)


def asked(embedder: Embedder) -> Embedder:
    """The same model for what a person asked for in so many words, having been told where texts go and the price."""
    return embedder.asked() if isinstance(embedder, Guarded) else embedder


class Guarded:
    """A model elsewhere, which is sent texts only as far as they may go; implements RemoteEmbedder.

    Raises EmbedderHeld, before anything is sent, where they may not.
    """

    def __init__(
        self, home: Home, setting: str, embedder: CountedEmbedder, use: Use = Use.BACKGROUND
    ) -> None:
        self.name = embedder.name
        self.step = embedder.step
        self._home = home
        self._setting = setting
        self._embedder = embedder
        self._use = use

    @property
    def dimensions(self) -> int:
        """Components of a vector; 0 as long as that is not known."""
        return self._embedder.dimensions

    @property
    def tokens(self) -> int:
        """What the provider counted so far."""
        return self._embedder.tokens

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text, as rows of a float32 matrix (texts, dimensions). Raises EmbedderUnavailable."""
        if texts and (
            held := hold(self._home, self._setting, self._use, self._embedder.size_of(texts))
        ):
            raise held
        with contextlib.closing(_Ledger(self._home, self._setting, self._use)) as ledger:
            return self._embedder.counted_by(ledger).embed(texts)

    def within(self, seconds: float, *, question: bool = False) -> Guarded:
        """The same model, which answers within so many seconds or raises; for questions, where they are."""
        other = self._embedder.within(seconds, question=question)
        assert isinstance(other, CountedEmbedder)  # noqa: S101 - it is the same model
        is_recalled = question and self._use is Use.BACKGROUND
        return Guarded(self._home, self._setting, other, Use.QUESTION if is_recalled else self._use)

    def asked(self) -> Guarded:
        """See :func:`asked`."""
        return Guarded(self._home, self._setting, self._embedder, Use.ASKED)

    def close(self) -> None:
        """Let go of connections."""
        self._embedder.close()


class _Ledger:
    """Enters calls into the ledger; implements nacre.llm.embeddings.Meter."""

    def __init__(self, home: Home, setting: str, use: Use) -> None:
        self._home = home
        self._setting = setting
        self._use = use
        self._place = place_of(home.settings, setting)
        self._connection = OwnConnection(home)
        self._books = HomeBooks(home, self._connection, background=use is Use.BACKGROUND)

    def begin(self, tokens: int) -> Call:
        """A call of about so many tokens; in the background it is written down first. Raises EmbedderUnavailable."""
        call = Call(
            self._home.ids(),
            self._home.clock(),
            self._home.today(),
            VECTORS,
            self._setting,
            self._use is not Use.ASKED,
            Tokens(tokens),
            self._place.cost(tokens),
        )
        if self._use is Use.BACKGROUND:
            self._reserve(call, tokens)
        return call

    def end(self, call: Call, tokens: int, seconds: float) -> None:
        """It was answered."""
        self._books.end(call, Tokens(tokens), self._place.cost(tokens), seconds)

    def fail(self, call: Call, tokens: int, seconds: float) -> None:
        """It was not; the tokens are what may be charged all the same."""
        self._books.fail(call, Tokens(tokens), self._place.cost(tokens), seconds, None)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _reserve(self, call: Call, tokens: int) -> None:
        with self._writing() as spending:
            held = hold(self._home, self._setting, self._use, tokens, spending)
            if held is None:
                spending.add(call)
        if held:
            raise held

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Spending]:
        try:
            with self._connection.writing() as spending:
                yield spending
        except EmbedderUnavailable:
            raise
        except NacreError as error:
            raise EmbedderUnavailable(
                f"no call of {self._setting} can be noted: {error.message}", hint=error.hint
            ) from error


# ----------------------------------------------------------------------------
# The embedding models of a home, each of which is sent texts only as far as the owner allows.


def configured_embedder(home: Home) -> Embedder:
    """The embedding model that the settings name, loaded on first use. Raises EmbedderUnavailable."""
    return embedder_of(home, home.settings.text("embedding.model"))


def embedder_in_use(home: Home) -> Embedder:
    """The model that made the vectors in use, else the configured one. Raises EmbedderUnavailable."""
    return embedder_of(home, home.vectors.setting() or home.settings.text("embedding.model"))


def embedder_of(home: Home, name: str) -> Embedder:
    """The embedding model of a name, as the settings have it. Raises EmbedderUnavailable."""
    embedder = home.loaded_embedder(name)
    if not isinstance(embedder, CountedEmbedder):
        return embedder

    return Guarded(home, name, embedder)
