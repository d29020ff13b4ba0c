"""Pinned answers, which recall must keep finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from nacre import __version__
from nacre.base import json
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.text import one_line, shorten
from nacre.errors import InvalidQueryError, NotFoundError
from nacre.home.change import PINNED, Pin, read_pins, write_pins
from nacre.home.home import Home
from nacre.operations import operation
from nacre.recall import recall as recalling
from nacre.values.recall import HitConfidence, RecallQuery, TurnHit

_ANSWER_CHARACTERS = 120


@frozen
class PinCheck:
    """The result of checking a pinned answer."""

    question: str
    answer: str
    holds: bool
    """True if the first answer or a sure one contains the pinned words."""

    first: str = ""
    memories: tuple[str, ...] = ()
    """Memories that contain the pinned words, or none if a turn also does."""


@frozen
class _LastCheck:
    state: str
    broken: tuple[PinCheck, ...]


@operation("check")
def check_pins(home: Home) -> list[PinCheck]:
    """Ask the pinned questions, and record the pinned answers that do not hold any more."""
    pins = read_pins(home)
    checks = [_ask(home, pin) for pin in pins]
    stored = home.usage.value(PINNED)
    if not home.database.unwritable and (pins or stored):
        broken = tuple(check for check in checks if not check.holds)
        record = json.encode(_LastCheck(_state(home, pins), broken)).decode()
        if record != stored:
            with home.transaction():
                home.usage.set_value(PINNED, record)
    return checks


def broken_pins(home: Home) -> list[PinCheck]:
    """Return the pinned answers that failed the last check.

    The check is repeated if a pin, the embedding model, or nacre itself has changed.
    """
    pins, record = read_pins(home), home.usage.value(PINNED)
    last = json.decode(record.encode(), _LastCheck) if record else _LastCheck("", ())
    if home.database.unwritable or not (pins or record) or last.state == _state(home, pins):
        return list(last.broken)
    return [check for check in check_pins(home) if not check.holds]


@operation("pin", writes=True, owners=True, command="recall --pin")
def pin(
    home: Home,
    question: Annotated[str, bounds("The question.", min_length=1)],
    *,
    answer: Annotated[str, bounds("Words of the answer. Default: the first answer.")] = "",
    remove: Annotated[bool, bounds("Remove the pinned answer of this question.")] = False,
) -> PinCheck:
    """Pin the answer of a question. Raises NotFoundError if no first or sure answer contains it."""
    question = home.redactor.clean(one_line(question).replace("=>", "→"))
    pinned = Pin(question, home.redactor.clean(one_line(answer)))
    check = _ask(home, pinned)
    if not (remove or check.holds):
        raise NotFoundError(
            f"no first or sure answer contains {answer!r}"
            if answer
            else "no answer was found to pin",
            hint="nacre recall shows the current answers",
        )
    if remove and all(present.question != question for present in read_pins(home)):
        raise NotFoundError(
            f"no answer is pinned for {question!r}", hint="nacre admin check lists the questions"
        )
    pinned = Pin(question, check.answer)
    with home.change("pin", subject=question) as change:
        write_pins(change, lambda pin: pin.question == question, *(() if remove else (pinned,)))
    check_pins(home)
    return check


def _ask(home: Home, pin: Pin) -> PinCheck:
    try:
        result = recalling.recall(home, RecallQuery(pin.question, update=False))
    except InvalidQueryError as error:
        return PinCheck(pin.question, pin.answer, holds=False, first=error.message)
    answers = []
    for hit in result.ranked:
        if isinstance(hit, TurnHit):
            text = recalling.readable(hit.turn)
            answers.append((hit.confidence, "", shorten(text, _ANSWER_CHARACTERS), text))
        else:
            memory = hit.memory
            answers.append((hit.confidence, memory.id, memory.subject, memory.content))
    first = answers[0][2] if answers else ""
    pin = Pin(pin.question, pin.answer or first.rstrip("… "))
    holders = [
        memory_id
        for rank, (confidence, memory_id, subject, text) in enumerate(answers)
        if (not rank or confidence is HitConfidence.SURE) and pin.is_in(f"{subject} {text}")
    ]
    memories = tuple(holders) if all(holders) else ()
    return PinCheck(pin.question, pin.answer, bool(holders and pin.answer), first, memories)


def _state(home: Home, pins: Sequence[Pin]) -> str:
    lines = [f"{pin.question} {pin.answer}" for pin in pins]
    state = [__version__, home.vectors.model() or "", *lines]
    return content_hash("\n".join(state)).hex()  # a hash, so that it contains no forgotten words
