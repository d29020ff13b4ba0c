"""What a writer is shown as known: what was stored in a session itself, and what is near to what is said in it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from nacre.errors import EmbedderUnavailable
from nacre.extraction.by_model.together import Shown
from nacre.extraction.coverage import may_be_shown
from nacre.extraction.reading.sentences import Statement
from nacre.extraction.reading.speech import utterances
from nacre.home.home import Home
from nacre.retrieval.recall import recall
from nacre.spending.embedders import configured_embedder
from nacre.transcripts.tool_calls import memories_made
from nacre.values.memory import Memory
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Speaker, Trust, Turn

MOST_RELATED = 24
"""Of other sessions: the nearest, since no cosine tells what a session ends (seed facts 1.5: from .72 on, five)."""

MOST_OF_SESSION = 40
_CANDIDATES = 15
_LOOKED_AT = 200
_SECONDS = 5.0
_STATEMENTS, _MESSAGES = 24, 48
"""So many of the longest statements of the owner's and messages of the agent's are compared with what is known."""

_MESSAGE = 1_200
"""Characters of a message: what an embedder reads of it."""

_ASKED_IN_WORDS = 6


def related(home: Home, sessions: Sequence[Shown], project: str | None, writer: str) -> tuple[Memory, ...]:
    """What is known already, as far as a writer may be shown it: all that was stored in sessions of a project, then the
    few that are nearest to what is new in these.
    """
    own = {memory.id: memory for one in sessions for memory in stored_in(home, one.session.id, one.turns)}
    stated = _longest((one.text for shown in sessions for one in _stated(shown)), _STATEMENTS)
    reported = _longest((one for shown in sessions for one in _reported(shown)), _MESSAGES)
    near = (one for one in _nearby(home, project, stated, reported) if one.id not in own)
    return (
        *_shown(home, own.values(), writer, MOST_OF_SESSION * len(sessions)),
        *_shown(home, near, writer, MOST_RELATED),
    )


def touched(home: Home, project: str | None, writer: str, clauses: Sequence[str]) -> tuple[Memory, ...]:
    """The trusted memories of a project, and those of none, that share most words with clauses that hold no longer, as
    far as a writer may be shown them.

    It has its turn meanwhile: who asks a model stands aside.
    """
    wanted = Filter(projects=(project,) if project else (), trusted=True)
    with home.turn:
        return tuple(_shown(home, _in_words(home, wanted, clauses, time.monotonic() + _SECONDS), writer, MOST_RELATED))


def _shown(home: Home, memories: Iterable[Memory], writer: str, most: int) -> Iterator[Memory]:
    """The first of some memories that a writer may be shown."""
    return islice((one for one in memories if may_be_shown(home, one, writer)), most)


def _stated(shown: Shown) -> Iterator[Statement]:
    for spoken in utterances(shown.turns):
        yield from spoken.statements if spoken.index >= shown.begin else ()


def _reported(shown: Shown) -> Iterator[str]:
    """What the agent says of its work: mostly that is what shows that a memory holds no longer."""
    return (one.text[:_MESSAGE] for one in shown.turns[shown.begin :] if one.speaker is Speaker.AGENT and one.text)


def _longest(texts: Iterable[str], most: int) -> list[str]:
    return sorted(dict.fromkeys(texts), key=len, reverse=True)[:most]


def stored_in(home: Home, session: str, turns: Sequence[Turn]) -> tuple[Memory, ...]:
    """The trusted memories that were stored in a session, the agent's proposals among them, in their order.

    Its host may not name it to those who store: then the answers to the agent in its turns tell.
    """
    found = {one.id: home.memories.find(one.id) for one in home.memories.known_of(session)}
    for end in memories_made(turns):
        found |= {one.id: one for one in home.memories.find_like(end) if one.source.session in (None, session)}
    holding = (one for one in found.values() if one and one.is_active)
    trusted = (one for one in holding if one.trust is Trust.TRUSTED)
    return tuple(sorted(trusted, key=lambda one: (one.created, one.id))[-MOST_OF_SESSION:])


def _nearby(home: Home, project: str | None, stated: Sequence[str], reported: Sequence[str]) -> Sequence[Memory]:
    """The trusted memories that are nearest to what is said in a session, the nearest first, however near: those of its
    project and those of none, as a session changes nothing elsewhere.

    By vectors where there are any, else in words, those of the owner alone, for five seconds at most.
    """
    wanted = Filter(projects=(project,) if project else (), trusted=True)
    until = time.monotonic() + _SECONDS
    try:
        found: Sequence[Memory] = _nearest(home, wanted, [*stated, *reported]) if _has_vectors(home) else ()
    except EmbedderUnavailable:
        found = ()
    return found or _in_words(home, wanted, stated[:_ASKED_IN_WORDS], until)


def _has_vectors(home: Home) -> bool:
    return home.settings.text("embedding.model") != "none" and configured_embedder(home).name == home.vectors.model()


def _nearest(home: Home, wanted: Filter, texts: Sequence[str]) -> list[Memory]:
    admitted = home.selection.admitted_memories(wanted, today=home.today())
    best: dict[int, float] = {}
    for vector in configured_embedder(home).embed(list(texts)) if texts else ():
        for row, cosine in home.vectors.memory_cosines(vector).items():
            if row in admitted:
                best[row] = max(cosine, best.get(row, -1.0))
    rows = sorted(best, key=lambda row: -best[row])[:_LOOKED_AT]
    found = home.memories.by_rows(rows)
    return [found[row] for row in rows if row in found and _holds_in(wanted, found[row])]


def _in_words(home: Home, wanted: Filter, statements: Sequence[str], until: float) -> list[Memory]:
    found: dict[str, Memory] = {}
    for statement in statements:
        if time.monotonic() > until or len(found) >= _CANDIDATES:
            break
        query = RecallQuery(
            statement, filter=wanted, mode=Mode.LEXICAL, limit=MOST_RELATED, confident=True, turns=0, update=False
        )
        hits = (hit.memory for hit in recall(home, query).hits)
        found |= {one.id: one for one in hits if _holds_in(wanted, one)}
    return list(found.values())


def _holds_in(wanted: Filter, memory: Memory) -> bool:
    return memory.project in (None, *wanted.projects)
