"""What learning from the sessions that wait would cost, before any model is asked.

Nothing is stored for it: transcripts that changed are read and let go of again. How many calls there will be follows
from the sessions; what one takes, from the calls of that task and model so far, and from a rule of thumb where there
were few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil

from nacre.base.text import count, count_tokens
from nacre.base.times import day_of
from nacre.errors import EmbedderUnavailable, NacreError
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
"""So many calls of a task tell what one takes."""

_FRAME = 1.1
"""What numbers, speakers and tool calls add to the words of a session, at most."""

_TIMES, _CALLS = 2, 3
"""A part of a session is read for what it changes about what is known, and for what it teaches; and what is found is
compared with its evidence."""

_SMALL_SESSION = 800
"""Tokens of a short session, with what is known beside it."""

_MEMORIES_A_SESSION = 2.0
_THREADS = 4
_RESERVED_TOKENS = 4_000


_Size = tuple[str | None, int]
"""The project of a session, and the tokens of what was said in it."""


@dataclass(frozen=True, slots=True)
class _Usual:
    """What a call takes, by rule of thumb: tokens beside what it is about, tokens written, seconds."""

    read: float
    written: float
    seconds: float


_THUMB = {
    Task.EXTRACTION: _Usual(2_300, 300, 12),
    Task.DEDUP: _Usual(1_200, 120, 3),
    Task.CLAIMS: _Usual(900, 150, 3),
    Task.CONTRADICTION: _Usual(900, 120, 3),
}
_A_MEMORY = {Task.DEDUP: 0.5, Task.CLAIMS: 1.0, Task.CONTRADICTION: 0.2}
"""Calls for each memory that is learned, at most: no model is asked about what resembles nothing."""


@dataclass(frozen=True, slots=True)
class TaskEstimate:
    """What a task would take, about. ``cost`` is millionths of a US dollar, ``None`` where the price is not known, and
    nothing where a subscription pays.

    ``is_measured`` says whether earlier calls tell what one takes; ``most`` is how many tokens it may be at most.
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
    """What the vectors that are missing would cost at a provider; ``left`` of today's budget. As :class:`TaskEstimate`.

    ``held`` says why no text goes there by itself, where none does.
    """

    model: str
    tokens: int
    cost: int | None
    left: int
    held: str | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What learning would cost. ``waiting`` sessions are of substance, ``trivial`` ones cause no call.

    ``left`` is what today's budget still allows extraction, ``tokens_left`` what a writer by subscription may still
    take today, which no price holds, and ``calls_left`` how many calls it may make. ``vectors`` where a provider makes
    them. ``is_older`` says that older sessions are counted, which are read only where the owner asks for it.
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
        """How many of the waiting sessions today's budget, or a subscription's tokens and calls, hold; none where a
        price is not known.
        """
        if not self.tasks or (self.cost is None and self.tokens_left is None):
            return 0
        bounds = [(self.left, self.cost or 0)]
        if self.tokens_left is not None:
            bounds = [(self.tokens_left, self.tokens)]
            bounds += [] if self.calls_left is None else [(self.calls_left, self.calls)]
        return min(
            self.waiting if wanted <= left else self.waiting * left // wanted
            for left, wanted in bounds
        )

    @property
    def calls(self) -> int:
        """Of extraction."""
        return sum(one.calls for one in self.tasks if one.task is Task.EXTRACTION)

    @property
    def left_of_subscription(self) -> str:
        """What a subscription's writer may still take today, in words."""
        calls = "" if self.calls_left is None else f" and {count(self.calls_left, 'call')}"
        return f"{self.tokens_left or 0:,} tokens{calls}"

    @property
    def tokens(self) -> int:
        """Of extraction, read and written."""
        return sum(
            one.tokens.input + one.tokens.output
            for one in self.tasks
            if one.task is Task.EXTRACTION
        )

    @property
    def most(self) -> int:
        """Of extraction, at most: each session by itself, and known memories held against every day's sessions."""
        return sum(one.most for one in self.tasks if one.task is Task.EXTRACTION)

    @property
    def rest(self) -> str:
        """When the sessions are read that today does not hold."""
        return "with the next nacre ingest --older" if self.is_older else "on the next days"

    @property
    def cost(self) -> int | None:
        """Of all tasks, in millionths of a US dollar; ``None`` where a price is not known."""
        costs = [one.cost for one in self.tasks]
        return None if None in costs else sum(cost for cost in costs if cost)

    @property
    def seconds(self) -> float:
        """Of all tasks."""
        return sum(one.seconds for one in self.tasks)


def estimate_learning(
    home: Home,
    unstored: Iterable[tuple[Session, Sequence[Turn]]] = (),
    problems: Sequence[Problem] = (),
    *,
    older: bool = False,
) -> Estimate:
    """What learning from the sessions in the index that wait would cost, and from others that are not stored yet.

    ``older`` ones that no writer was shown are counted, too. ``problems`` may grow while these are read.
    """
    fold_notes(home)
    sizes, trivial, days = list[_Size](), 0, set()
    for session, turns, begin in chain(
        _stored(home, older=older), ((session, turns, 0) for session, turns in unstored)
    ):
        if not _is_shown(home, session, turns, older=older):
            continue
        if is_worth_asking(session, turns, home.settings, begin=begin):
            sizes.append(
                (
                    likely_project(home, session),
                    sum(count_tokens(turn.text) for turn in turns[begin:]),
                )
            )
            days.add(max((day_of(turn.time) for turn in turns if turn.time), default=None))
        else:
            trivial += 1
    return replace(_estimated(home, sizes, len(days), trivial, tuple(problems)), is_older=older)


def _is_shown(home: Home, session: Session, turns: Sequence[Turn], *, older: bool) -> bool:
    """Whether the writer that is set may be shown a session; where none is, all are counted."""
    if not is_set(home):
        return True
    ended = max((turn.time for turn in turns if turn.time), default=None)
    stored = StoredSession(0, session, likely_project(home, session), ended, None, len(turns))
    return (is_covered if older else is_agreed)(
        home.settings, stored, name_for(home, Task.EXTRACTION)
    )


def estimate_vectors(home: Home, unstored: int) -> VectorEstimate | None:
    """What the vectors would cost that are missing, and those of so many tokens that are not stored yet.

    ``None`` where they cost nothing.
    """

    model = home.settings.text("embedding.model")
    try:
        place = consent.place_of(home.settings, model)
        if place.cost(1) == 0:
            return None
        tokens = vectors.plan(home, model).tokens + unstored
        held = consent.hold(home, model)
    except EmbedderUnavailable:
        return None  # nacre embed tells why
    left = left_today(home, VECTORS)
    return VectorEstimate(model, tokens, place.cost(tokens), left, held.message if held else None)


def foresee(home: Home, *, older: bool = False) -> str | None:
    """What to say before learning begins, where today's budget does not hold what waits, ``older`` sessions with it;
    ``None`` where it does.
    """
    if not home.settings.flag("models.background") or name_for(home, Task.EXTRACTION) == NONE:
        return None
    found = estimate_learning(home, older=older)
    if found.now >= found.waiting or (found.cost is None and found.tokens_left is None):
        return None
    if found.tokens_left is None:
        much, left, more = (
            f"cost about {dollars(found.cost or 0)}",
            dollars(found.left),
            "nacre cost",
        )
    else:
        much = f"take about {round(found.tokens, -2):,} tokens, {round(found.most, -2):,} at most"
        left, more = found.left_of_subscription, "nacre writer"
    return (
        f"{count(found.waiting, 'session')} would {much}, and {left} are left today: a model learns from about "
        f"{found.now:,} of them now, the rest {found.rest} ({more})"
    )


def _stored(home: Home, *, older: bool) -> Iterator[tuple[Session, Sequence[Turn], int]]:
    """Sessions in the index that extraction or a writer has not seen to their end, and where it goes on."""
    listed = [*(home.sessions.not_shown() if older else ()), *home.sessions.to_extract()]
    for one in {one.row: one for one in listed}.values():  # of an older one the rest may be left
        turns = home.sessions.turns_of(one.row)
        first = sum(item.seq < one.first for item in turns)
        yield home.sessions.get(one.row).session, [item.turn for item in turns], first


def _estimated(
    home: Home, sizes: Sequence[_Size], days: int, trivial: int, problems: tuple[Problem, ...]
) -> Estimate:
    tasks = tuple(
        _of_task(home, task, name, sizes, days)
        for task in (Task.EXTRACTION, *_A_MEMORY)
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


def _looking_back(home: Home, days: int) -> tuple[int, float]:
    """Calls and tokens that it takes to hold the memories that are known against what was said on so many days with
    sessions.
    """
    known = min(sum(home.memories.counts().values()), MOST_MEMORIES * days)
    return ceil(known / MOST_MEMORIES), known * TOKENS_A_DAY / MOST_MEMORIES


def _of_task(home: Home, task: Task, name: str, sizes: Sequence[_Size], days: int) -> TaskEstimate:
    able = capabilities_of(home, name)
    number, read, written, seconds = home.spending.usual(task.value, name)
    is_measured, side_by_side, most = number >= ENOUGH_CALLS, 1, 0
    usual = _Usual(read, written, seconds) if is_measured else _THUMB[task]
    if task is Task.EXTRACTION:
        sent = _as_sent(sizes, able)
        side_by_side = _THREADS if sum(_parts(size, able) for size in sent) > len(sent) else 1
        calls, asked = _asked(sent, able)
        again, beside = _looking_back(home, days)
        calls, asked = calls + again, asked + beside
        most_calls, most_asked = _asked([size for _, size in sizes], able)
        most = round(most_asked + usual.written * most_calls + days * TOKENS_A_DAY)
    else:
        calls = ceil(_A_MEMORY[task] * _MEMORIES_A_SESSION * len(sizes))
        asked = usual.read * calls
    tokens = Tokens(round(asked), round(usual.written * calls))
    is_paid = is_priced(home.settings, name)
    cost = ceil(tokens.cost(able.price) * DOLLAR) if able.price else None
    return TaskEstimate(
        task,
        name,
        calls,
        tokens,
        cost if is_paid else 0,
        usual.seconds * calls / side_by_side,
        is_measured,
        most,
        not is_paid,
    )


def _as_sent(sizes: Sequence[_Size], able: Capabilities) -> list[int]:
    """Tokens of what is shown at once: a large session by itself, small ones of a project together."""
    projects: dict[str | None, list[int]] = {}
    for project, size in sizes:
        projects.setdefault(project, []).append(size)
    sent = []
    for own in projects.values():
        small = [size for size in own if size * _FRAME <= writer.SMALL]
        sent += [size for size in own if size * _FRAME > writer.SMALL]
        while small:
            number = max(1, writer.fitting([round(size * _FRAME) for size in small], able))
            sent.append(sum(small[:number]))
            del small[:number]
    return sent


def _asked(sizes: Sequence[int], able: Capabilities) -> tuple[int, float]:
    """Calls about texts of so many tokens, and the tokens read in them: the texts tell better than earlier calls."""
    calls = _CALLS * sum(_parts(size, able) for size in sizes)
    return calls, _TIMES * sum(_shown(size, able) for size in sizes) + _THUMB[
        Task.EXTRACTION
    ].read * calls


def least_day(settings: Settings, name: str, able: Capabilities) -> int:
    """Tokens a day with which a subscription has a small session written, rounded up to hundreds: each of its calls is
    made where that day's calls before it leave what it is held for.
    """
    seconds, none = settings.number("models.timeout_seconds"), Chunk(())
    held = [
        reserved(settings, name, prompt)
        for prompt in (
            for_changes([(Session("", ""), none)], (), able, seconds),
            for_transcript("whole", Session("", ""), none, (), able, seconds),
            prompt_for((), able, seconds),
        )
    ]
    taken, least = 0, 0
    for one in held:
        least = max(least, taken + one.input + one.output + _SMALL_SESSION)
        taken += one.input + _SMALL_SESSION + round(_THUMB[Task.EXTRACTION].written)
    return ceil(least / 100) * 100


def of_session(size: int, able: Capabilities) -> int:
    """Tokens that a writer takes for a session of so many, read and written, by rule of thumb."""
    beside = _THUMB[Task.EXTRACTION].read + _THUMB[Task.EXTRACTION].written
    return ceil(_TIMES * _shown(size, able) + beside * _CALLS * _parts(size, able))


def _shown(size: int, able: Capabilities) -> float:
    """Tokens of a session of so many as it is shown once, in parts that overlap where it is long."""
    return size * _FRAME + (_parts(size, able) - 1) * OVERLAP_TOKENS


def _parts(size: int, able: Capabilities) -> int:
    """Calls for a session of so many tokens: one where it fits the model's window, else one a chunk."""
    if able.known and size * _FRAME <= able.window - able.output - _RESERVED_TOKENS:
        return 1
    return max(1, ceil(size * _FRAME / (CHUNK_TOKENS - OVERLAP_TOKENS)))


def capabilities_of(home: Home, name: str) -> Capabilities:
    """What a model can do and costs, also where it cannot be opened now: without a key, without its library."""

    with suppress(NacreError):
        return providers.describe(home.settings, name)[1]
    with suppress(NacreError), closing(home.load_model(home.settings, name)) as model:
        return model.capabilities
    return Capabilities()
