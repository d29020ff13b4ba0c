"""The usefulness of memory, measured with random sessions that got no memory.

A permutation test yields the intervals. If memory makes no difference, an interval excludes 0 by
chance in 5 of 100 homes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random

from nacre.base.frozen import frozen
from nacre.base.ids import from_ms, to_ms
from nacre.base.text import words
from nacre.context.build import prose
from nacre.context.hooks import SHARE, Draw, note_share, read_draw
from nacre.home.home import Home
from nacre.hosts import ways
from nacre.hosts.registry import ALL_HOSTS
from nacre.learn.reading import is_objection
from nacre.learn.sentences import Utterance, language_of, utterances
from nacre.operations import operation
from nacre.values.memory import SessionFilter
from nacre.values.session import Action, Flag, SessionKind, StoredSession, Turn

DRAWS = 1_999
CONFIDENCE = 0.95

LEAST = 32
"""Minimum of m × h / (m + h), for m sessions with memory and h sessions without.

With this minimum, a difference of half a standard deviation is found in 4 of 5 cases: (1.96 +
0.84)² / 0.5² = 31.4. Examples are 64 sessions per group, or 40 without memory and 160 with memory.
"""

LEAST_HAPPENED = 10
"""Minimum number of sessions with the event in both groups. Below it, no interval is computed."""

Counts = Sequence[tuple[int, int]]
"""For each session, the number of events and of opportunities (at least 1)."""


def are_enough(told: Counts, held_out: Counts) -> bool:
    """Return True if there are enough sessions to compare."""
    happened = sum(times > 0 for times, _ in (*told, *held_out))
    effective = len(told) * len(held_out) / max(1, len(told) + len(held_out))
    return effective >= LEAST and happened >= LEAST_HAPPENED


def needed_at(share: float) -> int:
    """Return the number of sessions that a comparison needs if this share is held out."""
    return math.ceil(round(LEAST / (share * (1 - share)), 6))


def rate(counts: Counts) -> float:
    """Return the number of events per opportunity in all sessions together."""
    return sum(times for times, _ in counts) / sum(of for _, of in counts)


def interval(told: Counts, held_out: Counts, random: Random) -> tuple[float, float]:
    """Return a confidence interval for the rate in held-out sessions minus the rate in others.

    Differences are divided by their standard errors, because the groups' variances can differ.
    """
    every: list[_Sums] = [
        (1, times, of, times * times, times * of, of * of) for times, of in (*told, *held_out)
    ]
    whole = _add_sums(every)
    draws = (_add_sums(random.sample(every, len(held_out))) for _ in range(DRAWS))
    by_chance = sorted(_standardised(whole, drawn) for drawn in draws)
    outside = round((1 - CONFIDENCE) / 2 * (DRAWS + 1))
    difference, error = _difference(whole, _add_sums(every[len(told) :]))
    return difference - error * by_chance[-outside], difference - error * by_chance[outside - 1]


_Sums = tuple[int, int, int, int, int, int]
"""Number of sessions, and sums of their events and opportunities, both squares, and the product."""


def _add_sums(sessions: Sequence[_Sums]) -> _Sums:
    n, times, of, squares, products, of_squares = map(sum, zip(*sessions, strict=True))
    return n, times, of, squares, products, of_squares


def _standardised(whole: _Sums, held_out: _Sums) -> float:
    difference, error = _difference(whole, held_out)
    return (
        difference / error if error else math.copysign(math.inf, difference) if difference else 0.0
    )


def _difference(whole: _Sums, held_out: _Sums) -> tuple[float, float]:
    """Return the rate in held-out sessions minus the rate in other sessions, and the difference's standard error."""
    told = [of_all - of_these for of_all, of_these in zip(whole, held_out, strict=True)]
    (without, first), (with_memory, second) = map(_rate_and_variance, (held_out, told))
    return without - with_memory, math.sqrt(first + second)


def _rate_and_variance(sums: Sequence[int]) -> tuple[float, float]:
    n, times, of, squares, products, of_squares = sums
    rate = times / of
    off = squares - 2 * rate * products + rate * rate * of_squares
    return rate, max(0.0, off) / (of * of) * n / (n - 1)


# -- Results ---------------------------------------------------------------------------------------


class Aspect(StrEnum):
    """An aspect in which sessions are compared. A lower number is better."""

    MESSAGES = "messages"
    """The user's messages per session."""
    CORRECTIONS = "corrections"
    """The user's messages that object or decline a tool call, except first messages."""
    REPEATED = "repeated"
    """The user's messages that nearly repeat a message from an earlier session of the project."""
    FAILED_CALLS = "failed-calls"
    """The agent's commands, reads and edits that failed."""


class Finding(StrEnum):
    """The conclusion of a comparison between sessions with and without memory."""

    TOO_FEW = "too few"
    """There are too few sessions, or too few sessions with the event."""
    UNCLEAR = "unclear"
    """Memory might make the event more or less frequent."""
    LESS_WITH_MEMORY = "less with memory"
    MORE_WITH_MEMORY = "more with memory"


@frozen
class Comparison:
    """A comparison between sessions with and without memory in one aspect.

    ``told``: rate in sessions with memory. ``held_out``: rate in sessions without memory. ``difference``: ``held_out``
    minus ``told``. ``low``, ``high``: bounds of the difference with 95 % confidence. If there are too few sessions,
    only the numbers of sessions are set.
    """

    aspect: Aspect
    finding: Finding
    sessions_told: int
    sessions_held_out: int
    told: float | None = None
    held_out: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None


@frozen
class Usefulness:
    """The result of comparing held-out sessions with other sessions.

    ``share``: share of sessions that is held out now, or 0. ``compared``: share that was held out when the compared
    sessions began. ``since``: first use of that share. ``left_out``: number of sessions that cannot be compared, for
    example because they have not ended. ``needed``: minimum number of sessions for a result.
    """

    share: float
    compared: float = 0.0
    since: datetime | None = None
    sessions_told: int = 0
    sessions_held_out: int = 0
    left_out: int = 0
    needed: int = 0
    comparisons: tuple[Comparison, ...] = ()


# -- Counts of sessions ----------------------------------------------------------------------------


GOES_ON = timedelta(hours=1)
"""Time without messages after which a session is over."""

_MIN_WORDS = 5
_MIN_OVERLAP = 0.85
"""Minimum similarity (Jaccard) of two messages that ask the same question."""

_OBSERVED_ACTIONS = frozenset({Action.RUN, Action.READ, Action.EDIT})


@frozen
class Counted:
    """A session that can be compared.

    ``counts``: for each aspect, the number of events and of opportunities. For example, failed
    calls are events, and all calls are opportunities.
    """

    is_held_out: bool
    counts: Mapping[Aspect, tuple[int, int]]


def count_sessions(home: Home, draw: Draw, share: float) -> Iterator[Counted | None]:
    """Yield counts of the sessions that began while this share of sessions was held out.

    Yield ``None`` for a session that cannot be compared.
    """
    tools = {wish.host for wish in ways.load(home.settings.home).wishes} or set(ALL_HOSTS)
    sessions = home.sessions.newest(SessionFilter(kind=SessionKind.MAIN), limit=-1)
    sessions.sort(key=lambda item: (_began(item), item.row))
    sent = _Sent()
    counted: list[tuple[StoredSession, dict[Aspect, tuple[int, int]] | None, range]] = []
    for session in sessions:
        turns = [stored.turn for stored in home.sessions.turns_of(session.row)]
        messages = utterances(turns)
        places = sent.add(session.project or session.session.cwd, messages)
        if draw.share_at(_began(session)) == share and session.session.tool in tools:
            is_steady = draw.is_steady(_began(session), to_ms(session.ended) or 0)
            usable = (
                bool(messages)
                and is_steady
                and session.ended is not None
                and home.now() - session.ended >= GOES_ON
            )
            counted.append((session, _counts(turns, messages) if usable else None, places))
    repeated = sent.repeated()
    for session, counts, places in counted:
        if counts is None:
            yield None
            continue
        repetitions = sum(place in repeated for place in places)
        counts[Aspect.REPEATED] = (repetitions, counts[Aspect.MESSAGES][0])
        yield Counted(draw.takes(session.session.id, _began(session)), counts)


def _began(session: StoredSession) -> int:
    return to_ms(session.session.started) or 0


def _counts(turns: Sequence[Turn], messages: Sequence[Utterance]) -> dict[Aspect, tuple[int, int]]:
    calls = [call for turn in turns if not turn.flags & Flag.SIDECHAIN for call in turn.tool_calls]
    observed_calls = [call for call in calls if call.action in _OBSERVED_ACTIONS]
    after = messages[1:]
    corrections = sum(
        message.correcting or is_objection(message, language_of(message.text)) for message in after
    )
    return {
        Aspect.MESSAGES: (len(messages), 1),
        Aspect.CORRECTIONS: (corrections, len(after)),
        Aspect.FAILED_CALLS: (sum(call.failed for call in observed_calls), len(observed_calls)),
    }


class _Sent:
    def __init__(self) -> None:
        self._all: list[tuple[int, str | None, frozenset[str]]] = []
        """For each message: session, project and words. Short messages get no words."""
        self._sessions = 0

    def add(self, project: str | None, messages: Sequence[Utterance]) -> range:
        """Add a session and return the positions of its messages."""
        begin = len(self._all)
        for text in (prose(message.text) for message in messages):
            message_words = frozenset(words(text))
            self._all.append(
                (
                    self._sessions,
                    project,
                    message_words if len(message_words) >= _MIN_WORDS else frozenset(),
                )
            )
        self._sessions += 1
        return range(begin, len(self._all))

    def repeated(self) -> set[int]:
        """Return the positions of messages that nearly repeat a message from an earlier session of the project."""
        times = Counter(word for _, _, message_words in self._all for word in message_words)
        first: dict[tuple[str | None, frozenset[str]], int] = {}
        earlier: dict[tuple[str | None, str], list[frozenset[str]]] = defaultdict(list)
        places = set()
        for place, (session, project, message_words) in enumerate(self._all):
            rare = _rare(message_words, times)
            likely = (
                other
                for word in rare
                for other in earlier[project, word]
                if _is_same(message_words, other)
            )
            if any(first[project, other] < session for other in likely):
                places.add(place)
            if message_words and (project, message_words) not in first:
                first[project, message_words] = session
                for word in rare:
                    earlier[project, word].append(message_words)
        return places


def _rare(message: frozenset[str], times: Mapping[str, int]) -> list[str]:
    """Return the rarest words of a message. Similar messages share at least one of these words."""
    ordered = sorted(message, key=lambda word: (times[word], word))
    return ordered[: len(ordered) - math.ceil(_MIN_OVERLAP * len(ordered)) + 1]


def _is_same(left: frozenset[str], right: frozenset[str]) -> bool:
    return len(left & right) > _MIN_OVERLAP * len(left | right)


# -- Comparison of held-out sessions ---------------------------------------------------------------


_SEED = 20_26
"""Fixed seed for reproducible results."""


@operation("usefulness", takes_long=True)
def usefulness(home: Home) -> Usefulness:
    """Compare held-out sessions with other sessions."""
    now = home.now_ms()
    if not home.database.unwritable:
        note_share(home.settings, now)
    draw, share = read_draw(home.settings.home), home.settings.number(SHARE)
    used = [(since, past_share) for since, past_share in draw.shares if past_share > 0]
    if not used:
        return Usefulness(share)
    compared = used[-1][1]
    counted = list(count_sessions(home, draw, compared))
    sessions = [session for session in counted if session]
    since = from_ms(next(since for since, past_share in used if past_share == compared))
    held_out = sum(session.is_held_out for session in sessions)
    return Usefulness(
        share,
        compared,
        since,
        len(sessions) - held_out,
        held_out,
        len(counted) - len(sessions),
        needed_at(compared),
        compare(sessions, Random(_SEED)),  # noqa: S311 - reproducible, not for security
    )


def compare(sessions: Sequence[Counted], random: Random) -> tuple[Comparison, ...]:
    """Compare held-out sessions with other sessions, separately for each :class:`Aspect`."""
    return tuple(_compare_aspect(aspect, sessions, random) for aspect in Aspect)


def _compare_aspect(aspect: Aspect, sessions: Sequence[Counted], random: Random) -> Comparison:
    told, held_out = (
        [
            session.counts[aspect]
            for session in sessions
            if session.is_held_out is group and session.counts[aspect][1]
        ]
        for group in (False, True)
    )
    if not are_enough(told, held_out):
        return Comparison(aspect, Finding.TOO_FEW, len(told), len(held_out))
    with_memory, without = rate(told), rate(held_out)
    low, high = interval(told, held_out, random)
    finding = (
        Finding.LESS_WITH_MEMORY
        if low > 0
        else Finding.MORE_WITH_MEMORY
        if high < 0
        else Finding.UNCLEAR
    )
    return Comparison(
        aspect,
        finding,
        len(told),
        len(held_out),
        with_memory,
        without,
        without - with_memory,
        low,
        high,
    )
