"""Extraction of memories from sessions with a language model."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from enum import StrEnum
from functools import cache, cached_property
from itertools import islice

import msgspec

from nacre.base.frozen import frozen
from nacre.base.text import count_tokens, normalise, one_line, shorten, title_of
from nacre.base.times import shown_day
from nacre.errors import EmbedderUnavailableError
from nacre.home import spending
from nacre.home.home import Home
from nacre.learn.checks import Caller, Checks, Overtaken, find_near
from nacre.learn.explicit import names_this_object
from nacre.learn.extract import extract, may_be_shown
from nacre.learn.prompts import (
    CHARACTERS_A_TOKEN,
    CHUNK,
    CHUNK_PROMPTS,
    DIGEST_TOKENS,
    SEVERAL,
    VERDICTS,
    WHOLE_SESSION,
    Answer,
    Chunk,
    OwnerTurns,
    as_data,
    as_one_chunk,
    as_read,
    calls_of,
    chunk_size,
    chunks,
    extraction_prompt,
    frame,
    lay_out,
    load,
    room_for,
    with_room,
    without,
    without_middle,
)
from nacre.learn.reading import content_words, raise_meeting_todos
from nacre.learn.sentences import (
    before,
    is_accepted_plan,
    is_content,
    language_of,
    split,
    utterances,
)
from nacre.llm.failures import schema_of
from nacre.memories.placement import rarity_of
from nacre.memories.statements import read
from nacre.readers.conversation import memories_made
from nacre.recall import recall as recall_recall
from nacre.values.memory import Candidate, Confidence, Memory, Why
from nacre.values.models import Capabilities, Prompt, Tokens
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Session, SessionKind, Speaker, Task, Trust, Turn

# -- Deduplication within a session ----------------------------------------------------------------


def merge(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Merge candidates with the same words into the most important one.

    If speaker and confidence are the same, it cites the turns of both.
    """
    distinct: dict[str, Candidate] = {}
    for candidate in candidates:
        words = normalise(candidate.content)
        earlier = distinct.get(words)
        if earlier is None:
            distinct[words] = candidate
            continue
        best = candidate if _weight(candidate) > _weight(earlier) else earlier
        if (earlier.speaker, earlier.confidence) == (candidate.speaker, candidate.confidence):
            turns = dict.fromkeys((*earlier.turns, *candidate.turns))
            best = replace(best, turns=tuple(turns))
        distinct[words] = best
    return list(distinct.values())


def _weight(candidate: Candidate) -> tuple[bool, bool, int]:
    return not candidate.held, candidate.speaker is Speaker.OWNER, candidate.importance


# -- Verification ----------------------------------------------------------------------------------
# A model that reads a whole session might mistake a suggestion for a decision or mix up two facts. A second, short
# call therefore compares each proposal only with its evidence. Unproven statements become candidates.


VERSION = "5"
AT_ONCE = 40
"""Maximum number of statements per call."""

UNCOMPARED = "the verifier did not check it"

_TURN_CHARACTERS = 4_000
_LATER_CHARACTERS = 300

_MAX_LATER_CHARACTERS = 12_000
_MIN_SUPPORT_SHARE = 0.8
"""Minimum share of the words quoted by the verifier that a turn must contain in the same order."""

_MIN_SUPPORTING_WORDS = 2
_MAX_FAILURES = 2
"""Maximum number of turns with failed calls that a verifier sees with an agent's statement."""

_VERDICT_TOKENS = 4_096
"""Output tokens for the verifier. They suffice for a model that reasons before it answers."""


class Finding(StrEnum):
    """A verifier's finding about a statement and its evidence."""

    HOLDS = "holds"
    UNSETTLED = "unsettled"
    REPLACED = "replaced"
    DIFFERS = "differs"
    NOT_SAID = "not_said"
    ONCE = "once"
    OUTSIDE = "outside"
    UNCLEAR = "unclear"
    TRIVIAL = "trivial"


_PARTIAL_FINDINGS = frozenset(
    {Finding.UNSETTLED, Finding.REPLACED, Finding.DIFFERS, Finding.NOT_SAID}
)
"""Findings after which a statement can be kept without its wrong parts."""

_DETAILS: Mapping[Finding, str] = {
    Finding.HOLDS: "the verifier quoted no supporting words",
    Finding.UNSETTLED: "its evidence only asks, supposes or proposes it",
    Finding.REPLACED: "it was withdrawn or replaced later in its session",
    Finding.DIFFERS: "its evidence says something else",
    Finding.NOT_SAID: "its evidence does not say it",
    Finding.ONCE: "it is only about the task of its session",
    Finding.OUTSIDE: "it is an instruction from external text",
    Finding.UNCLEAR: "it is unclear without its session",
    Finding.TRIVIAL: "it is too trivial to act on",
}


class Verdict(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A verifier's finding about one statement, with the supporting words and the wrong parts."""

    number: int
    support: str
    finding: Finding
    wrong: list[str]


class Verdicts(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The findings about all statements."""

    verdicts: list[Verdict]


SessionCandidate = tuple[Candidate, Sequence[Turn]]
"""A candidate and the session's turns."""

Checked = tuple[list[Candidate], list[Overtaken], Sequence[Turn]]
"""A session's new memories, the known memories that it shows to be outdated, and its turns."""

Judged = tuple[list[Candidate], list[Overtaken], list[Overtaken]]
"""A session's verified memories, the outdated memories, and the memories that might be outdated."""


def verify(caller: Caller, sessions: Sequence[Checked]) -> list[Judged]:
    """Ask a model to verify the memories and changes that it found in sessions.

    Unproven memories are held for review, and unproven changes only cause doubts. Of several
    changes to a memory, only the latest counts.
    """
    pairs = [
        (candidate, turns)
        for candidates, changes, turns in sessions
        for candidate in (*candidates, *(change.statement for change in changes))
        if not candidate.held and candidate.confidence is Confidence.EXTRACTED
    ]
    judged: dict[int, Candidate] = {}
    caller.try_smaller()
    for batch in _batches(pairs, caller.capabilities):
        answer = caller.ask(prompt_for(batch, caller.capabilities), Verdicts)
        verdicts = {verdict.number: verdict for verdict in answer.verdicts} if answer else {}
        judged |= {
            id(candidate): _apply_verdict(candidate, turns, verdicts.get(number))
            for number, (candidate, turns) in enumerate(batch, 1)
        }

    def verdict_on(candidate: Candidate) -> Candidate:
        return judged.get(id(candidate), candidate)

    proven = [
        change
        for _, changes, _ in sessions
        for change in changes
        if verdict_on(change.statement) is change.statement
    ]
    latest = {
        change.memory.id: change for change in sorted(proven, key=lambda change: change.shown.at)
    }
    return [
        (
            list(map(verdict_on, candidates)),
            [change for change in changes if latest.get(change.memory.id) is change],
            [
                change
                for change in changes
                if change.memory.id not in latest
                and verdict_on(change.statement).held is not Why.UNTRUSTED
            ],
        )
        for candidates, changes, _ in sessions
    ]


def _batches(
    pairs: Sequence[SessionCandidate], capabilities: Capabilities
) -> Iterator[Sequence[SessionCandidate]]:
    half = len(pairs) // 2
    prompt = prompt_for(pairs, capabilities)
    is_large = count_tokens(prompt.text) > room_for(capabilities, prompt.output_tokens)
    if len(pairs) > AT_ONCE or (half and is_large):
        yield from _batches(pairs[:half], capabilities)
        yield from _batches(pairs[half:], capabilities)
    elif pairs:
        yield pairs


def _apply_verdict(
    candidate: Candidate, turns: Sequence[Turn], verdict: Verdict | None
) -> Candidate:
    if verdict is None:
        return replace(candidate, held=Why.UNPROVEN, detail=UNCOMPARED)
    is_supported = _is_supported(candidate, turns, verdict.support)
    if verdict.finding is Finding.HOLDS and is_supported:
        return candidate
    is_partial = verdict.finding in _PARTIAL_FINDINGS and is_supported
    shortened = without(candidate.content, verdict.wrong) if is_partial else None
    if shortened:
        return replace(candidate, content=shortened, subject=_subject(candidate, shortened))
    if verdict.finding is Finding.ONCE and _may_last(candidate, turns):
        return replace(candidate, held=Why.FOUND)  # becomes a memory if the owner repeats it
    why = Why.UNTRUSTED if verdict.finding is Finding.OUTSIDE else Why.UNPROVEN
    return replace(candidate, held=why, detail=_DETAILS[verdict.finding])


def _may_last(candidate: Candidate, turns: Sequence[Turn]) -> bool:
    terms = content_words(candidate.content)
    statements = [
        statement.text
        for turn in turns
        if turn.id in candidate.turns and turn.speaker is Speaker.OWNER
        for statement in split(turn.text)
        if terms & content_words(statement.text)
    ]
    return candidate.speaker is Speaker.OWNER and not any(
        map(names_this_object, (candidate.content, *statements))
    )


def _is_supported(candidate: Candidate, turns: Sequence[Turn], support: str) -> bool:
    words = normalise(support)
    speakers = {
        turn.speaker
        for turn in turns
        if words
        and (
            words in (text := normalise(turn.text)) or find_near(text, support, _MIN_SUPPORT_SHARE)
        )
    }
    if not speakers or language_of(support) is not language_of(candidate.content):
        return bool(speakers)
    statement_words = content_words(candidate.content)
    shared = len(content_words(support) & statement_words)
    needed = 1 if Speaker.OWNER in speakers else _MIN_SUPPORTING_WORDS
    return shared >= min(needed, len(statement_words))


def _subject(candidate: Candidate, shortened: str) -> str:
    removed, subject = (
        content_words(candidate.content) - content_words(shortened),
        candidate.subject,
    )
    return title_of(shortened) if removed & content_words(subject) else subject


def prompt_for(pairs: Sequence[SessionCandidate], able: Capabilities) -> Prompt:
    """Build the prompt that verifies candidates, showing each turn once."""
    transcript: list[str] = []
    later: list[str] = []
    listed: list[str] = []
    for turns in {id(turns): turns for _, turns in pairs}.values():
        own = [candidate for candidate, source in pairs if source is turns]
        position = {turn.id: at for at, turn in enumerate(turns)}
        places = [sorted(position[turn] for turn in item.turns if turn in position) for item in own]
        numbers = {
            at: len(transcript) + number
            for number, at in enumerate(_with_context(turns, places), 1)
        }
        transcript += _lines(turns, numbers)
        later += _later_messages(
            turns, numbers, min((cited[0] for cited in places if cited), default=0)
        )
        for item, cited in zip(own, places, strict=True):
            sources = ", ".join(f"m{numbers[at]}" for at in cited)
            listed.append(
                f"{len(listed) + 1}. [{item.kind.value}] {as_data(one_line(item.content))} (evidence: {sources})"
            )
    texts = [frame("transcript", "\n".join(transcript))]
    texts += [frame("later", "\n".join(later))] if later else []
    texts += [frame("memories", "\n".join(listed))]
    return Prompt(
        task=Task.EXTRACTION,
        system=load(f"verify-{VERSION}"),
        text="\n\n".join(texts),
        answer=schema_of(Verdicts),
        name=VERDICTS,
        version=f"verify/{VERSION}",
        output_tokens=min(able.output, able.window // 4, _VERDICT_TOKENS),
    )


def _later_messages(
    turns: Sequence[Turn], visible_turns: Collection[int], begin: int
) -> Iterator[str]:
    length = 0
    for utterance in utterances(turns):
        if utterance.index > begin and utterance.index not in visible_turns:
            text = shorten(
                as_data(one_line(" ".join(item.text for item in utterance.statements))),
                _LATER_CHARACTERS,
            )
            length += len(text)
            if length > _MAX_LATER_CHARACTERS:
                return
            yield f"[owner] {text}"


def _with_context(turns: Sequence[Turn], evidence: Sequence[Sequence[int]]) -> list[int]:
    cited = {at for places in evidence for at in places}
    visible_turns: set[int | None] = {*cited}
    for at in cited:
        later = (
            index
            for index in range(at + 1, len(turns))
            if turns[index].speaker is Speaker.OWNER and is_content(turns[index])
        )
        following = next(later, None)
        visible_turns.add(following)
        visible_turns |= set(_turns_with_failures(turns, at))
        if turns[at].speaker is Speaker.OWNER:
            # Add the turn that the owner answers, or the plan that the owner accepts, and the outcome.
            accepts = at > 0 and is_accepted_plan(turns, at - 1)
            visible_turns.add(at - 1 if accepts else before(turns, at, Speaker.AGENT))
            last = before(turns, len(turns) if following is None else following, Speaker.AGENT)
            visible_turns.add(last if last is not None and last > at else None)
    return sorted(at for at in visible_turns if at is not None)


def _turns_with_failures(turns: Sequence[Turn], at: int) -> Sequence[int]:
    begin = before(turns, at, Speaker.OWNER)
    if turns[at].speaker is Speaker.OWNER or begin is None:
        return ()
    failed = [
        index
        for index in range(begin + 1, at)
        if any(call.failed for call in turns[index].tool_calls)
    ]
    calling = (
        next((index for index in range(place + 1, at) if turns[index].tool_calls), place)
        for place in failed[-_MAX_FAILURES:]
    )
    return [*failed[-_MAX_FAILURES:], *calling]


def _lines(turns: Sequence[Turn], numbers: Mapping[int, int]) -> Iterator[str]:
    day, calls = "", list(calls_of(turns))
    for at, number in numbers.items():
        turn = turns[at]
        date = shown_day(turn.time) if turn.time else day
        label = "agent, plan" if is_accepted_plan(turns, at) else turn.speaker.value
        label += ", untrusted" if turn.trust is Trust.UNTRUSTED else ""
        text = "\n  ".join(without_middle(as_read(turn), _TURN_CHARACTERS).splitlines())
        yield f"{f'({date}){chr(10)}' if date != day else ''}[m{number}][{label}] {text}{calls[at]}"
        day = date


# -- Number of memories per session ----------------------------------------------------------------
# A model that reads part by part proposes the most important points of each part, so long sessions yield too many
# proposals. People keep about a dozen memories from sixty owner messages, and a few memories from two messages. The
# constants are derived from labels by two people. See decision 12.


_GROWTH, _BASE_MEMORIES = 1.3, 1


def most_of(turns: Sequence[Turn], begin: int) -> int:
    """Return the maximum number of memories from a session, which grows with the owner's messages."""
    messages = {utterance.index for utterance in utterances(turns) if utterance.index >= begin}
    return math.ceil(_GROWTH * math.sqrt(len(messages))) + _BASE_MEMORIES


def worthiest(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Keep at most ``most`` memories, and hold less important ones for review.

    This limits models that propose many variants of one memory.
    """
    memories = [at for at, candidate in enumerate(candidates) if not candidate.held]
    memories.sort(key=lambda at: (-candidates[at].importance, -at))
    excess = memories[most:]
    return [
        replace(candidate, held=Why.MINOR, detail="its session has more important memories")
        if at in excess
        else candidate
        for at, candidate in enumerate(candidates)
    ]


# -- Extraction ------------------------------------------------------------------------------------
# The model proposes memories from a transcript, which are then checked and verified. Rules read every part of a
# session for which the model's calls fail.


ATTEMPTS = 3
"""Maximum number of attempts to ask about a whole session."""

ROUNDS = 8
"""Maximum number of attempts per part of a session before rules take over."""

MOST_A_CHUNK = 8
SMALL_WINDOW = 16_384
"""Maximum window, in tokens, of an unknown model that is asked in two short steps."""

_RESERVED_TOKENS = 4_000


@frozen
class FinishedSession:
    """A finished session. ``begin`` is the index of the first turn that no model has read."""

    session: Session
    turns: Sequence[Turn]
    begin: int = 0


@frozen
class Extraction:
    """The result of extraction from one session.

    ``overtaken``: known memories that are outdated. ``doubted``: those that the owner must review.
    ``dropped``: number of rejected proposals by reason. ``parts``: 1 if the model read the whole
    session at once. ``by_rules``: number of parts that rules read because the model failed with
    ``problem``.
    """

    candidates: tuple[Candidate, ...]
    model: str
    overtaken: tuple[Overtaken, ...] = ()
    doubted: tuple[Overtaken, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: Tokens = Tokens()
    parts: int = 0
    by_rules: int = 0
    problem: str | None = None
    hint: str | None = None
    is_over: bool = False
    """True if further calls to the model would currently fail."""

    is_useless: bool = False
    """True if the model never answered in the requested format."""

    left: frozenset[str] = frozenset()
    """Ids of the turns in parts that the budget did not cover."""

    is_uncompared: bool = False
    """True if the budget was too small to verify the proposals."""

    @property
    def memories(self) -> tuple[Candidate, ...]:
        """The candidates that become memories immediately."""
        return tuple(candidate for candidate in self.candidates if not candidate.held)


def ask_about(
    caller: Caller,
    way: str,
    parts: Sequence[tuple[Session, Chunk]],
    memories: Sequence[Memory],
) -> Answer | None:
    """Ask a model for the memories in sessions.

    A small model must first select the owner's important turns.
    """
    able = caller.capabilities
    if able.window <= SMALL_WINDOW and not able.known:
        listed = caller.ask(extraction_prompt(way, parts, (), able, is_first_step=True), OwnerTurns)
        if listed is None:
            return None
        parts = [
            (session, chunk.around(listed.turns))
            for session, chunk in parts
            if any(line.number in listed.turns for line in chunk.lines)
        ]
        if not parts:
            return Answer([], [])
    return caller.ask(extraction_prompt(way, parts, memories, able), Answer)


def extract_with(
    caller: Caller,
    finished: FinishedSession,
    related: Sequence[Memory],
    notify: Callable[[int, int], None],
) -> Extraction:
    """Extract memories from a session's new turns, without raising the model's errors.

    The model also sees the ``related`` memories. ``notify`` receives the numbers of finished and of
    all parts.
    """
    begin, asking = finished.begin, _Asking(caller, finished, related)
    lines = lay_out(finished.turns, begin=begin)
    chunk = as_one_chunk(lines, begin)
    if finished.session.kind is not SessionKind.MAIN or chunk is None:
        return Extraction((), caller.name)
    if asking.fits(chunk):
        for _ in range(ATTEMPTS):
            answer = asking.ask(WHOLE_SESSION, chunk)
            if answer is not None:
                (judged,) = verify(caller, [asking.check([chunk], [answer])])
                return asking.extraction([chunk], [answer], judged)
            if caller.stopped or caller.was_cut:
                break
    parts = chunks(lines, begin, size=chunk_size(caller.capabilities))
    answers: list[Answer | None] = [None] * len(parts)
    for _ in range(ROUNDS):
        for at, part in enumerate(parts):
            if answers[at] is None and not caller.stopped:
                answers[at] = asking.ask(CHUNK_PROMPTS, part)
                notify(sum(answer is not None for answer in answers), len(parts))
    if not any(answers):
        return asking.apply_rules(parts)
    candidates, changes, turns = asking.check(parts, answers)
    candidates = worthiest(candidates, most_of(turns, begin))
    (judged,) = verify(caller, [(candidates, changes, turns)])
    return asking.extraction(parts, answers, judged)


class _Asking:
    def __init__(
        self, caller: Caller, finished: FinishedSession, related: Sequence[Memory]
    ) -> None:
        self.session, self.turns, self.begin = finished.session, finished.turns, finished.begin
        self.caller = caller
        self.known_memories = with_room(related, caller.capabilities)
        self.dropped: Counter[str] = Counter()
        self.position = {turn.id: at for at, turn in enumerate(self.turns)}

    @cached_property
    def checks(self) -> Checks:
        return Checks(self.turns, begin=self.begin)

    def fits(self, chunk: Chunk) -> bool:
        capabilities = self.caller.capabilities
        room = capabilities.window - capabilities.output - _RESERVED_TOKENS
        return capabilities.known and count_tokens(chunk.text) <= min(DIGEST_TOKENS, room)

    def ask(self, way: str, chunk: Chunk) -> Answer | None:
        return ask_about(self.caller, way, [(self.session, chunk)], self.known_memories)

    def apply_rules(self, parts: Sequence[Chunk]) -> Extraction:
        return self.extraction(parts, [None] * len(parts), (self._by_rules(parts), [], []))

    def check(self, parts: Sequence[Chunk], answers: Sequence[Answer | None]) -> Checked:
        unanswered = [chunk for chunk, answer in zip(parts, answers, strict=True) if not answer]
        candidates = self._by_rules(unanswered) if unanswered else []
        changes: dict[str, Overtaken] = {}
        for chunk, answer in zip(parts, answers, strict=True):
            if answer is None:
                continue
            results = [self.checks.judge(proposal, chunk.turns) for proposal in answer.memories]
            self.dropped.update(result for result in results if isinstance(result, str))
            valid = [result for result in results if isinstance(result, Candidate)]
            candidates += worthiest(valid, MOST_A_CHUNK * max(1, -(-len(chunk.text) // CHUNK)))
            outdated = self.checks.find_outdated(
                answer.over, self.known_memories, self.session.id, chunk.turns
            )
            changes |= {change.memory.id: change for change in outdated}
        return merge(sorted(candidates, key=self._end_of)), list(changes.values()), self.turns

    def extraction(
        self, parts: Sequence[Chunk], answers: Sequence[Answer | None], judged: Judged
    ) -> Extraction:
        memories, changes, doubted = judged
        problem = self.caller.problem
        candidates = tuple(raise_meeting_todos(self.session.tool, memories))
        skipped = [
            chunk
            for chunk, answer in zip(parts, answers, strict=True)
            if answer is None and self.caller.is_spent
        ]
        return Extraction(
            candidates=candidates,
            model=self.caller.name,
            overtaken=tuple(change for change in changes if not change.is_doubtful),
            doubted=(*doubted, *(change for change in changes if change.is_doubtful)),
            dropped=dict(self.dropped),
            calls=self.caller.calls,
            tokens=self.caller.tokens,
            parts=len(parts),
            by_rules=sum(answer is None for answer in answers),
            problem=problem.message if problem else None,
            hint=problem.hint if problem else None,
            is_over=self.caller.is_over,
            is_useless=self.caller.is_useless,
            left=frozenset(
                turn.id for chunk in skipped for turn in self.turns[chunk.first : chunk.last + 1]
            ),
            is_uncompared=self.caller.is_spent
            and any(candidate.detail == UNCOMPARED for candidate in candidates),
        )

    def _by_rules(self, parts: Sequence[Chunk]) -> list[Candidate]:
        return [
            candidate
            for candidate in extract(self.session, self.turns, begin=self.begin)
            if any(chunk.first <= self._end_of(candidate) <= chunk.last for chunk in parts)
        ]

    def _end_of(self, candidate: Candidate) -> int:
        return max(self.position[turn] for turn in candidate.turns)


# -- Small sessions --------------------------------------------------------------------------------
# Several small sessions share one call, which saves the cost of the instructions.


SMALL = 3_000
"""Maximum number of tokens in a session that can share a call."""

MOST = 8
"""Maximum number of sessions per call."""


def count_fitting(sessions: Sequence[FinishedSession], able: Capabilities) -> int:
    """Return how many of the first sessions can share one model call."""
    total, most = 0, min(DIGEST_TOKENS, chunk_size(able) // CHARACTERS_A_TOKEN)
    for count, session in enumerate(sessions[:MOST]):
        chunk = as_one_chunk(lay_out(session.turns), session.begin)
        size = count_tokens(chunk.text) if chunk else 0
        total += size
        if size > SMALL or total > most:
            return count
    return min(len(sessions), MOST)


def extract_together(
    caller: Caller, sessions: Sequence[FinishedSession], related: Sequence[Memory]
) -> list[Extraction] | None:
    """Ask a model about several sessions in one call.

    Return an extraction per session, or ``None`` if there is no answer. Only ``caller`` counts the
    cost.
    """
    askings: list[tuple[_Asking, Chunk]] = []
    number = 0
    for session in sessions:
        chunk = as_one_chunk(lay_out(session.turns, after=number), session.begin)
        if chunk is None:
            return None
        number = chunk.lines[-1].number
        askings.append((_Asking(caller, session, related), chunk))
    answer = ask_about(
        caller,
        SEVERAL,
        [(asking.session, chunk) for asking, chunk in askings],
        askings[0][0].known_memories,
    )
    if answer is not None:
        answers = _split_by_session(answer, askings)
        checked = [
            asking.check([chunk], [own])
            for (asking, chunk), own in zip(askings, answers, strict=True)
        ]
        results = [
            asking.extraction([chunk], [own], judged)
            for (asking, chunk), own, judged in zip(
                askings, answers, verify(caller, checked), strict=True
            )
        ]
    elif caller.is_over:
        results = [asking.apply_rules([chunk]) for asking, chunk in askings]
    else:
        return None
    return [replace(result, calls=0, tokens=Tokens()) for result in results]


def _split_by_session(answer: Answer, askings: Sequence[tuple[_Asking, Chunk]]) -> list[Answer]:
    answers = [Answer([], []) for _ in askings]

    def answer_for(quote: str, content: str = "") -> Answer:
        places = [asking.checks.locate(quote, chunk.turns, content) for asking, chunk in askings]
        shares = [place.share if place else 0.0 for place in places]
        return answers[max(range(len(shares)), key=lambda at: (shares[at], at))]

    for memory in answer.memories:
        answer_for(memory.quote, memory.content).memories.append(memory)
    for change in answer.over:
        answer_for(change.quote).over.append(change)
    return answers


# -- Known memories --------------------------------------------------------------------------------
# A writer is shown the memories stored in a session and the memories most similar to the session's text.


MOST_RELATED = 24
"""Maximum number of memories from other sessions."""

MOST_OF_SESSION = 40
_MAX_NEAREST_ROWS = 200
_LEXICAL_SECONDS = 5.0
_MAX_STATEMENTS, _MAX_MESSAGES = 24, 48
"""Maximum numbers of the owner's statements and agent's messages that are compared with known memories.

The longest are chosen.
"""

_MESSAGE_CHARACTERS = 1_200

_MAX_LEXICAL_QUERIES = 6
_MIN_SHARED_WORDS = 2
MIN_COSINE = 0.5
"""Minimum cosine at which a memory without shared words counts as related."""


def find_related(
    home: Home, sessions: Sequence[FinishedSession], project: str | None, writer: str
) -> tuple[Memory, ...]:
    """Return the memories to show to the writer: those of the sessions, and related ones."""
    own = {
        memory.id: memory
        for session in sessions
        for memory in stored_in(home, session.session.id, session.turns)
    }
    statements = _longest(
        (
            statement.text
            for session in sessions
            for spoken in utterances(session.turns)
            if spoken.index >= session.begin
            for statement in spoken.statements
        ),
        _MAX_STATEMENTS,
    )
    reported = _longest(
        (  # the agent's messages usually show which memories are outdated
            turn.text[:_MESSAGE_CHARACTERS]
            for session in sessions
            for turn in session.turns[session.begin :]
            if turn.speaker is Speaker.AGENT and turn.text
        ),
        _MAX_MESSAGES,
    )
    texts = [*statements, *reported]
    stems = [{token.stem for token in read(text).tokens} for text in texts]
    rarity = rarity_of(home)
    is_rare = cache(lambda word: rarity.has_rare([word]))

    def is_concerned(memory: Memory) -> bool:
        reading = read(memory.content)
        rare = {
            token.stem
            for token in reading.tokens
            if token.stem in reading.words and is_rare(token.text.lower())
        }
        return any(len(reading.words & text) >= _MIN_SHARED_WORDS and rare & text for text in stems)

    admitted = Filter(projects=(project,) if project else (), trusted=True)
    nearest = _nearest(home, admitted, texts) or _in_words(home, admitted, statements)
    near = (
        memory
        for memory, cosine in nearest
        if memory.project in (None, project)
        and memory.id not in own
        and (cosine >= MIN_COSINE or is_concerned(memory))
    )
    return (
        *_visible(home, own.values(), writer, MOST_OF_SESSION * len(sessions)),
        *_visible(home, near, writer, MOST_RELATED),
    )


def _visible(home: Home, memories: Iterable[Memory], writer: str, most: int) -> Iterator[Memory]:
    return islice((memory for memory in memories if may_be_shown(home, memory, writer)), most)


def _longest(texts: Iterable[str], most: int) -> list[str]:
    return sorted(dict.fromkeys(texts), key=len, reverse=True)[:most]


def stored_in(home: Home, session: str, turns: Sequence[Turn]) -> tuple[Memory, ...]:
    """Return the trusted memories stored during a session, oldest first.

    Ids in the output of tool calls also count, because some hosts do not report the session.
    """
    memories = {
        memory.id: home.memories.find(memory.id) for memory in home.memories.known_of(session)
    }
    for end in memories_made(turns):
        memories |= {
            memory.id: memory
            for memory in home.memories.find_like(end)
            if memory.source.session in (None, session)
        }
    active = (memory for memory in memories.values() if memory and memory.is_active)
    trusted = (memory for memory in active if memory.trust is Trust.TRUSTED)
    return tuple(sorted(trusted, key=lambda memory: (memory.created, memory.id))[-MOST_OF_SESSION:])


def _nearest(home: Home, filter_: Filter, texts: Sequence[str]) -> list[tuple[Memory, float]]:
    if not texts or not home.settings.embeds:
        return []
    best: dict[int, float] = {}
    with suppress(EmbedderUnavailableError):
        embedder = spending.embedder_of(home)
        if embedder.name != home.vectors.model():
            return []
        admitted = home.selection.admitted_memories(filter_, today=home.today())
        for vector in embedder.embed(list(texts)):
            for row, cosine in home.vectors.memory_cosines(vector).items():
                if row in admitted:
                    best[row] = max(cosine, best.get(row, -1.0))
    rows = sorted(best, key=lambda row: -best[row])[:_MAX_NEAREST_ROWS]
    return [(memory, best[row]) for row, memory in home.memories.by_rows(rows).items()]


def _in_words(home: Home, filter_: Filter, statements: Sequence[str]) -> list[tuple[Memory, float]]:
    memories: dict[str, Memory] = {}
    until = time.monotonic() + _LEXICAL_SECONDS
    for statement in statements[:_MAX_LEXICAL_QUERIES]:
        if time.monotonic() > until:
            break
        query = RecallQuery(
            statement,
            filter=filter_,
            mode=Mode.LEXICAL,
            limit=MOST_RELATED,
            confident=True,
            turns=0,
            update=False,
        )
        memories |= {hit.memory.id: hit.memory for hit in recall_recall.recall(home, query).hits}
    return [(memory, 0.0) for memory in memories.values()]
