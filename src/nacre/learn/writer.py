"""Settles: what several parts of a session said alike is one memory."""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cache, cached_property, partial
from importlib.resources import files
from itertools import chain, islice

import msgspec
from msgspec.structs import replace as replace_2

from nacre.base.text import count_tokens, excerpt, normalise, one_line, title_of, words
from nacre.base.times import shown_day
from nacre.errors import EmbedderUnavailable
from nacre.home.consent import configured_embedder
from nacre.home.home import Home
from nacre.learn.checks import Caller, Checks, Dropped, Overtaken, overtaken, standing
from nacre.learn.extract import Way, doubt, extract, is_agreed, is_quiet, may_be_shown
from nacre.learn.prompts import (
    CHARACTERS_A_TOKEN,
    CHUNK,
    DIGEST_TOKENS,
    MOST_MEMORIES,
    Answer,
    Changes,
    Chunk,
    Doubt,
    Held,
    Line,
    Reply,
    Saying,
    Seen,
    Told,
    as_data,
    as_read,
    calls_of,
    chunk_size,
    chunks,
    for_changes,
    for_sessions,
    for_transcript,
    framed,
    laid_out,
    room_for,
    whole,
    with_room,
    without,
    without_middle,
)
from nacre.learn.reading import MAX_STRONG, STRONG, content_words, weighed
from nacre.learn.sentences import (
    Statement,
    before,
    is_accepted_plan,
    is_content,
    language_of,
    utterances,
)
from nacre.llm.failures import schema_of
from nacre.protocols import LanguageModel
from nacre.readers.conversation import memories_made
from nacre.recall.recall import recall, search_sessions
from nacre.values.memory import Candidate, Confidence, Kind, Memory, SessionFilter, Why
from nacre.values.models import Capabilities, Prompt, Tokens
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Session, SessionKind, Speaker, Task, Trust, Turn

ALIKE = 0.7
"""From this share of common runs of three characters on, two contents may say the same (Jaccard)."""

_RUN = 3
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Kept:
    candidate: Candidate
    words: str
    runs: frozenset[str]
    says: frozenset[str]


def merged(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates without those that others repeat, in order; each with the turns of all that said it."""
    kept: list[_Kept] = []
    for candidate in candidates:
        one = _read(candidate)
        at = next((at for at, other in enumerate(kept) if _says_the_same(one, other)), None)
        if at is None:
            kept.append(one)
        else:
            kept[at] = _fuller(kept[at], one)
    return [one.candidate for one in kept]


def _read(candidate: Candidate) -> _Kept:
    words = normalise(candidate.content)
    runs = frozenset(words[at : at + _RUN] for at in range(max(1, len(words) - _RUN + 1)))
    says = content_words(candidate.content, language_of(candidate.content))
    return _Kept(candidate, words, runs, says | frozenset(_NUMBER.findall(words)))


def tempered(candidates: Sequence[Candidate]) -> list[Candidate]:
    """At most two memories of a session may change what every other session does (seed facts 1.5)."""
    strong = sorted(
        (at for at, one in enumerate(candidates) if one.importance >= STRONG),
        key=lambda at: -candidates[at].importance,
    )
    too_many = set(strong[MAX_STRONG:])
    return [
        replace(one, importance=STRONG - 1) if at in too_many else one
        for at, one in enumerate(candidates)
    ]


def _says_the_same(one: _Kept, other: _Kept) -> bool:
    """The same words, or nearly the same of one kind where not both have words or numbers that the other one lacks."""
    if one.words == other.words:
        return True
    if one.candidate.kind is not other.candidate.kind or not (
        one.says <= other.says or other.says <= one.says
    ):
        return False
    few, many = sorted((len(one.runs), len(other.runs)))
    return few >= ALIKE * many and len(one.runs & other.runs) >= ALIKE * len(one.runs | other.runs)


def _fuller(known: _Kept, again: _Kept) -> _Kept:
    """The one that weighs more, with the evidence of both where both are a model's."""
    first, second = known.candidate, again.candidate
    best = again if _weight(second) > _weight(first) else known
    if first.speaker is not second.speaker or first.confidence is not second.confidence:
        return best
    return replace(
        best,
        candidate=replace(
            best.candidate, turns=tuple(dict.fromkeys((*first.turns, *second.turns)))
        ),
    )


def _weight(one: Candidate) -> tuple[bool, bool, int, int]:
    return not one.held, one.speaker is Speaker.OWNER, one.importance, len(one.content)


# ----------------------------------------------------------------------------
# Has a model compare what was proposed of a session with its evidence alone: one short call a
# session.
#
# Whoever reads a whole session may take a proposal for a decision, a supposition for a fact, or mix
# two things up.
# Whoever sees only a statement and the turns around it does not. What is not borne out waits as a
# candidate.


VERSION = "4"
AT_ONCE = 40
"""So many statements stand in one call at most."""

UNCOMPARED = "nobody has compared it with its evidence"

_TURN_CHARACTERS = 8_000
_TOKENS_EACH = 60
_LEAST_TOKENS = 400
_CLOSING = "Answer with a verdict for each."


class Finding(StrEnum):
    """What a model makes of a statement and its evidence."""

    HOLDS = "holds"
    UNSETTLED = "unsettled"
    TAKEN_BACK = "taken_back"
    DIFFERS = "differs"
    NOT_SAID = "not_said"
    ONCE = "once"
    INSTRUCTED = "instructed"


_OF_PARTS = frozenset({Finding.UNSETTLED, Finding.TAKEN_BACK, Finding.DIFFERS, Finding.NOT_SAID})
"""Where the rest of a statement stands without its wrong parts: an instruction or an errand is told of as a whole."""

_DETAILS: Mapping[Finding, str] = {
    Finding.UNSETTLED: "its evidence asks, supposes or proposes it, and nobody settles it",
    Finding.TAKEN_BACK: "it was taken back or turned down",
    Finding.DIFFERS: "its evidence says something else",
    Finding.NOT_SAID: "its evidence does not say it",
    Finding.ONCE: "it was said of the work at hand alone",
    Finding.INSTRUCTED: "it is an instruction of text from outside",
}


class Verdict(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is found of one statement, or of those of its parts that are ``wrong``."""

    number: int
    finding: Finding
    wrong: list[str]


class Verdicts(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is found of each statement."""

    verdicts: list[Verdict]


Asked = tuple[Candidate, Sequence[Turn]]
"""A candidate, and the turns of its session."""

Group = tuple[Sequence[Candidate], Sequence[Turn]]
"""Candidates of one session, and its turns."""


def verified(caller: Caller, groups: Sequence[Group], seconds: float) -> list[list[Candidate]]:
    """The same candidates, group by group; those of a model that their evidence does not bear out, or that nobody could
    judge, wait.
    """
    asked = [
        (one, turns) for candidates, turns in groups for one in candidates if _is_to_be_judged(one)
    ]
    found: dict[int, Candidate] = {}
    caller.try_smaller()
    for batch in _batches(asked, caller.capabilities):
        answer = caller.ask(prompt_for(batch, caller.capabilities, seconds), Verdicts)
        told = {one.number: one for one in answer.verdicts} if answer else {}
        found |= {
            id(one): _judged(one, told.get(number)) for number, (one, _) in enumerate(batch, 1)
        }
    return [[found.get(id(one), one) for one in candidates] for candidates, _ in groups]


def _batches(asked: Sequence[Asked], able: Capabilities) -> Iterator[Sequence[Asked]]:
    """What is asked, in so many calls that each has room in the window."""
    half = len(asked) // 2
    if len(asked) > AT_ONCE or (half and not _has_room(prompt_for(asked, able, 0.0), able)):
        yield from _batches(asked[:half], able)
        yield from _batches(asked[half:], able)
    elif asked:
        yield asked


def _has_room(prompt: Prompt, able: Capabilities) -> bool:
    return count_tokens(prompt.text) <= room_for(able, prompt.output_tokens)


def _is_to_be_judged(candidate: Candidate) -> bool:
    return not candidate.held and candidate.confidence is Confidence.EXTRACTED


def _judged(candidate: Candidate, verdict: Verdict | None) -> Candidate:
    if verdict is None:
        return replace(candidate, held=Why.UNPROVEN, detail=UNCOMPARED)
    if verdict.finding is Finding.HOLDS:
        return candidate
    rest = without(candidate.content, verdict.wrong) if verdict.finding in _OF_PARTS else None
    if rest:
        return replace(candidate, content=rest, subject=_subject(candidate, rest))
    why = Why.UNTRUSTED if verdict.finding is Finding.INSTRUCTED else Why.UNPROVEN
    return replace(candidate, held=why, detail=_DETAILS[verdict.finding])


def _subject(candidate: Candidate, rest: str) -> str:
    """Its own, where nothing of what was taken out is in it."""
    gone, subject = _words_of(candidate.content) - _words_of(rest), candidate.subject
    return title_of(rest) if gone & _words_of(subject) else subject


def _words_of(text: str) -> frozenset[str]:
    return content_words(text, language_of(text))


def prompt_for(asked: Sequence[Asked], able: Capabilities, seconds: float) -> Prompt:
    """What asks for the verdicts on candidates of some sessions: the evidence of all, each turn once, then the
    statements.
    """
    shown: list[str] = []
    listed: list[str] = []
    for turns in {id(turns): turns for _, turns in asked}.values():
        mine = [one for one, said in asked if said is turns]
        place = {turn.id: at for at, turn in enumerate(turns)}
        evidence = [sorted(place[turn] for turn in one.turns if turn in place) for one in mine]
        numbers = {at: len(shown) + number for number, at in enumerate(_beside(turns, evidence), 1)}
        shown += _lines(turns, numbers)
        for one, cited in zip(mine, evidence, strict=True):
            named = ", ".join(f"m{numbers[at]}" for at in cited)
            listed.append(
                f"{len(listed) + 1}. [{one.kind.value}] {as_data(one_line(one.content))} (evidence: {named})"
            )
    text = (framed("transcript", "\n".join(shown)), framed("memories", "\n".join(listed)), _CLOSING)
    room = min(able.output, able.window // 4, max(_LEAST_TOKENS, _TOKENS_EACH * len(asked)))
    return Prompt(
        task=Task.EXTRACTION,
        system=_words(),
        text="\n\n".join(text),
        answer=schema_of(Verdicts),
        name="verdicts",
        version=f"verify/{VERSION}",
        output_tokens=room,
        timeout_seconds=seconds,
    )


def _beside(turns: Sequence[Turn], evidence: Sequence[Sequence[int]]) -> list[int]:
    """The turns that are cited, what the owner's among them answer and what the agent made of them, and the owner's
    next words.
    """
    cited = {at for some in evidence for at in some}
    beside = {
        at
        for one in cited
        for at in (_led_to(turns, one), _made_of(turns, one), _answer_to(turns, one))
    }
    return sorted(at for at in cited | beside if at is not None)


def _led_to(turns: Sequence[Turn], at: int) -> int | None:
    """What the agent said before a turn of the owner's: what that answers, or the plan that it accepts."""
    if turns[at].speaker is not Speaker.OWNER:
        return None
    return at - 1 if at and is_accepted_plan(turns, at - 1) else before(turns, at, Speaker.AGENT)


def _made_of(turns: Sequence[Turn], at: int) -> int | None:
    """What the agent says last before the owner speaks again, after a turn of the owner's: what it did about it."""
    if turns[at].speaker is not Speaker.OWNER:
        return None
    following = _answer_to(turns, at)
    said = before(turns, len(turns) if following is None else following, Speaker.AGENT)
    return said if said is not None and said > at else None


def _answer_to(turns: Sequence[Turn], at: int) -> int | None:
    """The owner's next turn after another one: what they made of it."""
    later = (
        one
        for one in range(at + 1, len(turns))
        if turns[one].speaker is Speaker.OWNER and is_content(turns[one])
    )
    return next(later, None)


def _lines(turns: Sequence[Turn], numbers: Mapping[int, int]) -> Iterator[str]:
    """Turns under their numbers."""
    day, calls = "", list(calls_of(turns))
    for at, number in numbers.items():
        turn = turns[at]
        date = shown_day(turn.time) if turn.time else day
        who = "agent, plan" if is_accepted_plan(turns, at) else turn.speaker.value
        who += ", untrusted" if turn.trust is Trust.UNTRUSTED else ""
        text = "\n  ".join(without_middle(as_read(turn), _TURN_CHARACTERS).splitlines())
        yield f"{f'({date}){chr(10)}' if date != day else ''}[m{number}][{who}] {text}{calls[at]}"
        day = date


@cache
def _words() -> str:
    return (files(__package__) / "prompts" / f"verify-{VERSION}.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# How many memories a session is worth: of more, those that weigh least wait as candidates.
#
# Who writes part by part writes of each part what matters most in it. What readers would keep of a
# session grows slower
# than the session: of sixty messages of the owner's a dozen memories, of two a few. The constants are
# those of two
# readers' labels (decision 12).


_GROWTH, _LEAST = 1.3, 1


def most_of(turns: Sequence[Turn], begin: int) -> int:
    """How many memories the turns from ``begin`` on are worth at most, by the owner's messages among them."""
    messages = {one.index for one in utterances(turns) if one.index >= begin}
    return math.ceil(_GROWTH * math.sqrt(len(messages))) + _LEAST


def worthiest(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The same candidates, of which ``most`` are memories: those that weigh most, of equal ones the last."""
    memories = [at for at, one in enumerate(candidates) if not one.held]
    return _others_wait(
        candidates, sorted(memories, key=lambda at: (-candidates[at].importance, -at))[:most]
    )


def first_of(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The same candidates, of which only the ``most`` that weigh most may be memories, those that are held back among
    them: who proposes the same again and again, in one way or another, gets no further.
    """
    return _others_wait(
        candidates, sorted(range(len(candidates)), key=lambda at: -candidates[at].importance)[:most]
    )


def _others_wait(candidates: Sequence[Candidate], kept: Collection[int]) -> list[Candidate]:
    return [
        one
        if one.held or at in kept
        else replace(one, held=Why.MINOR, detail="others of its session matter more")
        for at, one in enumerate(candidates)
    ]


# ----------------------------------------------------------------------------
# All stages in a row, with a model: turns → what it is shown → what it proposes → what the session
# bears out.
#
# Whatever the model does not do, the deterministic extractor does: no part of a session is lost to a
# failed call.


THREADS = 4
ATTEMPTS = 3
"""For a session as a whole."""

ROUNDS = 8
"""Times that a part of a session is asked about before the deterministic extractor has it."""

MOST_A_CHUNK = 8
_RESERVED_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a model: from the turn ``begin`` on, in which ``way``, of the owner's turns alone or of all.

    ``related`` memories are shown as known already, and ``near`` finds those nearest to some words. ``pause`` waits for
    so many seconds.
    """

    begin: int = 0
    way: Way = Way.FITTING
    owner_only: bool = False
    related: Sequence[Memory] = ()
    near: Callable[[Sequence[str]], Sequence[Memory]] = lambda _words: ()
    timeout_seconds: float = 120.0
    notify: Callable[[int, int], None] = lambda _done, _total: None
    """Called with how many parts are done, of how many."""


Taken = tuple[list[Candidate], list[Overtaken]]
"""The memories of a session, and the known ones that it overtakes."""

Judged = tuple[list[Candidate], list[Overtaken], list[Overtaken]]
"""The same, compared with their evidence, and which of the known ones it may overtake: somebody is to look at them."""

Borne = tuple[list[Candidate], list[Overtaken], Sequence[Turn]]
"""What code bears out of a session's memories, what is overtaken, and the turns that show it."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What became of one session, and which known memories it shows to be ``overtaken``.

    Those in ``doubted`` it may overtake: the evidence does not bear it out. ``dropped`` counts proposals that were not
    taken, by reason. ``parts`` were shown, a whole session is one; ``by_rules`` of them the deterministic extractor
    did. ``problem`` says what failed last, with its remedy.
    """

    candidates: tuple[Candidate, ...]
    model: str
    overtaken: tuple[Overtaken, ...] = ()
    doubted: tuple[Overtaken, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    proposed: int = 0
    repeated: int = 0
    calls: int = 0
    tokens: Tokens = Tokens()
    parts: int = 0
    by_rules: int = 0
    is_whole: bool = False
    problem: str | None = None
    hint: str | None = None
    is_over: bool = False
    """Whether asking this model again would be in vain for now."""

    is_useless: bool = False
    """Whether it is, since the model never answered in the shape asked for."""

    left: frozenset[str] = frozenset()
    """The turns of parts that it was not asked about, as it may take no more for now."""

    is_uncompared: bool = False
    """Whether that left no call to compare what it proposed with its evidence."""

    @property
    def memories(self) -> tuple[Candidate, ...]:
        """Those that are memories at once; the others wait."""
        return tuple(one for one in self.candidates if not one.held)


def extract_with(
    model: LanguageModel, session: Session, turns: Sequence[Turn], wanted: Wanted
) -> Extraction:
    """The memories of a session's turns at or after ``wanted.begin``, in the order in which they were said.

    Pure but for the calls: the same turns and the same answers give the same candidates, in whatever order the answers
    come. No error of a model is raised.
    """
    if session.kind is not SessionKind.MAIN:
        return Extraction((), model.name)
    return Asking(Caller(model), session, turns, wanted).run()


def compared(caller: Caller, found: Sequence[Borne], seconds: float) -> list[Judged]:
    """Compared with their evidence, session by session: memories that it does not bear out wait, and nothing is
    overtaken that it does not show to be, wholly. Of what several sessions make of one memory the last counts.
    """
    groups = [([*kept, *(one.statement for one in gone)], turns) for kept, gone, turns in found]
    judged = verified(caller, groups, seconds)
    shown = [
        [one for one in gone if one.statement in told[len(kept) :]]
        for told, (kept, gone, _) in zip(judged, found, strict=True)
    ]
    last = {
        one.memory.id: one
        for one in sorted(chain.from_iterable(shown), key=lambda one: one.shown.at)
    }
    return [
        (
            tempered(told[: len(kept)]),
            [one for one in over if last[one.memory.id] is one],
            [
                one
                for one, said in zip(gone, told[len(kept) :], strict=True)
                if said is not one.statement
                and said.held is not Why.UNTRUSTED
                and one.memory.id not in last
            ],
        )
        for told, (kept, gone, _), over in zip(judged, found, shown, strict=True)
    ]


def replied(
    caller: Caller,
    shown: Sequence[tuple[Session, Chunk]],
    known: Sequence[Memory],
    seconds: float,
    bears: Callable[[Seen], bool],
    asking: Callable[[Sequence[Memory]], Prompt],
) -> Reply | None:
    """What a model says of sessions: which known memories they overtake, then what is worth keeping beside the others.

    The first is a question of its own: beside the second it is answered at a glance (decision 13). Where it has no
    answer, nothing is overtaken. What code does not bear out stays known as it was, so that it may be written.
    """
    changes = (
        caller.ask(for_changes(shown, known, caller.capabilities, seconds), Changes)
        if known
        else None
    )
    seen: Sequence[Seen] = changes.known if changes else ()
    answer = caller.ask(asking(standing(known, list(filter(bears, seen)))), Answer)
    return Reply(answer.memories, seen) if answer else None


class Asking:
    """One session about which a model is asked, and what becomes of the answers."""

    def __init__(
        self, caller: Caller, session: Session, turns: Sequence[Turn], wanted: Wanted
    ) -> None:
        self.session = session
        self.turns = turns
        self.wanted = wanted
        self.caller = caller
        self.known = with_room(wanted.related, caller.capabilities)
        self.dropped: Counter[str] = Counter()
        self.proposed = 0
        self.repeated = 0
        self.is_whole = True

    def run(self) -> Extraction:
        lines = laid_out(self.turns, owner_only=self.wanted.owner_only)
        all_of_it = whole(lines, self.wanted.begin)
        if all_of_it is None:
            return Extraction((), self.caller.name)
        told = self._ask_whole(all_of_it) if self._fits(all_of_it) else None
        parts = [all_of_it] if told is not None else self._cut(lines)
        answers = [told] if told is not None else self._ask_parts(parts)
        self.is_whole = told is not None
        if all(one is None for one in answers):
            return self.left_to_rules(parts)
        found, gone = self.taken(parts, answers)
        worth = found if self.is_whole else worthiest(found, most_of(self.turns, self.wanted.begin))
        (judged,) = compared(self.caller, [(worth, gone, self.turns)], self.wanted.timeout_seconds)
        return self.extraction(parts, answers, judged)

    def left_to_rules(self, parts: Sequence[Chunk]) -> Extraction:
        """What became of a session about which the model said nothing."""
        return self.extraction(
            parts, [None] * len(parts), (self._by_rules(parts, everything=True), [], [])
        )

    def taken(self, parts: Sequence[Chunk], answers: Sequence[Reply | None]) -> Taken:
        """What code bears out of the answers: memories, each once, and what is overtaken."""
        found = self._taken(parts, answers)
        kept = merged(found)
        self.repeated = len(found) - len(kept)
        gone = [
            self._overtaken(chunk, answer.known, self.known) if answer else []
            for chunk, answer in zip(parts, answers, strict=True)
        ]
        gone += [
            self._elsewhere(chunk, known) for chunk, known in zip(parts, gone, strict=True) if known
        ]
        return kept, list({one.memory.id: one for one in chain.from_iterable(gone)}.values())

    def extraction(
        self, parts: Sequence[Chunk], answers: Sequence[Reply | None], judged: Judged
    ) -> Extraction:
        """What became of the session."""
        kept, gone, doubted = judged
        problem = self.caller.problem
        candidates = tuple(weighed(self.session.tool, kept))
        return Extraction(
            candidates=candidates,
            model=self.caller.name,
            overtaken=tuple(one for one in gone if not one.is_free),
            doubted=(*doubted, *(one for one in gone if one.is_free)),
            dropped=dict(self.dropped),
            proposed=self.proposed,
            repeated=self.repeated,
            calls=self.caller.calls,
            tokens=self.caller.tokens,
            parts=len(parts),
            by_rules=sum(one is None for one in answers),
            is_whole=self.is_whole,
            problem=problem.message if problem else None,
            hint=problem.hint if problem else None,
            is_over=self.caller.is_over,
            is_useless=self.caller.is_useless,
            left=self._left(parts, answers),
            is_uncompared=self.caller.is_spent
            and any(one.detail == UNCOMPARED for one in candidates),
        )

    def _left(self, parts: Sequence[Chunk], answers: Sequence[Reply | None]) -> frozenset[str]:
        left = [
            one
            for one, answer in zip(parts, answers, strict=True)
            if answer is None and self.caller.is_spent
        ]
        return frozenset(turn.id for one in left for turn in self.turns[one.first : one.last + 1])

    @cached_property
    def _checks(self) -> Checks:
        return Checks(self.turns, begin=self.wanted.begin)

    def bears(self, chunk: Chunk, seen: Seen) -> bool:
        """Whether the turns of a part bear out what a model says of a known memory."""
        return bool(self._overtaken(chunk, [seen], self.known))

    def _overtaken(
        self, chunk: Chunk, seen: Sequence[Seen], known: Sequence[Memory]
    ) -> list[Overtaken]:
        return overtaken(seen, known, self.session.id, self._checks, chunk.places)

    def _elsewhere(self, chunk: Chunk, gone: Sequence[Overtaken]) -> list[Overtaken]:
        """What else a change touches: the model is asked once more, of memories that it was not shown and that are near
        to the clauses that hold no longer. Others say in passing what a clause says, and few are near to the session.
        """
        shown = {one.id for one in self.known}
        near = [
            one
            for one in self.wanted.near([one.clause for one in gone if one.clause])
            if one.id not in shown
        ]
        near = list(with_room(near, self.caller.capabilities))
        if not near or self.caller.stopped:
            return []
        able, seconds = self.caller.capabilities, self.wanted.timeout_seconds
        changes = self.caller.ask(
            for_changes([(self.session, chunk)], near, able, seconds), Changes
        )
        return self._overtaken(chunk, changes.known, near) if changes else []

    def _cut(self, lines: Sequence[Line]) -> list[Chunk]:
        return chunks(lines, self.wanted.begin, size=chunk_size(self.caller.capabilities))

    def _fits(self, chunk: Chunk) -> bool:
        able, way = self.caller.capabilities, self.wanted.way
        left = able.window - able.output - _RESERVED_TOKENS
        if way is not Way.FITTING:
            return way is Way.WHOLE
        return able.known and count_tokens(chunk.text) <= min(DIGEST_TOKENS, left)

    def _ask_whole(self, chunk: Chunk) -> Reply | None:
        """What the model finds in the whole session; after three attempts, or where it has too much to say, nothing."""
        for _ in range(ATTEMPTS):
            answer = self._ask("whole", chunk)
            if answer is not None or self.caller.stopped or self.caller.was_cut:
                return answer
        return None

    def _ask_parts(self, parts: Sequence[Chunk]) -> list[Reply | None]:
        """What the model finds in each part; ``None`` for those whose calls failed again and again."""
        answers: list[Reply | None] = [None] * len(parts)
        for _ in range(ROUNDS):
            waiting = [at for at, one in enumerate(answers) if one is None]
            if waiting and not self.caller.stopped:
                for at, answer in self._round(parts, waiting):
                    answers[at] = answer
                    self.wanted.notify(sum(one is not None for one in answers), len(parts))
        return answers

    def _round(
        self, parts: Sequence[Chunk], waiting: Sequence[int]
    ) -> Iterator[tuple[int, Reply | None]]:
        """Each part that waits is asked for once, some at a time."""
        pool = ThreadPoolExecutor(min(THREADS, len(waiting)), thread_name_prefix="nacre-extraction")
        try:
            asked: list[tuple[int, Future[Reply | None]]] = [
                (at, pool.submit(copy_context().run, self._ask, "chunk", parts[at]))
                for at in waiting
            ]
            yield from ((at, future.result()) for at, future in asked)
        except BaseException:
            self.caller.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _ask(self, way: str, chunk: Chunk) -> Reply | None:
        caller, seconds = self.caller, self.wanted.timeout_seconds

        def asking(known: Sequence[Memory]) -> Prompt:
            return for_transcript(way, self.session, chunk, known, caller.capabilities, seconds)

        return replied(
            caller, [(self.session, chunk)], self.known, seconds, partial(self.bears, chunk), asking
        )

    def _taken(self, parts: Sequence[Chunk], answers: Sequence[Reply | None]) -> list[Candidate]:
        """What the session bears out of the answers; for parts without one, what the deterministic extractor finds."""
        left = [chunk for chunk, told in zip(parts, answers, strict=True) if told is None]
        place = {turn.id: at for at, turn in enumerate(self.turns)}
        found = self._by_rules(left, everything=False)
        for chunk, told in zip(parts, answers, strict=True):
            found += self._judged(chunk, told.memories if told else ())
        return sorted(found, key=lambda one: max(place[turn] for turn in one.turns))

    def _judged(self, chunk: Chunk, told: Sequence[Told]) -> list[Candidate]:
        self.proposed += len(told)
        places = chunk.places
        shown = frozenset(places.values())
        meant = [
            replace_2(one, evidence=[places.get(number, -1) for number in one.evidence])
            for one in told
        ]
        judged = [self._checks.judge(one, shown) for one in meant]
        self.dropped.update(one.reason for one in judged if isinstance(one, Dropped))
        kept = [one for one in judged if isinstance(one, Candidate)]
        return first_of(kept, MOST_A_CHUNK * max(1, -(-len(chunk.text) // CHUNK)))

    def _by_rules(self, left: Sequence[Chunk], *, everything: bool) -> list[Candidate]:
        if not left:
            return []
        found = extract(self.session, self.turns, begin=self.wanted.begin)
        if everything:
            return found
        place = {turn.id: at for at, turn in enumerate(self.turns)}
        last = [(max(place[turn] for turn in one.turns), one) for one in found]
        return [one for at, one in last if any(chunk.first <= at <= chunk.last for chunk in left)]


# ----------------------------------------------------------------------------
# Several small sessions in one call: the words that ask are paid for once.


SMALL = 3_000
"""Tokens of a session that is shown together with others, at most."""

MOST = 8
"""Sessions in one call."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A session that is over: its turns, and the first of them that no model has been shown."""

    session: Session
    turns: Sequence[Turn]
    begin: int = 0


def size_of(shown: Shown) -> int:
    """How many tokens of a session a model would be shown."""
    chunk = whole(laid_out(shown.turns), shown.begin)
    return count_tokens(chunk.text) if chunk else 0


def fitting(sizes: Sequence[int], able: Capabilities) -> int:
    """How many sessions of those sizes go together into one call, from the first on; 0 where that is not small."""
    total, most = 0, min(DIGEST_TOKENS, chunk_size(able) // CHARACTERS_A_TOKEN)
    for count, size in enumerate(sizes[:MOST]):
        total += size
        if size > SMALL or total > most:
            return count
    return min(len(sizes), MOST)


def extract_together(
    caller: Caller, sessions: Sequence[Shown], wanted: Wanted
) -> list[Extraction] | None:
    """What a model finds in sessions that it is shown in one call, in order; ``None`` where it gave no answer.

    Each is judged by itself: a memory whose turns are of two sessions is none. What the calls cost is of none of them:
    the caller tells it.
    """
    asked: list[tuple[Asking, Chunk]] = []
    number = 0
    for one in sessions:
        chunk = whole(laid_out(one.turns, after=number), one.begin)
        if chunk is None or one.session.kind is not SessionKind.MAIN:
            return None
        number = chunk.lines[-1].number
        asked.append(
            (Asking(caller, one.session, one.turns, replace(wanted, begin=one.begin)), chunk)
        )
    shown = [(asking.session, chunk) for asking, chunk in asked]

    def asking_all(known: Sequence[Memory]) -> Prompt:
        return for_sessions(shown, known, caller.capabilities, wanted.timeout_seconds)

    def bears(seen: Seen) -> bool:
        return any(asking.bears(chunk, seen) for asking, chunk in asked)

    answer = replied(caller, shown, asked[0][0].known, wanted.timeout_seconds, bears, asking_all)
    if answer is not None:
        found = _judged_together(caller, asked, answer, wanted.timeout_seconds)
    elif caller.is_over:
        found = [asking.left_to_rules([chunk]) for asking, chunk in asked]
    else:
        return None
    return [replace(one, calls=0, tokens=Tokens()) for one in found]


def _judged_together(
    caller: Caller, asked: Sequence[tuple[Asking, Chunk]], answer: Reply, seconds: float
) -> list[Extraction]:
    answers = [_own(answer, chunk) for _, chunk in asked]
    taken = [
        asking.taken([chunk], [own]) for (asking, chunk), own in zip(asked, answers, strict=True)
    ]
    borne = [
        (kept, overtaken, asking.turns)
        for (kept, overtaken), (asking, _) in zip(taken, asked, strict=True)
    ]
    judged = compared(caller, borne, seconds)
    return [
        asking.extraction([chunk], [own], of_session)
        for (asking, chunk), own, of_session in zip(asked, answers, judged, strict=True)
    ]


def _own(answer: Reply, chunk: Chunk) -> Reply:
    """What an answer says of one of the sessions."""
    mine = chunk.places.keys()
    return Reply(
        [one for one in answer.memories if mine & set(one.evidence)],
        [one for one in answer.known if mine & set(one.evidence)],
    )


# ----------------------------------------------------------------------------
# What a writer is shown as known: what was stored in a session itself, and what is near to what is
# said in it.


MOST_RELATED = 24
"""Of other sessions: the nearest, since no cosine tells what a session ends (seed facts 1.5: from .72 on, five)."""

MOST_OF_SESSION = 40
_CANDIDATES = 15
_LOOKED_AT = 200
_SECONDS = 5.0
_STATEMENTS, _MESSAGES = 24, 48
"""So many of the longest statements of the owner's and messages of the agent's are compared with what is known."""

_MESSAGE = 1_200
"""Characters of a message: what an embedder reads of it."""

_ASKED_IN_WORDS = 6


def related(
    home: Home, sessions: Sequence[Shown], project: str | None, writer: str
) -> tuple[Memory, ...]:
    """What is known already, as far as a writer may be shown it: all that was stored in sessions of a project, then the
    few that are nearest to what is new in these.
    """
    own = {
        memory.id: memory
        for one in sessions
        for memory in stored_in(home, one.session.id, one.turns)
    }
    stated = _longest((one.text for shown in sessions for one in _stated(shown)), _STATEMENTS)
    reported = _longest((one for shown in sessions for one in _reported(shown)), _MESSAGES)
    near = (one for one in _nearby(home, project, stated, reported) if one.id not in own)
    return (
        *_shown(home, own.values(), writer, MOST_OF_SESSION * len(sessions)),
        *_shown(home, near, writer, MOST_RELATED),
    )


def touched(
    home: Home, project: str | None, writer: str, clauses: Sequence[str]
) -> tuple[Memory, ...]:
    """The trusted memories of a project, and those of none, that share most words with clauses that hold no longer, as
    far as a writer may be shown them.

    It has its turn meanwhile: who asks a model stands aside.
    """
    wanted = Filter(projects=(project,) if project else (), trusted=True)
    with home.turn:
        return tuple(
            _shown(
                home,
                _in_words(home, wanted, clauses, time.monotonic() + _SECONDS),
                writer,
                MOST_RELATED,
            )
        )


def _shown(home: Home, memories: Iterable[Memory], writer: str, most: int) -> Iterator[Memory]:
    """The first of some memories that a writer may be shown."""
    return islice((one for one in memories if may_be_shown(home, one, writer)), most)


def _stated(shown: Shown) -> Iterator[Statement]:
    for spoken in utterances(shown.turns):
        yield from spoken.statements if spoken.index >= shown.begin else ()


def _reported(shown: Shown) -> Iterator[str]:
    """What the agent says of its work: mostly that is what shows that a memory holds no longer."""
    return (
        one.text[:_MESSAGE]
        for one in shown.turns[shown.begin :]
        if one.speaker is Speaker.AGENT and one.text
    )


def _longest(texts: Iterable[str], most: int) -> list[str]:
    return sorted(dict.fromkeys(texts), key=len, reverse=True)[:most]


def stored_in(home: Home, session: str, turns: Sequence[Turn]) -> tuple[Memory, ...]:
    """The trusted memories that were stored in a session, the agent's proposals among them, in their order.

    Its host may not name it to those who store: then the answers to the agent in its turns tell.
    """
    found = {one.id: home.memories.find(one.id) for one in home.memories.known_of(session)}
    for end in memories_made(turns):
        found |= {
            one.id: one
            for one in home.memories.find_like(end)
            if one.source.session in (None, session)
        }
    holding = (one for one in found.values() if one and one.is_active)
    trusted = (one for one in holding if one.trust is Trust.TRUSTED)
    return tuple(sorted(trusted, key=lambda one: (one.created, one.id))[-MOST_OF_SESSION:])


def _nearby(
    home: Home, project: str | None, stated: Sequence[str], reported: Sequence[str]
) -> Sequence[Memory]:
    """The trusted memories that are nearest to what is said in a session, the nearest first, however near: those of its
    project and those of none, as a session changes nothing elsewhere.

    By vectors where there are any, else in words, those of the owner alone, for five seconds at most.
    """
    wanted = Filter(projects=(project,) if project else (), trusted=True)
    until = time.monotonic() + _SECONDS
    try:
        found: Sequence[Memory] = (
            _nearest(home, wanted, [*stated, *reported]) if _has_vectors(home) else ()
        )
    except EmbedderUnavailable:
        found = ()
    return found or _in_words(home, wanted, stated[:_ASKED_IN_WORDS], until)


def _has_vectors(home: Home) -> bool:
    return (
        home.settings.text("embedding.model") != "none"
        and configured_embedder(home).name == home.vectors.model()
    )


def _nearest(home: Home, wanted: Filter, texts: Sequence[str]) -> list[Memory]:
    admitted = home.selection.admitted_memories(wanted, today=home.today())
    best: dict[int, float] = {}
    for vector in configured_embedder(home).embed(list(texts)) if texts else ():
        for row, cosine in home.vectors.memory_cosines(vector).items():
            if row in admitted:
                best[row] = max(cosine, best.get(row, -1.0))
    rows = sorted(best, key=lambda row: -best[row])[:_LOOKED_AT]
    found = home.memories.by_rows(rows)
    return [found[row] for row in rows if row in found and _holds_in(wanted, found[row])]


def _in_words(home: Home, wanted: Filter, statements: Sequence[str], until: float) -> list[Memory]:
    found: dict[str, Memory] = {}
    for statement in statements:
        if time.monotonic() > until or len(found) >= _CANDIDATES:
            break
        query = RecallQuery(
            statement,
            filter=wanted,
            mode=Mode.LEXICAL,
            limit=MOST_RELATED,
            confident=True,
            turns=0,
            update=False,
        )
        hits = (hit.memory for hit in recall(home, query).hits)
        found |= {one.id: one for one in hits if _holds_in(wanted, one)}
    return list(found.values())


def _holds_in(wanted: Filter, memory: Memory) -> bool:
    return memory.project in (None, *wanted.projects)


# ----------------------------------------------------------------------------
# Once a day known memories are held against what was said later, in whatever session: does each still
# hold?
#
# Beside a session stand a few of the memories that it touches, and a reader overlooks some of these.
# Here each memory has
# its own evidence, found by its own words. What a writer finds ends and changes nothing: it waits in
# review, and the
# memory is told with it.


_LOOKED, _LAST_DAY = "looked later", "looked later on"
_A_DAY = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
_LATEST = 50
"""Sessions of a project among which those that go on are looked for."""

_WHO = (Speaker.OWNER, Speaker.AGENT)
_LOOKED_AT_LATER = 60
_BESIDE = 25
"""Tokens beside each text: its number, its day, its speaker."""

_ASKED, _SAYINGS, _CHARACTERS = 1_000, 12, 500


def due(home: Home, writer: str, able: Capabilities) -> list[Held]:
    """The next memories to hold against what was said since they were said, or were held last: of projects with
    sessions a day later, as many as have room in a window. Among them are some about which nothing was said: there is
    nothing to ask of them.
    """
    looked = _looked(home)
    active = [one for one in home.memories.everything() if one.is_active]
    last = {
        project: _over_until(home, project)
        for project in {one.project for one in active}
        if project
    }
    later = (
        one for one in active if _since(one, looked) + _A_DAY < last.get(one.project or "", _NEVER)
    )
    waiting = _holdable(home, later, writer)
    found: list[Held] = []
    room = room_for(able, able.output)
    for memory in sorted(waiting, key=lambda one: (looked.get(one.id, ""), one.last_said, one.id))[
        :_LOOKED_AT_LATER
    ]:
        until = last[memory.project or ""]
        said = _said_between(home, memory, _since(memory, looked), until, writer)
        room -= count_tokens("\n".join([memory.content, *(one.text for one in said)])) + _BESIDE * (
            1 + len(said)
        )
        if room < 0 and found:
            break
        found.append(Held(memory, said, until.isoformat()))
        if sum(bool(one.sayings) for one in found) >= MOST_MEMORIES:
            break
    return found


def touched_by(home: Home, held: Sequence[Held], found: Sequence[Doubt], writer: str) -> list[Held]:
    """The memories nearest to what no longer holds of others, each beside what showed that."""
    seen = {one.memory.id for one in held}
    near: list[Held] = []
    for project in dict.fromkeys(one.memory.project for one in found):
        own = [one for one in found if one.memory.project == project]
        said = sorted({saying for one in own for saying in one.shown}, key=lambda one: one.at)
        others = (
            one
            for one in touched(home, project, writer, [one.clause for one in own])
            if one.id not in seen
        )
        for memory in _holdable(home, (one for one in others if one.project == project), writer):
            later = tuple(one for one in said if one.at > memory.last_said)
            near += [Held(memory, later)] if later else []
    return near


def _holdable(home: Home, memories: Iterable[Memory], writer: str) -> list[Memory]:
    """Those that somebody answers for and that are in no doubt yet, where a writer may be shown them. What happened
    stays true.
    """
    doubted = home.memories.stale()
    return [
        one
        for one in memories
        if one.is_vouched
        and one.kind is not Kind.EVENT
        and one.id not in doubted
        and may_be_shown(home, one, writer)
    ]


def days_to_look(home: Home, days: Collection[date]) -> list[date]:
    """Those of some days with sessions for which no memories were held against what was said later yet."""
    last = home.usage.value(_LAST_DAY)
    return sorted(day for day in days if day.isoformat() != last)


def note(home: Home, day: date, held: Sequence[Held], found: Sequence[Doubt]) -> int:
    """Have doubts wait in review, and what was held not be held again until more is said; returns how many there are
    now.
    """
    with home.vault_lock, home.database.transaction():
        count = sum(
            doubt(home, one.memory, one.why, [said.session for said in one.shown]) for one in found
        )
        looked = {**_looked(home), **{one.memory.id: one.until for one in held}}
        home.usage.set_value(
            _LOOKED, json.dumps({one: at for one, at in looked.items() if home.memories.find(one)})
        )
        home.usage.set_value(_LAST_DAY, day.isoformat())
    return count


def _since(memory: Memory, looked: Mapping[str, str]) -> datetime:
    """From when on what is said is new to a memory."""
    at = looked.get(memory.id)
    return max(memory.last_said, datetime.fromisoformat(at)) if at else memory.last_said


def _over_until(home: Home, project: str) -> datetime:
    """When the last session of a project ended, or the first one began that goes on: what is said in that has its turn
    when it is over.
    """
    newest = home.sessions.newest(SessionFilter(project=project), limit=_LATEST)
    over = [one.ended for one in newest if one.ended and is_quiet(home, one)]
    begun = [one.session.started or one.ended for one in newest if not is_quiet(home, one)]
    return min([max(over, default=_NEVER), *(one for one in begun if one)])


def _looked(home: Home) -> Mapping[str, str]:
    """Until when each memory was held against what was said, by id."""
    return dict(json.loads(home.usage.value(_LOOKED) or "{}"))


def _said_between(
    home: Home, memory: Memory, since: datetime, until: datetime, writer: str
) -> tuple[Saying, ...]:
    """The turns between two times that have most of a memory's words, in the order of time: of sessions that a writer
    may be shown, and that are not the memory's own, which was read to its end when it was written.
    """
    wanted = Filter(projects=(memory.project or "",), strict=True, since=since)
    text = memory.content[:_ASKED]
    asked = RecallQuery(
        text, filter=wanted, mode=Mode.LEXICAL, limit=_LOOKED_AT_LATER, update=False, boost=False
    )

    def is_later(turn: Turn) -> bool:
        is_said = turn.speaker in _WHO and turn.trust is Trust.TRUSTED and is_content(turn)
        return is_said and turn.time is not None and since < turn.time <= until

    terms = words(memory.content)
    hits = search_sessions(home, asked, admits=is_later, exact=False).turns
    own = {memory.source.session, *(one.session for one in memory.confirmed)}
    shown = {
        one for one in {hit.session.id for hit in hits} - own if _may_be_read(home, one, writer)
    }
    found = [
        Saying(
            hit.turn.time or since,
            hit.turn.speaker,
            excerpt(hit.turn.text, terms, _CHARACTERS),
            hit.session.id,
        )
        for hit in hits
        if hit.session.id in shown
    ]
    return tuple(sorted(found[:_SAYINGS], key=lambda one: one.at))


def _may_be_read(home: Home, session: str, writer: str) -> bool:
    """Whether all of a session may be shown to a writer, and it is over."""
    found = home.sessions.find(session)
    return bool(found) and all(
        is_agreed(home.settings, one, writer) and is_quiet(home, one) for one in found
    )
