"""Dreams: what a plan holds, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nacre.platform.ids import content_hash


class DreamAction(StrEnum):
    """What a dream does to memories.

    ``expire``: what was meant for a while is over. ``forget``: what was never asked for goes. ``merge``: what says the
    same goes into the one that stays. ``shelve``: what waits in the inbox, and nobody could file. All of them retire;
    nothing is deleted. ``unlink``: a link that leads nowhere is dropped. ``file``: what waits in the inbox goes into
    the project that it belongs to. ``page``: a project's page tells of its sessions and decisions, and of what a writer
    made of its memories; the owner's profile of what it made of the owner's. ``link``: two memories that a writer says
    belong together are linked. ``join``: a project becomes a part of another one. There nothing ends.
    """

    EXPIRE = "expire"
    FORGET = "forget"
    MERGE = "merge"
    SUPERSEDE = "supersede"
    SHELVE = "shelve"
    FILE = "file"
    PAGE = "page"
    JOIN = "join"
    UNLINK = "unlink"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a dream would do: the ids of the memories that end, the one that stays in their place, if any,
    what it is about, and why. ``links`` are the ends of links that the one that stays loses. What is filed is in
    ``into``, and goes into ``project``; the project ``subject`` joins ``project``; a page is that of ``project``, else
    the owner's profile, and ``words`` are what nacre's part of it says from then on. A link leads from ``into`` to the
    one of ``links``, and ``words`` are its relation.

    Where a writer proposed it, ``by`` names it, ``words`` are what the one that stays says from then on (empty: what it
    says already), and ``mark`` is what the proposal rests on.
    """

    action: DreamAction
    ends: tuple[str, ...]
    into: str | None
    subject: str
    why: str
    links: tuple[str, ...] = ()
    words: str = ""
    by: str = ""
    mark: str = ""
    project: str = ""

    @property
    def key(self) -> str:
        """What tells a step from any other of a plan."""
        parts = (self.action, self.into or "", self.words, self.project, *self.ends, "", *self.links)
        parts = (*parts, self.subject) if self.action is DreamAction.JOIN else parts
        return content_hash("\0".join(parts)).hex()[:16]


@dataclass(frozen=True, slots=True)
class PageDraft:
    """What a writer (``by``) made of a page: sections, each a heading and its lines, and in words what they rest on.

    ``project`` is empty for the owner's profile.
    """

    project: str
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    by: str
    why: str


SIGNALS = ("relevance", "frequency", "diversity", "recency", "consolidation", "richness")
"""What is weighed of a project's sessions."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """What speaks for telling of a project's new sessions on its page: six signals, each 0 to 1, and their weighed sum.

    ``failed`` are the gates that it did not pass; where there are none, the page is written.
    """

    project: str
    sessions: int
    relevance: float
    frequency: float
    diversity: float
    recency: float
    consolidation: float
    richness: float
    score: float
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DreamPlan:
    """What a dream would do, of ``seen`` active memories; ``put_off`` is more than one night ends (``most``).

    ``refused`` are steps that a writer proposed and that did not bear a second look, each with the reason; they wait in
    the review queue. ``settled`` are clusters and pairs (marks) about which nothing is left to ask, ``unasked`` is how
    many wait for another dream, and ``note`` says why a writer was not asked, or not to the end. ``promotions`` say
    what was found of projects with new sessions. ``unfiled`` waits in the inbox, and nothing says where it belongs;
    ``None`` where nobody looked. ``texts`` are the first words of the memories that merges and endings name, by id.
    ``brought_back`` counts those that a dream ended before, and a person brought back: they are left. ``looked`` are
    the pages that a writer was asked about, by project (empty: the profile), with marks of what it was shown. ``keys``
    name the steps, one each, for who wants some of them only.
    """

    steps: tuple[Step, ...]
    put_off: tuple[Step, ...] = ()
    seen: int = 0
    most: int = 0
    project: str | None = None
    refused: tuple[tuple[Step, str], ...] = ()
    settled: tuple[str, ...] = ()
    unasked: int = 0
    note: str | None = None
    promotions: tuple[Promotion, ...] = ()
    unfiled: tuple[str, ...] | None = None
    texts: tuple[tuple[str, str], ...] = ()
    brought_back: int = 0
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def ending(self) -> int:
        """How many memories end."""
        return sum(len(step.ends) for step in self.steps)

    @property
    def dropped(self) -> int:
        """How many ends of links are dropped."""
        return sum(len(step.links) for step in self.steps if step.action is DreamAction.UNLINK)


@dataclass(frozen=True, slots=True)
class DreamEstimate:
    """What asking a writer would take: ``clusters`` of so many memories, ``pages``, and ``pairs`` that nothing
    connects, in so many calls.

    ``cost`` is millionths of a US dollar, ``None`` where the price is not known. ``model`` is ``none`` where no writer
    is set; ``unasked`` are clusters that wait for another dream; ``note`` says why there are none.
    """

    model: str
    clusters: int = 0
    memories: int = 0
    calls: int = 0
    tokens: int = 0
    cost: int | None = None
    unasked: int = 0
    note: str | None = None
    pages: int = 0
    pairs: int = 0


@dataclass(frozen=True, slots=True)
class DreamReport:
    """What was planned, the operation that did it (``None``: nothing was done), and the diary's path in the vault.

    ``left`` are steps that were not done, each with the reason. ``is_first``: a home's first dream, which only plans.
    """

    plan: DreamPlan
    operation: str | None = None
    diary: str | None = None
    left: tuple[tuple[Step, str], ...] = ()
    is_first: bool = False
