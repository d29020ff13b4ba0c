"""The manifest: what a project holds, in a line each, and the few of it that a question needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from nacre.platform.days import shown_day
from nacre.retrieval.adviser import Adviser, prompt_of
from nacre.text.passages import one_line
from nacre.values.memory import Memory

MOST = 200
CHOSEN = 5
DESCRIPTION_CHARACTERS = 200


class SelectAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the question for memories."""

    numbers: Annotated[list[int], msgspec.Meta(max_length=MOST)]


def select(adviser: Adviser, query: str, memories: Sequence[Memory]) -> list[Memory] | None:
    """At most five of the memories, as a model chose them; ``None`` where it chose none that exist or did not answer.

    Numbers that name no memory are dropped. An empty choice is one: nothing helps.
    """
    shown = [_line(number, memory) for number, memory in enumerate(memories[:MOST], start=1)]
    prompt = prompt_of("deep-select", SelectAnswer, text={"query": query}, shared={"memories": shown})
    answer = adviser.ask(prompt, SelectAnswer)
    if answer is None:
        return None
    known = [number for number in dict.fromkeys(answer.numbers) if 1 <= number <= len(shown)]
    if answer.numbers and not known:
        adviser.distrust("the model chose memories that do not exist")
        return None
    return [memories[number - 1] for number in known[:CHOSEN]]


def _line(number: int, memory: Memory) -> dict[str, object]:
    return {
        "number": number, "kind": memory.kind.value, "subject": one_line(memory.subject)[:DESCRIPTION_CHARACTERS],
        "scope": memory.scope.value, "updated": shown_day(memory.updated),
        "text": one_line(memory.content)[:DESCRIPTION_CHARACTERS],
    }  # fmt: skip
