"""The inbox: what is filed into a project by evidence, and what is retired since nobody could say where it holds."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from nacre.dream.checks import mark
from nacre.dream.reorganising.naming import ProjectNames
from nacre.dream.values import DreamAction, Step
from nacre.home.home import Home
from nacre.home.lookup import projects
from nacre.home.projects import resolve_project
from nacre.memories.quality import is_protected
from nacre.platform.days import shown_day
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.review import Usage

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
                    slug = stored.project or resolve_project(self.home, stored.session, create=False)
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
                Step(DreamAction.FILE, (), memory.id, memory.subject, why, mark=mark((memory,)), project=slug)
            )  # fmt: skip
    return found


def shelved(
    home: Home, inbox: Iterable[Memory], usage: Mapping[str, Usage], now: datetime, protected: Sequence[str]
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
    is_kept = memory.kind is Kind.TODO or memory.expiry is Expiry.CORE or is_protected(memory, protected)
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
    return {one: (int(times), datetime.fromisoformat(first)) for one, (times, first) in noted.items()}
