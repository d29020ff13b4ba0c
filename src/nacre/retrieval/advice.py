"""What a language model may add to recall: other phrasings of a question, and a grade for each of the best hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from nacre.retrieval.adviser import Adviser, prompt_of
from nacre.retrieval.memories import ScoredMemory
from nacre.text.passages import normalise, one_line
from nacre.values.session import Trust

PHRASINGS = 3
GRADED = 20
NOTHING = 0
"""The grade of a text that is about something else: it is no hit, and with nothing else there is none."""

_PHRASING_CHARACTERS = 300
_TEXT_CHARACTERS = 600
_BEST = 3


class ExpandAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the question for other phrasings."""

    phrasings: list[str]


class Grade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How well one text answers."""

    number: int
    grade: Annotated[int, msgspec.Meta(ge=NOTHING, le=_BEST)]


class RerankAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the question for grades."""

    grades: list[Grade]


def other_phrasings(adviser: Adviser, question: str) -> list[str] | None:
    """At most three other phrasings of a question; ``None`` where the model did not answer."""
    answer = adviser.ask(prompt_of("recall-expand", ExpandAnswer, text={"query": question}), ExpandAnswer)
    if answer is None:
        return None
    found = {normalise(text): one_line(text)[:_PHRASING_CHARACTERS] for text in reversed(answer.phrasings)}
    return [text for said, text in reversed(found.items()) if said and said != normalise(question)][:PHRASINGS]


def graded(adviser: Adviser, question: str, ranked: Sequence[ScoredMemory]) -> list[ScoredMemory] | None:
    """The hits, the best 20 of them in the order of a model's grades, without those that it says are about something
    else; ``None`` where it did not answer.

    The scores stay at their places. What is untrusted is not shown to the model, and stays where it is: a text from
    outside cannot ask for a better place.
    """
    seen = [at for at, item in enumerate(ranked[:GRADED]) if item.memory.trust is Trust.TRUSTED]
    texts = [{"number": number, "text": _told(ranked[at])} for number, at in enumerate(seen, start=1)]
    if not texts:
        return list(ranked)
    prompt = prompt_of("recall-rerank", RerankAnswer, text={"query": question, "texts": texts})
    answer = adviser.ask(prompt, RerankAnswer)
    if answer is None:
        return None
    grades = {one.number: one.grade for one in reversed(answer.grades) if 1 <= one.number <= len(seen)}
    if not grades:
        adviser.distrust("the model graded none of the texts")
        return None
    return _in_order(ranked, seen, grades)


def _told(item: ScoredMemory) -> str:
    return one_line(f"{item.memory.subject}. {item.memory.content}")[:_TEXT_CHARACTERS]


def _in_order(ranked: Sequence[ScoredMemory], seen: Sequence[int], grades: dict[int, int]) -> list[ScoredMemory]:
    """A hit without a grade counts as one that is about the same thing."""
    by_place = {at: grades.get(number, 1) for number, at in enumerate(seen, start=1)}
    kept = sorted((at for at in seen if by_place[at] > NOTHING), key=lambda at: (-by_place[at], at))
    graded_hits = iter([ranked[at] for at in kept])
    order = []
    for at, item in enumerate(ranked):
        chosen = next(graded_hits, None) if at in by_place else item
        if chosen is not None:
            order.append(chosen)
    return order
