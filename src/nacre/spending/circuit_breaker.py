"""A model that fails again and again is left alone in the background for a while."""

from __future__ import annotations

import contextlib
from datetime import timedelta

from nacre.errors import ModelLeftAlone, ModelRefused, ModelUnavailable, NacreError
from nacre.home.home import Home
from nacre.protocols import LanguageModel
from nacre.spending.budget import OwnConnection, today
from nacre.values.model_calls import Completion, Prompt
from nacre.values.spending import Health

FAILURES = 3
"""So many in a row, and a model is left alone."""

_FIRST_PAUSE = timedelta(minutes=5)
_LONGEST_PAUSE = timedelta(hours=6)
_TOLD_CHARACTERS = 300
_MOST_DOUBLINGS = 10


class CircuitBreaker:
    """Another model, which is not asked for a while after some failures in a row; implements LanguageModel.

    It stands around what asks again: a failure is a prompt that was not answered after all tries.
    """

    def __init__(self, model: LanguageModel, home: Home, connection: OwnConnection) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._home = home
        self._connection = connection
        self._is_closed = False

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises, and ModelLeftAlone."""
        self._refuse_if_failing(prompt)
        try:
            return self._model.complete(prompt)
        except NacreError as error:
            if _is_of_the_model(error) and not self._is_closed:
                self._note(error)
            raise

    def close(self) -> None:
        """Close the model."""
        self._is_closed = True
        self._model.close()

    def _refuse_if_failing(self, prompt: Prompt) -> None:
        health = None
        with contextlib.suppress(NacreError), self._connection.reading() as spending:
            health = spending.health(self.name)
        if health is None or health.failures < FAILURES or health.until <= self._home.clock():
            return
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.refuse(today(self._home), prompt.task.value, self.name, "failing")
        raise ModelLeftAlone(
            f"{self.name} failed {health.failures} times in a row ({health.told})",
            hint=f"it is asked again after {health.until.astimezone():%H:%M}; once that is mended, at once after: "
            f"nacre models test {self.name}",
            retry=False, may_cost=False,
        )  # fmt: skip

    def _note(self, error: NacreError) -> None:
        with contextlib.suppress(NacreError), self._connection.writing() as spending:
            spending.fail(self._after(spending.health(self.name), error))

    def _after(self, health: Health | None, error: NacreError) -> Health:
        failures = (health.failures if health else 0) + 1
        now = self._home.clock()
        remedy = f"; {error.hint}" if error.hint and isinstance(error, ModelRefused) else ""
        told = self._home.redactor.clean(f"{error.message[: _TOLD_CHARACTERS - len(remedy)]}{remedy}")
        if failures < FAILURES:
            return Health(self.name, failures, now, told)
        pause = _FIRST_PAUSE * 2 ** min(failures - FAILURES, _MOST_DOUBLINGS)
        asked = timedelta(seconds=(error.after_seconds or 0) if isinstance(error, ModelUnavailable) else 0)
        until = now + max(min(pause, _LONGEST_PAUSE), min(asked, _LONGEST_PAUSE))
        return Health(self.name, failures, until, told)


def _is_of_the_model(error: NacreError) -> bool:
    """Whether an error says that the next call is likely to fail, too: a prompt that is too long does not."""
    return isinstance(error, ModelUnavailable) or type(error) is ModelRefused
