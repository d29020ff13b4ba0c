"""Analysis of turns: order, tool calls, objections, questions, reports, and other authors' words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from nacre.base.frozen import frozen
from nacre.base.text import normalise, pieces, shorten, stem, words
from nacre.learn.pasted import cues, matches, words_of
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
from nacre.values.memory import Candidate, Kind
from nacre.values.session import Action, Flag, Speaker, ToolCall, Trust, Turn

LONGEST_TURN = 32_000
"""Maximum number of analysed characters per turn. In longer turns, the middle is ignored."""

LONGEST_LINE = 4_000
"""Length at which a line is split, to limit the backtracking of regular expressions."""

_LONG_LINE = re.compile(r"[^\n]{4001,}")


def shorten_for_regex(turn: Turn) -> Turn:
    """Shorten a turn's text and split long lines, to keep regular expressions fast."""
    text = turn.text
    if len(text) <= LONGEST_LINE:
        return turn
    if len(text) > LONGEST_TURN:
        text = f"{text[: LONGEST_TURN // 2]}\n\n{text[-LONGEST_TURN // 2 :]}"
    return replace(
        turn, text=_LONG_LINE.sub(lambda line: "\n".join(pieces(line.group(), LONGEST_LINE)), text)
    )


# -- Order of turns --------------------------------------------------------------------------------


_MAX_CLOCK_SKEW = timedelta(minutes=1)
"""Maximum step back in time within a conversation, due to clocks or parallel tools."""


def sort_by_time(turns: Sequence[Turn]) -> list[Turn]:
    """Sort turns by time, because a session's files might have been read in the wrong order."""
    stretches: list[tuple[datetime, list[Turn]]] = []
    latest = datetime.min.replace(tzinfo=UTC)
    for turn in turns:
        time = turn.time or latest
        if not stretches or time + _MAX_CLOCK_SKEW < latest:
            stretches.append((time, []))
            latest = time
        stretches[-1][1].append(turn)
        latest = max(latest, time)
    return [turn for _, stretch in sorted(stretches, key=lambda item: item[0]) for turn in stretch]


# -- Course of the work ----------------------------------------------------------------------------


_EDITED = re.compile(
    r"\bapply_patch\b|\bsed -i|\bcat >|\btee\b|(?<!2)>\s*(?!/dev/null)\S+\s*<<|<<\s?\S+\s*>\s*(?!/dev/null)"
    r"|\.write(?:_text|_bytes|lines)?\(|\bwriteFile(?:Sync)?\(",
    re.IGNORECASE,
)


def is_own(turn: Turn) -> bool:
    """Return True if a turn contains the agent's words and no external text."""
    return turn.speaker is Speaker.AGENT and turn.trust is Trust.TRUSTED and is_content(turn)


def calls(turns: Sequence[Turn], begin: int, end: int) -> list[ToolCall]:
    """Return the tool calls in ``turns[begin:end]``, except those of sub-agents."""
    return [
        call
        for turn in turns[begin:end]
        if not turn.flags & Flag.SIDECHAIN
        for call in turn.tool_calls
    ]


def is_change(call: ToolCall) -> bool:
    """Return True if a call changed a file."""
    is_edit = call.action is Action.EDIT or (
        call.action is Action.RUN and bool(_EDITED.search(call.input))
    )
    return call.outcome == "ok" and is_edit


def is_objection(utterance: Utterance, language: Language) -> bool:
    """Return True if the owner objects or says that something is not done yet."""
    cues = language.concluded
    return any(
        cues.objection.search(language.trim(statement.text)) or cues.objection.match(statement.text)
        for statement in utterance.statements[:2]
    )


# -- Importance and lifetime of memories (agenr's calibration) -------------------------------------


AGENT_CAP = 6
STRONG = 8
MAX_STRONG = 2
ACTION_ITEM = 8
_MEETINGS = frozenset({"plaud"})
"""Tools that record meetings."""


def raise_meeting_todos(tool: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Set the importance of each todo from a meeting to at least 8."""
    if tool not in _MEETINGS:
        return list(candidates)
    return [
        replace(candidate, importance=max(candidate.importance, ACTION_ITEM))
        if candidate.kind is Kind.TODO
        else candidate
        for candidate in candidates
    ]


# -- Findings --------------------------------------------------------------------------------------


_SUBJECT_CHARACTERS = 60
_END = ".!?。！？"
_PLAIN_WORD = re.compile(r"[^\W\d_A-Z]+(?:['’][a-z]+)?[,:;.!?…]*(?:\s|\Z)")


@frozen
class Finding:
    """A statement that might become a memory.

    ``spoken``: the original words. ``evidence``: indexes of the supporting turns, with the owner's
    message last. ``detail``: why it stays a candidate even if repeated. ``mixed``: whether the
    message might contain pasted text. ``ordered``: whether the owner asked to remember it.
    """

    kind: Kind
    content: str
    spoken: str
    evidence: tuple[int, ...]
    score: float
    importance: int
    detail: str = ""
    mixed: bool = False
    ordered: bool = False

    @property
    def index(self) -> int:
        """Index of the owner's message."""
        return self.evidence[-1]

    def repeats(self, other: Finding) -> bool:
        """Return True if both findings come from the same statement."""
        return self.index == other.index and (
            self.spoken in other.spoken or other.spoken in self.spoken
        )


def subject_of(content: str) -> str:
    """Return the first sixty characters of a statement as its subject."""
    return as_sentence(shorten(content.rstrip(_END), _SUBJECT_CHARACTERS))


def as_sentence(text: str) -> str:
    """Capitalise a statement, unless it starts with a name or code, and remove a leading "→"."""
    text = text.removeprefix("→ ").replace(": → ", ": ", 1)
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text


def limit_strong(findings: Sequence[Finding]) -> list[Finding]:
    """Lower the importance of all strong findings except the two strongest."""
    strong = [finding for finding in findings if finding.importance >= STRONG]
    allowed = sorted(
        strong, key=lambda finding: (-finding.importance, -finding.score, finding.index)
    )[:MAX_STRONG]
    excess = [finding for finding in strong if finding not in allowed]
    return [
        replace(finding, importance=STRONG - 1) if finding in excess else finding
        for finding in findings
    ]


# -- Repetitions within a session ------------------------------------------------------------------


_WORD = re.compile(r"[a-z0-9_./]{2,}(?:'t)?|[\u4e00-\u9fff]{2}", re.IGNORECASE)


def drop_repetitions(findings: Sequence[Finding]) -> list[Finding]:
    """Remove repeated findings, but keep a rule that the owner changed and later restored."""
    distinct: dict[int, Finding] = {}
    latest: dict[frozenset[str], int] = {}
    for at, finding in enumerate(sorted(findings, key=lambda item: item.index)):
        content = content_words(finding.content)
        previous = distinct.get(latest.get(content, -1))
        if previous and normalise(previous.content) == normalise(finding.content):
            distinct[latest[content]] = max(
                previous, finding, key=lambda item: (item.score, item.importance)
            )
        else:
            distinct[at], latest[content] = finding, at
    return list(distinct.values())


def content_words(
    text: str, language: Language | None = None, silent: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Return the stems of a text's content words, or pairs of characters for Chinese.

    ``silent`` words are left out. By default, the language is detected.
    """
    language = language or language_of(text)
    stop = language.stop
    if not language.joiner:
        return frozenset(word for word in words(text) if len(word) > 1) - stop - silent
    spaced = (word.lower().strip("./") for word in _WORD.findall(text))
    return frozenset(stem(word) for word in spaced if word not in stop) - {
        stem(word) for word in silent
    }


# -- Closing questions of an agent -----------------------------------------------------------------


_MARKUP = re.compile(r"\*\*|__|^#+\s*|^>\s*", re.MULTILINE)
_QUESTION_END = re.compile(r"[?？]\W*$")
_MAX_OPTION_CHARACTERS = 250
_CLOSING_STATEMENTS = 6


@frozen
class ClosingQuestion:
    """The question at the end of an agent's message.

    ``question`` is empty if the answer is not worth remembering. ``options`` are keyed by letter or
    number. ``closing``: whether nothing follows the question.
    """

    question: str = ""
    options: dict[str, str] = field(default_factory=dict)
    closing: bool = False


def parse_question(text: str) -> ClosingQuestion:
    """Return the question at the end of an agent's message, with its options."""
    cues = language_of(text).answers
    plain = _MARKUP.sub("", text)
    options: dict[str, str] = {}
    for line in plain.split("\n"):
        option = cues.option.match(line)
        if option:
            parts = split(option["text"])
            options[option_key(option["which"], cues)] = (
                parts[0].text if parts else option["text"]
            )[:_MAX_OPTION_CHARACTERS].strip()
    prose = [
        statement.text
        for statement in split(plain)
        if not cues.option.match(statement.text) and statement.mark is None
    ]
    questions = [
        sentence
        for sentence in prose[-_CLOSING_STATEMENTS:]
        if is_asking(sentence) or (sentence.endswith((":", "：")) and cues.choice.search(sentence))
    ]
    durable = [sentence for sentence in questions if not cues.errand.search(sentence)]
    question = durable[-1] if durable and not cues.which.search(durable[-1]) else ""
    return ClosingQuestion(
        question, options, closing=bool(durable) and prose[-1].endswith(durable[-1])
    )


def is_asking(text: str) -> bool:
    """Return True if a text ends with a question."""
    return bool(_QUESTION_END.search(text))


def option_key(which: str, cues: Answers) -> str:
    """Return the normalised letter or number of an option, such as "2" for "second"."""
    lower = which.lower()
    return cues.ordinals.get(lower, lower)


# -- Statements in reports and plans, grouped by heading, without code references ------------------


_CACHED_TEXTS = 64
_MARK = "\ue000"  # replaces quotation marks while a text is split
_FENCE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+(?P<marked>\S.*?)\s*#*|\*\*(?P<bold>[^*]{2,80}?)\*\*\s*[:：]?|__(?P<under>[^_]{2,80})__)\s*$"
)
_NUMBER = re.compile(r"^(?:\d{1,2}[.)]|[^\w`\"']+)\s*")


@frozen
class Passage:
    """A heading and the statements below it.

    ``heading`` is empty for statements before the first heading.
    """

    heading: str
    statements: tuple[Statement, ...]


@lru_cache(maxsize=_CACHED_TEXTS)
def passages(text: str) -> tuple[Passage, ...]:
    """Group a text's statements by heading. A line in bold is also a heading."""
    return tuple(
        passage
        for passage in _passages(without_fences(text))
        if passage.heading or passage.statements
    )


def without_fences(text: str) -> str:
    """Return a text without code blocks."""
    return _FENCE.sub("\n", text)


def _passages(text: str) -> Iterator[Passage]:
    heading, lines = "", list[str]()
    for line in text.replace('"', _MARK).split("\n"):
        match = _HEADING.match(line)
        if match is None:
            lines.append(line)
            continue
        yield Passage(heading, _statements(lines))
        plain = (match["marked"] or match["bold"] or match["under"]).replace("**", "").strip(" :：")
        heading, lines = (_NUMBER.sub("", plain).replace(_MARK, '"'), [])
    yield Passage(heading, _statements(lines))


def _statements(lines: Sequence[str]) -> tuple[Statement, ...]:
    # Restore the quotation marks. In ``split``, they would make a text count as pasted.
    return tuple(
        replace(statement, text=statement.text.replace(_MARK, '"'))
        for statement in split("\n".join(lines))
    )


# -- Statements that may be quoted from another author ---------------------------------------------


_FRAMES = (">", "<", "{", "|")
_MAX_ERRAND_WORDS = 3
"""Maximum number of words in a request before pasted text, such as "please fix this:"."""


def may_be_others(statement: Statement) -> bool:
    """Return True if a statement might be another person's.

    Signs are a lead-in such as "fix this:", or a first line that announces no rule or note.
    """
    before, colon, _ = statement.text.replace("：", ":").partition(":")
    if statement.marked or (colon and _is_errand(before) and not announces(before + colon)):
        return True
    if not statement.line or _is_order(statement.opening):
        return False
    return not any(map(announces, (statement.lead or "", statement.opening)))


def own_words(text: str) -> str:
    """Return a message without pasted text and other people's statements."""
    if "\n" not in text.strip():
        return "" if text.lstrip().startswith(_FRAMES) else text
    typed = [statement.text for statement in split_typed(text) if not may_be_others(statement)]
    return language_of(text).joiner.join(typed)


def _is_order(text: str) -> bool:
    order = language_of(text).trim(text)
    return not is_asking(text) and any(
        pattern.match(order) for pattern in (cues().remember, cues().rule, cues().ordered)
    )


def _is_errand(text: str) -> bool:
    language = language_of(text)
    order = language.trim(text)
    return len(words(order)) <= _MAX_ERRAND_WORDS and bool(language.reject["errand"].search(order))


def announces(text: str) -> bool:
    """Return True if a text ends with a colon and announces a rule or note."""
    own = (cues().remember, cues().rule, cues().place, words_of("announcing"))
    is_lead = text.rstrip().endswith((":", "：")) and matches(text, *own)
    return is_lead and not leads_others(text)
