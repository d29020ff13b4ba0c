"""Forms that the agent puts to the owner: what they ask, and how an answer stands in what was said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nacre.text.passages import one_line
from nacre.transcripts.trust import CHOSEN, TYPED, shared
from nacre.values.session import Trust

_ASKING_ENDS = ("?", "？", ":", "：")
_UNTOLD = "…?"
"""Stands for a question that is not the agent's own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the owner's to a question; ``is_typed`` where it is none of the options that it had."""

    question: str
    answer: str
    is_typed: bool


def questions_of(arguments: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a form asks, each question with its options."""
    found: dict[str, list[str]] = {}
    for one in _objects(arguments.get("questions")):
        if isinstance(one.get("question"), str):
            labels = (option.get("label") for option in _objects(one.get("options")))
            found.setdefault(one["question"], []).extend(label for label in labels if isinstance(label, str))
    return found


def answered(question: str, answer: str, options: Sequence[str]) -> Answer:
    """An answer as the owner gave it. Where no options are known it may be one of them."""
    asking = one_line(question)
    asking = asking if asking.endswith(_ASKING_ENDS) else f"{asking}:"
    is_typed = bool(options) and not _holds(answer, options)
    return Answer(asking, answer if is_typed else one_line(answer), is_typed)


def messages_of(answers: Iterable[Answer], trust_of: Callable[[str], Trust]) -> tuple[list[str], str]:
    """The owner's messages in the answers to a form, and what of them is from outside.

    A question and its options are the agent's words: of a question that draws on text from outside the answer is left,
    and an option that does so itself was only pointed at. What was typed is a message by itself.
    """
    chosen, typed, foreign = list[str](), list[str](), list[str]()
    for one in answers:
        pair = f"{one.question} {TYPED if one.is_typed else CHOSEN} {one.answer}"
        own = typed if one.is_typed else chosen
        if trust_of(pair) is Trust.TRUSTED:
            own.append(pair)
        elif trust_of(one.answer) is Trust.TRUSTED:
            own.append(one.answer if one.is_typed else f"{_UNTOLD} {CHOSEN} {one.answer}")
        else:
            foreign.append(pair)
    return [*(["\n".join(chosen)] if chosen else []), *typed], "\n".join(foreign)


def _holds(answer: str, options: Sequence[str]) -> bool:
    """Whether an answer is made of options, or has words in a row of one."""
    labels = {_plain(one) for one in options}
    return (
        _plain(answer) in labels
        or all(_plain(part) in labels for part in answer.split(", "))
        or any(shared(one, answer) or shared(answer, one) for one in options)
    )


def _plain(text: str) -> str:
    return one_line(text).lower()


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
