"""Memories that look alike, for whoever tidies by hand: the groups that a dream would show to a writer."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.dream.clusters import Cluster, clusters
from nacre.dream.requests import AlikeRequest
from nacre.home.home import Home
from nacre.memories.scan import catch_up


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
    memories = [one for one in home.memories.everything() if one.is_active]
    found = clusters(home, [one for one in memories if request.project in (None, one.project)])
    return Alike(tuple(found[: request.limit]), len(found))
