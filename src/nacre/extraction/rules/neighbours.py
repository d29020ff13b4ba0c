"""Finishes: makes a statement stand alone, with the neighbour it leans on, or gives it up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nacre.extraction.reading.cues import Language
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.rules.subject import names_something
from nacre.extraction.rules.wording import capitalised

MAX_NEIGHBOUR = 300
MAX_TOGETHER = 500
MAX_WISH = 70
_MIN_NEIGHBOUR = 15
_MAX_MORE = 120
_FULL = tuple(".!?。！？")
_END = re.compile(r"[.!?。！？;；,，:：]$")


def stand_alone(text: str, at: int, statements: Sequence[Statement], language: Language) -> str | None:
    """The statement, with the one before it where it leans on that and with a reason that follows it."""
    if leans(text, language):
        neighbour = _neighbour(at, statements, language)
        if neighbour is None:
            return None
        text = in_a_row([neighbour, text], language)
    elif _lacks_topic(text, language):
        needed = _needed(at, statements, language)
        text = in_a_row([needed, text], language) if needed else text
    following = statements[at + 1].text if at + 1 < len(statements) else ""
    if language.answers.unsure.search(following) or _is_order(following, language):
        return text
    more = next((one for one in (following, language.trim(following)) if one and _goes_on(one, language)), "")
    return in_a_row([text, more], language) if more and len(text) + len(more) <= MAX_TOGETHER else text


def _is_order(text: str, language: Language) -> bool:
    """Whether a statement only tells the agent what to do with the one before it."""
    return bool(language.lean.order.match(text) or language.remember.after.match(text))


def _lacks_topic(text: str, language: Language) -> bool:
    """Whether a statement says what was chosen, perhaps why and instead of what, and not for what."""
    chosen = language.lean.chosen.match(text)
    if not chosen:
        return False
    rest = text[chosen.end() :]
    reason = language.lean.reason.search(rest)
    return not language.lean.about.search(rest[: reason.start()] if reason else rest)


def with_request(text: str, at: int, statements: Sequence[Statement], language: Language) -> str:
    """A short wish together with the request it was part of: "Let's design the login. I want passkeys."."""
    request = language.trim(statements[at - 1].text) if at else ""
    asking = request and language.reject["errand"].search(request) and not leans(request, language)
    if not asking or len(text) >= MAX_WISH or not _MIN_NEIGHBOUR <= len(request) <= MAX_WISH * 2:
        return text
    return in_a_row([request, text], language)


def leans(text: str, language: Language) -> bool:
    """Whether a pronoun in the text has nothing in the text to stand for."""
    if language.lean.start.match(text) or language.lean.object.search(text):
        return True
    pronoun = language.lean.inside.search(text)
    if pronoun is None:
        return False
    before = text[: pronoun.start()]
    return not language.lean.named.search(before) and not names_something(before, language)


def _neighbour(at: int, statements: Sequence[Statement], language: Language) -> str | None:
    if at == 0:
        return None
    text = language.trim(statements[at - 1].text)
    if not _MIN_NEIGHBOUR <= len(text) <= MAX_NEIGHBOUR or leans(text, language):
        return None
    asks = language.reject["question"].search(text) or language.opening.asking.match(text)
    return None if asks else text


def _needed(at: int, statements: Sequence[Statement], language: Language) -> str | None:
    """The statement before, where it says what there is need of, asks to choose or names what comes next."""
    text = statements[at - 1].text if at else ""
    least = _MIN_NEIGHBOUR if language.joiner else _MIN_NEIGHBOUR // 2
    if not least <= len(text) <= MAX_NEIGHBOUR or leans(language.trim(text), language):
        return None
    return text if language.lean.need.search(text) else None


def _goes_on(text: str, language: Language) -> bool:
    """Whether a statement is about the one before it: gives its reason, or leans on it and asks for nothing."""
    if any(language.reject[one].search(text) for one in ("question", "errand", "transient")):
        return bool(language.lean.more.match(text)) and not language.reject["question"].search(text)
    return bool(language.lean.more.match(text)) or (len(text) <= _MAX_MORE and leans(text, language))


def in_a_row(sentences: Sequence[str], language: Language) -> str:
    """Sentences one after the other, each with an end, and a capital behind a full one."""
    *first, last = sentences
    ended = [*(_ended(one, language) for one in first), last]
    told = [
        capitalised(one, language) if before[-1:] in _FULL else one
        for before, one in zip(["", *ended], ended, strict=False)
    ]
    return language.joiner.join(told)


def _ended(text: str, language: Language) -> str:
    return text if _END.search(text) else f"{text}{'.' if language.joiner else '。'}"
