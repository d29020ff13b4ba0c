"""A dream: planned, checked, then one operation in the vault with its diary.

Who stays is durable before anybody goes. What changed since the plan was made is left alone, and told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from nacre.dream import diary
from nacre.dream.brought_back import DREAM, ENDED
from nacre.dream.carrying import carried, retire
from nacre.dream.orphan_links import gone_for_good
from nacre.dream.plan import estimated, objection, planned
from nacre.dream.relations import settled_mark
from nacre.dream.reorganising.filing import Filing, note_tried
from nacre.dream.reorganising.joining import join_objection
from nacre.dream.reorganising.page import page_write
from nacre.dream.reorganising.page_checks import page_objection
from nacre.dream.reorganising.page_writer import note_looked
from nacre.dream.requests import DreamPlanRequest, DreamRequest
from nacre.dream.values import DreamAction, DreamEstimate, DreamPlan, DreamReport, Step
from nacre.dream.writing import note_settled
from nacre.errors import ModelRefused, NotFound
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.lookup import projects
from nacre.home.operations import subject_of
from nacre.home.projects import follow_pages
from nacre.memories.scan import scan
from nacre.platform.days import shown_day
from nacre.platform.ids import bytes_hash, to_ms
from nacre.platform.locks import FileLock
from nacre.projects.moving import merge_within
from nacre.spending.models import NONE, name_for
from nacre.spending.tracing import MOST_REFS, Run, counted, tracing
from nacre.values.memory import Memory
from nacre.values.model_calls import Task
from nacre.values.operation import Intent
from nacre.values.reports import OnProgress
from nacre.values.review import Reason
from nacre.values.trace import Step as TraceStep
from nacre.values.trace import TraceKind

_LOCK = "dream.lock"
_PATIENCE_SECONDS = 1.0
_LAST = "dreamt"
"""When the last dream was, or was planned."""

_SHOWN = "dream shown"
_SHOWN_BY_WRITER = "dream shown by a writer"
"""When the owner was shown a plan, and one with steps of a writer's."""

_SAID = {DreamAction.MERGE: "takes it for the same as", DreamAction.SUPERSEDE: "says that it was ended by"}

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
    if request.project and not found.seen and (request.tier < 3 or request.project not in projects(home)):
        raise NotFound(f"project {request.project!r} has no memories", hint="nacre list shows the projects of memories")
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
    return replace(found, steps=shown, put_off=(*found.put_off, *rest), keys=tuple(step.key for step in shown))


def dream_unasked(home: Home) -> DreamReport | None:
    """Have the day's dream where the owner wants one (``dream.at_night``) and the last was long enough ago.

    The writer is asked where models may work in the background. Call it while nobody works with the home. Raises
    StoreBusy.
    """
    last = home.usage.value(_LAST)
    if not home.settings.flag("dream.at_night") or (last and home.now() - datetime.fromisoformat(last) < A_DAY):
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
    run.add(TraceStep("dreams", output=run.outcome, refs=tuple(dict.fromkeys(named))[:MOST_REFS], more=more))
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
            (*found.settled, *[settled_mark(step.mark) for step in _done(report) if step.action is DreamAction.LINK]),
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
            for one in step.ends:
                home.reviews.add(one, Reason.MERGE, detail, to_ms(home.now()) or 0, once=True)


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
        ending = [memories[one] for step in steps for one in step.ends]
        pages = [step for step in steps if step.action is DreamAction.PAGE]
        joins = [step for step in steps if step.action is DreamAction.JOIN]
        change.describe(subject=subject_of(ending or list(changed.values())) or _subject([*pages, *joins]))
        if changed:
            change.put(list(changed.values()))
            change.apply()  # who stays is in its file before anybody goes
        with change.transaction():
            change.intend([page_write(home, step.project, step.words) for step in pages])
            retire(change, steps, memories)
            for step in joins:
                merge_within(change, step.subject, step.project, step.why)
            report = DreamReport(found, change.operation_id, diary.path_of(home.now()), tuple(left.items()))
            _note(change, report, memories)
            if ending:
                change.append([change.entry(DREAM, **{ENDED: [one.id for one in ending]})])
    if joins:
        follow_pages(home)
    return report


def _subject(steps: Sequence[Step]) -> str:
    """What a dream is about that changes no memory by itself."""
    first = steps[0]
    return f"{first.subject} → {first.project}" if first.action is DreamAction.JOIN else first.subject


def _present(home: Home, steps: Iterable[Step]) -> dict[str, Memory]:
    ids = {one for step in steps for one in (*step.ends, *step.links, step.into) if one}
    return {one.id: one for one in home.memories.in_any_state(sorted(ids))}


def _objections(home: Home, steps: Sequence[Step], memories: Mapping[str, Memory]) -> dict[Step, str]:
    """The steps that are not to be done, by the memories as they are under the lock, and why."""
    protected = home.settings.texts("forgetting.protect")
    gone = gone_for_good(home, {one for step in steps for one in step.links})
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
    before = data.decode("utf-8", "replace") if data is not None else _PAGE.format(day=shown_day(now))
    text = home.redactor.clean(f"{before.rstrip()}\n\n{diary.written(report, memories, now)}")
    base = bytes_hash(data) if data is not None else None
    change.intend([Intent("write", path, text, base, former=before if data is not None else None)])
