"""Two homes are asked the same, to see whether they answer the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from nacre.home.home import Home
from nacre.retrieval.recall import recall
from nacre.values.recall import RecallQuery, RecallResult

_TURNS = 3


@dataclass(frozen=True, slots=True)
class SameAnswers:
    """How many questions both were asked, how many got the same answer (memories and turns in the same order), and how
    many at least the same first memory. ``differing`` are some that did not."""

    asked: int
    same: int
    same_first: int
    differing: tuple[str, ...] = ()


def questions_for(home: Home, most: int) -> list[str]:
    """What to ask a home: subjects of memories and what the owner said, in turn, spread evenly over each."""
    memories = [memory.subject for memory in home.memories.in_any_state(_spread(sorted(home.memories.all_ids()), most))]
    said = _spread([text for (text,) in home.database.all("list_short_turns")], most)
    mixed = [text for pair in zip_longest(memories, said) for text in pair if text and text.strip()]
    return list(dict.fromkeys(mixed))[:most]


def compare_answers(
    one: Home, other: Home, questions: Sequence[str], notify: Callable[[int], object]
) -> SameAnswers:  # fmt: skip
    """Ask both; nothing is counted as used."""
    same = first = 0
    differing = []
    for number, question in enumerate(questions):
        answers = [_told(recall(home, RecallQuery(question, update=False, turns=_TURNS))) for home in (one, other)]
        same += answers[0] == answers[1]
        first += answers[0][:1] == answers[1][:1]
        if answers[0] != answers[1]:
            differing.append(question)
        notify(number + 1)
    return SameAnswers(len(questions), same, first, tuple(differing[:5]))


def _told(result: RecallResult) -> list[str]:
    return [hit.memory.id for hit in result.hits] + [
        f"{hit.session.tool}:{hit.session.native_id}#{hit.turn.id}" for hit in result.turns
    ]


def _spread(values: Sequence[str], most: int) -> list[str]:
    step = max(1, len(values) // max(1, most))
    return list(values[::step][:most])
