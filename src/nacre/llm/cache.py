"""A model that is not asked the same twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Protocol

from nacre.llm.answers import REPAIR
from nacre.protocols import LanguageModel
from nacre.values.model_calls import Completion, Prompt, Task, Tokens

MOST_CHARACTERS = 200_000
"""Of an answer that is kept."""


class Answers(Protocol):
    """Where answers are kept, by a key."""

    def find(self, key: str) -> str | None:
        """The answer that is kept."""

    def keep(self, key: str, model: str, answer: str) -> None:
        """Keep an answer, if that is allowed."""

    def drop(self, key: str) -> None:
        """Keep it no longer."""


class Cached:
    """Another model; a prompt that it answered lately is answered from what was kept. Implements LanguageModel.

    The same is asked where model, version, schema and every text are the same. What was cut off, or too long, is not
    kept; nor is what had to be mended: then the answer before it goes, too. Trials of a model (Task.TEST) reach it
    always, and so do conversations (Task.CHAT), where the same may be asked again and be answered anew.
    """

    def __init__(self, model: LanguageModel, answers: Answers) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._answers = answers

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises."""
        if prompt.task in (Task.TEST, Task.CHAT):
            return self._model.complete(prompt)
        before, repair, _ = prompt.text.rpartition(REPAIR)
        if repair:
            self._answers.drop(key_of(self.name, replace(prompt, text=before)))
            return self._model.complete(prompt)
        key = key_of(self.name, prompt)
        kept = self._answers.find(key)
        if kept is not None:
            return Completion(kept, Tokens(), self.name, is_repeated=True)
        completion = self._model.complete(prompt)
        if not completion.is_cut and len(completion.text) <= MOST_CHARACTERS:
            self._answers.keep(key, self.name, completion.text)
        return completion

    def close(self) -> None:
        """Close the model."""
        self._model.close()


def key_of(model: str, prompt: Prompt) -> str:
    """A hash of all that decides an answer."""
    asked = (
        model, prompt.task.value, prompt.version, prompt.name, prompt.system, prompt.shared, prompt.text,
        prompt.answer, prompt.output_tokens,
    )  # fmt: skip
    return hashlib.blake2b(json.dumps(asked, sort_keys=True, default=dict).encode(), digest_size=20).hexdigest()
