"""A model's answer is accepted only in the requested shape."""

from __future__ import annotations

import msgspec
import pytest

from nacre.errors import UnusableAnswerError
from nacre.llm.failures import ask, schema_of
from nacre.values.models import Prompt
from nacre.values.session import Task
from tests.fakes.model import ScriptedModel


class Part(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    parts: list[Part]


PROMPT = Prompt(Task.TEST, "You name parts.", "Which parts?", schema_of(Whole))


def test_answer_in_a_code_fence_is_read() -> None:
    model = ScriptedModel(['```json\n{"parts": [{"name": "hull"}]}\n```'])
    assert ask(model, PROMPT, Whole) == Whole([Part("hull")])


def test_answer_with_a_wrong_shape_is_retried_with_errors() -> None:
    model = ScriptedModel([{"parts": [{"title": "hull"}]}, Whole([Part("hull")])])
    assert ask(model, PROMPT, Whole) == Whole([Part("hull")])
    assert model.name not in model.prompts[1].text
    assert "it does not have the requested form: " in model.prompts[1].text
    assert "title" in model.prompts[1].text
    assert "Which parts?" in model.prompts[1].text


def test_answer_with_a_wrong_shape_twice_is_rejected() -> None:
    model = ScriptedModel(["no", "no"])
    with pytest.raises(UnusableAnswerError, match="not have the requested form"):
        ask(model, PROMPT, Whole)
    assert len(model.prompts) == 2


def test_answer_failing_a_custom_check_is_retried() -> None:
    def check(whole: Whole) -> None:
        if not whole.parts:
            raise UnusableAnswerError("there are no parts")

    model = ScriptedModel([Whole([]), Whole([Part("hull")])])
    assert ask(model, PROMPT, Whole, check) == Whole([Part("hull")])
    assert "there are no parts" in model.prompts[1].text


def test_answer_errors_name_the_model() -> None:
    with pytest.raises(UnusableAnswerError, match="the answer of boats:small"):
        ask(ScriptedModel(["no", "no"], name="boats:small"), PROMPT, Whole)


def test_schema_root_is_a_closed_object() -> None:
    schema = schema_of(Whole)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["parts"]
    assert "Part" in schema["$defs"]
