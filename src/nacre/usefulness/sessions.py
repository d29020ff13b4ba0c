"""What is counted of sessions, and of which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from nacre.context.gate import is_trivial, prose
from nacre.context.hold_out import Draw
from nacre.extraction.reading.course import objects
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.speech import Utterance, utterances
from nacre.home.home import Home
from nacre.hosts.registry import HOSTS
from nacre.platform.fast_dataclass import dataclass
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
    said: dict[str | None, _Said] = defaultdict(_Said)
    found = home.sessions.newest(SessionFilter(kind=SessionKind.MAIN), limit=-1)
    for session in sorted(found, key=lambda one: (to_ms(one.session.started) or 0, one.row)):
        turns = [stored.turn for stored in home.sessions.turns_of(session.row)]
        messages = utterances(turns)
        repeated = said[session.project or session.session.cwd].add(messages)
        began = to_ms(session.session.started) or 0
        if draw.share_at(began) != share or session.session.tool not in tools:
            continue
        if not messages or not _is_over(home, session) or not draw.is_steady(began, to_ms(session.ended) or began):
            yield None
            continue
        yield Counted(draw.takes(session.session.id, began), _counts(turns, messages, repeated))


def _is_over(home: Home, session: StoredSession) -> bool:
    return session.ended is not None and home.now() - session.ended >= GOES_ON


def _counts(turns: Sequence[Turn], messages: Sequence[Utterance], repeated: int) -> dict[Aspect, tuple[int, int]]:
    calls = [call for turn in turns if not turn.flags & Flag.SIDECHAIN for call in turn.tool_calls]
    done = [call for call in calls if call.action in _DONE]
    after = messages[1:]
    corrections = sum(one.correcting or objects(one, language_of(one.text)) for one in after)
    return {
        Aspect.MESSAGES: (len(messages), 1),
        Aspect.CORRECTIONS: (corrections, len(after)),
        Aspect.REPEATED: (repeated, len(messages)),
        Aspect.FAILED_CALLS: (sum(call.failed for call in done), len(done)),
    }


class _Said:
    """What the owner said in a project's sessions, to be asked in the order of the sessions."""

    def __init__(self) -> None:
        self._by_word: dict[str, list[frozenset[str]]] = defaultdict(list)

    def add(self, messages: Sequence[Utterance]) -> int:
        """One more session; returns how many of its messages were sent before it, nearly in these words."""
        told = [frozenset(words(text)) for text in (prose(one.text) for one in messages) if not is_trivial(text)]
        told = [one for one in told if len(one) >= _LEAST_WORDS]
        repeated = sum(
            any(_is_same(one, other) for word in _rare(one) for other in self._by_word[word]) for one in told
        )
        for one in told:
            for word in _rare(one):
                self._by_word[word].append(one)
        return repeated


def _rare(message: frozenset[str]) -> list[str]:
    """Words of a message of which any that is the same has one: in one order for all, those beyond what is shared."""
    ordered = sorted(message, key=lambda word: (-len(word), word))
    return ordered[: len(ordered) - int(_SAME * len(ordered)) + 1]


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _SAME * len(one | other)
