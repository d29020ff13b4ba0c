"""Extraction by rules, pending candidates, changes to known memories, and the owner's consent."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from nacre.base.ids import to_ms
from nacre.base.text import (
    OWN,
    has_open_weights,
    is_called_local,
    is_unspaced,
    one_line,
    shorten,
    visible,
)
from nacre.base.text import words as text_words
from nacre.errors import (
    EditConflictError,
    EmbedderUnavailableError,
    InvalidSettingsError,
    ModelRefusedError,
)
from nacre.home import home, spending
from nacre.home.change import Change, Exclusions
from nacre.home.consent import embedder_of
from nacre.learn import checks, reading, sentences
from nacre.learn import explicit as learn_explicit
from nacre.llm import credentials
from nacre.memories import judge
from nacre.memories.placement import as_confirmation
from nacre.memories.statements import read
from nacre.settings import Settings, write_setting
from nacre.store import memories
from nacre.values import review
from nacre.values.codec import stamp
from nacre.values.memory import (
    Candidate,
    HeldCandidate,
    Kind,
    Link,
    Memory,
    Retirement,
    SessionFilter,
    Why,
)
from nacre.values.session import (
    Session,
    SessionKind,
    Speaker,
    StoredSession,
    StoredTurn,
    Task,
    Turn,
    Unlearned,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COMPARED_CHARACTERS = 2_000


def find_covered(stated: Sequence[Memory], learned: Sequence[memories.Known]) -> set[str]:
    """Return the ids of statements that the session's memories already contain.

    Each memory contains at most one statement, even if the owner has edited the memory.
    """
    pairs = sorted(
        (-_likeness(statement.content, memory.content), at, by)
        for at, statement in enumerate(stated)
        for by, memory in enumerate(learned)
        if statement.kind is memory.kind and memory.turns & set(statement.source.turns)
    )
    covered: dict[int, int] = {}
    for _, at, by in pairs:
        if at not in covered and by not in covered.values():
            covered[at] = by
    return {stated[at].id for at in covered}


def _likeness(text: str, other_text: str) -> float:
    first, second = (
        set(text_words(text[:_COMPARED_CHARACTERS])),
        set(text_words(other_text[:_COMPARED_CHARACTERS])),
    )
    return len(first & second) / max(1, len(first | second))


def find_missed(candidates: Sequence[Candidate], written: Sequence[Candidate]) -> list[Candidate]:
    """Return statements from turns in which the rules found more statements than the writer."""
    plain = [candidate for candidate in candidates if not candidate.held]
    by_rules = Counter(turn for candidate in plain for turn in candidate.turns)
    by_writer = Counter(turn for candidate in written for turn in candidate.turns)
    return [
        candidate
        for candidate in plain
        if any(by_writer[turn] < by_rules[turn] for turn in candidate.turns)
    ]


# -- Changes to known memories: retirement, amendment and doubt ------------------------------------

_WHY_CHARACTERS = 180
"""Maximum number of characters in a doubt's text."""


@dataclass
class Amendments:
    """Changes to known memories that are not written yet.

    ``ended``: number of ended memories. ``doubted``: number of doubted memories.
    """

    ended: int = 0
    doubted: int = 0
    _ends: dict[str, tuple[str, checks.Overtaken | None]] = field(default_factory=dict)
    _doubts: list[checks.Overtaken] = field(default_factory=list)

    def end(self, memory_id: str, reason: str) -> None:
        """Plan to retire a memory that the owner revoked."""
        self._ends[memory_id] = reason, None

    def note(self, overtaken: Sequence[checks.Overtaken]) -> None:
        """Plan to end memories that a model reported as outdated."""
        self._ends |= {
            change.memory.id: (f"a session shows it: {change.quote}", change)
            for change in overtaken
        }

    def doubt(self, doubted: Sequence[checks.Overtaken]) -> None:
        """Queue memories for review that a model calls outdated without sufficient evidence."""
        self._doubts += doubted

    def write(self, change: Change) -> None:
        """Write the pending changes."""
        for memory_id, (reason, overtaken) in self._ends.items():
            self.ended += _end(change, memory_id, reason, overtaken)
            change.yield_locks()
        for doubted in self._doubts:
            is_rule = (
                doubted.memory.kind is Kind.PREFERENCE and doubted.memory.speaker is Speaker.OWNER
            )
            why = (
                f"a later session says: {doubted.quote}"
                if doubted.is_owners or not is_rule
                else review.said_by_agent(
                    doubted.quote, doubted.shown.session or "", doubted.shown.at
                )
            )
            self.doubted += doubt(
                change.home, doubted.memory, why, filter(None, [doubted.shown.session])
            )
        self._ends.clear()
        self._doubts.clear()


def _end(change: Change, memory_id: str, reason: str, overtaken: checks.Overtaken | None) -> bool:
    """End an outdated memory. Return False if the memory has changed or cannot be changed.

    If a new memory replaces the outdated memory, link both memories. Otherwise, retire the outdated
    memory, and also the memories that it had superseded. If the owner revoked the memory, the
    superseded memories become valid again.
    """
    home = change.home
    memory = home.memories.find(memory_id)
    if memory is None or not memory.is_active:
        return False
    if overtaken and memory.content != overtaken.memory.content:
        return False
    clean = home.redactor.clean(reason)
    replacement = _replacement_of(home, memory, overtaken) if overtaken else None
    if replacement:
        link = Link(judge.SUPERSEDES, memory.id, clean)
        changed = [
            judge.mark_ended(memory, replacement),
            replace(replacement, links=(*replacement.links, link)),
        ]
        entries = []
    else:
        ending = [memory, *_superseded_by(home, memory)] if overtaken else [memory]
        retired = [replace(item, retired=Retirement(home.now(), clean)) for item in ending]
        changed = [*retired, *judge.release(home, ending)]
        entries = [change.entry("retire", memory=item.id, reason=clean) for item in ending]
    try:
        change.put(changed, entries)
    except EditConflictError as error:
        home.problems.append(error.message)
        return False
    return True


def _replacement_of(home: home.Home, memory: Memory, overtaken: checks.Overtaken) -> Memory | None:
    """Return the new memory of a session that replaces an outdated memory, if any.

    The new memory must be as trustworthy as the outdated memory.
    """
    turns = set(overtaken.shown.turns)
    known = home.memories.known_of(overtaken.shown.session or "")
    found = (home.memories.find(item.id) for item in known if item.turns & turns)
    shares = {
        item.id: _likeness(item.content, memory.content)
        for item in found
        if item
        and item.is_active
        and item.id != memory.id
        and not (judge.outranks(memory, item) or judge.vouches(memory, item))
    }
    best = max(shares, key=lambda item_id: shares[item_id], default="")
    return home.memories.find(best) if shares.get(best) else None


def _superseded_by(home: home.Home, memory: Memory) -> list[Memory]:
    """Return the memories that a memory superseded, directly or indirectly."""
    superseded: dict[str, Memory] = {}
    queue = [memory]
    while queue:
        older = [
            older_memory
            for older_memory in home.memories.replaced_by(queue.pop().id)
            if not older_memory.retired and older_memory.id not in superseded
        ]
        superseded |= {item.id: item for item in older}
        queue += older
    return list(superseded.values())


def doubt(home: home.Home, seen: Memory, why: str, sessions: Iterable[str]) -> bool:
    """Mark a memory as doubtful, so that the owner reviews the memory. Return True if the doubt is new.

    A memory that has changed since a model saw it is not marked. Requires a transaction.
    """
    memory = home.memories.find(seen.id)
    if memory is None or not memory.is_active or memory.content != seen.content:
        return False
    reason = home.redactor.clean(shorten(one_line(visible(why)), _WHY_CHARACTERS))
    return home.reviews.doubt(memory.id, reason, home.now_ms(), sessions)


# -- Consent: sessions and memories that a writer may see ------------------------------------------


SINCE = "writer.since"

QUIET = timedelta(minutes=30)
"""Time after the last turn until a session counts as finished. Until then, the owner might object."""

_RECENT_PERIOD, _MAX_SESSIONS = timedelta(days=7), 1000


def is_covered(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Return True if a writer may see a session.

    The tool and project must not be excluded. Sessions with a local model require a writer on this machine.
    """
    is_local_only = is_of_local_model(settings, stored) and not _runs_here(settings, writer)
    return not is_local_only and _is_open(settings, stored)


def _is_open(settings: Settings, stored: StoredSession) -> bool:
    """Return True if a writer may read a session. The owner can exclude tools and projects."""
    if Exclusions(settings).leave_out(stored):
        return False
    if stored.session.tool in settings.texts("writer.exclude_tools"):
        return False
    return not any(
        fnmatch(stored.project or "", pattern)
        for pattern in settings.texts("writer.exclude_projects")
    )


def is_quiet(home: home.Home, stored: StoredSession) -> bool:
    """Return True if a session's last turn is too old to expect a reply."""
    return stored.ended is None or home.now() - stored.ended >= QUIET


def is_agreed(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Return True if a writer may see a session.

    The session must have ended after the writer's start time.
    """
    if is_unseen(settings):
        return False
    return _is_after(settings, stored) and is_covered(settings, stored, writer)


def _is_after(settings: Settings, stored: StoredSession) -> bool:
    since = settings.text(SINCE)
    return (
        not since
        or stored.ended is None
        or stored.ended >= datetime.fromisoformat(since).astimezone()
    )


def is_unseen(settings: Settings) -> bool:
    """Return True if the config file names a writer, but nacre has not recorded the writer's start time.

    This happens after the owner has edited the file. A writer set with environment variables needs
    no start time.
    """
    is_of_file = settings.values["models.background"].origin == str(settings.config)
    return is_of_file and spending.has_writer(settings) and not settings.text(SINCE)


def count_awaiting(home: home.Home) -> int:
    """Return the number of sessions that the writer will read.

    Old sessions that the owner must request do not count.
    """
    writer, count = spending.name_for(home, Task.EXTRACTION), 0
    for item in home.sessions.to_extract():
        with suppress(KeyError):  # the session was forgotten after listing
            count += item.unwritten is not None and is_agreed(
                home.settings, home.sessions.get(item.row), writer
            )
    return count


def may_be_shown(home: home.Home, memory: Memory, writer: str) -> bool:
    """Return True if a writer may see a memory. The memory's project and sessions must not be excluded."""
    patterns, exclusions = home.settings.texts("writer.exclude_projects"), Exclusions(home.settings)
    if any(fnmatch(memory.project or "", pattern) for pattern in patterns) or exclusions.name(
        memory.project or ""
    ):
        return False
    session_ids = {
        session_id
        for session_id in (memory.source.session, *(item.session for item in memory.confirmed))
        if session_id
    }
    excluded = {*home.settings.texts("writer.exclude_tools"), *exclusions.tools}
    if any(session_id.partition(":")[0] in excluded for session_id in session_ids):
        return False
    sessions = [session for session_id in session_ids for session in home.sessions.find(session_id)]
    return all(is_covered(home.settings, session, writer) for session in sessions)


def list_local_models(home: home.Home, writer: str) -> list[str]:
    """Return the local models that recent sessions used. Only a local writer may read these sessions."""
    if _runs_here(home.settings, writer):
        return []
    recent = SessionFilter(since=home.now() - _RECENT_PERIOD, kind=SessionKind.MAIN)
    latest = home.sessions.newest(recent, limit=_MAX_SESSIONS)
    open_sessions = [
        stored
        for stored in latest
        if _is_open(home.settings, stored) and _is_after(home.settings, stored)
    ]
    return [
        (stored.session.model or "").removeprefix(OWN)
        for stored in open_sessions
        if is_of_local_model(home.settings, stored)
    ]


def is_of_local_model(settings: Settings, stored: StoredSession) -> bool:
    """Return True if a session's model might run on the owner's machine.

    This applies to models with open weights, to providers not known to be remote, and to model names that suggest a
    local model and have no provider.
    """
    model = (stored.session.model or "").lower()
    if has_open_weights(model) and not model.startswith(OWN):
        return True
    for sign in (":", "/"):
        provider, _, rest = model.removeprefix(OWN).partition(sign)
        with suppress(ModelRefusedError):
            if rest:
                return credentials.is_on_this_machine(credentials.provider_of(settings, provider))
    return is_called_local(model)


def _runs_here(settings: Settings, writer: str) -> bool:
    try:
        return credentials.is_on_this_machine(
            credentials.provider_of(settings, writer.partition(":")[0])
        )
    except ModelRefusedError:
        return False


# -- Start of a writer's access to sessions --------------------------------------------------------


def start_time(now: datetime) -> str:
    """Return the start time for a new writer, early enough to include sessions in progress."""
    return stamp(now - QUIET)


def start_setting(before: Settings, after: Settings, now: datetime) -> dict[str, str]:
    """Return the new value of ``writer.since`` if new settings add a writer.

    The writer does not read sessions that ended before this time.
    """
    is_new = spending.has_writer(after) and not spending.has_writer(before)
    return {SINCE: start_time(now)} if is_new and not after.text(SINCE) else {}


def since_of(home: home.Home) -> str:
    """Return the writer's start time. Default to the earliest end time among pending sessions, or to now."""
    ends = [start_time(home.now())]
    for item in home.sessions.to_extract():
        with suppress(KeyError):  # the session was forgotten after listing
            ended = home.sessions.get(item.row).ended if item.unwritten is not None else None
            ends += [stamp(ended)] if ended else []
    return home.settings.text(SINCE) or min(ends)


def record_start(home: home.Home) -> home.Home:
    """Record a start time if the config file names a writer but no start time. Return the updated home."""
    if not is_unseen(home.settings):
        return home
    since = since_of(home)
    with suppress(OSError, InvalidSettingsError):  # retried on the next call
        write_setting(home.settings.config, SINCE, since)
    return replace(home, settings=home.settings.having(SINCE, since))


# -- Extraction by rules ---------------------------------------------------------------------------
# Only explicit statements become memories immediately (:mod:`nacre.learn.explicit`). Statements about the current task,
# definite claims and choices are candidates until a writer, a repetition by the owner, or a review confirms them.


MAX_CANDIDATES = 10
CHOSEN = "you chose it"
"""Reason why an answer in the agent's words stays a candidate, even if repeated."""

SHOWN = "it might be pasted text"
"""Reason why text that might be pasted stays a candidate, even if repeated."""

NODDED = "it is in the words of an agent that read outside text"
"""Reason why a statement in the agent's words stays a candidate: the owner only confirmed it."""

_NOTES = frozenset({"markdown", "text"})
"""Tools whose files can be the owner's notes. In notes, no text counts as pasted."""

_MAX_SCORE = 2.0
"""Scores are divided by this number. The result is at most 1."""


def extract(session: Session, turns: Sequence[Turn], *, begin: int = 0) -> list[Candidate]:
    """Return the candidates that a session contains from the turn ``begin`` on, in order.

    Candidates without ``held`` become memories. The result depends only on the turns.
    """
    if session.kind is not SessionKind.MAIN:
        return []
    turns = [reading.shorten_for_regex(turn) for turn in turns]
    spoken = sentences.utterances(turns)
    is_note = session.tool in _NOTES and all(turn.speaker is Speaker.OWNER for turn in turns)
    statements = reading.drop_repetitions(
        list(learn_explicit.explicit(turns, spoken, is_note=is_note))
    )
    sure = reading.limit_strong(
        [statement for statement in statements if statement.score >= learn_explicit.SURE]
    )
    likely = [statement for statement in statements if statement.score < learn_explicit.SURE]
    chosen = [
        answer
        for answer in learn_explicit.iter_answers(turns, spoken)
        if not any(map(answer.repeats, statements))
    ]
    others = reading.drop_repetitions([*likely, *chosen])
    likeliest = sorted(others, key=lambda finding: -finding.score)[:MAX_CANDIDATES]
    findings = sorted([*sure, *likeliest], key=lambda finding: finding.index)
    candidates = [
        _candidate(finding, turns, is_sure=finding in sure, is_chosen=finding in chosen)
        for finding in findings
        if max(finding.evidence) >= begin
    ]
    return reading.raise_meeting_todos(session.tool, candidates)


def _candidate(
    finding: reading.Finding, turns: Sequence[Turn], *, is_sure: bool, is_chosen: bool
) -> Candidate:
    return Candidate(
        kind=finding.kind,
        subject=finding.subject,
        content=finding.content,
        turns=tuple(turns[at].id for at in finding.evidence),
        importance=finding.importance,
        expiry=finding.expiry,
        held=None if is_sure else Why.FOUND,
        detail=CHOSEN
        if is_chosen
        else SHOWN
        if finding.shown
        else NODDED
        if finding.nodded
        else "",
        mixed=finding.mixed,
        score=1.0 if is_sure else round(min(1.0, finding.score / _MAX_SCORE), 2),
    )


# -- Order of pending sessions ---------------------------------------------------------------------


BLOCK = 24
"""Number of sessions per block."""


def latest_first(waiting: Sequence[Unlearned]) -> list[Sequence[Unlearned]]:
    """Split sessions into blocks, and put the latest block first.

    The budget might not suffice for all blocks. Within a block, sessions stay in chronological
    order, so that later sessions can change earlier memories.
    """
    return [waiting[max(0, end - BLOCK) : end] for end in range(len(waiting), 0, -BLOCK)]


def each_of(
    blocks: Sequence[Sequence[Unlearned]],
) -> Iterator[tuple[Unlearned, Sequence[Unlearned]]]:
    """Return each session with the sessions that follow it in its block."""
    return ((session, block[at + 1 :]) for block in blocks for at, session in enumerate(block))


def as_positions(unlearned: Unlearned, turns: Sequence[StoredTurn]) -> Unlearned:
    """Convert turn numbers to positions in a list of turns."""
    numbers = [item.seq for item in turns]
    begin, end = bisect_left(numbers, unlearned.begin), bisect_left(numbers, unlearned.end)
    return unlearned._replace(
        begin=begin,
        end=end,
        unwritten=None
        if unlearned.unwritten is None
        else bisect_left(numbers, unlearned.unwritten),
    )


def last_of_owner(turns: Sequence[Turn]) -> int:
    """Return the index of the owner's last turn, or -1."""
    return max(
        (
            at
            for at, turn in enumerate(turns)
            if turn.speaker is Speaker.OWNER and turn.text.strip()
        ),
        default=-1,
    )


# -- Sessions worth a model call -------------------------------------------------------------------


_SUBSTANCE_WORDS = 6
"""A session is worth a model call if the owner typed this many words in a message."""

_WORDS_PER_CHARACTER = 0.625
"""Number of words that count for each character of text without spaces."""


def is_worth_asking(session: Session, turns: Sequence[Turn], *, begin: int = 0) -> bool:
    """Return True if a session is worth a model call, because the owner wrote something important.

    An important message has at least six typed words, contains a statement that the rules find, or
    accepts a plan. Messages before ``begin`` do not count.
    """
    if session.kind is not SessionKind.MAIN:
        return False
    if any(
        words_of(utterance) >= _SUBSTANCE_WORDS
        for utterance in sentences.utterances(turns)
        if utterance.index >= begin
    ):
        return True
    if any(sentences.is_accepted_plan(turns, at) for at in range(begin, len(turns))):
        return True
    return bool(extract(session, turns, begin=begin))


def words_of(utterance: sentences.Utterance) -> float:
    """Return the number of words that the owner typed in a message."""
    return sum(_count_words(statement.text) for statement in utterance.statements)


def _count_words(text: str) -> float:
    if is_unspaced(text):
        return _WORDS_PER_CHARACTER * sum(character.isalnum() for character in text)
    return len(text.split())


# -- Pending candidates, which become memories if the owner repeats them in a different session ----


KEPT = timedelta(days=90)
"""Maximum age of a pending candidate."""

_MIN_SHARED_WORDS = 0.6
"""A candidate is compared with a statement if it contains this share of the statement's words."""

MIN_REPEATED_COSINE = 0.8
"""Minimum cosine of two requests with the same meaning, for the bundled model.

Among 303 sentences of real sessions, all pairs with a higher cosine had the same meaning.
"""


class WaitingCandidates:
    """The pending candidates of a home, including changes that are not yet stored."""

    def __init__(self, home: home.Home) -> None:
        self._home = home
        self._known: dict[str, HeldCandidate] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._new: list[HeldCandidate] = []
        self._risen: set[str] = set()
        self._read: list[str] = []
        self.count = 0
        """Number of candidates added so far."""

        for candidate in home.candidates.waiting():
            if candidate.why is Why.FOUND and not candidate.detail:
                self._known[candidate.memory.id] = candidate

    def hold(self, candidate: Candidate, memory: Memory) -> list[Memory]:
        """Add a candidate.

        If other sessions found the same memory, return the earliest version, confirmed by the others.
        """
        may_repeat = candidate.held is Why.FOUND and not candidate.detail
        risen = self._take_repeated(memory) if may_repeat else []
        if risen:
            shown = [as_confirmation(other) for other in (*risen[1:], memory)]
            return [replace(risen[0], confirmed=(*risen[0].confirmed, *shown))]
        why = candidate.held or Why.FOUND
        pending = HeldCandidate(
            memory, why, candidate.detail or None, candidate.score, self._home.now()
        )
        self._new.append(pending)
        if may_repeat:
            self._known[memory.id] = pending
        return []

    def say(self, memory: Memory) -> list[Memory]:
        """Remove the pending candidates that have the same meaning as a memory of the owner.

        Return the removed candidates that have the same words.
        """
        repeated = self._take_repeated(memory)
        return [item.other for item in judge.compare(memory, repeated) if item.repeats]

    def _take_repeated(self, memory: Memory) -> list[Memory]:
        if memory.speaker is not Speaker.OWNER:
            return []
        others = [
            candidate.memory
            for candidate in self._known.values()
            if candidate.memory.shares_place(memory) and _is_independent(memory, candidate.memory)
        ]
        terms = set(text_words(memory.content))
        similar = [
            other
            for other in others
            if len(terms & set(text_words(other.content))) >= _MIN_SHARED_WORDS * len(terms)
        ]
        repeated = [item.other for item in judge.compare(memory, similar) if item.repeats]
        repeated = repeated or self._same_in_meaning(memory, others)
        for candidate in repeated:
            self._known.pop(candidate.id, None)
            self._risen.add(candidate.id)
        self._new = [item for item in self._new if item.memory.id not in self._risen]
        return sorted(repeated, key=lambda candidate: candidate.created)

    def _same_in_meaning(self, memory: Memory, others: Sequence[Memory]) -> list[Memory]:
        """Return the memories with a similar vector, and with the same names, numbers and negation."""
        parts = _parts(memory.content)
        others = [other for other in others if _parts(other.content) == parts]
        if self._home.settings.text("embedding.model") == "none" or is_unspaced(memory.content):
            return []
        new = [item for item in (memory, *others) if item.id not in self._vectors] if others else []
        try:
            vectors = embedder_of(self._home, home.BUNDLED).embed([item.content for item in new])
        except EmbedderUnavailableError:
            return []
        self._vectors |= {item.id: vector for item, vector in zip(new, vectors, strict=True)}
        return [
            other
            for other in others
            if float(self._vectors[memory.id] @ self._vectors[other.id]) >= MIN_REPEATED_COSINE
        ]

    def was_read(self, session: str) -> None:
        """Record that a writer has read a session. Its candidates from rules will be deleted."""
        self._read.append(session)

    def write(self) -> None:
        """Write the new candidates, and delete the candidates that became memories. Requires a transaction."""
        store = self._home.candidates
        for session in self._read:
            store.settle_session(session)
        is_known = self._home.memories.same_content
        self.count += store.add(
            candidate
            for candidate in self._new
            if not is_known(candidate.memory.content, candidate.memory.project)
        )
        store.delete(self._risen)
        store.expire(to_ms(self._home.now() - KEPT) or 0)
        store.blank(self._home.now_ms())
        self._new, self._read, self._risen = [], [], set()


def _parts(text: str) -> tuple[object, ...]:
    """Return the names, numbers, options and negation of a text."""
    statement = read(text)
    slots = sorted((slot.sort, slot.value) for slot in statement.slots)
    return sorted(statement.names), slots, sorted(statement.signs), statement.negations > 0


def _is_independent(memory: Memory, other: Memory) -> bool:
    """Return True if two memories come from different sessions and different messages."""
    if memory.source.session == other.source.session or memory.created == other.created:
        return False
    return not set(memory.source.turns) & set(other.source.turns)
