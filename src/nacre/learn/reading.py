"""Prepares: turns whose texts expressions can be let loose on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from nacre.base.text import normalise, pieces, shorten, stem, words
from nacre.learn.pasted import cues, words_of
from nacre.learn.sentences import (
    Answers,
    Language,
    Statement,
    Utterance,
    is_content,
    language_of,
    leads_others,
    split,
    split_typed,
)
from nacre.values.memory import Candidate, Expiry, Kind
from nacre.values.session import Action, Flag, Speaker, ToolCall, Trust, Turn

LONGEST_TURN = 32_000
"""Characters of a turn that are looked at: of a longer one, which holds a paste, half of them at either end."""

LONGEST_LINE = 4_000
"""Characters of a line; a longer one is taken for several. Expressions go back over what they passed in a line."""

_LONG_LINE = re.compile(r"[^\n]{4001,}")


def bounded(turn: Turn) -> Turn:
    """A turn whose text expressions can be let loose on: pastes cut in the middle, endless lines in pieces."""
    text = turn.text
    if len(text) <= LONGEST_LINE:
        return turn
    if len(text) > LONGEST_TURN:
        text = f"{text[: LONGEST_TURN // 2]}\n\n{text[-LONGEST_TURN // 2 :]}"
    return replace(
        turn, text=_LONG_LINE.sub(lambda line: "\n".join(pieces(line.group(), LONGEST_LINE)), text)
    )


# ----------------------------------------------------------------------------
# Puts the turns of a session in the order in which they were said.


_BACK = timedelta(minutes=1)
"""Clocks and tools that write side by side step back by less within a stretch of talk."""


def in_time(turns: Sequence[Turn]) -> list[Turn]:
    """Turns with each stretch of talk where its time says.

    A session of several files, of which the later one is read first, is stored in the order in which it was read.
    """
    stretches: list[tuple[datetime, list[Turn]]] = []
    latest = datetime.min.replace(tzinfo=UTC)
    for turn in turns:
        time = turn.time or latest
        if not stretches or time + _BACK < latest:
            stretches.append((time, []))
            latest = time
        stretches[-1][1].append(turn)
        latest = max(latest, time)
    return [turn for _, stretch in sorted(stretches, key=lambda one: one[0]) for turn in stretch]


# ----------------------------------------------------------------------------
# Reads: how the work went: what the owner asked for, what the agent did and reported, how the owner
# went on.


_EDITED = re.compile(
    r"\bapply_patch\b|\bsed -i|\bcat >|\btee\b|(?<!2)>\s*(?!/dev/null)\S+\s*<<|<<\s?\S+\s*>\s*(?!/dev/null)"
    r"|\.write(?:_text|_bytes|lines)?\(|\bwriteFile(?:Sync)?\(",
    re.IGNORECASE,
)


def is_own(turn: Turn) -> bool:
    """Whether a turn is the agent's own words, and none from outside."""
    return turn.speaker is Speaker.AGENT and turn.trust is Trust.TRUSTED and is_content(turn)


def calls(turns: Sequence[Turn], begin: int, end: int) -> list[ToolCall]:
    """The tool calls of a part of the session, without those of sub-agents."""
    return [
        call
        for turn in turns[begin:end]
        if not turn.flags & Flag.SIDECHAIN
        for call in turn.tool_calls
    ]


def changed(turns: Sequence[Turn], begin: int, end: int) -> bool:
    """Whether a call in a part of the session changed a file."""
    return any(changes(call) for call in calls(turns, begin, end))


def changes(call: ToolCall) -> bool:
    """Whether a call changed a file."""
    is_edit = call.action is Action.EDIT or (
        call.action is Action.RUN and bool(_EDITED.search(call.input))
    )
    return call.outcome == "ok" and is_edit


def objects(utterance: Utterance, language: Language) -> bool:
    """Whether the owner says that it is not so, or not yet."""
    cues = language.concluded
    return any(
        cues.objection.search(language.trim(one.text)) or cues.objection.match(one.text)
        for one in utterance.statements[:2]
    )


# ----------------------------------------------------------------------------
# Finishes: how much a memory weighs and how long it is meant to hold (agenr's calibration).


AGENT_CAP = 6
STRONG = 8
MAX_STRONG = 2
ACTION_ITEM = 8
_MEETINGS = frozenset({"plaud"})
"""Tools whose sessions are recorded talk."""


def weighed(tool: str, found: Sequence[Candidate]) -> list[Candidate]:
    """What is left to do after a meeting weighs eight, however many there are: nothing else tells of it (seed facts
    1.5)."""
    if tool not in _MEETINGS:
        return list(found)
    return [
        replace(one, importance=max(one.importance, ACTION_ITEM)) if one.kind is Kind.TODO else one
        for one in found
    ]


# ----------------------------------------------------------------------------
# Finishes: a candidate in the making, with its subject, weight and the turns that show it.


_SUBJECT_CHARACTERS = 60
_END = ".!?。！？"
_ADDRESS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, in which turns (``evidence``), how sure; ``spoken`` is the statement as it was said, ``shown``
    whether the owner may only show it, as somebody else's, ``nodded`` whether they only pointed at words of the agent,
    which may be somebody else's, too, ``mixed`` whether the message has marks of a paste.
    """

    kind: Kind
    subject: str
    content: str
    spoken: str
    index: int
    evidence: tuple[int, ...]
    score: float
    importance: int
    expiry: Expiry = Expiry.PERMANENT
    shown: bool = False
    nodded: bool = False
    mixed: bool = False

    def repeats(self, other: Finding) -> bool:
        """Whether it is told from the same statement of the same turn."""
        return self.index == other.index and (
            self.spoken in other.spoken or other.spoken in self.spoken
        )


def subject_of(content: str) -> str:
    """What a statement is about: its beginning, at most sixty characters."""
    return as_sentence(shorten(content.rstrip(_END), _SUBJECT_CHARACTERS))


def as_sentence(text: str) -> str:
    """A statement with a capital at its beginning, where that is no address; an answer without what points at it."""
    text = text.removeprefix("→ ").replace(": → ", ": ", 1)
    return text if text.startswith(_ADDRESS) else text[:1].upper() + text[1:]


def tempered(findings: Sequence[Finding]) -> list[Finding]:
    """At most two memories of a session may change what every other session does (seed facts 1.5)."""
    strong = [one for one in findings if one.importance >= STRONG]
    allowed = sorted(strong, key=lambda one: (-one.importance, -one.score, one.index))[:MAX_STRONG]
    too_many = [one for one in strong if one not in allowed]
    return [replace(one, importance=STRONG - 1) if one in too_many else one for one in findings]


# ----------------------------------------------------------------------------
# Settles: statements of one session that say the same, and the words by which statements are
# compared.


_WORD = re.compile(r"[a-z0-9_./]{2,}|[\u4e00-\u9fff]{2}", re.IGNORECASE)


def once(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings in order, without those that say again what was said last of the same: what "never" came between
    is said anew.
    """
    found: dict[int, Finding] = {}
    last: dict[frozenset[str], int] = {}
    for at, one in enumerate(sorted(findings, key=lambda one: one.index)):
        about = content_words(one.content, language_of(one.content))
        before = found.get(last.get(about, -1))
        if before and normalise(before.content) == normalise(one.content):
            found[last[about]] = max(before, one, key=lambda said: (said.score, said.importance))
        else:
            found[at], last[about] = one, at
    return list(found.values())


def content_words(
    text: str, language: Language, silent: frozenset[str] = frozenset()
) -> frozenset[str]:
    """The stems of a text's content words, without those of ``silent``; pairs of characters in Chinese."""
    stop = language.subject.stop
    if not language.joiner:
        return frozenset(word for word in words(text) if len(word) > 1) - stop - silent
    found = (word.lower().strip("./") for word in _WORD.findall(text))
    return frozenset(stem(word) for word in found if word not in stop) - {
        stem(word) for word in silent
    }


# ----------------------------------------------------------------------------
# Reads for answers: what an agent's message asks at its end, and the options it offers.


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
    prose = [
        one.text for one in split(plain) if not cues.option.match(one.text) and one.mark is None
    ]
    ending = [_unlabelled(one, cues) for one in prose[-_CLOSING_STATEMENTS:]]
    questions = [one for one in ending if _is_question(one, cues)]
    durable = [one for one in questions if not cues.errand.search(one)]
    question = durable[-1] if durable else ""
    vague = bool(cues.which.search(question))
    return ClosingQuestion(
        question=_intro(plain, cues)
        if options and (vague or not question)
        else ""
        if vague
        else question,
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
    return (
        last
        if last.endswith((":", "：")) and len(told) > 1 and not cues.errand.search(last)
        else ""
    )


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


# ----------------------------------------------------------------------------
# Reads: what an agent reports, or a plan says: statements under their headings, without what only
# points into code.


_REMEMBERED = 64
_MARK = "\ue000"  # stands for a quotation mark while a text is split
_MAX_CHARACTERS = 280
_FENCE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+(?P<marked>\S.*?)\s*#*|\*\*(?P<bold>[^*]{2,80}?)\*\*\s*[:：]?|__(?P<under>[^_]{2,80})__)\s*$"
)
_NUMBER = re.compile(r"^(?:\d{1,2}[.)]|[^\w`\"']+)\s*")
_PLACES = re.compile(
    r"""
    \s*[(（](?:(?:at|on|see|in)\ )?(?:`?[\w./-]+\.\w{1,5}`?[:,]?\ ?)?(?:lines?\ |L|:|第\ ?)\d[^()（）]{0,30}[)）]
    | \s*[,，]?\ (?:at|on|in|around|near)\ lines?\ \d+(?:\s?[-–]\s?\d+)?           # on line 30
    | \s*第\s?\d+(?:\s?[-–]\s?\d+)?\s?行
    | (?<=\.go|\.py|\.ts|\.js|\.rs|\.rb|\.kt|\.cc)(?::\d+)(?:\s?[-–:]\s?\d+)*                      # resume.go:336-339
    | (?<=\w\.\w{3}|\.\w{4})(?::\d+)(?:\s?[-–:]\s?\d+)*
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Passage:
    """What stands under one heading; the heading is empty before the first."""

    heading: str
    statements: tuple[Statement, ...]


@lru_cache(maxsize=_REMEMBERED)
def passages(text: str) -> tuple[Passage, ...]:
    """The statements of a text, heading by heading; bold lines of their own are headings, too."""
    return tuple(one for one in _passages(without_fences(text)) if one.heading or one.statements)


def without_fences(text: str) -> str:
    """A text without its blocks of code."""
    return _FENCE.sub("\n", text)


def _passages(text: str) -> Iterator[Passage]:
    heading, lines = "", list[str]()
    for line in text.replace('"', _MARK).split("\n"):
        match = _HEADING.match(line)
        if match is None:
            lines.append(line)
            continue
        yield Passage(heading, _statements(lines))
        heading, lines = (
            _titled(match["marked"] or match["bold"] or match["under"]).replace(_MARK, '"'),
            [],
        )
    yield Passage(heading, _statements(lines))


def _statements(lines: Sequence[str]) -> tuple[Statement, ...]:
    """The statements of some lines; quotation marks in a report are names and values, no pasted text."""
    return tuple(replace(one, text=one.text.replace(_MARK, '"')) for one in split("\n".join(lines)))


def _titled(heading: str) -> str:
    plain = heading.replace("**", "").strip(" :：")
    return _NUMBER.sub("", plain)


# ----------------------------------------------------------------------------
# Reads: whether a statement may be somebody else's, whom the owner only shows.


_FRAMES = (">", "<", "{", "|")
_BRIEF = 3
"""Words of an order that shows something: "please fix this:"."""


def may_be_others(statement: Statement) -> bool:
    """Whether a statement may be somebody else's: it is marked so, or stands on a later line of what was typed than the
    first, or behind a short order with a colon ("fix this:").

    Who pastes says first what it is, and in no words that could be listed. A later line is the owner's own where the
    first one is an order to keep something or a rule, or it or the line that leads into a list says with a colon that
    what follows is to hold.
    """
    before, colon, _ = statement.text.replace("：", ":").partition(":")
    if statement.marked or (colon and _is_errand(before) and not announces(before + colon)):
        return True
    if not statement.line or _is_order(statement.opening):
        return False
    return not any(map(announces, (statement.lead or "", statement.opening)))


def own_words(text: str) -> str:
    """What of a message is told as the owner's: without what is pasted in it, and what may only be shown."""
    if "\n" not in text.strip():
        return "" if text.lstrip().startswith(_FRAMES) else text
    typed = [one.text for one in split_typed(text) if not may_be_others(one)]
    return language_of(text).joiner.join(typed)


def _is_order(text: str) -> bool:
    """Whether a line orders to keep something, or states a rule: who begins so goes on in their own words."""
    order = language_of(text).trim(text)
    return not is_asking(text) and any(
        one.match(order) for one in (cues().remember, cues().rule, cues().ordered)
    )


def _is_errand(text: str) -> bool:
    language = language_of(text)
    order = language.trim(text)
    return len(words(order)) <= _BRIEF and bool(language.reject["errand"].search(order))


def announces(text: str) -> bool:
    """Whether words before a colon say that what follows is to hold."""
    own = (cues().remember, cues().rule, cues().place, words_of("announcing"))
    is_lead = text.rstrip().endswith((":", "：")) and any(one.search(text) for one in own)
    return is_lead and not leads_others(text)
