"""A model that is asked again when it does not answer now."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

from nacre.errors import ModelUnavailable
from nacre.protocols import LanguageModel
from nacre.values.model_calls import TIMEOUT_SECONDS, Capabilities, Completion, Prompt, Task

Sleep = Callable[[float], object]


@dataclass(frozen=True, slots=True)
class Setback:
    """A failed attempt that is repeated: attempt number and total, seconds it took, seconds until the next."""

    number: int
    tries: int
    error: ModelUnavailable
    seconds: float
    wait: float


Hear = Callable[[Prompt, Setback], object]
"""Is told of each try that failed, before the wait for the next one."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and when a model is asked again.

    The wait before try n + 1 is drawn evenly from 0 to ``first_seconds`` · 2^(n - 1), at most ``most_seconds``
    ("full jitter"). What the provider asks to wait counts instead, up to ``asked_seconds``; beyond it the call fails.
    """

    tries: int = 5
    first_seconds: float = 2.0
    most_seconds: float = 30.0
    asked_seconds: float = 60.0

    def wait(self, number: int, error: ModelUnavailable, draw: Callable[[], float]) -> float | None:
        """Seconds between this try, which failed, and the next one; ``None`` where there is none."""
        if not error.retry or number >= self.tries:
            return None
        if error.after_seconds is not None:
            return error.after_seconds if error.after_seconds <= self.asked_seconds else None
        longest: float = min(self.most_seconds, self.first_seconds * 2 ** (number - 1))
        return draw() * longest


class RetryingModel:
    """Asks another model again where that may help; implements LanguageModel.

    All tries and waits together stay within the prompt's time; ``seconds``, where it is given, replaces the default
    time of prompts and bounds that of all but conversations. Once pieces of an answer were heard, nothing is tried
    again: they would be heard twice. ``sleep``, ``now`` (seconds) and ``draw`` (0 to 1) are there for tests; by
    default a wait ends as soon as the model is closed.
    """

    def __init__(
        self, model: LanguageModel, *, seconds: float | None = None, pace: Pace = Pace(), sleep: Sleep | None = None,
        now: Callable[[], float] = time.monotonic, draw: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        self.name = model.name
        self._model = model
        self._seconds = seconds
        self._pace = pace
        self._closed = Event()
        self._sleep: Sleep = sleep or self._closed.wait
        self._now = now
        self._draw = draw
        self._hears: tuple[Hear, ...] = ()

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self._model.capabilities

    @capabilities.setter
    def capabilities(self, able: Capabilities) -> None:
        self._model.capabilities = able

    def around(self, wrap: Callable[[LanguageModel], LanguageModel], hears: Sequence[Hear] = ()) -> RetryingModel:
        """The same model with each of its tries wrapped, and ``hears`` told of those that fail."""
        other = copy.copy(self)
        other._model = wrap(self._model)
        other._hears = (*self._hears, *hears)
        return other

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt, after some tries if need be. Raises ModelUnavailable, ModelRefused."""
        seconds = self._patience(prompt)
        heard: list[str] = []
        if prompt.hear:
            prompt = replace(prompt, hear=partial(_hear, heard, prompt.hear))
        end = self._now() + seconds
        for number in range(1, self._pace.tries + 1):
            began = self._now()
            try:
                return self._model.complete(replace(prompt, timeout_seconds=min(end - began, seconds)))
            except ModelUnavailable as error:
                wait = None if heard else self._wait(number, error)
                if wait is None or self._now() + wait >= end:
                    raise
                self._tell(prompt, Setback(number, self._pace.tries, error, self._now() - began, wait))
                self._sleep(wait)
                if self._closed.is_set():
                    raise
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Cut off the calls that run, and the waits between them."""
        self._closed.set()
        self._model.close()

    def _patience(self, prompt: Prompt) -> float:
        if self._seconds is None or prompt.task is Task.CHAT:  # whose time is gateway.answer_seconds
            return prompt.timeout_seconds
        is_default = prompt.timeout_seconds == TIMEOUT_SECONDS
        return self._seconds if is_default else min(prompt.timeout_seconds, self._seconds)

    def _tell(self, prompt: Prompt, setback: Setback) -> None:
        for hear in self._hears:
            hear(prompt, setback)

    def _wait(self, number: int, error: ModelUnavailable) -> float | None:
        return None if self._closed.is_set() else self._pace.wait(number, error, self._draw)


def _hear(heard: list[str], hear: Callable[[str], None], piece: str) -> None:
    heard.append(piece)
    hear(piece)
