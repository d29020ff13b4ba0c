"""Complete an answer that only points ("A.", "let's do 1", "yes") with the words it answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from nacre.extract.classify import classify
from nacre.extract.cues import Answers, Language, language_of
from nacre.extract.sentences import Statement, split

_MARKUP = re.compile(r"\*\*|__|^#+\s*|^>\s*", re.MULTILINE)
_LABEL = re.compile(r"^(?:\w+ ){0,2}\w+:\s+(?=[A-Z`])")
_QUESTION_END = re.compile(r"[?？]\W*$")
_PAIR = re.compile(r"^(?P<question>.{10,400}?[?？:：])\s*(?:→|=>|->)\s*(?P<answer>\S.*)$")
_MAX_QUESTION = 300
_MAX_OPTION = 250
_MAX_SHORT_WORDS = 12
_CLOSING_STATEMENTS = 6


@dataclass(frozen=True, slots=True)
class Asked:
    """What an agent's message asks at its end.

    ``question`` is about how things are to be, with the ``options`` offered; ``closing`` says that nothing
    follows it.
    """

    question: str = ""
    options: dict[str, str] = field(default_factory=dict)
    closing: bool = False


@dataclass(frozen=True, slots=True)
class Completed:
    """An answer together with what it answers."""

    text: str


def asked(text: str) -> Asked:
    """Read the end of an agent's message."""
    cues = language_of(text).answers
    plain = _MARKUP.sub("", text)
    options: dict[str, str] = {}
    for line in plain.split("\n"):
        option = cues.option.match(line)
        if option:
            options[_key(option["which"], cues)] = _first_sentence(option["text"])
    prose = [one for one in split(plain) if not cues.option.match(one.text) and one.mark is None]
    ending = [one.text for one in prose[-_CLOSING_STATEMENTS:]]
    questions = [_LABEL.sub("", one) for one in ending if _is_question(one, cues)]
    durable = [one for one in questions if not cues.errand.search(one)]
    return Asked(
        question=durable[-1] if durable else "",
        options=options,
        closing=bool(durable) and prose[-1].text.endswith(durable[-1]),
    )


def _is_question(text: str, cues: Answers) -> bool:
    return _asks(text) or (text.endswith((":", "：")) and bool(cues.choice.search(text)))


def complete(statements: list[Statement], question: Asked, language: Language) -> list[Completed]:
    """The owner's pointing statements, completed; nothing where an answer points at nothing durable."""
    if not statements or not question.question or len(question.question) > _MAX_QUESTION:
        return []
    by_mark = [
        Completed(_join(question.question, question.options[_key(one.mark, language.answers)], one.text))
        for one in statements
        if one.mark and _key(one.mark, language.answers) in question.options and not _asks(one.text)
    ]
    if by_mark:
        return by_mark[:2]
    for attempt in (_pointed, _agreed, _short):
        text = attempt(statements, question, language)
        if text:
            return [Completed(text)]
    return []


def pairs(text: str) -> list[str]:
    """Questions a tool put to the owner, one a line with its answer: the two together."""
    found = (_PAIR.match(line.strip()) for line in text.split("\n"))
    return [_join(match["question"], match["answer"], "") for match in found if match]


def _pointed(statements: list[Statement], question: Asked, language: Language) -> str | None:
    text = statements[0].text
    point = language.answers.point.match(text)
    if not point or _is_article(text, point):
        return None
    option = _chosen(point["which"], question, language.answers)
    rest = language.trim(text[point.end() :]).strip(".。!！)）") if option else ""
    return _join(question.question, option, rest) if option else None


def _chosen(which: str, question: Asked, cues: Answers) -> str | None:
    """The option with that letter or number; "the second" is the second of any."""
    key = _key(which, cues)
    if key not in question.options and which.lower() in cues.ordinals:
        return dict(enumerate(question.options.values(), start=1)).get(int(key))
    return question.options.get(key)


def _is_article(text: str, point: re.Match[str]) -> bool:
    """ "a simple one" does not choose option A."""
    return point["which"] in "ai" and text[point.end("which") :][:1] in (" ", "'")


def _agreed(statements: list[Statement], question: Asked, language: Language) -> str | None:
    text = statements[0].text
    plain = question.closing and not question.options and language.answers.choice.search(question.question)
    if not plain or not language.answers.yes.match(text) or _either(question.question):
        return None
    return _join(question.question, text, "")


def _short(statements: list[Statement], question: Asked, language: Language) -> str | None:
    text = statements[0].text
    cues = language.answers
    words = text.split() if language.joiner else text
    if question.options or not question.closing or len(words) > _MAX_SHORT_WORDS or _asks(text):
        return None
    said = classify(text, language)
    if said and said.kept:
        return None  # it needs no question to be understood
    other = (cues.vague, cues.yes, cues.no, language.reject["errand"])
    if any(pattern.match(text) for pattern in other) or not cues.choice.search(question.question):
        return None
    return _join(question.question, text, "")


def _either(question: str) -> bool:
    return bool(re.search(r"\bor\b|还是", question, re.IGNORECASE))


def _asks(text: str) -> bool:
    return bool(_QUESTION_END.search(text))


def _key(which: str, cues: Answers) -> str:
    lower = which.lower()
    return cues.ordinals.get(lower, lower)


def _first_sentence(text: str) -> str:
    parts = split(text)
    return (parts[0].text if parts else text)[:_MAX_OPTION].strip()


def _join(question: str, answer: str, rest: str) -> str:
    answer = answer[0].upper() + answer[1:] if answer else answer
    if answer and rest and answer[-1] not in ".!?。！？":
        answer += "."
    return " ".join(part.strip() for part in (question, answer, rest) if part.strip())
