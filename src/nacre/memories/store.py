"""Storing, editing and retiring single memories."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nacre.base.frozen import frozen
from nacre.base.text import title_of
from nacre.errors import (
    ConflictError,
    EditConflictError,
    EmbedderUnavailableError,
    InvalidMemoryError,
    NotFoundError,
    refuse_several,
)
from nacre.home.change import FEW, Change, known_or_named, project_of_work
from nacre.home.home import Home
from nacre.home.location import redact, with_dependencies
from nacre.home.operations import subject_of
from nacre.memories import decisions
from nacre.memories.edit import catch_up, scan
from nacre.memories.judge import Decision, release
from nacre.memories.placement import limit_triggers, place, put
from nacre.memories.requests import StoreRequest, as_proposed, as_quoted
from nacre.memories.usage import fold_usage
from nacre.memories.vectors import embed_memories, has_vectors
from nacre.values.codec import keys_of
from nacre.values.memory import (
    BESIDE_PASTE,
    MAX_BODY_BYTES,
    TRIGGER_TIMES,
    Kind,
    Memory,
    Retirement,
    Source,
    by_id,
)
from nacre.values.recall import Filter
from nacre.values.reports import Replaced, StoreOutcome
from nacre.values.session import Speaker
from nacre.vault.files import slugify

MIN_ID_CHARACTERS = 4
_STORE_PATIENCE_SECONDS = 0.15
_FOLDING_SECONDS = 0.05


@frozen
class Rehearsal:
    """The effect that storing a memory would have, and the resulting memory."""

    outcome: StoreOutcome
    memory: Memory


class _RollbackError(Exception):
    """An error that undoes the writes of a trial."""


@frozen
class OwnerWords:
    """The origin of a statement by the owner. ``mixed`` is True if it may contain pasted text."""

    source: Source
    at: datetime | None
    mixed: bool = False


def store(home: Home, new: StoreRequest, statement: OwnerWords | None = None) -> StoreOutcome:
    """Store a memory durably and return the outcome.

    Unless ``force`` is set, a memory that repeats another one is not stored again, and one that
    contradicts an earlier one replaces it. In unclear cases, a language model may be asked. A
    memory from an agent is a proposal, unless the owner made the ``statement``. Raises
    InvalidMemoryError, or StoreBusyError after 30 seconds.
    """
    memory = new_memory(home, new, project_of_work, statement)
    model_decisions = _model_decisions(home, memory, new)
    with home.vault_lock.if_free() as was_free, home.vault_lock:
        catch_up(home, _STORE_PATIENCE_SECONDS)
        fold_usage(home, _FOLDING_SECONDS)
        with home.change("store", subject=memory.subject) as change, change.transaction():
            outcome = _place(change, memory, alone=new.force, decision=model_decisions.of(memory))
            change.explain(outcome.in_words())
    outcome = replace(outcome, note=model_decisions.note)
    if not was_free:  # under load, do not start a model, which takes a second of CPU and 100 MB
        home.memories.has_new_rows = False
        return outcome
    outcome_by_meaning = embed_memories(home).get(memory.id)
    if new.force or outcome.action != "stored" or outcome_by_meaning is None:
        return outcome
    supersedes = (*outcome.supersedes, *outcome_by_meaning.supersedes)
    replaced_ids = {other.memory.id for other in supersedes}
    if outcome_by_meaning.action == outcome.action:
        outcome = replace(outcome, superseded_by=outcome_by_meaning.superseded_by)
    else:
        outcome = replace(outcome_by_meaning, similar=outcome.similar)
    return replace(
        outcome,
        supersedes=supersedes,
        similar=tuple(other for other in outcome.similar if other.id not in replaced_ids),
    )


def rehearse(home: Home, new: StoreRequest, statement: OwnerWords | None = None) -> Rehearsal:
    """Return the effect that :func:`store` would have, without writing anything.

    A model may be asked. Raises InvalidMemoryError.
    """
    memory = new_memory(home, new, known_or_named, statement)
    model_decisions = _model_decisions(home, memory, new)
    rehearsals: list[Rehearsal] = []
    with home.change("store") as change:
        catch_up(home, _STORE_PATIENCE_SECONDS)
        with suppress(_RollbackError), change.transaction():
            outcome = _place(change, memory, alone=new.force, decision=model_decisions.of(memory))
            after = home.memories.find(outcome.memory_id) or memory
            rehearsals.append(Rehearsal(replace(outcome, note=model_decisions.note), after))
            raise _RollbackError
    return rehearsals[0] if new.force else _by_meaning(home, memory, rehearsals[0])


def _by_meaning(home: Home, memory: Memory, rehearsal: Rehearsal) -> Rehearsal:
    outcome = rehearsal.outcome
    is_open = outcome.action == "stored" and not (outcome.supersedes or outcome.superseded_by)
    try:
        if not is_open or not home.settings.embeds or not has_vectors(home):
            return rehearsal
        comparisons = next(iter(decisions.weigh(home, [memory])))[1]
    except EmbedderUnavailableError:
        return rehearsal
    repeated = next((comparison for comparison in comparisons if comparison.repeats), None)
    if repeated:
        return Rehearsal(
            StoreOutcome("known", repeated.other.id, repeated.verdict.reason, note=outcome.note),
            repeated.other,
        )
    replaced = tuple(
        Replaced(comparison.other, comparison.verdict.reason)
        for comparison in comparisons
        if comparison.replaces
    )
    return replace(rehearsal, outcome=replace(outcome, supersedes=replaced))


def _model_decisions(home: Home, memory: Memory, new: StoreRequest) -> decisions.Decisions:
    if new.force:
        return decisions.Decisions()
    return decisions.ask_model(
        home, [memory], replace(new.asking, seconds=home.settings.number("dedup.model_seconds"))
    )


def new_memory(
    home: Home,
    new: StoreRequest,
    project_of: Callable[[Home, Path], str | None],
    statement: OwnerWords | None,
) -> Memory:
    """Build the memory to store, without secrets. A memory stated by an agent becomes a proposal.

    Raises InvalidMemoryError.
    """
    content = new.content.strip()
    if not content:
        raise InvalidMemoryError(
            "the memory has no content", hint='give a text, e.g. nacre store "We deploy on Fridays"'
        )
    if not 1 <= new.importance <= 10:
        raise InvalidMemoryError(f"importance must be 1 to 10, not {new.importance}")
    if len(content.encode("utf-8", "replace")) > MAX_BODY_BYTES:
        raise InvalidMemoryError(
            "a memory can have at most 1 MB", hint="split it into several memories"
        )
    now = home.now()
    project = project_asked_for(home, new, project_of)
    values = {name: getattr(new, name) for name in new.__struct_fields__ if name in keys_of(Memory)}
    computed = {
        "id": home.ids(),
        "subject": new.subject or title_of(content),
        "content": content,
        "created": now,
        "updated": now,
        "project": project,
        "tags": tuple(dict.fromkeys(new.tags)),
        "speaker": Speaker.OWNER if statement else new.speaker or home.actor.speaker,
        "source": replace(new.source, session=new.source.session or home.settings.session),
        "extra": {TRIGGER_TIMES: new.trigger_times} if new.trigger_times else {},
    }
    memory = Memory(**values | computed)
    if statement:
        memory = as_quoted(memory, statement.source, statement.at or now)
        extra = {**memory.extra, BESIDE_PASTE: True} if statement.mixed else memory.extra
        memory = replace(memory, extra=extra)
    elif home.actor.is_agent or memory.speaker is Speaker.AGENT:
        memory = as_proposed(memory)
    return redact(home.redactor, memory)


def _place(
    change: Change, memory: Memory, *, alone: bool, decision: Decision | None
) -> StoreOutcome:
    if alone:
        return put(change, memory, ())
    return place(change, memory, by_hand=not memory.source.turns, decision=decision)


def get(home: Home, reference: str) -> Memory:
    """Return a memory by its subject or id, or by the first or last characters of the id.

    Raises NotFoundError, or ConflictError if several memories match.
    """
    matches = home.memories.find_like(reference.strip())
    if not matches:
        hint = "nacre list shows ids"
        if len(reference) >= MIN_ID_CHARACTERS:
            if home.sessions.find(reference.strip()):
                hint = f"nacre sessions show {reference}"
            elif home.candidates.find(reference.strip()):
                hint = f"it is a candidate: nacre review keep {reference} stores it"
        raise NotFoundError(f"there is no memory {reference!r}", hint=hint)
    refuse_several((memory.id for memory in matches), reference, "memories")
    return matches[0]


def edit(home: Home, reference: str, *, expected: str | None = None, **changes: Any) -> Memory:
    """Change fields of a memory and return it. ``add_tags`` adds tags.

    A subject that was derived from the content is derived again. Raises NotFoundError,
    InvalidMemoryError, or EditConflictError if ``expected`` is not the etag of the file.
    """
    with home.change("update") as change:
        scan(home)
        if expected is not None:
            refuse_changed(home, reference, expected)
        fold_usage(home, _FOLDING_SECONDS)
        memory = get(home, reference)
        refuse_broken(home, memory)
        if "importance" in changes and not 1 <= changes["importance"] <= 10:
            raise InvalidMemoryError(f"importance must be 1 to 10, not {changes['importance']}")
        if changes.get("project"):
            changes["project"] = _project_slug(home, changes["project"])
        if "project" in changes:
            changes["inbox"] = False
        if (
            "content" in changes
            and "subject" not in changes
            and memory.subject == title_of(memory.content)
        ):
            changes["subject"] = title_of(changes["content"])
        tags = (*changes.get("tags", memory.tags), *changes.pop("add_tags", ()))
        changes["tags"] = tuple(dict.fromkeys(tags))
        limited = limit_triggers(home, memory, changes.pop("trigger_times", None))
        changed = redact(home.redactor, replace(limited, **changes, updated=home.now()))
        if replace(changed, updated=memory.updated) == memory:
            return memory
        if changed.content != memory.content:
            changed = replace(changed.as_worded())
        names = (field.name for field in fields(Memory) if field.name != "updated")
        why = ", ".join(name for name in names if getattr(memory, name) != getattr(changed, name))
        change.describe(subject=changed.subject, why=why)
        with change.transaction():
            change.put([changed])
        return changed


def refuse_changed(home: Home, reference: str, expected: str) -> None:
    """Raise EditConflictError if the etag of a memory's file is not the expected one."""
    memory = get(home, reference)
    if expected != etag_of(home, memory):
        raise EditConflictError(
            f"{memory.subject!r} has changed since you read it", hint="read it again"
        )


def etag_of(home: Home, memory: Memory) -> str | None:
    """Return the hash of a memory's file, or ``None`` if the memory has no file."""
    file = home.files.file_of(memory.id)
    return file.hash.hex() if file else None


def retire(home: Home, references: Sequence[str], reason: str | None = None) -> list[Memory]:
    """Retire memories, which moves their files to ``retired/`` and excludes them from recall.

    Memories that they superseded become active again. Raises NotFoundError, or ConflictError for a
    retired memory or an ambiguous reference.
    """
    with home.change("retire") as change:
        scan(home)
        fold_usage(home, _FOLDING_SECONDS)
        memories = list(by_id(get(home, reference) for reference in references).values())
        for memory in memories:
            refuse_retired(memory)
            refuse_broken(home, memory)
        ids = {memory.id for memory in memories}
        clean = home.redactor.clean(reason) if reason else None
        change.describe(subject=subject_of(memories), why=clean)
        with change.transaction():
            return [_retire(change, memory, clean, ids) for memory in memories]


def refuse_retired(memory: Memory) -> None:
    """Raise ConflictError if a memory is retired."""
    if memory.retired:
        raise ConflictError(
            f"{memory.subject!r} is already retired",
            hint=f"its file is in retired/: nacre show {memory.id}",
        )


def _retire(change: Change, memory: Memory, reason: str | None, ids: Collection[str]) -> Memory:
    home = change.home
    if len(ids) > FEW:
        change.yield_locks()
    current = home.memories.find(memory.id) or memory
    if current.retired:
        return current  # handled by another process
    retired = replace(current, retired=Retirement(home.now(), reason))
    reactivated = [old for old in release(home, [retired]) if old.id not in ids]
    entry = change.entry("retire", memory=memory.id, reason=reason)
    change.put([retired, *reactivated], [entry])
    return retired


def open_todo(home: Home, reference: str) -> Memory:
    """Return a todo by id or subject, or the only open todo that contains all the given words.

    Raises NotFoundError, ConflictError if several match, or InvalidMemoryError if it is not a todo.
    """
    try:
        memory = get(home, reference)
    except NotFoundError:
        todos, total = list_active(home, Filter(kinds=(Kind.TODO,)), limit=3, words=reference)
        if total > 1:
            names = ", ".join(f"{todo.subject!r} ({todo.id[-8:]})" for todo in todos)
            raise ConflictError(
                f"{reference!r} matches several todos: {names}", hint="give more words, or the id"
            ) from None
        if not todos:
            raise
        return todos[0]
    if memory.kind is not Kind.TODO:
        raise InvalidMemoryError(
            f"{memory.subject!r} is a {memory.kind}, not a todo", hint="nacre todo lists them"
        )
    return memory


def list_active(
    home: Home, criteria: Filter, *, limit: int, offset: int = 0, words: str = ""
) -> tuple[list[Memory], int]:
    """Return a page of active memories that contain all ``words``, and their total number."""
    catch_up(home)
    criteria, today = with_dependencies(home, criteria), home.today()
    rows, total = home.selection.list_memories(
        criteria, limit=limit, offset=offset, today=today, words=words.split()
    )
    return list(home.memories.by_rows(rows).values()), total


def refuse_broken(home: Home, memory: Memory) -> None:
    """Raise InvalidMemoryError if a file is malformed, to avoid overwriting the user's edit."""
    file = home.files.file_of(memory.id)
    problem = next(
        (text for text in home.problems if file and text.startswith(f"{file.path}: ")), None
    )
    if problem:
        raise InvalidMemoryError(
            problem, hint="correct the file first; until then, recall uses the last valid version"
        )


def project_asked_for(
    home: Home, new: StoreRequest, project_of: Callable[[Home, Path], str | None] = known_or_named
) -> str | None:
    """Return the project that a request names, or else the project of its folder, if any."""
    return _project_slug(home, new.project) or (
        project_of(home, Path(new.folder)) if new.folder else None
    )


def _project_slug(home: Home, name: str | None) -> str | None:
    return home.files.name_now(slugify(home.redactor.clean(name))) or None if name else None
