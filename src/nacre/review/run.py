"""Dreams: planning with rules and a writer, checks, and execution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.base.text import one_line, shorten
from nacre.base.times import shown_day
from nacre.data.undo import undo
from nacre.errors import ModelRefusedError, NotFoundError
from nacre.home.change import Change, Pin
from nacre.home.home import Home
from nacre.home.location import projects
from nacre.home.operations import subject_of
from nacre.home.spending import NONE, name_for
from nacre.memories.edit import catch_up, scan
from nacre.memories.store import fold_usage
from nacre.memories.usage import is_protected
from nacre.operations import operation
from nacre.recall.pins import PinCheck, check_pins
from nacre.review import consolidate
from nacre.review import dream as diary
from nacre.review.consolidate import (
    DreamAction,
    DreamPlan,
    DreamReport,
    MemoriesById,
    PageDraft,
    Step,
)
from nacre.review.dream import (
    DREAM,
    ENDED,
    DreamPlanRequest,
    DreamRequest,
    Filing,
    apply_steps,
    gone_for_good,
    may_end,
    plan_filing,
    plan_unlinking,
    retire,
)
from nacre.review.pages import (
    holds,
    page_objection,
    page_write,
    plan_merging,
    plan_pages,
    unfit,
)
from nacre.review.pages_by_writer import (
    NOT_CONSULTED,
    ask_about_clusters,
    consult,
    note_looked,
    note_settled,
)
from nacre.review.relations import Outcome
from nacre.store.memories import UsageById
from nacre.values.memory import Intent, Memory, by_id
from nacre.values.reports import OnProgress
from nacre.values.review import Reason
from nacre.values.session import Task

LEAST_A_NIGHT, SHARE_A_NIGHT = 20, 0.02
"""Maximum number and maximum share of memories that one dream retires. The larger limit applies."""

_TEXT_CHARACTERS = 160


def make_plan(
    home: Home,
    request: DreamPlanRequest,
    *,
    background: bool = False,
    on_progress: OnProgress | None = None,
) -> DreamPlan:
    """Plan a dream for one or all projects. Nothing is changed.

    Memories that have been outdated for the longest time are retired first. From tier 2 on, the
    writer is asked. Tier 3 also plans changes of the inbox and pages. Raises
    ModelRefusedError if the writer cannot be opened.
    """
    memories, free, usage, steps = _by_rules(home, request.project)
    outcome, unasked, note = Outcome(), 0, None
    if request.tier > 1 and request.writer:
        outcome, unasked, note = ask_about_clusters(
            home, _staying(free, steps), usage, background=background, on_progress=on_progress
        )
    steps += outcome.steps
    steps += plan_unlinking(home, _staying(memories, steps))
    consulted_, unwritten, unfiled = NOT_CONSULTED, list[tuple[str, str]](), tuple[str, ...]()
    if request.tier > 2:
        staying = _staying(memories, steps)
        if request.writer:
            consulted_ = consult(
                home,
                staying,
                request.project,
                background=background,
                on_progress=on_progress,
            )
        moved, unwritten, unfiled = _plan_tidying(home, request, staying, consulted_.drafts)
        steps += moved
    bound = request.most
    if bound is None:
        bound = max(LEAST_A_NIGHT, int(len(memories) * SHARE_A_NIGHT))
    steps.sort(key=lambda step: _ORDER.index(step.action))
    taken, put_off = _split_at_bound(steps, bound)
    return DreamPlan(
        tuple(taken),
        tuple(put_off),
        len(memories),
        bound,
        request.project,
        outcome.refused,
        outcome.settled,
        unasked + consulted_.unasked,
        "; ".join(dict.fromkeys(filter(None, (note, consulted_.note)))) or None,
        tuple(unwritten),
        unfiled,
        _texts(taken, memories),
        len(memories) - len(free),
        consulted_.looked,
    )


def _texts(steps: Sequence[Step], memories: Sequence[Memory]) -> tuple[tuple[str, str], ...]:
    """Return the id and shortened text of each memory in a merge or a replacement."""
    pairs = (step for step in steps if step.into and step.ends)
    named = {memory_id for step in pairs for memory_id in (*step.ends, step.into)}
    return tuple(
        (memory.id, shorten(one_line(memory.content), _TEXT_CHARACTERS))
        for memory in memories
        if memory.id in named
    )


_ORDER = [
    DreamAction.UNLINK,
    DreamAction.SUPERSEDE,
    DreamAction.MERGE,
    DreamAction.EXPIRE,
    DreamAction.FORGET,
    DreamAction.FILE,
    DreamAction.PAGE,
]


def _plan_tidying(
    home: Home,
    request: DreamPlanRequest,
    memories: Sequence[Memory],
    drafts: Mapping[str, PageDraft],
) -> tuple[list[Step], list[tuple[str, str]], tuple[str, ...]]:
    waiting = memories if request.project is None else home.memories.everything()
    inbox = [memory for memory in waiting if memory.inbox and memory.is_active]
    steps = plan_filing(home, inbox, request.project)
    pages, unwritten = plan_pages(
        home, memories, request.project, drafts, backfill=request.backfill
    )
    going = {step.into for step in steps}
    unfiled = [memory.id for memory in inbox if memory.id not in going and not request.project]
    return [*steps, *pages], unwritten, tuple(unfiled)


def _staying(memories: Sequence[Memory], steps: Sequence[Step]) -> list[Memory]:
    named = {memory_id for step in steps for memory_id in (*step.ends, step.into)}
    return [memory for memory in memories if memory.id not in named]


def _by_rules(
    home: Home, project: str | None
) -> tuple[list[Memory], list[Memory], UsageById, list[Step]]:
    """Plan the steps that rules decide without a model.

    Return the active memories, the memories that may be retired, the usage data, and the steps.
    """
    catch_up(home)
    fold_usage(home)
    memories = [
        memory
        for memory in home.memories.everything()
        if memory.is_active and project in (None, memory.project)
    ]
    usage = home.usage.of([memory.id for memory in memories])
    protected = home.settings.texts("forgetting.protect")
    free = may_end(home, memories)
    steps = consolidate.plan_ending(free, usage, home.now(), home.settings)
    ended = {memory_id for step in steps for memory_id in step.ends}
    staying = [memory for memory in free if memory.id not in ended]
    return memories, free, usage, [*plan_merging(staying, usage, protected), *steps]


def _split_at_bound(steps: Sequence[Step], most: int) -> tuple[list[Step], list[Step]]:
    kept: list[Step] = []
    put_off: list[Step] = []
    ending = 0
    for step in steps:
        left = most - ending
        now, later = (step, None) if len(step.ends) <= left else (None, step)
        if later and left > 0 and not step.by:  # split the step at the bound
            now, later = replace(step, ends=step.ends[:left]), replace(step, ends=step.ends[left:])
        if now:
            kept.append(now)
            ending += len(now.ends)
        if later:
            put_off.append(later)
    return kept, put_off


def objection(step: Step, present: MemoriesById, protected: Sequence[str]) -> str | None:
    """Return the reason why a step is no longer possible, or ``None``.

    All memories must be active. Memories to retire must be unprotected. A kept memory must contain
    the statements of the retired memories, and have the same kind and place.
    """
    ending = [present[end] for end in {*step.ends} if end in present and present[end].is_active]
    if len(ending) < len(step.ends):
        return "it no longer exists"
    if step.action is DreamAction.UNLINK:
        return _objection_to_unlinking(step, present)
    if any(is_protected(memory, protected) for memory in ending):
        return "it is now protected"
    if step.action in (DreamAction.MERGE, DreamAction.SUPERSEDE):
        keeper = present.get(step.into or "")
        if keeper is None or not keeper.is_active or keeper.id in step.ends:
            return "the memory to keep no longer exists"
        if step.by:
            return unfit(step, present)
        if any(
            memory.kind is not keeper.kind or not memory.shares_place(keeper) for memory in ending
        ):
            return "they no longer share their kind and place"
        is_held = all(holds(keeper, memory) for memory in ending)
        return None if is_held else "the kept memory no longer contains all of it"
    return None


def _objection_to_unlinking(step: Step, present: MemoriesById) -> str | None:
    memory = present.get(step.into or "")
    if memory is None or not memory.is_active:
        return "it no longer exists"
    if step.ends or not step.links or not {link.to for link in memory.links}.issuperset(step.links):
        return "its links have changed"
    return "a link has a target again" if any(link in present for link in step.links) else None


# -- Executing a dream --------------------------------------------------------
# Kept memories are written durably before other memories are retired. Memories that changed since the
# plan are skipped and reported.


_LOCK = "dream.lock"
_PATIENCE_SECONDS = 1.0
_LAST = "dreamt"
"""Key for the time when a dream last ran or was planned."""

_SHOWN = "dream shown"
_SHOWN_BY_WRITER = "dream shown by a writer"
"""Keys for the times when the owner last saw any plan, and a plan with a writer's steps."""

_PROPOSALS = {
    DreamAction.MERGE: "considers it the same as",
    DreamAction.SUPERSEDE: "considers it ended by",
}

A_DAY = timedelta(hours=20)
"""Minimum time between automatic dreams."""

_PAGE = "# Dreams of {day}\n\nAutomatic changes to memories. `nacre undo` reverts a dream.\n\n"


@operation("dream-plan", takes_long=True)
def plan(home: Home, request: DreamPlanRequest, on_progress: OnProgress | None = None) -> DreamPlan:
    """Plan a dream. Nothing is changed.

    From tier 2 on, the writer is asked, which can cost money. By default, dreams change memories
    only after the owner has seen a plan. Raises NotFoundError for a project without memories,
    ModelRefusedError.
    """
    plan_ = _plan(home, request, on_progress)
    if not home.actor.is_agent:
        with home.transaction():
            _note_shown(home, plan_)
    return plan_


def _plan(home: Home, request: DreamPlanRequest, on_progress: OnProgress | None) -> DreamPlan:
    if request.tier > 1:
        home.actor.require_owner("nacre dream --tier 2")
    plan_ = make_plan(home, request, on_progress=on_progress)
    if (
        request.project
        and not plan_.seen
        and (request.tier < 3 or request.project not in projects(home))
    ):
        raise NotFoundError(
            f"project {request.project!r} has no memories",
            hint="nacre list shows the projects of memories",
        )
    return replace(plan_, keys=tuple(step.key for step in plan_.steps))


def _note_shown(home: Home, plan_: DreamPlan) -> None:
    home.usage.set_value(_SHOWN, home.now().isoformat())
    if any(step.by for step in plan_.steps):
        home.usage.set_value(_SHOWN_BY_WRITER, home.now().isoformat())


@operation("dream", writes=True, takes_long=True, owners=True)
def dream(home: Home, request: DreamRequest, on_progress: OnProgress | None = None) -> DreamReport:
    """Plan and execute a dream. The first dream only plans, unless ``first`` is set or a plan was shown.

    Raises NotFoundError, StoreBusyError, OwnerOnlyError, ModelRefusedError.
    """
    home.actor.require_owner("nacre dream")
    with FileLock(home.settings.home / _LOCK, _PATIENCE_SECONDS):
        plan_ = _plan(home, request, on_progress)
        if request.steps is not None:
            plan_ = _restrict(plan_, request.steps)
        return _dream(home, plan_, may_act=request.first)


def _restrict(plan_: DreamPlan, keys: Sequence[str]) -> DreamPlan:
    """Restrict a plan to the steps with the given keys. Postpone all other steps."""
    shown = tuple(step for step in plan_.steps if step.key in keys)
    rest = tuple(step for step in plan_.steps if step.key not in keys)
    return replace(
        plan_, steps=shown, put_off=(*plan_.put_off, *rest), keys=tuple(step.key for step in shown)
    )


def dream_if_due(home: Home) -> DreamReport | None:
    """Run the daily dream if the dream is enabled and due. Raises StoreBusyError.

    Call this function while nacre is idle. The setting ``dream.at_night`` enables the dream. The
    writer is asked only if models may run in the background.
    """
    last = home.usage.value(_LAST)
    if not home.settings.flag("dream.at_night") or (
        last and home.now() - datetime.fromisoformat(last) < A_DAY
    ):
        return None
    with FileLock(home.settings.home / _LOCK, _PATIENCE_SECONDS):
        may_ask = home.settings.flag("models.background") and name_for(home, Task.DREAM) != NONE
        try:
            plan_ = make_plan(home, DreamPlanRequest(tier=3, writer=may_ask), background=True)
        except ModelRefusedError as error:  # plan without the writer
            plan_ = make_plan(home, DreamPlanRequest(tier=3, writer=False))
            plan_ = replace(plan_, note=error.message)
        return _dream(home, plan_, may_act=False)


def _dream(home: Home, plan_: DreamPlan, *, may_act: bool) -> DreamReport:
    shown, is_first = plan_, not (may_act or home.usage.value(_SHOWN))
    if not (
        may_act or home.usage.value(_SHOWN_BY_WRITER)
    ):  # the owner must first see a plan with such steps
        plan_ = _restrict(plan_, [step.key for step in plan_.steps if not step.by])
    report = DreamReport(plan_, is_first=True) if is_first else carry_out(home, plan_)
    with home.vault_lock, home.transaction():
        home.usage.set_value(_LAST, home.now().isoformat())
        _note_shown(home, shown)
        note_settled(home, plan_.settled)
        note_looked(home, _pages_without_proposals(report))
        _have_reviewed(home, plan_)
    return report


def _pages_without_proposals(report: DreamReport) -> list[tuple[str, tuple[str, ...]]]:
    planned = (*report.plan.steps, *report.plan.put_off)
    waiting = {step.project for step in planned if step.action is DreamAction.PAGE}
    waiting -= {step.project for step in _done(report) if step.action is DreamAction.PAGE}
    return [(project, marks) for project, marks in report.plan.looked if project not in waiting]


def _done(report: DreamReport) -> list[Step]:
    left = [step for step, _ in report.left]
    return [step for step in report.plan.steps if step not in left] if report.operation else []


def _have_reviewed(home: Home, plan_: DreamPlan) -> None:
    """Queue the writer's rejected proposals for review."""
    present = _present(home, [step for step, _ in plan_.refused])
    for step, why in plan_.refused:
        if all(
            memory_id in present and present[memory_id].is_active
            for memory_id in (*step.ends, step.into)
            if memory_id
        ):
            stays = present[step.into or ""]
            words = f", with this text: {step.words}" if step.words else ""
            detail = f"a writer {_PROPOSALS[step.action]} {stays.subject} ({stays.id[-8:]}){words}; not done: {why}"
            for end in step.ends:
                home.reviews.add(end, Reason.MERGE, detail, home.now_ms(), once=True)


def carry_out(home: Home, plan_: DreamPlan) -> DreamReport:
    """Execute the steps of a dream's plan, except steps whose memories have changed.

    Steps that would remove a pinned answer are left out. If a pinned answer is lost anyway, all
    steps are undone.
    """
    if not plan_.steps:
        return DreamReport(plan_)
    scan(home)
    pins = [pin for pin in check_pins(home) if pin.holds]
    with home.change(DREAM) as change:
        memories = _present(home, plan_.steps)
        left = _objections(home, plan_.steps, memories, pins)
        steps = [step for step in plan_.steps if step not in left]
        if not steps:
            return DreamReport(plan_, left=tuple(left.items()))
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
                plan_, change.operation_id, diary.path_of(home.now()), tuple(left.items())
            )
            _note(change, report, memories)
            if ending:
                change.note(DREAM, **{ENDED: [memory.id for memory in ending]})
    broken = _broken(pins, check_pins(home) if pins else ())
    if broken:
        undo(home, change.operation_id)
        check_pins(home)
        return DreamReport(plan_, left=tuple((step, broken) for step in plan_.steps))
    return report


def _broken(before: Sequence[PinCheck], now: Sequence[PinCheck]) -> str | None:
    held = {pin.question for pin in before}
    names = [pin.question for pin in now if pin.question in held and not pin.holds]
    return f"it would break a pinned answer: {'; '.join(names)}" if names else None


def _pin_objection(step: Step, memories: MemoriesById, pins: Sequence[PinCheck]) -> str | None:
    """Return an objection if a step would end all memories with a pinned answer."""
    keeper = memories.get(step.into or "")
    kept = f"{keeper.subject} {step.words or keeper.content}" if keeper else ""
    broken = [
        replace(pin, holds=False)
        for pin in pins
        if pin.memories
        and {*step.ends, *([step.into] if step.words else ())}.issuperset(pin.memories)
        and not Pin(pin.question, pin.answer).is_in(kept)
    ]
    return _broken(pins, broken)


def _present(home: Home, steps: Iterable[Step]) -> dict[str, Memory]:
    ids = {
        memory_id
        for step in steps
        for memory_id in (*step.ends, *step.links, step.into)
        if memory_id
    }
    return by_id(home.memories.in_any_state(sorted(ids)))


def _objections(
    home: Home, steps: Sequence[Step], memories: MemoriesById, pins: Sequence[PinCheck]
) -> dict[Step, str]:
    """Return the steps that must not be executed, with reasons. Call under the lock."""
    protected = home.settings.texts("forgetting.protect")
    deleted = gone_for_good(home, {link for step in steps for link in step.links})
    filing = Filing(home)
    reasons = {}
    for step in steps:
        why = objection(step, memories, protected) or _find_edit(home, step)
        if not why and step.action is DreamAction.UNLINK and not deleted.issuperset(step.links):
            why = "a link might have a target again"
        if not why and step.action is DreamAction.FILE:
            why = filing.objection(step, memories.get(step.into or ""))
        if not why and step.action is DreamAction.PAGE:
            why = page_objection(home, step)
        why = why or _pin_objection(step, memories, pins)
        if why:
            reasons[step] = why
    return reasons


def _find_edit(home: Home, step: Step) -> str | None:
    """Return an objection if a memory file that the step changes was edited meanwhile."""
    for memory_id in filter(None, (*step.ends, step.into)):
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
    """Write the dream to the diary, on a new page or as a section of the day's page."""
    home, now = change.home, change.home.now()
    path = diary.path_of(now)
    data = home.vault.read(path) if home.vault.exists(path) else None
    former = data.decode("utf-8", "replace") if data is not None else None
    before = _PAGE.format(day=shown_day(now)) if former is None else former
    text = home.redactor.clean(
        f"{before.rstrip()}\n\n{diary.render_section(report, memories, now)}"
    )
    base = bytes_hash(data) if data is not None else None
    change.intend([Intent("write", path, text, base, former=former)])
