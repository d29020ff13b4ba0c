"""Extraction by rules, pending candidates, changes to known memories, and consent to a writer."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from nacre.base.frozen import frozen
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
from nacre.home import spending
from nacre.home.change import Change, Exclusions
from nacre.home.home import BUNDLED, Home
from nacre.learn.checks import Overtaken
from nacre.learn.explicit import SURE, count_words, explicit, iter_answers
from nacre.learn.reading import (
    Finding,
    drop_repetitions,
    limit_strong,
    raise_meeting_todos,
    shorten_for_regex,
    subject_of,
)
from nacre.learn.sentences import is_accepted_plan, utterances
from nacre.llm import credentials
from nacre.memories import judge
from nacre.memories.placement import as_confirmation
from nacre.memories.statements import read
from nacre.settings import Settings, write_setting
from nacre.store.memories import LearnedMemory
from nacre.values.codec import stamp
from nacre.values.memory import (
    Candidate,
    Confidence,
    Expiry,
    HeldCandidate,
    Kind,
    Link,
    Memory,
    Retirement,
    SessionFilter,
    Why,
)
from nacre.values.review import said_by_agent
from nacre.values.session import (
    Action,
    Session,
    SessionKind,
    Speaker,
    StoredSession,
    StoredTurn,
    Task,
    ToolCall,
    Turn,
    Unlearned,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COMPARED_CHARACTERS = 2_000


def find_covered(statements: Sequence[Memory], learned: Sequence[LearnedMemory]) -> set[str]:
    """Return the ids of statements that are already stored as memories, even if edited since."""
    pairs = sorted(
        (-_likeness(statement.content, memory.content), at, by)
        for at, statement in enumerate(statements)
        for by, memory in enumerate(learned)
        if statement.kind is memory.kind and memory.turns & set(statement.source.turns)
    )
    covered: dict[int, int] = {}
    for _, at, by in pairs:
        if at not in covered and by not in covered.values():
            covered[at] = by
    return {statements[at].id for at in covered}


def _likeness(text: str, other_text: str) -> float:
    first, second = (
        set(text_words(text[:_COMPARED_CHARACTERS])),
        set(text_words(other_text[:_COMPARED_CHARACTERS])),
    )
    return len(first & second) / max(1, len(first | second))


def find_missed(candidates: Sequence[Candidate], written: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates from turns in which rules found more memories than the writer."""
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


@dataclass
class Amendments:
    """Pending changes to known memories.

    ``doubts``: memories to review, each with a reason and a session. ``ended``, ``doubted``:
    numbers of memories retired and sent to review so far.
    """

    ended: int = 0
    doubted: int = 0
    _ends: dict[str, tuple[str, Overtaken | None]] = field(default_factory=dict)
    doubts: list[tuple[Memory, str, str | None]] = field(default_factory=list)

    def end(self, memory_id: str, reason: str) -> None:
        """Plan to retire a memory that the owner revoked."""
        self._ends[memory_id] = reason, None

    def note(self, overtaken: Sequence[Overtaken]) -> None:
        """Plan to retire or supersede memories that a session made outdated."""
        self._ends |= {
            change.memory.id: (f"a session shows it: {change.quote}", change)
            for change in overtaken
        }

    def doubt(self, overtaken: Sequence[Overtaken]) -> None:
        """Queue a review of memories that might be outdated."""
        for doubted in overtaken:
            memory, evidence = doubted.memory, doubted.shown
            is_rule = memory.kind is Kind.PREFERENCE and memory.speaker is Speaker.OWNER
            why = (
                f"a later session says: {doubted.quote}"
                if doubted.is_owners or not is_rule
                else said_by_agent(doubted.quote, evidence.session or "", evidence.at)
            )
            self.doubts.append((memory, why, evidence.session))

    def write(self, change: Change) -> None:
        for memory_id, (reason, overtaken) in self._ends.items():
            self.ended += _end(change, memory_id, reason, overtaken)
            change.yield_locks()
        for memory, why, session in self.doubts:
            self.doubted += doubt(change.home, memory, why, filter(None, [session]))
        self._ends.clear()
        self.doubts.clear()


def _end(change: Change, memory_id: str, reason: str, overtaken: Overtaken | None) -> bool:
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
        # If the owner revoked the memory, those that it had superseded become valid again.
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


def _replacement_of(home: Home, memory: Memory, overtaken: Overtaken) -> Memory | None:
    turns = set(overtaken.shown.turns)
    session_memories = home.memories.known_of(overtaken.shown.session or "")
    candidates = (home.memories.find(item.id) for item in session_memories if item.turns & turns)
    shares = {
        item.id: _likeness(item.content, memory.content)
        for item in candidates
        if item
        and item.is_active
        and item.id != memory.id
        and not (judge.outranks(memory, item) or judge.vouches(memory, item))
    }
    best = max(shares, key=lambda item_id: shares[item_id], default="")
    return home.memories.find(best) if shares.get(best) else None


def _superseded_by(home: Home, memory: Memory) -> list[Memory]:
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


def doubt(home: Home, snapshot: Memory, why: str, sessions: Iterable[str]) -> bool:
    """Queue a memory for the owner's review, unless it has changed since ``snapshot``.

    Return True if the review is new. Requires a transaction.
    """
    memory = home.memories.find(snapshot.id)
    if memory is None or not memory.is_active or memory.content != snapshot.content:
        return False
    reason = home.redactor.clean(shorten(one_line(visible(why)), _WHY_CHARACTERS))
    return home.reviews.doubt(memory.id, reason, home.now_ms(), sessions)


# -- Old memories that later commands contradict ---------------------------------------------------

_REMOVED = re.compile(r"(?:^|[;&|]\s*)(?:git )?rm (?!.*--cached)(?:-\S+ )*(?P<paths>[^;&|]+)")
_RENAMED = re.compile(r"(?:^|[;&|]\s*)(?:git )?mv (?:-\S+ )*(?P<path>[^\s;&|]+) (?P<to>[^\s;&|]+)")
_SUBSTITUTED = re.compile(
    r"\b(?:sed|perl) -\w*i.*?\bs([/|#])(?:\\b|\\<)?(\w{5,})(?:\\b|\\>)?\1(\w+)\1g"
)
_EVERYWHERE = re.compile(r"\b(?:fd|find|grep|ls-files|rg)\b|\*")
_OTHER_PLACE = re.compile(
    r"(?:^|/)(?:tmp|build|dist|backups?|node_modules|vendor|examples?|fixtures|testdata)/"
)
_NO_USE = re.compile(r"\bgit (?:add|commit|diff|log|mv|rm|show|status)\b|\bgh |\becho\b|[!|;]")
"""Commands that can mention files and names without using them."""
_REVERTED = re.compile(
    r"\bgit (?:checkout (?:\S+ )?--|restore|reset --hard|stash(?! pop| apply| list)|revert)"
)
_PATH = re.compile(r"[\w./@~-]*\w\.\w{1,8}|[\w.@~-]+(?:/[\w.@~-]+)+")
_REPORTS_REMOVAL = re.compile(
    r"\b(?:no longer|removed?|renamed?|deleted?|dropped|replaced?|deprecated|formerly|used to|was called)\b"
)
_MIN_NAME_CHARACTERS = 5


@frozen
class Removal:
    """A file or identifier that a session renamed to ``successor`` or deleted.

    ``why`` describes the command.
    """

    name: str
    why: str
    at: datetime
    successor: str = ""

    def is_named_in(self, text: str) -> bool:
        """Return True if ``text`` mentions the old name but neither its removal nor its new name."""
        if "/" in self.name or _PATH.fullmatch(self.name):
            return any(map(self._is_file, _PATH.findall(text)))
        if _REPORTS_REMOVAL.search(text) or (self.successor and _word(self.successor).search(text)):
            return False
        return _word(self.name).search(text) is not None

    def _is_file(self, name: str) -> bool:
        name = name.strip("/")
        is_same = f"/{self.name}".endswith(f"/{name}") or f"/{self.name}/" in f"/{name}/"
        is_elsewhere = "/" not in name and _OTHER_PLACE.search(self.name)
        is_kept = self.successor and f"/{self.successor}".endswith(f"/{name}")
        return len(name) >= _MIN_NAME_CHARACTERS and is_same and not (is_elsewhere or is_kept)


def _word(name: str) -> re.Pattern[str]:
    # A common word must be followed by "(", like a function.
    if name.isalpha() and name[1:].islower():
        return re.compile(rf"\b{name}\(")
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-]|[.:/]\w)")


def find_removals(turns: Sequence[Turn]) -> list[Removal]:
    """Return the files and names that commands renamed or deleted and that no later turn uses."""
    removals: dict[str, Removal] = {}
    for turn in turns:
        for call in turn.tool_calls:
            for path in call.paths:
                removals.pop(path.removeprefix("./"), None)
            if turn.time is None or call.outcome != "ok":
                continue
            if call.action is Action.RUN:
                is_use = not _NO_USE.search(call.input)
                unused = {
                    name: thing
                    for name, thing in removals.items()
                    if not (is_use and _word(name).search(call.input))
                }
                by_command = _by_command(call, turn.time)
                removals = by_command if _REVERTED.search(call.input) else unused | by_command
                for thing in by_command.values():
                    removals.pop(thing.successor, None)
    return list(removals.values())


def _by_command(call: ToolCall, at: datetime) -> dict[str, Removal]:
    why = f"a later session ran: {one_line(call.input)}"
    moved = {
        path: _without_quotes(match["to"])
        for match in _RENAMED.finditer(call.input)
        if (path := _without_quotes(match["path"]))
    }
    removed = {
        _without_quotes(path): ""
        for match in _REMOVED.finditer(call.input)
        for path in match["paths"].split()
    }
    removals: dict[str, Removal] = {}
    for path, to in (moved | removed).items():
        is_folder = to.endswith("/") or (bool(to) and "." in path and "." not in to)
        new = f"{to.rstrip('/')}/{path.rpartition('/')[2]}" if is_folder else to
        is_hidden = "/." in f"/{path.removeprefix('../')}"  # often files of tools, which reappear
        removals |= (
            {path: Removal(path, why, at, new)} if _PATH.fullmatch(path) and not is_hidden else {}
        )
    for _, old, new in _SUBSTITUTED.findall(call.input) if _EVERYWHERE.search(call.input) else ():
        removals[old] = Removal(old, why, at, new)
    return removals


def _without_quotes(path: str) -> str:
    return path.strip("'\"").removeprefix("./")


def doubt_memories_of(home: Home, project: str, session: str, removals: Sequence[Removal]) -> int:
    """Queue a project's older memories for review if they mention removed names.

    Return their number.
    """
    count = 0
    for memory in home.memories.everything() if removals else ():
        if not memory.is_active or memory.project != project or memory.kind is Kind.EVENT:
            continue
        for thing in removals:
            if thing.at > memory.last_said and thing.is_named_in(memory.content):
                count += doubt(home, memory, thing.why, [session])
                break
    return count


# -- Consent: sessions and memories that a writer may see ------------------------------------------


SINCE = "writer.since"

QUIET = timedelta(minutes=30)
"""Time after the last turn before a session counts as finished. Until then, the owner may object."""

_RECENT_PERIOD, _MAX_SESSIONS = timedelta(days=7), 1000


def is_covered(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Return True if the settings let a writer see a session.

    Only a writer on this machine may see sessions with a local model.
    """
    is_local_only = is_of_local_model(settings, stored) and not _runs_here(settings, writer)
    return not is_local_only and _is_open(settings, stored)


def _is_open(settings: Settings, stored: StoredSession) -> bool:
    if Exclusions(settings).leave_out(stored):
        return False
    if stored.session.tool in settings.texts("writer.exclude_tools"):
        return False
    return not _is_excluded(settings, stored.project or "")


def _is_excluded(settings: Settings, project: str) -> bool:
    return any(fnmatch(project, pattern) for pattern in settings.texts("writer.exclude_projects"))


def is_quiet(home: Home, stored: StoredSession) -> bool:
    """Return True if the last turn of a session is at least ``QUIET`` old."""
    return stored.ended is None or home.now() - stored.ended >= QUIET


def is_agreed(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Return True if a writer may see a session without a request by the owner.

    The session must have ended after the writer was set.
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
    """Return True if the config file names a writer but no start time.

    This happens after a manual edit. A writer set by environment variables needs no start time.
    """
    is_of_file = settings.values["models.background"].origin == str(settings.config)
    return is_of_file and spending.has_writer(settings) and not settings.text(SINCE)


def count_awaiting(home: Home) -> int:
    """Return the number of sessions that the writer will read without a request by the owner."""
    writer = spending.name_for(home, Task.EXTRACTION)
    return sum(
        item.unwritten is not None and is_agreed(home.settings, stored, writer)
        for item, stored in pending_sessions(home)
    )


def pending_sessions(home: Home) -> Iterator[tuple[Unlearned, StoredSession]]:
    """Yield the sessions with turns that the rules or the writer have not read yet."""
    for item in home.sessions.to_extract():
        with suppress(KeyError):  # the session was forgotten after listing
            yield item, home.sessions.get(item.row)


def may_be_shown(home: Home, memory: Memory, writer: str) -> bool:
    """Return True if a writer may see a memory and the sessions it came from."""
    exclusions, project = Exclusions(home.settings), memory.project or ""
    if exclusions.name(project) or _is_excluded(home.settings, project):
        return False
    sources = (memory.source.session, *(item.session for item in memory.confirmed))
    session_ids = set(filter(None, sources))
    excluded = {*home.settings.texts("writer.exclude_tools"), *exclusions.tools}
    return not any(session_id.partition(":")[0] in excluded for session_id in session_ids) and all(
        is_covered(home.settings, session, writer)
        for session_id in session_ids
        for session in home.sessions.find(session_id)
    )


def list_local_models(home: Home, writer: str) -> list[str]:
    """Return the local models whose recent sessions a remote writer may not read."""
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

    This includes models with open weights, with an unknown provider, or with a local-sounding name
    and no provider.
    """
    model = (stored.session.model or "").lower()
    if has_open_weights(model) and not model.startswith(OWN):
        return True
    for sign in (":", "/"):
        provider, _, name = model.removeprefix(OWN).partition(sign)
        with suppress(ModelRefusedError):
            if name:
                return credentials.provider_of(settings, provider).is_here
    return is_called_local(model)


def _runs_here(settings: Settings, writer: str) -> bool:
    try:
        return credentials.provider_of(settings, writer.partition(":")[0]).is_here
    except ModelRefusedError:
        return False


# -- Start of a writer's access to sessions --------------------------------------------------------


def start_time(now: datetime) -> str:
    """Return the start time of a new writer, early enough for sessions in progress."""
    return stamp(now - QUIET)


def start_setting(before: Settings, after: Settings, now: datetime) -> dict[str, str]:
    """Return the ``writer.since`` setting to store if ``after`` adds a writer, else an empty dict."""
    is_new = spending.has_writer(after) and not spending.has_writer(before)
    return {SINCE: start_time(now)} if is_new and not after.text(SINCE) else {}


def since_of(home: Home) -> str:
    """Return the time from which the writer reads sessions.

    The default is the earliest end of a pending session, or now.
    """
    ends = [
        stamp(stored.ended)
        for item, stored in pending_sessions(home)
        if item.unwritten is not None and stored.ended
    ]
    return home.settings.text(SINCE) or min(ends, default=start_time(home.now()))


def record_start(home: Home) -> Home:
    """Store a missing start time of a writer in the config file, and return the new home."""
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
_NOTES = frozenset({"markdown", "text"})
"""Tools whose files can be the owner's own notes. No text in notes counts as pasted."""

_MAX_SCORE = 2.0
"""Score of a finding that becomes a candidate with the maximum score of 1."""


def extract(session: Session, turns: Sequence[Turn], *, begin: int = 0) -> list[Candidate]:
    """Return the candidates that rules find from turn ``begin`` on, in order.

    Those without ``held`` become memories.
    """
    if session.kind is not SessionKind.MAIN:
        return []
    turns = [shorten_for_regex(turn) for turn in turns]
    spoken = utterances(turns)
    is_note = session.tool in _NOTES and all(turn.speaker is Speaker.OWNER for turn in turns)
    statements = drop_repetitions(list(explicit(turns, spoken, is_note=is_note)))
    sure = limit_strong([statement for statement in statements if statement.score >= SURE])
    likely = [statement for statement in statements if statement.score < SURE]
    chosen = [
        answer for answer in iter_answers(turns, spoken) if not any(map(answer.repeats, statements))
    ]
    unsure = drop_repetitions([*likely, *chosen])
    likeliest = sorted(unsure, key=lambda finding: -finding.score)[:MAX_CANDIDATES]
    findings = sorted([*sure, *likeliest], key=lambda finding: finding.index)
    candidates = [
        _candidate(finding, turns, is_sure=finding in sure)
        for finding in findings
        if finding.index >= begin
    ]
    return raise_meeting_todos(session.tool, candidates)


def _candidate(finding: Finding, turns: Sequence[Turn], *, is_sure: bool) -> Candidate:
    return Candidate(
        kind=finding.kind,
        subject=subject_of(finding.content),
        content=finding.content,
        turns=tuple(turns[at].id for at in finding.evidence),
        importance=finding.importance,
        expiry=Expiry.TEMPORARY if finding.kind is Kind.TODO else Expiry.PERMANENT,
        held=None if is_sure else Why.FOUND,
        detail=finding.detail,
        mixed=finding.mixed,
        confidence=Confidence.EXTRACTED if finding.ordered else Confidence.INFERRED,
        score=1.0 if is_sure else round(min(1.0, finding.score / _MAX_SCORE), 2),
    )


# -- Order of pending sessions ---------------------------------------------------------------------


BLOCK = 24
"""Number of sessions per block."""


def latest_first(sessions: Sequence[Unlearned]) -> list[Sequence[Unlearned]]:
    """Split sessions into blocks, the latest first, in case the budget runs out.

    Each block is chronological, so that later sessions can change memories of earlier ones.
    """
    return [sessions[max(0, end - BLOCK) : end] for end in range(len(sessions), 0, -BLOCK)]


def as_positions(unlearned: Unlearned, turns: Sequence[StoredTurn]) -> Unlearned:
    """Convert the turn numbers of ``unlearned`` to positions in ``turns``."""
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
"""Minimum number of words in a message for which a model reads the session."""


def is_worth_asking(session: Session, turns: Sequence[Turn], *, begin: int = 0) -> bool:
    """Return True if a model should read a session.

    From turn ``begin`` on, the owner must have typed six words at once, accepted a plan, or stated
    something that the rules recognise.
    """
    if session.kind is not SessionKind.MAIN:
        return False
    if any(
        sum(count_words(item.text) for item in utterance.statements) >= _SUBSTANCE_WORDS
        for utterance in utterances(turns)
        if utterance.index >= begin
    ):
        return True
    if any(is_accepted_plan(turns, at) for at in range(begin, len(turns))):
        return True
    return bool(extract(session, turns, begin=begin))


# -- Pending candidates, which become memories if the owner repeats them in a different session ----


MAX_CANDIDATE_AGE = timedelta(days=90)
"""Age after which a pending candidate is deleted."""

_MIN_SHARED_WORDS = 0.6
"""Minimum share of a statement's words that a candidate must contain to be compared with it."""

MIN_REPEATED_COSINE = 0.8
"""Minimum cosine of requests that count as the same, for the bundled model.

Among 303 sentences of real sessions, all pairs above it had the same meaning.
"""


class WaitingCandidates:
    """Candidates that wait for confirmation, including those not stored yet."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._candidates: dict[str, HeldCandidate] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._new: list[HeldCandidate] = []
        self._risen: set[str] = set()
        self._read: list[str] = []
        self.count = 0

        for candidate in home.candidates.pending():
            if candidate.why is Why.FOUND and not candidate.detail:
                self._candidates[candidate.memory.id] = candidate

    def hold(self, candidate: Candidate, memory: Memory) -> list[Memory]:
        """Add a candidate, unless it repeats candidates from other sessions.

        In that case, return the earliest, confirmed by the others.
        """
        may_repeat = candidate.held is Why.FOUND and not candidate.detail
        risen = self._take_repeated(memory) if may_repeat else []
        if risen:
            confirmations = [as_confirmation(other) for other in (*risen[1:], memory)]
            return [replace(risen[0], confirmed=(*risen[0].confirmed, *confirmations))]
        why = candidate.held or Why.FOUND
        pending = HeldCandidate(
            memory, why, candidate.detail or None, candidate.score, self._home.now()
        )
        self._new.append(pending)
        if may_repeat:
            self._candidates[memory.id] = pending
        return []

    def say(self, memory: Memory) -> list[Memory]:
        """Remove the candidates that a statement of the owner confirms.

        Return those with the same words.
        """
        repeated = self._take_repeated(memory)
        return [item.other for item in judge.compare(memory, repeated) if item.repeats]

    def _take_repeated(self, memory: Memory) -> list[Memory]:
        if memory.speaker is not Speaker.OWNER:
            return []
        comparable = [
            candidate.memory
            for candidate in self._candidates.values()
            if candidate.memory.shares_place(memory) and _is_independent(memory, candidate.memory)
        ]
        terms = set(text_words(memory.content))
        similar = [
            other
            for other in comparable
            if len(terms & set(text_words(other.content))) >= _MIN_SHARED_WORDS * len(terms)
        ]
        repeated = [item.other for item in judge.compare(memory, similar) if item.repeats]
        repeated = repeated or self._same_in_meaning(memory, comparable)
        for candidate in repeated:
            self._candidates.pop(candidate.id, None)
            self._risen.add(candidate.id)
        self._new = [item for item in self._new if item.memory.id not in self._risen]
        return sorted(repeated, key=lambda candidate: candidate.created)

    def _same_in_meaning(self, memory: Memory, memories: Sequence[Memory]) -> list[Memory]:
        parts = _parts(memory.content)
        memories = [other for other in memories if _parts(other.content) == parts]
        if not self._home.settings.embeds or is_unspaced(memory.content):
            return []
        new = (
            [item for item in (memory, *memories) if item.id not in self._vectors]
            if memories
            else []
        )
        try:
            vectors = spending.embedder_of(self._home, BUNDLED).embed(
                [item.content for item in new]
            )
        except EmbedderUnavailableError:
            return []
        self._vectors |= {item.id: vector for item, vector in zip(new, vectors, strict=True)}
        return [
            other
            for other in memories
            if float(self._vectors[memory.id] @ self._vectors[other.id]) >= MIN_REPEATED_COSINE
        ]

    def was_read(self, session: str) -> None:
        """Plan to delete the candidates that rules found in a session, because a writer has read it."""
        self._read.append(session)

    def write(self) -> None:
        """Write the changes to candidates. Requires a transaction."""
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
        store.expire(to_ms(self._home.now() - MAX_CANDIDATE_AGE) or 0)
        store.blank(self._home.now_ms())
        self._new, self._read, self._risen = [], [], set()


def _parts(text: str) -> tuple[object, ...]:
    statement = read(text)
    return (
        sorted(statement.names),
        sorted(statement.values),
        sorted(statement.signs),
        statement.negations > 0,
    )


def _is_independent(memory: Memory, other: Memory) -> bool:
    if memory.source.session == other.source.session or memory.created == other.created:
        return False
    return not set(memory.source.turns) & set(other.source.turns)
