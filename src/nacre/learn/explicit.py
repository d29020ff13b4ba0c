"""Reads: whether a statement leans on one before it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nacre.base.text import shorten
from nacre.learn.pasted import cues
from nacre.learn.reading import (
    ClosingQuestion,
    Finding,
    announces,
    as_sentence,
    asked,
    content_words,
    is_asking,
    may_be_others,
    option_key,
    subject_of,
)
from nacre.learn.sentences import (
    Answers,
    Language,
    Statement,
    Utterance,
    before,
    behind_own_lead,
    is_chosen,
    language_of,
    leads_others,
    split,
    trusted_agent,
)
from nacre.learn.sentences import is_taken_back as sentences_is_taken_back
from nacre.readers.trust import CHOSEN, reached_out
from nacre.values.memory import Expiry, Kind
from nacre.values.session import Speaker, Trust, Turn


def leans(text: str, language: Language) -> bool:
    """Whether a pronoun in the text has nothing in the text to stand for."""
    if language.lean.start.match(text) or language.lean.object.search(text):
        return True
    pronoun = language.lean.inside.search(text)
    if pronoun is None:
        return False
    before = text[: pronoun.start()]
    return not (language.lean.named.search(before) or content_words(before, language))


# ----------------------------------------------------------------------------
# Find what the owner stated explicitly, by the cues in ``cues.toml``; everything else waits for a
# writer.
#
# A statement is a memory if it has a cue (an order to remember, a standing rule, a preference, a
# decision, a change, a
# practice), stands by itself, and outlasts the task at hand.


REMEMBERED, STATED = 8, 7
"""How much weighs what was to be remembered, and what was stated."""

SURE, LIKELY, MAYBE = 2.0, 1.0, 0.8
"""The score of a memory, that of a candidate, and that of one that only tells how something is."""

_REFUSED = ("identifier", "boilerplate")
_NOT_KEPT = (*_REFUSED, "question", "hypothetical", "meta", "transient", "errand")
"""Reasons to refuse what is stated, and what is announced or to be remembered, by their names in the cue tables."""

_FEWEST, _FEWEST_INTRODUCED = 4, 3
_MOST = 60
_FIRST = 3
_TYPED = 6
"""Statements of a message, at most: longer ones are tasks with all that belongs to them, and pages."""
_QUOTES = tuple('"“”„«「『')
_BETWEEN = " ,;:.—–-，、：。て了"
_THAT = re.compile(
    r"^(?:(?:please|bitte|também|también|also|auch|anche|aussi)\b[\s:,]*)?"
    r"(?:(?:(?:for|für|pour|para|per|voor|dla|för|на)\b[^.:]{2,40}?\s)??(?:that|dass|daß|que|qu'|che|że|что|dat|att)\b\s*)?",
    re.IGNORECASE,
)
"""What stands between an order to remember and what is to be remembered."""
_TO_DO = re.compile(
    r"to-?do\b|action item|(?:forget|remind (?:me|us)) to\b|vergiss nicht zu\b|(?:别忘了?|提醒我们?)(?![：:，,])",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[,;:.!?—–，。：；]")
_ASKED = re.compile(rf"^.*[?？:：] {CHOSEN} ")
"""The question of a form before its answer."""
_BESIDE_POINTER = 3
_FOR_AGENTS = re.compile(
    r"(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|instructions|rules)\b", re.IGNORECASE
)
"""Files of standing rules: who orders to write into them says what is to be kept."""
_CONCRETE = re.compile(r"[\d`/\"_]|\w[.-]\w|(?<=[\w,] )[A-Z]\w|[一-鿿][A-Za-z]")
"""A number, a name, an address or a piece of code."""
_LEAD = re.compile(r"([^:：\n]{3,80})[:：]\s*(?=\S)")
_THAT_ONE = re.compile(
    r"(?:(?:please|bitte|also|and|so|und) )*(?:\w+ )?(?:this|that|it|das|es|dies|这|都)\b",
    re.IGNORECASE,
)
"""The beginning of a sentence about the one before it."""
_MAX_CONFIRMING_WORDS = 12
_TO = re.compile(r"^to\s+(?=\w)", re.IGNORECASE)
_RECALLED, _LONGEST_RECALLED = 3, 400
_OF_BEFORE = re.compile(r"\b(?:it|this|these|those|they|them|both)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Said:
    """A statement that is to be kept: of which kind, how much it weighs, whether what is to be kept was said before,
    and how sure it is, where it is to wait."""

    kind: Kind
    text: str
    importance: int
    points: bool = False
    score: float = SURE


def explicit(
    turns: Sequence[Turn], spoken: Sequence[Utterance], *, is_note: bool = False
) -> Iterator[Finding]:
    """Yield what is explicit in all messages, unless the owner took it back in the same message or the next.

    Candidates have a score below ``SURE``: what is about the task at hand; what may be somebody else's, but in a note;
    what the agent said, or a rule in its words that was chosen, once the session had read text from outside.
    """
    for at, utterance in enumerate(spoken):
        if is_refused(spoken, at):
            continue
        is_typed = len(utterance.statements) <= _TYPED
        texts = [one.text for one in utterance.statements]
        for place, statement in enumerate(utterance.statements):
            if is_taken_back(texts, place):
                continue
            said = remembered(statement.text)
            if said is None and is_typed:
                said = _stated(statement) or definite(statement.text)
            is_shown = not is_note and may_be_others(statement)
            if said is None or (said.points and is_shown):
                continue
            recalled = (
                _recalled(turns, utterance, place, own_only=said.importance < REMEMBERED)
                if said.points
                else (said.text, (utterance.index,))
            )
            if recalled:
                found = _finding(said, *recalled)
                is_agents = len(found.evidence) > 1 or (
                    found.kind is Kind.PREFERENCE and is_chosen(utterance, statement)
                )
                is_nodded = is_agents and reached_out(turns, utterance.index)
                waits = is_shown or is_nodded
                score = min(found.score, LIKELY) if waits else found.score
                yield replace(
                    found,
                    score=score,
                    shown=is_shown,
                    nodded=is_nodded,
                    mixed=statement.mixed and not is_note,
                )


def is_taken_back(texts: Sequence[str], place: int) -> bool:
    """Whether what stands behind the statement at ``place`` of a message takes it back."""
    return any(map(cues().taken_back.search, texts[place + 1 :]))


def is_refused(spoken: Sequence[Utterance], at: int) -> bool:
    """Whether the message after the one at a place takes back what that said."""
    following = spoken[at + 1].statements[:_FIRST] if at + 1 < len(spoken) else ()
    return bool(cues().taken_back.search(" ".join(one.text for one in following if not one.marked)))


def is_stated(text: str) -> bool:
    """Whether a sentence states something, and neither asks, supposes nor reports it of others."""
    return not is_asking(text) and not any(
        one.search(text) for one in (cues().asking, cues().supposed, cues().irony)
    )


def remembered(text: str) -> Said | None:
    """What a sentence asks to remember, if it does."""
    known = cues()
    text = text.replace("’", "'")
    bare = language_of(text).trim(text)
    if known.irony.search(text) or (is_asking(text) and not known.requested.search(bare)):
        return None
    order = _order(bare)
    if order and not known.not_remembered.search(bare):
        return _remembered(order)
    return _introduced(bare) or _confirmed(bare)


def _introduced(text: str) -> Said | None:
    """Return what follows a short lead that asks to keep it, such as "one lasting thing: …"."""
    colon = _LEAD.match(text)
    if not colon or not cues().kept_words.search(colon[1]) or leads_others(text):
        return None
    if language_of(text).reject["errand"].search(colon[1]):
        return None
    rest = text[colon.end() :].strip()
    if is_asking(rest) or not (_is_sized(rest, _FEWEST_INTRODUCED) and _stands_alone(rest)):
        return None
    return Said(_kind_to_keep(rest), rest, REMEMBERED)


def _confirmed(text: str) -> Said | None:
    """Return a pointer to the sentence before, if this one asks to keep it."""
    if ":" in text or len(text.split()) > _MAX_CONFIRMING_WORDS or not _THAT_ONE.match(text):
        return None
    if not (cues().kept_words.search(text) or cues().rule.search(text)):
        return None
    return Said(Kind.PREFERENCE, text, STATED, points=True)


def stated(text: str) -> Said | None:
    """Return what a sentence states by a cue: as a candidate if it is about the task at hand."""
    text = _ASKED.sub("", text.replace("’", "'"))
    bare = _bare(text)
    request = cues().requested.match(bare)
    if request:
        return _habit(bare[request.end() :].strip(" ,?？"), bare)
    mentioned = _mentioned(text)
    if mentioned or not (_is_sized(bare) and is_stated(text) and _stands_alone(bare)):
        return mentioned
    kind = _kind_of(bare)
    if kind is None:
        return _owned(bare)
    return Said(kind, bare, STATED, score=LIKELY if _is_passing(bare) else SURE)


def _habit(wish: str, request: str) -> Said | None:
    """Return the wish of a request put as a question, if it asks for a habit."""
    is_habit = cues().habit.search(request) and _is_sized(wish) and _stands_alone(wish)
    return Said(Kind.PREFERENCE, wish, STATED) if is_habit and not _is_passing(wish) else None


def _mentioned(text: str) -> Said | None:
    """Return the fact behind "just so you know" or, if it names something, behind "by the way"."""
    announced = cues().announced.match(text)
    lead = announced or cues().mentioned.match(text)
    fact = text[lead.end() :].lstrip(_BETWEEN) if lead else ""
    if not (fact and (announced or _CONCRETE.search(fact)) and _is_lasting_fact(fact)):
        return None
    return Said(_kind_to_keep(fact), fact, STATED)


def _owned(text: str) -> Said | None:
    """Return a sentence that states a name, number or address of something of the owner's."""
    own = cues().owned.match(text)
    if not (own and cues().definite.match(text) and _CONCRETE.search(text[own.end() :])):
        return None
    return Said(Kind.FACT, text, STATED) if _is_lasting_fact(text) else None


def _is_lasting_fact(text: str) -> bool:
    """Return True if a sentence is understandable alone, and not about its speaker's present work."""
    return (
        _is_sized(text)
        and is_stated(text)
        and _stands_alone(text)
        and _is_kept(text)
        and not (_is_passing(text) or cues().own_errand.match(text))
    )


def _stated(statement: Statement) -> Said | None:
    """Return what a statement says, or what stands behind a lead that announces it ("Reminder: …")."""
    text = statement.text.replace("’", "'")
    if text.lstrip().startswith(">"):
        return None
    rest = behind_own_lead(text)
    if not announces(text.removesuffix(rest) if rest else statement.lead or ""):
        return (stated(rest) if rest else None) or stated(text)
    told = _bare(rest or text)
    if not (
        _is_sized(told, _FEWEST_INTRODUCED)
        and is_stated(told)
        and _stands_alone(told)
        and _is_kept(told)
    ):
        return None
    return None if _is_passing(told) else Said(_kind_to_keep(told), told, STATED)


def definite(text: str) -> Said | None:
    """Return a sentence that tells in definite words how something is: it may matter, and waits."""
    bare = _bare(text)
    if not (
        cues().definite.match(bare) and _is_sized(bare) and is_stated(text) and _stands_alone(bare)
    ):
        return None
    return Said(_kind_to_keep(bare), bare, STATED - 1, score=MAYBE) if _is_kept(bare) else None


def _bare(text: str) -> str:
    """Return a sentence without conversational beginning and end, and without "that's wrong:"."""
    language = language_of(text)
    bare = language.trim(text)
    corrected = language.correction.match(bare)
    return language.trim(bare[corrected.end() :]) if corrected else bare


def _kind_of(text: str) -> Kind | None:
    """Return the kind of memory that the cues in a sentence make it."""
    known = cues()
    if known.decided.search(text) or known.changed.search(text):
        return Kind.DECISION
    if any(
        one.search(text)
        for one in (known.ordered, known.rule, known.standing, known.place, known.preferred)
    ):
        return Kind.PREFERENCE
    return Kind.FACT if known.practice.search(text) else None


def _kind_to_keep(text: str) -> Kind:
    """Return the kind of what is to be remembered: a fact unless its words say otherwise."""
    is_order = language_of(text).mark_named("imperative").search(text) or cues().lasting.search(
        text
    )
    return _kind_of(text) or (Kind.PREFERENCE if is_order else Kind.FACT)


def _stands_alone(text: str) -> bool:
    """Return True if a sentence points at nothing outside it, and quotes nobody."""
    language = language_of(text)
    return not (
        text.startswith(_QUOTES)
        or leans(text, language)
        or language.answers.only_points(text)
        or cues().this_way.search(text)
    )


def _is_passing(text: str) -> bool:
    """Return True if a sentence is about the task at hand, or about what just happened."""
    known, language = cues(), language_of(text)
    is_rule = bool(known.rule.search(text) or known.standing.search(text))
    refused = _REFUSED if is_rule else (*_REFUSED, "errand")
    if known.passing.search(text) or any(language.reject[name].search(text) for name in refused):
        return True
    is_lasting = is_rule or bool(known.lasting.search(text) or known.habit.search(text))
    return not is_lasting and bool(
        known.step.search(text) or language.mark_named("deixis").search(text)
    )


def _is_kept(text: str) -> bool:
    """Return True if what is announced or to be remembered may be worth it: not "note that you forgot the test"."""
    language = language_of(text)
    return not any(language.reject[name].search(text) for name in _NOT_KEPT)


def _order(text: str) -> re.Match[str] | None:
    """The order to remember in a sentence, at the beginning of a clause or behind "can you"."""
    asked = cues().requested.search(text)
    return cues().remember.search(text) or (
        cues().remember.match(text[asked.end() :].lstrip()) if asked else None
    )


def _remembered(order: re.Match[str]) -> Said | None:
    """What an order is about: what stands behind it or, where that points at something, behind a colon or before it."""
    rest = (
        _THAT.sub("", order.string[order.end() :].lstrip(_BETWEEN), count=1)
        .lstrip(_BETWEEN)
        .rstrip("?？ ")
    )
    behind, before = _behind_colon(rest), order.string[: order.start()].rstrip(_BETWEEN)
    pointer, pointed = cues().pointing.match(rest), cues().pointing.search(order.group())
    if (
        not _is_sized(behind)
        and len(_CLAUSES.split(_said_of_it(order, rest, pointer))[0].split()) > _BESIDE_POINTER
    ):
        return None  # "note it has to fit on a page" says something of what only the turns before it name
    if (pointer or (pointed and not _introduces(order))) or not any(map(str.isalnum, rest)):
        own = next(filter(_is_sized, (behind, before)), None)
        if own == before and cues().supposed.search(before):
            return None
    elif (_introduces(order) and _is_sized(rest, _FEWEST_INTRODUCED)) or (
        _is_sized(rest)
        and (_TO_DO.search(order.group()) or _FOR_AGENTS.search(order.group()) or _is_kept(rest))
    ):
        own = rest
    else:
        return None
    kind = Kind.TODO if _TO_DO.search(f"{order.group()} {rest}") else _kind_to_keep(own or rest)
    return Said(kind, _TO.sub("", own or rest), REMEMBERED, points=own is None)


def _introduces(order: re.Match[str]) -> bool:
    """Whether a colon follows an order: that leaves no doubt of what is to be remembered."""
    return order.string[order.end() :].lstrip().startswith((":", "："))


def _said_of_it(order: re.Match[str], rest: str, pointer: re.Match[str] | None) -> str:
    """What is said of the thing at which an order points."""
    if pointer:
        return rest[pointer.end() :]
    is_pointing = cues().pointing.fullmatch(order.group().split()[-1])
    return rest if is_pointing and order.string[order.end() :].startswith(" ") else ""


def _behind_colon(text: str) -> str:
    return text.partition(":")[2].strip() or text.partition("：")[2].strip()


def _is_sized(text: str, fewest: int = _FEWEST) -> bool:
    """Whether a text has words enough to say something, and not too many; two characters of Chinese count as one."""
    wide = sum(character > "\u2e7f" for character in text)
    return fewest <= len(text.split()) + wide // 2 <= _MOST


def _recalled(
    turns: Sequence[Turn], utterance: Utterance, place: int, *, own_only: bool = False
) -> tuple[str, tuple[int, ...]] | None:
    """What stands before an order to remember it, and where: the owner's own sentence, or what the agent said last."""
    own = [one.text for one in utterance.statements[:place] if _is_sized(one.text)][-2:]
    if own and not is_asking(own[-1]):
        points_back = leans(own[-1], language_of(own[-1])) or _OF_BEFORE.search(own[-1])
        return " ".join(own if points_back and not is_asking(own[0]) else own[-1:]), (
            utterance.index,
        )
    told = None if own_only else before(turns, utterance.index, Speaker.AGENT)
    if told is None or turns[told].trust is not Trust.TRUSTED:
        return None
    stated = [one.text for one in split(turns[told].text) if not is_asking(one.text)]
    text = shorten(" ".join(stated[:_RECALLED]), _LONGEST_RECALLED)
    return (text, (told, utterance.index)) if text else None


def _finding(said: Said, content: str, evidence: tuple[int, ...]) -> Finding:
    content = as_sentence(content)
    return Finding(
        kind=said.kind,
        subject=subject_of(content),
        content=content,
        spoken=said.text,
        index=evidence[-1],
        evidence=evidence,
        score=said.score,
        importance=said.importance,
        expiry=Expiry.TEMPORARY if said.kind is Kind.TODO else Expiry.PERMANENT,
    )


# ----------------------------------------------------------------------------
# Refuses: why a statement is not worth keeping, if so.


MIN_WIDTH = 20
MAX_CHARACTERS = 700


def size_refusal(content: str, most: int = MAX_CHARACTERS) -> str | None:
    """``short`` or ``long``; a wide character says as much as three narrow ones. ``most``: characters."""
    width = sum(
        3 if unicodedata.east_asian_width(character) in "WF" else 1 for character in content
    )
    if width < MIN_WIDTH:
        return "short"
    return "long" if len(content) > most else None


# ----------------------------------------------------------------------------
# Finds, in words: an answer that only points ("A.", "yes"), completed with what it answers.


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
        texts: list[tuple[str, tuple[int, ...]]] = [
            (text, (utterance.index,)) for text in pairs(utterance.text)
        ]
        agent = trusted_agent(turns, utterance.index)
        if agent is not None and not sentences_is_taken_back(utterance, 0):
            completed = complete(utterance.statements, asked(turns[agent].text), language)
            texts += [(text, (agent, utterance.index)) for text in completed]
        for text, evidence in texts:
            if not language.lean.start.match(text) and not size_refusal(text):
                said = stated(text)
                yield Finding(
                    kind=said.kind if said else Kind.DECISION,
                    subject=subject_of(text),
                    content=as_sentence(text),
                    spoken=text,
                    index=evidence[-1],
                    evidence=evidence,
                    score=POINTED,
                    importance=STATED,
                )


def complete(
    statements: Sequence[Statement], question: ClosingQuestion, language: Language
) -> list[str]:
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


def _by_mark(
    statements: Sequence[Statement], question: ClosingQuestion, language: Language
) -> list[str | None]:
    """Answers listed under the letters or numbers of the options: "B. but not for guests"."""
    cues = language.answers
    chosen = [
        (one, question.options.get(option_key(one.mark, cues))) for one in statements if one.mark
    ]
    return [
        _join(question.question, option, one.text)
        for one, option in chosen
        if option and not is_asking(one.text) and (question.question or len(chosen) == 1)
    ]


def pairs(text: str) -> list[str]:
    """Questions a tool put to the owner, one a line with its answer: the two together."""
    found = (_PAIR.match(line.strip()) for line in text.split("\n"))
    return [_join(match["question"], match["answer"], "") for match in found if match]


def _pointed(
    statements: Sequence[Statement], question: ClosingQuestion, language: Language
) -> str | None:
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
    at = {"-1": len(offered)}.get(
        key, int(key) if key.isdigit() and which.lower() in cues.ordinals else 0
    )
    return offered[at - 1] if 0 < at <= len(offered) else None


def _is_article(text: str, point: re.Match[str]) -> bool:
    """ "a simple one" does not choose option A."""
    return point["which"] in "ai" and text[point.end("which") :][:1] in (" ", "'")


def _agreed(
    statements: Sequence[Statement], question: ClosingQuestion, language: Language
) -> str | None:
    text = statements[0].text
    plain = (
        question.closing
        and not question.options
        and language.answers.choice.search(question.question)
    )
    if (
        not plain
        or not language.answers.yes.match(text)
        or language.answers.either.search(question.question)
    ):
        return None
    more = [one.text for one in statements[1:2] if _goes_with([one.text], language)]
    return _join(question.question, text, *more)


def _short(
    statements: Sequence[Statement], question: ClosingQuestion, language: Language
) -> str | None:
    text = statements[0].text
    cues = language.answers
    words = text.split() if language.joiner else text
    if (
        question.options
        or not question.closing
        or len(words) > _MAX_SHORT_WORDS
        or _says_it_alone(text, language)
    ):
        return None
    other = (cues.vague, cues.yes, cues.no, language.reject["errand"])
    if any(pattern.match(text) for pattern in other) or not cues.choice.search(question.question):
        return None
    return _join(question.question, text)


def _elaborated(
    statements: Sequence[Statement], question: ClosingQuestion, language: Language
) -> str | None:
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
