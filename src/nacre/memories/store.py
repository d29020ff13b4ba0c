"""How memories are used: spooled where they are recalled, folded into the database by the next writing command.

A recall appends one line to a spool. Folding takes the spool away under another name, counts it in transactions that
also note its name and how far they are, and then deletes it: a crash at any point loses no whole line and counts none
twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from nacre.base import files
from nacre.base import json as json_text
from nacre.base.ids import to_ms
from nacre.base.locks import FileLock
from nacre.base.text import title_of
from nacre.errors import (
    Conflict,
    EditConflict,
    EmbedderUnavailable,
    MemoryInvalid,
    NotFound,
    StoreBusy,
    VaultUnusable,
)
from nacre.home.change import FEW, Change, known_or_named, project_of_work
from nacre.home.home import Home
from nacre.home.location import redacted, with_dependencies
from nacre.home.operations import subject_of
from nacre.home.spending import fold_notes
from nacre.memories import decision
from nacre.memories.decision import (
    Decisions,
    StoreRequest,
    as_proposed,
    as_quoted,
    decisions,
    weigh,
)
from nacre.memories.edit import catch_up, scan
from nacre.memories.judge import Decision, released
from nacre.memories.placement import await_models, place, put
from nacre.memories.vectors import embed_memories, has_vectors
from nacre.store.sqlite import noted_pair
from nacre.values.codec import keys_of
from nacre.values.memory import BESIDE_PASTE, MAX_BODY_BYTES, Kind, Memory, Retirement, Source
from nacre.values.recall import Filter
from nacre.values.reports import Replaced, StoreOutcome
from nacre.values.review import UNSAID, Reason, StepsDue
from nacre.values.session import Speaker
from nacre.vault import files as ledger
from nacre.vault.files import LEDGER, slugify

SPOOL = "usage.jsonl"
RAISED = "importance"
"""What the ledger calls a step of importance."""

PAIRED_A_USE = 5
"""Of one answer, so many memories are paired with each other: what stands below is seldom read."""

PAIRED_A_SESSION = 20
MOST_BY_USE = 9
_SITTING_MS = 30 * 60 * 1000
_SHORT_ID = 8
_KEPT_MS = 30 * 86_400_000
_DAY_MS = 86_400_000
_LATEST_MS = 2**62
_PATIENCE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Use:
    """Memories that were used at a time (epoch milliseconds), in a host's session if it named one.

    A look is one memory that was opened: an access, but no recall.
    """

    at: int
    ids: tuple[str, ...]
    session: str | None = None
    is_look: bool = False


def spool_use(
    home: Home, memory_ids: Sequence[str], *, session: str | None = None, is_look: bool = False
) -> None:
    """Note that memories were used: one appended line, no database write.

    An answer never fails for it: on a full or read-only disk, or where another process stands still in the moment of
    taking the spool away, the line is dropped.
    """
    record: dict[str, object] = {"at": to_ms(home.clock()), "ids": list(memory_ids)}
    if session:
        record["session"] = session_name(session)
    if is_look:
        record["look"] = True
    if home.database.unwritable:
        return
    with contextlib.suppress(StoreBusy, OSError), _spool_lock(home):
        descriptor = files.open_file(home.folder / SPOOL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(
                f"\n{json.dumps(record)}"
            )  # the line end comes first: a torn line spoils no other one


def session_name(session: str) -> str:
    """A host's session id as it is kept: a hash, since it is only compared, and nobody knows what a host puts in it."""
    return hashlib.blake2b(session.strip().encode("utf-8", "replace"), digest_size=16).hexdigest()


def fold_usage(home: Home, seconds: float = math.inf) -> int:
    """Count what was spooled; returns how many recalls that were. Raises StoreBusy.

    It goes on for so long at most; the next one does the rest. Memories that were recalled often enough gain
    importance, in their files; see docs/context.md.
    """
    if seconds == math.inf:
        fold_notes(home)
    if home.database.unwritable or (not _is_readable(home.folder / SPOOL) and not _left(home)):
        return 0
    counted = 0
    until = time.monotonic() + seconds
    with home.change(RAISED, why="recalled often") as change:
        for taken in chain(_left(home), _take(home)):
            counted += _fold(change, taken, until)
            if home.usage.value("folded") != taken.name:
                break  # the time is up, or another process goes on with it
            taken.unlink(missing_ok=True)
        _raise_importance(change)
        queue_reviews(home)
    return counted


def use_together(home: Home, session: str, memory_ids: Sequence[str], day: int) -> None:
    """Pair memories with each other and with those used before in a session: once each, at most 20 a session."""
    with home.database.transaction():
        before = home.session_uses.paired(session)
        fresh = [memory for memory in dict.fromkeys(memory_ids) if memory not in before]
        room = PAIRED_A_SESSION - len(before)
        joined = home.co_recall.join(fresh[: max(0, room)], before, day)
        home.session_uses.pair(session, joined)


def learned_together(home: Home, memories: Sequence[Memory]) -> None:
    """Pair memories that were learned from one session, also with what was learned from it before."""
    learned: dict[str, list[str]] = defaultdict(list)
    for memory in memories:
        if memory.source.session:
            learned[memory.source.session].append(memory.id)
    for session, ids in learned.items():
        before = [known.id for known in home.memories.known_of(session) if known.id not in ids][
            :PAIRED_A_SESSION
        ]
        home.co_recall.join(ids[: PAIRED_A_SESSION - len(before)], before, today(home))


def today(home: Home) -> int:
    """The day, counted from 1970, UTC."""
    return (to_ms(home.clock()) or 0) // _DAY_MS


def queue_reviews(home: Home) -> None:
    """Put what deserves a look into the review queue: low quality despite much use, contradicted more than once."""
    at = to_ms(home.now()) or 0
    for memory, quality, recalls in home.reviews.low_quality():
        detail = f"quality {quality:.2f} after {recalls} recalls"
        home.reviews.add(memory, Reason.LOW_QUALITY, detail, at, once=False)
    for doubt in home.reviews.doubts():
        why = f" ({doubt.reason})" if doubt.reason else ""
        detail = f"{doubt.newer[-_SHORT_ID:]} says otherwise{why}"
        home.reviews.add(doubt.older, Reason.CONTRADICTED, detail, at, once=False)
    for proposed in home.reviews.proposed():
        home.reviews.add(proposed, Reason.PROPOSED, "an agent stored it", at, once=True)
    for stale in decision.unsaid(home):
        home.reviews.add(stale, Reason.STALE, UNSAID, at, once=True)
    for memory, times in home.reviews.contradicted():
        detail = f"contradicted {times} times"
        home.reviews.add(memory, Reason.CONTRADICTED, detail, at, once=True)


def _raise_importance(change: Change) -> None:
    """Give memories the importance that their recalls have earned: 1 each at 3, 10 and 25 sittings, up to 9.

    The step is in the memory's file and in the ledger. A file that a person is just changing waits for the next time.
    """
    home = change.home
    if not home.settings.flag("usage.raise_importance"):
        return
    due = {steps.memory: steps for steps in home.usage.steps_due()}
    if not due:
        return
    taken = _steps_taken(home)
    with change.transaction():
        for memory in list(due):
            steps = due.get(memory)
            with contextlib.suppress(EditConflict, VaultUnusable):
                if steps:
                    _raise(change, replace(steps, taken=max(steps.taken, taken.get(memory, 0))))
            if change.yield_locks():
                due = {steps.memory: steps for steps in home.usage.steps_due()}


def _raise(change: Change, due: StepsDue) -> None:
    home = change.home
    memory = home.memories.find(due.memory)
    if memory is None or not memory.is_vouched:
        return
    importance = max(
        memory.importance, min(MOST_BY_USE, memory.importance + due.earned - due.taken)
    )
    if importance > memory.importance:
        note = change.entry(
            RAISED, memory=memory.id, was=memory.importance, now=importance, steps=due.earned
        )
        change.set_importance(replace(memory, importance=importance), note)
    home.usage.set_steps(memory.id, due.earned)


def _steps_taken(home: Home) -> dict[str, int]:
    """The steps that the ledger knows of: a new database does not take them again."""
    try:
        entries = [item for item in ledger.read(home.vault.read(LEDGER)) if item.action == RAISED]
    except FileNotFoundError:
        return {}
    taken: dict[str, int] = {}
    for item in entries:
        memory, steps = str(item.details.get("memory")), item.details.get("steps")
        if isinstance(steps, int):
            taken[memory] = max(taken.get(memory, 0), steps)
    return taken


def _fold(change: Change, taken: Path, until: float) -> int:
    """Count what was taken away, as far as the time goes, or until another process goes on with it."""
    home = change.home
    present = to_ms(home.clock()) or 0
    counted = 0
    with home.database.transaction():
        if home.usage.value("folded") == taken.name:
            return 0
        uses = sorted(
            (replace(use, at=min(use.at, present)) for use in _read(taken)), key=lambda use: use.at
        )
        for at in range(_folded(home, taken), len(uses)):
            use = uses[at]
            session = use.session or _sitting(home, use.at)
            _count(home, session, use)
            use_together(home, session, use.ids[:PAIRED_A_USE], use.at // _DAY_MS)
            counted += 0 if use.is_look else len(use.ids)
            so_far = partial(home.usage.set_value, _folding(taken), str(at + 1))
            if change.yield_locks(so_far) and _folded(home, taken) != at + 1:
                return counted
            if time.monotonic() > until:
                so_far()
                return counted
        home.co_recall.forget_faded(today(home))
        home.session_uses.forget(present - _KEPT_MS)
        home.usage.set_value("folded", taken.name)
        home.usage.drop_value(_folding(taken))
    return counted


def _folded(home: Home, taken: Path) -> int:
    """How many lines of a spool are counted; -1 when all are."""
    if home.usage.value("folded") == taken.name:
        return -1
    done = home.usage.value(_folding(taken)) or ""
    return int(done) if done.isdecimal() else 0


def _folding(taken: Path) -> str:
    """What is noted while a spool is counted: processes that share a memory on a server have a spool each."""
    return f"folding {taken.name}"


def _count(home: Home, session: str, use: Use) -> None:
    """Count one use: a look is an access; a recall counts once a session, and again where it goes on a day later."""
    if use.is_look:
        home.usage.look(use.ids)
        home.session_uses.record(session, use.ids, use.at, recalled=())
        return
    first = set(use.ids) - home.session_uses.recalled(session, use.at - _DAY_MS)
    home.usage.record(use.ids, use.at, first=first)
    home.session_uses.record(session, use.ids, use.at, recalled=first)


def _sitting(home: Home, at: int) -> str:
    """Where no session was named: uses less than half an hour apart belong to one sitting."""
    start, last = noted_pair(home.usage.value("sitting"), (0, 0))
    if abs(at - last) > _SITTING_MS:
        start = at
    home.usage.set_value("sitting", json.dumps([start, max(at, last)]))
    return f"sitting:{start}"


def _read(taken: Path) -> Iterator[Use]:
    """What was noted; a line that makes no sense is passed over, or nothing could be written ever after."""
    for line in taken.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
            values = json_text.parse(line)
            at, ids, session = (
                int(values["at"]),
                tuple(map(_text, values["ids"])),
                values.get("session"),
            )
            if 0 <= at < _LATEST_MS:
                yield Use(at, ids, _text(session) if session else None, bool(values.get("look")))


def _text(value: object) -> str:
    """A text that the database can hold. Raises TypeError, ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    value.encode("utf-8")
    return value


def _left(home: Home) -> list[Path]:
    """Spools that were taken away and not deleted, the oldest first: what a crash leaves."""
    return sorted(filter(_is_readable, home.folder.glob("usage.*.taken")))


def _is_readable(spool: Path) -> bool:
    """A spool that cannot be read waits; what a command is for does not wait for it."""
    return spool.is_file() and os.access(spool, os.R_OK)


def _take(home: Home) -> Iterator[Path]:
    """Take the spool away once it is asked for; nobody is writing to it then."""
    spool = home.folder / SPOOL
    taken = spool.with_name(f"usage.{home.ids()}.taken")
    if not _is_readable(spool):
        return
    try:
        with _spool_lock(home):
            spool.rename(taken)
    except (FileNotFoundError, StoreBusy):
        return
    yield taken


def _spool_lock(home: Home) -> FileLock:
    return FileLock(home.folder / "usage.lock", _PATIENCE_SECONDS)


# ----------------------------------------------------------------------------
# What a person or agent does to single memories: store, edit, retire, look at, list.


_PATIENCE_SECONDS_STORE = 0.15
_FOLDING_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What would become of a memory, and the memory as it would be."""

    outcome: StoreOutcome
    memory: Memory


class _Undone(Exception):  # noqa: N818 - what is the case, not what went wrong
    """What was written in a rehearsal is taken back."""


@dataclass(frozen=True, slots=True)
class Said:
    """Where and when the owner said in a session what an agent stores, and whether the message has marks of a paste."""

    source: Source
    at: datetime | None
    mixed: bool = False


def store(home: Home, new: StoreRequest, said: Said | None = None) -> StoreOutcome:
    """Store a memory; durable when it returns.

    While another process writes, a store waits for its turn, and gets its vector with the next ingest.

    What says the same as a memory of the same project is not stored twice, and what says otherwise takes its place;
    ``force`` stores it beside whatever is there. Once it is durable it gets its vector, where the model is there, and
    is compared by meaning, too. What an agent asks to be stored is its proposal, unless it is what
    the owner ``said`` in a session. Where the rules cannot tell, a language model may be asked first (``asking``), for
    ``dedup.model_seconds`` at most. Raises MemoryInvalid, and StoreBusy after 30 seconds.
    """
    memory = new_memory(home, new, project_of_work, said)
    decided = _decided(home, memory, new)
    with home.vault_lock.if_free() as was_free, home.vault_lock:
        catch_up(home, _PATIENCE_SECONDS_STORE)
        fold_usage(home, _FOLDING_SECONDS)
        with home.change("store", subject=memory.subject) as change, change.transaction():
            outcome = _placed(change, memory, beside=new.force, decision=decided.of(memory))
            change.explain(outcome.in_words())
    outcome = replace(outcome, note=decided.note)
    if not was_free:  # in a crowd nobody loads a model, which takes a second of a core and 100 MB
        home.memories.has_new_rows = False
        return outcome
    found = embed_memories(home, begins=True).get(memory.id)
    if new.force or outcome.action != "stored" or found is None:
        return outcome
    return _with_meaning(outcome, found)


def _with_meaning(outcome: StoreOutcome, found: StoreOutcome) -> StoreOutcome:
    """What became of a memory by its words, with what then became of it by its vector."""
    supersedes = (*outcome.supersedes, *found.supersedes)
    gone = {one.memory.id for one in supersedes}
    told = replace(
        found,
        supersedes=supersedes,
        similar=tuple(one for one in outcome.similar if one.id not in gone),
    )
    if found.action != outcome.action:
        return told  # it was the vectors that told
    return replace(
        told,
        note=outcome.note,
        decided_by=outcome.decided_by,
        reason=outcome.reason,
        amended=outcome.amended,
    )


def rehearse(home: Home, new: StoreRequest, said: Said | None = None) -> Rehearsal:
    """What :func:`store` would do and why; nothing is written. A model is asked, too. Raises MemoryInvalid."""
    memory = new_memory(home, new, known_or_named, said)
    decided = _decided(home, memory, new)
    told: list[Rehearsal] = []
    with home.change("store") as change:
        catch_up(home, _PATIENCE_SECONDS_STORE)
        with suppress(_Undone), change.transaction():
            decision = decided.of(memory)
            outcome = _placed(change, memory, beside=new.force, decision=decision)
            after = home.memories.find(outcome.memory_id) or memory
            told.append(Rehearsal(replace(outcome, note=decided.note), after))
            raise _Undone
    return told[0] if new.force else _by_meaning(home, memory, told[0])


def _by_meaning(home: Home, memory: Memory, told: Rehearsal) -> Rehearsal:
    """A rehearsal with what the vectors would tell once it is stored, where the words tell nothing."""
    outcome = told.outcome
    is_open = outcome.action == "stored" and not (outcome.supersedes or outcome.superseded_by)
    try:
        if not is_open or home.settings.text("embedding.model") == "none" or not has_vectors(home):
            return told
        found = next(iter(weigh(home, [memory])))[1]
    except EmbedderUnavailable:
        return told
    again = next((one for one in found if one.repeats), None)
    if again:
        known = StoreOutcome("known", again.other.id, again.verdict.reason, note=outcome.note)
        return Rehearsal(known, again.other)
    replaced = tuple(Replaced(one.other, one.verdict.reason) for one in found if one.replaces)
    return replace(told, outcome=replace(outcome, supersedes=replaced))


def _decided(home: Home, memory: Memory, new: StoreRequest) -> Decisions:
    """What a model decides, if one is to; a memory that is stored beside whatever is there needs nobody to."""
    if new.force:
        return Decisions()
    return decisions(
        home, [memory], replace(new.asking, seconds=home.settings.number("dedup.model_seconds"))
    )


def new_memory(
    home: Home, new: StoreRequest, project_of: Callable[[Home, Path], str | None], said: Said | None
) -> Memory:
    """The memory that is to be stored, without secrets; as a proposal where an agent says it. Raises MemoryInvalid."""
    content = new.content.strip()
    if not content:
        raise MemoryInvalid(
            "a memory needs content", hint='e.g. nacre store "We deploy on Fridays"'
        )
    if not 1 <= new.importance <= 10:
        raise MemoryInvalid(f"importance is 1 to 10, not {new.importance}")
    if len(content.encode("utf-8", "replace")) > MAX_BODY_BYTES:
        raise MemoryInvalid("a memory is at most 1 MB", hint="store its parts")
    now = home.now()
    project = project_asked_for(home, new, project_of)
    given = {name: getattr(new, name) for name in new.__struct_fields__ if name in keys_of(Memory)}
    made = {
        "id": home.ids(),
        "subject": new.subject or title_of(content),
        "content": content,
        "created": now,
        "updated": now,
        "project": project,
        "tags": tuple(dict.fromkeys(new.tags)),
        "speaker": Speaker.OWNER if said else new.speaker or home.actor.speaker,
        "source": replace(new.source, session=new.source.session or home.settings.session),
    }
    memory = Memory(**given | made)
    if said:
        memory = as_quoted(memory, said.source, said.at or now)
        memory = replace(memory, extra={BESIDE_PASTE: True}) if said.mixed else memory
    elif home.actor.is_agent or memory.speaker is Speaker.AGENT:
        memory = as_proposed(memory)
    return redacted(home.redactor, memory)


def _placed(
    change: Change, memory: Memory, *, beside: bool, decision: Decision | None
) -> StoreOutcome:
    """Place what somebody stores, or put it beside whatever is there. What is quoted from a session is not stored by
    hand: it brings nothing back that was retired since.
    """
    if beside:
        return put(change, memory, ())
    return place(change, memory, by_hand=not memory.source.turns, decision=decision)


def get(home: Home, reference: str) -> Memory:
    """One memory by id, by the beginning of its id, or by its subject. Raises NotFound, Conflict."""
    found = home.memories.find_like(reference.strip())
    if not found:
        raise NotFound(f"no memory is called {reference!r}", hint="nacre list shows ids")
    if len(found) > 1:
        names = ", ".join(memory.id for memory in found)
        raise Conflict(f"{reference!r} means several memories: {names}", hint="give more of the id")
    return found[0]


def edit(home: Home, reference: str, *, expected: str | None = None, **changes: Any) -> Memory:
    """Change fields of a memory, or ``add_tags`` to it; returns it as it is now.

    Trust stays as it is; a title that was made from the content is made anew. With ``expected``, the file is the one
    that was read under that etag. Raises NotFound, EditConflict, MemoryInvalid.
    """
    with home.change("update") as change:
        scan(home)
        if expected is not None:
            refuse_changed(home, reference, expected)
        fold_usage(home, _FOLDING_SECONDS)
        memory = get(home, reference)
        refuse_broken(home, memory)
        if "importance" in changes and not 1 <= changes["importance"] <= 10:
            raise MemoryInvalid(f"importance is 1 to 10, not {changes['importance']}")
        if changes.get("project"):
            changes["project"] = _project(home, changes["project"])
        if "project" in changes:
            changes["inbox"] = False
        if (
            "content" in changes
            and "subject" not in changes
            and memory.subject == title_of(memory.content)
        ):
            changes["subject"] = title_of(changes["content"])
        if "add_tags" in changes:
            added = changes.pop("add_tags")
            changes["tags"] = tuple(dict.fromkeys((*changes.get("tags", memory.tags), *added)))
        changed = redacted(home.redactor, replace(memory, **changes, updated=home.now()))
        if replace(changed, updated=memory.updated) == memory:
            return memory
        if changed.content != memory.content:
            changed = replace(changed.as_worded(), claim=None)  # it was told of other words
        change.describe(subject=changed.subject, why=_changed_fields(memory, changed))
        with change.transaction():
            change.put([changed])
        if changed.content != memory.content:
            await_models(home, changed)
        return changed


def refuse_changed(home: Home, reference: str, expected: str) -> None:
    """Raise EditConflict where a memory's file is another one than was read under an etag."""
    memory = get(home, reference)
    if expected != etag_of(home, memory):
        raise EditConflict(f"{memory.subject!r} was changed meanwhile", hint="read it again")


def etag_of(home: Home, memory: Memory) -> str | None:
    """What tells the file of a memory from what it was before, and will be; ``None`` where it has no file yet."""
    file = home.files.file_of(memory.id)
    return file.hash.hex() if file else None


def retire(home: Home, references: Sequence[str], reason: str | None = None) -> list[Memory]:
    """Soft-delete memories: they move to ``retired/`` and are never recalled.

    What a retired memory had superseded holds again. Raises NotFound, Conflict.
    """
    with home.change("retire") as change:
        scan(home)
        fold_usage(home, _FOLDING_SECONDS)
        memories = list(
            {memory.id: memory for memory in (get(home, one) for one in references)}.values()
        )
        gone = next((memory for memory in memories if memory.retired), None)
        if gone:
            raise Conflict(
                f"{gone.subject!r} is retired already",
                hint=f"it lies in retired/: nacre show {gone.id}",
            )
        for memory in memories:
            refuse_broken(home, memory)
        going = {one.id for one in memories}
        clean = home.redactor.clean(reason) if reason else None
        change.describe(subject=subject_of(memories), why=clean)
        with change.transaction():
            return [_retire(change, memory, clean, going) for memory in memories]


def _retire(change: Change, memory: Memory, reason: str | None, going: Collection[str]) -> Memory:
    """Retire one of those that are ``going``, as it is now: many take a while, and others write in between."""
    home = change.home
    if len(going) > FEW:
        change.yield_locks()
    present = home.memories.find(memory.id) or memory
    if present.retired:
        return present  # another process was faster
    retired = replace(present, retired=Retirement(home.now(), reason))
    details = {"reason": reason} if reason else {}
    back = [one for one in released(home, [retired]) if one.id not in going]
    change.put([retired, *back], [change.entry("retire", memory=memory.id, **details)])
    return retired


def open_todo(home: Home, reference: str) -> Memory:
    """Return a todo by its id or subject, or the only open todo that has all words of the reference.

    Raises NotFound, Conflict for words of several todos, MemoryInvalid for a memory that is not a todo.
    """
    try:
        memory = get(home, reference)
    except NotFound:
        found, total = list_active(home, Filter(kinds=(Kind.TODO,)), limit=3, words=reference)
        if total > 1:
            names = ", ".join(f"{todo.subject!r} ({todo.id[-8:]})" for todo in found)
            raise Conflict(
                f"{reference!r} means several todos: {names}", hint="give more words, or the id"
            ) from None
        if not found:
            raise
        return found[0]
    if memory.kind is not Kind.TODO:
        raise MemoryInvalid(
            f"{memory.subject!r} is a {memory.kind}, not a todo", hint="nacre todo lists them"
        )
    return memory


def list_active(
    home: Home, wanted: Filter, *, limit: int, offset: int = 0, words: str = ""
) -> tuple[list[Memory], int]:
    """A page of active memories, the newest first, and how many there are in all; of those that hold each word."""
    catch_up(home)
    wanted, today = with_dependencies(home, wanted), home.today()
    rows, total = home.selection.list_memories(
        wanted, limit=limit, offset=offset, today=today, words=words.split()
    )
    found = home.memories.by_rows(rows)
    return [found[row] for row in rows if row in found], total


def _changed_fields(before: Memory, after: Memory) -> str:
    names = (field.name for field in fields(Memory) if field.name != "updated")
    return ", ".join(name for name in names if getattr(before, name) != getattr(after, name))


def refuse_broken(home: Home, memory: Memory) -> None:
    """A file that a person left half-edited is theirs to mend; nothing is written over it."""
    file = home.files.file_of(memory.id)
    broken = next(
        (text for text in home.problems if file and text.startswith(f"{file.path}: ")), None
    )
    if broken:
        raise MemoryInvalid(
            broken, hint="mend the file first; its last good version is recalled until then"
        )


def project_asked_for(
    home: Home, new: StoreRequest, project_of: Callable[[Home, Path], str | None] = known_or_named
) -> str | None:
    """The project that a request names, else that of its folder; ``None`` for a memory of no project."""
    return _project(home, new.project) or (
        project_of(home, Path(new.folder)) if new.folder else None
    )


def _project(home: Home, name: str | None) -> str | None:
    """The slug of the project that a name means; what a project was called before means it still."""
    return home.files.name_now(slugify(home.redactor.clean(name))) or None if name else None
