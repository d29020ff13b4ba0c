"""Store what an agent says the owner said: the owner's words are looked up in the session that goes on just now.

An agent may be told by a page it reads what to store, so its word for it counts nothing. Where the memory is what the
owner typed, word for word, it is the owner's, said when they typed it; else it is the agent's proposal: words in
another order, or only some of them, may say the opposite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import timedelta

from msgspec import structs

from nacre.dedup.coverage import adds
from nacre.dedup.statement import read
from nacre.extraction.explicit.cues import reads_as_rule
from nacre.extraction.explicit.find import is_refused, is_stated, is_taken_back
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.reading.shown import may_be_others
from nacre.extraction.reading.speech import utterances
from nacre.home.home import Home
from nacre.ingestion.current_session import read_recent, read_session
from nacre.memories import store as remembering
from nacre.memories.requests import StoreRequest
from nacre.memories.store import Rehearsal, Said
from nacre.text.alike import written
from nacre.text.passages import normalise
from nacre.values.filters import SessionFilter
from nacre.values.memory import Kind, Source
from nacre.values.reports import StoreOutcome
from nacre.values.session import StoredSession, Turn

_RECENT = timedelta(days=1)
_MOST_SESSIONS = 20
_LEAST_CHARACTERS = 12
"""A shorter quote ("yes, do that") says nothing by itself."""


def store(home: Home, new: StoreRequest) -> StoreOutcome:
    """Store a memory; see :func:`nacre.memories.store.store`. Raises MemoryInvalid."""
    new, said = _looked_up(home, new)
    outcome = remembering.store(home, new, said)
    return dataclasses.replace(outcome, proposed=outcome.action == "stored" and said is None and home.actor.is_agent)


def rehearse(home: Home, new: StoreRequest) -> Rehearsal:
    """What :func:`store` would do and why; nothing is written. Raises MemoryInvalid."""
    new, said = _looked_up(home, new)
    return remembering.rehearse(home, new, said)


def _looked_up(home: Home, new: StoreRequest) -> tuple[StoreRequest, Said | None]:
    """A request, and the turn in which the owner said it; a title that says more than the owner did is left out.

    What they took back since is not said. Words said in a project hold there: for a memory of no project they stand
    for that of their session, and for another project's they are only the agent's proposal.
    """
    session = new.source.session or home.settings.session
    if not (new.quote and home.actor.is_agent) or len(new.quote.strip()) < _LEAST_CHARACTERS:
        return new, None
    project = remembering.project_asked_for(home, new)
    for one in _sessions(home, session):
        if one.project and project not in (None, one.project):
            continue
        for turn, statements in _said(home, one, new):
            said = [statement.text for statement in statements]
            if _states(said, new.content):
                if new.subject and adds(new.subject, [*said, new.content]) is not None:
                    new = structs.replace(new, subject=None)
                new = structs.replace(new, project=one.project or new.project)
                is_mixed = any(statement.mixed for statement in statements)
                return new, Said(Source(one.session.id, (turn.id,)), turn.time, is_mixed)
    return new, None


def _sessions(home: Home, session: str | None) -> Iterator[StoredSession]:
    """The session that stores it, read up to now; where its host does not name it, those of the last day."""
    if session:
        found = read_session(home, session)
        yield from [found] if found else []
        return
    read_recent(home)
    yield from home.sessions.newest(SessionFilter(since=home.now() - _RECENT), limit=_MOST_SESSIONS)


def _said(home: Home, session: StoredSession, new: StoreRequest) -> Iterator[tuple[Turn, Sequence[Statement]]]:
    """The turns of the owner that hold a quote, the latest first, with the whole statements of which it is a part,
    unless these were taken back, are marked as somebody else's, or state a rule where it may be.
    """
    turns = home.sessions.whole(session.row)
    spoken = utterances(turns)
    is_rule = new.kind is Kind.PREFERENCE or reads_as_rule(new.content)
    for at in reversed(range(len(spoken))):
        texts = [one.text for one in spoken[at].statements]
        held = _holding(texts, normalise(new.quote or ""))
        if not held or is_refused(spoken, at) or is_taken_back(texts, held.stop - 1):
            continue
        statements = spoken[at].statements[held.start : held.stop]
        if any(one.marked or (is_rule and may_be_others(one)) for one in statements):
            continue
        index = spoken[at].index
        later = (read(one.text) for said in spoken[at + 1 :] for one in said.statements)
        about = read(new.content).words
        if not any(departure.gone <= about for one in later for departure in one.departures):
            yield turns[index], statements


def _states(said: Sequence[str], content: str) -> bool:
    """Whether statements are what a memory says, word for word, and neither ask, suppose nor report it."""
    return all(map(is_stated, said)) and _plain(" ".join(said)) == _plain(content)


def _plain(text: str) -> str:
    """A text as it is written but for its layout, without what people say before they say something: "ok, so"."""
    return written(language_of(text).trim(text))


def _holding(statements: Sequence[str], wanted: str) -> range | None:
    """The places of the fewest statements in a row that hold a text."""
    plain = [normalise(one) for one in statements]
    for length in range(1, len(plain) + 1):
        for first in range(len(plain) - length + 1):
            if wanted in " ".join(plain[first : first + length]):
                return range(first, first + length)
    return None
