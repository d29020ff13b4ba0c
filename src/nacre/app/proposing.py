"""What extraction would make of transcripts: shown, and not stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nacre.app.context import Context
from nacre.app.extracting import ask_about, related
from nacre.app.looking import find_session
from nacre.app.meaning import meaning_of
from nacre.app.models import NONE, model_for
from nacre.app.reading import batches, opened
from nacre.errors import NotFound, TranscriptUnreadable
from nacre.extract.by_model.asking import Extraction, Wanted, Way
from nacre.extract.candidate import Candidate
from nacre.extract.extractor import extract
from nacre.model.prompting import Task
from nacre.model.reports import Progress
from nacre.model.session import Session, Speaker, Turn
from nacre.protocols import LanguageModel
from nacre.settings import Value


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """Which sessions, and how: those of a transcript, or the one of the home that ``session`` names.

    With both it names one of the transcript. ``model`` goes before the one that is set; ``none`` extracts by rules.
    """

    path: Path | None = None
    session: str | None = None
    model: str | None = None
    way: Way = Way.FITTING
    user_only: bool = False
    with_related: bool = True


@dataclass(frozen=True, slots=True)
class Proposal:
    """What extraction makes of one session; ``asked`` tells how, where a language model did it."""

    session: Session
    candidates: tuple[Candidate, ...]
    asked: Extraction | None = None


def propose(
    context: Context, wanted: ProposalRequest, notify: Callable[[Progress], None] = lambda _: None
) -> list[Proposal]:
    """Extract, and store nothing but the trace of what a model was asked.

    Raises NotFound, Conflict, TranscriptUnreadable; ModelRefused for a model that cannot be opened.
    """
    talks = _of_file(context, wanted.path, wanted.session) if wanted.path else _of_home(context, wanted.session or "")
    model = _model(context, wanted.model)
    try:
        found = []
        for done, (session, project, turns) in enumerate(talks):
            notify(Progress("learning", done, len(talks), model.name if model else ""))
            found.append(_proposed(context, wanted, model, session, project, turns))
        return found
    finally:
        if model:
            model.close()


def _model(context: Context, name: str | None) -> LanguageModel | None:
    if name:
        values = {**context.settings.values, f"models.{Task.EXTRACTION}": Value(name, "--model")}
        context = replace(context, settings=replace(context.settings, values=values))
    return None if name == NONE else model_for(context, Task.EXTRACTION, background=False)


def _proposed(
    context: Context, wanted: ProposalRequest, model: LanguageModel | None, session: Session, project: str | None,
    turns: Sequence[Turn],
) -> Proposal:  # fmt: skip
    meaning = meaning_of(context)
    if model is None:
        shown = [turn for turn in turns if not wanted.user_only or turn.speaker is Speaker.OWNER]
        return Proposal(session, tuple(extract(session, shown, meaning=meaning)))
    asked = ask_about(
        context, model, session, turns,
        Wanted(
            way=wanted.way, user_only=wanted.user_only,
            related=related(context, project, turns) if wanted.with_related else (),
            timeout_seconds=context.settings["models.timeout_seconds"],
        ),
        meaning=meaning,
    )  # fmt: skip
    return Proposal(session, asked.candidates, asked)


_Talk = tuple[Session, str | None, Sequence[Turn]]


def _of_file(context: Context, path: Path, reference: str | None) -> list[_Talk]:
    """The sessions of a transcript with their turns, redacted, as ingest would read them."""
    found: dict[str, tuple[Session, list[Turn]]] = {}
    try:
        with opened(path) as (adapter, source):
            if adapter is None:
                raise TranscriptUnreadable(
                    f"{path} is not a transcript nacre knows", hint="docs/agents.md lists what can be read"
                )
            for batch in batches(path, adapter, source, context.redactor):
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


def _of_home(context: Context, reference: str) -> list[_Talk]:
    stored = find_session(context, reference)
    return [(stored.session, stored.project, [item.turn for item in context.sessions.turns_of(stored.row)])]
