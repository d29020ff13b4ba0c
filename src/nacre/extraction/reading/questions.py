"""Reads for answers: what an agent's message asks at its end, and the options it offers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from nacre.extraction.reading.cue_sets import Answers
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.sentences import split
from nacre.extraction.rules.reversal import content_words

_MARKUP = re.compile(r"\*\*|__|^#+\s*|^>\s*", re.MULTILINE)
_LABEL = re.compile(r"^(?:\w+ ){0,2}\w+:\s+(?=[A-Z`])")
_LEAD_IN = re.compile(r"^[^:?]{3,40}:\s+")
_QUESTION_END = re.compile(r"[?？]\W*$")
_MAX_OPTION = 250
_CLOSING_STATEMENTS = 6


@dataclass(frozen=True, slots=True)
class ClosingQuestion:
    """What an agent's message asks at its end.

    ``question`` is about how things are to be, with the ``options`` offered; ``closing`` says that nothing
    follows it. ``either`` is a question that offers two ways, whatever it is about; ``choosing`` says that the
    message asks to choose among its options, or recommends one; ``vague`` that its question names nothing ("which
    one?"). ``about`` are the words of its end.
    """

    question: str = ""
    options: dict[str, str] = field(default_factory=dict)
    closing: bool = False
    either: str = ""
    choosing: bool = False
    vague: bool = False
    about: frozenset[str] = frozenset()


def asked(text: str) -> ClosingQuestion:
    """Read the end of an agent's message."""
    cues = language_of(text).answers
    plain = _MARKUP.sub("", text)
    options: dict[str, str] = {}
    for line in plain.split("\n"):
        option = cues.option.match(line)
        if option:
            options[option_key(option["which"], cues)] = _first_sentence(option["text"])
    prose = [one.text for one in split(plain) if not cues.option.match(one.text) and one.mark is None]
    ending = [_unlabelled(one, cues) for one in prose[-_CLOSING_STATEMENTS:]]
    questions = [one for one in ending if _is_question(one, cues)]
    durable = [one for one in questions if not cues.errand.search(one)]
    question = durable[-1] if durable else ""
    vague = bool(cues.which.search(question))
    return ClosingQuestion(
        question=_intro(plain, cues) if options and (vague or not question) else "" if vague else question,
        vague=vague,
        about=content_words(" ".join(ending), language_of(text)),
        options=options,
        closing=bool(durable) and prose[-1].endswith(durable[-1]),
        either=_either_of(ending, cues),
        choosing=any(cues.choosing.search(one) for one in prose),
    )


def _unlabelled(text: str, cues: Answers) -> str:
    """Without what leads into a question: "One question: …", "Before I change it: should …"."""
    lead = _LEAD_IN.match(text)
    if lead and cues.asks.match(text[lead.end() :]):
        return text[lead.end() :]
    return _LABEL.sub("", text)


def _intro(text: str, cues: Answers) -> str:
    """The line that leads into the options, where it names what they are about: "Two ways to limit uploads:"."""
    before = ""
    for line in text.split("\n"):
        if cues.option.match(line):
            break
        before = line.strip() or before
    language = language_of(before)
    last = before.rpartition(". ")[2]
    told = content_words(last, language, language.subject.generic | cues.counting)
    return last if last.endswith((":", "：")) and len(told) > 1 and not cues.errand.search(last) else ""


def _is_question(text: str, cues: Answers) -> bool:
    return is_asking(text) or (text.endswith((":", "：")) and bool(cues.choice.search(text)))


def _either_of(ending: Sequence[str], cues: Answers) -> str:
    """The question of two ways at the end of a message, with the ways where they follow it."""
    last = ending[-1] if ending else ""
    if is_asking(last) and cues.either.search(last) and not cues.chore.search(last):
        return last
    before = ending[-2] if len(ending) > 1 else ""
    if is_asking(before) and cues.either.search(last) and not cues.chore.search(before):
        return f"{before} {last}"
    return ""


def _first_sentence(text: str) -> str:
    parts = split(text)
    return (parts[0].text if parts else text)[:_MAX_OPTION].strip()


def is_asking(text: str) -> bool:
    """Whether a text ends with a question."""
    return bool(_QUESTION_END.search(text))


def option_key(which: str, cues: Answers) -> str:
    """The letter or number of an option: "B" and "b", "second" and "2" are the same."""
    lower = which.lower()
    return cues.ordinals.get(lower, lower)
