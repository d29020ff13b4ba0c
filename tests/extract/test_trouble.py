"""Trouble and its cause, told in no phrase that a table knows, are known by what they mean."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nacre.extraction.reading.meaning import Affinity
from nacre.values.memory import Kind
from nacre.values.session import Speaker, ToolCall, Turn
from tests.extract.conftest import agent, memories, owner

TROUBLE = "the kiosk in the hall goes dark at noon, any idea?"
CAUSE = "The cabinet heats up in the sun and the panel cuts its backlight above fifty degrees."
ELSEWHERE = "The timer of the panel counts in local time and the server sends it in another zone."


class Understands:
    """Knows trouble and causes by the words that only these tests use."""

    def affinities(self, texts: Sequence[str], language: str) -> Sequence[Affinity]:
        return [self._of(text) for text in texts]

    def _of(self, text: str) -> Affinity:
        trouble = 0.8 if "goes dark" in text else 0.0
        lesson = 0.8 if "panel" in text else 0.0
        return Affinity(lesson, Kind.LESSON, 1.0, Kind.FACT, weight=2.0, alone=0.99, lesson=lesson, trouble=trouble)


def looked(text: str) -> Turn:
    return agent(text, calls=tuple(ToolCall("Read", one, "ok") for one in ("kiosk.py", "panel.py", "power.log")))


def changed(text: str = "Done.") -> Turn:
    return agent(text, calls=(ToolCall("Edit", "panel.py", "ok"),))


def told(*turns: Turn) -> list[str]:
    return [one.content for one in memories(*turns, meaning=Understands()) if one.kind is Kind.LESSON]


@pytest.mark.parametrize("answer", ["ah that's it", "argh, that explains it", "makes sense, thanks"])
def test_a_cause_that_the_owner_accepts_is_a_lesson_with_the_trouble_in_front(answer: str) -> None:
    assert told(owner(TROUBLE), looked(CAUSE), owner(answer)) == [f"The kiosk in the hall goes dark at noon. {CAUSE}"]


def test_so_is_one_that_the_owner_has_mended_in_a_few_words() -> None:
    turns = (owner(TROUBLE), looked(CAUSE), owner("a fan then"), changed(), owner("next: the second screen"))
    assert told(*turns) == [f"The kiosk in the hall goes dark at noon. {CAUSE}"]


@pytest.mark.parametrize("later", ["nope, still dark", "no change", "exactly the same as before"])
def test_a_cause_that_mended_nothing_is_none(later: str) -> None:
    assert told(owner(TROUBLE), looked(CAUSE), owner("ok try that"), changed(), owner(later)) == []


def test_what_the_owner_found_out_is_told_in_their_words() -> None:
    found = memories(
        owner(TROUBLE),
        looked(ELSEWHERE),
        owner("found it: the cleaners unplug it for their hoover"),
        agent("Oh."),
        meaning=Understands(),
    )
    lessons = [one for one in found if one.kind is Kind.LESSON]
    assert [one.content for one in lessons] == [
        "The kiosk in the hall goes dark at noon. The cleaners unplug it for their hoover"
    ]
    assert lessons[0].speaker is Speaker.OWNER


def test_without_a_sense_of_meaning_nothing_is_guessed() -> None:
    assert memories(owner(TROUBLE), looked(CAUSE), owner("ah that's it")) == []


def test_what_is_said_of_the_thing_asked_for_is_a_detail_of_the_request() -> None:
    request = "generate a few sample customers for the demo. every customer must have two orders"
    assert memories(owner(request)) == []
    assert memories(owner("every customer must have two orders"))
