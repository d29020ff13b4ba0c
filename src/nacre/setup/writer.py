"""The writer: who puts what sessions taught into words, who said so, and what it has taken today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nacre.errors import InvalidInput, ModelRefused, NacreError, Unavailable
from nacre.extraction.beginning import beginning, begun, since_of
from nacre.extraction.coverage import SINCE, awaiting, kept_here
from nacre.extraction.estimate import least_day
from nacre.home.home import Home
from nacre.known_settings import check
from nacre.llm.credentials.billing import absence, key_of
from nacre.llm.providers import provider_of
from nacre.llm.registry import describe, obstacle
from nacre.platform.days import shown_minute
from nacre.settings import Settings, write_setting
from nacre.setup.requests import WriterRequest
from nacre.spending.budget import CALLS, DAILY, TOKENS, is_by_subscription, left_today, resets_at, unpriced
from nacre.spending.models import NONE, has_writer, name_for
from nacre.spending.permission import is_set, rests
from nacre.spending.spool import fold_notes
from nacre.values.model_calls import Task
from nacre.values.spending import DOLLAR

TOKENS_A_DAY = 100_000
"""What is proposed for a writer that a subscription pays."""

MODEL = f"models.{Task.EXTRACTION}"
_MOST_A_CALL = 31_000
"""Tokens of the largest session that is read as a whole, twice, and of what goes with it: with fewer left, one that was
refused goes on waiting."""

STATES: Mapping[str, str] = {
    "ready": "writes when a session is over", "paused": "paused", "resting": "waits for the mains",
    "spent": "has taken what it may today", "short": "may take too little to write",
    "failing": "failed when it was asked last", "unavailable": "cannot be reached", "off": "off",
}  # fmt: skip
"""How a writer fares, in words."""

_SPENT = frozenset({"tokens", "calls", "budget", "task budget"})
"""Why a call was refused that waits for another day."""


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """Who writes (``none``), how it fares, and what it took today.

    ``state`` is ``ready``, ``paused``, ``resting`` (on battery), ``spent`` (has taken what it may today), ``short``
    (may take too little a day to write), ``off``, ``failing`` (when it was asked last) or ``unavailable``; ``problem``
    and ``hint`` say why and what changes it; of a ready one that was not asked today, that nobody seems to be signed
    in.
    ``limit`` is tokens a day where a subscription pays, and ``most_calls`` calls, if they are bounded, else ``None``:
    then dollars bound it. ``waiting`` sessions are to be shown to it.
    ``kept_here``: the models of the last week's sessions that it is not shown, as they may run on the owner's machine,
    one a session; only :func:`status` tells.
    """

    writer: str = NONE
    state: str = "off"
    tokens_today: int = 0
    calls_today: int = 0
    limit: int | None = None
    since: str = ""
    waiting: int = 0
    problem: str | None = None
    hint: str | None = None
    most_calls: int | None = None
    kept_here: tuple[str, ...] = ()


def status(home: Home) -> WriterStatus:
    """Who writes, and how it fares. Raises StoreBusy."""
    home = begun(home)
    if is_set(home):
        fold_notes(home)
    found = status_as_it_is(home)
    return replace(found, kept_here=tuple(kept_here(home, found.writer)) if found.state != "off" else ())


def status_as_it_is(home: Home) -> WriterStatus:
    """The same, as the database has it: nothing is written, and no lock is waited for."""
    settings = home.settings
    name = name_for(home, Task.EXTRACTION)
    if not is_set(home):
        return WriterStatus(name, "off")
    tokens, calls = home.spending.tokens_in_background(home.today(), name)
    limit = settings.whole(TOKENS) if is_by_subscription(settings, name) else None
    waiting = awaiting(home)
    state, problem, hint = _faring(home, name, (tokens, calls), limit)
    if state == "ready" and not calls:  # else it answers, however it is signed in
        problem = absence(settings, provider_of(settings, name.partition(":")[0])) or None
    most_calls = settings.whole(CALLS) or None if limit is not None else None
    return WriterStatus(name, state, tokens, calls, limit, settings.text(SINCE), waiting, problem, hint, most_calls)


def _faring(home: Home, name: str, taken: tuple[int, int], limit: int | None) -> tuple[str, str | None, str | None]:
    """How a writer fares that took so many tokens and calls today: in a word, what keeps it from writing, and what
    changes that.
    """
    if home.settings.flag("writer.paused"):
        return "paused", None, "nacre writer resume"
    problem = obstacle_to(home.settings, name)
    if problem:
        return "unavailable", problem.message, problem.hint
    too_little = too_few(home.settings, name, limit)
    if too_little:
        return "short", too_little, f"nacre writer set {name} --tokens-per-day {TOKENS_A_DAY}"
    failing = home.spending.health(name)
    if failing:
        return "failing", failing.told, f"it is asked again by itself; at once by nacre models test {name}"
    most = home.settings.whole(CALLS)
    has_called = limit is not None and 0 < most <= taken[1]
    if has_called or _is_spent(home, name, taken[0], limit):
        key = CALLS if has_called else DAILY if limit is None else TOKENS
        return "spent", None, f"it goes on at {shown_minute(resets_at(home))}; for more: nacre config set {key} …"
    if rests(home.settings):
        return "resting", None, "it goes on with the mains; nacre config set writer.on_battery true lets it go on now"
    return "ready", None, None


def _is_spent(home: Home, name: str, tokens: int, limit: int | None) -> bool:
    """Whether a writer has taken what it may today, or was refused a session that what is left does not hold."""
    is_refused = any(one.model == name for one in home.spending.refusals(home.today()) if one.reason in _SPENT)
    if limit is not None:
        return tokens >= limit or (is_refused and limit - tokens < _MOST_A_CALL)
    return is_refused and left_today(home, Task.EXTRACTION) < DOLLAR // 100


def obstacle_to(settings: Settings, name: str) -> NacreError | None:
    """What keeps a model from writing, as far as that is seen without asking it."""
    try:
        asked, able = describe(settings, name)
    except ModelRefused as error:
        return error
    problem = obstacle(settings, asked)
    if problem or able.price is not None or is_by_subscription(settings, name):
        return problem
    key = key_of(settings, asked.provider)
    if not key:
        return unpriced(name)
    told = f"{asked.provider.label} would be billed to the key in {key}, and nobody knows what {name} costs"
    return ModelRefused(told, hint=f"sign in to {asked.provider.label}, or take another writer: nacre writer set")


def is_without_bound(settings: Settings, request: WriterRequest) -> bool:
    """Whether it is left open what a writer may take a day that a subscription pays."""
    return is_by_subscription(settings, request.writer) and not request.tokens_per_day


def set_writer(home: Home, request: WriterRequest) -> WriterStatus:
    """Let a model write from the sessions that end from now on, within what it may take a day. What waits for the
    writer before it waits for this one.

    Raises ModelRefused for one that cannot be opened, InvalidInput where no bound is given, Unavailable.
    """
    settings, name = home.settings, request.writer
    refuse(settings, request)
    if not name.partition(":")[2]:
        name = f"{name.rstrip(':')}:default"
    wanted: dict[str, Any] = {
        MODEL: name, "models.background": True, "writer.paused": False,
        SINCE: since_of(home) if has_writer(settings) else beginning(home.now()),
    }  # fmt: skip
    if request.tokens_per_day is not None:
        wanted[TOKENS] = request.tokens_per_day
    if request.dollars_per_day is not None:
        wanted[DAILY] = request.dollars_per_day
    return _written(home, wanted)


def refuse(settings: Settings, request: WriterRequest) -> None:
    """Raises ModelRefused for a model that cannot be opened, InvalidInput where nothing is left for it to take, or it
    is not said what it may, Unavailable.
    """
    check_obstacle(settings, request.writer)
    if is_without_bound(settings, request):
        told = f"{request.writer} is paid by subscription: say what it may take"
        raise InvalidInput(told, hint="--tokens-per-day 100000")
    dollars = settings.number(DAILY) if request.dollars_per_day is None else request.dollars_per_day
    if not dollars and not is_by_subscription(settings, request.writer):
        raise InvalidInput(f"{DAILY} is 0, which stops {request.writer}", hint=f"nacre config set {DAILY} 1")
    holds_none = too_few(settings, request.writer, request.tokens_per_day)
    if holds_none:
        raise InvalidInput(
            holds_none, hint=f"--tokens-per-day {TOKENS_A_DAY}; nacre ingest --estimate tells what waits"
        )


def too_few(settings: Settings, name: str, tokens: int | None) -> str | None:
    """What is wrong with tokens a day with which a writer writes nothing; ``None`` where a small session fits."""
    if tokens is None or name == NONE or not is_by_subscription(settings, name):
        return None
    least = least_day(settings, name, describe(settings, name)[1])
    told = f"{tokens:,} tokens a day hold not one small session for {name}: that takes {least:,} at least"
    return told if tokens < least else None


def check_obstacle(settings: Settings, name: str) -> None:
    """Raises what keeps a model from writing, if anything does."""
    problem = obstacle_to(settings, name)
    if problem:
        raise problem


def named(settings: Settings) -> str:
    """The writer, as the settings name it; empty where none is to work."""
    name = settings.text(MODEL) or settings.text("models.default")
    return name if name != NONE and settings.flag("models.background") else ""


def pause(home: Home) -> WriterStatus:
    """Show no session to the writer for now, where there is one. Raises Unavailable."""
    return _written(home, {"writer.paused": True}) if is_set(home) else status(home)


def resume(home: Home) -> WriterStatus:
    """Show it sessions again: those that ended meanwhile, too. Raises Unavailable."""
    return _written(home, {"writer.paused": False}) if is_set(home) else status(home)


def end(home: Home) -> WriterStatus:
    """Have no writer any more. Raises Unavailable."""
    return _written(home, {MODEL: NONE, "writer.paused": False, SINCE: ""})


def _written(home: Home, wanted: dict[str, Any]) -> WriterStatus:
    try:
        for key, value in wanted.items():
            write_setting(home.settings.config, key, check(key, value))
    except OSError as error:
        raise Unavailable(f"cannot write {home.settings.config}: {error.strerror}", hint="make it writable") from error
    settings = home.settings
    for key, value in wanted.items():
        settings = settings.having(key, value)
    return status(replace(home, settings=settings))
