"""What agents ask for beside recall and storing: where they are, pages, sessions, what a text teaches, what waits.

Each request is answered as a whole, by values that can cross to another process; see :mod:`nacre.catalogue`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from nacre.errors import InvalidInput, NotFound, VaultUnusable
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.home.projects import page_text
from nacre.requests import ExtractRequest, OverviewRequest, PageRequest, PlaceRequest, WaitingRequest
from nacre.sessions.views import projects
from nacre.vault.layout import slugify
from nacre.views import Extracted, Overview, Place, Waiting

HERE = "."
_PROFILE = "profile.md"


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
