"""Retire by id, subject or pattern, also what is stored later; and take it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import msgspec

from nacre.errors import Conflict, NotFound, QueryInvalid
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.views import Listing, MemoryView, Step
from nacre.memories import store, usage
from nacre.memories.decision import (
    EditRequest,
    GetRequest,
    ListRequest,
    ReferenceRequest,
    ReferencesRequest,
    RetireRequest,
    as_agent_may,
    is_owners,
    wish,
)
from nacre.memories.edit import catch_up
from nacre.memories.judge import SUPPRESSED, fits, plain
from nacre.memories.store import get as store_get
from nacre.memories.store import retire
from nacre.memories.tombstones import RETIRE_ALWAYS, RETIRE_NO_LONGER, heed_ledger, rule_of
from nacre.memories.usage import bring_back
from nacre.values.memory import Match, Memory, StandingRetirement
from nacre.vault import files

NEARLY = 0.8
"""The share of letters in common, of both subjects, from which one is nearly the other: a word misspelt or more."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Memories that are to be retired, and as what they were named: (pattern, how it matches, canonical key).

    ``is_wider`` says that a subject or pattern means more memories than were named.
    """

    memories: tuple[Memory, ...]
    named: tuple[tuple[str, Match, str | None], ...]
    is_wider: bool = False


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """What is not retired any more: memories, and standing retirements that stand no longer."""

    memories: tuple[Memory, ...] = ()
    rules: tuple[StandingRetirement, ...] = ()


def choose(
    home: Home,
    references: Sequence[str],
    contains: Sequence[str] = (),
    *,
    subjects: Sequence[str] = (),
    like: Sequence[str] = (),
    persist: bool = False,
) -> Chosen:
    """The active memories that are meant: by references (ids or pieces of them, subjects, patterns with ``*``), about
    ``subjects``, with a subject that contains a text, or with one that is nearly a text (``like``).

    Letter case and spaces do not count; in what is nearly a subject, nor does the order of its words. Raises NotFound
    where one means nothing (with ``persist``, a subject or pattern may), Conflict for a piece of an id that means
    several, and for what is retired already.
    """
    catch_up(home)
    active = [
        one for one in home.memories.in_any_state(sorted(home.memories.all_ids())) if one.is_active
    ]
    choice = _Choice(home, active, persist=persist)
    for text in references:
        choice.add_named(text, Match.PATTERN if "*" in text else Match.EXACT)
    for text in contains:
        choice.add_named(text, Match.CONTAINS)
    for text in subjects:
        choice.add_about(text, _about(active, text), may_be_none=persist)
    for text in like:
        choice.add_about(text, _nearly(active, text), is_wider=True)
    return Chosen(tuple(choice.found.values()), tuple(choice.named), choice.is_wider)


class _Choice:
    """The memories chosen so far, and what they were named by."""

    def __init__(self, home: Home, active: Sequence[Memory], *, persist: bool) -> None:
        self._home, self._active, self._persist = home, active, persist
        self.found: dict[str, Memory] = {}
        self.named: list[tuple[str, Match, str | None]] = []
        self.is_wider = False

    def add_named(self, text: str, match: Match) -> None:
        """Add what a subject, a pattern or an id refers to. Raises QueryInvalid, NotFound, Conflict."""
        if not text.strip(" *"):
            raise QueryInvalid(
                f"{text!r} would retire everything", hint="say what the subjects have in common"
            )
        meant = [one for one in self._active if fits(one.subject, text, match)]
        name, key = text, None
        if match is Match.EXACT and not meant:
            meant = _by_id(self._home, text, persist=self._persist)
            name, key = (meant[0].subject, meant[0].canonical_key) if meant else (text, None)
        if not meant and not self._persist:
            hint = "nacre list shows subjects; --persist keeps later ones out"
            raise NotFound(f"no memory is about {text!r}", hint=hint)
        self.named.append((name, match, key))
        self._add(meant)

    def add_about(
        self,
        text: str,
        meant: Sequence[Memory],
        *,
        may_be_none: bool = False,
        is_wider: bool = False,
    ) -> None:
        """Add memories about a subject, each named by its own. Raises NotFound."""
        if not meant and not may_be_none:
            raise NotFound(f"no memory is about {text!r}", hint="nacre list shows subjects")
        self.named += [(one.subject, Match.EXACT, one.canonical_key) for one in meant] or [
            (text, Match.EXACT, None)
        ]
        self.is_wider |= is_wider
        self._add(meant)

    def _add(self, meant: Sequence[Memory]) -> None:
        self.is_wider |= len(meant) > 1
        self.found.update((one.id, one) for one in meant)


def _about(active: Sequence[Memory], text: str) -> list[Memory]:
    return [one for one in active if fits(one.subject, text, Match.EXACT)]


def _nearly(active: Sequence[Memory], text: str) -> list[Memory]:
    """Memories whose subject has nearly the letters of a text, whatever the order of its words."""
    if not text.strip():
        raise QueryInvalid("an empty subject would retire everything", hint="say what it is about")
    wanted = SequenceMatcher(None, "", _in_order(text), autojunk=False)
    return [one for one in active if _is_near(wanted, _in_order(one.subject))]


def _is_near(wanted: SequenceMatcher[str], subject: str) -> bool:
    wanted.set_seq1(subject)
    return wanted.quick_ratio() >= NEARLY and wanted.ratio() >= NEARLY


def _in_order(text: str) -> str:
    return " ".join(sorted(plain(text).split()))


def retire_chosen(
    home: Home, chosen: Chosen, reason: str | None = None, *, persist: bool = False
) -> tuple[list[Memory], list[StandingRetirement]]:
    """Retire what was chosen; with ``persist`` also whatever is stored later under the same name.

    Returns the memories and the standing retirements as they are now. What an agent asks for is done to its own
    memories; for those of the owner, which stay, it waits for review. Raises Conflict, EditConflict, OwnerOnly.
    """
    if home.actor.is_agent:
        return _retire_for_agent(home, chosen.memories, reason, persist=persist), []
    rules = _stand(home, chosen, reason) if persist else []
    retired = retire(home, [one.id for one in chosen.memories], reason) if chosen.memories else []
    return retired, rules


def _retire_for_agent(
    home: Home, memories: Sequence[Memory], reason: str | None, *, persist: bool
) -> list[Memory]:
    if persist and not memories:
        home.actor.require_owner("keeping out what is stored later")
    waiting = [one for one in memories if persist or is_owners(one)]
    what = "retired, and kept out from then on" if persist else "retired"
    wish(home, waiting, f"{what}: {reason}" if reason else what)
    kept = {one.id for one in waiting}
    own = [one.id for one in memories if one.id not in kept]
    retired = {one.id: one for one in (retire(home, own, reason) if own else ())}
    return [retired.get(one.id, one) for one in memories]


def unretire(home: Home, references: Sequence[str]) -> BroughtBack:
    """Bring memories back that were retired or superseded, and end standing retirements, by their ids or ends of them.

    What superseded a memory stays beside it: both then hold. Raises NotFound, Conflict.
    """
    with home.vault_lock:
        catch_up(home)
        rules = [rule for one in references if (rule := _rule(home, one.strip()))]
        others = [one for one in references if not _rule(home, one.strip())]
        ids = list(dict.fromkeys(store_get(home, one).id for one in others))
        memories = tuple(bring_back(home, memory_id) for memory_id in ids)
        if rules:
            with home.change(RETIRE_NO_LONGER) as change, change.transaction():
                change.append([change.entry(RETIRE_NO_LONGER, rule=rule.id) for rule in rules])
            heed_ledger(home)
        return BroughtBack(memories, tuple(rules))


def list_retired(home: Home) -> list[Memory]:
    """Every retired memory, the latest first."""
    catch_up(home)
    every = home.memories.in_any_state(sorted(home.memories.all_ids()))
    found = [(one.retired.at, one.id, one) for one in every if one.retired]
    return [one for *_, one in sorted(found, key=lambda item: item[:2], reverse=True)]


def list_standing(home: Home) -> list[StandingRetirement]:
    """Every standing retirement, the oldest first."""
    catch_up(home)
    return home.tombstones.standing()


def _stand(home: Home, chosen: Chosen, reason: str | None) -> list[StandingRetirement]:
    clean = home.redactor.clean(reason) if reason else None
    with home.change(RETIRE_ALWAYS, why=clean) as change, change.transaction():
        present = {(rule.pattern, rule.match) for rule in home.tombstones.standing()}
        entries = [
            _rule_entry(change, pattern, match, key, clean)
            for pattern, match, key in dict.fromkeys(chosen.named)
            if (pattern, match) not in present
        ]
        rules = [rule for item in entries if (rule := rule_of(item))]
        change.append(entries)
        home.tombstones.add_standing(rules)
    return rules


def _rule_entry(
    change: Change, pattern: str, match: Match, key: str | None, reason: str | None
) -> files.LedgerEntry:
    optional = {"canonical_key": key, "reason": reason}
    return change.entry(
        RETIRE_ALWAYS,
        rule=change.home.ids(),
        subject_pattern=pattern,
        match_type=match.value,
        suppressed_contexts=list(SUPPRESSED),
        **{name: value for name, value in optional.items() if value},
    )


def _by_id(home: Home, reference: str, *, persist: bool) -> list[Memory]:
    try:
        found = store_get(home, reference)
    except NotFound:
        if persist:
            return []
        raise
    if found.retired:
        raise Conflict(
            f"{found.subject!r} is retired already",
            hint=f"it lies in retired/: nacre show {found.id}",
        )
    return [found]


def _rule(home: Home, reference: str) -> StandingRetirement | None:
    rules = home.tombstones.standing()
    found = [
        rule
        for rule in rules
        if rule.id == reference or (len(reference) >= 4 and rule.id.endswith(reference))
    ]
    return found[0] if len(found) == 1 else None


# ----------------------------------------------------------------------------
# What is answered to requests about single memories; :mod:`nacre.serve.catalogue` lists them.


_NO_CHANGES = ("reference", "expected")
"""Fields of a request to edit that say which memory is meant."""


def list_memories(home: Home, request: ListRequest) -> Listing:
    """Active memories, the newest first, and how many there are in all."""
    found, total = store.list_active(
        home,
        request.filter,
        words=request.words,
        limit=max(0, request.limit),
        offset=max(0, request.offset),
    )
    return Listing(tuple(found), total)


def get(home: Home, request: GetRequest) -> Memory:
    """One memory, also a retired one. Raises NotFound, Conflict."""
    return usage.read_memory(
        home, request.reference, update=request.update, session=request.session
    )


def show(home: Home, request: GetRequest) -> MemoryView:
    """One memory with its evidence and links. Raises NotFound, Conflict."""
    return usage.look_at(home, request.reference, update=request.update, session=request.session)


def history(home: Home, request: ReferenceRequest) -> list[Step]:
    """A memory with all that it superseded and all that superseded it, the oldest first. Raises NotFound."""
    return usage.history_of(home, request.reference)


def edit(home: Home, request: EditRequest) -> Memory:
    """Change fields of a memory; returns it as it is now. Raises NotFound, EditConflict, MemoryInvalid.

    What an agent wants changed of the owner's waits for review; its own memories stay proposals.
    """
    changes = changes_of(request)
    if home.actor.is_agent:
        memory = store.get(home, request.reference)
        if is_owners(memory):
            wish(home, [memory], f"changed: {_in_words(changes)}")
            return memory
        changes = as_agent_may(memory, changes)
    return store.edit(home, request.reference, expected=request.expected, **changes)


def _in_words(changes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_plainly(value)}" for name, value in changes.items())


def _plainly(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def changes_of(request: EditRequest) -> dict[str, Any]:
    """The fields that change, with their new values."""
    given = (
        (name, getattr(request, name))
        for name in request.__struct_fields__
        if name not in _NO_CHANGES
    )
    return {name: value for name, value in given if value is not msgspec.UNSET}


def finish_todos(home: Home, request: ReferencesRequest) -> list[Memory]:
    """Retire todos as done; what an agent says of the owner's waits for review. Raises NotFound, MemoryInvalid."""
    done = []
    for reference in request.references:
        todo = store.open_todo(home, reference)
        if home.actor.is_agent and is_owners(todo):
            wish(home, [todo], "retired: done")
            done.append(todo)
        else:
            done.append(store.retire(home, [todo.id], "done")[0])
    return done


def choose_answers(home: Home, request: RetireRequest) -> Chosen:
    """The memories that retiring would take out of recall; nothing is changed. Raises NotFound, Conflict."""
    return choose(
        home,
        request.references,
        request.contains,
        subjects=request.subjects,
        like=request.like,
        persist=request.persist,
    )


def retire_memories(home: Home, request: RetireRequest) -> list[Memory]:
    """Take memories out of recall; their files are kept. Raises NotFound, Conflict, OwnerOnly.

    What an agent asks for is done to its own memories; for those of the owner, which stay, it waits for review.
    """
    chosen = choose_answers(home, request)
    return retire_chosen(home, chosen, request.reason, persist=request.persist)[0]


def unretire_answers(home: Home, request: ReferencesRequest) -> BroughtBack:
    """Bring memories back that were retired or superseded, and end standing retirements. Raises NotFound, Conflict."""
    return unretire(home, request.references)
