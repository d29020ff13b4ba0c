"""Consent and budgets for text sent to embedding providers.

Text is sent only to hosts in ``embedding.sends_to``, which the owner approves with ``nacre
embedding`` or ``nacre writer embedding --resume``. Budgets limit embedding that the user did not
explicitly request. Each such call first reserves its maximum cost. Questions are also limited, but
their cost is first recorded in a file, because recall does not write to the database.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace

from nacre.errors import (
    BudgetSpentError,
    EmbedderHeldError,
    EmbedderUnavailableError,
    InvalidSettingsError,
    ModelUnavailableError,
    NacreError,
)
from nacre.home.home import Home
from nacre.home.spending import Ledger, daily_budget, over_budget, unpriced
from nacre.known_settings import VECTORS
from nacre.llm import embeddings
from nacre.protocols import CountedEmbedder, Embedder
from nacre.settings import Settings, write_setting
from nacre.store.journal import Spending
from nacre.values.models import Call, Place, Tokens

SENDS_TO = "embedding.sends_to"
_LOCAL_SETTINGS = ("minilm", "none")
_QUESTION_SHARE = 100
"""The budget divided by this number is reserved for questions."""

_PASSAGE_TOKENS = 300
"""Approximate number of tokens in a passage."""


def place_of(settings: Settings, setting: str) -> Place:
    """Return the host to which a model's input is sent. Raises EmbedderUnavailableError."""
    return Place() if setting in _LOCAL_SETTINGS else embeddings.place_at(settings, setting)


def missing_consent(settings: Settings, setting: str) -> EmbedderHeldError | None:
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


def consent_notice(settings: Settings, setting: str) -> str | None:
    """Return what a user who selects a remote model must know. Raises EmbedderUnavailableError."""
    if error := missing_consent(settings, setting):
        return f"{error.message}: {error.hint}"
    place = place_of(settings, setting)
    if place.is_local:
        return None
    return (
        f"{setting} sends texts to {place.host} within the budget; to send all now, use "
        "nacre writer embedding --resume (with --estimate, it only shows the number)"
    )


def grant_consent(home: Home, setting: str) -> Home:
    """Store the user's consent to send text to a model's host, and return the updated home.

    Raises InvalidSettingsError if an environment variable sets the consents, or
    EmbedderUnavailableError.
    """
    if missing_consent(home.settings, setting) is None:
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


def refusal(
    home: Home,
    setting: str,
    tokens: int = _PASSAGE_TOKENS,
    spending: Spending | None = None,
    *,
    is_question: bool = False,
) -> EmbedderHeldError | None:
    """Return an error if consent or budget forbids sending text to a model now, or else ``None``.

    Raises EmbedderUnavailableError.
    """
    if error := missing_consent(home.settings, setting):
        return error
    cost = place_of(home.settings, setting).cost(tokens)
    if cost == 0:
        return None
    limit = daily_budget(home, spending)
    if not is_question:
        limit = replace(limit, most=limit.most - limit.most // _QUESTION_SHARE)
    problem = unpriced(setting) if cost is None else over_budget(limit, cost, "vectors")
    if problem is None:
        return None
    reason = "no price" if cost is None else "budget"
    return EmbedderHeldError(problem.message, hint=problem.hint, reason=reason)


class SpendingMeter:
    """A meter that checks and records an embedding model's calls."""

    def __init__(self, home: Home, setting: str, *, is_requested: bool) -> None:
        self._home = home
        self._setting = setting
        self._is_requested = is_requested

    def check(self, tokens: int, *, is_question: bool) -> None:
        """Raise EmbedderHeldError if that many tokens must not be sent now."""
        if self._is_requested:
            return
        if error := refusal(self._home, self._setting, tokens, is_question=is_question):
            raise error

    @contextlib.contextmanager
    def count(self, tokens: int, *, is_question: bool) -> Iterator[embeddings.Usage]:
        """Record a call of about ``tokens`` tokens, even a failed one, which may be charged, too.

        Raises EmbedderUnavailableError.
        """
        home, setting = self._home, self._setting
        place, usage = place_of(home.settings, setting), embeddings.Usage(tokens)
        call = Call(
            home.ids(),
            home.clock(),
            home.today(),
            VECTORS,
            setting,
            not self._is_requested,
            Tokens(tokens),
            place.cost(tokens),
        )
        is_reserved = not (self._is_requested or is_question)
        with contextlib.closing(Ledger(home, background=is_reserved)) as ledger:
            try:
                ledger.reserve(call, lambda spending: refusal(home, setting, tokens, spending))
            except BudgetSpentError as error:
                raise EmbedderUnavailableError(error.message, hint=error.hint) from error
            began = time.monotonic()
            outcome = "done"
            try:
                yield usage
            except NacreError as error:
                outcome = "failed"
                if not (isinstance(error, ModelUnavailableError) and error.may_cost):
                    usage.tokens = 0
                raise
            finally:
                ledger.end(
                    replace(
                        call,
                        tokens=Tokens(usage.tokens),
                        cost=place.cost(usage.tokens),
                        seconds=time.monotonic() - began,
                        outcome=outcome,
                    )
                )


# -- Embedding models of a home ------------------------------------------------


def configured_embedder(home: Home, *, is_requested: bool = False) -> Embedder:
    """Return the embedding model in the settings; see :func:`embedder_of`."""
    return embedder_of(home, home.settings.text("embedding.model"), is_requested=is_requested)


def embedder_in_use(home: Home) -> Embedder:
    """Return the model that computed the stored vectors or, without vectors, the configured one.

    Raises EmbedderUnavailableError.
    """
    return embedder_of(home, home.vectors.setting() or home.settings.text("embedding.model"))


def embedder_of(home: Home, name: str, *, is_requested: bool = False) -> Embedder:
    """Return an embedding model, which is loaded on first use. Raises EmbedderUnavailableError.

    Unless ``is_requested`` is True, consent and budgets are checked before each remote call.
    """
    embedder = home.load_once(name)
    if not isinstance(embedder, CountedEmbedder):
        return embedder
    return embedder.counted_by(SpendingMeter(home, name, is_requested=is_requested))
