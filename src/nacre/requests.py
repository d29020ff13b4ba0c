"""What agents ask for beside recall and storing: where they are, pages, sessions, what a text teaches, what waits.

Each request is answered as a whole, by values that can cross to another process; see :mod:`nacre.catalogue`.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from nacre.errors import InvalidInput, NotFound, VaultUnusable
from nacre.extraction.candidate import Candidate
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.home.lookup import projects
from nacre.home.projects import page_text
from nacre.review.conflicts import Pair
from nacre.review.queue import Review
from nacre.sessions.views import SessionLine
from nacre.storage.sessions import SessionFilter
from nacre.values.reports import Check
from nacre.vault.layout import slugify

HERE = "."
_PROFILE = "profile.md"


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """Which project is meant: by a name, a slug or an alias, or, without one or with ``.``, by a folder."""

    name: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The project meant, and all that are known. ``is_known`` is false for a name that no project has."""

    project: str | None
    known: tuple[str, ...] = ()
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The page of a project, by its slug, or the owner's profile."""

    project: str | None = None


@dataclass(frozen=True, slots=True)
class SessionsRequest:
    """A page of sessions, the newest first."""

    filter: SessionFilter = SessionFilter()
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some sessions, and whether there are more."""

    lines: tuple[SessionLine, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """One session by its id or the beginning of it; its turns from ``first`` on, or, with ``at_end``, its last ones."""

    reference: str
    first: int = 0
    limit: int = 20
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class ExtractRequest:
    """What a text or a session that was read would teach; ``by_model=False`` goes by rules."""

    text: str = ""
    session: str | None = None
    by_model: bool = True


@dataclass(frozen=True, slots=True)
class Extracted:
    """What would be learned, and what was wrong with the model if one was asked."""

    candidates: tuple[Candidate, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class OverviewRequest:
    """Nothing is to be chosen."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What is remembered: active memories by kind, projects, and the state of everything in words."""

    memories: dict[str, int]
    projects: tuple[str, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read what is new in transcripts: all that discovery finds."""

    vectors: bool = True


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """Nothing is to be chosen."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for a person: memories that cannot both hold, and memories that seem of little use."""

    conflicts: tuple[Pair, ...] = ()
    reviews: tuple[Review, ...] = ()


def place(home: Home, asked: PlaceRequest) -> Place:
    """The project meant; see :class:`PlaceRequest`. Nothing is made."""
    known = tuple(projects(home))
    if asked.name in (None, "", HERE):
        found = project_of_folder(home, Path(asked.folder)) if asked.folder else None
        return Place(found, known)
    found = project_called(home, asked.name or "", known)
    return Place(found, known, found in known)


def project_called(home: Home, name: str, known: tuple[str, ...] | list[str]) -> str:
    """The slug of the project that a name means, whether there is one or not."""
    slug = slugify(home.redactor.clean(name))
    if name in known:
        return name
    found = home.files.project_by("alias", name)
    return found or next((other for other in known if slugify(other) == slug), slug)


def page(home: Home, asked: PageRequest) -> str:
    """What a page tells, without secrets; empty where there is none."""
    if asked.project is not None:
        if asked.project not in projects(home):
            raise NotFound(f"no project is called {asked.project!r}", hint="memory_admin with overview names them")
        return home.redactor.clean(page_text(home, asked.project)).strip()
    try:
        text = home.vault.read(_PROFILE).decode("utf-8", errors="replace")
    except (OSError, VaultUnusable):
        return ""
    return home.redactor.clean(text).strip()


def extracted(home: Home, asked: ExtractRequest) -> Extracted:
    """What extraction makes of it; nothing is stored. Raises InvalidInput, NotFound, Conflict, TranscriptUnreadable."""
    from nacre.extraction.propose import ProposalRequest, propose  # the cue tables: few ask for this

    if bool(asked.text.strip()) == bool(asked.session):
        raise InvalidInput("give a text or a session", hint="one of them, not both")
    model = None if asked.by_model else "none"
    if asked.session:
        found = propose(home, ProposalRequest(session=asked.session, model=model))
    else:
        with tempfile.TemporaryDirectory(prefix="nacre-extract-") as folder:
            file = Path(folder) / "text.md"
            file.write_text(asked.text, encoding="utf-8")
            found = propose(home, ProposalRequest(file, model=model))
    problem = next((one.asked.problem for one in found if one.asked and one.asked.problem), None)
    return Extracted(tuple(candidate for one in found for candidate in one.candidates), problem)


def overview(home: Home, _: OverviewRequest) -> Overview:
    """What is remembered, and how everything is."""
    from nacre.health.checks import health  # with all that there is to look at

    checks = tuple(health(home))
    counts = home.memories.counts()
    for state in ("superseded", "retired"):
        counts.pop(state, None)
    return Overview(counts, tuple(projects(home)), checks)


def waiting(home: Home, _: WaitingRequest) -> Waiting:
    """What waits for a person."""
    from nacre.review import conflicts, queue

    return Waiting(tuple(conflicts.pending(home)), tuple(queue.pending(home)))
