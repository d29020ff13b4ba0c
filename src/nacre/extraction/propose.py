"""What extraction would make of transcripts: shown, and not stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from nacre.errors import NotFound, TranscriptUnreadable
from nacre.extraction.by_model.pipeline import Extraction, Wanted
from nacre.extraction.by_model.together import Shown
from nacre.extraction.extractor import extract
from nacre.extraction.known import related, touched
from nacre.extraction.reading.chronology import in_time
from nacre.extraction.requests import ProposalRequest
from nacre.extraction.with_model import ask_about
from nacre.home.home import Home
from nacre.home.lookup import find_session
from nacre.parsing.parse import batches, opened
from nacre.protocols import LanguageModel
from nacre.settings import Value
from nacre.spending.models import NONE, model_for
from nacre.values.candidate import Candidate
from nacre.values.model_calls import Task
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Session, Speaker, Turn


@dataclass(frozen=True, slots=True)
class Proposal:
    """What extraction makes of one session; ``asked`` tells how, where a language model did it."""

    session: Session
    candidates: tuple[Candidate, ...]
    asked: Extraction | None = None

    @property
    def memories(self) -> tuple[Candidate, ...]:
        """Those that would be memories at once; the others would wait."""
        return tuple(one for one in self.candidates if not one.held)


def propose(home: Home, wanted: ProposalRequest, notify: OnProgress = lambda _: None) -> list[Proposal]:
    """Extract, and store nothing but the trace of what a model was asked.

    Raises NotFound, Conflict, TranscriptUnreadable; ModelRefused for a model that cannot be opened.
    """
    talks = _of_file(home, wanted.path, wanted.session) if wanted.path else _of_home(home, wanted.session or "")
    model = _model(home, wanted.model)
    try:
        found = []
        for done, (session, project, turns) in enumerate(talks):
            notify(Progress("learning", done, len(talks), model.name if model else ""))
            found.append(_proposed(home, wanted, model, session, project, turns))
        return found
    finally:
        if model:
            model.close()


def _model(home: Home, name: str | None) -> LanguageModel | None:
    if name:
        values = {**home.settings.values, f"models.{Task.EXTRACTION}": Value(name, "--model")}
        home = replace(home, settings=replace(home.settings, values=values))
    return None if name == NONE else model_for(home, Task.EXTRACTION, background=False)


def _proposed(
    home: Home, wanted: ProposalRequest, model: LanguageModel | None, session: Session, project: str | None,
    turns: Sequence[Turn],
) -> Proposal:  # fmt: skip
    if model is None:
        shown = [turn for turn in turns if not wanted.owner_only or turn.speaker is Speaker.OWNER]
        return Proposal(session, tuple(extract(session, shown)))
    asked = ask_about(
        home, model, session, turns,
        Wanted(
            way=wanted.way, owner_only=wanted.owner_only,
            related=related(home, [Shown(session, turns)], project, model.name) if wanted.related else (),
            near=partial(touched, home, project, model.name),
            timeout_seconds=home.settings.number("models.timeout_seconds"),
        ),
    )  # fmt: skip
    return Proposal(session, asked.candidates, asked)


_Talk = tuple[Session, str | None, Sequence[Turn]]


def _of_file(home: Home, path: Path, reference: str | None) -> list[_Talk]:
    """The sessions of a transcript with their turns, redacted, as ingest would read them."""
    found: dict[str, tuple[Session, list[Turn]]] = {}
    try:
        with opened(path, identities=tuple(home.settings.texts("owner.identities"))) as (adapter, source):
            if adapter is None:
                raise TranscriptUnreadable(
                    f"{path} is not a transcript nacre knows", hint="docs/agents.md lists what can be read"
                )
            for batch in batches(path, adapter, source, home.redactor):
                turns = found[batch.session.id][1] if batch.session.id in found else list[Turn]()
                turns += batch.turns
                found[batch.session.id] = (batch.session, turns)
    except OSError as error:
        raise TranscriptUnreadable(f"{path} cannot be read: {error.strerror}", hint="check its permissions") from error
    chosen: list[_Talk] = [(session, None, turns) for session, turns in found.values() if _is_meant(session, reference)]
    if not chosen:
        raise NotFound(
            f"{path} holds no session {reference!r}" if reference else f"{path} holds no session",
            hint=f"it holds {', '.join(list(found)[:5])}" if found else None,
        )
    return chosen


def _is_meant(session: Session, reference: str | None) -> bool:
    return not reference or reference == session.id or session.native_id.startswith(reference)


def _of_home(home: Home, reference: str) -> list[_Talk]:
    stored = find_session(home, reference)
    turns = in_time([item.turn for item in home.sessions.turns_of(stored.row)])
    return [(stored.session, stored.project, turns)]
