"""Requests for dreams."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated

from msgspec import Meta

from nacre.base.request import Request
from nacre.base.text import shorten
from nacre.base.times import shown, shown_day
from nacre.home.change import Change, resolve_project
from nacre.home.home import Home
from nacre.home.location import projects
from nacre.memories.edit import catch_up
from nacre.memories.judge import OUTLIVED, SUPERSEDES, ended
from nacre.memories.usage import is_protected
from nacre.review.consolidate import SIGNALS, DreamAction, DreamReport, Promotion, Step
from nacre.review.pages import MERGED, Cluster, ProjectNames, clusters, is_owners, mark
from nacre.review.queue import ORIGIN
from nacre.values.memory import Confirmation, Expiry, Kind, Link, Memory, Retirement, TombstoneKind
from nacre.values.review import Usage
from nacre.vault import files
from nacre.vault.files import LEDGER


class DreamPlanRequest(Request, frozen=True, kw_only=True):
    """What a dream would do."""

    project: Annotated[str | None, Meta(description="Memories of one project only.")] = None
    tier: Annotated[
        int,
        Meta(
            description="1: rules alone. 2: the writer, too. 3: also the inbox, pages and links.",
            ge=1,
            le=3,
        ),
    ] = 1
    most: (
        Annotated[
            int,
            Meta(
                description="Memories that may end; else 2 in 100 of what there is, and 20.", ge=0
            ),
        ]
        | None
    ) = None
    writer: Annotated[
        bool, Meta(description="Ask the writer, where one is set (from tier 2 on).")
    ] = True
    backfill: Annotated[
        bool,
        Meta(
            description="Pages tell of sessions of any age, also of those before the last time (tier 3)."
        ),
    ] = False


class AlikeRequest(Request, frozen=True, kw_only=True):
    """Memories that look alike."""

    project: Annotated[str | None, Meta(description="Memories of one project only.")] = None
    limit: Annotated[int, Meta(description="Groups at most.", ge=1, le=500)] = 20


class DreamRequest(DreamPlanRequest, frozen=True, kw_only=True):
    """Have a dream: plan, check, do it."""

    steps: Annotated[
        tuple[str, ...] | None,
        Meta(description="Only these steps of the plan, by their keys: those that were shown."),
    ] = None
    first: Annotated[
        bool, Meta(description="Do it also where no dream was planned in this home before.")
    ] = False


# ----------------------------------------------------------------------------
# Memories that look alike, for whoever tidies by hand: the groups that a dream would show to a
# writer.


@dataclass(frozen=True, slots=True)
class Alike:
    """Groups of memories near in meaning, the nearest first, and how many there are in all."""

    groups: tuple[Cluster, ...]
    total: int


def alike(home: Home, request: AlikeRequest) -> Alike:
    """The groups; no model is asked. Near in meaning is not the same: most groups of a tidy vault say different things.

    Empty without vectors.
    """
    catch_up(home)
    memories = [memory for memory in home.memories.everything() if memory.is_active]
    found = clusters(
        home, [memory for memory in memories if request.project in (None, memory.project)]
    )
    return Alike(tuple(found[: request.limit]), len(found))


# ----------------------------------------------------------------------------
# What a dream ended and a person brought back: no dream ends it again.
#
# A memory that holds although the ledger says that a dream ended it came back since, by undo, by
# ``unretire``, by hand,
# or because what superseded it was retired: the owner has the last word. The ledger knows it after a
# rebuild, and on
# every machine that shares the vault.


DREAM = "dream"
ENDED = "ended"
"""What the ledger calls a dream, and there the ids of the memories that it ended."""

_ENTRY = re.compile(rb'"action": ?"dream"')


def may_end(home: Home, memories: Iterable[Memory]) -> list[Memory]:
    """The memories, of those that hold, that no dream has ended before: only these end, or have others go into them."""
    ended = set(_ended(home))
    return [memory for memory in memories if memory.id not in ended]


def _ended(home: Home) -> Iterator[str]:
    try:
        data = home.vault.read(LEDGER)
    except FileNotFoundError:
        return
    for entry in files.read_about(data, _ENTRY):
        listed = entry.details.get(ENDED) if entry.action == DREAM else None
        yield from (
            one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, str)
        )


# ----------------------------------------------------------------------------
# What the steps of a dream make of memories: who stays, with what others bring along, and who goes.


_MOST_CONFIRMATIONS = 20


def carried(home: Home, steps: Sequence[Step], memories: Mapping[str, Memory]) -> dict[str, Memory]:
    """The memories that stay, as the steps have them, and those that are superseded. When they were said last stays:
    nobody said them again."""
    changed: dict[str, Memory] = {}
    for step in steps:
        present = {**memories, **changed}
        changed |= {one.id: one for one in _changed(home, step, present)}
        if step.action is DreamAction.MERGE:
            changed |= {one.id: one for one in _following(home, step, {**memories, **changed})}
    return changed


def _changed(home: Home, step: Step, memories: Mapping[str, Memory]) -> list[Memory]:
    if step.into is None:
        return []
    memory = memories[step.into]
    if step.action is DreamAction.MERGE:
        return [_enriched(home, step, memories)]
    if step.action is DreamAction.SUPERSEDE:
        links = tuple(Link(SUPERSEDES, end, f"{step.why} ({step.by})") for end in step.ends)
        return [
            replace(memory, links=(*memory.links, *links)),
            *(ended(memories[end], memory) for end in step.ends),
        ]
    if step.action is DreamAction.LINK:
        drawn = tuple(
            Link(step.words, link, f"{step.why} ({step.by})", ORIGIN) for link in step.links
        )
        return [replace(memory, links=(*memory.links, *drawn))]
    if step.action is DreamAction.FILE:
        return [replace(memory, project=step.project, inbox=False)]
    return [
        replace(memory, links=tuple(link for link in memory.links if link.to not in step.links))
    ]


def _enriched(home: Home, step: Step, memories: Mapping[str, Memory]) -> Memory:
    """Who stays, in the words that a writer gave it, and with what the others bring along (seed facts 1.4).

    That is the first day, the highest importance, all tags and links, and where it was said. To the owner's memory an
    agent's brings nothing.
    """
    keeper = memories[step.into or ""]
    others = [
        memories[end] for end in step.ends if is_owners(memories[end]) or not is_owners(keeper)
    ]
    own = {(link.rel, link.to) for link in keeper.links}
    gone = {keeper.id, *step.ends}
    links = [
        link
        for one in others
        for link in one.links
        if (link.rel, link.to) not in own and link.to not in gone
    ]
    said = [*keeper.confirmed, *(one for other in others for one in _sayings(other))]
    known = {(one.session, one.turns): one for one in sorted(said, key=lambda one: one.at)}
    key = next((one.canonical_key for one in (keeper, *others) if one.canonical_key), None)
    if step.by:
        noted = {
            "by": step.by,
            "at": home.now().isoformat(),
            "of": [keeper.id, *step.ends],
            "why": step.why,
        }
        keeper = replace(keeper, extra={**keeper.extra, MERGED: noted})
    if step.words:
        keeper = replace(keeper, content=step.words, subject=step.subject, claim=None)
    return replace(
        keeper,
        created=min(one.created for one in (keeper, *others)),
        importance=max(one.importance for one in (keeper, *others)),
        tags=tuple(sorted({*keeper.tags, *(tag for one in others for tag in one.tags)})),
        links=(*keeper.links, *dict.fromkeys(links)),
        confirmed=tuple(known.values())[-_MOST_CONFIRMATIONS:],
        canonical_key=key,
    )


def _sayings(memory: Memory) -> list[Confirmation]:
    """Where a memory that goes was said."""
    if not (is_owners(memory) and memory.source.session):
        return list(memory.confirmed)
    return [
        Confirmation(memory.created, memory.source.session, memory.source.turns),
        *memory.confirmed,
    ]


def _following(home: Home, step: Step, memories: Mapping[str, Memory]) -> list[Memory]:
    """What was superseded by memories that go into another one is superseded by that one."""
    keeper = memories[step.into or ""]
    old = [
        memory
        for gone in step.ends
        for memory in home.memories.replaced_by(gone)
        if not memory.retired
    ]
    old = [memories.get(one.id, one) for one in old if one.id != keeper.id]
    linked = {link.to for link in keeper.links if link.rel == SUPERSEDES}
    links = tuple(Link(SUPERSEDES, one.id) for one in old if one.id not in linked)
    followed = [replace(one, superseded_by=keeper.id) for one in old]
    return [*followed, replace(keeper, links=(*keeper.links, *links))] if links else followed


def retire(change: Change, steps: Sequence[Step], memories: Mapping[str, Memory]) -> None:
    """Retire what ends; what had been superseded by something that is over goes with it."""
    home = change.home
    now = home.now()
    gone, entries = [], []
    for step in steps:
        if step.action is DreamAction.SUPERSEDE:
            continue
        reason = f"says the same as {step.into}" if step.into else f"{step.action}: {step.why}"
        outlived = (
            []
            if step.into
            else [old for end in step.ends for old in home.memories.replaced_by(end)]
        )
        for one, why in (
            *((memories[end], reason) for end in step.ends),
            *((old, OUTLIVED) for old in outlived if not old.retired),
        ):
            gone.append(replace(one, retired=Retirement(now, why)))
            entries.append(change.entry("retire", memory=one.id, reason=why))
    change.put(gone, entries)


# ----------------------------------------------------------------------------
# The diary of dreams: what each one did, in words, in the vault (``dreams/<day>.md``).


FOLDER = "dreams"
_HEADINGS = {
    DreamAction.MERGE: "Said more than once, now one memory",
    DreamAction.SUPERSEDE: "Ended by what was said later",
    DreamAction.EXPIRE: "Meant for a while, and over",
    DreamAction.FORGET: "Forgotten: never asked for",
    DreamAction.SHELVE: "Retired from the inbox",
    DreamAction.FILE: "Filed from the inbox",
    DreamAction.PAGE: "Pages",
    DreamAction.LINK: "Belongs together, and is linked",
    DreamAction.JOIN: "Projects that are one",
    DreamAction.UNLINK: "Links that led nowhere, and are dropped",
}
_LINE = 160


def path_of(now: datetime) -> str:
    """Where the diary of a day lies."""
    return f"{FOLDER}/{shown_day(now)}.md"


def written(report: DreamReport, memories: Mapping[str, Memory], now: datetime) -> str:
    """One dream as a section of its day's diary."""
    plan = report.plan
    ending = plan.ending - sum(len(step.ends) for step, _ in report.left)
    said = f"{plan.seen:,} memories seen, {ending:,} of them ended; {report.operation}."
    lines = [f"## {shown(now, '%H:%M')}", "", said]
    not_done = {id(step) for step, _ in report.left}
    for action, heading in _HEADINGS.items():
        steps = [step for step in plan.steps if step.action is action and id(step) not in not_done]
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
            f"{len(plan.put_off):,} more steps wait for another night: one ends {plan.most:,} memories at most.",
        ]
    if plan.refused:
        lines += [
            "",
            f"{len(plan.refused):,} proposals of the writer's were not followed, and wait in `nacre review`.",
        ]
    if plan.promotions:
        lines += ["", "### Projects with new sessions", "", *map(_promotion, plan.promotions)]
    if report.left:
        lines += ["", *(f"- left: {_about(step, memories)}: {why}" for step, why in report.left)]
    return "\n".join(lines) + "\n"


def _step(step: Step, memories: Mapping[str, Memory]) -> list[str]:
    if step.action is DreamAction.FILE:
        return [f"- {_named(step.into or '', memories)}: into {step.project}: {step.why}"]
    if step.action is DreamAction.JOIN:
        return [f"- {step.subject} into {step.project}: {step.why}"]
    if step.action is DreamAction.PAGE:
        return [f"- {step.project or step.subject}: {step.why}"]
    if step.action is DreamAction.LINK:
        to = "; ".join(_named(link, memories) for link in step.links)
        return [f"- {_named(step.into or '', memories)}", f"  - {step.words}: {to}{_whose(step)}"]
    if step.action is DreamAction.MERGE:
        goes = [f"  - goes: {_named(end, memories)}" for end in step.ends]
        if not step.words:
            return [f"- stays: {_named(step.into or '', memories)}{_whose(step)}", *goes]
        was = f"  - said before: {_named(step.into or '', memories)}"
        return [
            f"- says now: {shorten(' '.join(step.words.split()), _LINE)}{_whose(step)}",
            was,
            *goes,
        ]
    if step.action is DreamAction.SUPERSEDE:
        holds = f"- holds: {_named(step.into or '', memories)}{_whose(step)}"
        return [holds, *(f"  - over: {_named(end, memories)}" for end in step.ends)]
    return [f"- {_named(one, memories)}: {step.why}" for one in step.ends or (step.into or "",)]


def _about(step: Step, memories: Mapping[str, Memory]) -> str:
    named = next((one for one in (*step.ends, step.into) if one), None)
    return _named(named, memories) if named else step.subject


def _promotion(found: Promotion) -> str:
    signals = ", ".join(f"{name} {getattr(found, name):.2f}" for name in SIGNALS)
    outcome = "; ".join(found.failed) or "worth its page"
    return f"- {found.project}: score {found.score:.2f} ({signals}); sessions: {found.sessions}; {outcome}"


def _whose(step: Step) -> str:
    return f"; {step.by}: {step.why}" if step.by else ""


def _named(memory_id: str, memories: Mapping[str, Memory]) -> str:
    memory = memories.get(memory_id)
    said = shorten(" ".join(memory.content.split()), _LINE) if memory else "?"
    return f"{said} ({memory_id[-8:]})"


# ----------------------------------------------------------------------------
# Links in front matter that lead nowhere: the memory at their end is gone for good.
#
# That a target is not in the index proves little: it may be of another home, of a file that nobody
# can read yet, a page
# or an address. So a link is dropped only where the vault itself says what became of its target: the
# ledger that it was
# retired, or a tombstone that it was forgotten; and where no file of it is left.


_ID_SHOWN = 8


def orphaned(home: Home, memories: Iterable[Memory]) -> list[Step]:
    """What drops the links of memories that lead to none; the memories stay."""
    linking = [memory for memory in memories if memory.links]
    gone = gone_for_good(home, {link.to for one in linking for link in one.links})
    return [
        _step_orphan_links(one, gone)
        for one in linking
        if any(link.to in gone for link in one.links)
    ]


def _step_orphan_links(memory: Memory, gone: Collection[str]) -> Step:
    dropped = [link for link in memory.links if link.to in gone]
    named = ", ".join(f"{link.rel} {link.to[-_ID_SHOWN:]}" for link in dropped)
    targets = tuple(dict.fromkeys(link.to for link in dropped))
    return Step(
        DreamAction.UNLINK,
        (),
        memory.id,
        memory.subject,
        f"nothing is left at the end of {named}",
        targets,
    )


def gone_for_good(home: Home, memory_ids: Collection[str]) -> frozenset[str]:
    """Those of some ids that were a memory once, and of which no file is left. None while anything is unread."""
    lacking = set(memory_ids) - home.memories.all_ids() if memory_ids else set()
    if not lacking or _is_unread(home):
        return frozenset()
    return frozenset(lacking & _ended_orphan_links(home))


def _is_unread(home: Home) -> bool:
    """Whether the vault may hold memories that the index does not."""
    if home.problems:
        return True
    seen = home.files.seen_now()[0]
    return not home.vault.times().keys() <= seen.keys()


def _ended_orphan_links(home: Home) -> set[str]:
    """The ids that the vault says were retired or forgotten, at any time."""
    found = {one.value for one in home.tombstones.all() if one.kind is TombstoneKind.MEMORY}
    try:
        entries = list(files.read(home.vault.read(LEDGER)))
    except FileNotFoundError:
        return found
    for entry in entries:
        if entry.action == "retire":
            several = entry.details.get("memories")
            listed = several if isinstance(several, list) else []
            found.update(
                one for one in (*listed, entry.details.get("memory")) if isinstance(one, str)
            )
    return found


# ----------------------------------------------------------------------------
# The inbox: what is filed into a project by evidence, and what is retired since nobody could say
# where it holds.


TRIES, PATIENCE = 3, timedelta(days=7)
"""After so many dreams, and so long after the first of them, what could not be filed is retired (seed facts 3.1)."""

NOBODY_KNOWS = "nobody could say where it holds"

_TRIED = "dream tried to file"
_NOWHERE = ""


@dataclass(frozen=True)
class Filing:
    """Says which project a memory belongs to, where exactly one is borne out."""

    home: Home

    @cached_property
    def _names(self) -> ProjectNames:
        return ProjectNames(self.home)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(projects(self.home))

    def evidence(self, memory: Memory) -> tuple[str, str] | None:
        """The one project that everything known of a memory leads to, and what that is; ``None`` where nothing does,
        or not all of it to the same.

        Words that nobody answers for are no evidence: there only the session is.
        """
        found = self._by_sessions(memory)
        if memory.project:
            found.setdefault(memory.project, "its file says so")
        if memory.is_vouched:
            found = self._names.named(f"{memory.subject}\n{memory.content}") | found
        if len(found) != 1:
            return None
        ((slug, why),) = found.items()
        return (slug, why) if why and slug in self._known else None

    def objection(self, step: Step, memory: Memory | None) -> str | None:
        """What speaks against filing a memory, as it is now; ``None`` where nothing does."""
        if memory is None or not memory.is_active or not memory.inbox:
            return "it does not wait in the inbox any more"
        if step.mark != mark((memory,)):
            return "it has changed since"
        slug, _ = self.evidence(memory) or ("", "")
        return None if slug == step.project else "nothing says any more that it belongs there"

    def _by_sessions(self, memory: Memory) -> dict[str, str]:
        """The projects of the sessions that it was said in; one of no project counts where another has one."""
        said = dict.fromkeys((memory.source.session, *(one.session for one in memory.confirmed)))
        found: dict[str, str] = {}
        for name in said:
            for stored in self.home.sessions.find(name) if name else ():
                if stored.session.id == name:
                    slug = stored.project or resolve_project(
                        self.home, stored.session, create=False
                    )
                    found.setdefault(slug or _NOWHERE, f"said in a session of it, {name}")
        return {} if set(found) == {_NOWHERE} else found


def filed(home: Home, inbox: Iterable[Memory], project: str | None) -> list[Step]:
    """What goes from the inbox into projects, or into one."""
    filing = Filing(home)
    found = []
    for memory in inbox:
        slug, why = filing.evidence(memory) or ("", "")
        if slug and project in (None, slug):
            found.append(
                Step(
                    DreamAction.FILE,
                    (),
                    memory.id,
                    memory.subject,
                    why,
                    mark=mark((memory,)),
                    project=slug,
                )
            )
    return found


def shelved(
    home: Home,
    inbox: Iterable[Memory],
    usage: Mapping[str, Usage],
    now: datetime,
    protected: Sequence[str],
) -> list[Step]:
    """What was tried to be filed long and often enough, and that nobody ever asked for."""
    tried = _tried(home)
    found = []
    for memory in inbox:
        times, first = tried.get(memory.id, (0, now))
        if times < TRIES or now - first < PATIENCE or not may_be_shelved(memory, protected):
            continue
        if not usage.get(memory.id, Usage()).recall_count:
            why = f"{NOBODY_KNOWS}: {times} dreams tried, from {shown_day(first)} on"
            found.append(Step(DreamAction.SHELVE, (memory.id,), None, memory.subject, why))
    return found


def may_be_shelved(memory: Memory, protected: Sequence[str]) -> bool:
    """Whether a memory may be retired because nobody knows where it holds: it was read off a session.

    What a person stored or wrote waits for the person, as proposals and open todos do.
    """
    is_read = bool(memory.source.session) and memory.is_learned and not memory.proposed
    is_kept = (
        memory.kind is Kind.TODO or memory.expiry is Expiry.CORE or is_protected(memory, protected)
    )
    return memory.inbox and is_read and not is_kept


def note_tried(home: Home, unfiled: Collection[str] | None) -> None:
    """A dream looked for where these hold, in vain; ``None``: it did not look. Call it in a transaction."""
    if unfiled is None:
        return
    before = _tried(home)
    now = home.now()
    counted = {one: before.get(one, (0, now)) for one in unfiled}
    told = {one: [times + 1, first.isoformat()] for one, (times, first) in counted.items()}
    home.usage.set_value(_TRIED, json.dumps(told))


def _tried(home: Home) -> dict[str, tuple[int, datetime]]:
    noted = json.loads(home.usage.value(_TRIED) or "{}")
    return {
        one: (int(times), datetime.fromisoformat(first)) for one, (times, first) in noted.items()
    }
