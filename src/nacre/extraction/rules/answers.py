"""Finds, in words: an answer that only points ("A.", "yes"), completed with what it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nacre.extraction.explicit.find import STATED, stated
from nacre.extraction.reading.cue_sets import Answers
from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.leaning import leans
from nacre.extraction.reading.questions import ClosingQuestion, asked, is_asking, option_key
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.reading.speech import Utterance, is_taken_back, trusted_agent
from nacre.extraction.rules.findings import Finding, as_sentence, subject_of
from nacre.extraction.rules.reversal import content_words
from nacre.extraction.rules.validate import size_refusal
from nacre.values.memory import Kind
from nacre.values.session import Turn

_PAIR = re.compile(r"^(?P<question>.{10,400}?[?？:：])\s*(?:[→⇒]|=>|->)\s*(?P<answer>\S.*)$")
_MAX_QUESTION = 300
_MAX_SHORT_WORDS = 12
_MAX_LONG_WORDS = 60
_LEAST_TELLING = 5
_MOST_POINTED = 2
POINTED = 1.1
"""What an answer weighs that was completed: as much as a plain decision."""


def answered(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """The answers of all messages, completed with what they answer."""
    for utterance in spoken:
        language = language_of(utterance.text)
        texts: list[tuple[str, tuple[int, ...]]] = [(text, (utterance.index,)) for text in pairs(utterance.text)]
        agent = trusted_agent(turns, utterance.index)
        if agent is not None and not is_taken_back(utterance, 0):
            completed = complete(utterance.statements, asked(turns[agent].text), language)
            texts += [(text, (agent, utterance.index)) for text in completed]
        for text, evidence in texts:
            if not language.lean.start.match(text) and not size_refusal(text):
                said = stated(text)
                yield Finding(
                    kind=said.kind if said else Kind.DECISION, subject=subject_of(text), content=as_sentence(text),
                    spoken=text, index=evidence[-1], evidence=evidence, score=POINTED, importance=STATED,
                )  # fmt: skip


def complete(statements: Sequence[Statement], question: ClosingQuestion, language: Language) -> list[str]:
    """The owner's pointing statements, completed; nothing where an answer points at nothing durable."""
    if not statements or len(question.question) > _MAX_QUESTION:
        return []
    if question.question or question.choosing:
        by_mark = _by_mark(statements, question, language)
        pointed = by_mark or [_pointed(statements, question, language)]
        if pointed[0]:
            return [one for one in pointed if one][:_MOST_POINTED]
    for attempt in (_agreed, _short, _elaborated):
        text = attempt(statements, question, language)
        if text:
            return [text]
    return []


def _by_mark(statements: Sequence[Statement], question: ClosingQuestion, language: Language) -> list[str | None]:
    """Answers listed under the letters or numbers of the options: "B. but not for guests"."""
    cues = language.answers
    chosen = [(one, question.options.get(option_key(one.mark, cues))) for one in statements if one.mark]
    return [
        _join(question.question, option, one.text)
        for one, option in chosen
        if option and not is_asking(one.text) and (question.question or len(chosen) == 1)
    ]


def pairs(text: str) -> list[str]:
    """Questions a tool put to the owner, one a line with its answer: the two together."""
    found = (_PAIR.match(line.strip()) for line in text.split("\n"))
    return [_join(match["question"], match["answer"], "") for match in found if match]


def _pointed(statements: Sequence[Statement], question: ClosingQuestion, language: Language) -> str | None:
    text = statements[0].text
    point = language.answers.point.match(text)
    if not point or _is_article(text, point):
        return None
    option = _chosen(point["which"], question, language.answers)
    if not option or is_asking(text):
        return None
    rest = language.trim(text[point.end() :]).strip(".。!！)）")
    rest = rest if content_words(rest, language) or any(map(str.isdigit, rest)) else ""
    more = [one.text for one in statements[1:] if not is_asking(one.text)]
    told = language.joiner.join([rest, *more[:2]]) if rest or _goes_with(more, language) else ""
    return _join(question.question, option, told)


def _goes_with(more: Sequence[str], language: Language) -> bool:
    """Whether what follows the choice is about it: "2. but without the cache"."""
    return bool(more) and bool(language.answers.but.match(more[0]))


def _chosen(which: str, question: ClosingQuestion, cues: Answers) -> str | None:
    """The option with that letter or number; "the second" is the second of any, "the last" the last."""
    key = option_key(which, cues)
    if key in question.options:
        return question.options[key]
    offered = list(question.options.values())
    at = {"-1": len(offered)}.get(key, int(key) if key.isdigit() and which.lower() in cues.ordinals else 0)
    return offered[at - 1] if 0 < at <= len(offered) else None


def _is_article(text: str, point: re.Match[str]) -> bool:
    """ "a simple one" does not choose option A."""
    return point["which"] in "ai" and text[point.end("which") :][:1] in (" ", "'")


def _agreed(statements: Sequence[Statement], question: ClosingQuestion, language: Language) -> str | None:
    text = statements[0].text
    plain = question.closing and not question.options and language.answers.choice.search(question.question)
    if not plain or not language.answers.yes.match(text) or language.answers.either.search(question.question):
        return None
    more = [one.text for one in statements[1:2] if _goes_with([one.text], language)]
    return _join(question.question, text, *more)


def _short(statements: Sequence[Statement], question: ClosingQuestion, language: Language) -> str | None:
    text = statements[0].text
    cues = language.answers
    words = text.split() if language.joiner else text
    if question.options or not question.closing or len(words) > _MAX_SHORT_WORDS or _says_it_alone(text, language):
        return None
    other = (cues.vague, cues.yes, cues.no, language.reject["errand"])
    if any(pattern.match(text) for pattern in other) or not cues.choice.search(question.question):
        return None
    return _join(question.question, text)


def _elaborated(statements: Sequence[Statement], question: ClosingQuestion, language: Language) -> str | None:
    """A question of two ways, answered in some words: which, and till when or why."""
    said = [one.text for one in statements[:3] if not is_asking(one.text)]
    words = " ".join(said).split() if language.joiner else "".join(said)
    asked_for = question.either or question.vague
    if not said or not asked_for or question.options or len(question.either) > _MAX_QUESTION:
        return None
    about = content_words(" ".join(said), language)
    picks_one = about <= content_words(question.either, language) and len(statements) == 1
    if not (picks_one or len(words) >= _LEAST_TELLING) or len(words) > _MAX_LONG_WORDS:
        return None
    if language.answers.vague.match(said[0]) or language.reject["transient"].search(said[0]):
        return None
    told = about & question.about and not _says_it_alone(said[0], language)
    return _join(question.either, *said) if told else None


def _says_it_alone(text: str, language: Language) -> bool:
    """Whether an answer asks back, or needs no question to be understood."""
    return is_asking(text) or (stated(text) is not None and not leans(text, language))


def _join(question: str, *answers: str | None) -> str:
    """Question and answers in a row, each a sentence."""
    said = [one.strip() for one in answers if one and one.strip()]
    parts = [one[0].upper() + one[1:] for one in said]
    ended = [one if one[-1] in ".!?。！？;；" else f"{one}." for one in parts[:-1]]
    return " ".join(one for one in (question, *ended, *parts[-1:]) if one)
