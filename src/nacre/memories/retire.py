"""Retire memories by id, subject or pattern, including memories stored later, and restore them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from difflib import SequenceMatcher
from typing import Any

import msgspec

from nacre.base.frozen import frozen
from nacre.errors import InvalidQueryError, NotFoundError
from nacre.home.home import Home
from nacre.home.views import Listing
from nacre.memories import store
from nacre.memories.edit import catch_up
from nacre.memories.history import bring_back
from nacre.memories.judge import SUPPRESSED, fits, plain
from nacre.memories.requests import EditRequest, ListRequest, RetireRequest, as_agent_may, wish
from nacre.memories.store import retire
from nacre.memories.tombstones import RETIRE_ALWAYS, RETIRE_NO_LONGER, heed_ledger, rule_of
from nacre.operations import operation
from nacre.values.fields import References
from nacre.values.memory import Match, Memory, StandingRetirement, by_id

NEARLY = 0.8
"""Minimum share of letters that similar subjects have in common. Allows at least one typo."""


@frozen
class RetirePlan:
    """The memories to retire.

    ``named`` contains the names in the request, each with its kind of match and its canonical key.
    ``is_wider`` is True if the request includes similar subjects, or several memories match a name.
    """

    memories: tuple[Memory, ...]
    named: tuple[tuple[str, Match, str | None], ...]
    is_wider: bool = False


@frozen
class BroughtBack:
    """The memories that were restored, and the standing retirements that ended."""

    memories: tuple[Memory, ...] = ()
    rules: tuple[StandingRetirement, ...] = ()


@operation("retire-plan", by_key=True)
def choose(home: Home, request: RetireRequest) -> RetirePlan:
    """Return the active memories that a request would retire, without changing them.

    A reference is an id, a part of an id, a subject, or a pattern with ``*``. ``contains`` lists
    parts of subjects, and ``like`` lists similar subjects. Case and spaces are ignored. Word order
    is ignored in ``like``. Raises NotFoundError if a reference matches nothing, but with
    ``persist``, subjects and patterns need not match. Raises ConflictError for ambiguous ids and
    retired memories.
    """
    catch_up(home)
    active = [memory for memory in home.memories.everything() if memory.is_active]
    persist = request.persist
    patterns = [
        (text, Match.PATTERN if "*" in text else Match.EXACT) for text in request.references
    ]
    patterns += [(text, Match.CONTAINS) for text in request.contains]
    chosen = [_named(home, active, text, match, persist=persist) for text, match in patterns]
    for text in request.like:
        similar = _similar_to(active, text)
        names = [(memory.subject, Match.EXACT, memory.canonical_key) for memory in similar]
        chosen.append((names, similar))
    return RetirePlan(
        tuple({memory.id: memory for _, matches in chosen for memory in matches}.values()),
        tuple(name for names, _ in chosen for name in names),
        bool(request.like) or any(len(matches) > 1 for _, matches in chosen),
    )


_Named = tuple[list[tuple[str, Match, str | None]], Sequence[Memory]]


def _named(
    home: Home, active: Sequence[Memory], text: str, match: Match, *, persist: bool
) -> _Named:
    if not text.strip(" *"):
        raise InvalidQueryError(
            f"{text!r} matches all memories",
            hint="give a pattern with words that the subjects have in common",
        )
    matches = [memory for memory in active if fits(memory.subject, text, match)]
    name, key = text, None
    if match is Match.EXACT and not matches:
        with suppress(NotFoundError) if persist else nullcontext():
            memory = store.get(home, text)
            store.refuse_retired(memory)
            matches, name, key = [memory], memory.subject, memory.canonical_key
    if not matches and not persist:
        hint = "nacre list shows subjects; --persist retires later ones too"
        raise NotFoundError(f"no memory is about {text!r}", hint=hint)
    return [(name, match, key)], matches


def _similar_to(active: Sequence[Memory], text: str) -> list[Memory]:
    if not text.strip():
        raise InvalidQueryError("an empty subject would retire everything", hint="give the subject")
    matcher = SequenceMatcher(None, "", " ".join(sorted(plain(text).split())), autojunk=False)
    similar = []
    for memory in active:
        matcher.set_seq1(" ".join(sorted(plain(memory.subject).split())))
        if matcher.quick_ratio() >= NEARLY and matcher.ratio() >= NEARLY:
            similar.append(memory)
    if not similar:
        raise NotFoundError(f"no memory is about {text!r}", hint="nacre list shows subjects")
    return similar


def retire_chosen(
    home: Home, chosen: RetirePlan, reason: str | None = None, *, persist: bool = False
) -> tuple[list[Memory], list[StandingRetirement]]:
    """Retire the chosen memories. Return them and any new standing retirements.

    With ``persist``, matching memories that are stored later are retired, too. An agent's request
    for memories other than its own is queued for review. Raises ConflictError for a retired memory,
    OwnerOnlyError if an agent chose no stored memory, or EditConflictError.
    """
    if home.actor.is_agent:
        return _retire_for_agent(home, chosen.memories, reason, persist=persist), []
    rules = _add_rules(home, chosen, reason) if persist else []
    retired = (
        retire(home, [memory.id for memory in chosen.memories], reason) if chosen.memories else []
    )
    return retired, rules


def _retire_for_agent(
    home: Home, memories: Sequence[Memory], reason: str | None, *, persist: bool
) -> list[Memory]:
    if persist and not memories:
        home.actor.require_owner("retiring memories that are stored later")
    pending = [memory for memory in memories if persist or memory.is_owners]
    action = "retired, now and whenever stored" if persist else "retired"
    wish(home, pending, f"{action}: {reason}" if reason else action)
    pending_ids = {memory.id for memory in pending}
    own_ids = [memory.id for memory in memories if memory.id not in pending_ids]
    retired = by_id(retire(home, own_ids, reason) if own_ids else ())
    return [retired.get(memory.id, memory) for memory in memories]


@operation("unretire", writes=True, owners=True, command="retire --restore")
def unretire(home: Home, references: References) -> BroughtBack:
    """Restore retired or superseded memories, and end standing retirements.

    Each reference is an id or the last characters of an id. The successor of a restored memory
    stays active. Raises NotFoundError, ConflictError.
    """
    with home.vault_lock:
        catch_up(home)
        rules_by_reference = {reference: _rule(home, reference.strip()) for reference in references}
        rules = [rule for rule in rules_by_reference.values() if rule]
        memory_references = [
            reference for reference, rule in rules_by_reference.items() if not rule
        ]
        ids = dict.fromkeys(store.get(home, reference).id for reference in memory_references)
        memories = tuple(bring_back(home, memory_id) for memory_id in ids)
        if rules:
            with home.change(RETIRE_NO_LONGER) as change, change.transaction():
                change.append([change.entry(RETIRE_NO_LONGER, rule=rule.id) for rule in rules])
            heed_ledger(home)
        return BroughtBack(memories, tuple(rules))


@operation("retired", by_key=True)
def list_retired(home: Home) -> list[Memory]:
    """List all retired memories, latest first."""
    catch_up(home)
    memories = home.memories.everything()
    retired = {(memory.retired.at, memory.id): memory for memory in memories if memory.retired}
    return [retired[key] for key in sorted(retired, reverse=True)]


@operation("retired-standing", by_key=True)
def list_standing(home: Home) -> list[StandingRetirement]:
    """List all standing retirements, oldest first."""
    catch_up(home)
    return home.tombstones.standing()


def _add_rules(home: Home, chosen: RetirePlan, reason: str | None) -> list[StandingRetirement]:
    clean = home.redactor.clean(reason) if reason else None
    with home.change(RETIRE_ALWAYS, why=clean) as change, change.transaction():
        present = {(rule.pattern, rule.match) for rule in home.tombstones.standing()}
        entries = [
            change.entry(
                RETIRE_ALWAYS,
                rule=home.ids(),
                subject_pattern=pattern,
                match_type=match.value,
                suppressed_contexts=list(SUPPRESSED),
                canonical_key=key,
                reason=clean,
            )
            for pattern, match, key in dict.fromkeys(chosen.named)
            if (pattern, match) not in present
        ]
        rules = [rule for item in entries if (rule := rule_of(item))]
        change.append(entries)
        home.tombstones.add_standing(rules)
    return rules


def _rule(home: Home, reference: str) -> StandingRetirement | None:
    matches = [
        rule
        for rule in home.tombstones.standing()
        if rule.id == reference or (len(reference) >= 4 and rule.id.endswith(reference))
    ]
    return matches[0] if len(matches) == 1 else None


# -- Operations ----------------------------------------------------------------


_IDENTIFYING_FIELDS = ("reference", "expected")


@operation("list", by_key=True)
def list_memories(home: Home, request: ListRequest) -> Listing:
    """List active memories, newest first, and their total number."""
    memories, total = store.list_active(
        home,
        request.filter,
        words=request.words,
        limit=request.limit,
        offset=request.offset,
    )
    newer = home.reviews.newer([memory.id for memory in memories])
    return Listing(tuple(memories), total, {} if request.filter.as_of else newer)


@operation("edit", writes=True, by_key=True)
def edit(home: Home, request: EditRequest) -> Memory:
    """Change fields of a memory and return the memory.

    If an agent changes the owner's memory, the change is queued for review. A memory from an agent
    stays a proposal. Raises NotFoundError, EditConflictError, InvalidMemoryError.
    """
    changes = changes_of(request)
    if home.actor.is_agent:
        memory = store.get(home, request.reference)
        if memory.is_owners:
            described = ", ".join(
                f"{name} {' '.join(map(str, value)) if isinstance(value, tuple) else value}"
                for name, value in changes.items()
            )
            wish(home, [memory], f"changed: {described}")
            return memory
        changes = as_agent_may(memory, changes)
    return store.edit(home, request.reference, expected=request.expected, **changes)


def changes_of(request: EditRequest) -> dict[str, Any]:
    """Return a request's new values by field name."""
    fields = (
        (name, getattr(request, name))
        for name in request.__struct_fields__
        if name not in _IDENTIFYING_FIELDS
    )
    return {name: value for name, value in fields if value is not msgspec.UNSET}


@operation("todo-done", writes=True, by_key=True)
def finish_todos(home: Home, references: References) -> list[Memory]:
    """Retire todos as done.

    An agent's requests about the owner's todos are queued for review. Raises NotFoundError,
    InvalidMemoryError.
    """
    done = []
    for reference in references:
        todo = store.open_todo(home, reference)
        if home.actor.is_agent and todo.is_owners:
            wish(home, [todo], "retired: done")
            done.append(todo)
        else:
            done.append(store.retire(home, [todo.id], "done")[0])
    return done


@operation("retire", writes=True, by_key=True)
def retire_memories(home: Home, request: RetireRequest) -> list[Memory]:
    """Retire memories. The files of the memories are kept.

    An agent can retire only its own memories. An agent's request to retire the owner's memories is
    queued for review. Raises NotFoundError, ConflictError, OwnerOnlyError.
    """
    chosen = choose(home, request)
    return retire_chosen(home, chosen, request.reason, persist=request.persist)[0]
