"""Who answers: the seam between conversations and agents, and the agents that are nacre's language models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Protocol

from nacre.errors import ModelRefused, ModelUnavailable
from nacre.home.home import Home
from nacre.llm.aliases import full_name
from nacre.llm.meter import cost_of
from nacre.llm.providers import provider_of
from nacre.protocols import LanguageModel
from nacre.spending.models import NONE, name_for
from nacre.spending.tracing import tracing
from nacre.spending.wrapping import wrapped
from nacre.values.gateway.message import Answer
from nacre.values.model_calls import Capabilities, Completion, Prompt, Task
from nacre.values.trace import Step, TraceKind

_WITH_TOOLS = ("claude-cli", "codex-cli")
"""Formats whose tools can be kept to what is allowed without anybody being asked."""
_WINDOWS = {"claude-cli": 200_000, "codex-cli": 200_000, "gemini-cli": 1_000_000}
"""The windows of the models that these commands have by themselves are at least so large."""
_CUT = " […]"
"""Ends an answer that ran out of tokens."""
_MODELS_SECONDS, _OWN_SECONDS = "models.timeout_seconds", "gateway.answer_seconds"


@dataclass(frozen=True, slots=True)
class Question:
    """One question: what the responder is told of itself (``system``), and everything else (``text``).

    ``tools`` are those that the owner allows in this channel, by the agent's own names; without any it has none.
    ``folder`` is where it works while it may use them. ``seconds`` is the longest time it may take.
    """

    system: str
    text: str
    tools: tuple[str, ...] = ()
    folder: Path | None = None
    seconds: float = 300.0


class Responder(Protocol):
    """Answers questions; safe to share between threads. It has no memory of others."""

    name: str
    """``provider:model``."""

    window: int
    """Tokens that it reads and writes at most."""

    def answer(self, question: Question, hear: Callable[[str], None] | None = None) -> Answer:
        """Answer in plain text. ``hear`` is given pieces of the answer as they come, where it can stream, else all of
        it in the end; another thread may call it, and it must not raise.

        Raises ModelUnavailable, ModelRefused, BudgetSpent.
        """

    def close(self) -> None:
        """Cut off answers that are being made, which raise ModelUnavailable."""


def responder_for(home: Home, model: str = "") -> Responder:
    """The responder of a channel: ``model`` (``provider:model``), else the one of ``models.chat``.

    Its answers count in the ledger as background work: the daily budgets hold them. That ``models.background`` is off
    does not: the owner asked for them. Nothing is answered from what was kept. Raises ModelRefused.
    """
    name = full_name(model) if model else name_for(home, Task.CHAT)
    if name == NONE:
        hint = "nacre config set models.chat claude-cli: (or codex-cli:, or another of nacre models)"
        raise ModelRefused("no model is set that answers in conversations", hint=hint)
    api = provider_of(home.settings, name.partition(":")[0]).api
    opened = wrapped(home, home.load_model(home.settings, name), background=True)
    return ModelResponder(home, opened, api)


class ModelResponder:
    """A language model that answers in conversations; implements Responder. ``api`` is the format of its provider."""

    def __init__(self, home: Home, model: LanguageModel, api: str) -> None:
        able = model.capabilities
        self.name = model.name
        is_told = able.known or able.window != Capabilities().window
        self.window = able.window if is_told else _WINDOWS.get(api, able.window)
        self._home = home
        self._model = model
        self._api = api

    def answer(self, question: Question, hear: Callable[[str], None] | None = None) -> Answer:
        """Answer in plain text. An answer of which pieces were heard is not tried again.

        Raises ModelUnavailable, ModelRefused, BudgetSpent.
        """
        self._check_tools(question)
        pieces = _Pieces(hear)
        prompt = Prompt(
            Task.CHAT, question.system, question.text, {}, timeout_seconds=question.seconds,
            hear=pieces.hear if hear else None, tools=question.tools, folder=question.folder,
        )  # fmt: skip
        try:
            return self._answer(prompt, pieces)
        finally:
            pieces.close()

    def close(self) -> None:
        """Cut off answers that are being made."""
        self._model.close()

    def _answer(self, prompt: Prompt, pieces: _Pieces) -> Answer:
        try:
            with tracing(self._home, TraceKind.CHAT, self.name) as run:
                completion = self._model.complete(prompt)
                for step in completion.more.get("steps", ()):
                    run.add(Step("used a tool", output=step))
        except ModelUnavailable as error:
            error.hint = (error.hint or "").replace(_MODELS_SECONDS, _OWN_SECONDS)
            raise
        if not completion.text.strip():
            raise ModelUnavailable(f"{self.name} gave an empty answer", hint="ask again", retry=False)
        text = completion.text + (_CUT if completion.is_cut else "")
        pieces.complete(text)
        return self._told(completion, text)

    def _told(self, completion: Completion, text: str) -> Answer:
        tokens = completion.tokens
        return Answer(
            text, self.name, tokens.input + tokens.cached + tokens.written, tokens.output,
            float(cost_of(completion, self._model.capabilities) or 0), tuple(completion.more.get("steps", ())),
        )  # fmt: skip

    def _check_tools(self, question: Question) -> None:
        if not question.tools:
            return
        if self._api not in _WITH_TOOLS:
            raise ModelRefused(
                f"{self.name} can use no tools here",
                hint="Claude Code (claude-cli:) and Codex (codex-cli:) can; or remove the channel's tools",
            )
        if question.folder is None or not question.folder.is_dir():
            raise ModelRefused(
                f"{self.name} may use tools, and there is no folder to use them in: {question.folder or 'none is set'}",
                hint="set the folder of the channel",
            )


class _Pieces:
    """What is heard of one answer, and nothing after its end: a call that was cut off may still be talking."""

    def __init__(self, hear: Callable[[str], None] | None) -> None:
        self._hear = hear
        self._heard = ""
        self._lock = Lock()

    def hear(self, piece: str) -> None:
        """Pass a piece on."""
        with self._lock:
            if self._hear:
                self._heard += piece
                self._hear(piece)

    def complete(self, text: str) -> None:
        """Pass on what of the answer was not heard yet."""
        if text.startswith(self._heard):
            rest = text[len(self._heard) :]
            if rest:
                self.hear(rest)

    def close(self) -> None:
        """Pass nothing more on."""
        with self._lock:
            self._hear = None
