"""What an agent is given unasked: the context of a session's start, and of a prompt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.values.recall import Lane

LOOKED_FOR = "looked for"
"""What the gate says of a prompt for which memory was searched."""

HELD_OUT = "held out: this session is told nothing, to see what telling does (usefulness.hold_out)"
"""And of whatever is asked in a session that is held out."""


class Moment(StrEnum):
    """When context is asked for: as a session starts, or with each prompt of the owner's."""

    START = "start"
    PROMPT = "prompt"


class Occasion(StrEnum):
    """Why a session starts: hosts also start one anew after a compaction, a reset, or when it is gone on with."""

    STARTUP = "startup"
    RESUME = "resume"
    CLEAR = "clear"
    COMPACT = "compact"


class Part(StrEnum):
    """A part of a context, in the order in which they stand in it."""

    IDENTITY = "identity"
    """Who the agent is working as: the owner's own page for it."""
    PROFILE = "profile"
    PROJECT = "project"
    HANDOFF = "handoff"
    PREVIOUS = "previous"
    """The last turns of the session before."""
    RELEVANT = "relevant"
    """What fits the prompt."""
    CORE = "core"
    ACTIVE = "active"
    """Open todos."""
    PREFERENCES = "preferences"
    """Preferences and decisions."""
    LESSONS = "lessons"
    """What went wrong before, and how it was mended."""
    RECENT = "recent"
    """What was learned lately."""
    KNOWN = "known"
    """What weighs most of all that was learned before."""
    DIGEST = "digest"
    """What is open, and what was decided and learned in seven days; only where it is asked for by name."""
    SIGNALS = "signals"
    """What other sessions learned just now that matters here."""
    NUDGE = "nudge"
    """A reminder to store what was learned."""


@dataclass(frozen=True, slots=True)
class SignalLimits:
    """What a session is told of what others store; the defaults let everything through.

    Memories of ``min_importance`` (1 to 10) or more, stored ``max_age_seconds`` ago at most: ``most_at_once`` with a
    prompt, the next ones ``cooldown_seconds`` later, ``most_per_session`` in all.
    """

    min_importance: int = 1
    most_at_once: int = 1_000
    cooldown_seconds: int = 0
    most_per_session: int = 1_000
    max_age_seconds: int = 31_536_000

    def within(self, others: SignalLimits) -> SignalLimits:
        """Those of both that let less through."""
        return SignalLimits(
            max(self.min_importance, others.min_importance),
            min(self.most_at_once, others.most_at_once),
            max(self.cooldown_seconds, others.cooldown_seconds),
            min(self.most_per_session, others.most_per_session),
            min(self.max_age_seconds, others.max_age_seconds),
        )


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """Who asks for context, and with what.

    ``session`` is the host's session as ``<tool>:<id>``; without one nothing is remembered of what was given already.
    ``folder`` is where the agent works: it tells the project. ``budget_tokens`` is the most the whole block may take;
    ``None`` takes the setting. ``parts`` restricts the block to these. ``alone`` asks for what needs no model, no
    vectors and no lock: what a hook without the daemon can afford. ``signals`` narrows what the settings allow.
    """

    moment: Annotated[Moment, bounds("As a session starts, or with a prompt.")] = Moment.START
    occasion: Annotated[Occasion, bounds("Why it starts.")] = Occasion.STARTUP
    prompt: Annotated[str, bounds("What the person typed.")] = ""
    folder: Annotated[str | None, bounds("Where the agent works: tells the project.")] = None
    session: Annotated[
        str | None, bounds("As <tool>:<id>: what it was given already is not given again.")
    ] = None
    budget_tokens: (
        Annotated[int, bounds("Tokens at most; by default, as the setting says.", ge=0)] | None
    ) = None
    parts: Annotated[tuple[Part, ...], bounds("Only these parts.")] = ()
    alone: Annotated[bool, bounds("By words alone, as a hook does where no daemon runs.")] = False
    signals: Annotated[SignalLimits | None, bounds("Fewer signals than the settings allow.")] = None


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One thing a context tells.

    ``ref`` is the id of the memory or turn it came from, ``score`` 0 to 1 where something ranked it, ``why`` the reason
    it is there, for ``--explain``.
    """

    part: Part
    text: str
    tokens: int
    ref: str | None = None
    date: datetime | None = None
    score: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What could have been told and was not, and why: over the budget, given already, suppressed, not sure enough; the
    ``subject`` of a memory.
    """

    part: Part
    ref: str | None
    why: str
    subject: str | None = None


_MOST_GIVEN = 500


@dataclass(frozen=True, slots=True)
class SessionState:
    """What a host's session was given already.

    ``given`` are the ids of memories, the last one last; ``asked`` is what was looked for last; ``heard`` the last
    prompts. ``signals`` counts those given, ``signal_mark`` and ``signal_at`` (epoch milliseconds) say up to where and
    when. ``turns`` counts the prompts since something was stored, up to the row ``stored_mark``, ``nudges`` the
    reminders. ``started`` (epoch milliseconds) is when it began, ``handed`` whether a handoff was given. ``name`` is
    the session itself, ``folder`` where it works, ``seen`` when it was heard of last, ``ended`` when it ended (0: it
    did not). ``after`` are those of the same tool that ended there just before it began: what they started, as servers
    of tools, goes on after a reset, and still has their names. ``owed`` is the :class:`Occasion` of a start that it was
    not told of yet: the next prompt is told what it missed. ``prompts`` counts those sent until the agent is asked for
    proposals; -1: it was asked. ``held_out`` says that it is told nothing.
    """

    given: tuple[str, ...] = ()
    asked: str = ""
    heard: tuple[str, ...] = ()
    signals: int = 0
    signal_mark: int = -1
    signal_at: int = 0
    turns: int = 0
    nudges: int = 0
    stored_mark: int = -1
    started: int = 0
    handed: bool = False
    name: str = ""
    folder: str = ""
    seen: int = 0
    ended: int = 0
    after: tuple[str, ...] = ()
    owed: str = ""
    prompts: int = 0
    held_out: bool = False

    def with_given(self, ids: tuple[str, ...]) -> SessionState:
        """The same after more was given."""
        return replace(self, given=tuple(dict.fromkeys((*self.given, *ids)))[-_MOST_GIVEN:])


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A block of text for an agent's prompt, in its frame; ``text`` is empty where nothing is worth telling.

    ``tokens`` counts the whole text. ``gate`` says what was decided about the prompt before anything was looked for.
    ``state`` is what is true of the session once the agent has the text: whoever delivers it keeps it then, and not
    before (:func:`nacre.context.hooks.write_state`); ``None`` for no session.
    """

    text: str = ""
    items: tuple[ContextItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    lanes: tuple[Lane, ...] = ()
    gate: str = ""
    project: str | None = None
    tokens: int = 0
    took_ms: float = 0.0
    state: SessionState | None = None


# ----------------------------------------------------------------------------
# What hosts tell nacre through their hooks, whichever host it is, and what they are told.


class HookEvent(StrEnum):
    """What happens in a host. Hosts have other names for these; :mod:`nacre.serve.hook_shapes` knows them."""

    SESSION_START = "session-start"
    PROMPT = "prompt"
    TOOL = "tool"
    TURN_END = "turn-end"
    PRE_COMPACT = "pre-compact"
    SESSION_END = "session-end"


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of a hook.

    ``session`` is ``<tool>:<the host's own id>``, as the session will be called that is read from its transcript;
    ``transcript`` is the file that it writes, where it says so.
    ``is_apart`` marks sub-agents, scheduled runs and heartbeats: these are given nothing and hand nothing over.
    ``budget_tokens`` is the most that the context may take; ``None`` takes the setting.
    ``arguments`` is what ``tool`` is about to be called with, as JSON; long texts in it are cut.
    """

    host: str
    event: HookEvent
    session: str = ""
    folder: str | None = None
    prompt: str = ""
    occasion: Occasion = Occasion.STARTUP
    transcript: str | None = None
    reason: str = ""
    is_apart: bool = False
    tool: str = ""
    arguments: str = ""
    alone: bool = False
    """The daemon is not there: only what needs no model, no vectors and no lock."""

    budget_tokens: int | None = None
    goes_on: bool = False
    """The turn goes on because a hook had something to say as it ended before."""

    signals: SignalLimits | None = None
    """Fewer signals than the owner's settings allow, as the host's own settings say."""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What the host is to put into the prompt (empty: nothing), and what nacre goes on with afterwards.

    ``chores`` names work that was queued: a handoff to write, a transcript to read. ``state`` is what is true of the
    session once the host has the context: the hook's process keeps it when it has written the context, and not before.
    ``held_out`` says that the session is told nothing, as it is one of those that are not.
    """

    context: str = ""
    tokens: int = 0
    chores: tuple[str, ...] = ()
    state: SessionState | None = None
    held_out: bool = False
