"""The plan of a dream: made by rules, bounded, and checked against the memories it names before anything is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from nacre.dream import rules
from nacre.dream.brought_back import may_end
from nacre.dream.checks import unfit
from nacre.dream.consulting import Outcome
from nacre.dream.orphan_links import orphaned
from nacre.dream.relations import link_objection
from nacre.dream.reorganising.filing import filed, may_be_shelved, shelved
from nacre.dream.reorganising.joining import joined
from nacre.dream.reorganising.pages import promoted
from nacre.dream.repetitions import holds, repeated
from nacre.dream.requests import DreamPlanRequest
from nacre.dream.third_tier import NOT_CONSULTED, consulted
from nacre.dream.values import DreamAction, DreamEstimate, DreamPlan, PageDraft, Promotion, Step
from nacre.dream.writing import asked, asked_of_writer, estimate
from nacre.home.home import Home
from nacre.memories.quality import is_protected
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage
from nacre.text.passages import one_line, shorten
from nacre.values.memory import Memory
from nacre.values.reports import OnProgress
from nacre.values.review import Usage

LEAST_A_NIGHT, SHARE_A_NIGHT = 20, 0.02
"""So many memories one dream may end, or that share of those there are; whichever is more."""

_ASKED = 500
_TEXT_CHARACTERS = 160


def planned(
    home: Home, request: DreamPlanRequest, *, background: bool = False, on_progress: OnProgress | None = None
) -> DreamPlan:
    """What a dream would do, of all projects or one; nothing is changed. What ends first is what is over longest.

    From tier 2 on the writer is asked, in tier 3 also the inbox and the pages are looked at, and the writer is asked
    about pages and links. Raises ModelRefused where the writer cannot be opened.
    """
    joins = joined(home, request.project) if request.tier > 2 else []
    apart = frozenset(step.subject for step in joins)
    memories, free, usage, steps = _by_rules(home, request.project, apart)
    found, unasked, note = Outcome(), 0, None
    if request.tier > 1 and request.writer:
        found, unasked, note = asked_of_writer(
            home, _staying(free, steps), usage, background=background, on_progress=on_progress
        )
    steps += found.steps
    steps += orphaned(home, _staying(memories, steps))
    more, promotions, unfiled = NOT_CONSULTED, list[Promotion](), None
    if request.tier > 2:
        staying = _staying(memories, steps)
        if request.writer:
            more = consulted(
                home, staying, request.project, asked(home), background=background, on_progress=on_progress
            )
        moved, promotions, unfiled = _reorganised(home, request, staying, usage, more.drafts)
        concerned = apart | {step.project for step in joins}  # their pages are told anew when they are one
        steps += [*(one for one in moved if one.project not in concerned), *joins, *more.steps]
    bound = max(LEAST_A_NIGHT, int(len(memories) * SHARE_A_NIGHT)) if request.most is None else request.most
    taken, put_off = _bounded(sorted(steps, key=lambda one: _ORDER.index(one.action)), bound)
    return DreamPlan(
        tuple(taken), tuple(put_off), len(memories), bound, request.project, found.refused,
        (*found.settled, *more.settled), unasked + more.unasked, _together(note, more.note), tuple(promotions),
        unfiled, _texts(taken, memories), len(memories) - len(free), more.looked,
    )  # fmt: skip


def _together(*notes: str | None) -> str | None:
    """What went wrong, each thing once."""
    return "; ".join(dict.fromkeys(one for one in notes if one)) or None


def _texts(steps: Sequence[Step], memories: Sequence[Memory]) -> tuple[tuple[str, str], ...]:
    """What those memories say that one stays in the place of, and those that are linked."""
    pairs = (step for step in steps if step.into and (step.ends or step.action is DreamAction.LINK))
    named = {one for step in pairs for one in (*step.ends, step.into, *step.links)}
    return tuple((one.id, shorten(one_line(one.content), _TEXT_CHARACTERS)) for one in memories if one.id in named)


_ORDER = [
    DreamAction.UNLINK, DreamAction.SUPERSEDE, DreamAction.MERGE, DreamAction.EXPIRE, DreamAction.FORGET,
    DreamAction.SHELVE, DreamAction.FILE, DreamAction.LINK, DreamAction.PAGE, DreamAction.JOIN,
]  # fmt: skip


def _reorganised(
    home: Home,
    request: DreamPlanRequest,
    memories: Sequence[Memory],
    usage: Mapping[str, Usage],
    drafts: Mapping[str, PageDraft],
) -> tuple[list[Step], list[Promotion], tuple[str, ...] | None]:
    """What goes from the inbox into projects, or is retired there, and the pages of projects; what was found of these,
    and what of the inbox nobody could file."""
    waiting = memories if request.project is None else [one for one in home.memories.everything() if one.is_active]
    inbox = [one for one in waiting if one.inbox]
    steps = filed(home, inbox, request.project)
    pages, promotions = promoted(home, memories, request.project, drafts, backfill=request.backfill)
    if request.project is not None:
        return [*steps, *pages], promotions, None
    going = {step.into for step in steps}
    unfiled = [one for one in inbox if one.id not in going]
    steps += shelved(home, may_end(home, unfiled), usage, home.now(), home.settings.texts("forgetting.protect"))
    return [*steps, *pages], promotions, tuple(one.id for one in unfiled)


def estimated(home: Home, request: DreamPlanRequest) -> DreamEstimate:
    """What asking the writer would take."""
    memories, free, _, steps = _by_rules(home, request.project)
    return estimate(
        home, _staying(free, steps), _staying(memories, steps) if request.tier > 2 else None, request.project
    )


def _staying(memories: Sequence[Memory], steps: Sequence[Step]) -> list[Memory]:
    named = {memory_id for step in steps for memory_id in (*step.ends, step.into)}
    return [one for one in memories if one.id not in named]


def _by_rules(
    home: Home, project: str | None, apart: Collection[str] = ()
) -> tuple[list[Memory], list[Memory], Mapping[str, Usage], list[Step]]:  # fmt: skip
    """The active memories, those of them that may end, how all were used, and what rules alone would do.

    What is of projects ``apart`` is left for another dream: it is moved as a whole in this one.
    """
    catch_up(home)
    fold_usage(home)
    memories = [one for one in home.memories.everything() if one.is_active and project in (None, one.project)]
    memories = [one for one in memories if one.project not in apart]
    usage = usage_of(home, memories)
    protected = home.settings.texts("forgetting.protect")
    free = may_end(home, memories)
    steps = rules.ending(free, usage, home.now(), home.settings)
    gone = {memory_id for step in steps for memory_id in step.ends}
    return memories, free, usage, [*repeated([one for one in free if one.id not in gone], usage, protected), *steps]


def _bounded(steps: Sequence[Step], most: int) -> tuple[list[Step], list[Step]]:
    taken: list[Step] = []
    put_off: list[Step] = []
    ending = 0
    for step in steps:
        left = most - ending
        now, later = (step, None) if len(step.ends) <= left else (None, step)
        if later and left > 0 and not step.by:  # as much of it as one dream ends
            now, later = replace(step, ends=step.ends[:left]), replace(step, ends=step.ends[left:])
        if now:
            taken.append(now)
            ending += len(now.ends)
        if later:
            put_off.append(later)
    return taken, put_off


def usage_of(home: Home, memories: Sequence[Memory]) -> Mapping[str, Usage]:
    """How memories were used; those never used are left out."""
    found: dict[str, Usage] = {}
    for start in range(0, len(memories), _ASKED):
        found |= home.usage.of([one.id for one in memories[start : start + _ASKED]])
    return found


def objection(step: Step, present: Mapping[str, Memory], protected: Sequence[str]) -> str | None:
    """What speaks against a step, by the memories as they are now; ``None`` where nothing does.

    Every memory it names is there and holds; no protected one ends; who stays in the place of others holds what they
    say, is of their kind and place, and does not end itself. What the vault says against filing, pages and joining,
    their own modules tell.
    """
    gone = [present.get(one) for one in step.ends]
    if any(one is None or not one.is_active for one in gone) or len(set(step.ends)) != len(step.ends):
        return "it is not there any more"
    if step.action is DreamAction.UNLINK:
        return _objection_to_unlinking(step, present)
    ending = [one for one in gone if one]
    if any(is_protected(one, protected) for one in ending):
        return "it is protected now"
    if step.action in (DreamAction.MERGE, DreamAction.SUPERSEDE):
        keeper = present.get(step.into or "")
        if keeper is None or not keeper.is_active or keeper.id in step.ends:
            return "what was to stay is not there any more"
        if step.by:
            return unfit(step, present)
        if any(one.kind is not keeper.kind or not one.shares_place(keeper) for one in ending):
            return "they are not of one kind and place any more"
        return None if all(holds(keeper, one) for one in ending) else "what stays does not hold all of it any more"
    if step.action is DreamAction.SHELVE and not all(may_be_shelved(one, protected) for one in ending):
        return "it does not wait in the inbox any more, or is a person's"
    return _objection_without_an_end(step, present)


def _objection_without_an_end(step: Step, present: Mapping[str, Memory]) -> str | None:
    if step.action is DreamAction.LINK:
        return link_objection(step, present)
    if step.action is DreamAction.PAGE:
        return "a page ends nothing" if step.ends else None
    if step.action is DreamAction.FILE:
        return None if step.project and not step.ends else "it names no project"
    return "it names what stays" if step.into else None


def _objection_to_unlinking(step: Step, present: Mapping[str, Memory]) -> str | None:
    memory = present.get(step.into or "")
    if memory is None or not memory.is_active:
        return "it is not there any more"
    if step.ends or not step.links or not {link.to for link in memory.links}.issuperset(step.links):
        return "it has other links now"
    return "a link leads somewhere again" if any(one in present for one in step.links) else None
