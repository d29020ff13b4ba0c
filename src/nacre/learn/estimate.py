"""Estimate of the maximum cost of learning, without calling a model.

Changed transcripts are read but not stored. The actual cost can be lower, because a call can cover
several sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from math import ceil

from nacre.base.frozen import frozen
from nacre.base.text import count, count_tokens
from nacre.errors import NacreError
from nacre.home.change import likely_project
from nacre.home.home import Home
from nacre.home.spending import (
    NONE,
    daily_budget,
    fold_notes,
    has_writer,
    is_by_subscription,
    name_for,
    tokens_left,
)
from nacre.learn.extract import is_agreed, is_covered, is_worth_asking
from nacre.learn.prompts import SESSION_TOKENS
from nacre.llm import providers
from nacre.llm.credentials import provider_of
from nacre.settings import Settings
from nacre.values.models import DOLLAR, Capabilities, Tokens, dollars
from nacre.values.reports import Problem
from nacre.values.session import Session, StoredSession, Task, Turn

CHUNK_TOKENS = 3_000
OVERLAP_TOKENS = 300

_FRAME_FACTOR = 1.1
"""Factor for turn numbers, speaker names and tool calls in a session's text."""

_CALLS = 2
"""Number of calls per part of a session: extraction and verification."""

_SMALL_SESSION_TOKENS = 800
"""Number of tokens in a short session and its related memories."""

_PROMPT_TOKENS = 800
"""Number of tokens in the shortest instructions for a model."""

_MEMORIES_PER_SESSION = 2
_RESERVED_TOKENS = 4_000
_ANSWER_TOKENS = 2_000
"""Number of output tokens reserved per call."""

_CALL_TOKENS = {
    Task.EXTRACTION: Tokens(1_100, 300),
    Task.DEDUP: Tokens(1_200, 120),
}
"""Number of tokens per call, without the session's text."""


@frozen
class Estimate:
    """The maximum cost of learning.

    ``waiting``: number of sessions that need a model call. ``trivial``: number of others. ``cost``:
    millionths of a US dollar, or ``None`` if the price is unknown. ``left``: rest of today's
    budget. ``tokens_left``: rest of a subscription's.
    """

    waiting: int
    trivial: int
    model: str = NONE
    calls: int = 0
    tokens: int = 0
    cost: int | None = 0
    left: int = 0
    tokens_left: int | None = None
    is_background_on: bool = False
    is_older: bool = False
    problems: tuple[Problem, ...] = ()

    @property
    def now(self) -> int:
        """Minimum number of sessions that today's budget covers, or 0 if the price is unknown."""
        if self.model == NONE or (self.cost is None and self.tokens_left is None):
            return 0
        needed, available = self.cost or 0, self.left
        if self.tokens_left is not None:
            needed, available = self.tokens, self.tokens_left
        return self.waiting if needed <= available else self.waiting * available // needed

    @property
    def continuation(self) -> str:
        """Text that says when the remaining sessions will be read."""
        return "with the next nacre ingest --older" if self.is_older else "on the next days"

    @property
    def demand(self) -> str:
        """Text with the maximum cost and numbers of calls and tokens."""
        if self.tokens_left is not None:
            price = "by subscription"
        else:
            price = "price unknown" if self.cost is None else dollars(self.cost)
        return f"{count(self.calls, 'call')}, {round(self.tokens, -2):,} tokens, {price}"

    @property
    def limit(self) -> str:
        """Text with the rest of today's budget."""
        if self.tokens_left is not None:
            return f"{self.tokens_left:,} tokens of the writer's daily limit"
        return f"{dollars(self.left)} of the budget"


def estimate_learning(
    home: Home,
    unstored: Iterable[tuple[Session, Sequence[Turn]]] = (),
    problems: Sequence[Problem] = (),
    *,
    older: bool = False,
) -> Estimate:
    """Estimate the cost of learning from pending and ``unstored`` sessions.

    With ``older``, include old sessions that no writer has read.
    """
    fold_notes(home)
    sizes, trivial = list[int](), 0
    for session, turns, begin in chain(
        _pending_sessions(home, older=older), ((session, turns, 0) for session, turns in unstored)
    ):
        if not _is_shown(home, session, turns, older=older):
            continue
        if is_worth_asking(session, turns, begin=begin):
            size = sum(count_tokens(turn.text) for turn in turns[begin:])
            sizes.append(min(size, SESSION_TOKENS))
        else:
            trivial += 1
    name = name_for(home, Task.EXTRACTION)
    calls, tokens, cost = _most(home, sizes)
    return Estimate(
        len(sizes),
        trivial,
        name,
        calls,
        tokens,
        cost,
        daily_budget(home).remaining,
        tokens_left(home, name),
        home.settings.flag("models.background"),
        older,
        tuple(problems),
    )


def _is_shown(home: Home, session: Session, turns: Sequence[Turn], *, older: bool) -> bool:
    if not has_writer(home.settings):
        return True
    ended = max((turn.time for turn in turns if turn.time), default=None)
    stored = StoredSession(0, session, likely_project(home, session), ended, None, len(turns))
    return (is_covered if older else is_agreed)(
        home.settings, stored, name_for(home, Task.EXTRACTION)
    )


def _pending_sessions(home: Home, *, older: bool) -> Iterator[tuple[Session, Sequence[Turn], int]]:
    pending = [*(home.sessions.not_shown() if older else ()), *home.sessions.to_extract()]
    # Entries of to_extract(), which come later, replace those of not_shown().
    for session in {item.row: item for item in pending}.values():
        turns = home.sessions.turns_of(session.row)
        first = sum(item.seq < session.first for item in turns)
        yield home.sessions.get(session.row).session, [item.turn for item in turns], first


def _most(home: Home, sizes: Sequence[int]) -> tuple[int, int, int | None]:
    memories = _MEMORIES_PER_SESSION * len(sizes)
    calls = tokens = 0
    cost: int | None = 0
    for task, overhead in _CALL_TOKENS.items():
        name = name_for(home, task)
        if name == NONE or not sizes:
            continue
        able = capabilities_of(home, name)
        number, read = memories, 0.0
        if task is Task.EXTRACTION:
            number = _CALLS * sum(_parts(size, able) for size in sizes)
            overlaps = sum(_parts(size, able) - 1 for size in sizes)
            read = sum(sizes) * _FRAME_FACTOR + overlaps * OVERLAP_TOKENS
        used = Tokens(ceil(read) + overhead.input * number, overhead.output * number)
        calls, tokens = calls + number, tokens + used.input + used.output
        if is_by_subscription(home.settings, name):
            continue
        cost = (
            None
            if cost is None or able.price is None
            else cost + ceil(used.cost(able.price) * DOLLAR)
        )
    return calls, tokens, cost


def least_call(settings: Settings, name: str) -> int:
    """Return the tokens that each call of a subscription needs besides the session's text."""
    return provider_of(settings, name.partition(":")[0]).beside + _PROMPT_TOKENS + _ANSWER_TOKENS


def least_day(settings: Settings, name: str) -> int:
    """Return the smallest daily token limit that allows one small session to be read."""
    answers = (_CALLS - 1) * (_ANSWER_TOKENS - _CALL_TOKENS[Task.EXTRACTION].output)
    return _CALLS * least_call(settings, name) + _SMALL_SESSION_TOKENS - answers


def _parts(size: int, able: Capabilities) -> int:
    if able.known and size * _FRAME_FACTOR <= able.window - able.output - _RESERVED_TOKENS:
        return 1
    return max(1, ceil(size * _FRAME_FACTOR / (CHUNK_TOKENS - OVERLAP_TOKENS)))


def capabilities_of(home: Home, name: str) -> Capabilities:
    """Return a model's capabilities and price, even if its key or library is missing."""
    with suppress(NacreError):
        return providers.describe(home.settings, name)[1]
    with suppress(NacreError), closing(home.load_model(home.settings, name)) as model:
        return model.capabilities
    return Capabilities()
