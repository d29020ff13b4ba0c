"""Cassettes: what a model answered to a prompt, kept as files, and played again without it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nacre.errors import ModelUnavailable
from nacre.platform import private_files
from nacre.protocols import LanguageModel
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens

Redact = Callable[[str], str]

_KEY_CHARACTERS = 24
_UNSAFE = re.compile(r"[^a-z0-9]+")
_ABLE = Capabilities(window=200_000, output=64_000, answers="schema", known=True)


def key_of(prompt: Prompt) -> str:
    """What tells prompts apart: all that a model is asked, and not how long it may take."""
    asked = [prompt.task, prompt.system, prompt.shared, prompt.text, prompt.name, prompt.answer]
    encoded = json.dumps(asked, sort_keys=True, ensure_ascii=False).encode("utf-8", errors="replace")
    return hashlib.sha256(encoded).hexdigest()[:_KEY_CHARACTERS]


class RecordingModel:
    """Asks another model, and keeps each answer in a file of ``folder``; implements LanguageModel.

    ``redact`` takes secrets out of everything that is written; credentials are no part of a prompt. What fails is not
    kept.
    """

    def __init__(self, model: LanguageModel, folder: Path, redact: Redact) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._folder = folder
        self._redact = redact

    def complete(self, prompt: Prompt) -> Completion:
        """The model's answer. Raises what the model raises."""
        completion = self._model.complete(prompt)
        asked = {
            "task": prompt.task.value, "version": prompt.version, "name": prompt.name, "system": prompt.system,
            "shared": prompt.shared, "text": prompt.text, "answer": dict(prompt.answer),
        }  # fmt: skip
        said = {
            "text": completion.text, "model": completion.model, "is_cut": completion.is_cut,
            "tokens": asdict(completion.tokens),
        }  # fmt: skip
        record = _without_secrets({"model": self.name, "prompt": asked, "completion": said}, self._redact)
        text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        private_files.make_folder(self._folder)
        private_files.write_file(self._folder / file_name(prompt), text)
        return completion

    def close(self) -> None:
        """Let go of the model."""
        self._model.close()


class ReplayingModel:
    """Answers from the cassettes of a folder, and asks nobody; implements LanguageModel.

    A prompt that was not recorded, or has changed since, is ModelUnavailable.
    """

    def __init__(self, folder: Path, *, name: str = "cassette:1", capabilities: Capabilities = _ABLE) -> None:
        self.name = name
        self.capabilities = capabilities
        self._folder = folder

    def complete(self, prompt: Prompt) -> Completion:
        """The answer that was kept, with the tokens it took then. Raises ModelUnavailable."""
        path = self._folder / file_name(prompt)
        try:
            said = json.loads(path.read_text(encoding="utf-8"))["completion"]
            tokens = Tokens(**said["tokens"])
            return Completion(said["text"], tokens, said["model"], said["is_cut"], is_repeated=True)
        except (OSError, ValueError, KeyError, TypeError) as error:
            told = f"no cassette in {self._folder} holds this prompt ({prompt.version or prompt.task.value})"
            raise ModelUnavailable(told, hint="make cassettes MODEL=provider:model", retry=False) from error

    def close(self) -> None:
        """Nothing is open."""


def file_name(prompt: Prompt) -> str:
    """Of the cassette that holds a prompt: its version and its key."""
    version = _UNSAFE.sub("-", (prompt.version or prompt.task.value).lower()).strip("-")
    return f"{version}-{key_of(prompt)}.json"


def _without_secrets(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _without_secrets(item, redact) for key, item in value.items()}
    return [_without_secrets(item, redact) for item in value] if isinstance(value, list) else value
