"""Weighs: whose words a turn's words are, whatever a model says of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from functools import cached_property

from nacre.extraction.reading.course import changed, objects, said_by_agent, stretches, welcome
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.speech import (
    Answered,
    Utterance,
    acceptance,
    forms,
    is_content,
    trusted_agent,
    utterances,
)
from nacre.text.passages import normalise
from nacre.values.session import Speaker, Trust, Turn

_MOSTLY = 0.5


class Voice(Enum):
    """Whose words they are, and what the owner made of them."""

    OWNER = auto()
    PASTED = auto()
    """In a message of the owner's, and not in words of their own: quoted, code, a log, what the agent had written."""
    ACCEPTED = auto()
    """The agent's; the owner accepted them in words."""
    CARRIED = auto()
    """The agent's, in a report that the owner built on, without a word against it."""
    AGENT = auto()
    """The agent's alone."""
    UNTRUSTED = auto()
    """They draw on text from outside."""
    NOBODY = auto()
    """A harness's, a summary's, a sub-agent's, nacre's own."""


class Voices:
    """The voices of one session."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self.spoken = utterances(turns)
        self._own: dict[int, list[Utterance]] = {}
        for one in self.spoken:
            self._own.setdefault(one.index, []).append(one)
        self._said: dict[int, str] = {}

    def of(self, at: int, parts: Sequence[str] = ()) -> Voice:
        """Whose words a turn holds, or of which voice some of them are (normalised, in ``parts``)."""
        turn = self.turns[at]
        if turn.trust is Trust.UNTRUSTED:
            return Voice.UNTRUSTED
        form = self._form(at, parts) if parts else None
        if at in self._own and not (form and form.nods) and all(self._is_typed(at, part) for part in parts):
            return Voice.OWNER
        if form:
            return Voice.PASTED if form.declines else Voice.ACCEPTED if form.nods else Voice.CARRIED
        if not is_content(turn) or turn.speaker not in (Speaker.OWNER, Speaker.AGENT):
            return Voice.NOBODY
        if turn.speaker is Speaker.OWNER:
            return Voice.PASTED
        return Voice.ACCEPTED if at in self._accepted else Voice.CARRIED if at in self._carried else Voice.AGENT

    def _is_typed(self, at: int, part: str) -> bool:
        """Whether the owner typed some words: they are in their statements, or are mostly made of these.

        What is no statement may stand around one: the letter of an answer, a command before its arguments.
        """
        typed = self.statements(at)
        if is_in(part, " ".join(typed)):
            return True
        return sum(len(one) for one in set(typed) if one and is_in(one, part)) >= _MOSTLY * len(part)

    def _form(self, at: int, parts: Sequence[str]) -> Answered | None:
        """The question of a form that some words are of, with its answer."""
        asked = ((normalise(f"{one.question} {one.answer}"), one) for one in self.forms(at))
        return next((one for text, one in asked if all(is_in(part, text) for part in parts)), None)

    def forms(self, at: int) -> list[Answered]:
        """The questions of forms that the owner answers in a turn."""
        turn = self.turns[at]
        return forms(turn.text) if turn.speaker is Speaker.OWNER and " → " in turn.text else []

    def vouched(self, at: int) -> str:
        """The words of a turn that somebody stands for: what the owner typed, without what they pasted, and questions
        of forms unless they said no; all of an agent's, with the words that declined its calls.
        """
        if self.turns[at].speaker is not Speaker.OWNER:
            return f"{self.turns[at].text} {self.typed(at)}"
        return " ".join([self.typed(at), *(one.question for one in self.forms(at) if not one.declines)])

    def typed(self, at: int) -> str:
        """The owner's own words in a turn: those that declined its calls, where it is an agent's."""
        return " ".join(self.sentences(at))

    def sentences(self, at: int) -> list[str]:
        """What the owner stated in a turn, sentence by sentence, as they typed it."""
        return [said.text for one in self._own.get(at, ()) for said in one.statements]

    def statements(self, at: int) -> list[str]:
        """What the owner stated in a turn, sentence by sentence, normalised."""
        return [normalise(text) for text in self.sentences(at)]

    def said(self, at: int) -> str:
        """All words of a turn, normalised, with those that declined its calls."""
        if at not in self._said:
            declined = " ".join(one.text for one in self._own.get(at, ()))
            self._said[at] = normalise(f"{self.turns[at].text} {declined}")
        return self._said[at]

    def agent_before(self, at: int) -> int | None:
        """The agent's last words before a turn of the owner's, unless they draw on text from outside."""
        return trusted_agent(self.turns, at)

    def next_of_owner(self, at: int) -> Utterance | None:
        """What the owner said next after a turn."""
        return next((one for one in self.spoken if one.index > at), None)

    def is_objected(self, at: int) -> bool:
        """Whether the owner's next words after a turn are against it."""
        after = self.next_of_owner(at)
        return after is not None and objects(after, language_of(after.text))

    def is_followed(self, at: int) -> bool:
        """Whether the agent did something about a message of the owner's, and they went on from that without a word
        against it; or accepted in words what it said.
        """
        after = self.next_of_owner(at)
        end = after.index if after else len(self.turns)
        voices = {self.of(one) for one in range(at + 1, end)}
        return Voice.ACCEPTED in voices or (Voice.CARRIED in voices and changed(self.turns, at + 1, end))

    @cached_property
    def _accepted(self) -> frozenset[int]:
        found = (trusted_agent(self.turns, one.index) for one in self.spoken if _accepts(one))
        return frozenset(at for at in found if at is not None)

    @cached_property
    def _carried(self) -> frozenset[int]:
        welcomed = (
            one for one in stretches(self.turns, self.spoken) if welcome(self.turns, self.spoken, one) is not None
        )
        return frozenset(at for one in welcomed for at in said_by_agent(self.turns, one))


def is_in(part: str, said: str) -> bool:
    """Whether normalised words are in a normalised text, from word to word where words are apart."""
    return f" {part} " in f" {said} " if part.isascii() else part in said


def _accepts(utterance: Utterance) -> bool:
    language = language_of(utterance.text)
    first = utterance.statements[0].text
    is_confirmed = bool(language.concluded.confirmed.match(first)) and not first.endswith("?")
    return is_confirmed or acceptance(utterance, language) is not None
