"""The plan of a dream: made by rules, bounded, and checked against the memories it names before anything is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from nacre.base.ids import bytes_hash, to_ms
from nacre.base.locks import FileLock
from nacre.base.text import one_line, shorten
from nacre.base.times import shown_day
from nacre.errors import ModelRefused, NotFound
from nacre.home.change import Change, follow_pages
from nacre.home.home import Home
from nacre.home.location import projects
from nacre.home.operations import subject_of
from nacre.home.spending import MOST_REFS, NONE, Run, counted, name_for, tracing
from nacre.memories.edit import catch_up, scan
from nacre.memories.projects import merge_within
from nacre.memories.store import fold_usage
from nacre.memories.usage import is_protected
from nacre.review import consolidate
from nacre.review import dream as diary
from nacre.review.consolidate import (
    DreamAction,
    DreamEstimate,
    DreamPlan,
    DreamReport,
    PageDraft,
    Promotion,
    Step,
)
from nacre.review.dream import (
    DREAM,
    ENDED,
    DreamPlanRequest,
    DreamRequest,
    Filing,
    carried,
    filed,
    gone_for_good,
    may_be_shelved,
    may_end,
    note_tried,
    orphaned,
    retire,
    shelved,
)
from nacre.review.pages import (
    holds,
    join_objection,
    joined,
    page_objection,
    page_write,
    promoted,
    repeated,
    unfit,
)
from nacre.review.pages_by_writer import (
    NOT_CONSULTED,
    asked,
    asked_of_writer,
    consulted,
    estimate,
    note_looked,
    note_settled,
)
from nacre.review.relations import Outcome, link_objection, settled_mark
from nacre.values.memory import Intent, Memory
from nacre.values.models import Step as TraceStep
from nacre.values.models import TraceKind
from nacre.values.reports import OnProgress
from nacre.values.review import Reason, Usage
from nacre.values.session import Task

LEAST_A_NIGHT, SHARE_A_NIGHT = 20, 0.02
"""So many memories one dream may end, or that share of those there are; whichever is more."""

_ASKED = 500
_TEXT_CHARACTERS = 160


def planned(
    home: Home,
    request: DreamPlanRequest,
    *,
    background: bool = False,
    on_progress: OnProgress | None = None,
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
                home,
                staying,
                request.project,
                asked(home),
                background=background,
                on_progress=on_progress,
            )
        moved, promotions, unfiled = _reorganised(home, request, staying, usage, more.drafts)
        concerned = apart | {
            step.project for step in joins
        }  # their pages are told anew when they are one
        steps += [*(one for one in moved if one.project not in concerned), *joins, *more.steps]
    bound = (
        max(LEAST_A_NIGHT, int(len(memories) * SHARE_A_NIGHT))
        if request.most is None
        else request.most
    )
    taken, put_off = _bounded(sorted(steps, key=lambda step: _ORDER.index(step.action)), bound)
    return DreamPlan(
        tuple(taken),
        tuple(put_off),
        len(memories),
        bound,
        request.project,
        found.refused,
        (*found.settled, *more.settled),
        unasked + more.unasked,
        _together(note, more.note),
        tuple(promotions),
        unfiled,
        _texts(taken, memories),
        len(memories) - len(free),
        more.looked,
    )


def _together(*notes: str | None) -> str | None:
    """What went wrong, each thing once."""
    return "; ".join(dict.fromkeys(note for note in notes if note)) or None


def _texts(steps: Sequence[Step], memories: Sequence[Memory]) -> tuple[tuple[str, str], ...]:
    """What those memories say that one stays in the place of, and those that are linked."""
    pairs = (step for step in steps if step.into and (step.ends or step.action is DreamAction.LINK))
    named = {one for step in pairs for one in (*step.ends, step.into, *step.links)}
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
    DreamAction.SHELVE,
    DreamAction.FILE,
    DreamAction.LINK,
    DreamAction.PAGE,
    DreamAction.JOIN,
]


def _reorganised(
    home: Home,
    request: DreamPlanRequest,
    memories: Sequence[Memory],
    usage: Mapping[str, Usage],
    drafts: Mapping[str, PageDraft],
) -> tuple[list[Step], list[Promotion], tuple[str, ...] | None]:
    """What goes from the inbox into projects, or is retired there, and the pages of projects; what was found of these,
    and what of the inbox nobody could file."""
    waiting = (
        memories
        if request.project is None
        else [memory for memory in home.memories.everything() if memory.is_active]
    )
    inbox = [one for one in waiting if one.inbox]
    steps = filed(home, inbox, request.project)
    pages, promotions = promoted(home, memories, request.project, drafts, backfill=request.backfill)
    if request.project is not None:
        return [*steps, *pages], promotions, None
    going = {step.into for step in steps}
    unfiled = [one for one in inbox if one.id not in going]
    steps += shelved(
        home, may_end(home, unfiled), usage, home.now(), home.settings.texts("forgetting.protect")
    )
    return [*steps, *pages], promotions, tuple(one.id for one in unfiled)


def estimated(home: Home, request: DreamPlanRequest) -> DreamEstimate:
    """What asking the writer would take."""
    memories, free, _, steps = _by_rules(home, request.project)
    return estimate(
        home,
        _staying(free, steps),
        _staying(memories, steps) if request.tier > 2 else None,
        request.project,
    )


def _staying(memories: Sequence[Memory], steps: Sequence[Step]) -> list[Memory]:
    named = {memory_id for step in steps for memory_id in (*step.ends, step.into)}
    return [memory for memory in memories if memory.id not in named]


def _by_rules(
    home: Home, project: str | None, apart: Collection[str] = ()
) -> tuple[list[Memory], list[Memory], Mapping[str, Usage], list[Step]]:
    """The active memories, those of them that may end, how all were used, and what rules alone would do.

    What is of projects ``apart`` is left for another dream: it is moved as a whole in this one.
    """
    catch_up(home)
    fold_usage(home)
    memories = [
        memory
        for memory in home.memories.everything()
        if memory.is_active and project in (None, memory.project)
    ]
    memories = [memory for memory in memories if memory.project not in apart]
    usage = usage_of(home, memories)
    protected = home.settings.texts("forgetting.protect")
    free = may_end(home, memories)
    steps = consolidate.ending(free, usage, home.now(), home.settings)
    gone = {memory_id for step in steps for memory_id in step.ends}
    return (
        memories,
        free,
        usage,
        [*repeated([one for one in free if one.id not in gone], usage, protected), *steps],
    )


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
        found |= home.usage.of([memory.id for memory in memories[start : start + _ASKED]])
    return found


def objection(step: Step, present: Mapping[str, Memory], protected: Sequence[str]) -> str | None:
    """What speaks against a step, by the memories as they are now; ``None`` where nothing does.

    Every memory it names is there and holds; no protected one ends; who stays in the place of others holds what they
    say, is of their kind and place, and does not end itself. What the vault says against filing, pages and joining,
    their own modules tell.
    """
    gone = [present.get(end) for end in step.ends]
    if any(one is None or not one.is_active for one in gone) or len(set(step.ends)) != len(
        step.ends
    ):
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
        return (
            None
            if all(holds(keeper, one) for one in ending)
            else "what stays does not hold all of it any more"
        )
    if step.action is DreamAction.SHELVE and not all(
        may_be_shelved(one, protected) for one in ending
    ):
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
    return "a link leads somewhere again" if any(link in present for link in step.links) else None


# ----------------------------------------------------------------------------
# A dream: planned, checked, then one operation in the vault with its diary.
#
# Who stays is durable before anybody goes. What changed since the plan was made is left alone, and
# told.


_LOCK = "dream.lock"
_PATIENCE_SECONDS = 1.0
_LAST = "dreamt"
"""When the last dream was, or was planned."""

_SHOWN = "dream shown"
_SHOWN_BY_WRITER = "dream shown by a writer"
"""When the owner was shown a plan, and one with steps of a writer's."""

_SAID = {
    DreamAction.MERGE: "takes it for the same as",
    DreamAction.SUPERSEDE: "says that it was ended by",
}

A_DAY = timedelta(hours=20)
"""Between two dreams that nobody asked for."""

_PAGE = "# Dreams of {day}\n\nWhat nacre did to memories by itself; `nacre undo` takes a dream back.\n\n"


def plan(home: Home, request: DreamPlanRequest, on_progress: OnProgress | None = None) -> DreamPlan:
    """Return what a dream would do. No memory is changed; from tier 2 on the writer is asked, which may cost something.

    Once the owner was shown a plan, the next dream carries one out. Raises NotFound for a project without memories,
    ModelRefused.
    """
    found = _plan(home, request, on_progress)
    if not home.actor.is_agent:
        with home.database.transaction():
            _note_shown(home, found)
    return found


def _plan(home: Home, request: DreamPlanRequest, on_progress: OnProgress | None) -> DreamPlan:
    if request.tier > 1:
        home.actor.require_owner("nacre dream --tier 2")
    found = planned(home, request, on_progress=on_progress)
    if (
        request.project
        and not found.seen
        and (request.tier < 3 or request.project not in projects(home))
    ):
        raise NotFound(
            f"project {request.project!r} has no memories",
            hint="nacre list shows the projects of memories",
        )
    return replace(found, keys=tuple(step.key for step in found.steps))


def _note_shown(home: Home, found: DreamPlan) -> None:
    home.usage.set_value(_SHOWN, home.now().isoformat())
    if any(step.by for step in found.steps):
        home.usage.set_value(_SHOWN_BY_WRITER, home.now().isoformat())


def dream_estimate(home: Home, request: DreamPlanRequest) -> DreamEstimate:
    """What asking the writer would take in a dream of tier 2 or 3. Nobody is asked."""
    return estimated(home, request)


def dream(home: Home, request: DreamRequest, on_progress: OnProgress | None = None) -> DreamReport:
    """Have a dream. The first one of a home only plans, unless ``first`` or a plan was shown before.

    Raises NotFound, StoreBusy, OwnerOnly, ModelRefused.
    """
    home.actor.require_owner("nacre dream")
    about = f"tier {request.tier}" + (f", {request.project}" if request.project else "")
    lock = FileLock(home.settings.home / _LOCK, _PATIENCE_SECONDS)
    with lock, tracing(home, TraceKind.DREAM, about) as run:
        found = _plan(home, request, on_progress)
        if request.steps is not None:
            found = _only(found, request.steps)
        return _traced(run, _dream(home, found, may_act=request.first))


def _only(found: DreamPlan, keys: Sequence[str]) -> DreamPlan:
    """A plan with those of its steps that were shown; the rest waits."""
    shown = tuple(step for step in found.steps if step.key in keys)
    rest = tuple(step for step in found.steps if step.key not in keys)
    return replace(
        found, steps=shown, put_off=(*found.put_off, *rest), keys=tuple(step.key for step in shown)
    )


def dream_unasked(home: Home) -> DreamReport | None:
    """Have the day's dream where the owner wants one (``dream.at_night``) and the last was long enough ago.

    The writer is asked where models may work in the background. Call it while nobody works with the home. Raises
    StoreBusy.
    """
    last = home.usage.value(_LAST)
    if not home.settings.flag("dream.at_night") or (
        last and home.now() - datetime.fromisoformat(last) < A_DAY
    ):
        return None
    lock = FileLock(home.settings.home / _LOCK, _PATIENCE_SECONDS)
    with lock, tracing(home, TraceKind.DREAM, "the night's") as run:
        return _traced(run, _dream(home, _planned_unasked(home), may_act=False))


def _traced(run: Run, report: DreamReport) -> DreamReport:
    """The report, told to the dream's trace."""
    told = counted(Counter(step.action.value for step in report.plan.steps))
    if report.is_first and told:
        run.outcome = f"planned only: {told}"
    else:
        run.outcome = told if report.operation else "nothing to do"
    named = (one for step in report.plan.steps for one in (*step.ends, step.into) if one)
    more = {"operation": report.operation} if report.operation else {}
    run.add(
        TraceStep(
            "dreams", output=run.outcome, refs=tuple(dict.fromkeys(named))[:MOST_REFS], more=more
        )
    )
    return report


def _planned_unasked(home: Home) -> DreamPlan:
    """The night's plan: with the writer where there is one, and without where it cannot be opened."""
    may_ask = home.settings.flag("models.background") and name_for(home, Task.DREAM) != NONE
    try:
        return planned(home, DreamPlanRequest(tier=3, writer=may_ask), background=True)
    except ModelRefused as error:
        return replace(planned(home, DreamPlanRequest(tier=3, writer=False)), note=error.message)


def _dream(home: Home, found: DreamPlan, *, may_act: bool) -> DreamReport:
    shown, is_first = found, not (may_act or home.usage.value(_SHOWN))
    if not (may_act or home.usage.value(_SHOWN_BY_WRITER)):  # shown once before it is done
        found = _only(found, [step.key for step in found.steps if not step.by])
    report = DreamReport(found, is_first=True) if is_first else carry_out(home, found)
    with home.vault_lock, home.database.transaction():
        home.usage.set_value(_LAST, home.now().isoformat())
        _note_shown(home, shown)
        note_settled(
            home,
            (
                *found.settled,
                *[
                    settled_mark(step.mark)
                    for step in _done(report)
                    if step.action is DreamAction.LINK
                ],
            ),
        )
        note_looked(home, _looked_by(report))
        note_tried(home, found.unfiled)
        _have_reviewed(home, found)
    return report


def _looked_by(report: DreamReport) -> list[tuple[str, tuple[str, ...]]]:
    """The pages about which the writer has nothing more to say: they were written, or stay as they are."""
    planned = (*report.plan.steps, *report.plan.put_off)
    waiting = {step.project for step in planned if step.action is DreamAction.PAGE}
    waiting -= {step.project for step in _done(report) if step.action is DreamAction.PAGE}
    return [(project, marks) for project, marks in report.plan.looked if project not in waiting]


def _done(report: DreamReport) -> list[Step]:
    left = [step for step, _ in report.left]
    return [step for step in report.plan.steps if step not in left] if report.operation else []


def _have_reviewed(home: Home, found: DreamPlan) -> None:
    """What a writer proposed and nothing came of waits for a person."""
    present = _present(home, [step for step, _ in found.refused])
    for step, why in found.refused:
        if all(one in present and present[one].is_active for one in (*step.ends, step.into) if one):
            stays = present[step.into or ""]
            words = f", in these words: {step.words}" if step.words else ""
            detail = f"a writer {_SAID[step.action]} {stays.subject} ({stays.id[-8:]}){words}; not done: {why}"
            for end in step.ends:
                home.reviews.add(end, Reason.MERGE, detail, to_ms(home.now()) or 0, once=True)


def carry_out(home: Home, found: DreamPlan) -> DreamReport:
    """Do what a plan says, as far as the memories it names are still as it takes them."""
    if not found.steps:
        return DreamReport(found)
    scan(home)
    with home.change(DREAM) as change:
        memories = _present(home, found.steps)
        left = _objections(home, found.steps, memories)
        steps = [step for step in found.steps if step not in left]
        if not steps:
            return DreamReport(found, left=tuple(left.items()))
        changed = carried(home, steps, memories)
        ending = [memories[end] for step in steps for end in step.ends]
        pages = [step for step in steps if step.action is DreamAction.PAGE]
        joins = [step for step in steps if step.action is DreamAction.JOIN]
        change.describe(
            subject=subject_of(ending or list(changed.values())) or _subject([*pages, *joins])
        )
        if changed:
            change.put(list(changed.values()))
            change.apply()  # who stays is in its file before anybody goes
        with change.transaction():
            change.intend([page_write(home, step.project, step.words) for step in pages])
            retire(change, steps, memories)
            for step in joins:
                merge_within(change, step.subject, step.project, step.why)
            report = DreamReport(
                found, change.operation_id, diary.path_of(home.now()), tuple(left.items())
            )
            _note(change, report, memories)
            if ending:
                change.append([change.entry(DREAM, **{ENDED: [one.id for one in ending]})])
    if joins:
        follow_pages(home)
    return report


def _subject(steps: Sequence[Step]) -> str:
    """What a dream is about that changes no memory by itself."""
    first = steps[0]
    return (
        f"{first.subject} → {first.project}" if first.action is DreamAction.JOIN else first.subject
    )


def _present(home: Home, steps: Iterable[Step]) -> dict[str, Memory]:
    ids = {one for step in steps for one in (*step.ends, *step.links, step.into) if one}
    return {memory.id: memory for memory in home.memories.in_any_state(sorted(ids))}


def _objections(
    home: Home, steps: Sequence[Step], memories: Mapping[str, Memory]
) -> dict[Step, str]:
    """The steps that are not to be done, by the memories as they are under the lock, and why."""
    protected = home.settings.texts("forgetting.protect")
    gone = gone_for_good(home, {link for step in steps for link in step.links})
    filing = Filing(home)
    found = {}
    for step in steps:
        why = objection(step, memories, protected) or _edited(home, step)
        if not why and step.action is DreamAction.UNLINK and not gone.issuperset(step.links):
            why = "a link may lead somewhere again"
        if not why and step.action is DreamAction.FILE:
            why = filing.objection(step, memories.get(step.into or ""))
        if not why and step.action is DreamAction.PAGE:
            why = page_objection(home, step)
        if not why and step.action is DreamAction.JOIN:
            why = join_objection(home, step)
        if why:
            found[step] = why
    return found


def _edited(home: Home, step: Step) -> str | None:
    """Whether a file that the step writes is not as the index last saw it."""
    for one in (*step.ends, *([step.into] if step.into else [])):
        file = home.files.file_of(one)
        if file is None:
            continue
        try:
            is_same = bytes_hash(home.vault.read(file.path)) == file.hash
        except FileNotFoundError:
            is_same = False
        if not is_same:
            return "it is being edited"
    return None


def _note(change: Change, report: DreamReport, memories: Mapping[str, Memory]) -> None:
    """Write the diary: a new page, or one section more on that of the day."""
    home, now = change.home, change.home.now()
    path = diary.path_of(now)
    try:
        data: bytes | None = home.vault.read(path)
    except FileNotFoundError:
        data = None
    before = (
        data.decode("utf-8", "replace") if data is not None else _PAGE.format(day=shown_day(now))
    )
    text = home.redactor.clean(f"{before.rstrip()}\n\n{diary.written(report, memories, now)}")
    base = bytes_hash(data) if data is not None else None
    change.intend([Intent("write", path, text, base, former=before if data is not None else None)])
