"""What must not come back: from the ledger into the index, and asked of sessions, turns and memories.

An entry ``forget`` of the ledger holds tombstones, ``allow_again`` takes some of them away, whatever their order:
a ledger is merged by union. ``retire_always`` and ``retire_no_longer`` do the same for standing retirements.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from nacre.base.ids import keyed_hash
from nacre.base.text import Expression, is_unspaced, normalise, one_line
from nacre.errors import MemoryInvalid, QueryInvalid, VaultUnusable
from nacre.home.home import Home
from nacre.memories.judge import OUTLIVED, is_under, outlived
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
)
from nacre.values.session import Handoff, Session, SessionKind, Turn
from nacre.vault import files
from nacre.vault.documents import parse
from nacre.vault.files import LEDGER, is_memory_file
from nacre.vault.merging import id_in

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
        digest = hashlib.blake2b(
            repr(entries).encode("utf-8", "replace"), digest_size=16
        ).hexdigest()
        if digest != home.tombstones.value("told"):
            _take_over(home, entries)
        with home.database.transaction():
            home.tombstones.set("told", digest)
            home.tombstones.set("ledger", stamp)


def is_ledger_new(home: Home) -> bool:
    """Whether the ledger changed since it was heeded: one look at the file's time and size."""
    return _stamp(home) != (home.tombstones.value("ledger") or "")


def told(home: Home) -> Iterator[files.LedgerEntry]:
    """The ledger's entries about forgetting, and no others: nothing else is parsed."""
    try:
        yield from told_in(home.vault.read(LEDGER))
    except FileNotFoundError:
        return


def told_in(data: bytes) -> Iterator[files.LedgerEntry]:
    """The entries of a ledger about forgetting."""
    return files.read_about(data, _TOLD)


def standing_tombstones(entries: Sequence[files.LedgerEntry]) -> list[Tombstone]:
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
        if one.kind is TombstoneKind.KEY
        or not {(one.run, ""), (one.run, one.owner or one.value)} & lifted
    ]


def tombstones_of(item: files.LedgerEntry) -> Iterator[Tombstone]:
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
    yield from (
        Tombstone(TombstoneKind.WORDS, str(one), run) for one in _list(details.get("words"))
    )
    if details.get("before"):
        yield Tombstone(TombstoneKind.BEFORE, str(details["before"]), run)


def standing_retirements(entries: Sequence[files.LedgerEntry]) -> list[StandingRetirement]:
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
        self.before = [
            scope for value in sorted(values[TombstoneKind.BEFORE]) if (scope := _scope(value))
        ]

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
        return is_shared and any(
            turn_value(key, tool, "", turn_id) in self.turns for key in self.keys
        )

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
        confirmed = tuple(
            one for item in memory.confirmed if (one := self._confirmation_left(memory, item))
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
        """Return True if a file holds a memory that is forgotten."""
        if not self or not is_memory_file(path):
            return False
        if self.memories and id_in(data) in self.memories:
            return True
        if not (self.sessions or self.before):
            return False
        try:
            memory = parse(
                data.decode("utf-8", "replace"), path, new_id=str, modified=datetime.now(UTC)
            )
        except MemoryInvalid:
            return False
        return self.left_of(memory) is None

    def names_in(self, data: bytes) -> set[str]:
        """Return the ids of forgotten memories that a file names."""
        return (
            self.memories & files.ids_in(data.decode("utf-8", "replace"))
            if self.memories
            else set()
        )

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
        parent = (
            f"{session.tool}:{session.parent}" if session.kind is SessionKind.SUBAGENT else None
        )
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


def _take_over(home: Home, entries: Sequence[files.LedgerEntry]) -> None:
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
    return [
        one.id for one in home.memories.everything() if any(is_under(one, rule) for rule in fresh)
    ]


def _stamp(home: Home) -> str:
    try:
        stat = home.vault.stat(LEDGER)
    except FileNotFoundError:
        return ""
    return f"{stat.mtime_ns} {stat.size}"


def rule_of(item: files.LedgerEntry) -> StandingRetirement | None:
    """The standing retirement that an entry begins; ``None`` where it makes no sense."""
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
        contexts=tuple(str(one) for one in _list(details.get("suppressed_contexts"))),
    )


def _scope(value: str) -> tuple[datetime, str | None] | None:
    moment, _, project = value.partition(" ")
    try:
        return datetime.fromisoformat(moment), project or None
    except ValueError:
        return None


def _is_hex(value: Any) -> bool:
    return (
        isinstance(value, str) and len(value) == 32 and re.fullmatch("[0-9a-f]*", value) is not None
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


# ----------------------------------------------------------------------------
# What tombstones concern, of what is there now.


@dataclass(frozen=True, slots=True)
class Affected:
    """What tombstones concern, of what is there now.

    ``sessions`` go whole. ``turns`` maps sessions that stay to those of their turns that go. ``memories`` go; those in
    ``changed`` are written anew, ``retired`` among them because what superseded them goes. ``untitled`` are sessions
    whose title goes, ``handoffs`` what is handed over of what goes.
    """

    sessions: tuple[SessionPlace, ...]
    turns: Mapping[SessionPlace, Sequence[int]]
    memories: tuple[Memory, ...]
    changed: tuple[Memory, ...]
    untitled: tuple[SessionPlace, ...]
    handoffs: tuple[Handoff, ...]

    @property
    def retired(self) -> list[Memory]:
        """What would come back with nothing in its place."""
        return [
            memory
            for memory in self.changed
            if memory.retired and memory.retired.reason == OUTLIVED
        ]


def survey(home: Home, barred: Barred) -> Affected:
    """What of this home tombstones concern. Nothing is changed."""
    sessions = home.erasing.sessions()
    gone = [one for one in sessions if barred.has_session(one.id, _parent(one))]
    whole = {one.row for one in gone}
    by_row = {one.row: one for one in sessions}
    turns: dict[int, set[int]] = {}
    for row, session in _turns_barred(home, barred, by_row):
        if session not in whole:
            turns.setdefault(session, set()).add(row)
    emptied = [by_row[row] for row, found in turns.items() if len(found) >= by_row[row].turns]
    memories, changed = _memories_barred(home, barred)
    now = home.now()
    touched = (*gone, *map(by_row.__getitem__, turns))
    return Affected(
        sessions=(*gone, *emptied),
        turns={
            by_row[row]: sorted(found) for row, found in turns.items() if by_row[row] not in emptied
        },
        memories=tuple(memories),
        changed=tuple(outlived(home, memories, {memory.id: memory for memory in changed}, now)),
        untitled=tuple(
            one
            for one in sessions
            if one.row not in whole and one.title and barred.has_words(one.title)
        ),
        handoffs=handed_over(home, touched, barred),
    )


def handed_over(
    home: Home, sessions: Sequence[SessionPlace], barred: Barred
) -> tuple[Handoff, ...]:
    """What is handed over of some sessions, and of what is barred.

    A file that does not say its session any more may be of any of its project's.
    """
    ids, projects = {one.id for one in sessions}, {one.project for one in sessions}
    return (
        *(
            one
            for one in home.handoffs.everything()
            if one.session in ids or _is_barred(one, barred)
        ),
        *(
            one
            for one in home.handoffs.damaged()
            if one.project in projects or _is_barred(one, barred)
        ),
    )


def _is_barred(handoff: Handoff, barred: Barred) -> bool:
    """Whether a handoff is forgotten, though its session may not be in the index any more."""
    return (
        barred.has_session(handoff.session)
        or barred.has_words(handoff.content)
        or barred.is_before(handoff.written, handoff.project, handoff.session)
    )


def _parent(session: SessionPlace) -> str | None:
    return (
        f"{session.tool}:{session.parent}"
        if session.kind == "subagent" and session.parent
        else None
    )


def _turns_barred(
    home: Home, barred: Barred, sessions: Mapping[int, SessionPlace]
) -> Iterable[tuple[int, int]]:
    if barred.turns:
        for place in home.erasing.turn_places():
            if barred.has_turn(
                f"{place.tool}:{place.session_id}", place.id, is_shared=is_shared(place)
            ):
                yield place.row, place.session
    slugs = {one.project for one in sessions.values() if one.project}
    for moment, scope in barred.before:
        for row, session in home.erasing.turns_before(
            moment, barred.projects(scope, sorted(slugs))
        ):
            if sessions[session].id not in barred.allowed:
                yield row, session


def _memories_barred(home: Home, barred: Barred) -> tuple[list[Memory], list[Memory]]:
    gone, changed = [], []
    ids = sorted(home.memories.all_ids())
    for start in range(0, len(ids), 500):
        for memory in home.memories.in_any_state(ids[start : start + 500]):
            left = barred.left_of(memory)
            if left is None:
                gone.append(memory)
            elif left != memory:
                changed.append(left)
    return gone, changed


def is_shared(place: TurnPlace) -> bool:
    """Whether a turn's id means the same turn in any session of its tool."""
    return place.identity == shared_identity(place.tool, place.id)


# ----------------------------------------------------------------------------
# Look for a text in all that a turn or a memory says.


_AROUND = 60
_OF_OTHERS = {"links", "source", "suppressed_contexts"}
"""Their texts speak of other memories, of a file, or of when it is shown."""

_SECONDS_A_TEXT = 5.0


class Pattern:
    """What is to be forgotten: a text, letter case aside, or a regular expression. Raises QueryInvalid."""

    def __init__(self, text: str, *, is_regex: bool = False) -> None:
        if not text.strip():
            raise QueryInvalid("the text is empty", hint='nacre forget --match "…"')
        plain = re.compile(re.escape(text.strip()), re.IGNORECASE)
        self._search = Expression(text, _SECONDS_A_TEXT).search if is_regex else plain.search
        if self.search(""):
            raise QueryInvalid(f"{text!r} matches everything", hint="say what is to be forgotten")

    def search(self, text: str) -> Any:
        """The first place that matches, if any. Raises QueryInvalid where a text takes too long."""
        try:
            return self._search(text)
        except TimeoutError as error:
            raise QueryInvalid(
                f"the expression took more than {_SECONDS_A_TEXT:.0f} s on a text of {len(text):,} characters",
                hint="repeat nothing within a repetition: a+ instead of (a+)+",
            ) from error


def excerpt_of(match: Pattern, texts: Iterable[str]) -> str | None:
    """The first place that matches, with a few words around it, on one line; ``None`` without one."""
    for text in texts:
        found = match.search(text)
        if found:
            start, end = max(0, found.start() - _AROUND), min(len(text), found.end() + _AROUND)
            before, after = "…" if start else "", "…" if end < len(text) else ""
            return f"{before}{one_line(text[start:end])}{after}"
    return None


def is_in_path(match: Pattern, path: str) -> bool:
    """Whether the name of a file says it; in names, hyphens stand for spaces."""
    name = path.rpartition("/")[2]
    return any(match.search(one) for one in (name, name.replace("-", " ")))


def turn_texts(turn: TurnText) -> Iterator[str]:
    """Everything a turn says and does."""
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
    """Everything a memory says."""
    yield from texts_of(memory, NAMES | _OF_OTHERS)


# ----------------------------------------------------------------------------
# Tells whether a text quotes one that is to be forgotten: all of it, a sentence, or a run of words
# from anywhere.


QUOTED = 40
"""Characters in a row, without punctuation, that nobody writes by chance; half as many where words have no spaces."""

_LEAST_SENTENCE = 20
"""Of a sentence that is known wherever it stands; half as many, as above."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


class Quotes:
    """The texts that are to be forgotten, to be asked of many others.

    A run of ``QUOTED`` characters holds a whole block of half as many, wherever the text is cut into such: the blocks
    are looked up at each place of another text, and what is around one that was found is compared.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._wholes: set[str] = set()
        self._sentences: set[str] = set()
        self._blocks: dict[int, dict[str, list[tuple[str, int]]]] = {}
        for text in texts:
            plain, short = normalise(text), is_unspaced(text)
            self._wholes.add(one_line(text).lower())
            self._sentences.update(
                _sentences(text, _LEAST_SENTENCE // 2 if short else _LEAST_SENTENCE)
            )
            self._cut(plain, QUOTED // 4 if short else QUOTED // 2)
        self._wholes.discard("")

    def _cut(self, plain: str, size: int) -> None:
        blocks = self._blocks.setdefault(size, {})
        for at in range(0, len(plain) - size + 1, size):
            blocks.setdefault(plain[at : at + size], []).append((plain, at))

    def are_in(self, text: str) -> bool:
        """Whether a text quotes any of them."""
        said, lowered = normalise(text), one_line(text).lower()
        if any(one in lowered for one in self._wholes) or any(
            one in said for one in self._sentences
        ):
            return True
        return any(
            _run(said, at, plain, start) >= 2 * size
            for size, blocks in self._blocks.items()
            for at in range(len(said) - size + 1)
            for plain, start in blocks.get(said[at : at + size], ())
        )


def _sentences(text: str, least: int) -> Iterator[str]:
    yield from (plain for one in _SENTENCE.split(text) if len(plain := normalise(one)) >= least)


def _run(said: str, at: int, plain: str, start: int) -> int:
    """How many characters around two places are the same in both texts."""
    before = next(
        (n for n in range(min(at, start)) if said[at - n - 1] != plain[start - n - 1]),
        min(at, start),
    )
    room = min(len(said) - at, len(plain) - start)
    after = next((n for n in range(room) if said[at + n] != plain[start + n]), room)
    return before + after
