"""Estimates of what learning from pending sessions would cost, without a call to a model.

Stores nothing: changed transcripts are only read. The number of calls follows from the sessions; the cost per call is
measured from earlier calls of the task and model, or is a default if there were too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil

from nacre.base.text import count, count_tokens
from nacre.base.times import day_of
from nacre.errors import EmbedderUnavailableError, NacreError
from nacre.home import consent
from nacre.home.change import likely_project
from nacre.home.home import Home
from nacre.home.spending import (
    NONE,
    calls_left,
    fold_notes,
    is_priced,
    is_set,
    left_today,
    name_for,
    reserved,
    tokens_left,
)
from nacre.known_settings import VECTORS
from nacre.learn import writer
from nacre.learn.extract import is_agreed, is_covered, is_worth_asking
from nacre.learn.prompts import MOST_MEMORIES, TOKENS_A_DAY, Chunk, for_changes, for_transcript
from nacre.learn.writer import prompt_for
from nacre.llm import providers
from nacre.memories import vectors
from nacre.settings import Settings
from nacre.values.models import DOLLAR, Capabilities, Tokens, dollars
from nacre.values.reports import Problem
from nacre.values.session import Session, StoredSession, Task, Turn

CHUNK_TOKENS = 3_000
OVERLAP_TOKENS = 300
ENOUGH_CALLS = 20
"""Minimum number of calls for a measured cost per call."""

_FRAME_FACTOR = 1.1
"""Upper bound of the ratio by which numbers, speakers and tool calls lengthen a session."""

_READS, _CALLS = 2, 3
"""Per part of a session: reads of the text (for changes, for memories), and calls (these and the verification)."""

_SMALL_SESSION_TOKENS = 800
"""Tokens of a short session and the known memories shown with it."""

_MEMORIES_PER_SESSION = 2.0
_THREADS = 4
_RESERVED_TOKENS = 4_000


_Size = tuple[str | None, int]
"""The project of a session, and the tokens of its new turns."""


@dataclass(frozen=True, slots=True)
class _CallCost:
    """Cost of a call: tokens of instructions, tokens written, seconds."""

    read: float
    written: float
    seconds: float


_DEFAULT_COSTS = {
    Task.EXTRACTION: _CallCost(2_300, 300, 12),
    Task.DEDUP: _CallCost(1_200, 120, 3),
    Task.CLAIMS: _CallCost(900, 150, 3),
    Task.CONTRADICTION: _CallCost(900, 120, 3),
}
_CALLS_PER_MEMORY = {Task.DEDUP: 0.5, Task.CLAIMS: 1.0, Task.CONTRADICTION: 0.2}
"""Upper bound of calls per learned memory. Memories that resemble nothing need none."""


@dataclass(frozen=True, slots=True)
class TaskEstimate:
    """The approximate cost of a task. ``cost`` is in millionths of a US dollar: ``None`` for an unknown price, 0 with a
    subscription.

    ``is_measured`` is set if the cost per call is based on earlier calls; ``most`` is the upper bound in tokens.
    """

    task: Task
    model: str
    calls: int
    tokens: Tokens
    cost: int | None
    seconds: float
    is_measured: bool
    most: int = 0
    is_by_subscription: bool = False


@dataclass(frozen=True, slots=True)
class VectorEstimate:
    """The cost of missing vectors at a provider, and the rest of today's budget (``left``). See :class:`TaskEstimate`.

    ``held`` is the reason why no text is sent automatically, if any.
    """

    model: str
    tokens: int
    cost: int | None
    left: int
    held: str | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of learning. ``waiting`` sessions have content, ``trivial`` ones cause no call.

    ``left`` is today's remaining budget for extraction; ``tokens_left`` and ``calls_left`` are those of a writer by
    subscription, which has no price. ``vectors`` is set if a provider makes them. ``is_older``: includes older
    sessions, which are read only on request.
    """

    waiting: int
    trivial: int
    tasks: Sequence[TaskEstimate]
    left: int
    is_background_on: bool
    problems: tuple[Problem, ...] = ()
    vectors: VectorEstimate | None = None
    tokens_left: int | None = None
    is_older: bool = False
    calls_left: int | None = None

    @property
    def now(self) -> int:
        """The number of pending sessions within today's budget or a subscription's limits; 0 for an unknown price."""
        if not self.tasks or (self.cost is None and self.tokens_left is None):
            return 0
        bounds = [(self.left, self.cost or 0)]
        if self.tokens_left is not None:
            bounds = [(self.tokens_left, self.tokens)]
            bounds += [] if self.calls_left is None else [(self.calls_left, self.calls)]
        return min(
            self.waiting if needed <= available else self.waiting * available // needed
            for available, needed in bounds
        )

    @property
    def calls(self) -> int:
        """The number of extraction calls."""
        return sum(task.calls for task in self.tasks if task.task is Task.EXTRACTION)

    @property
    def left_of_subscription(self) -> str:
        """The rest of today's subscription limits, in words."""
        calls = "" if self.calls_left is None else f" and {count(self.calls_left, 'call')}"
        return f"{self.tokens_left or 0:,} tokens{calls}"

    @property
    def tokens(self) -> int:
        """The tokens of extraction, read and written."""
        return sum(
            task.tokens.input + task.tokens.output
            for task in self.tasks
            if task.task is Task.EXTRACTION
        )

    @property
    def most(self) -> int:
        """The maximum tokens of extraction: no shared calls, and the daily check of old memories for every day."""
        return sum(task.most for task in self.tasks if task.task is Task.EXTRACTION)

    @property
    def rest(self) -> str:
        """The time at which the other sessions are read, in words."""
        return "with the next nacre ingest --older" if self.is_older else "on the next days"

    @property
    def cost(self) -> int | None:
        """The cost of all tasks, in millionths of a US dollar; ``None`` if a price is unknown."""
        costs = [task.cost for task in self.tasks]
        return None if None in costs else sum(cost for cost in costs if cost)

    @property
    def seconds(self) -> float:
        """The duration of all tasks."""
        return sum(task.seconds for task in self.tasks)


def estimate_learning(
    home: Home,
    unstored: Iterable[tuple[Session, Sequence[Turn]]] = (),
    problems: Sequence[Problem] = (),
    *,
    older: bool = False,
) -> Estimate:
    """Estimate the cost of learning from pending sessions in the index, and from others that are not stored yet.

    ``older`` adds sessions that no writer was shown. ``problems`` may grow while ``unstored`` is consumed.
    """
    fold_notes(home)
    sizes, trivial, days = list[_Size](), 0, set()
    for session, turns, begin in chain(
        _pending_sessions(home, older=older), ((session, turns, 0) for session, turns in unstored)
    ):
        if not _is_shown(home, session, turns, older=older):
            continue
        if is_worth_asking(session, turns, begin=begin):
            sizes.append(
                (
                    likely_project(home, session),
                    sum(count_tokens(turn.text) for turn in turns[begin:]),
                )
            )
            days.add(max((day_of(turn.time) for turn in turns if turn.time), default=None))
        else:
            trivial += 1
    return replace(
        _estimate_tasks(home, sizes, len(days), trivial, tuple(problems)), is_older=older
    )


def _is_shown(home: Home, session: Session, turns: Sequence[Turn], *, older: bool) -> bool:
    """Return True if the configured writer may see a session. Without a writer, every session counts."""
    if not is_set(home):
        return True
    ended = max((turn.time for turn in turns if turn.time), default=None)
    stored = StoredSession(0, session, likely_project(home, session), ended, None, len(turns))
    return (is_covered if older else is_agreed)(
        home.settings, stored, name_for(home, Task.EXTRACTION)
    )


def estimate_vectors(home: Home, unstored: int) -> VectorEstimate | None:
    """Estimate the cost of missing vectors, plus ``unstored`` tokens; ``None`` if they are free."""

    model = home.settings.text("embedding.model")
    try:
        place = consent.place_of(home.settings, model)
        if place.cost(1) == 0:
            return None
        tokens = vectors.plan(home, model).tokens + unstored
        hold = consent.hold(home, model)
    except EmbedderUnavailableError:
        return None  # nacre writer embedding reports the reason
    left = left_today(home, VECTORS)
    return VectorEstimate(model, tokens, place.cost(tokens), left, hold.message if hold else None)


def foresee(home: Home, *, older: bool = False) -> str | None:
    """Return a notice for the start of learning if today's budget does not cover all pending sessions, or ``None``."""
    if not home.settings.flag("models.background") or name_for(home, Task.EXTRACTION) == NONE:
        return None
    forecast = estimate_learning(home, older=older)
    if forecast.now >= forecast.waiting or (forecast.cost is None and forecast.tokens_left is None):
        return None
    if forecast.tokens_left is None:
        demand, left, more = (
            f"cost about {dollars(forecast.cost or 0)}",
            dollars(forecast.left),
            "nacre writer cost",
        )
    else:
        demand = f"take about {round(forecast.tokens, -2):,} tokens, {round(forecast.most, -2):,} at most"
        left, more = forecast.left_of_subscription, "nacre writer"
    return (
        f"{count(forecast.waiting, 'session')} would {demand}, and {left} are left today: a model learns from about "
        f"{forecast.now:,} of them now, the rest {forecast.rest} ({more})"
    )


def _pending_sessions(home: Home, *, older: bool) -> Iterator[tuple[Session, Sequence[Turn], int]]:
    """Yield sessions in the index with turns new to extraction or the writer, and the index of the first of these."""
    pending = [*(home.sessions.not_shown() if older else ()), *home.sessions.to_extract()]
    for session in {
        item.row: item for item in pending
    }.values():  # to_extract() overrides not_shown()
        turns = home.sessions.turns_of(session.row)
        first = sum(item.seq < session.first for item in turns)
        yield home.sessions.get(session.row).session, [item.turn for item in turns], first


def _estimate_tasks(
    home: Home, sizes: Sequence[_Size], days: int, trivial: int, problems: tuple[Problem, ...]
) -> Estimate:
    tasks = tuple(
        _task_estimate(home, task, name, sizes, days)
        for task in (Task.EXTRACTION, *_CALLS_PER_MEMORY)
        if sizes and (name := name_for(home, task)) != NONE
    )
    left, is_on = left_today(home, Task.EXTRACTION.value), home.settings.flag("models.background")
    name = name_for(home, Task.EXTRACTION)
    return Estimate(
        len(sizes),
        trivial,
        tasks,
        left,
        is_on,
        problems,
        tokens_left=tokens_left(home, name) if is_on else None,
        calls_left=calls_left(home, name) if is_on else None,
    )


def _task_estimate(
    home: Home, task: Task, name: str, sizes: Sequence[_Size], days: int
) -> TaskEstimate:
    capabilities = capabilities_of(home, name)
    number, read, written, seconds = home.spending.usual(task.value, name)
    is_measured, side_by_side, most = number >= ENOUGH_CALLS, 1, 0
    cost_per_call = _CallCost(read, written, seconds) if is_measured else _DEFAULT_COSTS[task]
    if task is Task.EXTRACTION:
        sent = _call_sizes(sizes, capabilities)
        side_by_side = (
            _THREADS if sum(_parts(size, capabilities) for size in sent) > len(sent) else 1
        )
        calls, input_tokens = _calls_and_tokens(sent, capabilities)
        memories = min(sum(home.memories.counts().values()), MOST_MEMORIES * days)
        check_calls, check_tokens = (
            ceil(memories / MOST_MEMORIES),
            memories * TOKENS_A_DAY / MOST_MEMORIES,
        )
        calls, input_tokens = calls + check_calls, input_tokens + check_tokens
        most_calls, most_tokens = _calls_and_tokens([size for _, size in sizes], capabilities)
        most = round(most_tokens + cost_per_call.written * most_calls + days * TOKENS_A_DAY)
    else:
        calls = ceil(_CALLS_PER_MEMORY[task] * _MEMORIES_PER_SESSION * len(sizes))
        input_tokens = cost_per_call.read * calls
    tokens = Tokens(round(input_tokens), round(cost_per_call.written * calls))
    is_paid = is_priced(home.settings, name)
    price = ceil(tokens.cost(capabilities.price) * DOLLAR) if capabilities.price else None
    return TaskEstimate(
        task,
        name,
        calls,
        tokens,
        price if is_paid else 0,
        cost_per_call.seconds * calls / side_by_side,
        is_measured,
        most,
        not is_paid,
    )


def _call_sizes(sizes: Sequence[_Size], able: Capabilities) -> list[int]:
    """Return the tokens per call: of large sessions alone, and of small ones of a project together."""
    projects: dict[str | None, list[int]] = {}
    for project, size in sizes:
        projects.setdefault(project, []).append(size)
    sent = []
    for own in projects.values():
        small = [size for size in own if size * _FRAME_FACTOR <= writer.SMALL]
        sent += [size for size in own if size * _FRAME_FACTOR > writer.SMALL]
        while small:
            number = max(1, writer.fitting([round(size * _FRAME_FACTOR) for size in small], able))
            sent.append(sum(small[:number]))
            del small[:number]
    return sent


def _calls_and_tokens(sizes: Sequence[int], able: Capabilities) -> tuple[int, float]:
    """Return the number of calls about texts with these tokens, and the tokens read, based on the texts' sizes."""
    calls = _CALLS * sum(_parts(size, able) for size in sizes)
    return calls, _READS * sum(_shown_tokens(size, able) for size in sizes) + _DEFAULT_COSTS[
        Task.EXTRACTION
    ].read * calls


def least_day(settings: Settings, name: str, able: Capabilities) -> int:
    """Return the tokens per day that a subscription needs for a small session, rounded up to hundreds.

    Each call requires that the day's earlier calls leave room for its reserved maximum.
    """
    seconds, empty = settings.number("models.timeout_seconds"), Chunk(())
    reservations = [
        reserved(settings, name, prompt)
        for prompt in (
            for_changes([(Session("", ""), empty)], (), able, seconds),
            for_transcript("whole", Session("", ""), empty, (), able, seconds),
            prompt_for((), able, seconds),
        )
    ]
    used, minimum = 0, 0
    for reservation in reservations:
        minimum = max(
            minimum, used + reservation.input + reservation.output + _SMALL_SESSION_TOKENS
        )
        used += (
            reservation.input
            + _SMALL_SESSION_TOKENS
            + round(_DEFAULT_COSTS[Task.EXTRACTION].written)
        )
    return ceil(minimum / 100) * 100


def of_session(size: int, able: Capabilities) -> int:
    """Return the tokens that a writer reads and writes for a session of ``size`` tokens, by default costs."""
    overhead = _DEFAULT_COSTS[Task.EXTRACTION].read + _DEFAULT_COSTS[Task.EXTRACTION].written
    return ceil(_READS * _shown_tokens(size, able) + overhead * _CALLS * _parts(size, able))


def _shown_tokens(size: int, able: Capabilities) -> float:
    """Return the tokens shown for a session of ``size`` tokens, with the overlap of its parts."""
    return size * _FRAME_FACTOR + (_parts(size, able) - 1) * OVERLAP_TOKENS


def _parts(size: int, able: Capabilities) -> int:
    """Return the number of parts of a session: 1 if it fits the model's window, else its chunks."""
    if able.known and size * _FRAME_FACTOR <= able.window - able.output - _RESERVED_TOKENS:
        return 1
    return max(1, ceil(size * _FRAME_FACTOR / (CHUNK_TOKENS - OVERLAP_TOKENS)))


def capabilities_of(home: Home, name: str) -> Capabilities:
    """Return a model's capabilities and price, even if it cannot be opened now (no key, no library)."""

    with suppress(NacreError):
        return providers.describe(home.settings, name)[1]
    with suppress(NacreError), closing(home.load_model(home.settings, name)) as model:
        return model.capabilities
    return Capabilities()
