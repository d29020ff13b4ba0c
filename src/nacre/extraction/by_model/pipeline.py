"""All stages in a row, with a model: turns → what it is shown → what it proposes → what the session bears out.

Whatever the model does not do, the deterministic extractor does: no part of a session is lost to a failed call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain

from msgspec.structs import replace

from nacre.extraction.by_model.answer import Answer, Changes, Reply, Seen, Told
from nacre.extraction.by_model.calls import Caller
from nacre.extraction.by_model.checks import Checks, Dropped
from nacre.extraction.by_model.layout import CHUNK, DIGEST_TOKENS, Chunk, Line, chunks, laid_out, whole
from nacre.extraction.by_model.merge import merged, tempered
from nacre.extraction.by_model.overtaken import Overtaken, overtaken, standing
from nacre.extraction.by_model.prompts import chunk_size, for_changes, for_transcript, with_room
from nacre.extraction.by_model.verify import UNCOMPARED, verified
from nacre.extraction.by_model.worth import first_of, most_of, worthiest
from nacre.extraction.extractor import extract
from nacre.extraction.requests import Way
from nacre.extraction.rules.importance import weighed
from nacre.protocols import LanguageModel
from nacre.text.passages import count_tokens
from nacre.values.candidate import Candidate, Why
from nacre.values.memory import Memory
from nacre.values.model_calls import Prompt, Tokens
from nacre.values.session import Session, SessionKind, Turn

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


def extract_with(model: LanguageModel, session: Session, turns: Sequence[Turn], wanted: Wanted) -> Extraction:
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
    last = {one.memory.id: one for one in sorted(chain.from_iterable(shown), key=lambda one: one.shown.at)}
    return [
        (
            tempered(told[: len(kept)]),
            [one for one in over if last[one.memory.id] is one],
            [
                one for one, said in zip(gone, told[len(kept) :], strict=True)
                if said is not one.statement and said.held is not Why.UNTRUSTED and one.memory.id not in last
            ],
        )
        for told, (kept, gone, _), over in zip(judged, found, shown, strict=True)
    ]  # fmt: skip


def replied(
    caller: Caller, shown: Sequence[tuple[Session, Chunk]], known: Sequence[Memory], seconds: float,
    bears: Callable[[Seen], bool], asking: Callable[[Sequence[Memory]], Prompt],
) -> Reply | None:  # fmt: skip
    """What a model says of sessions: which known memories they overtake, then what is worth keeping beside the others.

    The first is a question of its own: beside the second it is answered at a glance (decision 13). Where it has no
    answer, nothing is overtaken. What code does not bear out stays known as it was, so that it may be written.
    """
    changes = caller.ask(for_changes(shown, known, caller.capabilities, seconds), Changes) if known else None
    seen: Sequence[Seen] = changes.known if changes else ()
    answer = caller.ask(asking(standing(known, list(filter(bears, seen)))), Answer)
    return Reply(answer.memories, seen) if answer else None


class Asking:
    """One session about which a model is asked, and what becomes of the answers."""

    def __init__(self, caller: Caller, session: Session, turns: Sequence[Turn], wanted: Wanted) -> None:
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
        return self.extraction(parts, [None] * len(parts), (self._by_rules(parts, everything=True), [], []))

    def taken(self, parts: Sequence[Chunk], answers: Sequence[Reply | None]) -> Taken:
        """What code bears out of the answers: memories, each once, and what is overtaken."""
        found = self._taken(parts, answers)
        kept = merged(found)
        self.repeated = len(found) - len(kept)
        gone = [
            self._overtaken(chunk, answer.known, self.known) if answer else []
            for chunk, answer in zip(parts, answers, strict=True)
        ]
        gone += [self._elsewhere(chunk, known) for chunk, known in zip(parts, gone, strict=True) if known]
        return kept, list({one.memory.id: one for one in chain.from_iterable(gone)}.values())

    def extraction(self, parts: Sequence[Chunk], answers: Sequence[Reply | None], judged: Judged) -> Extraction:
        """What became of the session."""
        kept, gone, doubted = judged
        problem = self.caller.problem
        candidates = tuple(weighed(self.session.tool, kept))
        return Extraction(
            candidates=candidates, model=self.caller.name, overtaken=tuple(one for one in gone if not one.is_free),
            doubted=(*doubted, *(one for one in gone if one.is_free)),
            dropped=dict(self.dropped), proposed=self.proposed, repeated=self.repeated, calls=self.caller.calls,
            tokens=self.caller.tokens, parts=len(parts), by_rules=sum(one is None for one in answers),
            is_whole=self.is_whole,
            problem=problem.message if problem else None, hint=problem.hint if problem else None,
            is_over=self.caller.is_over, is_useless=self.caller.is_useless, left=self._left(parts, answers),
            is_uncompared=self.caller.is_spent and any(one.detail == UNCOMPARED for one in candidates),
        )  # fmt: skip

    def _left(self, parts: Sequence[Chunk], answers: Sequence[Reply | None]) -> frozenset[str]:
        left = [one for one, answer in zip(parts, answers, strict=True) if answer is None and self.caller.is_spent]
        return frozenset(turn.id for one in left for turn in self.turns[one.first : one.last + 1])

    @cached_property
    def _checks(self) -> Checks:
        return Checks(self.turns, begin=self.wanted.begin)

    def bears(self, chunk: Chunk, seen: Seen) -> bool:
        """Whether the turns of a part bear out what a model says of a known memory."""
        return bool(self._overtaken(chunk, [seen], self.known))

    def _overtaken(self, chunk: Chunk, seen: Sequence[Seen], known: Sequence[Memory]) -> list[Overtaken]:
        return overtaken(seen, known, self.session.id, self._checks, chunk.places)

    def _elsewhere(self, chunk: Chunk, gone: Sequence[Overtaken]) -> list[Overtaken]:
        """What else a change touches: the model is asked once more, of memories that it was not shown and that are near
        to the clauses that hold no longer. Others say in passing what a clause says, and few are near to the session.
        """
        shown = {one.id for one in self.known}
        near = [one for one in self.wanted.near([one.clause for one in gone if one.clause]) if one.id not in shown]
        near = list(with_room(near, self.caller.capabilities))
        if not near or self.caller.stopped:
            return []
        able, seconds = self.caller.capabilities, self.wanted.timeout_seconds
        changes = self.caller.ask(for_changes([(self.session, chunk)], near, able, seconds), Changes)
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

    def _round(self, parts: Sequence[Chunk], waiting: Sequence[int]) -> Iterator[tuple[int, Reply | None]]:
        """Each part that waits is asked for once, some at a time."""
        pool = ThreadPoolExecutor(min(THREADS, len(waiting)), thread_name_prefix="nacre-extraction")
        try:
            asked: list[tuple[int, Future[Reply | None]]] = [
                (at, pool.submit(copy_context().run, self._ask, "chunk", parts[at])) for at in waiting
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

        return replied(caller, [(self.session, chunk)], self.known, seconds, partial(self.bears, chunk), asking)

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
        meant = [replace(one, evidence=[places.get(number, -1) for number in one.evidence]) for one in told]
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
