"""Dreams: planning by rules and a writer, execution, and the diary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.base.request import Request
from nacre.base.text import one_line, shorten
from nacre.base.times import shown, shown_day
from nacre.data.undo import undo
from nacre.errors import NotFoundError
from nacre.home.change import Change, Pin
from nacre.home.home import Home
from nacre.home.location import projects
from nacre.home.operations import subject_of
from nacre.memories.edit import catch_up, scan
from nacre.memories.judge import OUTLIVED, SUPERSEDES, mark_ended
from nacre.memories.placement import as_confirmation
from nacre.memories.usage import fold_usage, is_protected
from nacre.operations import operation
from nacre.recall.pins import PinCheck, check_pins
from nacre.review.consolidate import (
    DreamAction,
    DreamPlan,
    DreamReport,
    MemoriesById,
    Step,
    plan_ending,
    writer_of,
)
from nacre.review.pages import (
    MERGED,
    Cluster,
    clusters,
    contains,
    page_objection,
    page_write,
    plan_merging,
    plan_pages,
    unfit,
)
from nacre.review.questions import (
    Consulted,
    Outcome,
    ask_about_clusters,
    consult,
    note_looked,
    note_settled,
)
from nacre.values.fields import OnlyProject
from nacre.values.memory import Confirmation, Intent, Link, Memory, Retirement, by_id
from nacre.values.reports import OnProgress
from nacre.values.review import Reason
from nacre.vault import files


class DreamPlanRequest(Request):
    """A request to plan a dream."""

    project: OnlyProject = None
    tier: Annotated[
        int,
        bounds(
            "1: rules only. 2: also the writer. 3: also pages.",
            ge=1,
            le=3,
        ),
    ] = 1
    most: (
        Annotated[
            int,
            bounds(
                "Maximum number of memories to retire; default: 2 % of all, at least 20.",
                ge=0,
            ),
        ]
        | None
    ) = None
    writer: Annotated[bool, bounds("Use the writer, if one is set (tiers 2 and 3).")] = True


class DreamRequest(DreamPlanRequest):
    """A request for a dream: plan, check and execute."""

    steps: Annotated[
        tuple[str, ...] | None,
        bounds("Only these steps of a plan that was shown, by their keys."),
    ] = None
    first: Annotated[bool, bounds("Run even if no dream was ever planned in this home.")] = False


# -- Similar memories for manual tidying --------------------------------------


@frozen
class Alike:
    """Groups of similar memories, most similar first, and the total number of groups."""

    groups: tuple[Cluster, ...]
    total: int


@operation("alike", by_key=True)
def alike(
    home: Home,
    *,
    project: OnlyProject = None,
    limit: Annotated[int, bounds("Maximum number of groups.", ge=1, le=500)] = 20,
) -> Alike:
    """Return groups of similar memories, which need not be duplicates.

    No model is used. Without vectors, the result is empty.
    """
    catch_up(home)
    memories = [memory for memory in home.memories.everything() if memory.is_active]
    groups = clusters(home, [memory for memory in memories if project in (None, memory.project)])
    return Alike(tuple(groups[:limit]), len(groups))


# -- Restored memories --------------------------------------------------------
# An active memory that a dream retired according to the ledger was restored by the owner, and no dream
# retires it again. The ledger survives rebuilds and is shared by machines.


DREAM = "dream"
ENDED = "ended"
"""Names in the ledger for a dream and for the memories that it retired."""

_ENTRY = re.compile(rb'"action": ?"dream"')


def may_end(home: Home, memories: Iterable[Memory]) -> list[Memory]:
    """Return the memories that no dream has ever retired."""
    ended = []
    for entry in files.read_about(home.ledger(), _ENTRY):
        listed = entry.details.get(ENDED) if entry.action == DREAM else None
        ended += listed if isinstance(listed, list) else []
    ids = {memory_id for memory_id in ended if isinstance(memory_id, str)}
    return [memory for memory in memories if memory.id not in ids]


# -- Applying steps to memories -----------------------------------------------


_MAX_CONFIRMATIONS = 20


def apply_steps(home: Home, steps: Sequence[Step], memories: MemoriesById) -> dict[str, Memory]:
    """Return the changed versions of the memories that the steps keep or supersede."""
    changed: dict[str, Memory] = {}
    for step in steps:
        present = {**memories, **changed}
        keeper = present.get(step.into or "")
        if keeper and step.action is DreamAction.MERGE:
            keeper = _enrich_keeper(home, step, keeper, present)
            changed |= by_id(_redirect_superseded(home, step, keeper, present))
        elif keeper:
            links = tuple(Link(SUPERSEDES, end, f"{step.why} ({step.by})") for end in step.ends)
            ended = (mark_ended(present[end], keeper) for end in step.ends)
            changed |= by_id((*ended, replace(keeper, links=(*keeper.links, *links))))
    return changed


def _enrich_keeper(home: Home, step: Step, keeper: Memory, memories: MemoriesById) -> Memory:
    # An owner's memory gets nothing from an agent's memory.
    duplicates = [
        memories[end] for end in step.ends if memories[end].is_owners or not keeper.is_owners
    ]
    own = {(link.rel, link.to) for link in keeper.links}
    merged = {keeper.id, *step.ends}
    links = [
        link
        for memory in duplicates
        for link in memory.links
        if (link.rel, link.to) not in own and link.to not in merged
    ]
    confirmations = [*keeper.confirmed, *chain.from_iterable(map(_sayings, duplicates))]
    confirmations.sort(key=lambda confirmation: confirmation.at)
    distinct = {(item.session, item.turns): item for item in confirmations}
    keys = (memory.canonical_key for memory in (keeper, *duplicates))
    key = next(filter(None, keys), None)
    if step.by:
        provenance = {
            "by": step.by,
            "at": home.now().isoformat(),
            "of": [keeper.id, *step.ends],
            "why": step.why,
        }
        keeper = replace(keeper, extra={**keeper.extra, MERGED: provenance})
    if step.words:
        keeper = replace(keeper, content=step.words, subject=step.subject)
    return replace(
        keeper,
        created=min(memory.created for memory in (keeper, *duplicates)),
        importance=max(memory.importance for memory in (keeper, *duplicates)),
        tags=tuple(sorted({*keeper.tags, *(tag for memory in duplicates for tag in memory.tags)})),
        links=(*keeper.links, *dict.fromkeys(links)),
        confirmed=tuple(distinct.values())[-_MAX_CONFIRMATIONS:],
        canonical_key=key,
    )


def _sayings(memory: Memory) -> list[Confirmation]:
    if not (memory.is_owners and memory.source.session):
        return list(memory.confirmed)
    return [as_confirmation(memory), *memory.confirmed]


def _redirect_superseded(
    home: Home, step: Step, keeper: Memory, memories: MemoriesById
) -> list[Memory]:
    old = [
        memory
        for end in step.ends
        for memory in home.memories.replaced_by(end)
        if not memory.retired
    ]
    old = [memories.get(memory.id, memory) for memory in old if memory.id != keeper.id]
    linked = {link.to for link in keeper.links if link.rel == SUPERSEDES}
    links = tuple(Link(SUPERSEDES, memory.id) for memory in old if memory.id not in linked)
    followed = [replace(memory, superseded_by=keeper.id) for memory in old]
    return [*followed, replace(keeper, links=(*keeper.links, *links))]


def retire(change: Change, steps: Sequence[Step], memories: MemoriesById) -> None:
    """Retire the memories that the steps merge, expire or forget.

    Memories that an expired or unused one had superseded are retired, too.
    """
    home = change.home
    now = home.now()
    retired, entries = [], []
    for step in steps:
        if step.action is DreamAction.SUPERSEDE:
            continue
        reason = f"says the same as {step.into}" if step.into else f"{step.action}: {step.why}"
        ending = [(memories[end], reason) for end in step.ends]
        for end in step.ends if not step.into else ():
            outlived = home.memories.replaced_by(end)
            ending += [(old, OUTLIVED) for old in outlived if not old.retired]
        for memory, why in ending:
            retired.append(replace(memory, retired=Retirement(now, why)))
            entries.append(change.entry("retire", memory=memory.id, reason=why))
    change.put(retired, entries)


# -- The diary (``dreams/<day>.md``) ------------------------------------------


FOLDER = "dreams"
_HEADINGS = {
    DreamAction.MERGE: "Merged duplicates",
    DreamAction.SUPERSEDE: "Superseded by a later statement",
    DreamAction.EXPIRE: "Expired",
    DreamAction.FORGET: "Forgotten: never recalled",
    DreamAction.PAGE: "Pages",
}
_LINE_CHARACTERS = 160


def diary_path(now: datetime) -> str:
    """Return the path of a day's diary."""
    return f"{FOLDER}/{shown_day(now)}.md"


def render_diary(report: DreamReport, memories: MemoriesById, now: datetime) -> str:
    """Return the section about a dream in the day's diary."""
    plan = report.plan
    ending = plan.ending - sum(len(step.ends) for step, _ in report.left)
    summary = f"{plan.seen:,} memories checked, {ending:,} retired; {report.operation}."
    lines = [f"## {shown(now, '%H:%M')}", "", summary]
    left_ids = {id(step) for step, _ in report.left}
    for action, heading in _HEADINGS.items():
        steps = [step for step in plan.steps if step.action is action and id(step) not in left_ids]
        if steps:
            lines += ["", f"### {heading}", ""]
            lines += [line for step in steps for line in _diary_lines(step, memories)]
    if plan.put_off:
        lines += [
            "",
            f"{len(plan.put_off):,} more steps are postponed: a dream retires at most {plan.most:,} "
            "memories.",
        ]
    if plan.refused:
        lines += [
            "",
            f"{len(plan.refused):,} of the writer's proposals were rejected; see `nacre review`.",
        ]
    lines += [""] if report.left else []
    for step, why in report.left:
        named = _memory_line(step.memories[0], memories) if step.memories else step.subject
        lines.append(f"- skipped: {named}: {why}")
    return "\n".join([*lines, ""])


def _diary_lines(step: Step, memories: MemoriesById) -> list[str]:
    if step.action is DreamAction.PAGE:
        return [f"- {step.project or step.subject}: {step.why}"]
    if not step.into:
        return [f"- {_memory_line(end, memories)}: {step.why}" for end in step.ends]
    by = f"; {step.by}: {step.why}" if step.by else ""
    kept, ended = ("kept", "merged") if step.action is DreamAction.MERGE else ("holds", "ended")
    lines = [f"- {kept}: {_memory_line(step.into, memories)}{by}"]
    if step.words:
        lines.append(f"  - new text: {shorten(one_line(step.words), _LINE_CHARACTERS)}")
    return [*lines, *(f"  - {ended}: {_memory_line(end, memories)}" for end in step.ends)]


def _memory_line(memory_id: str, memories: MemoriesById) -> str:
    memory = memories.get(memory_id)
    text = shorten(" ".join(memory.content.split()), _LINE_CHARACTERS) if memory else "?"
    return f"{text} ({memory_id[-8:]})"


# -- Planning a dream ----------------------------------------------------------


LEAST_A_NIGHT, SHARE_A_NIGHT = 20, 0.02
"""Maximum number and maximum share of memories that a dream retires. The larger one applies."""

_TEXT_CHARACTERS = 160


def make_plan(
    home: Home,
    request: DreamPlanRequest,
    *,
    background: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> DreamPlan:
    """Plan a dream for one or all projects, without changing anything.

    Tiers 2 and 3 ask the writer, and tier 3 also plans pages. Raises ModelRefusedError if the
    writer cannot be opened, OwnerOnlyError, and NotFoundError for an empty project.
    """
    if request.tier > 1 and not background:
        home.actor.require_owner("nacre dream --tier 2")
    catch_up(home)
    fold_usage(home)
    memories = [
        memory
        for memory in home.memories.everything()
        if memory.is_active and request.project in (None, memory.project)
    ]
    has_none = request.project and not memories
    if has_none and (request.tier < 3 or request.project not in projects(home)):
        raise NotFoundError(
            f"project {request.project!r} has no memories",
            hint="nacre list shows the projects of memories",
        )
    usage = home.usage.of([memory.id for memory in memories])
    free = may_end(home, memories)
    steps = plan_ending(free, usage, home.now(), home.settings)
    protected = home.settings.texts("forgetting.protect")
    steps += plan_merging(_staying(free, steps), usage, protected)
    outcome, consulted, unasked = Outcome(), Consulted({}), 0
    is_asked = request.tier > 1 and request.writer
    writer = writer_of(home, background=background) if is_asked else nullcontext((None, None))
    with writer as (model, note):
        if model:
            outcome, unasked, note = ask_about_clusters(
                home, model, _staying(free, steps), usage, on_progress
            )
        steps += outcome.steps
        staying = _staying(memories, steps)
        if model and request.tier > 2:
            consulted = consult(home, model, staying, request.project, on_progress)
    pages, unwritten = (
        plan_pages(home, staying, request.project, consulted.drafts)
        if request.tier > 2
        else ([], [])
    )
    steps += pages
    bound = request.most
    if bound is None:
        bound = max(LEAST_A_NIGHT, int(len(memories) * SHARE_A_NIGHT))
    steps.sort(key=lambda step: list(DreamAction).index(step.action))
    chosen, put_off = _split_at_bound(steps, bound)
    return DreamPlan(
        tuple(chosen),
        tuple(put_off),
        len(memories),
        bound,
        request.project,
        outcome.refused,
        outcome.settled,
        unasked + consulted.unasked,
        "; ".join(dict.fromkeys(filter(None, (note, consulted.note)))) or None,
        tuple(unwritten),
        _texts(chosen, memories),
        len(memories) - len(free),
        consulted.looked,
        tuple(step.key for step in chosen),
    )


def _texts(steps: Sequence[Step], memories: Sequence[Memory]) -> tuple[tuple[str, str], ...]:
    pairs = (step for step in steps if step.into and step.ends)
    named = {memory_id for step in pairs for memory_id in step.memories}
    return tuple(
        (memory.id, shorten(one_line(memory.content), _TEXT_CHARACTERS))
        for memory in memories
        if memory.id in named
    )


def _staying(memories: Sequence[Memory], steps: Sequence[Step]) -> list[Memory]:
    named = {memory_id for step in steps for memory_id in step.memories}
    return [memory for memory in memories if memory.id not in named]


def _split_at_bound(steps: Sequence[Step], most: int) -> tuple[list[Step], list[Step]]:
    chosen, put_off, room = [], [], most
    for step in steps:
        if len(step.ends) > room > 0 and not step.by:  # split the step at the limit
            chosen.append(replace(step, ends=step.ends[:room]))
            put_off.append(replace(step, ends=step.ends[room:]))
            room = 0
        elif len(step.ends) <= room:
            chosen.append(step)
            room -= len(step.ends)
        else:
            put_off.append(step)
    return chosen, put_off


def objection(step: Step, present: MemoriesById, protected: Sequence[str]) -> str | None:
    """Return the reason why a step is no longer possible, or ``None``.

    The memories to retire must be active and unprotected, and the kept one must still contain their
    text.
    """
    ending = [present[end] for end in {*step.ends} if end in present and present[end].is_active]
    if len(ending) < len(step.ends):
        return "a memory to retire is no longer active"
    if any(is_protected(memory, protected) for memory in ending):
        return "a memory to retire is now protected"
    if step.action in (DreamAction.MERGE, DreamAction.SUPERSEDE):
        keeper = present.get(step.into or "")
        if keeper is None or not keeper.is_active or keeper.id in step.ends:
            return "the memory to keep no longer exists"
        if step.by:
            return unfit(step, present)
        is_held = all(
            memory.kind is keeper.kind and memory.shares_place(keeper) and contains(keeper, memory)
            for memory in ending
        )
        return None if is_held else "the kept memory no longer contains all of it"
    return None


# -- Executing a dream --------------------------------------------------------
# Kept memories are saved before other memories are retired. Steps whose memories have changed since
# the plan are skipped and reported.


_LOCK = "dream.lock"
_PATIENCE_SECONDS = 1.0
_LAST_KEY = "dreamt"
"""Key for the time of the last dream or plan."""

_PLAN_SHOWN_KEY = "dream shown"
_WRITER_PLAN_SHOWN_KEY = "dream shown by a writer"
"""Keys for the times when the owner last saw any plan, and one with the writer's steps."""

_PROPOSALS = {
    DreamAction.MERGE: "considers it the same as",
    DreamAction.SUPERSEDE: "considers it ended by",
}

A_DAY = timedelta(hours=20)
"""Minimum time between automatic dreams."""

_PAGE = "# Dreams of {day}\n\nAutomatic changes to memories. `nacre undo` reverts a dream.\n\n"


@operation("dream-plan", takes_long=True)
def plan(
    home: Home, request: DreamPlanRequest, on_progress: OnProgress = lambda _: None
) -> DreamPlan:
    """Plan a dream. Nothing is changed.

    From tier 2 on, the writer is asked, which can cost money. By default, dreams change memories
    only after the owner has seen a plan. Raises NotFoundError for a project without memories,
    ModelRefusedError.
    """
    plan_ = make_plan(home, request, on_progress=on_progress)
    if not home.actor.is_agent:
        with home.transaction():
            _note_shown(home, plan_)
    return plan_


def _note_shown(home: Home, plan_: DreamPlan) -> None:
    home.usage.set_value(_PLAN_SHOWN_KEY, home.now().isoformat())
    if any(step.by for step in plan_.steps):
        home.usage.set_value(_WRITER_PLAN_SHOWN_KEY, home.now().isoformat())


@operation("dream", writes=True, takes_long=True, owners=True)
def dream(
    home: Home, request: DreamRequest, on_progress: OnProgress = lambda _: None
) -> DreamReport:
    """Plan and execute a dream. The first dream only plans, unless ``first`` is set or a plan was shown.

    Raises NotFoundError, StoreBusyError, OwnerOnlyError, ModelRefusedError.
    """
    home.actor.require_owner("nacre dream")
    with FileLock(home.settings.home / _LOCK, _PATIENCE_SECONDS):
        plan_ = make_plan(home, request, on_progress=on_progress)
        if request.steps is not None:
            plan_ = _restrict(plan_, request.steps)
        return _dream(home, plan_, may_act=request.first)


def _restrict(plan_: DreamPlan, keys: Sequence[str]) -> DreamPlan:
    chosen = tuple(step for step in plan_.steps if step.key in keys)
    postponed = tuple(step for step in plan_.steps if step.key not in keys)
    return replace(
        plan_,
        steps=chosen,
        put_off=(*plan_.put_off, *postponed),
        keys=tuple(step.key for step in chosen),
    )


def dream_if_due(home: Home) -> DreamReport | None:
    """Run the daily dream if it is due and ``dream.at_night`` is set.

    Raises StoreBusyError if another dream is running.
    """
    last = home.usage.value(_LAST_KEY)
    if not home.settings.flag("dream.at_night") or (
        last and home.now() - datetime.fromisoformat(last) < A_DAY
    ):
        return None
    with FileLock(home.settings.home / _LOCK, _PATIENCE_SECONDS):
        plan_ = make_plan(home, DreamPlanRequest(tier=3), background=True)
        return _dream(home, plan_, may_act=False)


def _dream(home: Home, plan_: DreamPlan, *, may_act: bool) -> DreamReport:
    full_plan, is_first = plan_, not (may_act or home.usage.value(_PLAN_SHOWN_KEY))
    if not (
        may_act or home.usage.value(_WRITER_PLAN_SHOWN_KEY)
    ):  # the owner must first see a plan with such steps
        plan_ = _restrict(plan_, [step.key for step in plan_.steps if not step.by])
    report = DreamReport(plan_, is_first=True) if is_first else carry_out(home, plan_)
    undone = [*plan_.put_off, *(step for step, _ in report.left)]
    undone += () if report.operation else plan_.steps
    unwritten = {step.project for step in undone if step.action is DreamAction.PAGE}
    with home.vault_lock, home.transaction():
        home.usage.set_value(_LAST_KEY, home.now().isoformat())
        _note_shown(home, full_plan)
        note_settled(home, plan_.settled)
        note_looked(home, [page for page in plan_.looked if page[0] not in unwritten])
        _have_reviewed(home, plan_)
    return report


def _have_reviewed(home: Home, plan_: DreamPlan) -> None:
    present = _present(home, [step for step, _ in plan_.refused])
    for step, why in plan_.refused:
        if all(
            memory_id in present and present[memory_id].is_active for memory_id in step.memories
        ):
            stays = present[step.into or ""]
            words = f", with this text: {step.words}" if step.words else ""
            detail = f"a writer {_PROPOSALS[step.action]} {stays.subject} ({stays.id[-8:]}){words}; not done: {why}"
            for end in step.ends:
                home.reviews.add(end, Reason.MERGE, detail, home.now_ms(), once=True)


def carry_out(home: Home, plan_: DreamPlan) -> DreamReport:
    """Execute a plan, but skip steps that are outdated or would lose a pinned answer.

    If such an answer is lost anyway, undo all steps.
    """
    if not plan_.steps:
        return DreamReport(plan_)
    scan(home)
    pins = [pin for pin in check_pins(home) if pin.holds]
    with home.change(DREAM) as change:
        memories = _present(home, plan_.steps)
        skipped = _objections(home, plan_.steps, memories, pins)
        steps = [step for step in plan_.steps if step not in skipped]
        if not steps:
            return DreamReport(plan_, left=tuple(skipped.items()))
        changed = apply_steps(home, steps, memories)
        ending = [memories[end] for step in steps for end in step.ends]
        pages = [step for step in steps if step.action is DreamAction.PAGE]
        subject = subject_of(ending or list(changed.values()))
        change.describe(subject=subject or pages[0].subject)
        if changed:
            change.put(list(changed.values()))
            change.apply()  # write kept memories to disk before retiring other memories
        with change.transaction():
            change.intend([page_write(home, step.project, step.words) for step in pages])
            retire(change, steps, memories)
            report = DreamReport(
                plan_, change.operation.id, diary_path(home.now()), tuple(skipped.items())
            )
            _note(change, report, memories)
            if ending:
                change.note(DREAM, **{ENDED: [memory.id for memory in ending]})
    held = {pin.question for pin in pins}
    now = check_pins(home) if pins else ()
    broken = _lost(pin for pin in now if pin.question in held and not pin.holds)
    if broken:
        undo(home, change.operation.id)
        check_pins(home)
        return DreamReport(plan_, left=tuple((step, broken) for step in plan_.steps))
    return report


def _lost(pins: Iterable[PinCheck]) -> str | None:
    questions = "; ".join(pin.question for pin in pins)
    return f"it would break a pinned answer: {questions}" if questions else None


def _pin_objection(step: Step, memories: MemoriesById, pins: Sequence[PinCheck]) -> str | None:
    keeper = memories.get(step.into or "")
    kept_text = f"{keeper.subject} {step.words or keeper.content}" if keeper else ""
    changed = {*step.ends, *([step.into] if step.words else ())}
    return _lost(
        pin
        for pin in pins
        if pin.memories
        and changed.issuperset(pin.memories)
        and not Pin(pin.question, pin.answer).is_in(kept_text)
    )


def _present(home: Home, steps: Iterable[Step]) -> dict[str, Memory]:
    ids = {memory_id for step in steps for memory_id in step.memories}
    return by_id(home.memories.in_any_state(sorted(ids)))


def _objections(
    home: Home, steps: Sequence[Step], memories: MemoriesById, pins: Sequence[PinCheck]
) -> dict[Step, str]:
    protected = home.settings.texts("forgetting.protect")
    reasons = {}
    for step in steps:
        why = objection(step, memories, protected) or _find_edit(home, step)
        if not why and step.action is DreamAction.PAGE:
            why = page_objection(home, step)
        why = why or _pin_objection(step, memories, pins)
        if why:
            reasons[step] = why
    return reasons


def _find_edit(home: Home, step: Step) -> str | None:
    for memory_id in step.memories:
        file = home.files.file_of(memory_id)
        if file is None:
            continue
        try:
            is_same = bytes_hash(home.vault.read(file.path)) == file.hash
        except FileNotFoundError:
            is_same = False
        if not is_same:
            return "it is being edited"
    return None


def _note(change: Change, report: DreamReport, memories: MemoriesById) -> None:
    home, now = change.home, change.home.now()
    path = diary_path(now)
    data = home.vault.read(path) if home.vault.exists(path) else None
    former = data.decode("utf-8", "replace") if data is not None else None
    before = _PAGE.format(day=shown_day(now)) if former is None else former
    text = home.redactor.clean(f"{before.rstrip()}\n\n{render_diary(report, memories, now)}")
    base = bytes_hash(data) if data is not None else None
    change.intend([Intent("write", path, text, base, former=former)])
