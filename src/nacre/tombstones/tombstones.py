"""What must not come back: from the ledger into the index, and asked of sessions, turns and memories.

An entry ``forget`` of the ledger holds tombstones, ``allow_again`` takes some of them away, whatever their order:
a ledger is merged by union. ``retire_always`` and ``retire_no_longer`` do the same for standing retirements.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from nacre.dedup.retirement_rules import is_under
from nacre.errors import MemoryInvalid, VaultUnusable
from nacre.home.home import Home
from nacre.platform.ids import keyed_hash
from nacre.text.passages import normalise
from nacre.values.forgetting import Match, StandingRetirement, Tombstone, TombstoneKind
from nacre.values.memory import Confirmation, Memory, Source
from nacre.values.session import Session, SessionKind, Turn
from nacre.vault import ledger
from nacre.vault.document import parse
from nacre.vault.identity import id_in
from nacre.vault.layout import LEDGER, is_memory_file

FORGET, ALLOW_AGAIN = "forget", "allow_again"
RETIRE_ALWAYS, RETIRE_NO_LONGER = "retire_always", "retire_no_longer"
_STEP = 2000
_TOLD = re.compile(rb'"action": ?"(?:forget|allow_again|retire_always|retire_no_longer)"')


def heed_ledger(home: Home) -> None:
    """Bring tombstones and standing retirements up to the ledger; what is new among them is due to be carried out.

    While a write is pending nothing happens.
    """
    with home.vault_lock:
        stamp = _stamp(home)
        if stamp == (home.tombstones.value("ledger") or "") or home.files.has_intents():
            return
        try:
            entries = list(told(home))
        except VaultUnusable as error:
            home.problems.append(error.message)  # what was known to be forgotten stays so
            return
        digest = hashlib.blake2b(repr(entries).encode("utf-8", "replace"), digest_size=16).hexdigest()
        if digest != home.tombstones.value("told"):
            _take_over(home, entries)
        with home.database.transaction():
            home.tombstones.set("told", digest)
            home.tombstones.set("ledger", stamp)


def is_ledger_new(home: Home) -> bool:
    """Whether the ledger changed since it was heeded: one look at the file's time and size."""
    return _stamp(home) != (home.tombstones.value("ledger") or "")


def told(home: Home) -> Iterator[ledger.Entry]:
    """The ledger's entries about forgetting, and no others: nothing else is parsed."""
    try:
        yield from told_in(home.vault.read(LEDGER))
    except FileNotFoundError:
        return


def told_in(data: bytes) -> Iterator[ledger.Entry]:
    """The entries of a ledger about forgetting."""
    return ledger.read_about(data, _TOLD)


def standing_tombstones(entries: Sequence[ledger.Entry]) -> list[Tombstone]:
    """The tombstones that entries tell and that no other entry takes away."""
    lifted: set[tuple[str, str]] = set()
    allowed = []
    for item in entries:
        if item.action == ALLOW_AGAIN:
            owner = str(item.details.get("session") or item.details.get("memory") or "")
            lifted |= {(str(run), owner) for run in _list(item.details.get("of"))}
            if item.details.get("session"):
                allowed.append(Tombstone(TombstoneKind.ALLOWED, owner, item.op))
    found = [one for item in entries if item.action == FORGET for one in tombstones_of(item)]
    return allowed + [
        one
        for one in found
        if one.kind is TombstoneKind.KEY or not {(one.run, ""), (one.run, one.owner or one.value)} & lifted
    ]


def tombstones_of(item: ledger.Entry) -> Iterator[Tombstone]:
    """The tombstones of one entry; what makes no sense in it is passed over."""
    details = item.details
    run = str(details.get("run") or item.op)
    if _is_hex(details.get("key")):
        yield Tombstone(TombstoneKind.KEY, str(details["key"]), run)
    for session, turns in _mapping(details.get("sessions")).items():
        yield Tombstone(TombstoneKind.SESSION, session, run)
        yield from (Tombstone(TombstoneKind.TURN, str(turn), run, session) for turn in _list(turns))
    for session, turns in _mapping(details.get("turns")).items():
        yield from (Tombstone(TombstoneKind.TURN, str(turn), run, session) for turn in _list(turns))
    for memory, words in _mapping(details.get("memories")).items():
        yield Tombstone(TombstoneKind.MEMORY, memory, run)
        yield from (Tombstone(TombstoneKind.WORDS, str(one), run, memory) for one in _list(words))
    yield from (Tombstone(TombstoneKind.WORDS, str(one), run) for one in _list(details.get("words")))
    if details.get("before"):
        yield Tombstone(TombstoneKind.BEFORE, str(details["before"]), run)


def standing_retirements(entries: Sequence[ledger.Entry]) -> list[StandingRetirement]:
    """The standing retirements that entries tell and that were not taken back."""
    ended = {str(item.details.get("rule")) for item in entries if item.action == RETIRE_NO_LONGER}
    rules = [rule_of(item) for item in entries if item.action == RETIRE_ALWAYS]
    return [rule for rule in rules if rule and rule.id not in ended]


class Barred:
    """Asks tombstones: whether a session, a turn, a memory, some words must not come back."""

    def __init__(self, tombstones: Iterable[Tombstone] = ()) -> None:
        values: dict[TombstoneKind, set[str]] = {kind: set() for kind in TombstoneKind}
        for one in tombstones:
            values[one.kind].add(one.value)
        self.sessions, self.memories = values[TombstoneKind.SESSION], values[TombstoneKind.MEMORY]
        self.turns, self.words = values[TombstoneKind.TURN], values[TombstoneKind.WORDS]
        self.allowed = values[TombstoneKind.ALLOWED]
        self.keys = [bytes.fromhex(key) for key in sorted(values[TombstoneKind.KEY])]
        self.before = [scope for value in sorted(values[TombstoneKind.BEFORE]) if (scope := _scope(value))]

    def __bool__(self) -> bool:
        return bool(self.sessions or self.memories or self.turns or self.words or self.before)

    def has_session(self, session_id: str, parent_id: str | None = None) -> bool:
        """Whether a session is forgotten, or (for a sub-agent) the one that it worked for."""
        return session_id in self.sessions or parent_id in self.sessions

    def has_turn(self, session_id: str, turn_id: str, *, is_shared: bool) -> bool:
        """Whether a turn is forgotten; ``is_shared``: its id means the same turn in any session of its tool."""
        if not self.turns:
            return False
        tool, _, native_id = session_id.partition(":")
        if any(turn_value(key, tool, native_id, turn_id) in self.turns for key in self.keys):
            return True
        return is_shared and any(turn_value(key, tool, "", turn_id) in self.turns for key in self.keys)

    def has_words(self, text: str) -> bool:
        """Whether these words were a forgotten memory's, or a forgotten title's."""
        return bool(self.words) and any(words_value(key, text) in self.words for key in self.keys)

    def is_before(self, moment: datetime | None, project: str | None, session_id: str = "") -> bool:
        """Whether what was said then, in that project, is forgotten."""
        if moment is None or session_id in self.allowed:
            return False
        return any(moment < until and self._is_of(scope, project) for until, scope in self.before)

    def projects(self, scope: str | None, slugs: Iterable[str]) -> list[str] | None:
        """The projects that a scope means; ``None`` for whatever there is."""
        return [slug for slug in slugs if self._is_of(scope, slug)] if scope else None

    def left_of(self, memory: Memory) -> Memory | None:
        """A memory without the evidence that was forgotten; ``None`` when it is forgotten itself.

        It is when nothing else bears it out; losing turns of a session that is not forgotten takes only those.
        """
        if memory.id in self.memories:
            return None
        source = self._source_left(memory)
        confirmed = tuple(one for item in memory.confirmed if (one := self._confirmation_left(memory, item)))
        if source is None:
            if not confirmed:
                return None
            source, confirmed = Source(confirmed[0].session, confirmed[0].turns), confirmed[1:]
        if memory.source.turns and not source.turns and self.has_words(memory.content):
            return None
        if (source, confirmed) == (memory.source, memory.confirmed):
            return memory
        return replace(memory, source=source, confirmed=confirmed)

    def bars_document(self, path: str, data: bytes) -> bool:
        """Return True if a file holds a memory that is forgotten."""
        if not self or not is_memory_file(path):
            return False
        if self.memories and id_in(data) in self.memories:
            return True
        if not (self.sessions or self.before):
            return False
        try:
            memory = parse(data.decode("utf-8", "replace"), path, new_id=str, modified=datetime.now(UTC))
        except MemoryInvalid:
            return False
        return self.left_of(memory) is None

    def names_in(self, data: bytes) -> set[str]:
        """Return the ids of forgotten memories that a file names."""
        return self.memories & ledger.ids_in(data.decode("utf-8", "replace")) if self.memories else set()

    def _source_left(self, memory: Memory) -> Source | None:
        source = memory.source
        if self.is_before(max(memory.created, memory.updated), memory.project, source.session or ""):
            return None
        if not source.session:
            return source
        if self.has_session(source.session):
            return None
        return replace(source, turns=self._turns_left(source.session, source.turns))

    def _confirmation_left(self, memory: Memory, item: Confirmation) -> Confirmation | None:
        if self.is_before(item.at, memory.project, item.session or ""):
            return None
        if not item.session:
            return item
        turns = self._turns_left(item.session, item.turns)
        is_gone = self.has_session(item.session) or (item.turns and not turns)
        return None if is_gone else replace(item, turns=turns)

    def _turns_left(self, session: str, turns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(turn for turn in turns if not self.has_turn(session, turn, is_shared=True))

    def _is_of(self, scope: str | None, project: str | None) -> bool:
        return scope is None or any(project_value(key, project or "") == scope for key in self.keys)


class Gate:
    """Lets through, of what a transcript tells, what was not forgotten."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._edition: str | None = None
        self._barred = Barred()

    def refresh(self) -> Barred:
        """The tombstones as they are in the present transaction."""
        edition = self._home.tombstones.edition()
        if edition != self._edition:
            self._barred = Barred(self._home.tombstones.all()) if edition else Barred()
            self._edition = edition
        return self._barred

    def admits(self, session: Session) -> bool:
        """Whether a session may be there at all."""
        parent = f"{session.tool}:{session.parent}" if session.kind is SessionKind.SUBAGENT else None
        return not self._barred.has_session(session.id, parent)

    def admitted(self, session: Session, project: str | None, turns: Sequence[Turn]) -> list[Turn]:
        """The turns that may be there. A turn without a time is as old as its session."""
        barred = self._barred
        return [
            turn
            for turn in turns
            if not barred.has_turn(session.id, turn.id, is_shared=turn.unique)
            and not barred.is_before(turn.time or session.started, project, session.id)
        ]

    def titled(self, session: Session) -> Session:
        """A session without a title that quotes what was forgotten."""
        is_barred = session.title and self._barred.has_words(session.title)
        return replace(session, title=None) if is_barred else session

    def bars(self, memory: Memory) -> bool:
        """Whether a memory about to be learned rests on what was forgotten meanwhile."""
        return self._barred.left_of(memory) != memory


def turn_value(key: bytes, tool: str, native_id: str, turn_id: str) -> str:
    """What stands for a turn; without a session where the tool's ids mean the same turn in all of them."""
    return keyed_hash(key, "turn", tool, native_id, turn_id)


def words_value(key: bytes, text: str) -> str:
    """What stands for some words, however they are spaced and capitalised."""
    return keyed_hash(key, "words", normalise(text) or text)


def project_value(key: bytes, slug: str) -> str:
    """What stands for a project."""
    return keyed_hash(key, "project", slug)


def _take_over(home: Home, entries: Sequence[ledger.Entry]) -> None:
    """In steps that let others write; one that is cut short is begun anew, for the ledger does not count as heeded."""
    known, wanted = set(home.tombstones.all()), set(standing_tombstones(entries))
    more, fewer = list(wanted - known), list(known - wanted)
    silent = (TombstoneKind.KEY, TombstoneKind.ALLOWED)
    fresh = {one.run for one in more if one.kind not in silent}
    rules = standing_retirements(entries)
    arrived = _arrived(home, rules)
    with home.database.transaction():
        home.tombstones.replace_standing(rules)
        home.tombstones.set_arrived({*home.tombstones.arrived(), *arrived})
        home.tombstones.set_due(home.tombstones.due() | fresh)
    for start in range(0, max(len(more), len(fewer)), _STEP):
        with home.database.transaction():
            home.tombstones.change(more[start : start + _STEP], fewer[start : start + _STEP])


def _arrived(home: Home, rules: Sequence[StandingRetirement]) -> list[str]:
    """What is here and falls under rules from elsewhere. A new database has heeded nothing before: there are none."""
    known = {rule.id for rule in home.tombstones.standing()}
    fresh = [rule for rule in rules if rule.id not in known]
    if not fresh or home.tombstones.value("told") is None:
        return []
    return [one.id for one in home.memories.everything() if any(is_under(one, rule) for rule in fresh)]


def _stamp(home: Home) -> str:
    try:
        stat = home.vault.stat(LEDGER)
    except FileNotFoundError:
        return ""
    return f"{stat.mtime_ns} {stat.size}"


def rule_of(item: ledger.Entry) -> StandingRetirement | None:
    """The standing retirement that an entry begins; ``None`` where it makes no sense."""
    details = item.details
    pattern, match = details.get("subject_pattern"), details.get("match_type")
    if not isinstance(pattern, str) or not pattern.strip() or match not in tuple(Match):
        return None
    return StandingRetirement(
        id=str(details.get("rule") or item.op), pattern=pattern, match=Match(match), at=item.at,
        canonical_key=_text(details.get("canonical_key")), reason=_text(details.get("reason")),
        contexts=tuple(str(one) for one in _list(details.get("suppressed_contexts"))),
    )  # fmt: skip


def _scope(value: str) -> tuple[datetime, str | None] | None:
    moment, _, project = value.partition(" ")
    try:
        return datetime.fromisoformat(moment), project or None
    except ValueError:
        return None


def _is_hex(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 32 and re.fullmatch("[0-9a-f]*", value) is not None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
