"""Ask a model for an answer of a shape, and take no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from nacre.errors import AnswerUnusable
from nacre.platform import json_values
from nacre.protocols import LanguageModel
from nacre.values.model_calls import Completion, Prompt

A = TypeVar("A", bound=msgspec.Struct)

_FENCE = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_SHOWN_CHARACTERS = 4_000
_OTHERWISE = "choose another model: nacre setup; or say what this one can do, in models.capabilities (docs/models.md)"

REPAIR = "\n\nYou answered:\n"
"""What stands between a prompt and the answer that is sent back with it."""


def schema_of(answer: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a type, its root an object. Strict providers want each field required: give no defaults."""
    whole = msgspec.json.schema(answer)
    definitions = whole.get("$defs", {})
    name = str(whole["$ref"]).rpartition("/")[2] if "$ref" in whole else ""
    root = dict(definitions.pop(name)) if name else whole
    return {**root, "$defs": definitions} if definitions else root


def ask(model: LanguageModel, prompt: Prompt, answer: type[A], check: Callable[[A], object] | None = None) -> A:
    """A model's answer to a prompt, of the type its schema was made from.

    An answer of another shape, or for which ``check`` raises AnswerUnusable, is sent back once, with what is wrong.
    Raises AnswerUnusable, and what :meth:`LanguageModel.complete` raises.
    """
    completion = model.complete(prompt)
    try:
        return _checked(read(completion, answer, model.name), check)
    except AnswerUnusable as error:
        if completion.is_cut:
            raise
        wrong = error.message.replace(_answer_of(model.name), "it")
    again = replace(prompt, text=_repair(prompt, completion, wrong))
    return _checked(read(model.complete(again), answer, model.name), check)


def _checked(found: A, check: Callable[[A], object] | None) -> A:
    if check:
        check(found)
    return found


def read(completion: Completion, answer: type[A], model: str) -> A:
    """The answer in the completion of a model, out of its code fence if it has one. Raises AnswerUnusable."""
    text = completion.text.strip()
    fenced = _FENCE.match(text)
    try:
        return json_values.parse(fenced[1] if fenced else text, answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise AnswerUnusable(f"{_answer_of(model)} {_wrong(completion, error)}", hint=_OTHERWISE) from error


def _answer_of(model: str) -> str:
    return f"the answer of {model}"


def _wrong(completion: Completion, error: Exception) -> str:
    if completion.is_cut:
        return "was cut off: it ran out of tokens"
    told = error if isinstance(error, msgspec.ValidationError) else "it is no JSON"
    return f"is not of the shape asked for: {told}"


def _repair(prompt: Prompt, completion: Completion, wrong: str) -> str:
    said = completion.text[:_SHOWN_CHARACTERS]
    return (
        f"{prompt.text}{REPAIR}{said}\n\nThat cannot be used: {wrong}. "
        "Answer again, with JSON of the schema and nothing else."
    )
