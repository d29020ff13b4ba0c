"""Search for explicit statements, and completion of short answers with their questions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nacre.base.frozen import frozen
from nacre.base.text import shorten
from nacre.learn.pasted import cues
from nacre.learn.reading import (
    ClosingQuestion,
    Finding,
    announces,
    as_sentence,
    content_words,
    is_asking,
    may_be_others,
    option_key,
    parse_question,
    subject_of,
)
from nacre.learn.sentences import (
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
    """Return True if a text contains a pronoun without an antecedent."""
    if language.lean.start.match(text) or language.lean.object.search(text):
        return True
    pronoun = language.lean.inside.search(text)
    if pronoun is None:
        return False
    before = text[: pronoun.start()]
    return not (language.lean.named.search(before) or content_words(before, language))


# -- Explicit statements ---------------------------------------------------------------------------
#
# The cues in ``cues.toml`` identify explicit statements. All other statements need a writer. A
# statement becomes a memory if it contains a cue (an order to remember, a standing rule, a preference,
# a decision, a change, a practice), is self-contained, and remains valid after the current task.


REMEMBERED, STATED = 8, 7
"""Importance of a statement with an order to remember it, and without such an order."""

SURE, LIKELY = 2.0, 1.0
"""Score of a statement that becomes a memory, and of one that becomes a candidate."""

_REFUSED = ("identifier", "boilerplate")
_NOT_KEPT = (*_REFUSED, "question", "hypothetical", "meta", "transient", "errand")
"""Names of the cues that mark statements, announcements and orders to remember as not worth keeping."""

_FEWEST, _FEWEST_INTRODUCED = 4, 3
_OPINION = re.compile(
    r"^(?:(?:ok(?:ay)?|so|and|but|also|yes|yeah|no)\W+)*"
    r"i (?:\w+ )?(?:think|feel|believe|guess|reckon|mean)\b(?: that)?\W*",
    re.IGNORECASE,
)
_UNFINISHED = (":", "：", "...", "…", " to", " to.", " of")
WITH_NAME = 0.2
"""Addition to the score of a candidate that contains a name, a number or code."""

_MOST = 60
_FIRST = 3
_TYPED = 6
"""Maximum number of statements in a typed message. Longer messages are detailed tasks or pages."""
_QUOTES = tuple('"“”„«「『')
_BETWEEN = " ,;:.—–-，、：。て了"
_THAT = re.compile(
    r"^(?:(?:please|bitte|também|también|also|auch|anche|aussi)\b[\s:,]*)?"
    r"(?:(?:(?:for|für|pour|para|per|voor|dla|för|на)\b[^.:]{2,40}?\s)??(?:that|dass|daß|que|qu'|che|że|что|dat|att)\b\s*)?",
    re.IGNORECASE,
)
"""Words between an order to remember and the content."""
_TO_DO = re.compile(
    r"to-?do\b|action item|(?:forget|remind (?:me|us)) to\b|vergiss nicht zu\b|(?:别忘了?|提醒我们?)(?![：:，,])",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[,;:.!?—–，。：；]")
_QUESTION = re.compile(rf"^.*[?？:：] {CHOSEN} ")
"""Pattern for a question that precedes the chosen answer."""
_BESIDE_POINTER = 3
_FOR_AGENTS = re.compile(
    r"(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|instructions|rules)\b", re.IGNORECASE
)
"""Names of files with standing rules. An order to write into such a file is an order to remember."""
_CONCRETE = re.compile(r"[\d`/\"_]|\w[.-]\w|(?<=[\w,] )[A-Z]\w|[一-鿿][A-Za-z]")
"""Pattern for a number, a name, an address or a piece of code."""
_LEAD = re.compile(r"([^:：\n]{3,80})[:：]\s*(?=\S)")
_THAT_ONE = re.compile(
    r"(?:(?:please|bitte|also|and|so|und) )*(?:\w+ )?(?:this|that|it|das|es|dies|这|都)\b",
    re.IGNORECASE,
)
"""Pattern for the start of a sentence that refers to the previous sentence."""
_MAX_CONFIRMING_WORDS = 12
_TO = re.compile(r"^to\s+(?=\w)", re.IGNORECASE)
_RECALLED, _LONGEST_RECALLED = 3, 400
_OF_BEFORE = re.compile(r"\b(?:it|this|these|those|they|them|both)\b", re.IGNORECASE)


@frozen
class ExplicitStatement:
    """A statement that is worth keeping.

    ``points``: True if the text only refers to an earlier statement. ``score``: certainty. Below
    ``SURE``, the statement is only a candidate.
    """

    kind: Kind
    text: str
    importance: int
    points: bool = False
    score: float = SURE


def explicit(
    turns: Sequence[Turn], spoken: Sequence[Utterance], *, is_note: bool = False
) -> Iterator[Finding]:
    """Yield statements that the owner asked to remember, except retracted statements.

    The score is lower if the words might come from another person or from external text.
    """
    for at, utterance in enumerate(spoken):
        if is_refused(spoken, at):
            continue
        is_typed = len(utterance.statements) <= _TYPED
        texts = [statement.text for statement in utterance.statements]
        for place, statement in enumerate(utterance.statements):
            if is_taken_back(texts, place):
                continue
            candidate = find_remembered(statement.text)
            if candidate is None and is_typed:
                candidate = _find_content(statement) or find_likely(statement.text)
            is_shown = not is_note and may_be_others(statement)
            if candidate is None or (is_shown and (candidate.points or candidate.score < SURE)):
                continue
            recalled = (
                _content_before(turns, utterance, place, own_only=candidate.importance < REMEMBERED)
                if candidate.points
                else (candidate.text, (utterance.index,))
            )
            if recalled:
                finding = _finding(candidate, *recalled)
                is_agents = len(finding.evidence) > 1 or (
                    finding.kind is Kind.PREFERENCE and is_chosen(utterance, statement)
                )
                is_nodded = is_agents and reached_out(turns, utterance.index)
                waits = is_shown or is_nodded
                score = min(finding.score, LIKELY) if waits else finding.score
                yield replace(
                    finding,
                    score=score,
                    shown=is_shown,
                    nodded=is_nodded,
                    mixed=statement.mixed and not is_note,
                )


def is_taken_back(texts: Sequence[str], place: int) -> bool:
    """Return True if the owner takes back the statement with index ``place`` in later ones."""
    return any(map(cues().taken_back.search, texts[place + 1 :]))


def is_refused(spoken: Sequence[Utterance], at: int) -> bool:
    """Return True if the owner takes back the message with index ``at`` in the next one."""
    following = spoken[at + 1].statements[:_FIRST] if at + 1 < len(spoken) else ()
    return bool(
        cues().taken_back.search(
            " ".join(statement.text for statement in following if not statement.marked)
        )
    )


def is_stated(text: str) -> bool:
    """Return True if a sentence is a statement rather than a question, a supposition or a report."""
    return not is_asking(text) and not any(
        pattern.search(text) for pattern in (cues().asking, cues().supposed, cues().irony)
    )


def find_remembered(text: str) -> ExplicitStatement | None:
    """Return the statement to remember if a sentence asks the agent to remember something."""
    table = cues()
    text = text.replace("’", "'")
    bare = language_of(text).trim(text)
    if table.irony.search(text) or (is_asking(text) and not table.requested.search(bare)):
        return None
    order = _order(bare)
    if order and not table.not_remembered.search(bare):
        return _find_ordered(order)
    return _find_introduced(bare) or _confirming_pointer(bare)


def _find_introduced(text: str) -> ExplicitStatement | None:
    """Return the statement after a short introduction such as "one lasting thing:"."""
    colon = _LEAD.match(text)
    if not colon or not cues().kept_words.search(colon[1]) or leads_others(text):
        return None
    if language_of(text).reject["errand"].search(colon[1]):
        return None
    content = text[colon.end() :].strip()
    if is_asking(content) or not (
        _is_sized(content, _FEWEST_INTRODUCED) and _stands_alone(content)
    ):
        return None
    return ExplicitStatement(_kind_to_keep(content), content, REMEMBERED)


def _confirming_pointer(text: str) -> ExplicitStatement | None:
    """Return a reference to the previous sentence if a text asks to remember that sentence."""
    if ":" in text or len(text.split()) > _MAX_CONFIRMING_WORDS or not _THAT_ONE.match(text):
        return None
    if not (cues().kept_words.search(text) or cues().rule.search(text)):
        return None
    return ExplicitStatement(Kind.PREFERENCE, text, STATED, points=True)


def find_stated(text: str) -> ExplicitStatement | None:
    """Return the lasting statement that a sentence introduces with a typical phrase."""
    text = _QUESTION.sub("", text.replace("’", "'"))
    bare = _bare(text)
    request = cues().requested.match(bare)
    if request:
        wish = bare[request.end() :].strip(" ,?？")
        is_habit = cues().habit.search(bare) and _is_sized(wish) and _stands_alone(wish)
        return (
            ExplicitStatement(Kind.PREFERENCE, wish, STATED)
            if is_habit and not _is_passing(wish)
            else None
        )
    mentioned = _find_mentioned(text)
    if mentioned or not (_is_sized(bare) and is_stated(text) and _stands_alone(bare)):
        return mentioned
    kind = _kind_of(bare)
    if kind is None:
        own = cues().owned.match(bare)
        if not (own and _CONCRETE.search(bare[own.end() :])):
            return None
        return ExplicitStatement(Kind.FACT, bare, STATED) if _is_lasting_fact(bare) else None
    return None if _is_passing(bare) else ExplicitStatement(kind, bare, STATED)


def _find_mentioned(text: str) -> ExplicitStatement | None:
    """Return the fact that follows "just so you know" or "by the way"."""
    announced = cues().announced.match(text)
    lead = announced or cues().mentioned.match(text)
    fact = text[lead.end() :].lstrip(_BETWEEN) if lead else ""
    if not (fact and (announced or _CONCRETE.search(fact)) and _is_lasting_fact(fact)):
        return None
    return ExplicitStatement(_kind_to_keep(fact), fact, STATED)


def _is_lasting_fact(text: str) -> bool:
    """Return True if a sentence is self-contained and not about the speaker's current work."""
    return (
        _is_sized(text)
        and is_stated(text)
        and _stands_alone(text)
        and _is_kept(text)
        and not (_is_passing(text) or cues().own_errand.match(text))
    )


def _find_content(statement: Statement) -> ExplicitStatement | None:
    """Return the content of a statement, without an announcement such as "Reminder: …"."""
    text = statement.text.replace("’", "'")
    if text.lstrip().startswith(">"):
        return None
    statement_text = behind_own_lead(text)
    if not announces(text.removesuffix(statement_text) if statement_text else statement.lead or ""):
        return (find_stated(statement_text) if statement_text else None) or find_stated(text)
    content = _bare(statement_text or text)
    if not (
        _is_sized(content, _FEWEST_INTRODUCED)
        and is_stated(content)
        and _stands_alone(content)
        and _is_kept(content)
    ):
        return None
    return (
        None if _is_passing(content) else ExplicitStatement(_kind_to_keep(content), content, STATED)
    )


def find_likely(text: str) -> ExplicitStatement | None:
    """Return a candidate if a sentence says how something should be from now on."""
    text = _OPINION.sub("", text.replace("’", "'"))
    bare = _bare(text)
    request = cues().requested.match(bare)
    wish = bare[request.end() :].strip(" ,?？") if request else bare
    if not cues().wished.search(bare):
        return None
    is_stated_now = is_stated(wish if request else text) and is_understood(wish)
    if not (is_stated_now and _is_sized(text, _FEWEST_INTRODUCED)) or _is_errand(wish):
        return None
    is_order = language_of(wish).mark_named("imperative").search(wish)
    kind = Kind.PREFERENCE if is_order else Kind.DECISION
    score = LIKELY + (WITH_NAME if _CONCRETE.search(wish) else 0)
    return ExplicitStatement(kind, wish, STATED - 1, score=score)


def _is_errand(text: str) -> bool:
    """Return True if a sentence is only about the current task.

    A reason makes an order a decision.
    """
    is_reasoned = cues().reason.search(text) is not None
    is_kept = _is_kept(text, without="errand" if is_reasoned else "")
    return not is_kept or names_this_object(text)


def is_understood(text: str) -> bool:
    """Return True if a sentence is clear without the session in which it occurs."""
    return _stands_alone(text) and not (cues().elsewhere.search(text) or text.endswith(_UNFINISHED))


def _bare(text: str) -> str:
    """Return a sentence without conversational openers and closers, such as "that's wrong:"."""
    language = language_of(text)
    bare = language.trim(text)
    corrected = language.correction.match(bare)
    return language.trim(bare[corrected.end() :]) if corrected else bare


def _kind_of(text: str) -> Kind | None:
    table = cues()
    if table.decided.search(text) or table.changed.search(text):
        return Kind.DECISION
    if any(
        pattern.search(text)
        for pattern in (table.ordered, table.rule, table.standing, table.place, table.preferred)
    ):
        return Kind.PREFERENCE
    return Kind.FACT if table.practice.search(text) else None


def _kind_to_keep(text: str) -> Kind:
    is_order = language_of(text).mark_named("imperative").search(text) or cues().lasting.search(
        text
    )
    return _kind_of(text) or (Kind.PREFERENCE if is_order else Kind.FACT)


def _stands_alone(text: str) -> bool:
    """Return True if a sentence is self-contained and does not start with a quotation mark."""
    language = language_of(text)
    return not (
        text.startswith(_QUOTES)
        or leans(text, language)
        or language.answers.only_points(text)
        or cues().this_way.search(text)
    )


def _is_passing(text: str) -> bool:
    """Return True if a sentence is about the current task or a recent event."""
    table, language = cues(), language_of(text)
    is_rule = bool(table.rule.search(text) or table.standing.search(text))
    refused = _REFUSED if is_rule else (*_REFUSED, "errand")
    if table.passing.search(text) or any(language.reject[name].search(text) for name in refused):
        return True
    is_lasting = is_rule or bool(table.lasting.search(text) or table.habit.search(text))
    return not is_lasting and names_this_object(text)


def names_this_object(text: str) -> bool:
    """Return True if a text refers to the current task, as in "this PR" or "once done"."""
    table = cues()
    return any(
        pattern.search(text)
        for pattern in (table.passing, table.step, language_of(text).mark_named("deixis"))
    )


def _is_kept(text: str, without: str = "") -> bool:
    """Return True if a statement is worth keeping. "You forgot the test" is not worth keeping.

    ``without``: a cue to ignore.
    """
    language = language_of(text)
    return not any(language.reject[name].search(text) for name in _NOT_KEPT if name != without)


def _order(text: str) -> re.Match[str] | None:
    """Find the words in a sentence that ask the agent to remember something."""
    request = cues().requested.search(text)
    return cues().remember.search(text) or (
        cues().remember.match(text[request.end() :].lstrip()) if request else None
    )


def _find_ordered(order: re.Match[str]) -> ExplicitStatement | None:
    """Return the text that the owner asked to remember.

    If the text after the request only refers to other text, use the text after a colon or before
    the request.
    """
    content = (
        _THAT.sub("", order.string[order.end() :].lstrip(_BETWEEN), count=1)
        .lstrip(_BETWEEN)
        .rstrip("?？ ")
    )
    behind = content.partition(":")[2].strip() or content.partition("：")[2].strip()
    before = order.string[: order.start()].rstrip(_BETWEEN)
    pointer, pointed = cues().pointing.match(content), cues().pointing.search(order.group())
    if (
        not _is_sized(behind)
        and len(_CLAUSES.split(_text_about_pointer(order, content, pointer))[0].split())
        > _BESIDE_POINTER
    ):
        return None  # in "note it has to fit on a page", only earlier turns name the subject
    if (pointer or (pointed and not _introduces(order))) or not any(map(str.isalnum, content)):
        own = next(filter(_is_sized, (behind, before)), None)
        if own == before and cues().supposed.search(before):
            return None
    elif (_introduces(order) and _is_sized(content, _FEWEST_INTRODUCED)) or (
        _is_sized(content)
        and (_TO_DO.search(order.group()) or _FOR_AGENTS.search(order.group()) or _is_kept(content))
    ):
        own = content
    else:
        return None
    kind = (
        Kind.TODO if _TO_DO.search(f"{order.group()} {content}") else _kind_to_keep(own or content)
    )
    return ExplicitStatement(kind, _TO.sub("", own or content), REMEMBERED, points=own is None)


def _introduces(order: re.Match[str]) -> bool:
    return order.string[order.end() :].lstrip().startswith((":", "："))


def _text_about_pointer(order: re.Match[str], content: str, pointer: re.Match[str] | None) -> str:
    """Return the text that follows a word such as "this", which refers to other text."""
    if pointer:
        return content[pointer.end() :]
    is_pointing = cues().pointing.fullmatch(order.group().split()[-1])
    return content if is_pointing and order.string[order.end() :].startswith(" ") else ""


def _is_sized(text: str, fewest: int = _FEWEST) -> bool:
    """Return True if a text has ``fewest`` to ``_MOST`` words. Two Chinese characters count as one word."""
    wide = sum(character > "\u2e7f" for character in text)
    return fewest <= len(text.split()) + wide // 2 <= _MOST


def _content_before(
    turns: Sequence[Turn], utterance: Utterance, place: int, *, own_only: bool = False
) -> tuple[str, tuple[int, ...]] | None:
    """Return the content to which a word such as "this" refers, and the indexes of its turns.

    The content is in the owner's previous sentence or in the agent's last message.
    """
    own = [
        statement.text for statement in utterance.statements[:place] if _is_sized(statement.text)
    ][-2:]
    if own and not is_asking(own[-1]):
        points_back = leans(own[-1], language_of(own[-1])) or _OF_BEFORE.search(own[-1])
        return " ".join(own if points_back and not is_asking(own[0]) else own[-1:]), (
            utterance.index,
        )
    agent = None if own_only else before(turns, utterance.index, Speaker.AGENT)
    if agent is None or turns[agent].trust is not Trust.TRUSTED:
        return None
    stated = [
        sentence.text for sentence in split(turns[agent].text) if not is_asking(sentence.text)
    ]
    text = shorten(" ".join(stated[:_RECALLED]), _LONGEST_RECALLED)
    return (text, (agent, utterance.index)) if text else None


def _finding(candidate: ExplicitStatement, content: str, evidence: tuple[int, ...]) -> Finding:
    content = as_sentence(content)
    return Finding(
        kind=candidate.kind,
        subject=subject_of(content),
        content=content,
        spoken=candidate.text,
        index=evidence[-1],
        evidence=evidence,
        score=candidate.score,
        importance=candidate.importance,
        expiry=Expiry.TEMPORARY if candidate.kind is Kind.TODO else Expiry.PERMANENT,
    )


# -- Size ------------------------------------------------------------------------------------------


MIN_WIDTH = 20
MAX_CHARACTERS = 700


def size_refusal(content: str, most: int = MAX_CHARACTERS) -> str | None:
    """Return ``short`` or ``long`` if a text is too short or too long, else ``None``.

    ``most``: maximum number of characters. A wide character counts as three for the minimum only.
    """
    width = sum(
        3 if unicodedata.east_asian_width(character) in "WF" else 1 for character in content
    )
    if width < MIN_WIDTH:
        return "short"
    return "long" if len(content) > most else None


# -- Answers ("A.", "yes"), completed with the questions -------------------------------------------


_PAIR = re.compile(r"^(?P<question>.{10,400}?[?？])\s*(?:[→⇒]|=>|->)\s*(?P<answer>\S.*)$")
_MAX_QUESTION = 300
_MAX_ANSWERS = 2
_MIN_ANSWER_WORDS = 3
"""Minimum number of content words in a question and its answer."""

POINTED = 1.1
"""Score of a completed answer. It equals the score of a plain decision."""


def iter_answers(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """Yield the owner's answers. Each answer contains its question and the content of the chosen option."""
    for utterance in spoken:
        language = language_of(utterance.text)
        texts: list[tuple[str, tuple[int, ...]]] = [
            (text, (utterance.index,)) for text in pairs(utterance.text, language)
        ]
        agent = trusted_agent(turns, utterance.index)
        if agent is not None and not sentences_is_taken_back(utterance, 0):
            completed = complete(utterance.statements, parse_question(turns[agent].text), language)
            texts += [(text, (agent, utterance.index)) for text in completed]
        for text, evidence in texts:
            yield Finding(
                kind=Kind.DECISION,
                subject=subject_of(text),
                content=as_sentence(text),
                spoken=text,
                index=evidence[-1],
                evidence=evidence,
                score=POINTED,
                importance=STATED,
            )


def pairs(text: str, language: Language) -> list[str]:
    """Return the questions in a tool's output, each joined with the owner's answer on its line."""
    matches = (_PAIR.match(line.strip()) for line in text.split("\n"))
    answers = (_answer(match["question"], match["answer"], language) for match in matches if match)
    return [answer for answer in answers if answer]


def complete(
    statements: Sequence[Statement], question: ClosingQuestion, language: Language
) -> list[str]:
    """Join the owner's answers with the agent's question.

    A numbered answer is joined with its item.
    """
    if not statements:
        return []
    cues, first = language.answers, statements[0].text
    items: dict[str, list[str]] = {}
    for statement in statements:
        item = question.options.get(option_key(statement.mark or "", cues))
        if item and not is_asking(statement.text):
            items.setdefault(item, []).append(statement.text)
    option, point = find_option(first, question, language), _match_point(first, language)
    more = [
        statement.text
        for statement in statements[1:2]
        if cues.but.match(statement.text) and not is_asking(statement.text)
    ]
    answers: list[str | None] = []
    if items:
        answers = [_answer(item, _join("", *texts), language) for item, texts in items.items()]
    elif option and point and not is_asking(first):
        rest = language.trim(first[point.end() :]).strip(".。!！)）")
        added = [rest] if content_words(rest, language) else []
        answers = [_answer(question.question, _join(option, *added, *more), language)]
    elif question.closing and not question.options and _agrees(first, question, language):
        answers = [_answer(question.question, _join(first, *more), language)]
    return [answer for answer in answers if answer][:_MAX_ANSWERS]


def _agrees(text: str, question: ClosingQuestion, language: Language) -> bool:
    cues, asked = language.answers, question.question
    return bool(
        cues.yes.match(text) and cues.choice.search(asked) and not cues.either.search(asked)
    )


def _answer(question: str, answer: str, language: Language) -> str | None:
    """Join a question with its answer, or return ``None`` if the result is not worth keeping."""
    text, cues = _join(question, answer), language.answers
    is_lasting = not (
        cues.errand.search(question) or cues.vague.match(answer) or names_this_object(text)
    )
    is_clear = is_asking(question) and is_understood(question) and is_understood(answer)
    has_content = len(content_words(text, language)) >= _MIN_ANSWER_WORDS
    is_sized = len(question) <= _MAX_QUESTION and not size_refusal(text)
    return text if is_lasting and is_clear and has_content and is_sized else None


def find_option(text: str, question: ClosingQuestion, language: Language) -> str | None:
    """Return the option that an answer selects, for example by "b", "2" or "the second"."""
    point = _match_point(text, language)
    if point is None:
        return None
    which, cues = point["which"], language.answers
    key = option_key(which, cues)
    if key in question.options:
        return question.options[key]
    offered = list(question.options.values())
    at = {"-1": len(offered)}.get(
        key, int(key) if key.isdigit() and which.lower() in cues.ordinals else 0
    )
    return offered[at - 1] if 0 < at <= len(offered) else None


def _match_point(text: str, language: Language) -> re.Match[str] | None:
    """Match the letter, number or position of an option at the start of an answer."""
    point = language.answers.point.match(text)
    is_word = point and point["which"] in "ai" and text[point.end("which") :][:1] in (" ", "'")
    return None if is_word else point


def _join(question: str, *answers: str) -> str:
    texts = [text.strip() for text in answers if text.strip()]
    parts = list(map(as_sentence, texts))
    ended = [text if text[-1] in ".!?。！？;；" else f"{text}." for text in parts[:-1]]
    return " ".join(text for text in (question.strip(), *ended, *parts[-1:]) if text)
