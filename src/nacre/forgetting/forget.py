"""Forget for good: what goes is planned, told and asked, then written down as tombstones, then carried out.

The tombstones are durable before anything is deleted: what a crash cuts short is completed by the next command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from nacre.errors import Conflict, NotFound, QueryInvalid
from nacre.forgetting.mentions import clear_reasons, rename_files
from nacre.forgetting.requests import ForgetRequest
from nacre.forgetting.unreachable import pattern_of, unreached
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.ingestion import discovery
from nacre.ingestion.ingest import read_changed, unread
from nacre.memories.listing import write_listings
from nacre.memories.scan import catch_up
from nacre.memories.store import get
from nacre.memories.usage import fold_usage
from nacre.platform.ids import content_hash
from nacre.spending.spool import fold_notes
from nacre.tombstones import chat_erasure, version_erasure
from nacre.tombstones.affected import Affected, is_shared, survey
from nacre.tombstones.archive_erasure import withdraw_matching
from nacre.tombstones.erasure import apply_tombstones, clear_told, clear_words, erase_bytes
from nacre.tombstones.text_search import Pattern, excerpt_of, memory_texts, turn_texts
from nacre.tombstones.tombstones import (
    ALLOW_AGAIN,
    FORGET,
    Barred,
    heed_ledger,
    project_value,
    standing_tombstones,
    told,
    tombstones_of,
    turn_value,
    words_value,
)
from nacre.transcripts.tools.nacre_chat import sessions_folder
from nacre.values.codec import stamp
from nacre.values.forgetting import Excerpt, ForgetPlan, ForgetReport, Forgotten, Tombstone, TombstoneKind, TurnPlace
from nacre.values.memory import Memory
from nacre.vault import ledger

_HASHES_AN_ENTRY = 1000
_SINGLE = {TombstoneKind.KEY: "key", TombstoneKind.BEFORE: "before"}
_EXCERPTS = 200


def plan(home: Home, wanted: ForgetRequest) -> ForgetPlan:
    """What forgetting would take; nothing is changed. Raises QueryInvalid, NotFound, Conflict."""
    how = wanted.how
    catch_up(home)
    _read_conversations(home)
    key = _key(home)
    aim = _AIMS[how](home, wanted, bytes.fromhex(key.value))
    barred = Barred([key, *aim.tombstones])
    found = survey(home, barred)
    match = pattern_of(wanted)
    traces = _traces(home, match) if match else 0
    held = chat_erasure.held(home, barred, match)
    project = wanted.project if how == "project" else None
    return replace(
        _planned(home, how, found, aim, key), match=wanted.match, regex=wanted.regex, traces=traces, held=held,
        project=project,
    )  # fmt: skip


def _read_conversations(home: Home) -> None:
    """Make searchable what was said in channels since it was last read there: the gateway does that now and then."""
    transcripts = sessions_folder(home.settings.home).glob("*.jsonl")
    if jobs := unread(home, discovery.look(home, transcripts).files):
        read_changed(home, jobs)


def _traces(home: Home, match: Pattern) -> int:
    """How many traces quote a text: also what was only asked is forgotten."""
    fold_notes(home)
    return home.traces.count_where(lambda said: match.search(said) is not None)


def forget(home: Home, planned: ForgetPlan) -> ForgetReport:
    """Forget what was planned; durable when it returns, whatever happens on the way.

    The report says what could not be reached. Raises OwnerOnly.
    """
    home.actor.require_owner("nacre forget")
    fold_usage(home)
    match = pattern_of(planned)
    if match:
        withdraw_matching(home, match)
        chat_erasure.erase_matching(home, match)
    with home.change(FORGET) as change:
        if match:
            apply_intents(home)
            clear_words(home, (), match)
            clear_reasons(change, match)
            rename_files(change, match)
            home.erasing.clear_journal(match.search)
            _clear_candidates(home, match)
            clear_told(home, match)
            version_erasure.erase_quoting(home, match)
        with change.transaction():
            change.append(_entries(change, planned))
            home.tombstones.set("erase", "1")
    apply_tombstones(home)
    if planned.project:
        home.code.forget(planned.project)
    write_listings(home)
    run = change.operation_id
    is_done = not home.files.has_intents() and run not in home.tombstones.due()
    return ForgetReport(run, planned, is_done and erase_bytes(home), unreached(home, planned))


def _clear_candidates(home: Home, match: Pattern) -> None:
    """Delete the candidates that quote a text."""
    waiting = (one.memory for one in home.candidates.with_words())
    home.candidates.delete([one.id for one in waiting if excerpt_of(match, memory_texts(one)) is not None])


def forgotten(home: Home) -> list[Forgotten]:
    """What was forgotten so far, the latest first. Completes what was cut short."""
    catch_up(home)
    erase_bytes(home)
    entries = list(told(home))
    holding = {one.run for one in standing_tombstones(entries) if one.kind is not TombstoneKind.KEY}
    runs: dict[str, list[ledger.Entry]] = {}
    for item in entries:
        if item.action == FORGET:
            runs.setdefault(str(item.details.get("run") or item.op), []).append(item)
    return sorted(
        (_told_run(run, items, holding) for run, items in runs.items()), key=lambda one: one.run, reverse=True
    )


def allow_again(home: Home, reference: str) -> Forgotten:
    """Let what was forgotten be read again, where a transcript still tells it: a whole run, or one session or memory.

    Takes the id of a run (or its end), of a session or of a memory. Raises NotFound, Conflict.
    """
    runs = {one.run: one for one in forgotten(home) if not one.is_allowed}
    of, whose = _meant(home, reference.strip(), runs)
    with home.vault_lock:
        with home.change(ALLOW_AGAIN) as change, change.transaction():
            change.append([change.entry(ALLOW_AGAIN, of=of, **whose)])
        heed_ledger(home)
        home.erasing.delete_held_cursors()
    return runs[of[-1]]


@dataclass(frozen=True, slots=True)
class _Aim:
    """Where a request points: tombstones (of no run yet), and what shows that it is meant."""

    tombstones: tuple[Tombstone, ...]
    excerpts: tuple[Excerpt, ...] = ()


def _sessions_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:  # noqa: ARG001 - as the others
    return _Aim(tuple(_tombstone(TombstoneKind.SESSION, _session_id(home, one)) for one in wanted.sessions))


def _session_id(home: Home, reference: str) -> str:
    found = home.sessions.find(reference.strip())
    if len(found) > 1:
        names = ", ".join(one.session.id for one in found)
        raise Conflict(f"{reference!r} means several sessions: {names}", hint="give more of the id")
    if found:
        return found[0].session.id
    kept = home.memories.known_of(reference.strip()) or home.handoffs.of_session(reference.strip())
    if kept:  # its transcript is gone, what was learned from it is not
        return reference.strip()
    raise NotFound(f"no session is called {reference!r}", hint="nacre sessions list shows ids")


def _memories_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:
    """Memories, whatever says the same in the same words, and the turns that show them."""
    ids = home.erasing.alike([get(home, reference).id for reference in wanted.memories])
    found = home.memories.in_any_state(ids)
    shown: dict[str, set[str]] = {}
    for memory in found:
        again = ((one.session, one.turns) for one in memory.confirmed)
        for session, said in ((memory.source.session, memory.source.turns), *again):
            if session:
                shown.setdefault(session, set()).update(said)
    turns = [one for session, wanted_turns in shown.items() for one in _turns_of(home, key, session, wanted_turns)]
    return _Aim((*(_tombstone(TombstoneKind.MEMORY, memory.id) for memory in found), *turns))


def _project_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:
    slug = wanted.project or ""
    sessions = [one.id for one in home.erasing.sessions() if one.project == slug]
    every = home.memories.in_any_state(sorted(home.memories.all_ids()))
    memories = [memory.id for memory in every if memory.project == slug]
    if not sessions and not memories:
        raise NotFound(f"no project is called {slug!r}", hint="nacre list shows the projects of memories")
    until = home.now() + timedelta(seconds=1)
    return _Aim(
        (
            *(_tombstone(TombstoneKind.SESSION, session) for session in sessions),
            *(_tombstone(TombstoneKind.MEMORY, memory) for memory in memories),
            _before(until, key, slug),
        )
    )


def _time_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:
    if wanted.before is None or wanted.before > home.now():
        raise QueryInvalid("that day is still to come", hint="nacre forget --project P forgets a whole project")
    return _Aim((_before(wanted.before, key, wanted.project),))


def _text_meant(home: Home, wanted: ForgetRequest, key: bytes) -> _Aim:
    match = Pattern(wanted.match or "", is_regex=wanted.regex)
    sessions = {one.row: one for one in home.erasing.sessions()}
    excerpts, rows = [], []
    for turn in home.erasing.turn_texts():
        found = excerpt_of(match, turn_texts(turn))
        if found is not None:
            rows.append(turn.row)
            excerpts.append(Excerpt(sessions[turn.session].id, found))
    turns = [one for place in _in_pieces(home, rows) for one in _turn_tombstones(key, place)]
    memories = []
    for memory in home.memories.in_any_state(sorted(home.memories.all_ids())):
        found = excerpt_of(match, memory_texts(memory))
        if found is not None:
            memories.append(_tombstone(TombstoneKind.MEMORY, memory.id))
            excerpts.append(Excerpt(memory.id, found))
    texts = {one.title for one in sessions.values() if one.title and match.search(one.title)}
    for handoff in (*home.handoffs.everything(), *home.handoffs.damaged()):
        found = excerpt_of(match, [handoff.content])
        if found is not None:
            texts.add(handoff.content)
            excerpts.append(Excerpt(handoff.id, found))
    words = [_tombstone(TombstoneKind.WORDS, words_value(key, text)) for text in sorted(texts)]
    return _Aim((*turns, *memories, *words), tuple(excerpts[:_EXCERPTS]))


_AIMS: dict[str, Callable[[Home, ForgetRequest, bytes], _Aim]] = {
    "session": _sessions_meant,
    "memory": _memories_meant,
    "project": _project_meant,
    "before": _time_meant,
    "match": _text_meant,
}


def _planned(home: Home, how: str, found: Affected, aim: _Aim, key: Tombstone) -> ForgetPlan:
    """Tombstones for all that goes, also for what goes with it, so that every machine comes to the same."""
    secret = bytes.fromhex(key.value)
    stones: dict[tuple[TombstoneKind, str], Tombstone] = {(one.kind, one.value): one for one in aim.tombstones}

    def add(more: Iterable[Tombstone]) -> None:
        stones.update(((one.kind, one.value), one) for one in more)

    add([key])
    for session in found.sessions:
        if how != "match":
            add([_tombstone(TombstoneKind.SESSION, session.id)])
        for place in home.erasing.places_in(session.row):
            is_needed = how == "match" or is_shared(place)  # a copy in another session is the same turn
            add(_turn_tombstones(secret, place) if is_needed else ())
    for rows in found.turns.values():
        for place in _in_pieces(home, rows):
            add(_turn_tombstones(secret, place))
    for memory in found.memories:
        words = words_value(secret, memory.content)
        add([_tombstone(TombstoneKind.MEMORY, memory.id), _tombstone(TombstoneKind.WORDS, words, memory.id)])
    gone = {memory.id for memory in found.memories}
    retired = {memory.id for memory in found.retired}
    losing = [one for one in found.changed if one.id not in retired and _lost_evidence(home, one)]
    files = {session.file for session in (*found.sessions, *found.turns, *found.untitled)} | {
        one.source.file for one in found.memories
    }
    return ForgetPlan(
        how=how,
        tombstones=tuple(stones.values()),
        sessions={session.id: session.turns for session in found.sessions},
        parts={session.id: len(rows) for session, rows in found.turns.items()},
        memories=found.memories,
        losing=tuple(one for one in losing if one.id not in gone),
        released=tuple(found.retired),
        excerpts=aim.excerpts,
        untitled=tuple(session.id for session in found.untitled),
        handoffs=tuple(one.id for one in found.handoffs),
        files=tuple(sorted(file for file in files if file)),
    )


def _lost_evidence(home: Home, memory: Memory) -> bool:
    before = home.memories.find(memory.id)
    return before is not None and (before.source, before.confirmed) != (memory.source, memory.confirmed)


def _turns_of(home: Home, key: bytes, session_id: str, turn_ids: set[str]) -> Iterator[Tombstone]:
    """Tombstones for turns of a session by their ids, also where the session is not in the index any more."""
    tool, _, native_id = session_id.partition(":")
    found = [one for one in home.sessions.find(session_id) if one.session.id == session_id]
    places = [place for one in found for place in home.erasing.places_in(one.row) if place.id in turn_ids]
    for place in places:
        yield from _turn_tombstones(key, place)
    for turn_id in sorted(turn_ids - {place.id for place in places}):
        yield _tombstone(TombstoneKind.TURN, turn_value(key, tool, native_id, turn_id), session_id)


def _turn_tombstones(key: bytes, place: TurnPlace) -> Iterator[Tombstone]:
    owner = f"{place.tool}:{place.session_id}"
    native_id = "" if is_shared(place) else place.session_id
    yield _tombstone(TombstoneKind.TURN, turn_value(key, place.tool, native_id, place.id), owner)


def _in_pieces(home: Home, rows: Sequence[int]) -> Iterator[TurnPlace]:
    for start in range(0, len(rows), 500):
        yield from home.erasing.places_of(rows[start : start + 500])


def _tombstone(kind: TombstoneKind, value: str, owner: str = "") -> Tombstone:
    return Tombstone(kind, value, "", owner)


def _before(moment: datetime, key: bytes, project: str | None) -> Tombstone:
    scope = f" {project_value(key, project)}" if project else ""
    return _tombstone(TombstoneKind.BEFORE, f"{stamp(moment)}{scope}")


def _key(home: Home) -> Tombstone:
    """The key of the hashes: that of the first run, wherever it was; made anew where there is none."""
    keys = sorted(one.value for one in home.tombstones.all() if one.kind is TombstoneKind.KEY)
    made = keys[0] if keys else content_hash(home.ids() + home.ids()).hex()
    return _tombstone(TombstoneKind.KEY, made)


def _entries(change: Change, planned: ForgetPlan) -> list[ledger.Entry]:
    """The ledger's lines for a run, which has the id of the first: at most a thousand hashes each."""
    lines: list[dict[str, Any]] = [{}]
    held = 0
    for name, owner, hashes in _grouped(planned.tombstones):
        for start in range(0, max(1, len(hashes)), _HASHES_AN_ENTRY):
            if held >= _HASHES_AN_ENTRY:
                lines.append({})
                held = 0
            piece = hashes[start : start + _HASHES_AN_ENTRY]
            lines[-1].setdefault(name, {})[owner] = piece
            held += len(piece) + 1
    made = [change.entry(FORGET) for _ in lines]
    common = {"run": change.operation_id, "how": planned.how}
    single = {_SINGLE[one.kind]: one.value for one in planned.tombstones if one.kind in _SINGLE}
    words = [one.value for one in planned.tombstones if one.kind is TombstoneKind.WORDS and not one.owner]
    lines[0] |= {**single, **({"words": words} if words else {})}
    return [replace(one, details={**common, **line}) for one, line in zip(made, lines, strict=True)]


def _grouped(tombstones: Sequence[Tombstone]) -> Iterator[tuple[str, str, list[str]]]:
    """(``sessions``, ``turns`` or ``memories``, whose, hashes)."""
    whole = {one.value for one in tombstones if one.kind is TombstoneKind.SESSION}
    memories: dict[str, list[str]] = {one.value: [] for one in tombstones if one.kind is TombstoneKind.MEMORY}
    turns: dict[str, list[str]] = {session: [] for session in sorted(whole)}
    for one in tombstones:
        if one.kind is TombstoneKind.TURN:
            turns.setdefault(one.owner, []).append(one.value)
        elif one.kind is TombstoneKind.WORDS and one.owner:
            memories.setdefault(one.owner, []).append(one.value)
    yield from (("sessions" if owner in whole else "turns", owner, hashes) for owner, hashes in turns.items())
    yield from (("memories", owner, hashes) for owner, hashes in memories.items())


def _told_run(run: str, items: Sequence[ledger.Entry], holding: set[str]) -> Forgotten:
    stones = {(one.kind, one.value): one for item in items for one in tombstones_of(item)}
    of = {kind: [one for one in stones.values() if one.kind is kind] for kind in TombstoneKind}
    before = next((one.value.partition(" ")[0] for one in of[TombstoneKind.BEFORE]), None)
    how = next((str(item.details["how"]) for item in items if item.details.get("how")), "")
    return Forgotten(
        run=run,
        at=min(item.at for item in items).astimezone(UTC),
        how=how,
        sessions=tuple(sorted(one.value for one in of[TombstoneKind.SESSION])),
        turns=len(of[TombstoneKind.TURN]),
        memories=len(of[TombstoneKind.MEMORY]),
        before=datetime.fromisoformat(before) if before and how == "before" else None,
        is_allowed=run not in holding,
    )


def _meant(home: Home, reference: str, runs: dict[str, Forgotten]) -> tuple[list[str], dict[str, str]]:
    """The runs that are taken back, and of them the session or the memory, where it is not all."""
    found = [run for run in runs if run == reference or (len(reference) >= 4 and run.endswith(reference))]
    if len(found) > 1:
        raise Conflict(f"{reference!r} means several runs: {', '.join(found)}", hint="give more of the id")
    if found:
        return found, {}
    for kind, name in ((TombstoneKind.SESSION, "session"), (TombstoneKind.MEMORY, "memory")):
        of = sorted({one.run for one in home.tombstones.all() if one.kind is kind and one.value == reference})
        if of:
            return of, {name: reference}
    raise NotFound(f"nothing that was forgotten is called {reference!r}", hint="nacre forget --list shows what can be")
