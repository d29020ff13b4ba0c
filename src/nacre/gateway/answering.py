"""Make one answer: what is remembered, what was said before, and the agent that answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from nacre.errors import BudgetSpent, ModelRefused, NacreError
from nacre.gateway.channel_options import ChannelOptions
from nacre.gateway.compaction import is_due, keep_what_matters, sum_up
from nacre.gateway.passages import passages_for
from nacre.gateway.prompt import Turn, prompt, remembered, system_prompt
from nacre.gateway.responder import Question, Responder
from nacre.gateway.streaming import CleanStream
from nacre.gateway.transcript import Recent, Transcripts, bounded
from nacre.home.home import Home
from nacre.ingestion.current_session import read_files
from nacre.settings import Settings
from nacre.values.gateway.conversation import ChatSession
from nacre.values.gateway.message import Answer

Lend = Callable[[], AbstractContextManager[Home]]
"""Lends an open home to one thread."""

Respond = Callable[[Home, str], Responder]
"""Opens the responder of a model's name; of an empty one, that of ``models.chat``."""

_MOST_CHARACTERS = 64_000
"""Of an answer: 16 messages of Telegram. Whoever writes may ask for a book."""

_SORRY = "I cannot answer just now. Please try again later."


@dataclass(frozen=True, slots=True)
class Work:
    """One answer to make: for which conversation, by which options, from what."""

    session: ChatSession
    options: ChannelOptions
    turn: Turn


class Answering:
    """Makes answers in threads; safe to share between them."""

    def __init__(self, settings: Settings, lend: Lend, respond: Respond) -> None:
        self._settings = settings
        self._lend = lend
        self._respond = respond
        self._transcripts = Transcripts(settings.home)
        self._guard = threading.Lock()
        self._running: set[Responder] = set()
        self._windows: dict[str, int] = {}
        self.is_closed = False
        """Whether no more answers are made."""

    def answer(self, work: Work, hear: Callable[[str], None] | None = None) -> Answer:
        """Ask the responder; ``hear`` is given the answer while it is made, without secrets.

        Raises ModelUnavailable, ModelRefused, BudgetSpent and what opening the home raises.
        """
        with self._lend() as home:
            question = self._question(home, work)
            responder = self._respond(home, work.options.model)
            try:
                self._note(responder)
                stream = CleanStream(home.redactor, hear) if hear else None
                answer = responder.answer(question, stream.hear if stream else None)
                if stream:
                    stream.finish()
                return replace(answer, text=home.redactor.clean(bounded(answer.text, _MOST_CHARACTERS)))
            finally:
                self._forget(responder)

    def index(self, session: ChatSession) -> None:
        """Make a conversation searchable up to its last line. Raises NacreError."""
        with self._lend() as home:
            read_files(home, [self._transcripts.path(session.id)])

    def compact(self, session: ChatSession, options: ChannelOptions, recent: Recent) -> tuple[str, str]:
        """Keep what a conversation teaches, unless that was done in this cycle; its summary, and who made it."""
        with self._lend() as home:
            if session.flushed < session.compactions:
                keep_what_matters(home, session, self._transcripts.path(session.id))
            try:
                responder = self._respond(home, options.model)
            except NacreError:
                return sum_up(recent, None)
            try:
                self._note(responder)
                return sum_up(recent, responder)
            finally:
                self._forget(responder)

    def needs_compaction(self, session: ChatSession, options: ChannelOptions) -> bool:
        """Whether a conversation is near the window of who answers. Raises NacreError."""
        return is_due(session, self._window(options.model))

    def _window(self, model: str) -> int:
        """That of who answers; it is asked once."""
        if model not in self._windows:
            with self._lend() as home:
                responder = self._respond(home, model)
                self._windows[model] = responder.window
                responder.close()
        return self._windows[model]

    def close(self) -> None:
        """Cut off what runs; no more answers are made."""
        with self._guard:
            self.is_closed = True
            running = list(self._running)
        for one in running:
            one.close()

    def _question(self, home: Home, work: Work) -> Question:
        settings, options, turn = self._settings, work.options, work.turn
        budget = settings.whole("gateway.context_tokens")
        sees_all = turn.sees_memories
        passages = passages_for(
            home, turn.words, limit=settings.whole("gateway.search_results"), budget_tokens=budget // 2,
            key=None if sees_all else work.session.key, leave_out=work.session.id,
        )  # fmt: skip
        memories = remembered(home, turn.words, budget) if sees_all else ""
        return Question(
            system_prompt(options.instructions), prompt(turn, memories, passages), options.tools, options.folder,
            settings.number("gateway.answer_seconds"),
        )  # fmt: skip

    def _note(self, responder: Responder) -> None:
        with self._guard:
            self._running.add(responder)
            is_closed = self.is_closed
        if is_closed:
            responder.close()

    def _forget(self, responder: Responder) -> None:
        with self._guard:
            self._running.discard(responder)
        responder.close()


def excuse(error: NacreError, *, is_owner: bool) -> str:
    """What is said where no answer could be made: to the owner why, to others that it was so."""
    if not is_owner:
        return _SORRY
    reason = error.message.rstrip(".")
    if isinstance(error, BudgetSpent | ModelRefused) and error.hint:
        reason = f"{reason} ({error.hint})"
    return f"I cannot answer: {reason}."
