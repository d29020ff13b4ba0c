"""Read tombstones and standing retirements from the ledger, and find the items that they affect.

In the ledger, ``forget`` entries add tombstones and ``allow_again`` entries remove tombstones, in
any order, because ledgers are merged by union. ``retire_always`` and ``retire_no_longer`` do the
same for standing retirements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from nacre.base.frozen import frozen
from nacre.base.ids import content_hash, keyed_hash
from nacre.base.text import Expression, is_unspaced, normalise, one_line, to_text
from nacre.errors import InvalidMemoryError, InvalidQueryError, UnusableVaultError
from nacre.home.home import Home
from nacre.memories.judge import OUTLIVED, detach
from nacre.store.schema import shared_identity
from nacre.values.codec import texts_of
from nacre.values.memory import (
    NAMES,
    Confirmation,
    Match,
    Memory,
    SessionPlace,
    Source,
    StandingRetirement,
    Tombstone,
    TombstoneKind,
    TurnPlace,
    TurnText,
    by_id,
)
from nacre.values.session import Handoff, Session, SessionKind, Turn
from nacre.vault import files
from nacre.vault.documents import parse
from nacre.vault.files import LEDGER, is_memory_file
from nacre.vault.merging import id_in

FORGET, ALLOW_AGAIN = "forget", "allow_again"
RETIRE_ALWAYS, RETIRE_NO_LONGER = "retire_always", "retire_no_longer"
_ABOUT_FORGETTING = re.compile(
    rb'"action": ?"(?:forget|allow_again|retire_always|retire_no_longer)"'
)


def heed_ledger(home: Home) -> None:
    """Update the tombstones and standing retirements from the ledger, unless a write is pending.

    New entries are only marked, so that they are applied later.
    """
    with home.vault_lock:
        stamp = _stamp(home)
        if stamp == (home.tombstones.value("ledger") or "") or home.files.has_intents():
            return
        try:
            entries = list(forgetting_in(home.ledger()))
        except UnusableVaultError as error:
            home.problems.append(error.message)  # existing tombstones stay in force
            return
        digest = content_hash(repr(entries)).hex()
        if digest != home.tombstones.value("told"):
            current, target = set(home.tombstones.all()), set(standing_tombstones(entries))
            added, removed = list(target - current), list(current - target)
            effectless = (TombstoneKind.KEY, TombstoneKind.ALLOWED)
            new_runs = {tombstone.run for tombstone in added if tombstone.kind not in effectless}
            with home.transaction():
                home.tombstones.replace_standing(standing_retirements(entries))
                home.tombstones.set_due(home.tombstones.due() | new_runs)
                home.tombstones.change(added, removed)
        with home.transaction():
            home.tombstones.set("told", digest)
            home.tombstones.set("ledger", stamp)


def is_ledger_new(home: Home) -> bool:
    """Return True if the ledger file has changed since it was last read."""
    return _stamp(home) != (home.tombstones.value("ledger") or "")


def forgetting_in(data: bytes) -> Iterator[files.LedgerEntry]:
    """Yield the entries of a ledger that concern forgetting and standing retirements."""
    return files.read_about(data, _ABOUT_FORGETTING)


def standing_tombstones(entries: Sequence[files.LedgerEntry]) -> list[Tombstone]:
    """Return the tombstones in a ledger that no other entry removes."""
    lifted: set[tuple[str, str]] = set()
    allowed = []
    for item in entries:
        if item.action == ALLOW_AGAIN:
            owner = str(item.details.get("session") or item.details.get("memory") or "")
            lifted |= {(str(run), owner) for run in _list(item.details.get("of"))}
            if item.details.get("session"):
                allowed.append(Tombstone(TombstoneKind.ALLOWED, owner, item.op))
    tombstones = [
        tombstone for item in entries if item.action == FORGET for tombstone in tombstones_of(item)
    ]
    return allowed + [
        tombstone
        for tombstone in tombstones
        if tombstone.kind is TombstoneKind.KEY
        or not {(tombstone.run, ""), (tombstone.run, tombstone.owner or tombstone.value)} & lifted
    ]


def tombstones_of(item: files.LedgerEntry) -> Iterator[Tombstone]:
    """Yield the tombstones in a ledger entry, skipping invalid values."""
    details = item.details
    run = str(details.get("run") or item.op)
    if re.fullmatch("[0-9a-f]{32}", key := str(details.get("key"))):
        yield Tombstone(TombstoneKind.KEY, key, run)
    sessions = _mapping(details.get("sessions"))
    yield from (Tombstone(TombstoneKind.SESSION, session, run) for session in sessions)
    for session, turns in (*sessions.items(), *_mapping(details.get("turns")).items()):
        yield from (Tombstone(TombstoneKind.TURN, str(turn), run, session) for turn in _list(turns))
    for memory, words in _mapping(details.get("memories")).items():
        yield Tombstone(TombstoneKind.MEMORY, memory, run)
        yield from (
            Tombstone(TombstoneKind.WORDS, str(value), run, memory) for value in _list(words)
        )
    yield from (
        Tombstone(TombstoneKind.WORDS, str(value), run) for value in _list(details.get("words"))
    )
    if details.get("before"):
        yield Tombstone(TombstoneKind.BEFORE, str(details["before"]), run)


def standing_retirements(entries: Sequence[files.LedgerEntry]) -> list[StandingRetirement]:
    """Return the standing retirements in a ledger that no other entry ends."""
    ended = {str(item.details.get("rule")) for item in entries if item.action == RETIRE_NO_LONGER}
    rules = [rule_of(item) for item in entries if item.action == RETIRE_ALWAYS]
    return [rule for rule in rules if rule and rule.id not in ended]


class Barred:
    """The sessions, turns, memories and text that the user asked nacre to forget."""

    def __init__(self, tombstones: Iterable[Tombstone] = ()) -> None:
        values: dict[TombstoneKind, set[str]] = {kind: set() for kind in TombstoneKind}
        for tombstone in tombstones:
            values[tombstone.kind].add(tombstone.value)
        self.sessions, self.memories = values[TombstoneKind.SESSION], values[TombstoneKind.MEMORY]
        self.turns, self.words = values[TombstoneKind.TURN], values[TombstoneKind.WORDS]
        self.allowed = values[TombstoneKind.ALLOWED]
        self.keys = [bytes.fromhex(key) for key in sorted(values[TombstoneKind.KEY])]
        self.before = [
            scope for value in sorted(values[TombstoneKind.BEFORE]) if (scope := _scope(value))
        ]

    def __bool__(self) -> bool:
        return bool(self.sessions or self.memories or self.turns or self.words or self.before)

    def has_session(self, session_id: str, parent_id: str | None = None) -> bool:
        """Return True if a session or its parent session is forgotten."""
        return session_id in self.sessions or parent_id in self.sessions

    def has_turn(self, session_id: str, turn_id: str, *, is_shared: bool) -> bool:
        """Return True if a turn is forgotten.

        Set ``is_shared`` if copies of the turn in other sessions have the same id.
        """
        if not self.turns:
            return False
        tool, _, native_id = session_id.partition(":")
        if any(turn_value(key, tool, native_id, turn_id) in self.turns for key in self.keys):
            return True
        return is_shared and any(
            turn_value(key, tool, "", turn_id) in self.turns for key in self.keys
        )

    def has_words(self, text: str) -> bool:
        """Return True if a session title or a memory with this text is forgotten."""
        return bool(self.words) and any(words_value(key, text) in self.words for key in self.keys)

    def is_before(self, moment: datetime | None, project: str | None, session_id: str = "") -> bool:
        """Return True if a project's content from ``moment`` was forgotten by date.

        This does not apply to sessions that the user has allowed again.
        """
        if moment is None or session_id in self.allowed:
            return False
        return any(moment < until and self._is_of(scope, project) for until, scope in self.before)

    def projects(self, scope: str | None, slugs: Iterable[str]) -> list[str] | None:
        """Return the slugs that belong to a scope, or ``None`` if the scope is unlimited."""
        return [slug for slug in slugs if self._is_of(scope, slug)] if scope else None

    def strip(self, memory: Memory) -> Memory | None:
        """Return a memory without its forgotten sources and confirmations.

        Returns ``None`` if the memory itself is forgotten, or if no source remains.
        """
        if memory.id in self.memories:
            return None
        source = self._source_left(memory)
        confirmed = tuple(
            remaining
            for item in memory.confirmed
            if (remaining := self._confirmation_left(memory, item))
        )
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
        """Return True if a file contains a forgotten memory."""
        if not self or not is_memory_file(path):
            return False
        if self.memories and id_in(data) in self.memories:
            return True
        if not (self.sessions or self.before):
            return False
        try:
            memory = parse(to_text(data), path, new_id=str, modified=datetime.now(UTC))
        except InvalidMemoryError:
            return False
        return self.strip(memory) is None

    def names_in(self, data: bytes) -> set[str]:
        """Return the ids of forgotten memories that a file mentions."""
        return self.memories & files.ids_in(to_text(data)) if self.memories else set()

    def _source_left(self, memory: Memory) -> Source | None:
        source = memory.source
        if self.is_before(
            max(memory.created, memory.updated), memory.project, source.session or ""
        ):
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
        is_forgotten = self.has_session(item.session) or (item.turns and not turns)
        return None if is_forgotten else replace(item, turns=turns)

    def _turns_left(self, session: str, turns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(turn for turn in turns if not self.has_turn(session, turn, is_shared=True))

    def _is_of(self, scope: str | None, project: str | None) -> bool:
        return scope is None or any(project_value(key, project or "") == scope for key in self.keys)


class Gate:
    """A filter that keeps forgotten content from being read again."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._edition: str | None = None
        self._barred = Barred()

    def refresh(self) -> Barred:
        """Reload the tombstones if they have changed, and return the forgotten content."""
        edition = self._home.tombstones.edition()
        if edition != self._edition:
            self._barred = Barred(self._home.tombstones.all()) if edition else Barred()
            self._edition = edition
        return self._barred

    def admits(self, session: Session) -> bool:
        """Return True if a session is not forgotten."""
        return not self._barred.has_session(session.id, _parent(session))

    def filter_turns(
        self, session: Session, project: str | None, turns: Sequence[Turn]
    ) -> list[Turn]:
        """Return the turns of a session that are not forgotten.

        A turn without a time counts as written when the session started.
        """
        barred = self._barred
        return [
            turn
            for turn in turns
            if not barred.has_turn(session.id, turn.id, is_shared=turn.unique)
            and not barred.is_before(turn.time or session.started, project, session.id)
        ]

    def clean_title(self, session: Session) -> Session:
        """Return the session, without its title if the title is forgotten."""
        is_barred = session.title and self._barred.has_words(session.title)
        return replace(session, title=None) if is_barred else session

    def bars(self, memory: Memory) -> bool:
        """Return True if a new memory, or one of its sources, is forgotten."""
        return self._barred.strip(memory) != memory


def turn_value(key: bytes, tool: str, native_id: str, turn_id: str) -> str:
    """Return the keyed hash by which a tombstone identifies a turn.

    ``native_id`` is empty if the tool's sessions share turn ids.
    """
    return keyed_hash(key, "turn", tool, native_id, turn_id)


def words_value(key: bytes, text: str) -> str:
    """Return the keyed hash by which a tombstone identifies a text, ignoring spaces and case."""
    return keyed_hash(key, "words", normalise(text) or text)


def project_value(key: bytes, slug: str) -> str:
    """Return the keyed hash by which a tombstone identifies a project."""
    return keyed_hash(key, "project", slug)


def _stamp(home: Home) -> str:
    try:
        stat = home.vault.stat(LEDGER)
    except FileNotFoundError:
        return ""
    return f"{stat.mtime_ns} {stat.size}"


def rule_of(item: files.LedgerEntry) -> StandingRetirement | None:
    """Return the standing retirement in a ledger entry, or ``None`` if it is invalid."""
    details = item.details
    pattern, match = details.get("subject_pattern"), details.get("match_type")
    if not isinstance(pattern, str) or not pattern.strip() or match not in tuple(Match):
        return None
    return StandingRetirement(
        id=str(details.get("rule") or item.op),
        pattern=pattern,
        match=Match(match),
        at=item.at,
        canonical_key=_text(details.get("canonical_key")),
        reason=_text(details.get("reason")),
        contexts=tuple(str(context) for context in _list(details.get("suppressed_contexts"))),
    )


def _scope(value: str) -> tuple[datetime, str | None] | None:
    moment, _, project = value.partition(" ")
    try:
        return datetime.fromisoformat(moment), project or None
    except ValueError:
        return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


# -- Affected items ------------------------------------------------------------


@frozen
class Affected:
    """The stored items that tombstones affect.

    ``sessions``, ``memories``, ``handoffs`` and single ``turns`` are deleted. Memories in
    ``changed`` are rewritten, and sessions in ``untitled`` lose their title.
    """

    sessions: tuple[SessionPlace, ...]
    turns: Mapping[SessionPlace, Sequence[int]]
    memories: tuple[Memory, ...]
    changed: tuple[Memory, ...]
    untitled: tuple[SessionPlace, ...]
    handoffs: tuple[Handoff, ...]

    @property
    def retired(self) -> list[Memory]:
        """Memories that are retired because their successor is deleted."""
        return [
            memory
            for memory in self.changed
            if memory.retired and memory.retired.reason == OUTLIVED
        ]


def survey(home: Home, barred: Barred) -> Affected:
    """Find the stored items that are forgotten or must change."""
    sessions = home.erasing.sessions()
    forgotten = [
        session for session in sessions if barred.has_session(session.id, _parent(session))
    ]
    whole_rows = {session.row for session in forgotten}
    by_row = {session.row: session for session in sessions}
    turns: dict[int, set[int]] = {}
    for row, session in _find_barred_turns(home, barred, by_row):
        if session not in whole_rows:
            turns.setdefault(session, set()).add(row)
    emptied = [
        by_row[row] for row, turn_rows in turns.items() if len(turn_rows) >= by_row[row].turns
    ]
    stripped = [(memory, barred.strip(memory)) for memory in home.memories.everything()]
    memories = [memory for memory, remaining in stripped if remaining is None]
    changed = [remaining for memory, remaining in stripped if remaining and remaining != memory]
    now = home.now()
    affected = (*forgotten, *map(by_row.__getitem__, turns))
    return Affected(
        sessions=(*forgotten, *emptied),
        turns={
            by_row[row]: sorted(turn_rows)
            for row, turn_rows in turns.items()
            if by_row[row] not in emptied
        },
        memories=tuple(memories),
        changed=tuple(detach(home, memories, by_id(changed), now)),
        untitled=tuple(
            session
            for session in sessions
            if session.row not in whole_rows and session.title and barred.has_words(session.title)
        ),
        handoffs=handed_over(home, affected, barred),
    )


def handed_over(
    home: Home, sessions: Sequence[SessionPlace], barred: Barred
) -> tuple[Handoff, ...]:
    """Return the handoffs of the given sessions, and any that are forgotten or damaged."""
    ids, projects = {session.id for session in sessions}, {session.project for session in sessions}
    return (
        *(
            handoff
            for handoff in home.handoffs.everything()
            if handoff.session in ids or _is_barred(handoff, barred)
        ),
        *(
            handoff
            for handoff in home.handoffs.damaged()
            if handoff.project in projects or _is_barred(handoff, barred)
        ),
    )


def _is_barred(handoff: Handoff, barred: Barred) -> bool:
    return (
        barred.has_session(handoff.session)
        or barred.has_words(handoff.content)
        or barred.is_before(handoff.written, handoff.project, handoff.session)
    )


def _parent(session: Session | SessionPlace) -> str | None:
    return (
        f"{session.tool}:{session.parent}"
        if session.kind == SessionKind.SUBAGENT and session.parent
        else None
    )


def _find_barred_turns(
    home: Home, barred: Barred, sessions: Mapping[int, SessionPlace]
) -> Iterable[tuple[int, int]]:
    if barred.turns:
        for place in home.erasing.turn_places():
            if barred.has_turn(
                f"{place.tool}:{place.session_id}", place.id, is_shared=is_shared(place)
            ):
                yield place.row, place.session
    slugs = {session.project for session in sessions.values() if session.project}
    for moment, scope in barred.before:
        for row, session in home.erasing.turns_before(
            moment, barred.projects(scope, sorted(slugs))
        ):
            if sessions[session].id not in barred.allowed:
                yield row, session


def is_shared(place: TurnPlace) -> bool:
    """Return True if the tool keeps a turn's id when it copies the turn to other sessions."""
    return place.identity == shared_identity(place.tool, place.id)


# -- Search in turns and memories ----------------------------------------------


_CONTEXT_CHARACTERS = 60
_SKIPPED_FIELDS = {"links", "source", "suppressed_contexts"}
"""Fields that are not searched, because they contain only references."""

_SEARCH_SECONDS = 5.0


class Pattern:
    """Text to forget, as a case-insensitive string or a regular expression."""

    def __init__(self, text: str, *, is_regex: bool = False) -> None:
        if not text.strip():
            raise InvalidQueryError("the text to forget is empty", hint='nacre forget --match "…"')
        plain = re.compile(re.escape(text.strip()), re.IGNORECASE)
        self._search = Expression(text, _SEARCH_SECONDS).search if is_regex else plain.search
        if self.search(""):
            raise InvalidQueryError(
                f"{text!r} matches everything",
                hint="give text that occurs only in the content to forget",
            )

    def search(self, text: str) -> Any:
        """Return the first match, if any. Raises InvalidQueryError if the search takes too long."""
        try:
            return self._search(text)
        except TimeoutError as error:
            raise InvalidQueryError(
                f"the expression took more than {_SEARCH_SECONDS:.0f} s on a text of {len(text):,} characters",
                hint="avoid nested repetition: write a+ instead of (a+)+",
            ) from error


def excerpt_of(match: Pattern, texts: Iterable[str]) -> str | None:
    """Return the first match in the texts and its context as a single line."""
    for text in texts:
        hit = match.search(text)
        if hit:
            start, end = (
                max(0, hit.start() - _CONTEXT_CHARACTERS),
                min(len(text), hit.end() + _CONTEXT_CHARACTERS),
            )
            before, after = "…" if start else "", "…" if end < len(text) else ""
            return f"{before}{one_line(text[start:end])}{after}"
    return None


def is_in_path(match: Pattern, path: str) -> bool:
    """Return True if a file name matches a pattern, as it is or with spaces for hyphens."""
    name = path.rpartition("/")[2]
    return any(match.search(variant) for variant in (name, name.replace("-", " ")))


def turn_texts(turn: TurnText) -> Iterator[str]:
    """Yield all strings in a turn and its tool calls."""
    yield turn.text
    for call in turn.calls:
        yield from (
            call.name,
            call.input,
            call.outcome or "",
            *call.paths,
            call.error or "",
            *call.made,
        )
    yield turn.author or ""


def memory_texts(memory: Memory) -> Iterator[str]:
    """Yield all strings in a memory that can match a pattern."""
    yield from texts_of(memory, NAMES | _SKIPPED_FIELDS)


# -- Quotes of forgotten texts -------------------------------------------------


QUOTED = 40
"""Minimum length of a quote in characters, without punctuation.

In languages without spaces, half this length suffices.
"""

_MIN_SENTENCE_CHARACTERS = 20
"""Minimum length of a whole sentence that counts as a quote, in characters.

In languages without spaces, half this length suffices.
"""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


class Quotes:
    """A search for quotations from forgotten text."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._wholes: set[str] = set()
        self._sentences: set[str] = set()
        self._blocks: dict[int, dict[str, list[tuple[str, int]]]] = {}
        for text in texts:
            plain, share = normalise(text), 2 if is_unspaced(text) else 1
            self._wholes.add(one_line(text).lower())
            self._sentences.update(
                sentence
                for sentence in map(normalise, _SENTENCE.split(text))
                if len(sentence) >= _MIN_SENTENCE_CHARACTERS // share
            )
            size = QUOTED // share // 2
            blocks = self._blocks.setdefault(size, {})
            for at in range(0, len(plain) - size + 1, size):
                blocks.setdefault(plain[at : at + size], []).append((plain, at))
        self._wholes.discard("")

    def are_in(self, text: str) -> bool:
        plain, lowered = normalise(text), one_line(text).lower()
        return (
            any(whole in lowered for whole in self._wholes)
            or any(sentence in plain for sentence in self._sentences)
            or any(
                quote in plain
                for size, blocks in self._blocks.items()
                for at in range(len(plain) - size + 1)
                for forgotten, start in blocks.get(plain[at : at + size], ())
                for first in range(max(0, start - size), start + 1)
                if len(quote := forgotten[first : first + 2 * size]) == 2 * size
            )
        )
