"""What a person or agent does to single memories: store, edit, retire, look at, list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.dedup.decision_prompt import Decision
from nacre.dedup.placement import await_models, place, put
from nacre.dedup.supersession import released
from nacre.errors import Conflict, EditConflict, EmbedderUnavailable, MemoryInvalid, NotFound
from nacre.home.change import FEW, Change
from nacre.home.home import Home
from nacre.home.location import with_dependencies
from nacre.home.operations import subject_of
from nacre.home.projects import known_or_named, project_of_work
from nacre.home.redaction import redacted
from nacre.indexing.vectors import embed_memories, has_vectors
from nacre.memories.agent_rights import as_proposed, as_quoted
from nacre.memories.model_decision import Decisions, decisions, weigh
from nacre.memories.requests import StoreRequest
from nacre.memories.scan import catch_up, scan
from nacre.memories.usage import fold_usage
from nacre.text.passages import title_of
from nacre.values.codec import keys_of
from nacre.values.memory import BESIDE_PASTE, MAX_BODY_BYTES, Kind, Memory, Retirement, Source
from nacre.values.recall import Filter
from nacre.values.reports import Replaced, StoreOutcome
from nacre.values.session import Speaker
from nacre.vault.layout import slugify

_PATIENCE_SECONDS = 0.15
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
        catch_up(home, _PATIENCE_SECONDS)
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
    told = replace(found, supersedes=supersedes, similar=tuple(one for one in outcome.similar if one.id not in gone))
    if found.action != outcome.action:
        return told  # it was the vectors that told
    return replace(
        told, note=outcome.note, decided_by=outcome.decided_by, reason=outcome.reason, amended=outcome.amended
    )  # fmt: skip


def rehearse(home: Home, new: StoreRequest, said: Said | None = None) -> Rehearsal:
    """What :func:`store` would do and why; nothing is written. A model is asked, too. Raises MemoryInvalid."""
    memory = new_memory(home, new, known_or_named, said)
    decided = _decided(home, memory, new)
    told: list[Rehearsal] = []
    with home.change("store") as change:
        catch_up(home, _PATIENCE_SECONDS)
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
    return decisions(home, [memory], replace(new.asking, seconds=home.settings.number("dedup.model_seconds")))


def new_memory(
    home: Home, new: StoreRequest, project_of: Callable[[Home, Path], str | None], said: Said | None
) -> Memory:  # fmt: skip
    """The memory that is to be stored, without secrets; as a proposal where an agent says it. Raises MemoryInvalid."""
    content = new.content.strip()
    if not content:
        raise MemoryInvalid("a memory needs content", hint='e.g. nacre store "We deploy on Fridays"')
    if not 1 <= new.importance <= 10:
        raise MemoryInvalid(f"importance is 1 to 10, not {new.importance}")
    if len(content.encode("utf-8", "replace")) > MAX_BODY_BYTES:
        raise MemoryInvalid("a memory is at most 1 MB", hint="store its parts")
    now = home.now()
    project = project_asked_for(home, new, project_of)
    given = {name: getattr(new, name) for name in new.__struct_fields__ if name in keys_of(Memory)}
    made = {
        "id": home.ids(), "subject": new.subject or title_of(content), "content": content, "created": now,
        "updated": now, "project": project, "tags": tuple(dict.fromkeys(new.tags)),
        "speaker": Speaker.OWNER if said else new.speaker or home.actor.speaker,
        "source": replace(new.source, session=new.source.session or home.settings.session),
    }  # fmt: skip
    memory = Memory(**given | made)
    if said:
        memory = as_quoted(memory, said.source, said.at or now)
        memory = replace(memory, extra={BESIDE_PASTE: True}) if said.mixed else memory
    elif home.actor.is_agent or memory.speaker is Speaker.AGENT:
        memory = as_proposed(memory)
    return redacted(home.redactor, memory)


def _placed(change: Change, memory: Memory, *, beside: bool, decision: Decision | None) -> StoreOutcome:
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
        if "content" in changes and "subject" not in changes and memory.subject == title_of(memory.content):
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
        memories = list({memory.id: memory for memory in (get(home, one) for one in references)}.values())
        gone = next((memory for memory in memories if memory.retired), None)
        if gone:
            raise Conflict(f"{gone.subject!r} is retired already", hint=f"it lies in retired/: nacre show {gone.id}")
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
            raise Conflict(f"{reference!r} means several todos: {names}", hint="give more words, or the id") from None
        if not found:
            raise
        return found[0]
    if memory.kind is not Kind.TODO:
        raise MemoryInvalid(f"{memory.subject!r} is a {memory.kind}, not a todo", hint="nacre todo lists them")
    return memory


def list_active(
    home: Home, wanted: Filter, *, limit: int, offset: int = 0, words: str = ""
) -> tuple[list[Memory], int]:  # fmt: skip
    """A page of active memories, the newest first, and how many there are in all; of those that hold each word."""
    catch_up(home)
    wanted, today = with_dependencies(home, wanted), home.today()
    rows, total = home.selection.list_memories(wanted, limit=limit, offset=offset, today=today, words=words.split())
    found = home.memories.by_rows(rows)
    return [found[row] for row in rows if row in found], total


def _changed_fields(before: Memory, after: Memory) -> str:
    names = (field.name for field in fields(Memory) if field.name != "updated")
    return ", ".join(name for name in names if getattr(before, name) != getattr(after, name))


def refuse_broken(home: Home, memory: Memory) -> None:
    """A file that a person left half-edited is theirs to mend; nothing is written over it."""
    file = home.files.file_of(memory.id)
    broken = next((text for text in home.problems if file and text.startswith(f"{file.path}: ")), None)
    if broken:
        raise MemoryInvalid(broken, hint="mend the file first; its last good version is recalled until then")


def project_asked_for(
    home: Home, new: StoreRequest, project_of: Callable[[Home, Path], str | None] = known_or_named
) -> str | None:
    """The project that a request names, else that of its folder; ``None`` for a memory of no project."""
    return _project(home, new.project) or (project_of(home, Path(new.folder)) if new.folder else None)


def _project(home: Home, name: str | None) -> str | None:
    """The slug of the project that a name means; what a project was called before means it still."""
    return home.files.name_now(slugify(home.redactor.clean(name))) or None if name else None
