"""Explicit statements of the owner, and short answers joined with their questions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from nacre.base.frozen import frozen
from nacre.base.text import shorten
from nacre.learn.pasted import cues, matches
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
)
from nacre.learn.sentences import (
    VERB,
    Language,
    Statement,
    Utterance,
    behind_own_lead,
    forms,
    is_chosen,
    language_of,
    split,
    trusted_agent,
)
from nacre.readers.trust import CHOSEN, reached_out
from nacre.values.memory import Kind
from nacre.values.session import Turn


def leans(text: str, language: Language) -> bool:
    """Return True if a text contains a pronoun without an antecedent."""
    if language.lean.start.match(text) or language.lean.object.search(text):
        return True
    pronoun = language.lean.inside.search(text)
    if pronoun is None:
        return False
    before = text[: pronoun.start()]
    return (
        not language.lean.named.search(before) and len(content_words(before)) < _FEWEST_INTRODUCED
    )


# -- Explicit statements ---------------------------------------------------------------------------
#
# The cues in ``cues.toml`` identify explicit statements. All other statements need a writer. A
# statement becomes a memory if it contains a cue (an order to remember, a standing rule, a preference,
# a decision, a change, a practice), is self-contained, and remains valid after the current task.


ORDER_IMPORTANCE, STATEMENT_IMPORTANCE = 8, 7
"""Importance of statements with and without a request to remember them."""

SURE, LIKELY = 2.0, 1.0
"""Minimum scores for becoming a memory and a candidate."""

CHOSEN_ANSWER = "you chose it"
MAYBE_PASTED = "it might be pasted text"
AGENT_WORDS = "it is in the words of an agent that had read external text"
"""Reasons why a finding stays a candidate, even if it is repeated."""

_REFUSED = ("identifier", "boilerplate")
_NOT_KEPT = (*_REFUSED, "question", "hypothetical", "meta", "transient", "errand")
"""Names of the cues for statements that are not kept."""

_FEWEST, _FEWEST_INTRODUCED = 4, 3
_FRAGMENT_WORDS = 5
_OPINION = re.compile(
    r"^i (?:\w+ )?(?:think|feel|believe|guess|reckon|mean)\b(?: that)?\W*", re.IGNORECASE
)
_UNFINISHED = (":", "：", "...", "…", " to", " to.", " of")
WITH_NAME = 0.2
"""Score bonus for a candidate that contains a name, a number or code."""

_MOST = 60
_FIRST = 3
_TYPED = 6
"""Maximum number of statements in a typed message. Longer messages are tasks or pages."""
_QUOTES = tuple('"“”„«「『')
_BETWEEN = " ,;:.—–-，、：。て了"
_THAT = re.compile(
    r"^(?:(?:please|bitte|também|también|also|auch|anche|aussi)\b[\s:,]*)?"
    r"(?:(?:(?:for|für|pour|para|per|voor|dla|för|на)\b[^.:]{2,40}?\s)??(?:that|dass|daß|que|qu'|che|że|что|dat|att)\b\s*)?",
    re.IGNORECASE,
)
"""Words between a request to remember something and the content."""
_TO_DO = re.compile(
    r"to-?do\b|action item|(?:forget|remind (?:me|us)) to\b|vergiss nicht zu\b|(?:别忘了?|提醒我们?)(?![：:，,])",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[,;:.!?—–，。：；]")
_QUESTION = re.compile(rf"^.*[?？:：] {CHOSEN} ")
"""The question before a chosen answer."""
_FOR_AGENTS = re.compile(
    r"(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|instructions|rules)\b", re.IGNORECASE
)
"""Files with standing rules. A request to write to them is a request to remember."""
_CONCRETE = re.compile(r"[\d`/\"_]|\w[.-]\w|(?<=[\w,] )[A-Z]\w|[一-鿿][A-Za-z]")
"""A number, a name, an address or a piece of code."""
_THAT_ONE = re.compile(
    r"(?:(?:please|bitte|also|and|so|und) )*(?:\w+ )?(?:this|that|it|das|es|dies|这|都)\b",
    re.IGNORECASE,
)
"""The start of a sentence that refers to the previous sentence."""
_MAX_CONFIRMING_WORDS = 12
_TO = re.compile(r"^to\s+(?=\w)", re.IGNORECASE)
_RECALLED, _LONGEST_RECALLED = 3, 400
_OF_BEFORE = re.compile(r"\b(?:it|this|these|those|they|them|both)\b", re.IGNORECASE)


@frozen
class ExplicitStatement:
    """A statement that is worth remembering.

    ``points``: whether it only refers to an earlier statement, as in "remember this". With a
    ``score`` below ``SURE``, it is only a candidate.
    """

    kind: Kind
    text: str
    importance: int = STATEMENT_IMPORTANCE
    points: bool = False
    score: float = SURE


def explicit(
    turns: Sequence[Turn], spoken: Sequence[Utterance], *, is_note: bool = False
) -> Iterator[Finding]:
    """Yield the owner's explicit statements, except retracted ones.

    Statements that might be another person's get a lower score.
    """
    for at, utterance in enumerate(spoken):
        is_typed = len(utterance.statements) <= _TYPED
        for place, statement in enumerate(utterance.statements):
            limit = limit_score(spoken, at, place)
            if not limit:
                continue
            text = statement.text.replace("’", "'")
            candidate = _find_remembered(text)
            if candidate is None and is_typed:
                candidate = _find_content(statement, text) or _find_likely(text)
            may_be_pasted = not is_note and may_be_others(statement)
            if candidate is None or (
                may_be_pasted and (candidate.points or candidate.score < SURE)
            ):
                continue
            recalled = (
                _content_before(
                    turns, utterance, place, own_only=candidate.importance < ORDER_IMPORTANCE
                )
                if candidate.points
                else (candidate.text, (utterance.index,))
            )
            if recalled:
                content, evidence = recalled
                is_agents = len(evidence) > 1 or (
                    candidate.kind is Kind.PREFERENCE and is_chosen(utterance, statement)
                )
                detail = MAYBE_PASTED if may_be_pasted else ""
                if is_agents and not detail and reached_out(turns, utterance.index):
                    detail = AGENT_WORDS
                yield Finding(
                    candidate.kind,
                    as_sentence(content),
                    candidate.text,
                    evidence,
                    min(candidate.score, LIKELY if detail else limit),
                    candidate.importance,
                    detail,
                    statement.mixed and not is_note,
                    candidate.importance == ORDER_IMPORTANCE,
                )


def limit_score(spoken: Sequence[Utterance], at: int, place: int) -> float:
    """Return the maximum score of a statement, given the owner's next sentences.

    It is 0 if they retract the statement, and ``LIKELY`` if they might.
    """
    text, *later = (statement.text for statement in spoken[at].statements[place:])
    for utterance in spoken[at + 1 : at + 2]:
        later += [item.text for item in utterance.statements[:_FIRST] if not item.marked]
    for index, sentence in enumerate(later):
        language = language_of(sentence)
        sentence = language.trim(sentence)
        if cue := cues().taken_back.search(sentence):
            lead, statement_words = sentence[: cue.start()], content_words(text, language)
            lead_words = content_words(lead, language)
            object_words = lead_words | content_words(
                _CLAUSES.split(sentence[cue.end() :])[0], language
            )
            has_object = len(lead_words) > 1 or (lead_words and language.lean.named.search(lead))
            if has_object and leans(cue.group(), language) and not object_words & statement_words:
                continue  # in "the emojis: leave them out", the sentence itself names the object
            is_clear = object_words or not content_words(" ".join(later[:index]), language)
            return 0 if is_clear and object_words <= statement_words else LIKELY
    return SURE


def is_stated(text: str) -> bool:
    """Return True unless a sentence is a question, hypothetical or ironic."""
    return not (is_asking(text) or matches(text, cues().asking, cues().supposed, cues().irony))


def _find_remembered(text: str) -> ExplicitStatement | None:
    table, bare = cues(), language_of(text).trim(text)
    request = table.requested.search(bare)
    if table.irony.search(text) or (is_asking(text) and not request):
        return None
    order = table.remember.search(bare) or (
        table.remember.match(bare[request.end() :].lstrip()) if request else None
    )
    if order and not table.not_remembered.search(bare):
        return _find_ordered(order)
    is_short = ":" not in bare and len(bare.split()) <= _MAX_CONFIRMING_WORDS
    if is_short and matches(bare, table.kept_words, table.rule) and _THAT_ONE.match(bare):
        return ExplicitStatement(Kind.PREFERENCE, bare, points=True)
    return None


def _find_stated(text: str) -> ExplicitStatement | None:
    text = _QUESTION.sub("", text)
    bare = _bare(text)
    request = cues().requested.match(bare)
    if request:
        wish = bare[request.end() :].strip(" ,?？")
        is_habit = cues().habit.search(request.group()) or (
            cues().habit.search(wish) and not _is_passing(wish)
        )
        is_kept = is_habit and _is_sized(wish) and _stands_alone(wish)
        return ExplicitStatement(Kind.PREFERENCE, wish) if is_kept else None
    announced, mentioned = cues().announced.match(text), cues().mentioned.match(text)
    if lead := announced or mentioned:
        content = text[lead.end() :].lstrip(_BETWEEN)
        fact = _find_fact(content) if announced or _CONCRETE.search(content) else None
        if fact:
            return fact
    kind = _kind_of(bare)
    if kind is None:
        own = cues().owned.match(bare)
        return _find_fact(bare) if own and _CONCRETE.search(bare[own.end() :]) else None
    is_kept = _is_sized(bare) and is_stated(text) and _stands_alone(bare)
    if not is_kept or _is_passing(bare) or _is_fragment(bare):
        return None
    return ExplicitStatement(kind, bare)


def _find_fact(text: str, fewest: int = _FEWEST) -> ExplicitStatement | None:
    is_clear = _is_sized(text, fewest) and is_stated(text) and _stands_alone(text)
    if not (is_clear and _is_kept(text)) or _is_passing(text) or cues().own_errand.match(text):
        return None
    return ExplicitStatement(_kind_to_keep(text), text)


def _find_content(statement: Statement, text: str) -> ExplicitStatement | None:
    if text.startswith(">"):
        return None
    content = behind_own_lead(text)
    if announces(text.removesuffix(content) if content else statement.lead or ""):
        return _find_fact(_bare(content or text), _FEWEST_INTRODUCED)
    return (_find_stated(content) if content else None) or _find_stated(text)


def _find_likely(text: str) -> ExplicitStatement | None:
    opinion = _OPINION.sub("", language_of(text).trim(text))
    bare = _bare(opinion)
    request = cues().requested.match(bare)
    wish = bare[request.end() :].strip(" ,?？") if request else bare
    is_clear = is_stated(wish if request else opinion) and is_understood(wish)
    is_wish = cues().wished.search(bare) and _is_sized(text, _FEWEST_INTRODUCED)
    # An order with a reason is a decision.
    is_kept = _is_kept(wish, "errand" if cues().reason.search(wish) else "")
    if not (is_wish and is_clear and is_kept) or names_this_object(wish):
        return None
    is_order = language_of(wish).mark["imperative"].search(wish)
    kind = Kind.PREFERENCE if is_order else Kind.DECISION
    score = LIKELY + (WITH_NAME if _CONCRETE.search(wish) else 0)
    return ExplicitStatement(kind, wish, STATEMENT_IMPORTANCE - 1, score=score)


def is_understood(text: str) -> bool:
    """Return True if a sentence is clear without its session."""
    return _stands_alone(text) and not (cues().elsewhere.search(text) or text.endswith(_UNFINISHED))


def _bare(text: str) -> str:
    language = language_of(text)
    bare = language.trim(text)
    # A correction such as "that's wrong:" comes first.
    corrected = language.correction.match(bare)
    return language.trim(bare[corrected.end() :]) if corrected else bare


def _kind_of(text: str) -> Kind | None:
    table = cues()
    if matches(text, table.decided, table.changed):
        return Kind.DECISION
    if matches(text, table.ordered, table.rule, table.standing, table.place, table.preferred):
        return Kind.PREFERENCE
    return Kind.FACT if table.practice.search(text) else None


def _is_fragment(text: str) -> bool:
    """Return True for a short rule without a verb, such as "Tuesdays from now on"."""
    language, rule = language_of(text), cues().rule.search(text) or cues().place.search(text)
    if rule is None or text[rule.end() :].strip(" .!"):
        return False
    subject = text[: rule.start()].strip(" ,")
    verbs = language.mark["imperative"], language.reject["errand"], cues().wished, VERB
    return len(subject.split()) <= _FRAGMENT_WORDS and not (
        _kind_of(subject) or matches(subject, *verbs)
    )


def _kind_to_keep(text: str) -> Kind:
    is_order = language_of(text).mark["imperative"].search(text) or cues().lasting.search(text)
    return _kind_of(text) or (Kind.PREFERENCE if is_order else Kind.FACT)


def _stands_alone(text: str) -> bool:
    language = language_of(text)
    return not (
        text.startswith(_QUOTES)
        or leans(text, language)
        or language.answers.only_points(text)
        or cues().this_way.search(text)
    )


def _is_passing(text: str) -> bool:
    table, language = cues(), language_of(text)
    is_rule = matches(text, table.rule, table.standing)
    refused = _REFUSED if is_rule else (*_REFUSED, "errand")
    if matches(text, table.passing, *map(language.reject.__getitem__, refused)):
        return True
    is_lasting = is_rule or matches(text, table.lasting, table.habit)
    return not is_lasting and names_this_object(text)


def names_this_object(text: str) -> bool:
    """Return True if a text refers to the current task, as in "this PR" or "once done"."""
    return matches(text, cues().passing, cues().step, language_of(text).mark["deixis"])


def _is_kept(text: str, without: str = "") -> bool:
    reject = language_of(text).reject
    without = "transient" if cues().habit.search(text) else without
    return not matches(text, *(reject[name] for name in _NOT_KEPT if name != without))


def _find_ordered(order: re.Match[str]) -> ExplicitStatement | None:
    content = (
        _THAT.sub("", order.string[order.end() :].lstrip(_BETWEEN), count=1)
        .lstrip(_BETWEEN)
        .rstrip("?？ ")
    )
    behind = content.partition(":")[2].strip() or content.partition("：")[2].strip()
    before = order.string[: order.start()].rstrip(_BETWEEN)
    if cues().passing.search(before):
        return None  # "when you are done, remember to …" is about the current task
    is_todo = _TO_DO.search(f"{order.group()} {content}")
    pointer, pointed = cues().pointing.match(content), cues().pointing.search(order.group())
    is_introduced = order.string[order.end() :].lstrip().startswith((":", "："))
    if (pointer or (pointed and not is_introduced)) or not any(map(str.isalnum, content)):
        own = next(filter(_is_sized, (behind, before)), None)
        rest = content[pointer.end() :] if pointer and own is None else ""
        is_about_pointed = len(content_words(rest)) > 1 or VERB.search(rest)
        if is_about_pointed or (own == before and cues().supposed.search(before)):
            return None
    elif _is_sized(content, _FEWEST_INTRODUCED if is_introduced else _FEWEST) and (
        is_introduced or is_todo or _FOR_AGENTS.search(order.group()) or _is_kept(content)
    ):
        own = content
    else:
        return None
    if (own is None) if is_todo else cues().passing.search(own or ""):
        return None
    kind = Kind.TODO if is_todo else _kind_to_keep(own or content)
    return ExplicitStatement(
        kind, _TO.sub("", own or content), ORDER_IMPORTANCE, points=own is None
    )


def _is_sized(text: str, fewest: int = _FEWEST) -> bool:
    return fewest <= count_words(text) <= _MOST


def count_words(text: str) -> int:
    """Count the words of a text. Two Chinese characters count as one word."""
    return len(text.split()) + sum(character > "\u2e7f" for character in text) // 2


def _content_before(
    turns: Sequence[Turn], utterance: Utterance, place: int, *, own_only: bool = False
) -> tuple[str, tuple[int, ...]] | None:
    own = [
        statement.text for statement in utterance.statements[:place] if _is_sized(statement.text)
    ][-2:]
    if own and not is_asking(own[-1]):
        points_back = leans(own[-1], language_of(own[-1])) or _OF_BEFORE.search(own[-1])
        return " ".join(own if points_back and not is_asking(own[0]) else own[-1:]), (
            utterance.index,
        )
    agent = None if own_only else trusted_agent(turns, utterance.index)
    if agent is None:
        return None
    sentences = [
        sentence.text for sentence in split(turns[agent].text) if not is_asking(sentence.text)
    ]
    text = shorten(" ".join(sentences[:_RECALLED]), _LONGEST_RECALLED)
    return (text, (agent, utterance.index)) if text else None


# -- Size ------------------------------------------------------------------------------------------


MIN_WIDTH = 20
MAX_CHARACTERS = 700


def size_refusal(content: str, most: int = MAX_CHARACTERS) -> str | None:
    """Return ``short`` or ``long`` for a text of unsuitable length, else ``None``.

    For the minimum, a wide character, such as a Chinese one, counts as three.
    """
    width = sum(
        3 if unicodedata.east_asian_width(character) in "WF" else 1 for character in content
    )
    if width < MIN_WIDTH:
        return "short"
    return "long" if len(content) > most else None


# -- Answers ("A.", "yes"), completed with their questions -----------------------------------------


_MAX_QUESTION = 300
_MAX_ANSWERS = 2
_MIN_ANSWER_WORDS = 3
"""Minimum number of content words in a question and its answer."""

POINTED = 1.1
"""Score of an answer joined with its question, the same as for a plain decision."""


def iter_answers(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """Yield the owner's answers, each joined with its question and the chosen option."""
    for utterance in spoken:
        language = language_of(utterance.text)
        texts: list[tuple[str, tuple[int, ...]]] = [
            (text, (utterance.index,))
            for form in forms(utterance.text)
            if (text := _answer(form.question, form.answer, language))
        ]
        agent = trusted_agent(turns, utterance.index)
        undo = language.reversal.undo
        if agent is not None and not any(
            undo.match(item.text) for item in utterance.statements[1:]
        ):
            completed = complete(utterance.statements, parse_question(turns[agent].text), language)
            texts += [(text, (agent, utterance.index)) for text in completed]
        for text, evidence in texts:
            yield Finding(
                Kind.DECISION,
                as_sentence(text),
                text,
                evidence,
                POINTED,
                STATEMENT_IMPORTANCE,
                CHOSEN_ANSWER,
            )


def complete(
    statements: Sequence[Statement], question: ClosingQuestion, language: Language
) -> list[str]:
    """Return the owner's answers, joined with the agent's question or with the options that they select."""
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
        remark = language.trim(first[point.end() :]).strip(".。!！)）")
        added = [remark] if content_words(remark, language) else []
        answers = [_answer(question.question, _join(option, *added, *more), language)]
    elif (
        question.closing
        and not question.options
        and (
            _is_fragment(first)
            or (
                cues.yes.match(first)
                and cues.choice.search(question.question)
                and not cues.either.search(question.question)
            )
        )
    ):
        answers = [_answer(question.question, _join(first, *more), language)]
    return [answer for answer in answers if answer][:_MAX_ANSWERS]


def _answer(question: str, answer: str, language: Language) -> str | None:
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
    point = language.answers.point.match(text)
    is_word = point and point["which"] in "ai" and text[point.end("which") :][:1] in (" ", "'")
    return None if is_word else point


def _join(question: str, *answers: str) -> str:
    texts = [text.strip() for text in answers if text.strip()]
    parts = list(map(as_sentence, texts))
    ended = [text if text[-1] in ".!?。！？;；" else f"{text}." for text in parts[:-1]]
    return " ".join(text for text in (question.strip(), *ended, *parts[-1:]) if text)
