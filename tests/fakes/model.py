"""A language model with scripted answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import msgspec

from nacre.values.models import Capabilities, Completion, Price, Prompt, Tokens

_ABLE = Capabilities(window=200_000, output=16_000, answers="schema", known=True)

Answer = msgspec.Struct | dict[str, Any] | str | Exception | Callable[[Prompt], Any]


class ScriptedModel:
    """Answer prompts from a script in order, or by a function of the prompt; implements LanguageModel.

    An answer is an object or a dictionary, returned as JSON; text, returned unchanged; an exception, which is raised;
    or a function that returns one of these. At the end of the script its last answer repeats if ``repeats``, else the
    test fails. Prompts are in ``prompts``. Prompts that check statements are in ``compared``; the answer is
    ``finding``, with its ``wrong`` parts, for each statement. ``over`` answers prompts about memories that a session
    makes outdated. Four characters count as a token; calls are free unless ``capabilities`` have a price.
    """

    def __init__(
        self,
        answers: Iterable[Answer] | Callable[[Prompt], Any],
        *,
        name: str = "scripted:1",
        capabilities: Capabilities = _ABLE,
        repeats: bool = False,
        finding: str = "holds",
        wrong: Sequence[str] = (),
        over: Callable[[Prompt], Any] = lambda _: [],
    ) -> None:
        self.name = name
        self.capabilities = (
            capabilities if capabilities.price else replace(capabilities, price=Price())
        )
        self.prompts: list[Prompt] = []
        self.compared: list[Prompt] = []
        self.is_closed = False
        self._answers = [answers] if callable(answers) else list(answers)
        self._repeats = repeats or callable(answers)
        self._verdict = {"finding": finding, "wrong": list(wrong)}
        self._over = over
        self._lock = Lock()

    def complete(self, prompt: Prompt) -> Completion:
        """Return the next answer."""
        if prompt.name == "verdicts":
            return self._compare(prompt)
        if prompt.name == "turns":
            numbers = re.findall(r"^\[m(\d+)\]\[owner", prompt.text, re.MULTILINE)
            return self._completed(prompt, {"turns": list(map(int, dict.fromkeys(numbers)))})
        with self._lock:
            number = len(self.prompts)
            self.prompts.append(prompt)
        if number >= len(self._answers) and not self._repeats:
            raise AssertionError(f"the scripted model has no answer to: {prompt.text[:500]}")
        answer: Any = self._answers[min(number, len(self._answers) - 1)]
        if callable(answer) and not isinstance(answer, type):
            answer = answer(prompt)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, dict) and "memories" in answer:
            answer = {"over": self._over(prompt), **answer}
        return self._completed(prompt, answer)

    def _completed(self, prompt: Prompt, answer: Any) -> Completion:
        text = answer if isinstance(answer, str) else _as_json(answer)
        size = len(prompt.system) + len(prompt.shared) + len(prompt.text)
        return Completion(text, Tokens(size // 4, len(text) // 4), self.name)

    def _compare(self, prompt: Prompt) -> Completion:
        """Return the same finding for every statement, with the line that shares most words as evidence."""
        self.compared.append(prompt)
        turns = dict(
            re.findall(
                r"^\[(m\d+)\]\[[^\]]*\]((?:.*\n(?!\[m\d|\(|</))*.*)", prompt.text, re.MULTILINE
            )
        )
        verdicts = []
        for number, statement, cited in re.findall(
            r"^(\d+)\. \[\w+\] (.*) \(evidence: ([^)]*)\)$", prompt.text, re.MULTILINE
        ):
            words = set(re.findall(r"\w+", statement.lower()))
            lines = [
                line for turn in cited.split(", ") for line in turns.get(turn, "").splitlines()
            ] or [""]
            support = max(
                lines, key=lambda line: len(words & set(re.findall(r"\w+", line.lower())))
            )
            verdicts.append({"number": int(number), "support": support.strip(), **self._verdict})
        text = _as_json({"verdicts": verdicts})
        return Completion(text, Tokens(len(prompt.text) // 4, len(text) // 4), self.name)

    def close(self) -> None:
        """Do nothing."""
        self.is_closed = True


def _as_json(answer: Any) -> str:
    return (
        msgspec.json.encode(answer).decode()
        if isinstance(answer, msgspec.Struct)
        else json.dumps(answer)
    )
