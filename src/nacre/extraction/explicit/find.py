"""Finds what the owner stated explicitly: orders to remember, standing rules, choices with their object, and how they
and their world are. Everything else waits for a writer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nacre.extraction.explicit.cues import cues
from nacre.extraction.explicit.signs import asks, leans, signs
from nacre.extraction.explicit.weights import Judged, judge
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.sentences import split
from nacre.extraction.reading.shown import may_be_others
from nacre.extraction.reading.speech import Utterance, before, is_chosen
from nacre.extraction.rules.findings import Finding, as_sentence, subject_of
from nacre.extraction.rules.tags import key_of, tags_of
from nacre.text.passages import shorten
from nacre.transcripts.trust import reached_out
from nacre.values.memory import Expiry, Kind
from nacre.values.session import Speaker, Trust, Turn

REMEMBERED, STATED = 8, 7
"""How much weighs what was to be remembered, and what was stated."""

SURE, LIKELY = 2.0, 1.0
"""The score of what is a memory at once, and of what is one in its words but may be somebody else's; what only may be
one has less than the first."""

EXPLICIT_FROM, ORDERED_FROM = 1.9, -1.5
"""The log-odds from which a statement is a memory at once, and from which one is that has the words of an order or a
decision, or is to be remembered. What people really type asks for a higher bar than examples in which every third
message holds something (decisions 108, 109)."""

LIKELY_FROM = 0.7
"""The log-odds from which a statement waits as a candidate."""

KNOWN_FROM = 0.8
"""The share of a statement's words that the examples hold, at least."""

_OF_A_KIND_FROM = -3.0
"""What is to be remembered is a fact below these odds: its words tell of no other kind."""

_FEWEST, _FEWEST_INTRODUCED = 4, 3
_MOST = 60
_FIRST = 3
_TYPED = 6
"""Statements of a message, at most: longer ones are tasks with all that belongs to them, and pages."""
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
_BESIDE_POINTER = 3
_FOR_AGENTS = re.compile(r"(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|instructions|rules)\b", re.IGNORECASE)
"""Files of standing rules: who orders to write into them says what is to be kept."""
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


def explicit(turns: Sequence[Turn], spoken: Sequence[Utterance], *, is_note: bool = False) -> Iterator[Finding]:
    """What is explicit in all messages, or likely to be (its score is below ``SURE``), unless the owner took it back in
    the same message or the next. What may be somebody else's is no more than likely, but in a note; nor is what the
    agent said, or a rule in its words that was chosen, once the session had read text from outside.
    """
    for at, utterance in enumerate(spoken):
        if is_refused(spoken, at):
            continue
        is_typed = len(utterance.statements) <= _TYPED
        texts = [one.text for one in utterance.statements]
        for place, statement in enumerate(utterance.statements):
            if is_taken_back(texts, place):
                continue
            said = remembered(statement.text) or (stated(texts, place) if is_typed else None)
            is_shown = not is_note and may_be_others(statement)
            if said is None or (said.points and is_shown):
                continue
            recalled = _recalled(turns, utterance, place) if said.points else (said.text, (utterance.index,))
            if recalled:
                found = _finding(said, *recalled)
                is_agents = len(found.evidence) > 1 or (
                    found.kind is Kind.PREFERENCE and is_chosen(utterance, statement)
                )
                is_nodded = is_agents and reached_out(turns, utterance.index)
                waits = is_shown or is_nodded
                score = min(found.score, LIKELY) if waits else found.score
                yield replace(found, score=score, shown=is_shown, nodded=is_nodded)


def is_taken_back(texts: Sequence[str], place: int) -> bool:
    """Whether what stands behind the statement at ``place`` of a message takes it back."""
    return any(map(cues().taken_back.search, texts[place + 1 :]))


def is_refused(spoken: Sequence[Utterance], at: int) -> bool:
    """Whether the message after the one at a place takes back what that said."""
    following = spoken[at + 1].statements[:_FIRST] if at + 1 < len(spoken) else ()
    return bool(cues().taken_back.search(" ".join(one.text for one in following)))


def is_stated(text: str) -> bool:
    """Whether a sentence states something, and neither asks, supposes nor reports it of others."""
    return not asks(text) and not any(one.search(text) for one in (cues().asking, cues().supposed, cues().irony))


def remembered(text: str) -> Said | None:
    """What a sentence asks to remember, if it does."""
    known = cues()
    text = text.replace("’", "'")
    bare = language_of(text).trim(text)
    if known.irony.search(text) or (asks(text) and not known.requested.search(bare)):
        return None
    order = _order(bare)
    return _remembered(order) if order and not known.not_remembered.search(bare) else None


def stated(texts: Sequence[str], place: int, judged: Judged | None = None) -> Said | None:
    """What the statement at ``place`` of a message says, if its signs make it likely that it is to be kept.

    ``judged``: by other weights than those of the table.
    """
    text = texts[place].replace("’", "'")
    bare = language_of(text).trim(text)
    if not _is_sized(bare) or asks(text) or leans(bare) or language_of(bare).answers.only_points(bare):
        return None
    judged, worded = judged or judge(signs(texts, place)), _worded(bare)
    if judged.odds < (ORDERED_FROM if worded else LIKELY_FROM) or (judged.known < KNOWN_FROM and not worded):
        return None
    is_sure = worded or judged.odds >= EXPLICIT_FROM
    return Said(worded or judged.kind, bare, STATED, score=SURE if is_sure else SURE * judged.odds / EXPLICIT_FROM)


def _worded(text: str) -> Kind | None:
    """Of which kind a sentence is by the words of a decision or an order in it."""
    if cues().decided.search(text):
        return Kind.DECISION
    return Kind.PREFERENCE if cues().ordered.search(text) or cues().rule.search(text) else None


def _order(text: str) -> re.Match[str] | None:
    """The order to remember in a sentence, at the beginning of a clause or behind "can you"."""
    asked = cues().requested.search(text)
    return cues().remember.search(text) or (cues().remember.match(text[asked.end() :].lstrip()) if asked else None)


def _remembered(order: re.Match[str]) -> Said | None:
    """What an order is about: what stands behind it or, where that points at something, behind a colon or before it."""
    rest = _THAT.sub("", order.string[order.end() :].lstrip(_BETWEEN), count=1).lstrip(_BETWEEN).rstrip("?？ ")
    behind, before = _behind_colon(rest), order.string[: order.start()].rstrip(_BETWEEN)
    pointer, pointed = cues().pointing.match(rest), cues().pointing.search(order.group())
    if not _is_sized(behind) and len(_CLAUSES.split(_said_of_it(order, rest, pointer))[0].split()) > _BESIDE_POINTER:
        return None  # "note it has to fit on a page" says something of what only the turns before it name
    if pointer or pointed or not any(map(str.isalnum, rest)):
        own = next(filter(_is_sized, (behind, before)), None)
        if own == before and cues().supposed.search(before):
            return None
    elif (_introduces(order) and _is_sized(rest, _FEWEST_INTRODUCED)) or (
        _is_sized(rest)
        and (_TO_DO.search(order.group()) or _FOR_AGENTS.search(order.group()) or _is_kept(order.string, rest))
    ):
        own = rest
    else:
        return None
    if _TO_DO.search(f"{order.group()} {rest}"):
        kind = Kind.TODO
    else:
        judged = judge(signs([own or rest], 0))
        is_order = language_of(rest).mark_named("imperative").search(rest)
        kind = judged.kind if judged.odds >= _OF_A_KIND_FROM else Kind.PREFERENCE if is_order else Kind.FACT
    return Said(kind, _TO.sub("", own or rest), REMEMBERED, points=own is None)


def _introduces(order: re.Match[str]) -> bool:
    """Whether a colon follows an order: that leaves no doubt of what is to be remembered."""
    return order.string[order.end() :].lstrip().startswith((":", "："))


def _is_kept(*texts: str) -> bool:
    """Whether what is to be remembered may be worth it, in one of these words: not "note that you forgot the test"."""
    return any(judge(signs([one], 0)).odds >= ORDERED_FROM for one in texts)


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


def _recalled(turns: Sequence[Turn], utterance: Utterance, place: int) -> tuple[str, tuple[int, ...]] | None:
    """What stands before an order to remember it, and where: the owner's own sentence, or what the agent said last."""
    own = [one.text for one in utterance.statements[:place] if _is_sized(one.text)][-2:]
    if own and not asks(own[-1]):
        points_back = leans(own[-1]) or _OF_BEFORE.search(own[-1])
        return " ".join(own if points_back and not asks(own[0]) else own[-1:]), (utterance.index,)
    told = before(turns, utterance.index, Speaker.AGENT)
    if told is None or turns[told].trust is not Trust.TRUSTED:
        return None
    stated = [one.text for one in split(turns[told].text) if not asks(one.text)]
    text = shorten(" ".join(stated[:_RECALLED]), _LONGEST_RECALLED)
    return (text, (told, utterance.index)) if text else None


def _finding(said: Said, content: str, evidence: tuple[int, ...]) -> Finding:
    language = language_of(content)
    content = as_sentence(content)
    subject = subject_of(content)
    return Finding(
        kind=said.kind, subject=subject, content=content, spoken=said.text, index=evidence[-1], evidence=evidence,
        score=said.score, importance=said.importance,
        expiry=Expiry.TEMPORARY if said.kind is Kind.TODO else Expiry.PERMANENT,
        tags=tags_of(content, language), canonical_key=key_of(content, subject, language),
    )  # fmt: skip
