"""What is counted of sessions, and of which."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from nacre.context.gate import prose
from nacre.context.hold_out import Draw
from nacre.extraction.reading.course import objects
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.speech import Utterance, utterances
from nacre.home.home import Home
from nacre.hosts.registry import HOSTS
from nacre.platform.ids import to_ms
from nacre.text.passages import words
from nacre.usefulness.values import Aspect
from nacre.values.filters import SessionFilter
from nacre.values.session import Action, Flag, SessionKind, StoredSession, Turn
from nacre.wiring import record

GOES_ON = timedelta(hours=1)
"""A session in which nobody spoke for so long is over."""

_LEAST_WORDS = 5
_SAME = 0.85
"""Two messages whose words overlap so far (Jaccard) ask the same (seed facts 1.8)."""

_DONE = frozenset({Action.RUN, Action.READ, Action.EDIT})


@dataclass(frozen=True, slots=True)
class Counted:
    """A session that can be compared: of each aspect how often it happened, and how often it could have."""

    is_held_out: bool
    counts: Mapping[Aspect, tuple[int, int]]


def count_sessions(home: Home, draw: Draw, share: float) -> Iterator[Counted | None]:
    """The sessions that began while that share was in force; ``None`` for one that cannot be compared."""
    tools = {wish.host for wish in record.load(home.settings.home).wishes} or set(HOSTS)
    found = home.sessions.newest(SessionFilter(kind=SessionKind.MAIN), limit=-1)
    found.sort(key=lambda one: (_began(one), one.row))
    sent = _Sent()
    counted: list[_Counting] = []
    for session in found:
        turns = [stored.turn for stored in home.sessions.turns_of(session.row)]
        messages = utterances(turns)
        places = sent.add(session.project or session.session.cwd, messages)
        if draw.share_at(_began(session)) == share and session.session.tool in tools:
            is_steady = draw.is_steady(_began(session), to_ms(session.ended) or 0)
            usable = bool(messages) and is_steady and _is_over(home, session)
            counted.append(_Counting(session, _counts(turns, messages) if usable else None, places))
    repeated = sent.repeated()
    for one in counted:
        if one.counts is None:
            yield None
            continue
        again = sum(place in repeated for place in one.places)
        counts = {**one.counts, Aspect.REPEATED: (again, one.counts[Aspect.MESSAGES][0])}
        yield Counted(draw.takes(one.session.session.id, _began(one.session)), counts)


@dataclass(frozen=True, slots=True)
class _Counting:
    """A session, what was counted of it, if it can be compared, and the places of its messages among all."""

    session: StoredSession
    counts: Mapping[Aspect, tuple[int, int]] | None
    places: range


def _began(session: StoredSession) -> int:
    return to_ms(session.session.started) or 0


def _is_over(home: Home, session: StoredSession) -> bool:
    return session.ended is not None and home.now() - session.ended >= GOES_ON


def _counts(turns: Sequence[Turn], messages: Sequence[Utterance]) -> dict[Aspect, tuple[int, int]]:
    calls = [call for turn in turns if not turn.flags & Flag.SIDECHAIN for call in turn.tool_calls]
    done = [call for call in calls if call.action in _DONE]
    after = messages[1:]
    corrections = sum(one.correcting or objects(one, language_of(one.text)) for one in after)
    return {
        Aspect.MESSAGES: (len(messages), 1),
        Aspect.CORRECTIONS: (corrections, len(after)),
        Aspect.FAILED_CALLS: (sum(call.failed for call in done), len(done)),
    }


class _Sent:
    """The messages of all sessions, in the order of these."""

    def __init__(self) -> None:
        self._all: list[tuple[int, str | None, frozenset[str]]] = []
        """The session, its project, and the words; those of few words say too little."""
        self._sessions = 0

    def add(self, project: str | None, messages: Sequence[Utterance]) -> range:
        """Add a session; returns the places of its messages."""
        begin = len(self._all)
        for text in (prose(one.text) for one in messages):
            said = frozenset(words(text))
            self._all.append((self._sessions, project, said if len(said) >= _LEAST_WORDS else frozenset()))
        self._sessions += 1
        return range(begin, len(self._all))

    def repeated(self) -> set[int]:
        """The places of those that were sent in nearly these words in an earlier session of their project."""
        times = Counter(word for _, _, said in self._all for word in said)
        first: dict[tuple[str | None, frozenset[str]], int] = {}
        known: dict[tuple[str | None, str], list[frozenset[str]]] = defaultdict(list)
        found = set()
        for place, (session, project, said) in enumerate(self._all):
            rare = _rare(said, times)
            likely = (other for word in rare for other in known[project, word] if _is_same(said, other))
            if any(first[project, other] < session for other in likely):
                found.add(place)
            if said and (project, said) not in first:
                first[project, said] = session
                for word in rare:
                    known[project, word].append(said)
        return found


def _rare(message: frozenset[str], times: Mapping[str, int]) -> list[str]:
    """The rarest words of a message: any that is the same has one of them."""
    ordered = sorted(message, key=lambda word: (times[word], word))
    return ordered[: len(ordered) - math.ceil(_SAME * len(ordered)) + 1]


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _SAME * len(one | other)
