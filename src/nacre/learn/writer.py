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
from importlib.resources import files
from itertools import chain, islice

import msgspec

from nacre.base.frozen import frozen
from nacre.base.text import count_tokens, normalise, one_line, shorten, title_of
from nacre.base.times import shown_day
from nacre.errors import EmbedderUnavailableError
from nacre.home import consent
from nacre.home.home import Home
from nacre.learn.checks import Caller, Checks, Dropped, Overtaken, check_changes, find_near
from nacre.learn.explicit import names_this_object
from nacre.learn.extract import extract, may_be_shown
from nacre.learn.prompts import (
    CHARACTERS_A_TOKEN,
    CHUNK,
    DIGEST_TOKENS,
    SEVERAL,
    VERDICTS,
    Answer,
    Chunk,
    OutdatedMemory,
    OwnerTurns,
    ProposedMemory,
    as_data,
    as_read,
    calls_of,
    chunk_size,
    chunks,
    for_owner_turns,
    for_transcript,
    frame,
    lay_out,
    room_for,
    whole,
    with_room,
    without,
    without_middle,
)
from nacre.learn.reading import content_words, raise_meeting_todos
from nacre.learn.sentences import (
    Statement,
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
from nacre.protocols import LanguageModel
from nacre.readers.conversation import memories_made
from nacre.recall import recall as recall_recall
from nacre.values.memory import Candidate, Confidence, Memory, Why
from nacre.values.models import Capabilities, Prompt, Tokens
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Session, SessionKind, Speaker, Task, Trust, Turn

# -- Deduplication within a session ----------------------------------------------------------------


def merge(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Merge candidates with the same words, in order. Storage recognises other repetitions.

    The more important candidate is kept. If both have the same speaker and confidence, it cites the
    turns of both.
    """
    kept: dict[str, Candidate] = {}
    for candidate in candidates:
        words = normalise(candidate.content)
        earlier = kept.get(words)
        if earlier is None:
            kept[words] = candidate
            continue
        best = candidate if _weight(candidate) > _weight(earlier) else earlier
        if (earlier.speaker, earlier.confidence) == (candidate.speaker, candidate.confidence):
            turns = dict.fromkeys((*earlier.turns, *candidate.turns))
            best = replace(best, turns=tuple(turns))
        kept[words] = best
    return list(kept.values())


def _weight(candidate: Candidate) -> tuple[bool, bool, int]:
    return not candidate.held, candidate.speaker is Speaker.OWNER, candidate.importance


# -- Verification ----------------------------------------------------------------------------------
# A model compares each proposal only with its evidence, in one short call per session. A model that reads a whole
# session might mistake a suggestion for a decision or mix up two facts. Unproven statements become candidates.


VERSION = "5"
AT_ONCE = 40
"""Maximum number of statements per call."""

UNCOMPARED = "it was not compared with its evidence"

_TURN_CHARACTERS = 4_000
_LATER_CHARACTERS = 300
"""Maximum number of characters shown of each later message of the owner."""

_MAX_LATER_CHARACTERS = 12_000
_MIN_SUPPORT_SHARE = 0.8
"""Minimum share of the verifier's supporting words that occur in a shown turn in the same order."""

_MIN_SUPPORTING_WORDS = 2
_MAX_FAILURES = 2
"""Maximum number of failed calls shown with an agent's statement."""

_VERDICT_TOKENS = 4_096
"""Number of output tokens, enough for a model that reasons before it answers."""


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
"""Findings after which a statement can still be true without the wrong parts."""

_DETAILS: Mapping[Finding, str] = {
    Finding.HOLDS: "the verifier quoted no words that support it",
    Finding.UNSETTLED: "its evidence only asks, supposes or proposes it",
    Finding.REPLACED: "it was withdrawn or replaced later in its session",
    Finding.DIFFERS: "its evidence says something else",
    Finding.NOT_SAID: "its evidence does not say it",
    Finding.ONCE: "it is only about the task of its session",
    Finding.OUTSIDE: "it is an instruction from outside text",
    Finding.UNCLEAR: "it is unclear without its session",
    Finding.TRIVIAL: "nobody would act on it",
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

Group = tuple[Sequence[Candidate], Sequence[Turn]]
"""The candidates and turns of one session."""


def verify(caller: Caller, groups: Sequence[Group], seconds: float) -> list[list[Candidate]]:
    """Ask a model to verify the candidates, and return the candidates of each group.

    Candidates without proof are held for review. Only candidates that a model proposed are
    verified.
    """
    pairs = [
        (candidate, turns)
        for candidates, turns in groups
        for candidate in candidates
        if not candidate.held and candidate.confidence is Confidence.EXTRACTED
    ]
    judged: dict[int, Candidate] = {}
    caller.try_smaller()
    for batch in _batches(pairs, caller.capabilities):
        answer = caller.ask(prompt_for(batch, caller.capabilities, seconds), Verdicts)
        verdicts = {verdict.number: verdict for verdict in answer.verdicts} if answer else {}
        judged |= {
            id(candidate): _apply_verdict(candidate, turns, verdicts.get(number))
            for number, (candidate, turns) in enumerate(batch, 1)
        }
    return [
        [judged.get(id(candidate), candidate) for candidate in candidates]
        for candidates, _ in groups
    ]


def _batches(
    pairs: Sequence[SessionCandidate], capabilities: Capabilities
) -> Iterator[Sequence[SessionCandidate]]:
    half = len(pairs) // 2
    if len(pairs) > AT_ONCE or (
        half and not _has_room(prompt_for(pairs, capabilities, 0.0), capabilities)
    ):
        yield from _batches(pairs[:half], capabilities)
        yield from _batches(pairs[half:], capabilities)
    elif pairs:
        yield pairs


def _has_room(prompt: Prompt, capabilities: Capabilities) -> bool:
    return count_tokens(prompt.text) <= room_for(capabilities, prompt.output_tokens)


def _apply_verdict(
    candidate: Candidate, turns: Sequence[Turn], verdict: Verdict | None
) -> Candidate:
    if verdict is None:
        return replace(candidate, held=Why.UNPROVEN, detail=UNCOMPARED)
    is_supported = _is_supported(candidate, turns, verdict.support)
    if verdict.finding is Finding.HOLDS and is_supported:
        return candidate
    is_partial = verdict.finding in _PARTIAL_FINDINGS and is_supported
    rest = without(candidate.content, verdict.wrong) if is_partial else None
    if rest:
        return replace(candidate, content=rest, subject=_subject(candidate, rest))
    if verdict.finding is Finding.ONCE and _may_last(candidate, turns):
        return replace(candidate, held=Why.FOUND)  # becomes a memory if the owner repeats it
    why = Why.UNTRUSTED if verdict.finding is Finding.OUTSIDE else Why.UNPROVEN
    return replace(candidate, held=why, detail=_DETAILS[verdict.finding])


def _may_last(candidate: Candidate, turns: Sequence[Turn]) -> bool:
    """Return True if neither a request of the owner nor its evidence names one object of the task."""
    terms = _content_words(candidate.content)
    said = [
        statement.text
        for turn in turns
        if turn.id in candidate.turns and turn.speaker is Speaker.OWNER
        for statement in split(turn.text)
        if terms & _content_words(statement.text)
    ]
    return candidate.speaker is Speaker.OWNER and not any(
        map(names_this_object, (candidate.content, *said))
    )


def _is_supported(candidate: Candidate, turns: Sequence[Turn], support: str) -> bool:
    """Return True if the turns contain the passage that a verifier quoted, and the passage is about the statement."""
    position = {turn.id: at for at, turn in enumerate(turns)}
    places = sorted(position[turn] for turn in candidate.turns if turn in position)
    words = normalise(support)
    speakers = {
        turns[at].speaker
        for at in dict.fromkeys((*_with_context(turns, [places]), *range(len(turns))))
        if words
        and (
            words in (text := normalise(turns[at].text))
            or find_near(text, support, _MIN_SUPPORT_SHARE)
        )
    }
    if not speakers or language_of(support) is not language_of(candidate.content):
        return bool(speakers)
    statement_words = _content_words(candidate.content)
    shared = len(_content_words(support) & statement_words)
    needed = 1 if Speaker.OWNER in speakers else _MIN_SUPPORTING_WORDS
    return shared >= min(needed, len(statement_words))


def _subject(candidate: Candidate, rest: str) -> str:
    """Return a candidate's subject. If the subject contains words that were removed, return a new subject."""
    removed, subject = _content_words(candidate.content) - _content_words(rest), candidate.subject
    return title_of(rest) if removed & _content_words(subject) else subject


def _content_words(text: str) -> frozenset[str]:
    return content_words(text, language_of(text))


def prompt_for(pairs: Sequence[SessionCandidate], able: Capabilities, seconds: float) -> Prompt:
    """Build the prompt for verdicts on candidates. Each evidence turn is shown once, before the statements."""
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
        system=_system_prompt(),
        text="\n\n".join(texts),
        answer=schema_of(Verdicts),
        name=VERDICTS,
        version=f"verify/{VERSION}",
        output_tokens=min(able.output, able.window // 4, _VERDICT_TOKENS),
        timeout_seconds=seconds,
    )


def _later_messages(turns: Sequence[Turn], shown: Collection[int], begin: int) -> Iterator[str]:
    """Yield the owner's messages after the turn ``begin``, shortened, except those in ``shown``."""
    length = 0
    for utterance in utterances(turns):
        if utterance.index > begin and utterance.index not in shown:
            text = shorten(
                as_data(one_line(" ".join(item.text for item in utterance.statements))),
                _LATER_CHARACTERS,
            )
            length += len(text)
            if length > _MAX_LATER_CHARACTERS:
                return
            yield f"[owner] {text}"


def _with_context(turns: Sequence[Turn], evidence: Sequence[Sequence[int]]) -> list[int]:
    """Return the indexes of the evidence and of the turns that help to understand the evidence.

    These turns include the owner's replies, failed calls, and the agent's messages before and
    after.
    """
    cited = {at for places in evidence for at in places}
    shown: set[int | None] = {*cited}
    for at in cited:
        later = (
            index
            for index in range(at + 1, len(turns))
            if turns[index].speaker is Speaker.OWNER and is_content(turns[index])
        )
        following = next(later, None)
        shown.add(following)
        shown |= set(_turns_with_failures(turns, at))
        if turns[at].speaker is Speaker.OWNER:
            # Add the turn that the owner answers, or the plan that the owner accepts, and the outcome.
            accepts = at > 0 and is_accepted_plan(turns, at - 1)
            shown.add(at - 1 if accepts else before(turns, at, Speaker.AGENT))
            last = before(turns, len(turns) if following is None else following, Speaker.AGENT)
            shown.add(last if last is not None and last > at else None)
    return sorted(at for at in shown if at is not None)


def _turns_with_failures(turns: Sequence[Turn], at: int) -> Sequence[int]:
    """Return the indexes of turns with failed calls.

    For each of them, the index of the next turn with a call is also included, if there is one. Only
    turns since the owner's last message are included.
    """
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
    """Render numbered turns, with a date whenever the day changes."""
    day, calls = "", list(calls_of(turns))
    for at, number in numbers.items():
        turn = turns[at]
        date = shown_day(turn.time) if turn.time else day
        label = "agent, plan" if is_accepted_plan(turns, at) else turn.speaker.value
        label += ", untrusted" if turn.trust is Trust.UNTRUSTED else ""
        text = "\n  ".join(without_middle(as_read(turn), _TURN_CHARACTERS).splitlines())
        yield f"{f'({date}){chr(10)}' if date != day else ''}[m{number}][{label}] {text}{calls[at]}"
        day = date


@cache
def _system_prompt() -> str:
    return (files(__package__) / "prompts" / f"verify-{VERSION}.md").read_text(encoding="utf-8")


# -- Number of memories per session ----------------------------------------------------------------
# A model that reads part by part proposes the most important points of each part, so long sessions yield too many
# proposals. People keep about a dozen memories from sixty owner messages, and a few memories from two messages. The
# constants are derived from labels by two people. See decision 12.


_GROWTH, _BASE_MEMORIES = 1.3, 1


def most_of(turns: Sequence[Turn], begin: int) -> int:
    """Return the maximum number of memories for turns from ``begin`` on, based on the number of owner messages."""
    messages = {utterance.index for utterance in utterances(turns) if utterance.index >= begin}
    return math.ceil(_GROWTH * math.sqrt(len(messages))) + _BASE_MEMORIES


def worthiest(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Keep the most important memories, and hold the others for review. ``most`` is the number of memories to keep."""
    memories = [at for at, candidate in enumerate(candidates) if not candidate.held]
    return _hold_all_but(
        candidates, sorted(memories, key=lambda at: (-candidates[at].importance, -at))[:most]
    )


def first_of(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Keep the most important candidates, and hold the others for review. ``most`` is the number of candidates to keep.

    The limit is needed because a model can propose the same memory in many variants.
    """
    return _hold_all_but(
        candidates, sorted(range(len(candidates)), key=lambda at: -candidates[at].importance)[:most]
    )


def _hold_all_but(candidates: Sequence[Candidate], kept: Collection[int]) -> list[Candidate]:
    return [
        candidate
        if candidate.held or at in kept
        else replace(candidate, held=Why.MINOR, detail="other memories of its session matter more")
        for at, candidate in enumerate(candidates)
    ]


# -- Extraction ------------------------------------------------------------------------------------
# With a model, turns become a transcript, then proposals, then verified candidates. The deterministic extractor handles
# every part for which a model call fails, so no part of a session is lost.


ATTEMPTS = 3
"""Maximum number of attempts to ask about a whole session."""

ROUNDS = 8
"""Maximum number of attempts per part of a session before the deterministic extractor takes over."""

MOST_A_CHUNK = 8
SMALL_WINDOW = 16_384
"""Maximum window, in tokens, of an unknown model that is asked in two short steps."""

_RESERVED_TOKENS = 4_000


@frozen
class ExtractionOptions:
    """Options of an extraction.

    ``begin``: index of the first turn to extract from. ``related``: memories shown as known.
    """

    begin: int = 0
    related: Sequence[Memory] = ()
    timeout_seconds: float = 120.0
    notify: Callable[[int, int], None] = lambda _done, _total: None
    """Called with the number of finished parts and the total."""


Checked = tuple[list[Candidate], list[Overtaken]]
"""A session's memories, and the known memories that the session shows to be outdated."""

Judged = tuple[list[Candidate], list[Overtaken], list[Overtaken]]
""":data:`Checked` after verification, and known memories that might be outdated, for review."""

Borne = tuple[list[Candidate], list[Overtaken], Sequence[Turn]]
"""A session's checked memories, the known memories that it shows to be outdated, and the turns."""


@frozen
class Extraction:
    """The result of extraction from one session.

    ``overtaken``: known memories that the session shows to be outdated. ``doubted``: known memories
    that only the model considers outdated. ``dropped``: number of rejected proposals per reason.
    ``parts``: number of parts, 1 for a whole session. ``by_rules``: number of parts that rules
    handled. ``problem`` and ``hint``: description of the last failure.
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
    """True if further calls to the model would currently fail."""

    is_useless: bool = False
    """True if the model never answered in the requested format."""

    left: frozenset[str] = frozenset()
    """Ids of turns in parts that were not sent, because the call limit was reached."""

    is_uncompared: bool = False
    """True if no call was left to verify the proposals."""

    @property
    def memories(self) -> tuple[Candidate, ...]:
        """The candidates that become memories immediately."""
        return tuple(candidate for candidate in self.candidates if not candidate.held)


def extract_with(
    model: LanguageModel, session: Session, turns: Sequence[Turn], options: ExtractionOptions
) -> Extraction:
    """Return the memories of a session's turns from ``options.begin`` on, in conversation order.

    Model errors are not raised.
    """
    if session.kind is not SessionKind.MAIN:
        return Extraction((), model.name)
    return Asking(Caller(model), session, turns, options).run()


def verify_all(caller: Caller, borne: Sequence[Borne], seconds: float) -> list[Judged]:
    """Verify the memories and changes of each session.

    Memories without proof are held for review, and changes without proof are rejected. If several
    sessions change the same memory, the latest change is used.
    """
    groups = [
        ([*kept, *(change.statement for change in changes)], turns)
        for kept, changes, turns in borne
    ]
    judged = verify(caller, groups, seconds)
    proven = [
        [change for change in changes if change.statement in results[len(kept) :]]
        for results, (kept, changes, _) in zip(judged, borne, strict=True)
    ]
    latest = {
        change.memory.id: change
        for change in sorted(chain.from_iterable(proven), key=lambda change: change.shown.at)
    }
    return [
        (
            results[: len(kept)],
            [change for change in overtakes if latest[change.memory.id] is change],
            [
                change
                for change, statement in zip(changes, results[len(kept) :], strict=True)
                if statement is not change.statement
                and statement.held is not Why.UNTRUSTED
                and change.memory.id not in latest
            ],
        )
        for results, (kept, changes, _), overtakes in zip(judged, borne, proven, strict=True)
    ]


def ask_about(
    caller: Caller,
    way: str,
    shown: Sequence[tuple[Session, Chunk]],
    memories: Sequence[Memory],
    seconds: float,
) -> Answer | None:
    """Ask a model for the memories of sessions.

    A small model is first asked which of the owner's turns are important.
    """
    able = caller.capabilities
    if able.window <= SMALL_WINDOW and not able.known:
        listed = caller.ask(for_owner_turns(way, shown, able, seconds), OwnerTurns)
        if listed is None:
            return None
        shown = [
            (session, chunk.around(listed.turns))
            for session, chunk in shown
            if any(line.number in listed.turns for line in chunk.lines)
        ]
        if not shown:
            return Answer([], [])
    return caller.ask(for_transcript(way, shown, memories, able, seconds), Answer)


class Asking:
    """The questions about one session, and the evaluation of the answers."""

    def __init__(
        self, caller: Caller, session: Session, turns: Sequence[Turn], options: ExtractionOptions
    ) -> None:
        self.session = session
        self.turns = turns
        self.options = options
        self.caller = caller
        self.known = with_room(options.related, caller.capabilities)
        self.dropped: Counter[str] = Counter()
        self.proposed = 0
        self.repeated = 0
        self.is_whole = True

    def run(self) -> Extraction:
        lines = lay_out(self.turns, begin=self.options.begin)
        chunk = whole(lines, self.options.begin)
        if chunk is None:
            return Extraction((), self.caller.name)
        reply = self._ask_whole(chunk) if self._fits(chunk) else None
        parts = (
            [chunk]
            if reply is not None
            else chunks(lines, self.options.begin, size=chunk_size(self.caller.capabilities))
        )
        answers = [reply] if reply is not None else self._ask_parts(parts)
        self.is_whole = reply is not None
        if all(answer is None for answer in answers):
            return self.apply_rules(parts)
        candidates, changes = self.check(parts, answers)
        best = (
            candidates
            if self.is_whole
            else worthiest(candidates, most_of(self.turns, self.options.begin))
        )
        (judged,) = verify_all(
            self.caller, [(best, changes, self.turns)], self.options.timeout_seconds
        )
        return self.extraction(parts, answers, judged)

    def apply_rules(self, parts: Sequence[Chunk]) -> Extraction:
        """Return the result of the rules only, for a session without an answer from the model."""
        return self.extraction(
            parts, [None] * len(parts), (self._by_rules(parts, everything=True), [], [])
        )

    def check(self, parts: Sequence[Chunk], answers: Sequence[Answer | None]) -> Checked:
        """Return the proposals that pass the checks, without duplicates, and the outdated memories."""
        candidates = self._checked_candidates(parts, answers)
        kept = merge(candidates)
        self.repeated = len(candidates) - len(kept)
        changes = {
            change.memory.id: change
            for chunk, answer in zip(parts, answers, strict=True)
            if answer
            for change in check_changes(
                answer.over, self.known, self.session.id, self._checks, chunk.turns
            )
        }
        return kept, list(changes.values())

    def extraction(
        self, parts: Sequence[Chunk], answers: Sequence[Answer | None], judged: Judged
    ) -> Extraction:
        """Combine the answers and the verified memories into the result for the session."""
        kept, changes, doubted = judged
        problem = self.caller.problem
        candidates = tuple(raise_meeting_todos(self.session.tool, kept))
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
            proposed=self.proposed,
            repeated=self.repeated,
            calls=self.caller.calls,
            tokens=self.caller.tokens,
            parts=len(parts),
            by_rules=sum(answer is None for answer in answers),
            is_whole=self.is_whole,
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

    @cached_property
    def _checks(self) -> Checks:
        return Checks(self.turns, begin=self.options.begin)

    def _fits(self, chunk: Chunk) -> bool:
        capabilities = self.caller.capabilities
        room = capabilities.window - capabilities.output - _RESERVED_TOKENS
        return capabilities.known and count_tokens(chunk.text) <= min(DIGEST_TOKENS, room)

    def _ask_whole(self, chunk: Chunk) -> Answer | None:
        """Ask about the whole session. Return ``None`` after a truncated answer or three failed attempts."""
        for _ in range(ATTEMPTS):
            answer = self._ask("whole", chunk)
            if answer is not None or self.caller.stopped or self.caller.was_cut:
                return answer
        return None

    def _ask_parts(self, parts: Sequence[Chunk]) -> list[Answer | None]:
        """Ask about each part. The answer is ``None`` for parts whose calls kept failing."""
        answers: list[Answer | None] = [None] * len(parts)
        for _ in range(ROUNDS):
            for at, part in enumerate(parts):
                if answers[at] is None and not self.caller.stopped:
                    answers[at] = self._ask("chunk", part)
                    done = sum(answer is not None for answer in answers)
                    self.options.notify(done, len(parts))
        return answers

    def _ask(self, way: str, chunk: Chunk) -> Answer | None:
        return ask_about(
            self.caller, way, [(self.session, chunk)], self.known, self.options.timeout_seconds
        )

    def _checked_candidates(
        self, parts: Sequence[Chunk], answers: Sequence[Answer | None]
    ) -> list[Candidate]:
        """Return the checked memories. Parts without an answer are handled by rules."""
        unanswered = [chunk for chunk, reply in zip(parts, answers, strict=True) if reply is None]
        position = {turn.id: at for at, turn in enumerate(self.turns)}
        candidates = self._by_rules(unanswered, everything=False)
        for chunk, reply in zip(parts, answers, strict=True):
            candidates += self.judged(chunk, reply.memories if reply else ())
        return sorted(
            candidates, key=lambda candidate: max(position[turn] for turn in candidate.turns)
        )

    def judged(self, chunk: Chunk, proposals: Sequence[ProposedMemory]) -> list[Candidate]:
        """Return the valid proposals. Of more than eight per part, hold the others for review."""
        self.proposed += len(proposals)
        results = [self._checks.judge(proposal, chunk.turns) for proposal in proposals]
        self.dropped.update(result.reason for result in results if isinstance(result, Dropped))
        kept = [result for result in results if isinstance(result, Candidate)]
        return first_of(kept, MOST_A_CHUNK * max(1, -(-len(chunk.text) // CHUNK)))

    def share_of(self, quote: str, chunk: Chunk, content: str = "") -> float:
        """Return how much of a quote occurs in one of the session's turns, from 0 to 1."""
        place = self._checks.locate(quote, chunk.turns, content)
        return place.share if place else 0.0

    def _by_rules(self, parts: Sequence[Chunk], *, everything: bool) -> list[Candidate]:
        if not parts:
            return []
        candidates = extract(self.session, self.turns, begin=self.options.begin)
        if everything:
            return candidates
        position = {turn.id: at for at, turn in enumerate(self.turns)}
        ends = [
            (max(position[turn] for turn in candidate.turns), candidate) for candidate in candidates
        ]
        return [
            candidate
            for end, candidate in ends
            if any(chunk.first <= end <= chunk.last for chunk in parts)
        ]


# -- Small sessions --------------------------------------------------------------------------------
# Several small sessions share one call, which saves the cost of the instructions.


SMALL = 3_000
"""Maximum number of tokens in a session that shares a call."""

MOST = 8
"""Maximum number of sessions per call."""


@frozen
class FinishedSession:
    """A finished session, the turns, and the index of the first turn not yet shown to a model."""

    session: Session
    turns: Sequence[Turn]
    begin: int = 0


def size_of(shown: FinishedSession) -> int:
    """Return the number of a session's tokens that would be shown to a model."""
    chunk = whole(lay_out(shown.turns), shown.begin)
    return count_tokens(chunk.text) if chunk else 0


def count_fitting(sizes: Sequence[int], able: Capabilities) -> int:
    """Return the number of small sessions that can share one model call.

    ``sizes`` contains the tokens of each session.
    """
    total, most = 0, min(DIGEST_TOKENS, chunk_size(able) // CHARACTERS_A_TOKEN)
    for count, size in enumerate(sizes[:MOST]):
        total += size
        if size > SMALL or total > most:
            return count
    return min(len(sizes), MOST)


def extract_together(
    caller: Caller, sessions: Sequence[FinishedSession], options: ExtractionOptions
) -> list[Extraction] | None:
    """Ask a model about several sessions at once, and return one extraction per session.

    Return ``None`` if there is no answer. The cost is recorded in ``caller``.
    """
    extractions: list[tuple[Asking, Chunk]] = []
    number = 0
    for shown in sessions:
        chunk = whole(lay_out(shown.turns, after=number), shown.begin)
        if chunk is None or shown.session.kind is not SessionKind.MAIN:
            return None
        number = chunk.lines[-1].number
        extractions.append(
            (Asking(caller, shown.session, shown.turns, replace(options, begin=shown.begin)), chunk)
        )
    answer = ask_about(
        caller,
        SEVERAL,
        [(asking.session, chunk) for asking, chunk in extractions],
        extractions[0][0].known,
        options.timeout_seconds,
    )
    if answer is not None:
        answers = _split_by_session(answer, extractions)
        checked = [
            asking.check([chunk], [own])
            for (asking, chunk), own in zip(extractions, answers, strict=True)
        ]
        borne = [
            (kept, overtaken, asking.turns)
            for (kept, overtaken), (asking, _) in zip(checked, extractions, strict=True)
        ]
        judged = verify_all(caller, borne, options.timeout_seconds)
        results = [
            asking.extraction([chunk], [own], of_session)
            for (asking, chunk), own, of_session in zip(extractions, answers, judged, strict=True)
        ]
    elif caller.is_over:
        results = [asking.apply_rules([chunk]) for asking, chunk in extractions]
    else:
        return None
    return [replace(result, calls=0, tokens=Tokens()) for result in results]


def _split_by_session(answer: Answer, extractions: Sequence[tuple[Asking, Chunk]]) -> list[Answer]:
    """Assign each memory and change to the session that contains most words of its quote."""
    memories: list[list[ProposedMemory]] = [[] for _ in extractions]
    over: list[list[OutdatedMemory]] = [[] for _ in extractions]

    def session_of(quote: str, content: str = "") -> int:
        shares = [asking.share_of(quote, chunk, content) for asking, chunk in extractions]
        return max(range(len(shares)), key=lambda at: (shares[at], at))

    for memory in answer.memories:
        memories[session_of(memory.quote, memory.content)].append(memory)
    for change in answer.over:
        over[session_of(change.quote)].append(change)
    return [Answer(*parts) for parts in zip(memories, over, strict=True)]


# -- Known memories --------------------------------------------------------------------------------
# A writer is shown the memories stored in a session and the memories most similar to the session's text.


MOST_RELATED = 24
"""Maximum number of memories from other sessions."""

MOST_OF_SESSION = 40
_MAX_LEXICAL_CANDIDATES = 15
_MAX_NEAREST_ROWS = 200
_LEXICAL_SECONDS = 5.0
_MAX_STATEMENTS, _MAX_MESSAGES = 24, 48
"""Maximum numbers of owner statements and agent messages, longest first, that are compared with known memories."""

_MESSAGE_CHARACTERS = 1_200
"""Number of characters of a message that are embedded."""

_MAX_LEXICAL_QUERIES = 6
_MIN_SHARED_WORDS = 2
MIN_COSINE = 0.5
"""Minimum cosine similarity to a new text at which a session can change a memory without shared words."""


def find_related(
    home: Home, sessions: Sequence[FinishedSession], project: str | None, writer: str
) -> tuple[Memory, ...]:
    """Return the memories that were stored in the sessions or are about the same subjects.

    Memories that the writer may not see are omitted.
    """
    own = {
        memory.id: memory
        for session in sessions
        for memory in stored_in(home, session.session.id, session.turns)
    }
    stated = _longest(
        (statement.text for shown in sessions for statement in _new_statements(shown)),
        _MAX_STATEMENTS,
    )
    reported = _longest(
        (message for shown in sessions for message in _new_messages(shown)), _MAX_MESSAGES
    )
    concerns = _Concerns(home, [*stated, *reported])
    near = (
        memory
        for memory, cosine in _nearby(home, project, stated, reported)
        if memory.id not in own and (cosine >= MIN_COSINE or concerns.includes(memory))
    )
    return (
        *_visible(home, own.values(), writer, MOST_OF_SESSION * len(sessions)),
        *_visible(home, near, writer, MOST_RELATED),
    )


class _Concerns:
    """The words of a session's new texts."""

    def __init__(self, home: Home, texts: Iterable[str]) -> None:
        self._texts = [{token.stem for token in read(text).tokens} for text in texts]
        rarity = rarity_of(home)
        self._is_rare = cache(lambda word: rarity.has_rare([word]))

    def includes(self, memory: Memory) -> bool:
        """Return True if a memory and a text share two important words. At least one word must be rare."""
        topical = read(memory.content).words
        rare = {
            token.stem
            for token in read(memory.content).tokens
            if token.stem in topical and self._is_rare(token.text.lower())
        }
        return any(len(topical & text) >= _MIN_SHARED_WORDS and rare & text for text in self._texts)


def _visible(home: Home, memories: Iterable[Memory], writer: str, most: int) -> Iterator[Memory]:
    return islice((memory for memory in memories if may_be_shown(home, memory, writer)), most)


def _new_statements(shown: FinishedSession) -> Iterator[Statement]:
    for spoken in utterances(shown.turns):
        yield from spoken.statements if spoken.index >= shown.begin else ()


def _new_messages(shown: FinishedSession) -> Iterator[str]:
    """Return the agent's new messages, which usually show which memories are outdated."""
    return (
        turn.text[:_MESSAGE_CHARACTERS]
        for turn in shown.turns[shown.begin :]
        if turn.speaker is Speaker.AGENT and turn.text
    )


def _longest(texts: Iterable[str], most: int) -> list[str]:
    return sorted(dict.fromkeys(texts), key=len, reverse=True)[:most]


def stored_in(home: Home, session: str, turns: Sequence[Turn]) -> tuple[Memory, ...]:
    """Return the trusted memories that were stored during a session, oldest first.

    Some hosts do not report the session id. Therefore, the ids in the output of tool calls are also
    used.
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


def _nearby(
    home: Home, project: str | None, stated: Sequence[str], reported: Sequence[str]
) -> Sequence[tuple[Memory, float]]:
    """Return the trusted memories most similar to a session's text, with their cosines.

    The nearest memory comes first. Memories of other projects are omitted. Without vectors, words
    are compared, and each cosine is 0.
    """
    admitted = Filter(projects=(project,) if project else (), trusted=True)
    until = time.monotonic() + _LEXICAL_SECONDS
    nearest: Sequence[tuple[Memory, float]] = ()
    with suppress(EmbedderUnavailableError):
        nearest = _nearest(home, admitted, [*stated, *reported]) if _has_vectors(home) else ()
    words = stated[:_MAX_LEXICAL_QUERIES]
    return nearest or [(memory, 0.0) for memory in _in_words(home, admitted, words, until)]


def _has_vectors(home: Home) -> bool:
    return (
        home.settings.text("embedding.model") != "none"
        and consent.configured_embedder(home).name == home.vectors.model()
    )


def _nearest(home: Home, filter_: Filter, texts: Sequence[str]) -> list[tuple[Memory, float]]:
    admitted = home.selection.admitted_memories(filter_, today=home.today())
    best: dict[int, float] = {}
    for vector in consent.configured_embedder(home).embed(list(texts)) if texts else ():
        for row, cosine in home.vectors.memory_cosines(vector).items():
            if row in admitted:
                best[row] = max(cosine, best.get(row, -1.0))
    rows = sorted(best, key=lambda row: -best[row])[:_MAX_NEAREST_ROWS]
    memories = home.memories.by_rows(rows)
    return [
        (memories[row], best[row])
        for row in rows
        if row in memories and _is_in_scope(filter_, memories[row])
    ]


def _in_words(
    home: Home, admitted: Filter, statements: Sequence[str], until: float
) -> list[Memory]:
    memories: dict[str, Memory] = {}
    for statement in statements:
        if time.monotonic() > until or len(memories) >= _MAX_LEXICAL_CANDIDATES:
            break
        query = RecallQuery(
            statement,
            filter=admitted,
            mode=Mode.LEXICAL,
            limit=MOST_RELATED,
            confident=True,
            turns=0,
            update=False,
        )
        hits = (hit.memory for hit in recall_recall.recall(home, query).hits)
        memories |= {memory.id: memory for memory in hits if _is_in_scope(admitted, memory)}
    return list(memories.values())


def _is_in_scope(admitted: Filter, memory: Memory) -> bool:
    return memory.project in (None, *admitted.projects)
