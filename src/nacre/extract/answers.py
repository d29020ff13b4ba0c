"""Complete an answer that only points ("A.", "let's do 1", "yes") with the words it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nacre.extract.classify import Verdict, classify
from nacre.extract.context import leans
from nacre.extract.cues import Answers, Language, language_of
from nacre.extract.findings import Finding, to_finding
from nacre.extract.reversal import content_words
from nacre.extract.sentences import Statement, split
from nacre.extract.speech import Utterance, is_taken_back, trusted_agent
from nacre.extract.subject import names_something
from nacre.model.memory import Kind
from nacre.model.session import Turn

_MARKUP = re.compile(r"\*\*|__|^#+\s*|^>\s*", re.MULTILINE)
_LABEL = re.compile(
    r"^(?:\w+ ){0,2}\w+:\s+(?=[A-Z`])|^[^:?]{3,40}:\s+(?=(?:should|which|where|what|how|do|is|shall)\b)"
)
_QUESTION_END = re.compile(r"[?？]\W*$")
_PAIR = re.compile(r"^(?P<question>.{10,400}?[?？:：])\s*(?:→|=>|->)\s*(?P<answer>\S.*)$")
_MAX_QUESTION = 300
_MAX_OPTION = 250
_MAX_SHORT_WORDS = 12
_MAX_LONG_WORDS = 60
_LEAST_TELLING = 5
_CLOSING_STATEMENTS = 6
_MOST_POINTED = 2
_COUNTING = frozenset("two three four way option approach choice plan step thing idea possibility there".split())

POINTED = 1.1
"""What an answer weighs that was completed: as much as a plain decision."""


@dataclass(frozen=True, slots=True)
class Asked:
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
            leaning = language.lean.start.match(text)
            finding = None if leaning else to_finding(_verdict(text, language), text, evidence, language)
            if finding:
                yield finding


def _verdict(text: str, language: Language) -> Verdict:
    said = classify(text, language)
    kind = said.kind if said and said.kept else Kind.DECISION
    return Verdict(text, kind, POINTED, POINTED, strong=bool(said and said.strong))


def asked(text: str) -> Asked:
    """Read the end of an agent's message."""
    cues = language_of(text).answers
    plain = _MARKUP.sub("", text)
    options: dict[str, str] = {}
    for line in plain.split("\n"):
        option = cues.option.match(line)
        if option:
            options[_key(option["which"], cues)] = _first_sentence(option["text"])
    prose = [one.text for one in split(plain) if not cues.option.match(one.text) and one.mark is None]
    ending = [_LABEL.sub("", one) for one in prose[-_CLOSING_STATEMENTS:]]
    questions = [one for one in ending if _is_question(one, cues)]
    durable = [one for one in questions if not cues.errand.search(one)]
    question = durable[-1] if durable else ""
    vague = bool(cues.which.search(question))
    return Asked(
        question=_intro(plain, cues) if options and (vague or not question) else "" if vague else question,
        vague=vague,
        about=content_words(" ".join(ending), language_of(text)),
        options=options,
        closing=bool(durable) and prose[-1].endswith(durable[-1]),
        either=_either_of(ending, cues),
        choosing=any(cues.choosing.search(one) for one in prose),
    )


def _intro(text: str, cues: Answers) -> str:
    """The line that leads into the options, where it names what they are about: "Two ways to limit uploads:"."""
    before = ""
    for line in text.split("\n"):
        if cues.option.match(line):
            break
        before = line.strip() or before
    language = language_of(before)
    last = before.rpartition(". ")[2]
    told = content_words(last, language) - language.subject.generic - _COUNTING
    return last if last.endswith((":", "：")) and len(told) > 1 and not cues.errand.search(last) else ""


def _is_question(text: str, cues: Answers) -> bool:
    return _asks(text) or (text.endswith((":", "：")) and bool(cues.choice.search(text)))


def _either_of(ending: Sequence[str], cues: Answers) -> str:
    """The question of two ways at the end of a message, with the ways where they follow it."""
    last = ending[-1] if ending else ""
    if _asks(last) and cues.either.search(last) and not cues.chore.search(last):
        return last
    before = ending[-2] if len(ending) > 1 else ""
    if _asks(before) and cues.either.search(last) and not cues.chore.search(before):
        return f"{before} {last}"
    return ""


def complete(statements: Sequence[Statement], question: Asked, language: Language) -> list[str]:
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


def _by_mark(statements: Sequence[Statement], question: Asked, language: Language) -> list[str | None]:
    """Answers listed under the letters or numbers of the options: "B. but not for guests"."""
    cues = language.answers
    chosen = [(one, question.options.get(_key(one.mark, cues))) for one in statements if one.mark]
    return [
        _join(question.question, option, one.text)
        for one, option in chosen
        if option and not _asks(one.text) and (question.question or len(chosen) == 1)
    ]


def pairs(text: str) -> list[str]:
    """Questions a tool put to the owner, one a line with its answer: the two together."""
    found = (_PAIR.match(line.strip()) for line in text.split("\n"))
    return [_join(match["question"], match["answer"], "") for match in found if match]


def _pointed(statements: Sequence[Statement], question: Asked, language: Language) -> str | None:
    text = statements[0].text
    point = language.answers.point.match(text)
    if not point or _is_article(text, point):
        return None
    option = _chosen(point["which"], question, language.answers)
    if not option or _asks(text):
        return None
    rest = language.trim(text[point.end() :]).strip(".。!！)）")
    rest = rest if names_something(rest, language) or any(map(str.isdigit, rest)) else ""
    more = [one.text for one in statements[1:] if not _asks(one.text)]
    told = language.joiner.join([rest, *more[:2]]) if rest or _goes_with(more, language) else ""
    return _join(question.question, option, told)


def _goes_with(more: Sequence[str], language: Language) -> bool:
    """Whether what follows the choice is about it: "2. but without the cache"."""
    return bool(more) and bool(language.answers.but.match(more[0]))


def _chosen(which: str, question: Asked, cues: Answers) -> str | None:
    """The option with that letter or number; "the second" is the second of any, "the last" the last."""
    key = _key(which, cues)
    if key in question.options:
        return question.options[key]
    offered = list(question.options.values())
    at = {"-1": len(offered)}.get(key, int(key) if key.isdigit() and which.lower() in cues.ordinals else 0)
    return offered[at - 1] if 0 < at <= len(offered) else None


def _is_article(text: str, point: re.Match[str]) -> bool:
    """ "a simple one" does not choose option A."""
    return point["which"] in "ai" and text[point.end("which") :][:1] in (" ", "'")


def _agreed(statements: Sequence[Statement], question: Asked, language: Language) -> str | None:
    text = statements[0].text
    plain = question.closing and not question.options and language.answers.choice.search(question.question)
    if not plain or not language.answers.yes.match(text) or language.answers.either.search(question.question):
        return None
    more = [one.text for one in statements[1:2] if _goes_with([one.text], language)]
    return _join(question.question, text, *more)


def _short(statements: Sequence[Statement], question: Asked, language: Language) -> str | None:
    text = statements[0].text
    cues = language.answers
    words = text.split() if language.joiner else text
    if question.options or not question.closing or len(words) > _MAX_SHORT_WORDS or _says_it_alone(text, language):
        return None
    other = (cues.vague, cues.yes, cues.no, language.reject["errand"])
    if any(pattern.match(text) for pattern in other) or not cues.choice.search(question.question):
        return None
    return _join(question.question, text)


def _elaborated(statements: Sequence[Statement], question: Asked, language: Language) -> str | None:
    """A question of two ways, answered in some words: which, and till when or why."""
    said = [one.text for one in statements[:3] if not _asks(one.text)]
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
    said = classify(text, language)
    return _asks(text) or bool(said and said.kept and not leans(text, language))


def _asks(text: str) -> bool:
    return bool(_QUESTION_END.search(text))


def _key(which: str, cues: Answers) -> str:
    lower = which.lower()
    return cues.ordinals.get(lower, lower)


def _first_sentence(text: str) -> str:
    parts = split(text)
    return (parts[0].text if parts else text)[:_MAX_OPTION].strip()


def _join(question: str, *answers: str | None) -> str:
    """Question and answers in a row, each a sentence."""
    said = [one.strip() for one in answers if one and one.strip()]
    parts = [one[0].upper() + one[1:] for one in said]
    ended = [one if one[-1] in ".!?。！？;；" else f"{one}." for one in parts[:-1]]
    return " ".join(one for one in (question, *ended, *parts[-1:]) if one)
