"""Analyses of the graph of memories: central ones, gaps, connected components.

No model is asked. Links are those that :meth:`nacre.storage.links.Links.count` counts, so that likeness is none of
them: a memory that only resembles others is a gap (the seed leaves such ones out of its ranking, seed facts 2.2). The
same home gives the same answer.
"""

from __future__ import annotations

from nacre.graph.net import Net, memories_of, net_of
from nacre.graph.requests import AnalysisRequest
from nacre.graph.values import Central, CentralMemory, Component, Components, Gap, Gaps
from nacre.home.home import Home
from nacre.memories.quality import maturity
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage
from nacre.values.memory import Memory
from nacre.values.review import Maturity, Usage

GAP_LINKS = 1
"""Most links of a memory that is a gap (seed facts 2.2)."""

_NAMED = 3
_RANKS = (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE)


def central(home: Home, asked: AnalysisRequest) -> Central:
    """The memories with the most links."""
    catch_up(home)
    net = net_of(home, asked.project)
    return Central(central_of(home, net, asked.limit), len(net.ids), len(net.links))


def central_of(home: Home, net: Net, limit: int) -> tuple[CentralMemory, ...]:
    """The most linked memories of a graph."""
    chosen = net.most_linked(net.linked, limit)
    memories = memories_of(home, net, chosen)
    return tuple(CentralMemory(memories[at], net.degrees[at]) for at in chosen if at in memories)


def gaps(home: Home, asked: AnalysisRequest) -> Gaps:
    """Memories with one link at most: the proven first, then those without any, then the most used."""
    catch_up(home)
    fold_usage(home)
    net = net_of(home, asked.project)
    few = [at for at, degree in enumerate(net.degrees) if degree <= GAP_LINKS]
    usage = home.usage.of([net.ids[at] for at in few])

    def used(at: int) -> Usage:
        return usage.get(net.ids[at], Usage())

    few.sort(key=lambda at: (_RANKS.index(maturity(used(at))), net.degrees[at], -used(at).access_count, at))
    chosen = few[: asked.limit]
    memories = memories_of(home, net, chosen)
    found = [_gap(home, memories[at], net.degrees[at], used(at)) for at in chosen if at in memories]
    return Gaps(tuple(found), len(few), len(net.ids) - len(net.linked))


def _gap(home: Home, memory: Memory, degree: int, usage: Usage) -> Gap:
    last = max(memory.last_said, usage.last_recalled or memory.last_said)
    return Gap(memory, degree, maturity(usage), max(0, (home.now() - last).days))


def components(home: Home, asked: AnalysisRequest) -> Components:
    """The connected components, the largest first, each with its most linked memories."""
    catch_up(home)
    net = net_of(home, asked.project)
    counts = [0] * len(net.ids)
    for source, _ in net.links:
        counts[source] += 1
    found = []
    for members in net.components[: asked.limit]:
        named = net.most_linked(members, _NAMED)
        memories = memories_of(home, net, named)
        most = tuple(memories[at] for at in named if at in memories)
        found.append(Component(len(members), sum(counts[at] for at in members), most))
    return Components(tuple(found), len(net.components), len(net.ids) - len(net.linked))
