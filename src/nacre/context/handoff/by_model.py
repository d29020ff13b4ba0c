"""The handoff that a model writes: what it is asked, and what of its answer the session bears out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from nacre.extraction.by_model.layout import as_data, framed
from nacre.extraction.reading.bounds import bounded
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.speech import is_content
from nacre.extraction.rules.reversal import content_words
from nacre.llm.answers import schema_of
from nacre.text.passages import identifiers, one_line, shorten, words
from nacre.values.model_calls import Capabilities, Prompt, Task
from nacre.values.session import Speaker, Trust, Turn

VERSION = "1"
MOST_TURNS = 50
MOST_CHARACTERS = 8_000
LEAST_TURNS = 4
LEAST_LINES = 3
MOST_WORDS = 500
"""Seed facts 1.8, all of them."""

_TURN_CHARACTERS = 1_500
_ENTRY_CHARACTERS = 400
_OUTPUT_TOKENS = 1_500
_LEAST_SAID = 0.6
"""Of an entry's content words must have been said in the session."""

_NUMBER = re.compile(r"\d[\d.,:]*")
_SPEAKERS = (Speaker.OWNER, Speaker.AGENT)


class HandoffAnswer(msgspec.Struct):
    """What a model answers: four lists of sentences."""

    working_on: list[str]
    key_findings: list[str]
    open_threads: list[str]
    important_facts: list[str]


_SECTIONS = (
    ("Working on", "working_on"),
    ("Key findings", "key_findings"),
    ("Open threads", "open_threads"),
    ("Important facts", "important_facts"),
)


def shown_turns(turns: Sequence[Turn]) -> list[Turn]:
    """The turns that a model is shown: the last fifty of owner and agent, without what draws on text from outside."""
    sound = [
        bounded(turn)
        for turn in turns
        if turn.speaker in _SPEAKERS and is_content(turn) and turn.trust is Trust.TRUSTED
    ]
    return sound[-MOST_TURNS:]


def handoff_prompt(turns: Sequence[Turn], able: Capabilities, seconds: float) -> Prompt | None:
    """What asks for a handoff; ``None`` where too little was said for one."""
    if len(turns) < LEAST_TURNS or sum(len(turn.text.strip().splitlines()) for turn in turns) < LEAST_LINES:
        return None
    text = "\n".join(_last([_line(turn) for turn in turns]))
    return Prompt(
        task=Task.HANDOFF, system=_words(), text=f"{framed('session', text)}\n\nWrite the handoff.",
        answer=schema_of(HandoffAnswer), name="handoff", version=f"handoff/{VERSION}",
        output_tokens=min(_OUTPUT_TOKENS, able.output), timeout_seconds=seconds,
    )  # fmt: skip


def borne_out(answer: HandoffAnswer, turns: Sequence[Turn]) -> str:
    """An answer as it is kept: without entries that the session does not show, within 500 words; perhaps empty."""
    ground = _Ground(turns)
    left = MOST_WORDS
    told: list[str] = []
    for title, name in _SECTIONS:
        kept = []
        for entry in _entries(getattr(answer, name)):
            size = len(words(entry))
            if size <= left and ground.bears(entry):
                kept.append(f"- {entry}")
                left -= size
        if kept:
            told.append("\n".join([f"{title}:", *kept]))
    return "\n\n".join(told)


class _Ground:
    """What was said, to hold entries against."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._text = " ".join(turn.text for turn in turns).lower()
        self._words = frozenset[str]().union(*(content_words(turn.text, language_of(turn.text)) for turn in turns))

    def bears(self, entry: str) -> bool:
        """Whether its names and numbers were said, and most of its words."""
        named = [*identifiers(entry), *_NUMBER.findall(entry)]
        if not all(one.lower().rstrip(".,:") in self._text for one in named):
            return False
        wanted = content_words(entry, language_of(entry))
        return not wanted or len(wanted & self._words) >= _LEAST_SAID * len(wanted)


def _entries(told: Sequence[str]) -> Iterator[str]:
    for entry in dict.fromkeys(told):
        line = one_line(entry).strip(" -*•")
        if line:
            yield shorten(line, _ENTRY_CHARACTERS)


def _line(turn: Turn) -> str:
    return f"{turn.speaker.value}: {as_data(shorten(turn.text.strip(), _TURN_CHARACTERS))}"


def _last(lines: Sequence[str]) -> list[str]:
    """The last of some lines, as many as there is room for; at least one."""
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in reversed(lines):
        if kept and len(line) + 1 > room:
            break
        kept.append(line[:room])
        room -= len(line) + 1
    return kept[::-1]


@cache
def _words() -> str:
    return (files(__package__) / "prompts" / f"handoff-{VERSION}.md").read_text(encoding="utf-8")
