"""Types for hooks, and for context that agents receive without a request."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.values.recall import Lane

LOOKED_FOR = "looked for"
"""Value of ``gate`` for a prompt that led to a memory search."""

HELD_OUT = "held out: this session gets no context, to measure its effect (usefulness.hold_out)"
"""Value of ``gate`` in a session that gets no context, to measure the effect of context."""


class Moment(StrEnum):
    """The event for which context is requested: the start of a session, or a prompt."""

    START = "start"
    PROMPT = "prompt"


class Occasion(StrEnum):
    """The reason why a session starts.

    Resuming, resetting or compacting a session also starts one.
    """

    STARTUP = "startup"
    RESUME = "resume"
    CLEAR = "clear"
    COMPACT = "compact"


class Part(StrEnum):
    """A part of a context. The parts appear in the order of this list."""

    IDENTITY = "identity"
    """The page on which the user describes the agent's identity."""
    PROFILE = "profile"
    PROJECT = "project"
    HANDOFF = "handoff"
    PREVIOUS = "previous"
    """The last turns of the previous session."""
    RELEVANT = "relevant"
    """Memories relevant to the prompt."""
    POINTER = "pointer"
    """The earlier turn that answers the prompt's question."""
    RULES = "rules"
    """Core memories and the owner's standing instructions."""
    ACTIVE = "active"
    """Open todos."""
    DECISIONS = "decisions"
    """Recent decisions."""
    KNOWN = "known"
    """Other memories that the owner stored or that have proved useful."""
    SIGNALS = "signals"
    """Relevant memories that other running sessions have just stored."""
    NUDGE = "nudge"
    """A reminder to store new knowledge."""


@frozen
class SignalLimits:
    """Limits on memories from other running sessions in prompts. By default, all are shown.

    ``min_importance``: lowest importance (1 to 10). ``cooldown_seconds``: minimum time between
    prompts that show such memories.
    """

    min_importance: int = 1
    most_at_once: int = 1_000
    cooldown_seconds: int = 0
    most_per_session: int = 1_000
    max_age_seconds: int = 31_536_000

    def within(self, others: SignalLimits) -> SignalLimits:
        """Return the stricter value for each limit."""
        return SignalLimits(
            max(self.min_importance, others.min_importance),
            min(self.most_at_once, others.most_at_once),
            max(self.cooldown_seconds, others.cooldown_seconds),
            min(self.most_per_session, others.most_per_session),
            min(self.max_age_seconds, others.max_age_seconds),
        )


@frozen
class ContextRequest:
    """A request for context. Without a session, items can be repeated."""

    moment: Annotated[Moment, bounds("At the start of a session, or with a prompt.")] = Moment.START
    occasion: Annotated[Occasion, bounds("Why it starts.")] = Occasion.STARTUP
    prompt: Annotated[str, bounds("The text that the user typed.")] = ""
    folder: Annotated[
        str | None, bounds("The agent's working folder, which determines the project.")
    ] = None
    session: Annotated[
        str | None, bounds("As <tool>:<id>: context that it already received is not repeated.")
    ] = None
    budget_tokens: (
        Annotated[int, bounds("Maximum number of tokens; by default, the setting.", ge=0)] | None
    ) = None
    parts: Annotated[tuple[Part, ...], bounds("Only these parts.")] = ()
    alone: Annotated[bool, bounds("Search by words only, like a hook without the daemon.")] = False
    signals: Annotated[SignalLimits | None, bounds("Fewer signals than the settings allow.")] = None


@frozen
class ContextItem:
    """One item of a context.

    ``ref``: id of the memory or turn. ``score``: number from 0 to 1, if the item was ranked.
    ``why``: reason for the item, shown by ``--explain``.
    """

    part: Part
    text: str
    tokens: int
    ref: str | None = None
    date: datetime | None = None
    score: float | None = None
    why: str = ""


@frozen
class LeftOut:
    """An item that was omitted, with the memory's subject and the reason.

    Reasons: over budget, already given, suppressed, not certain enough.
    """

    part: Part
    ref: str | None
    why: str
    subject: str | None = None


_MAX_GIVEN_IDS = 500


@frozen
class SessionState:
    """The state of a host's session, which nacre stores between hook calls.

    ``name``: id of the session. ``folder``: working folder. ``given``: ids of the memories
    received, latest last. ``asked``: latest search text. ``heard``: latest prompts.
    ``prompts``: number of prompts so far, or -1 after the agent was asked to propose memories.
    ``handed``: True if the session received a handoff. ``held_out``: True if the session gets
    no context, for comparison. ``limited``: delivered memories whose triggers work only a limited
    number of times.

    ``signals``: number of memories received from other running sessions. ``signal_mark``: row
    of the last such memory. ``signal_at``: time of the last such memory. ``nudges``: number of
    reminders. ``turns``: number of prompts since a memory was stored. ``stored_mark``: last row
    checked for stored memories.

    ``started``: time of the start. ``seen``: time of the last activity. ``ended``: time of the
    end, or 0 while the session is running. All times are in epoch milliseconds.

    ``after``: the tool's sessions that ended in the folder just before this session began.
    Their processes, such as tool servers, can still use the old ids. ``owed``:
    :class:`Occasion` of a start without context. The next prompt gets this context.
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
    limited: tuple[str, ...] = ()

    def with_given(self, ids: tuple[str, ...]) -> SessionState:
        """Return a copy with more memories in ``given``."""
        return replace(self, given=tuple(dict.fromkeys((*self.given, *ids)))[-_MAX_GIVEN_IDS:])


@frozen
class ContextBlock:
    """A text block for an agent's prompt. ``text`` is empty if nothing is worth showing.

    ``tokens``: number of tokens in the text. ``gate``: decision whether the prompt needs a search.
    ``state``: state of the session after delivery, or None if there is no session. The caller
    stores the state with :func:`nacre.context.hooks.write_state` only after delivering the text.
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


# -- Hooks, independent of the host --------------------------------------------


class HookEvent(StrEnum):
    """An event in a host.

    :mod:`nacre.serve.hook_shapes` maps the hosts' own event names to these.
    """

    SESSION_START = "session-start"
    PROMPT = "prompt"
    TOOL = "tool"
    TURN_END = "turn-end"
    PRE_COMPACT = "pre-compact"
    SESSION_END = "session-end"


@frozen
class HookCall:
    """One hook call.

    ``session`` is ``<tool>:<the host's id>``, like the id of the session in the transcript.
    ``transcript`` is the transcript file, if known. ``is_apart`` is set for sub-agents, scheduled
    runs and heartbeats, which get no context and write no handoff. ``budget_tokens`` is the limit
    for the context; None uses the setting. ``arguments`` are the arguments of the pending call of
    ``tool``, as JSON with long strings cut.
    """

    host: str
    event: HookEvent
    session: str = ""
    folder: str | None = None
    prompt: str = ""
    occasion: Occasion = Occasion.STARTUP
    transcript: str | None = None
    is_apart: bool = False
    tool: str = ""
    arguments: str = ""
    alone: bool = False
    """True if no daemon is running. The hook then uses no models, vectors or locks."""

    budget_tokens: int | None = None
    goes_on: bool = False
    """True if the turn continues only because a hook returned text at its end."""

    signals: SignalLimits | None = None
    """Limits from the host's settings. They can only narrow the user's limits."""


@frozen
class HookAnswer:
    """The text for the host's prompt, possibly empty, and follow-up work.

    ``chores`` names queued work, such as a handoff to write or a transcript to read. ``state`` is
    the session's state after delivery. The hook's process stores it only after writing the context.
    """

    context: str = ""
    chores: tuple[str, ...] = ()
    state: SessionState | None = None
    held_out: bool = False
