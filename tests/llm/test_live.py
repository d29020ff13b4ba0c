"""Real providers keep to what the fake one does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nacre.errors import ModelRefused
from nacre.llm.answers import ask, schema_of
from nacre.llm.recording import RecordingModel, ReplayingModel
from nacre.llm.registry import open_model
from nacre.model.prompting import Prompt, Task
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.settings import load_settings
from tests.live import live_model

__all__ = ["live_model"]
pytestmark = pytest.mark.live


class Metal(msgspec.Struct, forbid_unknown_fields=True):
    metal: str
    symbol: str


PROMPT = Prompt(Task.TEST, "You answer questions on chemistry.", "Which metal is liquid at room temperature?",
                schema_of(Metal), name="metal", version="test/live")  # fmt: skip


def test_a_real_model_answers_in_the_shape_and_counts_its_tokens(live_model: LanguageModel) -> None:
    answer = ask(live_model, PROMPT, Metal)
    assert (answer.metal.lower(), answer.symbol) == ("mercury", "Hg")
    completion = live_model.complete(PROMPT)
    assert completion.tokens.input + completion.tokens.cached + completion.tokens.written > 10
    assert completion.tokens.output > 0


def test_a_real_answer_can_be_played_again(live_model: LanguageModel, tmp_path: Path) -> None:
    said = RecordingModel(live_model, tmp_path, Redactor().clean).complete(PROMPT)
    assert ReplayingModel(tmp_path).complete(PROMPT).text == said.text


def test_a_real_provider_says_no_to_a_model_that_is_none(live_model: LanguageModel) -> None:
    provider = live_model.name.partition(":")[0]
    from tests.live import ENVIRON

    model = open_model(load_settings(environ=ENVIRON), f"{provider}:there-is-no-such-model")
    with pytest.raises(ModelRefused, match="there-is-no-such-model"):
        model.complete(replace(PROMPT, timeout_seconds=30))
    model.close()
