"""The gate: does a question need memories at all, and which?"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from nacre.platform import json_values
from nacre.retrieval.adviser import Adviser, prompt_of
from nacre.retrieval.question.question import Question
from nacre.text.passages import one_line, words
from nacre.values.deep_recall import Route, Said

MESSAGES = 4
MESSAGE_CHARACTERS = 220


class GateAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the gate's question."""

    route: Literal["none", "owner", "project"]


def is_trivial(question: Question) -> bool:
    """Whether there is nothing in it to look for, as in "ok, go on": no model is asked about that."""
    return question.says_nothing and not question.lists and not _is_about_the_owner(question.text)


def route_by_rules(question: Question, *, names_project: bool) -> Route:
    """The route where no model says it: the owner's where it asks about themselves and no project, else a project's."""
    if is_trivial(question):
        return Route.PROJECT if names_project else Route.NONE
    return Route.OWNER if not names_project and _is_about_the_owner(question.text) else Route.PROJECT


def route_by_model(adviser: Adviser, query: str, recent: Sequence[Said]) -> Route | None:
    """The route that a model chooses; ``None`` where it does not answer."""
    said = [
        {"speaker": one.speaker.value, "text": one_line(one.text)[:MESSAGE_CHARACTERS]} for one in recent[-MESSAGES:]
    ]
    answer = adviser.ask(prompt_of("deep-gate", GateAnswer, text={"query": query, "recent": said}), GateAnswer)
    return Route(answer.route) if answer else None


def _is_about_the_owner(text: str) -> bool:
    """Whether it holds a word for whoever asks and one of what people ask about themselves, or a phrase of both."""
    return any(
        _holds(text, own.phrases) or (_holds(text, own.self) and _holds(text, own.about)) for own in _owner_words()
    )


def _holds(text: str, wanted: tuple[str, ...]) -> bool:
    """Whether any of some words or phrases is in a text; of a script without spaces, wherever it stands."""
    asked = f" {' '.join(words(text))} "
    return any(f" {one} " in asked if one.isascii() else one in text for one in wanted)


class _Owner(msgspec.Struct, frozen=True):
    self: tuple[str, ...]
    about: tuple[str, ...]
    phrases: tuple[str, ...]


@cache
def _owner_words() -> tuple[_Owner, ...]:
    table = tomllib.loads(files("nacre.retrieval.deep").joinpath("owner.toml").read_text(encoding="utf-8"))
    return tuple(json_values.convert(language, _Owner) for language in table.values())
