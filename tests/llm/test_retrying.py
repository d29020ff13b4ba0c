"""A model that does not answer now is asked again, politely and within its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from nacre.errors import ModelRefused, ModelUnavailable
from nacre.llm.registry import open_model
from nacre.llm.retry import Pace, RetryingModel
from nacre.settings import load_settings
from tests.fakes.model import ScriptedModel
from tests.fakes.provider import FakeProvider, Reply
from tests.llm.conftest import PROMPT

BUSY = ModelUnavailable("busy")
PART = {"word": "hull"}


class Time:
    """Passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def now(self) -> float:
        return sum(self.waits)


def patient(model: ScriptedModel, time: Time, draw: Callable[[], float] = lambda: 1.0) -> RetryingModel:
    return RetryingModel(model, sleep=time.sleep, now=time.now, draw=draw)


def test_waits_double_up_to_a_bound_and_are_drawn_below_it() -> None:
    time, model = Time(), ScriptedModel([BUSY, BUSY, BUSY, BUSY, PART])
    assert patient(model, time).complete(PROMPT).text == '{"word": "hull"}'
    assert time.waits == [2, 4, 8, 16]
    halved, model = Time(), ScriptedModel([BUSY, BUSY, PART])
    patient(model, halved, lambda: 0.5).complete(PROMPT)
    assert halved.waits == [1, 2]


def test_after_five_tries_it_is_what_the_last_said() -> None:
    model = ScriptedModel([BUSY], repeats=True)
    with pytest.raises(ModelUnavailable, match="busy"):
        patient(model, Time()).complete(PROMPT)
    assert len(model.prompts) == 5


def test_what_the_provider_asks_to_wait_is_waited() -> None:
    time, model = Time(), ScriptedModel([ModelUnavailable("busy", after_seconds=7), PART])
    patient(model, time).complete(PROMPT)
    assert time.waits == [7]


def test_a_wait_of_minutes_is_not_begun() -> None:
    time, model = Time(), ScriptedModel([ModelUnavailable("busy", after_seconds=600)], repeats=True)
    with pytest.raises(ModelUnavailable):
        patient(model, time).complete(PROMPT)
    assert time.waits == []


def test_all_tries_together_stay_within_the_prompts_time() -> None:
    time, model = Time(), ScriptedModel([BUSY], repeats=True)
    with pytest.raises(ModelUnavailable):
        patient(model, time).complete(replace(PROMPT, timeout_seconds=7))
    assert time.waits == [2, 4]
    assert [round(prompt.timeout_seconds) for prompt in model.prompts] == [7, 5, 1]


@pytest.mark.parametrize("error", [ModelRefused("no"), ModelUnavailable("no", retry=False)])
def test_what_does_not_get_better_is_not_tried_again(error: Exception) -> None:
    model = ScriptedModel([error])
    with pytest.raises(type(error)):
        patient(model, Time()).complete(PROMPT)
    assert len(model.prompts) == 1


def test_a_model_that_is_closed_waits_no_longer() -> None:
    model = ScriptedModel([BUSY], repeats=True)
    closing = RetryingModel(model, draw=lambda: 1.0, pace=Pace(first_seconds=60, most_seconds=60))
    closing.close()
    with pytest.raises(ModelUnavailable):
        closing.complete(PROMPT)
    assert len(model.prompts) == 1


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_each_status_that_passes_is_asked_again_over_the_wire(tmp_path: object, status: int) -> None:
    later = {"retry-after-ms": "1"}
    with FakeProvider([Reply(status=status, headers=later), PART]) as provider:
        home = f"{tmp_path}"
        settings = load_settings(home, {"HOME": home})
        own = {"fake": {"base_url": f"{provider.url}/v1"}}
        values = {**settings.values, "models.providers": replace(settings.values["models.providers"], value=own)}
        model = open_model(replace(settings, values=values), "fake:m")
        assert model.complete(PROMPT).text == '{"word":"hull"}'
        assert len(provider.calls) == 2
        model.close()
