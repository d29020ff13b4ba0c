"""Steps of dreams: merging memories, writing the diary, dropping links, and filing from the inbox."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.request import Request
from nacre.base.text import shorten
from nacre.base.times import shown, shown_day
from nacre.home.change import Change, resolve_project
from nacre.home.home import Home
from nacre.home.location import projects
from nacre.memories.edit import catch_up
from nacre.memories.judge import OUTLIVED, SUPERSEDES, mark_ended
from nacre.memories.placement import as_confirmation
from nacre.operations import operation
from nacre.review.consolidate import (
    DreamAction,
    DreamReport,
    MemoriesById,
    Step,
)
from nacre.review.naming import ProjectNames
from nacre.review.pages import MERGED, Cluster, clusters, mark
from nacre.values.fields import OnlyProject
from nacre.values.memory import (
    Confirmation,
    Link,
    Memory,
    Retirement,
    TombstoneKind,
    by_id,
)
from nacre.vault import files


class DreamPlanRequest(Request):
    """A dream to plan."""

    project: OnlyProject = None
    tier: Annotated[
        int,
        bounds(
            "1: rules only. 2: also the writer. 3: also the inbox and pages.",
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
    backfill: Annotated[
        bool,
        bounds("Pages cover sessions of any age, including those before the last dream (tier 3)."),
    ] = False


class DreamRequest(DreamPlanRequest):
    """Plan, check and execute a dream."""

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
# The owner restored a memory if the memory is active although the ledger records that a dream retired
# it. No dream retires a restored memory again. The ledger survives rebuilds and is shared by machines.


DREAM = "dream"
ENDED = "ended"
"""Names in the ledger for a dream, and for the memories that it retired."""

_ENTRY = re.compile(rb'"action": ?"dream"')


def may_end(home: Home, memories: Iterable[Memory]) -> list[Memory]:
    """Return the memories that no dream has retired before."""
    ended: list[object] = []
    for entry in files.read_about(home.ledger(), _ENTRY):
        listed = entry.details.get(ENDED) if entry.action == DREAM else None
        ended += listed if isinstance(listed, list) else []
    ids = {memory_id for memory_id in ended if isinstance(memory_id, str)}
    return [memory for memory in memories if memory.id not in ids]


# -- Applying steps to memories -----------------------------------------------


_MAX_CONFIRMATIONS = 20


def apply_steps(home: Home, steps: Sequence[Step], memories: MemoriesById) -> dict[str, Memory]:
    """Return the kept and superseded memories as they are after the steps."""
    changed: dict[str, Memory] = {}
    for step in steps:
        present = {**memories, **changed}
        changed |= by_id(_changed(home, step, present))
        if step.action is DreamAction.MERGE:
            changed |= by_id(_redirect_superseded(home, step, {**memories, **changed}))
    return changed


def _changed(home: Home, step: Step, memories: MemoriesById) -> list[Memory]:
    if step.into is None:
        return []
    memory = memories[step.into]
    if step.action is DreamAction.MERGE:
        return [_enrich_keeper(home, step, memories)]
    if step.action is DreamAction.SUPERSEDE:
        links = tuple(Link(SUPERSEDES, end, f"{step.why} ({step.by})") for end in step.ends)
        return [
            replace(memory, links=(*memory.links, *links)),
            *(mark_ended(memories[end], memory) for end in step.ends),
        ]
    if step.action is DreamAction.FILE:
        return [replace(memory, project=step.project, inbox=False)]
    return [
        replace(memory, links=tuple(link for link in memory.links if link.to not in step.links))
    ]


def _enrich_keeper(home: Home, step: Step, memories: MemoriesById) -> Memory:
    """Return the kept memory with the writer's text and with data of the merged memories.

    The kept memory gets the earliest date, the highest importance, and all tags, links and
    confirmations. An owner's memory gets nothing from an agent's memory.
    """
    keeper = memories[step.into or ""]
    others = [memories[end] for end in step.ends if memories[end].is_owners or not keeper.is_owners]
    own = {(link.rel, link.to) for link in keeper.links}
    merged = {keeper.id, *step.ends}
    links = [
        link
        for memory in others
        for link in memory.links
        if (link.rel, link.to) not in own and link.to not in merged
    ]
    confirmations = [*keeper.confirmed, *chain.from_iterable(map(_sayings, others))]
    confirmations.sort(key=lambda confirmation: confirmation.at)
    distinct = {(item.session, item.turns): item for item in confirmations}
    keys = (memory.canonical_key for memory in (keeper, *others))
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
        created=min(memory.created for memory in (keeper, *others)),
        importance=max(memory.importance for memory in (keeper, *others)),
        tags=tuple(sorted({*keeper.tags, *(tag for memory in others for tag in memory.tags)})),
        links=(*keeper.links, *dict.fromkeys(links)),
        confirmed=tuple(distinct.values())[-_MAX_CONFIRMATIONS:],
        canonical_key=key,
    )


def _sayings(memory: Memory) -> list[Confirmation]:
    """Return a memory's confirmations. The owner's original statement also counts as one."""
    if not (memory.is_owners and memory.source.session):
        return list(memory.confirmed)
    return [as_confirmation(memory), *memory.confirmed]


def _redirect_superseded(home: Home, step: Step, memories: MemoriesById) -> list[Memory]:
    """Let the kept memory supersede everything that a merged memory had superseded."""
    keeper = memories[step.into or ""]
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
    return [*followed, replace(keeper, links=(*keeper.links, *links))] if links else followed


def retire(change: Change, steps: Sequence[Step], memories: MemoriesById) -> None:
    """Retire memories as the steps demand.

    Memories that an expired memory had superseded are retired, too.
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
    DreamAction.FILE: "Filed from the inbox",
    DreamAction.PAGE: "Pages",
    DreamAction.UNLINK: "Dropped dangling links",
}
_LINE_CHARACTERS = 160


def path_of(now: datetime) -> str:
    """Return the path of a day's diary."""
    return f"{FOLDER}/{shown_day(now)}.md"


def render_section(report: DreamReport, memories: MemoriesById, now: datetime) -> str:
    """Return a dream as a section of its day's diary."""
    plan = report.plan
    ending = plan.ending - sum(len(step.ends) for step, _ in report.left)
    summary = f"{plan.seen:,} memories checked, {ending:,} retired; {report.operation}."
    lines = [f"## {shown(now, '%H:%M')}", "", summary]
    left_ids = {id(step) for step, _ in report.left}
    for action, heading in _HEADINGS.items():
        steps = [step for step in plan.steps if step.action is action and id(step) not in left_ids]
        if steps:
            lines += [
                "",
                f"### {heading}",
                "",
                *(line for step in steps for line in _step(step, memories)),
            ]
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
    if report.left:
        lines += [
            "",
            *(f"- skipped: {_subject_text(step, memories)}: {why}" for step, why in report.left),
        ]
    return "\n".join(lines) + "\n"


def _step(step: Step, memories: MemoriesById) -> list[str]:
    if step.action is DreamAction.FILE:
        return [f"- {_memory_line(step.into or '', memories)}: into {step.project}: {step.why}"]
    if step.action is DreamAction.PAGE:
        return [f"- {step.project or step.subject}: {step.why}"]
    if step.action is DreamAction.MERGE:
        keeper = _memory_line(step.into or "", memories)
        lines = [f"- kept: {keeper}{_attribution(step)}"]
        if step.words:
            text = shorten(" ".join(step.words.split()), _LINE_CHARACTERS)
            lines = [f"- now: {text}{_attribution(step)}", f"  - before: {keeper}"]
        return [*lines, *(f"  - merged: {_memory_line(end, memories)}" for end in step.ends)]
    if step.action is DreamAction.SUPERSEDE:
        valid_line = f"- holds: {_memory_line(step.into or '', memories)}{_attribution(step)}"
        return [valid_line, *(f"  - ended: {_memory_line(end, memories)}" for end in step.ends)]
    return [
        f"- {_memory_line(end, memories)}: {step.why}" for end in step.ends or (step.into or "",)
    ]


def _subject_text(step: Step, memories: MemoriesById) -> str:
    memory_id = next((memory_id for memory_id in (*step.ends, step.into) if memory_id), None)
    return _memory_line(memory_id, memories) if memory_id else step.subject


def _attribution(step: Step) -> str:
    return f"; {step.by}: {step.why}" if step.by else ""


def _memory_line(memory_id: str, memories: MemoriesById) -> str:
    memory = memories.get(memory_id)
    text = shorten(" ".join(memory.content.split()), _LINE_CHARACTERS) if memory else "?"
    return f"{text} ({memory_id[-8:]})"


# -- Links to deleted memories ------------------------------------------------
# A target missing from the index can be in a different home or an unreadable file, or be a page or
# address. A link is dropped only if the ledger or a tombstone shows that the target was deleted, and
# no file for the target is left.


_ID_SHOWN = 8


def plan_unlinking(home: Home, memories: Iterable[Memory]) -> list[Step]:
    """Return steps that drop links to deleted memories."""
    linking = [memory for memory in memories if memory.links]
    deleted = gone_for_good(home, {link.to for memory in linking for link in memory.links})
    steps = []
    for memory in linking:
        if dropped := [link for link in memory.links if link.to in deleted]:
            names = ", ".join(f"{link.rel} {link.to[-_ID_SHOWN:]}" for link in dropped)
            why = f"dangling link: {names}"
            targets = tuple(dict.fromkeys(link.to for link in dropped))
            steps.append(Step(DreamAction.UNLINK, (), memory.id, memory.subject, why, targets))
    return steps


def gone_for_good(home: Home, memory_ids: Collection[str]) -> frozenset[str]:
    """Return the ids of memories that have been deleted.

    The result is empty until all memory files have been read.
    """
    lacking = set(memory_ids) - home.memories.all_ids() if memory_ids else set()
    if not lacking or home.problems:
        return frozenset()
    if not home.vault.times().keys() <= home.files.seen_now()[0].keys():
        return frozenset()  # the vault can contain memories missing from the index
    ids = {
        tombstone.value
        for tombstone in home.tombstones.all()
        if tombstone.kind is TombstoneKind.MEMORY
    }
    for entry in files.read(home.ledger()):
        if entry.action == "retire":
            several = entry.details.get("memories")
            listed = several if isinstance(several, list) else []
            values = (*listed, entry.details.get("memory"))
            ids.update(value for value in values if isinstance(value, str))
    return frozenset(lacking & ids)


# -- The inbox ----------------------------------------------------------------


_NOWHERE = ""


@dataclass(frozen=True)
class Filing:
    """A search for the project of a memory.

    All evidence about the memory must support the same project.
    """

    home: Home

    @cached_property
    def _names(self) -> ProjectNames:
        return ProjectNames(self.home)

    @cached_property
    def _projects(self) -> frozenset[str]:
        return frozenset(projects(self.home))

    def evidence(self, memory: Memory) -> tuple[str, str] | None:
        """Return the only project that the evidence supports, and the evidence.

        Return ``None`` if there is no such project. The texts of untrusted memories and of
        proposals are no evidence.
        """
        reasons = self._by_sessions(memory)
        if memory.project:
            reasons.setdefault(memory.project, "its file names the project")
        if memory.is_vouched:
            reasons = self._names.find_in(f"{memory.subject}\n{memory.content}") | reasons
        if len(reasons) != 1:
            return None
        ((slug, why),) = reasons.items()
        return (slug, why) if why and slug in self._projects else None

    def objection(self, step: Step, memory: Memory | None) -> str | None:
        """Return the reason not to file a memory in its current state, or ``None``."""
        if memory is None or not memory.is_active or not memory.inbox:
            return "it is no longer in the inbox"
        if step.mark != mark((memory,)):
            return "it has changed since"
        slug, _ = self.evidence(memory) or ("", "")
        is_same = slug == step.project
        return None if is_same else "there is no longer any evidence that it belongs there"

    def _by_sessions(self, memory: Memory) -> dict[str, str]:
        """Return the evidence for each project to which the memory's sessions belong.

        A session without a project counts as a separate project, unless no session has a project.
        """
        names = dict.fromkeys(
            (memory.source.session, *(confirmation.session for confirmation in memory.confirmed))
        )
        reasons: dict[str, str] = {}
        for name in names:
            for stored in self.home.sessions.find(name) if name else ():
                if stored.session.id == name:
                    slug = stored.project or resolve_project(
                        self.home, stored.session, create=False
                    )
                    reasons.setdefault(
                        slug or _NOWHERE, f"from session {name}, which belongs to the project"
                    )
        return {} if set(reasons) == {_NOWHERE} else reasons


def plan_filing(home: Home, inbox: Iterable[Memory], project: str | None) -> list[Step]:
    """Return steps that file memories from the inbox into projects, or only into ``project``."""
    filing = Filing(home)
    steps = []
    for memory in inbox:
        slug, why = filing.evidence(memory) or ("", "")
        if slug and project in (None, slug):
            names = DreamAction.FILE, (), memory.id, memory.subject, why
            steps.append(Step(*names, mark=mark((memory,)), project=slug))
    return steps
