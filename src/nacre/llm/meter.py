"""A model whose calls are counted, and asked for first where a budget holds them."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from math import ceil
from typing import Protocol

import msgspec

from nacre.errors import ModelDeclined, ModelUnavailable, NacreError
from nacre.protocols import LanguageModel
from nacre.text.passages import count_tokens
from nacre.values.model_calls import MILLION, Capabilities, Completion, Prompt, Tokens, most_written
from nacre.values.spending import DOLLAR, Call

_LEAST_BYTES = 2
"""Of a token: prose has four and more, code about three, what looks like noise less."""


class Books(Protocol):
    """Where calls are counted. Costs are millionths of a US dollar."""

    def begin(self, model: str, prompt: Prompt, most: int | None) -> Call:
        """A call that may cost so much at most, ``None`` where nobody knows. Raises BudgetSpent, ModelUnavailable."""

    def end(self, call: Call, tokens: Tokens, cost: int | None, seconds: float) -> None:
        """It was answered."""

    def fail(self, call: Call, tokens: Tokens, cost: int | None, seconds: float, error: NacreError) -> None:
        """It was not; tokens and cost are what that may have taken."""

    def leave(self, call: Call, tokens: Tokens, cost: int | None, seconds: float) -> None:
        """It was broken off on this side, as above: what the provider makes of that nobody hears."""

    def close(self) -> None:
        """Let go of what is open."""


class Metered:
    """Another model, whose calls are written into books; implements LanguageModel.

    What a provider's library asks again by itself is one call.
    """

    def __init__(self, model: LanguageModel, books: Books, now: Callable[[], float] = time.perf_counter) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._books = books
        self._now = now
        self._is_closed = False

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises, and BudgetSpent."""
        call = self._books.begin(self.name, prompt, most_of(prompt, self.capabilities))
        began = self._now()
        try:
            completion = self._model.complete(prompt)
        except BaseException as error:
            tokens, cost = of_failed(prompt, error, self.capabilities)
            seconds = self._now() - began
            if isinstance(error, NacreError) and not self._is_closed:
                self._books.fail(call, tokens, as_counted(cost), seconds, error)
            else:
                self._books.leave(call, tokens, as_counted(cost), seconds)
            raise
        self._books.end(
            call, completion.tokens, as_counted(cost_of(completion, self.capabilities)), self._now() - began
        )
        return completion

    def close(self) -> None:
        """Cut off the calls that run: what they may have cost stays in the books."""
        self._is_closed = True
        self._model.close()
        self._books.close()


def cost_of(completion: Completion, able: Capabilities) -> Decimal | None:
    """What an answer cost, in US dollars: by its tokens, else by what the provider says; ``None`` if nobody knows."""
    if completion.is_repeated:
        return Decimal(0)
    if able.price:
        return completion.tokens.cost(able.price)
    told = completion.more.get("cost_usd")
    return Decimal(str(told)) if isinstance(told, int | float) else None


def of_failed(prompt: Prompt, error: BaseException, able: Capabilities) -> tuple[Tokens, Decimal | None]:
    """What a call that failed may have taken: as many tokens as were sent, by estimate, and their price in US dollars.

    Nothing where the provider said no, or was not reached.
    """
    is_free = isinstance(error, NacreError) and not isinstance(error, ModelDeclined)
    if isinstance(error, ModelUnavailable):
        is_free = not error.may_cost
    if is_free:
        return Tokens(), Decimal(0)
    tokens = Tokens(input=tokens_of(prompt))
    return tokens, tokens.cost(able.price) if able.price else None


def most_of(prompt: Prompt, able: Capabilities) -> int | None:
    """What a prompt may cost at most: all it may be answered, nothing from a cache, two bytes a token, which few texts
    need. ``None`` without a price."""
    if able.price is None:
        return None
    asked = sum(-(-len(text.encode("utf-8", "replace")) // _LEAST_BYTES) for text in _texts(prompt))
    dearest = max(able.price.input, able.price.written)
    return as_counted((asked * dearest + most_written(prompt, able) * able.price.output) / MILLION)


def tokens_of(prompt: Prompt) -> int:
    """About how many tokens a prompt has, its schema counted."""
    return sum(map(count_tokens, _texts(prompt)))


def _texts(prompt: Prompt) -> tuple[str, ...]:
    return prompt.system, prompt.shared, prompt.text, msgspec.json.encode(prompt.answer).decode()


def as_counted(dollars: Decimal | None) -> int | None:
    """US dollars in millionths, rounded up."""
    return None if dollars is None else ceil(dollars * DOLLAR)
