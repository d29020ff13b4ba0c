"""Consent and budgets for text sent to embedding providers.

Text is sent only to hosts in ``embedding.sends_to``, which the owner approves with ``nacre
embedding`` or ``nacre writer embedding --resume``. Budgets limit embedding that the user did not
explicitly request. Each such call first reserves its maximum cost. Questions are also limited, but
their cost is first recorded in a file, because recall does not write to the database.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from nacre.errors import (
    EmbedderHeldError,
    EmbedderUnavailableError,
    InvalidSettingsError,
    NacreError,
)
from nacre.home.home import Home
from nacre.home.spending import HomeBooks, OwnConnection, budgets, over_budget, unpriced
from nacre.known_settings import VECTORS
from nacre.llm import embeddings
from nacre.protocols import CountedEmbedder, Embedder
from nacre.settings import Settings, write_setting
from nacre.store.journal import Spending
from nacre.values.models import Call, Place, Tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SENDS_TO = "embedding.sends_to"
_LOCAL_SETTINGS = ("minilm", "none")
_QUESTION_SHARE = 100
"""A budget divided by this number is reserved for questions."""


_PASSAGE_TOKENS = 300
"""Approximate number of tokens in a passage."""


class Use(Enum):
    """The reason for embedding text: a request, background work, or a recall question."""

    ASKED = "asked"
    BACKGROUND = "background"
    QUESTION = "question"


def place_of(settings: Settings, setting: str) -> Place:
    """Return where text for a model is sent, without opening the model or needing a key.

    Raises EmbedderUnavailableError.
    """
    if setting in _LOCAL_SETTINGS or setting.startswith("onnx:"):
        return Place()
    return embeddings.place_at(settings, setting)


def wants_yes(settings: Settings, setting: str) -> EmbedderHeldError | None:
    """Return an error if the user has not agreed to send text to the model's host.

    Raises EmbedderUnavailableError.
    """
    place = place_of(settings, setting)
    if place.is_local or place.host in settings[SENDS_TO]:
        return None
    return EmbedderHeldError(
        f"{setting} sends no text to {place.host} without your consent",
        hint="nacre writer embedding --resume shows the cost and asks",
        reason="no yes",
    )


def notice_of(settings: Settings, setting: str) -> str | None:
    """Return a notice for a user who selects a remote model. Raises EmbedderUnavailableError."""
    if refusal := wants_yes(settings, setting):
        return f"{refusal.message}: {refusal.hint}"
    place = place_of(settings, setting)
    if place.is_local:
        return None
    return (
        f"{setting} sends texts to {place.host} within the budget; to send all now, use "
        "nacre writer embedding --resume (with --estimate, it only shows the number)"
    )


def say_yes(home: Home, setting: str) -> Home:
    """Store the user's consent to send text to a model's host, and return the updated home.

    Raises InvalidSettingsError, EmbedderUnavailableError.
    """
    if wants_yes(home.settings, setting) is None:
        return home
    origin = home.settings.values[SENDS_TO].origin
    if origin.startswith("$"):
        raise InvalidSettingsError(
            f"{origin} overrides your consent",
            hint=f"add the host to it, or unset {origin[1:]}",
        )
    hosts = [*home.settings[SENDS_TO], place_of(home.settings, setting).host]
    write_setting(home.settings.config, SENDS_TO, hosts)
    return replace(home, settings=home.settings.having(SENDS_TO, hosts))


def hold(
    home: Home,
    setting: str,
    use: Use = Use.BACKGROUND,
    tokens: int = _PASSAGE_TOKENS,
    spending: Spending | None = None,
) -> EmbedderHeldError | None:
    """Return an error that says why text must not be sent to a model now, or ``None``.

    Raises EmbedderUnavailableError.
    """
    if use is Use.ASKED:
        return None
    cost = place_of(home.settings, setting).cost(tokens)
    refusal = wants_yes(home.settings, setting)
    return refusal or (
        _budget_refusal(home, setting, use, cost, spending or home.spending) if cost != 0 else None
    )


def _budget_refusal(
    home: Home, setting: str, use: Use, cost: int | None, spending: Spending
) -> EmbedderHeldError | None:
    """Return an error if a call exceeds a budget or has no price."""
    if cost is None:
        why = unpriced(setting)
        return EmbedderHeldError(why.message, hint=why.hint, reason="no price")
    for limit in budgets(home.settings, spending, home.today()):
        room = limit.most if use is Use.QUESTION else limit.most - limit.most // _QUESTION_SHARE
        error = over_budget((replace(limit, most=room),), cost, "vectors")
        if error:
            return EmbedderHeldError(
                error.message, hint=error.hint, reason="budget", for_less=limit.spent < room
            )
    return None


def as_requested(embedder: Embedder) -> Embedder:
    """Return the model without checks of consent and budget, for a user's explicit request.

    The user must have seen the host and the price.
    """
    return embedder.as_requested() if isinstance(embedder, Guarded) else embedder


class Guarded:
    """A remote model. Raises EmbedderHeldError for text that must not be sent.

    Implements RemoteEmbedder.
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
        """Number of vector components, or 0 if not known yet."""
        return self._embedder.dimensions

    @property
    def tokens(self) -> int:
        """Number of tokens that the provider has counted so far."""
        return self._embedder.tokens

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, as rows of a float32 matrix (texts, dimensions).

        Raises EmbedderUnavailableError.
        """
        if texts and (
            refusal := hold(self._home, self._setting, self._use, self._embedder.size_of(texts))
        ):
            raise refusal
        with contextlib.closing(_Ledger(self._home, self._setting, self._use)) as ledger:
            return self._embedder.counted_by(ledger).embed(texts)

    def within(self, seconds: float, *, question: bool = False) -> Guarded:
        """Return the model with a time limit.

        ``question`` is True if the texts are search queries.
        """
        other = self._embedder.within(seconds, question=question)
        assert isinstance(other, CountedEmbedder)  # noqa: S101 - same class as self._embedder
        is_recalled = question and self._use is Use.BACKGROUND
        return Guarded(self._home, self._setting, other, Use.QUESTION if is_recalled else self._use)

    def as_requested(self) -> Guarded:
        """Return a copy for an explicit request; see :func:`as_requested`."""
        return Guarded(self._home, self._setting, self._embedder, Use.ASKED)

    def close(self) -> None:
        self._embedder.close()


class _Ledger:
    """Records calls in the ledger of model calls. Implements nacre.llm.embeddings.Meter."""

    def __init__(self, home: Home, setting: str, use: Use) -> None:
        self._home = home
        self._setting = setting
        self._use = use
        self._place = place_of(home.settings, setting)
        self._connection = OwnConnection(home)
        self._books = HomeBooks(home, self._connection, background=use is Use.BACKGROUND)

    def begin(self, tokens: int) -> Call:
        """Begin a call with about ``tokens`` tokens. Reserve its cost if it is background work.

        Raises EmbedderUnavailableError.
        """
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
            with self._writing() as spending:
                refusal = hold(self._home, self._setting, self._use, tokens, spending)
                if refusal is None:
                    spending.add(call)
            if refusal:
                raise refusal
        return call

    def end(self, call: Call, tokens: int, seconds: float, *, failed: bool = False) -> None:
        """Record the end of a call. The provider might charge for a failed call, too."""
        ended = replace(
            call,
            tokens=Tokens(tokens),
            cost=self._place.cost(tokens),
            seconds=seconds,
            outcome="failed" if failed else "done",
        )
        self._books.end(ended)

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Spending]:
        try:
            with self._connection.writing() as spending:
                yield spending
        except EmbedderUnavailableError:
            raise
        except NacreError as error:
            raise EmbedderUnavailableError(
                f"calls to {self._setting} cannot be recorded: {error.message}", hint=error.hint
            ) from error


# -- Embedding models of a home ------------------------------------------------


def configured_embedder(home: Home) -> Embedder:
    """Return the configured embedding model, loaded on first use. Raises EmbedderUnavailableError."""
    return embedder_of(home, home.settings.text("embedding.model"))


def embedder_in_use(home: Home) -> Embedder:
    """Return the model that made the stored vectors.

    If there are none, return the configured model. Raises EmbedderUnavailableError.
    """
    return embedder_of(home, home.vectors.setting() or home.settings.text("embedding.model"))


def embedder_of(home: Home, name: str) -> Embedder:
    """Return an embedding model. Remote models check consent and budgets before each call.

    Raises EmbedderUnavailableError.
    """
    embedder = home.load_once(name)
    if not isinstance(embedder, CountedEmbedder):
        return embedder

    return Guarded(home, name, embedder)
