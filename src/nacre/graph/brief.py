"""All that is remembered, in about 200 tokens."""

from __future__ import annotations

from datetime import timedelta

from nacre.graph.analysis import GAP_LINKS, central_of
from nacre.graph.net import Net, net_of
from nacre.graph.requests import BriefRequest
from nacre.graph.values import Brief, CentralMemory
from nacre.home.home import Home
from nacre.home.lookup import projects
from nacre.memories.scan import catch_up
from nacre.memories.store import list_active
from nacre.text.passages import one_line, shorten
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter

RECENT = timedelta(days=30)
_NAMED = 3
_LOOKED_AT = 20
"""Of the most linked memories those are named that somebody answers for."""

_SUBJECT = 70


def brief(home: Home, asked: BriefRequest) -> Brief:
    """All in short. The daemon keeps it until something is written, for half a minute at most."""
    catch_up(home)
    key = ("brief", asked, home.memories.snapshot(), home.links.state(), home.now().date())
    known = home.analyses.get(key)
    if isinstance(known, Brief):
        return known
    found = _brief(home, asked.project)
    home.analyses.put(key, found)
    return found


def _brief(home: Home, project: str | None) -> Brief:
    net = net_of(home, project)
    within = (project,) if project else ()
    since = home.now() - RECENT
    _, todos = list_active(home, Filter(kinds=(Kind.TODO,), projects=within, strict=True), limit=1)
    decided = Filter(kinds=(Kind.DECISION,), projects=within, strict=True, since=since, trusted=True, settled=True)
    decisions, _ = list_active(home, decided, limit=_NAMED)
    recent, _ = list_active(home, Filter(projects=within, strict=True, since=since), limit=_RECENT_MEMORIES)
    active = tuple(dict.fromkeys(one.project for one in recent if one.project))[:_NAMED]
    few = sum(degree <= GAP_LINKS for degree in net.degrees)
    most = central_of(home, net, _LOOKED_AT)
    central = tuple(one for one in most if one.memory.is_vouched)[:_NAMED]
    known = [project] if project else projects(home)
    stale = len(home.memories.stale().keys() & set(net.ids))
    numbers = _Numbers(home, net, project, few, todos, len(known), stale)
    return Brief(
        numbers.told(central, active, decisions), len(net.ids), len(net.links), numbers.alike, len(known),
        len(net.components), few, len(net.ids) - len(net.linked), todos, stale, central, active, tuple(decisions),
    )  # fmt: skip


_RECENT_MEMORIES = 200


class _Numbers:
    """What is counted, and how it is told."""

    def __init__(
        self, home: Home, net: Net, project: str | None, gaps: int, todos: int, known: int, stale: int
    ) -> None:  # fmt: skip
        self.alike = home.links.count_alike(project)
        self._net = net
        self._project = project
        self._gaps = gaps
        self._todos = todos
        self._known = known
        self._stale = stale

    def told(
        self, central: tuple[CentralMemory, ...], active: tuple[str, ...], decisions: list[Memory]
    ) -> str:  # fmt: skip
        """The brief in words."""
        net = self._net
        where = f"in {self._project}" if self._project else f"in {_count(self._known, 'project')}"
        lines = [
            f"{_count(len(net.ids), 'memory', 'memories')} {where}, {_count(len(net.links), 'link')} between them "
            f"(and {_count(self.alike, 'pair')} alike). {_count(len(net.components), 'group')} of linked memories, "
            f"{len(net.ids) - len(net.linked):,} without a link, {self._gaps:,} with one at most. "
            f"{_count(self._todos, 'open todo')}, {self._stale:,} that may be out of date."
        ]
        if central:
            lines.append("Most linked: " + "; ".join(f"{_short(one.memory)} ({one.degree})" for one in central) + ".")
        if active and not self._project:
            lines.append(f"Active in the last 30 days: {', '.join(active)}.")
        if decisions:
            lines.append("Decided lately: " + "; ".join(map(_short, decisions)) + ".")
        return "\n".join(lines)


def _short(memory: Memory) -> str:
    return f"{one_line(shorten(memory.subject, _SUBJECT))} [{memory.id[-8:]}]"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
