"""Real models of each provider with a key in the environment follow the protocol and answer well."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nacre.errors import ModelRefusedError
from nacre.llm.failures import ask, schema_of
from nacre.llm.providers import RecordingModel, ReplayingModel, open_model
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.settings import load_settings
from nacre.values.models import Prompt
from nacre.values.session import Task
from tests.llm.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.live

CHEAP = {
    "anthropic": "claude-haiku-4-5",
    "openai": "gpt-5-mini",
    "gemini": "gemini-2.5-flash",
    "groq": "llama-3.3-70b-versatile",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-small-latest",
}
"""A cheap model of each provider. If ``NACRE_LIVE_MODEL`` is set, only that model is called."""

KEYS = {name: f"{name.upper()}_API_KEY" for name in CHEAP}
NAMES = (
    [os.environ["NACRE_LIVE_MODEL"]]
    if os.environ.get("NACRE_LIVE_MODEL")
    else [f"{name}:{model}" for name, model in CHEAP.items() if os.environ.get(KEYS[name])]
)
ENVIRON = dict(os.environ)


@pytest.fixture(params=NAMES or ["none"])
def live_model(request: pytest.FixtureRequest) -> Iterator[LanguageModel]:
    """A real model of each provider, skipped if there is no key."""
    if request.param == "none":
        pytest.skip(
            f"no key: set one of {', '.join(KEYS.values())}, or NACRE_LIVE_MODEL=provider:model"
        )
    model = open_model(
        load_settings(environ={**ENVIRON, "HOME": os.environ["HOME"]}), request.param
    )
    yield model
    model.close()


class Metal(msgspec.Struct, forbid_unknown_fields=True):
    metal: str
    symbol: str


PROMPT = Prompt(
    Task.TEST,
    "You answer questions on chemistry.",
    "Which metal is liquid at room temperature?",
    schema_of(Metal),
    name="metal",
    version="test/live",
)


def test_real_model_answers_in_the_schema_and_counts_tokens(live_model: LanguageModel) -> None:
    answer = ask(live_model, PROMPT, Metal)
    assert (answer.metal.lower(), answer.symbol) == ("mercury", "Hg")
    completion = live_model.complete(PROMPT)
    assert completion.tokens.input + completion.tokens.cached + completion.tokens.written > 10
    assert completion.tokens.output > 0


def test_real_answer_can_be_replayed(live_model: LanguageModel, tmp_path: Path) -> None:
    completion = RecordingModel(live_model, tmp_path, Redactor().clean).complete(PROMPT)
    assert ReplayingModel(tmp_path).complete(PROMPT).text == completion.text


def test_real_provider_refuses_an_unknown_model(live_model: LanguageModel) -> None:
    provider = live_model.name.partition(":")[0]
    wrong = open_model(load_settings(environ=ENVIRON), f"{provider}:there-is-no-such-model")
    with closing(wrong), pytest.raises(ModelRefusedError, match="there-is-no-such-model"):
        wrong.complete(replace(PROMPT, timeout_seconds=30))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_real_model_completes_the_scenario(
    scenario: Scenario, live_model: LanguageModel, tmp_path: Path
) -> None:
    assert scenario.run(live_model, tmp_path)
