"""Two projects that are one, by what their pages list: the one that goes becomes a part of the other.

Code decides alone. No writer is asked: what a remote, a folder or an alias says is no question of understanding, and
names that are merely alike are no evidence, however alike anybody finds them.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from nacre.dream.reorganising.page import wants_dreams
from nacre.dream.values import DreamAction, Step
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.home.location import locate
from nacre.home.projects import Page
from nacre.projects import moving, pages
from nacre.projects.evidence import evidence
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

JOINS_A_NIGHT = 1
"""Projects that one dream joins to others: each touches all memories of one."""

_ENTRY = re.compile(rb'"action": ?"project-merge"')

Pages = Mapping[str, Page | None]


def joined(home: Home, project: str | None) -> list[Step]:
    """The projects to be joined, each into another one; with ``project``, only where it is one of both."""
    known = dict(_readable(home, moving.known_slugs(home)))
    weights = _weights(home, known)
    before = set(_joined_before(home))
    found = []
    for one, other in sorted(_pairs(known)):
        if project is None or project in (one, other):
            source, into = _direction(known, weights, one, other)
            step = _step(home, source, into, known)
            if step and not _is_brought_back(known, before, source, into):
                found.append(step)
        if len(found) == JOINS_A_NIGHT:
            break
    return found


def join_objection(home: Home, step: Step) -> str | None:
    """What speaks against joining two projects, as they are now; ``None`` where nothing does."""
    known = dict(_readable(home, (step.subject, step.project)))
    is_there = len(known) == 2 and step.subject in moving.known_slugs(home)
    present = _step(home, step.subject, step.project, known) if is_there else None
    if present is None:
        return "nothing says any more that they are one"
    return None if present.mark == step.mark else "one of their pages was edited since"


def _step(home: Home, source: str, into: str, known: Pages) -> Step | None:
    page, other = known[source], known[into]
    found = evidence(home, (source, page), (into, other))
    is_wanted = all(wants_dreams(one.values) for one in (page, other) if one)
    if not found or not is_wanted or moving.objection(home, source, into):
        return None
    mark = ":".join(one.hash.hex() if one else "" for one in (page, other))
    return Step(DreamAction.JOIN, (), None, source, "; ".join(found), mark=mark, project=into)


def _readable(home: Home, slugs: Iterable[str]) -> Iterator[tuple[str, Page | None]]:
    for slug in slugs:
        try:
            yield slug, pages.page_of(home, slug)
        except NacreError:  # a person has to mend it first
            continue


def _pairs(known: Pages) -> set[tuple[str, str]]:
    """The projects that may be one: pages that list the same, or one of which names the other."""
    holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for slug, page in known.items():
        facts = pages.facts(page)
        holders["name", slug].add(slug)
        for key, name in (("remotes", "remote"), ("roots", "root"), ("aliases", "name")):
            for value in facts.get(key, ()):
                holders[name, value].add(slug)
        for root in facts.get("roots", ()):
            if os.path.isfile(os.path.join(root, ".git")):
                holders["root", locate(root).root or root].add(slug)
    return {pair for slugs in holders.values() for pair in combinations(sorted(slugs), 2)}


def _direction(known: Pages, weights: Mapping[str, tuple[int, str]], one: str, other: str) -> tuple[str, str]:
    """Which goes into which: the one that the other's page names as its own, else the smaller, else the younger."""
    is_named = one in pages.facts(known[other]).get("aliases", ())
    names_it = other in pages.facts(known[one]).get("aliases", ())
    if is_named != names_it:
        return (one, other) if is_named else (other, one)
    (size, made), (its_size, its_made) = weights[one], weights[other]
    goes_first = (size, its_made) < (its_size, made)
    return (one, other) if goes_first else (other, one)


def _weights(home: Home, known: Pages) -> dict[str, tuple[int, str]]:
    """How much each project holds, and its id, which begins with the time at which it was made."""
    memories, sessions = home.project_contents.memories(), home.project_contents.sessions()
    sizes = {slug: memories.get(slug, (0, None))[0] + sessions.get(slug, (0, None))[0] for slug in known}
    return {slug: (sizes[slug], str(page.values.get("id") or "") if page else "") for slug, page in known.items()}


def _is_brought_back(known: Pages, before: set[tuple[str, str]], source: str, into: str) -> bool:
    """Whether both were joined once, and that was taken back: what the page of the one that stayed says no more."""
    was_joined = {(source, into), (into, source)} & before
    is_taken_back = known[source] is not None and source not in pages.facts(known[into]).get("aliases", ())
    return bool(was_joined) and is_taken_back


def _joined_before(home: Home) -> Iterator[tuple[str, str]]:
    try:
        data = home.vault.read(LEDGER)
    except FileNotFoundError:
        return
    for entry in ledger.read_about(data, _ENTRY):
        if entry.action == moving.MERGE:
            yield str(entry.details.get("project")), str(entry.details.get("into"))
