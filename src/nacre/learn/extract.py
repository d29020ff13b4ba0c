"""Which statements of a session its memories account for, and which a writer passed over."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nacre.base.ids import to_ms
from nacre.base.request import Request
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
from nacre.errors import EditConflict, ModelRefused, SettingsInvalid
from nacre.home.change import Change, Exclusions
from nacre.home.home import Home
from nacre.home.spending import has_writer, name_for
from nacre.learn.checks import Overtaken
from nacre.learn.explicit import SURE, answered, explicit
from nacre.learn.reading import AGENT_CAP, Finding, bounded, once, tempered, weighed
from nacre.learn.sentences import Utterance, is_accepted_plan, utterances
from nacre.llm.credentials import is_on_this_machine, provider_of
from nacre.memories.judge import compare, released
from nacre.memories.placement import amend, amended
from nacre.settings import Settings, write_setting
from nacre.store.memories import Known
from nacre.values.codec import stamp
from nacre.values.memory import (
    Candidate,
    HeldCandidate,
    Kind,
    Memory,
    Retirement,
    SessionFilter,
    Why,
)
from nacre.values.review import said_by_agent
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

_COMPARED = 2_000


def accounted_for(stated: Sequence[Memory], known: Sequence[Known]) -> set[str]:
    """The ids of those statements of a session that its memories account for.

    A memory accounts for one statement of its kind in its turns: the likest, so that the text of the memory need not
    be what was said. What is left over was not learned yet.
    """
    pairs = sorted(
        (-_likeness(one.content, other.content), at, by)
        for at, one in enumerate(stated)
        for by, other in enumerate(known)
        if one.kind is other.kind and other.turns & set(one.source.turns)
    )
    found: dict[int, int] = {}
    for _, at, by in pairs:
        if at not in found and by not in found.values():
            found[at] = by
    return {stated[at].id for at in found}


def _likeness(text: str, other: str) -> float:
    """The share of the words of two texts that both have, 0 to 1."""
    some, others = set(text_words(text[:_COMPARED])), set(text_words(other[:_COMPARED]))
    return len(some & others) / max(1, len(some | others))


def passed_over(found: Sequence[Candidate], written: Sequence[Candidate]) -> list[Candidate]:
    """What the owner said plainly in turns from which a writer wrote less than was said plainly there."""
    plain = [one for one in found if not one.held]
    said = Counter(turn for one in plain for turn in one.turns)
    told = Counter(turn for one in written for turn in one.turns)
    return [one for one in plain if any(told[turn] < said[turn] for turn in one.turns)]


# ----------------------------------------------------------------------------
# What sessions change of memories that are known: they are over, say something else from then on, or
# are doubted.


_WHY_CHARACTERS = 180
"""Of what speaks against a memory."""


@dataclass
class Amendments:
    """What is noted of known memories until it is written, and how many were ``changed``, ``ended`` and ``doubted`` so
    far.
    """

    changed: int = 0
    ended: int = 0
    doubted: int = 0
    _ends: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    _changes: list[tuple[Overtaken, str]] = field(default_factory=list)
    _doubts: list[Overtaken] = field(default_factory=list)

    def end(self, memory_id: str, reason: str) -> None:
        """A memory is to end."""
        self._ends[memory_id] = reason, None

    def note(self, overtaken: Sequence[Overtaken], by: str) -> None:
        """What a model found overtaken is to end, or to say what it says now."""
        for one in overtaken:
            if one.now:
                self._changes.append((one, by))
            else:
                self._ends[one.memory.id] = (
                    f"over, as a session shows: {one.quote}",
                    one.memory.content,
                )

    def doubt(self, doubted: Sequence[Overtaken]) -> None:
        """What a model took for overtaken, and its evidence does not bear out, is to wait in review."""
        self._doubts += doubted

    def write(self, change: Change) -> None:
        """Write what was noted."""
        for memory_id, (reason, words) in self._ends.items():
            self.ended += _end(change, memory_id, reason, words)
            change.yield_locks()
        for one, model in self._changes:
            self.changed += _amend(change, one, model)
            change.yield_locks()
        for one in self._doubts:
            is_rule = one.memory.kind is Kind.PREFERENCE and one.memory.speaker is Speaker.OWNER
            why = (
                f"a later session says: {one.quote}"
                if one.is_owners or not is_rule
                else said_by_agent(one.quote, one.shown.session or "", one.shown.at)
            )
            self.doubted += doubt(change.home, one.memory, why, filter(None, [one.shown.session]))
        for noted in (self._ends, self._changes, self._doubts):
            noted.clear()


def _end(change: Change, memory_id: str, reason: str, words: str | None) -> bool:
    """Move a memory to ``retired/``, unless it ended before, says other ``words`` than a model saw, or somebody writes
    into its file just now. What is over ends with all that it superseded; what was taken back lets that hold again.
    """
    home = change.home
    memory = home.memories.find(memory_id)
    if memory is None or not memory.is_active or words not in (None, memory.content):
        return False
    clean = home.redactor.clean(reason)
    going = [memory, *_superseded_by(home, memory)] if words else [memory]
    gone = [replace(one, retired=Retirement(home.now(), clean)) for one in going]
    told = [change.entry("retire", memory=one.id, reason=clean) for one in going]
    try:
        change.put([*gone, *released(home, going)], told)
    except EditConflict as error:
        home.problems.append(error.message)
        return False
    return True


def _superseded_by(home: Home, memory: Memory) -> list[Memory]:
    """What a memory superseded, and what that did."""
    found: dict[str, Memory] = {}
    line = [memory]
    while line:
        older = [
            one
            for one in home.memories.replaced_by(line.pop().id)
            if not one.retired and one.id not in found
        ]
        found |= {one.id: one for one in older}
        line += older
    return list(found.values())


def _amend(change: Change, one: Overtaken, by: str) -> bool:
    """Have a memory say what it says now, unless it says something else than when the model saw it.

    What the agent alone said is the agent's, also where it stands in place of words of the owner's.
    """
    memory = change.home.memories.find(one.memory.id)
    if memory is None or not memory.is_active or memory.content != one.memory.content:
        return False
    if memory.speaker is Speaker.OWNER and not one.is_owners:
        memory = replace(
            memory, speaker=Speaker.AGENT, importance=min(memory.importance, AGENT_CAP)
        )
    reason = f"a session shows it: {one.quote}"
    return amend(
        change, memory, amended(change.home, memory, one.now, one.shown, by=by, reason=reason)
    )


def doubt(home: Home, seen: Memory, why: str, sessions: Iterable[str]) -> bool:
    """Have a memory looked at by the owner, and told with what speaks against it in some sessions until then, if it
    still says what a model saw; returns whether that is new. Call it in a transaction.
    """
    memory = home.memories.find(seen.id)
    if memory is None or not memory.is_active or memory.content != seen.content:
        return False
    told = home.redactor.clean(shorten(one_line(visible(why)), _WHY_CHARACTERS))
    return home.reviews.doubt(memory.id, told, to_ms(home.now()) or 0, sessions)


# ----------------------------------------------------------------------------
# Which sessions and memories a writer may be shown.


SINCE = "writer.since"

QUIET = timedelta(minutes=30)
"""So long after its last turn a session counts as over: before, the owner may yet object to what was reported last."""

_LATELY, _MOST = timedelta(days=7), 1000


def is_covered(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Whether a session may be shown to a writer, by its name: it is of no tool and no project that is left out, from
    nacre or from writers, and one that the owner had with a model on this machine goes to no other one.
    """
    is_apart = is_of_local_model(settings, stored) and not _runs_here(settings, writer)
    return not is_apart and _is_open(settings, stored)


def _is_open(settings: Settings, stored: StoredSession) -> bool:
    """Whether a session is of no tool and no project that is left out, from nacre or from writers."""
    if Exclusions(settings).leave_out(stored):
        return False
    if stored.session.tool in settings.texts("writer.exclude_tools"):
        return False
    return not any(
        fnmatch(stored.project or "", pattern)
        for pattern in settings.texts("writer.exclude_projects")
    )


def is_quiet(home: Home, stored: StoredSession) -> bool:
    """Whether a session has been quiet so long that nobody will answer what was said last."""
    return stored.ended is None or home.now() - stored.ended >= QUIET


def is_agreed(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Whether a session is covered, and ended after the owner set a writer."""
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
    """Whether the config file has a writer and does not say since when it is shown sessions, as it was edited by hand:
    that is noted as soon as nacre sees it. Who has one by the environment says nothing of that, and means all.
    """
    is_of_file = settings.values["models.background"].origin == str(settings.config)
    return is_of_file and has_writer(settings) and not settings.text(SINCE)


def awaiting(home: Home) -> int:
    """How many sessions are to be shown to the writer. Of an older one the rest waits until the owner asks for it."""
    writer, count = name_for(home, Task.EXTRACTION), 0
    for one in home.sessions.to_extract():
        with suppress(KeyError):  # forgotten since it was listed
            count += one.unwritten is not None and is_agreed(
                home.settings, home.sessions.get(one.row), writer
            )
    return count


def may_be_shown(home: Home, memory: Memory, writer: str) -> bool:
    """Whether a writer may be shown a memory: it is of no project and of no session that is left out."""
    patterns, exclusions = home.settings.texts("writer.exclude_projects"), Exclusions(home.settings)
    if any(fnmatch(memory.project or "", pattern) for pattern in patterns) or exclusions.name(
        memory.project or ""
    ):
        return False
    named = {
        one for one in (memory.source.session, *(one.session for one in memory.confirmed)) if one
    }
    excluded = {*home.settings.texts("writer.exclude_tools"), *exclusions.tools}
    if any(one.partition(":")[0] in excluded for one in named):
        return False
    sessions = [found for one in named for found in home.sessions.find(one)]
    return all(is_covered(home.settings, one, writer) for one in sessions)


def kept_here(home: Home, writer: str) -> list[str]:
    """The models of the last week's sessions that a writer would be shown if it were on the owner's machine, where
    they may run: one a session.
    """
    if _runs_here(home.settings, writer):
        return []
    wanted = SessionFilter(since=home.now() - _LATELY, kind=SessionKind.MAIN)
    latest = home.sessions.newest(wanted, limit=_MOST)
    found = [
        one for one in latest if _is_open(home.settings, one) and _is_after(home.settings, one)
    ]
    return [
        (one.session.model or "").removeprefix(OWN)
        for one in found
        if is_of_local_model(home.settings, one)
    ]


def is_of_local_model(settings: Settings, stored: StoredSession) -> bool:
    """Whether a model answered in a session that may run on the owner's machine: one whose weights anybody can have, or
    one whose provider is there, or is not known to be elsewhere; where none is named, one whose name says so.
    """
    model = (stored.session.model or "").lower()
    if has_open_weights(model) and not model.startswith(OWN):
        return True
    for sign in (":", "/"):
        provider, _, rest = model.removeprefix(OWN).partition(sign)
        with suppress(ModelRefused):
            if rest:
                return is_on_this_machine(provider_of(settings, provider))
    return is_called_local(model)


def _runs_here(settings: Settings, writer: str) -> bool:
    try:
        return is_on_this_machine(provider_of(settings, writer.partition(":")[0]))
    except ModelRefused:
        return False


# ----------------------------------------------------------------------------
# Since when a writer is shown sessions: from when it was set, in whatever way.


def beginning(now: datetime) -> str:
    """The end of sessions that a writer is shown at least, which is set now: what is being worked on is one of them."""
    return stamp(now - QUIET)


def begins(before: Settings, after: Settings, now: datetime) -> dict[str, str]:
    """What a change of settings sets besides, where there is a writer then and was none: since when it is
    shown sessions, unless that is set.

    What is over then is shown to it only where ``writer.since`` is set to an earlier time.
    """
    is_new = has_writer(after) and not has_writer(before)
    return {SINCE: beginning(now)} if is_new and not after.text(SINCE) else {}


def since_of(home: Home) -> str:
    """Since when the writer that is set is shown sessions: where nothing says so, from now on, and what waits for it is
    of that.
    """
    ends = [beginning(home.now())]
    for one in home.sessions.to_extract():
        with suppress(KeyError):  # forgotten since it was listed
            ended = home.sessions.get(one.row).ended if one.unwritten is not None else None
            ends += [stamp(ended)] if ended else []
    return home.settings.text(SINCE) or min(ends)


def begun(home: Home) -> Home:
    """The same home, where a writer of which its config file does not say so is shown sessions from now on."""
    if not is_unseen(home.settings):
        return home
    since = since_of(home)
    with suppress(OSError, SettingsInvalid):  # then it begins anew the next time
        write_setting(home.settings.config, SINCE, since)
    return replace(home, settings=home.settings.having(SINCE, since))


# ----------------------------------------------------------------------------
# All stages in a row: a session's turns → what the owner stated explicitly, and candidates that may
# matter.
#
# Only what was explicit becomes a memory at once (:mod:`nacre.extraction.explicit`). What is about
# the task at hand, what
# tells in definite words how something is, and answers that choose, are candidates: they wait for a
# writer, for the owner
# to say them again, or for review.
# Which of two explicit statements replaces the other is decided where memories are placed, as for
# those of two sessions.


MAX_CANDIDATES = 6
_ONE_MORE_PER = 12
_MOST_EXTRACTOR = 10
CHOSEN = "you chose it"
"""What is told of an answer: its words are the agent's, so that saying it again says nothing."""

SHOWN = "it stands where people paste what others wrote"
"""What is told of what the owner may only show: showing it again says nothing either."""

NODDED = "it is in the agent's words, after text from outside was read"
"""What is told of words of the agent that the owner only pointed at."""

_NOTES = frozenset({"markdown", "text"})
"""Tools whose files may be the owner's own notes: nobody pastes below the first line of these."""

_HEAVIEST = 2.0
"""A statement that weighs so much is as likely to matter as any."""


def extract(session: Session, turns: Sequence[Turn], *, begin: int = 0) -> list[Candidate]:
    """What is found in a session whose evidence includes a turn at or after ``begin``, in order.

    Those that are ``held`` only may matter; the others are memories. Pure and deterministic: the same turns give the
    same candidates.
    """
    if session.kind is not SessionKind.MAIN:
        return []
    turns = [bounded(turn) for turn in turns]
    spoken = utterances(turns)
    is_note = session.tool in _NOTES and all(one.speaker is Speaker.OWNER for one in turns)
    told = once(list(explicit(turns, spoken, is_note=is_note)))
    sure = tempered([one for one in told if one.score >= SURE])
    likely = [one for one in told if one.score < SURE]
    chosen = [one for one in answered(turns, spoken) if not any(map(one.repeats, told))]
    few = _few(once([*likely, *chosen]), len(spoken))
    found = sorted([*sure, *few], key=lambda one: one.index)
    candidates = [
        _candidate(one, turns, is_sure=one in sure, is_chosen=one in chosen)
        for one in found
        if max(one.evidence) >= begin
    ]
    return weighed(session.tool, candidates)


def _few(findings: list[Finding], utterance_count: int) -> list[Finding]:
    """The surest, in the order they were said."""
    most = min(_MOST_EXTRACTOR, MAX_CANDIDATES + utterance_count // _ONE_MORE_PER)
    surest = sorted(findings, key=lambda one: (-one.score, one.index))[:most]
    return [one for one in findings if one in surest]


def _candidate(
    finding: Finding, turns: Sequence[Turn], *, is_sure: bool, is_chosen: bool
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
        score=1.0 if is_sure else round(min(1.0, finding.score / _HEAVIEST), 2),
    )


# ----------------------------------------------------------------------------
# In which order sessions are read that wait, and where in each of them reading goes on.


BLOCK = 24
"""So many sessions, the latest that wait, are read in the order in which they were held, before any older ones."""


def latest_first(waiting: Sequence[Unlearned]) -> list[Sequence[Unlearned]]:
    """Blocks of sessions, those held last first: a writer may take only so much a day. Within a block they go in the
    order of time, so that what a later session changes or ends is known when it is read.
    """
    return [waiting[max(0, end - BLOCK) : end] for end in range(len(waiting), 0, -BLOCK)]


def each_of(
    blocks: Sequence[Sequence[Unlearned]],
) -> Iterator[tuple[Unlearned, Sequence[Unlearned]]]:
    """Each session, with those that follow it in its block."""
    return ((one, block[at + 1 :]) for block in blocks for at, one in enumerate(block))


def placed(one: Unlearned, turns: Sequence[StoredTurn]) -> Unlearned:
    """The same, counted by places among a session's turns: where a file took some back, numbers are missing."""
    numbers = [item.seq for item in turns]
    begin, end = bisect_left(numbers, one.begin), bisect_left(numbers, one.end)
    return one._replace(
        begin=begin,
        end=end,
        unwritten=None if one.unwritten is None else bisect_left(numbers, one.unwritten),
    )


def last_of_owner(turns: Sequence[Turn]) -> int:
    """The place of the owner's last turn; -1 without one."""
    return max(
        (
            at
            for at, turn in enumerate(turns)
            if turn.speaker is Speaker.OWNER and turn.text.strip()
        ),
        default=-1,
    )


# ----------------------------------------------------------------------------
# Requests for extraction: what would be learned.


SessionId = Annotated[
    str, Meta(description="A session that was read, by its id or the beginning of it.")
]


class Way(StrEnum):
    """How a session is shown to a model: as a whole where it fits, always, or never."""

    FITTING = "fitting"
    WHOLE = "whole"
    CHUNKS = "chunks"


class ExtractRequest(Request, frozen=True, kw_only=True):
    """What a text or a session that was read would teach."""

    text: Annotated[
        str,
        Meta(description="A transcript or notes, as plain text or Markdown.", max_length=400_000),
    ] = ""
    session: SessionId | None = None
    by_model: Annotated[bool, Meta(description="False: by rules, without the language model.")] = (
        True
    )


class ProposalRequest(Request, frozen=True, kw_only=True):
    """Which sessions, and how: those of a transcript, or the one of the home that ``session`` names.

    With both it names one of the transcript.
    """

    path: Annotated[Path | None, Meta(description="A transcript.")] = None
    session: SessionId | None = None
    model: Annotated[
        str | None,
        Meta(description="provider:model, instead of the one that is set; none: by the rules."),
    ] = None
    way: Annotated[Way, Meta(description="How the model is shown a session.")] = Way.FITTING
    owner_only: Annotated[bool, Meta(description="Show the model the owner's turns alone.")] = False
    related: Annotated[bool, Meta(description="Show the model what is known of the topic.")] = True


# ----------------------------------------------------------------------------
# Weighs: whether there is anything in a session that a model should be asked about.


_WORDS_A_CHARACTER = 0.625
"""Eight characters of a script without spaces count as five words."""


def is_worth_asking(
    session: Session, turns: Sequence[Turn], settings: Settings, *, begin: int = 0
) -> bool:
    """Whether the owner said something of substance at or after the turn ``begin``.

    That is a message in which they typed at least ``extraction.substance_words`` words of their own, or a shorter one
    in which the deterministic extractor finds a memory ("never force-push"), or one that accepts a plan. What a harness
    wrote, what was pasted and what comes from outside is none.
    """
    if session.kind is not SessionKind.MAIN:
        return False
    least = settings.whole("extraction.substance_words")
    if any(words_of(one) >= least for one in utterances(turns) if one.index >= begin):
        return True
    if any(is_accepted_plan(turns, at) for at in range(begin, len(turns))):
        return True
    return bool(extract(session, turns, begin=begin))


def words_of(utterance: Utterance) -> float:
    """How many words of their own the owner typed in a message."""
    return sum(_count_words(one.text) for one in utterance.statements)


def _count_words(text: str) -> float:
    if is_unspaced(text):
        return _WORDS_A_CHARACTER * sum(character.isalnum() for character in text)
    return len(text.split())


# ----------------------------------------------------------------------------
# Candidates that wait, while sessions are learned from: what the owner says again in another session
# rises.


KEPT = timedelta(days=90)
"""So long a candidate waits."""

_ALIKE = 0.6
"""The share of its words that a statement has in common with one that it may say again: others are not compared."""


class WaitingCandidates:
    """What waits in a home, and what is found to wait or to rise until it is written."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[str, HeldCandidate] = {}
        self._by_word: defaultdict[str, set[str]] = defaultdict(set)
        self._new: list[HeldCandidate] = []
        self._risen: set[str] = set()
        self._read: list[str] = []
        self.count = 0
        """How many candidates began to wait."""

        for one in home.candidates.waiting():
            if one.why is Why.FOUND and not one.detail:
                self._note(one)

    def hold(self, candidate: Candidate, memory: Memory) -> list[Memory]:
        """Let a candidate wait, unless the owner says with it what waits already: then both, the earlier first."""
        is_said = candidate.held is Why.FOUND and not candidate.detail
        risen = self._rise(memory) if is_said else []
        if risen:
            return [*risen, memory]
        why = candidate.held or Why.FOUND
        waits = HeldCandidate(
            memory, why, candidate.detail or None, candidate.score, self._home.now()
        )
        self._new.append(waits)
        if is_said:
            self._note(waits)
        return []

    def say(self, memory: Memory) -> list[Memory]:
        """What waits, and is said again in another session by a memory of the owner's: it waits no longer."""
        return self._rise(memory)

    def _rise(self, memory: Memory) -> list[Memory]:
        if memory.speaker is not Speaker.OWNER:
            return []
        said = text_words(memory.content)
        shared = Counter(known for word in set(said) for known in self._by_word.get(word, ()))
        alike = [
            self._known[known].memory
            for known, count in shared.items()
            if count >= _ALIKE * len(set(said))
        ]
        found = [
            one.other
            for one in compare(memory, alike)
            if one.repeats and _is_elsewhere(memory, one.other)
        ]
        for one in found:
            self._forget(one)
        return sorted(found, key=lambda one: one.created)

    def was_read(self, session: str) -> None:
        """A writer has read a session: what rules found in it waits no longer."""
        self._read.append(session)

    def write(self) -> None:
        """Write down what waits from now on, and what does no longer. Call in a transaction."""
        store = self._home.candidates
        for session in self._read:
            store.settle_session(session)
        known = self._home.memories.same_content
        self.count += store.add(
            one for one in self._new if not known(one.memory.content, one.memory.project)
        )
        store.delete(self._risen)
        store.expire(to_ms(self._home.now() - KEPT) or 0)
        store.blank(to_ms(self._home.now()) or 0)
        self._new, self._read, self._risen = [], [], set()

    def _note(self, candidate: HeldCandidate) -> None:
        memory = candidate.memory
        self._known[memory.id] = candidate
        for word in set(text_words(memory.content)):
            self._by_word[word].add(memory.id)

    def _forget(self, memory: Memory) -> None:
        self._known.pop(memory.id, None)
        for word in set(text_words(memory.content)):
            self._by_word[word].discard(memory.id)
        self._risen.add(memory.id)
        self._new = [one for one in self._new if one.memory.id != memory.id]


def _is_elsewhere(memory: Memory, other: Memory) -> bool:
    """Whether two were said in different sessions, neither of which copies the other's messages."""
    if memory.source.session == other.source.session or memory.created == other.created:
        return False
    return not set(memory.source.turns) & set(other.source.turns)
