"""The writer: who puts what sessions taught into words, who said so, and what it has taken today."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from nacre.errors import InvalidInput, ModelRefused, NacreError, Unavailable
from nacre.extraction.learn import QUIET
from nacre.home.home import Home
from nacre.llm.credentials import logins
from nacre.llm.registry import describe, obstacle
from nacre.settings import Settings, check, write_setting
from nacre.setup.requests import WriterRequest
from nacre.spending.budget import DAILY, TOKENS, is_by_subscription, today
from nacre.spending.models import NONE, name_for
from nacre.text.passages import count_tokens
from nacre.values.codec import stamp
from nacre.values.filters import SessionFilter
from nacre.values.model_calls import Task
from nacre.values.session import SessionKind

TOKENS_A_DAY = 100_000
"""What is proposed for a writer that a subscription pays."""

MODEL = f"models.{Task.EXTRACTION}"
_COMMANDS = {
    "claude-cli:haiku": ("claude", "Claude Code, haiku"), "codex-cli:": ("codex", "Codex"),
    "gemini-cli:flash": ("gemini", "Gemini CLI, flash"), "opencode-cli:": ("opencode", "OpenCode"),
}  # fmt: skip
_SIGN_INS = {"gemini": ".gemini/oauth_creds.json", "opencode": ".local/share/opencode/auth.json"}
"""Files in the owner's home by which somebody is signed in. They are not read."""

_WEEK = timedelta(days=7)
_MOST_TOKENS = 12_000
_BESIDE = 2_500
"""Tokens of a call that are not the session's: the words that ask, and the answer."""

_SAMPLE = 60


@dataclass(frozen=True, slots=True)
class FoundWriter:
    """An agent's command on this machine that could write, as ``provider:model``, and whether somebody is signed in."""

    name: str
    label: str
    is_signed_in: bool


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a writer would take, by the owner's own last week: sessions a day, and tokens a day."""

    sessions: float
    tokens: int


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """Who writes (``none``), whether it is ``ready``, ``paused``, ``off``, ``spent``, ``unavailable``, or ``failing``
    since it was last asked, and what it took today.

    ``limit`` is tokens a day where a subscription pays, else ``None``: then dollars bound it. ``waiting`` sessions are
    to be shown to it.
    """

    writer: str
    state: str
    tokens_today: int = 0
    calls_today: int = 0
    limit: int | None = None
    since: str = ""
    waiting: int = 0
    problem: str | None = None
    hint: str | None = None


def found_writers(settings: Settings) -> list[FoundWriter]:
    """The agents' commands on this machine that could write, those first where somebody is signed in."""
    found = [
        FoundWriter(name, label, _is_signed_in(settings, program))
        for name, (program, label) in _COMMANDS.items() if shutil.which(program, path=settings.environ.get("PATH"))
    ]  # fmt: skip
    return sorted(found, key=lambda one: not one.is_signed_in)


def _is_signed_in(settings: Settings, program: str) -> bool:
    if program in _SIGN_INS:
        return (settings.user_home / _SIGN_INS[program]).is_file()
    try:
        return bool(logins.read(settings, program)) or settings.platform == "darwin"
    except NacreError:
        return False


def foreseen(home: Home) -> Foreseen:
    """What a writer would take a day, going by the sessions of the last seven days."""
    week = SessionFilter(since=home.now() - _WEEK, kind=SessionKind.MAIN)
    sessions = home.sessions.newest(week, limit=1000)
    sample = sessions[:_SAMPLE]
    words = [sum(count_tokens(turn.text) for turn in home.sessions.whole(one.row)) for one in sample]
    mean = sum(min(_MOST_TOKENS, count) + _BESIDE for count in words) / max(1, len(sample))
    a_day = len(sessions) / _WEEK.days
    return Foreseen(a_day, int(mean * a_day))


def status(home: Home) -> WriterStatus:
    """Who writes, and how it fares."""
    settings = home.settings
    name = name_for(home, Task.EXTRACTION)
    if name == NONE or not settings.flag("models.background"):
        return WriterStatus(NONE if name == NONE else name, "off")
    tokens, calls = home.spending.tokens_in_background(today(home), name)
    limit = settings.whole(TOKENS) if is_by_subscription(settings, name) else None
    problem = _problem(settings, name)
    told, hint = (problem.message, problem.hint) if problem else (None, None)
    state = "paused" if settings.flag("writer.paused") else "unavailable" if problem else "ready"
    if state == "ready" and limit is not None and tokens >= limit:
        state = "spent"
    failing = home.spending.health(name)
    if state == "ready" and failing:
        state, told, hint = "failing", failing.told, f"it is asked again by itself; at once by nacre models test {name}"
    return WriterStatus(
        name, state, tokens, calls, limit, settings.text("writer.since"), _waiting(home), told, hint
    )  # fmt: skip


def _waiting(home: Home) -> int:
    """How many sessions it is to be shown."""
    return sum(one.unwritten is not None for one in home.sessions.to_extract())


def _problem(settings: Settings, name: str) -> NacreError | None:
    try:
        return obstacle(settings, describe(settings, name)[0])
    except ModelRefused as error:
        return error


def set_writer(home: Home, request: WriterRequest) -> WriterStatus:
    """Let a model write from the sessions that end from now on, within what it may take a day.

    Raises ModelRefused for one that cannot be opened, InvalidInput where no bound is given, Unavailable.
    """
    settings, name = home.settings, request.writer
    problem = _problem(settings, name)
    if problem:
        raise problem
    is_paid = is_by_subscription(settings, name)
    if is_paid and not request.tokens_per_day:
        raise InvalidInput(f"{name} is paid by subscription: say what it may take", hint="--tokens-per-day 100000")
    wanted: dict[str, Any] = {
        MODEL: name, "models.background": True, "writer.paused": False,
        "writer.since": stamp(since(home.now())),
    }  # fmt: skip
    if request.tokens_per_day is not None:
        wanted[TOKENS] = request.tokens_per_day
    if request.dollars_per_day is not None:
        wanted[DAILY] = request.dollars_per_day
    return _written(home, wanted)


def since(now: datetime) -> datetime:
    """The end of sessions that a writer is shown at least: what is being worked on just now is one of them."""
    return now - QUIET


def pause(home: Home) -> WriterStatus:
    """Show no session to the writer for now. Raises Unavailable."""
    return _written(home, {"writer.paused": True})


def resume(home: Home) -> WriterStatus:
    """Show it sessions again: those that ended meanwhile, too. Raises Unavailable."""
    return _written(home, {"writer.paused": False})


def end(home: Home) -> WriterStatus:
    """Have no writer any more. Raises Unavailable."""
    return _written(home, {MODEL: NONE, "writer.paused": False})


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
