"""Sessions → memories: extraction over what is new, without saying twice what is known."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from nacre.dedup.decision_prompt import Decision
from nacre.dedup.placement import place, write_touched
from nacre.extraction.accounting import accounted_for, passed_over
from nacre.extraction.amending import Amendments
from nacre.extraction.beginning import begun
from nacre.extraction.by_model.pipeline import Extraction
from nacre.extraction.by_model.together import Shown
from nacre.extraction.due import NOT_YET, is_over
from nacre.extraction.explicit.find import is_refused
from nacre.extraction.extractor import extract
from nacre.extraction.order import each_of, last_of_owner, latest_first, placed
from nacre.extraction.reading.chronology import in_time
from nacre.extraction.reading.speech import utterances
from nacre.extraction.waiting import WaitingCandidates
from nacre.extraction.with_model import ModelExtractor
from nacre.home.change import Change, Run, part_of
from nacre.home.home import Home
from nacre.home.redaction import redacted
from nacre.indexing.vectors import embed_memories
from nacre.memories.model_decision import Decisions, count_by_action, decisions, may_ask
from nacre.memories.requests import Asking
from nacre.memories.usage import learned_together
from nacre.platform.days import day_of
from nacre.platform.ids import to_millisecond
from nacre.spending.permission import is_set
from nacre.text.passages import count
from nacre.tombstones.tombstones import Gate
from nacre.transcripts.trust import shared
from nacre.values.candidate import Candidate
from nacre.values.memory import BESIDE_PASTE, NODDED, Kind, Memory, Source
from nacre.values.reports import ModelExtraction, OnProgress, Progress
from nacre.values.session import Flag, Speaker, StoredSession, StoredTurn, Turn, Unlearned

BATCH_MEMORIES = 500

BULK_FROM = 100
"""Of so many new memories and more at once, no model is asked what they are to those that are known."""

_ALIKE = 12
_IN_BULK = f"{BULK_FROM} new memories and more at once: no model was asked about them"
_MOSTLY = 0.5
_QUOTED = 120
_NEARLY_ALL = 0.9

_OF_THE_OWNER = frozenset({Kind.PREFERENCE, Kind.RELATIONSHIP})
"""The kinds that hold everywhere when they were said in no project: how the owner works, and with whom. Any other
statement is about something that has a project, though nobody knows which."""

WAITS = timedelta(days=30)
"""So long a session waits for a writer that cannot be asked."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """The ids of new memories, how many of them were known already, how many ``candidates`` wait since, and how many
    known ones were ``changed`` or ``ended`` by what sessions show, or are ``doubted`` since.

    ``decided`` counts what a language model decided (``ADD``, ``UPDATE``, ``SKIP``, ``SUPERSEDE``, ``AMEND``);
    ``notes`` say why it did not decide on others. ``by_model`` is what one did for extraction.
    """

    memories: tuple[str, ...]
    duplicates: int
    decided: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    by_model: ModelExtraction | None = None
    candidates: int = 0
    changed: int = 0
    ended: int = 0
    doubted: int = 0


def learn(
    home: Home, notify: OnProgress, *, only: int | None = None,
    is_over: bool = False, run: Run | None = None, older: bool = False,
) -> Lessons:  # fmt: skip
    """Extract memories from every session with turns that extraction has not seen, or from ``only`` the one of a row.

    ``is_over`` says that nobody will answer what was said last in it. A language model does it where one is set and may
    work in the background; what is for it is left alone while another process has it read. What it found in a session
    is stored before the next one is asked about. ``older`` sessions that no writer has read follow, as far as it may
    take more. What is written belongs to the ``run``, or is a change of its own.
    """
    if not is_set(home):
        return _learn(home, notify, only, _Learner(home, ModelExtractor(home), run, all_over=is_over))
    home = begun(home)
    with home.writer_lock.if_free() as is_ours:
        learner = _Learner(home, ModelExtractor(home, is_elsewhere=not is_ours), run, all_over=is_over)
        return _learn(home, notify, only, learner, older=older)


def _learn(
    home: Home, notify: OnProgress, only: int | None, learner: _Learner, *, older: bool = False
) -> Lessons:  # fmt: skip
    waiting = [one for one in home.sessions.to_extract() if only in (None, one.row)]
    try:
        _read(home, notify, learner, latest_first(waiting) if is_set(home) else [waiting])
        if older:  # those that were read just now, too
            _read(home, notify, learner, latest_first(learner.before_writer()))
        doubted = learner.extractor.look_later(learner.days)
    finally:
        learner.extractor.close()
    return Lessons(
        tuple(learner.stored), learner.duplicates, dict(learner.decided), tuple(learner.notes),
        learner.extractor.report(), learner.waiting.count, learner.amendments.changed, learner.amendments.ended,
        learner.amendments.doubted + doubted,
    )  # fmt: skip


def _read(home: Home, notify: OnProgress, learner: _Learner, in_turn: Sequence[Sequence[Unlearned]]) -> None:
    """Learn from some sessions, one after another; of older ones, from as many as the writer may take."""
    total = sum(map(len, in_turn))
    for done, (one, next_ones) in enumerate(each_of(in_turn)):
        if one.is_older and learner.extractor.is_at_rest:
            break

        def tell(note: str, done: int = done) -> None:
            notify(Progress("learning", done, total, note))

        learner.read_ahead([one, *next_ones], tell)
        was_asked = learner.session(one, tell)
        if was_asked or len(learner.pending) >= BATCH_MEMORIES:
            learner.flush()
        if was_asked:
            embed_memories(home, begins=True)  # the next session is shown them as known
        tell(learner.note(), done + 1)
    learner.flush()


class _Learner:
    def __init__(self, home: Home, extractor: ModelExtractor, run: Run | None, *, all_over: bool = False) -> None:
        self.home = home
        self.run = run
        self.extractor = extractor
        self.all_over = all_over
        self.waiting = WaitingCandidates(home)
        self.gate = Gate(home)
        self.pending: list[Memory] = []
        self.stated: defaultdict[str, list[Memory]] = defaultdict(list)
        self.echoes: set[str] = set()
        self.seen: list[tuple[Unlearned, int, int | None, datetime | None]] = []
        self.amendments = Amendments()
        self.days: set[date] = set()
        self.stored: list[str] = []
        self.duplicates = 0
        self.sessions = 0
        self.decided: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def read_ahead(self, waiting: Sequence[Unlearned], tell: Callable[[str], None]) -> None:
        """Have the writer read the next session together with others of its project that wait, where all are small."""
        project, sessions = None, list[Shown]()
        for at, one in enumerate(waiting):
            stored = self.stored_session(one)
            if stored is None or not self.is_asked_about(one, stored) or self.extractor.is_read(stored.session):
                if not at:
                    return
            elif not at or stored.project == project:
                project = stored.project
                turns = self.home.sessions.turns_of(one.row)
                place = placed(one, turns)
                said = [item.turn for item in turns[: place.end]]
                sessions.append(Shown(stored.session, _to_be_shown(said, place.first), place.first))
        self.extractor.read_ahead(project, sessions, tell)

    def stored_session(self, one: Unlearned) -> StoredSession | None:
        """A session that waits; ``None`` where it was forgotten since it was listed."""
        try:
            return self.home.sessions.get(one.row)
        except KeyError:
            return None

    def before_writer(self) -> list[Unlearned]:
        """Sessions that no writer was shown to their end, and that none is shown by itself."""
        listed = ((one, self.stored_session(one)) for one in self.home.sessions.not_shown())
        return [one for one, stored in listed if stored and (one.unwritten is None or self.is_rest(one, stored))]

    def is_rest(self, one: Unlearned, stored: StoredSession) -> bool:
        """Whether what is left of a session is shown only where the owner asks for older ones."""
        is_left = one.unwritten is not None and one.begin >= one.end
        return is_left and self.extractor.serves(stored, older=True) and not self.extractor.serves(stored)

    def is_asked_about(self, one: Unlearned, stored: StoredSession) -> bool:
        """Whether the writer is to be shown a session now."""
        is_its = self.extractor.serves(stored, older=one.is_older) and self.is_over(one, stored)
        return is_its and (self.extractor.is_read(stored.session) or not self.extractor.rests)

    def session(self, one: Unlearned, tell: Callable[[str], None]) -> bool:
        """Find what is new in a session; returns whether a model was asked."""
        stored = self.stored_session(one)
        if stored is None:
            return False
        if not one.is_older and self.is_rest(one, stored):
            return False
        is_for_writer = self.extractor.serves(stored, older=one.is_older)
        is_asked = self.is_asked_about(one, stored)
        if is_for_writer and self.extractor.is_elsewhere and self.is_over(one, stored):
            self.extractor.leave()
            return False
        waits = not one.is_older and (stored.ended is None or self.home.now() - stored.ended < WAITS)
        if one.begin >= one.end and not is_asked and (one.is_older or (is_for_writer and waits)):
            return False
        turns = self.home.sessions.turns_of(one.row)
        said, at = [item.turn for item in turns], placed(one, turns)
        until = at.end if self.is_over(one, stored) else max(at.begin, last_of_owner(said) + 1)
        found = self.write(stored, said[:until], at.first, tell) if is_asked else None
        is_left = is_for_writer and (not is_asked or self.is_unanswered(found))
        self.days |= {day_of(stored.ended)} if found and stored.ended and not one.is_older else set()
        if found and not is_left:
            self.waiting.was_read(stored.session.id)
            written = [*found.memories, *(one.statement for one in found.overtaken)]
            plain = passed_over(extract(stored.session, said), written)
            self.note_new([*plain, *found.candidates], stored, turns, at.first, until)
            self.amendments.note(found.overtaken, found.model)
            self.amendments.doubt(found.doubted)
        elif at.begin < until:
            self.note_new(extract(stored.session, said), stored, turns, at.begin, until)
        seq = turns[until].seq if until < len(turns) else one.end
        shown_later = [item.seq for item in turns if found and item.turn.id in found.left]
        left = one.first if is_left else min(shown_later, default=None)
        is_shown = is_asked and (waits or left is None)  # else it is one of the older ones that no writer has read
        is_kept = waits or (one.is_older and left)
        rested = NOT_YET if is_left and not is_asked and self.is_over(one, stored) else None
        self.seen.append((one, seq, left if is_kept else None, self.home.now() if is_shown else rested))
        return found is not None

    def note_new(
        self, candidates: Sequence[Candidate], stored: StoredSession, turns: Sequence[StoredTurn], begin: int,
        until: int,
    ) -> None:  # fmt: skip
        """Take what turns from ``begin`` on bear out, and none of those from ``until`` on do, and note what they take
        back.
        """
        said = [item.turn for item in turns]
        waiting = {turn.id for turn in said[until:]}
        settled = [one for one in candidates if not waiting & set(one.turns)]
        made = [(one, self.to_memory(one, stored, turns)) for one in settled]
        fresh = {turn.id for turn in said[begin:]}
        self.stated[stored.session.id] += [memory for one, memory in made if not one.held]
        for one, memory in made:
            if fresh & set(memory.source.turns):
                self.take(one, memory)
        if begin:
            self.withdraw(stored, said, begin)

    def write(
        self, stored: StoredSession, turns: Sequence[Turn], begin: int, tell: Callable[[str], None]
    ) -> Extraction | None:  # fmt: skip
        """Have the writer read a session that is over; ``None`` where it is not asked."""
        shown = _to_be_shown(turns, begin)
        return self.extractor.extract(stored.session, stored.project, shown, begin=begin, notify=tell)

    def is_unanswered(self, found: Extraction | None) -> bool:
        """Whether a session is left for another day: its writer is out of reach, or has used up what it may. A session
        of several parts is not: what was paid for is taken, and the other parts are left.
        """
        is_nothing = found is None or found.by_rules == found.parts or (found.is_uncompared and found.parts == 1)
        return self.extractor.is_spent and is_nothing

    def take(self, candidate: Candidate, memory: Memory) -> None:
        """Have a memory placed, or a candidate wait; what waited and is said again is placed, too."""
        if candidate.held:
            self.pending += self.waiting.hold(candidate, memory)
        else:
            self.pending += [*self.waiting.say(memory), memory]

    def note(self) -> str:
        """What was found so far, and what a model has read and written for it."""
        told = f"{len(self.stored) + len(self.pending)} memories"
        report = self.extractor.report()
        if report and report.calls:
            read = report.tokens.input + report.tokens.cached + report.tokens.written
            told += f", {report.calls} calls, {read:,} + {report.tokens.output:,} tokens"
        return told

    def is_over(self, one: Unlearned, stored: StoredSession) -> bool:
        """Whether nobody will answer what was said last in a session."""
        return self.all_over or is_over(self.home, one, stored)

    def withdraw(self, stored: StoredSession, said: Sequence[Turn], begin: int) -> None:
        """Note memories of a session that the message after them takes back; what another session bears out stays."""
        spoken = utterances(said)
        answered = {said[one.index].id: at for at, one in enumerate(spoken[:-1]) if spoken[at + 1].index >= begin}
        for memory_id in {known.id for known in self.home.memories.known_of(stored.session.id)}:
            memory = self.home.memories.find(memory_id)
            if memory is None or not memory.is_active or memory.confirmed:
                continue
            if not memory.is_learned or memory.source.session != stored.session.id:
                continue
            places = [answered[turn] for turn in memory.source.turns if turn in answered]
            if places and is_refused(spoken, places[-1]):
                taking = spoken[places[-1] + 1].text[:_QUOTED]
                self.amendments.end(memory_id, f"taken back in its session: {taking}")

    def to_memory(self, candidate: Candidate, stored: StoredSession, turns: Sequence[StoredTurn]) -> Memory:
        times = [item.turn.time for item in turns if item.turn.time and item.turn.id in candidate.turns]
        said = to_millisecond(max(times, default=stored.ended or self.home.now()))
        memory = Memory(
            id=self.home.ids(), kind=candidate.kind, subject=candidate.subject, content=candidate.content,
            created=said, updated=said, importance=candidate.importance, expiry=candidate.expiry,
            project=stored.project, inbox=stored.project is None and candidate.kind not in _OF_THE_OWNER,
            tags=candidate.tags, speaker=candidate.speaker, trust=candidate.trust,
            confidence=candidate.confidence, confidence_score=candidate.confidence_score,
            canonical_key=candidate.canonical_key, extra=_doubts(candidate),
            source=Source(stored.session.id, candidate.turns, stored.file),
        )  # fmt: skip
        if _is_echo(candidate, turns):
            self.echoes.add(memory.id)
        return redacted(self.home.redactor, memory)

    def is_known_evidence(self, memory: Memory) -> bool:
        """Whether this statement of its turns was learned already, also when the memory was edited or retired since."""
        session = memory.source.session or ""
        stated = [one for one in self.stated[session] if not self.gate.bars(one)]
        return memory.id in accounted_for(stated, self.home.memories.known_of(session))

    def is_told_by_nacre(self, memory: Memory) -> bool:
        """Whether an agent's words are mostly those of a memory, or the owner's nearly all, wherever that belongs."""
        enough = _MOSTLY if memory.speaker is Speaker.AGENT else _NEARLY_ALL
        anywhere = (memory, replace(memory, project=None)) if memory.project else (memory,)
        rows = {row for one in anywhere for row in self.home.comparisons.alike(one, limit=_ALIKE)}
        known = [one.content for one in self.home.memories.by_rows(sorted(rows)).values()]
        if memory.speaker is Speaker.AGENT:
            known += self.handed_over(memory)
        return any(shared(memory.content, other) >= enough for other in known)

    def handed_over(self, memory: Memory) -> list[str]:
        """What other sessions handed over in the project lately: an agent repeats it, and says nothing new by that."""
        found = self.home.handoffs.of_project(memory.project) if memory.project else []
        return [one.content for one in found if one.session != memory.source.session]

    def flush(self) -> None:
        """Place what was found, in the order in which it was said; how far extraction got comes last.

        What was placed before a crash is known by its evidence when its session is read again.
        """
        home = self.home
        decided = self.decide()
        with part_of(home, self.run, "ingest") as change, change.transaction():
            self.gate.refresh()  # what was forgotten since it was read is not learned
            self.pending = [memory for memory in self.pending if not self.gate.bars(memory)]
            touched: set[str] = set()
            before = len(self.stored)
            for memory in self.in_order():
                self.place(change, memory, touched, decided.of(memory))
                change.yield_locks(lambda: write_touched(change, touched))
            write_touched(change, touched)
            fresh = set(self.stored[before:])
            learned_together(home, [memory for memory in self.pending if memory.id in fresh])
            self.amendments.write(change)
            self.waiting.write()
            for one in self.seen:
                home.sessions.mark_learned(*one)
                change.yield_locks()
            change.explain(self.why())
        self.pending, self.seen, self.echoes = [], [], set()
        self.stated.clear()

    def why(self) -> str:
        """Where what was learned so far comes from."""
        self.sessions += len(self.seen)
        return f"learned from {count(self.sessions, 'session')}"

    def decide(self) -> Decisions:
        """What a language model decides about what is about to be placed: asked before any lock is taken.

        Of many at once it is asked about none (seed facts 1.3).
        """
        if len(self.pending) >= BULK_FROM:
            if may_ask(self.home, Asking()):
                self.notes |= {_IN_BULK: None}
            return Decisions()
        fresh = (memory for memory in self.in_order() if not (self.gate.bars(memory) or self.is_known(memory)))
        decided = decisions(self.home, fresh, Asking())
        self.decided.update(count_by_action(decided.made.values()))
        self.notes |= {decided.note: None} if decided.note else {}
        return decided

    def in_order(self) -> list[Memory]:
        """What waits, in the order in which it was said."""
        return sorted(self.pending, key=lambda one: one.created)

    def is_known(self, memory: Memory) -> bool:
        """Whether a memory was learned already, or nacre itself told it."""
        return self.is_known_evidence(memory) or (memory.id in self.echoes and self.is_told_by_nacre(memory))

    def place(self, change: Change, memory: Memory, touched: set[str], decision: Decision | None) -> None:
        self.gate.refresh()  # what was forgotten since it was read is not learned
        if self.gate.bars(memory):
            return
        if self.is_known(memory):
            self.duplicates += 1
            return
        outcome = place(
            change,
            memory,
            touched=touched,
            is_echo=memory.id in self.echoes and memory.speaker is Speaker.AGENT,
            decision=decision,
        )
        if outcome.action == "stored":
            self.stored.append(outcome.memory_id)
        else:
            self.duplicates += 1


def _doubts(candidate: Candidate) -> dict[str, bool]:
    """The front-matter keys that say why a candidate may not be in the owner's own words."""
    return {key: True for key, holds in ((NODDED, candidate.nodded), (BESIDE_PASTE, candidate.mixed)) if holds}


def _is_echo(candidate: Candidate, turns: Sequence[StoredTurn]) -> bool:
    """Whether a candidate may come from nacre: an agent's words, or the owner's after nacre gave context."""
    last = max((at for at, item in enumerate(turns) if item.turn.id in candidate.turns), default=-1)
    said = [item.turn for item in turns[: last + 1]]
    by_agent = any(turn.speaker is Speaker.AGENT and turn.id in candidate.turns for turn in said)
    return by_agent or any(turn.flags & Flag.INJECTED for turn in said)


def _to_be_shown(turns: Sequence[Turn], begin: int) -> Sequence[Turn]:
    """The turns of a session as a writer reads them: by their times, unless some were shown before."""
    return turns if begin else in_time(turns)
