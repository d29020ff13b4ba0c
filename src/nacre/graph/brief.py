"""A summary of everything that is remembered, in about 200 tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from nacre.graph.analysis import GAP_LINKS, central_of
from nacre.graph.net import cached, net_of
from nacre.graph.requests import BriefRequest
from nacre.graph.values import Brief
from nacre.home.home import Home
from nacre.home.lookup import projects
from nacre.memories.scan import catch_up
from nacre.memories.store import list_active
from nacre.text.passages import count, one_line, shorten
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter

RECENT = timedelta(days=30)
_NAMED = 3
_RECENT_MEMORIES = 200
_LOOKED_AT = 20
"""Of the most linked memories, those that somebody answers for are named."""

_SUBJECT = 70


def brief(home: Home, asked: BriefRequest) -> Brief:
    """The summary. The daemon caches it until something is written, for at most half a minute."""
    catch_up(home)
    return cached(home, asked, Brief, lambda: _brief(home, asked.project))


def _brief(home: Home, project: str | None) -> Brief:
    net = net_of(home, project)
    within = (project,) if project else ()
    since = home.now() - RECENT
    _, todos = list_active(home, Filter(kinds=(Kind.TODO,), projects=within, strict=True), limit=1)
    decided = Filter(kinds=(Kind.DECISION,), projects=within, strict=True, since=since, trusted=True, settled=True)
    decisions, _ = list_active(home, decided, limit=_NAMED)
    recent, _ = list_active(home, Filter(projects=within, strict=True, since=since), limit=_RECENT_MEMORIES)
    central = tuple(one for one in central_of(home, net, _LOOKED_AT) if one.memory.is_vouched)[:_NAMED]
    found = Brief(
        "", len(net.ids), len(net.links), home.links.count_alike(project), 1 if project else len(projects(home)),
        len(net.components), sum(degree <= GAP_LINKS for degree in net.degrees), len(net.ids) - len(net.linked), todos,
        len(home.memories.stale().keys() & set(net.ids)), central,
        tuple(dict.fromkeys(one.project for one in recent if one.project))[:_NAMED], tuple(decisions),
    )  # fmt: skip
    return replace(found, text=_in_words(found, project))


def _in_words(found: Brief, project: str | None) -> str:
    lines = [
        f"{count(found.memories, 'memory', 'memories')} in {project or count(found.projects, 'project')}, "
        f"{count(found.links, 'link')} between them (and {count(found.alike, 'pair')} alike). "
        f"{count(found.components, 'group')} of linked memories, {found.unlinked:,} without a link, "
        f"{found.gaps:,} with one at most. {count(found.todos, 'open todo')}, {found.stale:,} that may be out of date."
    ]
    if found.central:
        lines.append("Most linked: " + "; ".join(f"{_short(one.memory)} ({one.degree})" for one in found.central) + ".")
    if found.active_projects and not project:
        lines.append(f"Active in the last 30 days: {', '.join(found.active_projects)}.")
    if found.decisions:
        lines.append("Decided lately: " + "; ".join(map(_short, found.decisions)) + ".")
    return "\n".join(lines)


def _short(memory: Memory) -> str:
    return f"{one_line(shorten(memory.subject, _SUBJECT))} [{memory.id[-8:]}]"
