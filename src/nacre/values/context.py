"""Types for hooks, and for the context that agents receive without asking."""

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


class Moment(StrEnum):
    """The event for which context is requested: the start of a session, or a prompt."""

    START = "start"
    PROMPT = "prompt"


class Occasion(StrEnum):
    """The event that starts a session.

    Resuming, resetting and compacting also count as starts.
    """

    STARTUP = "startup"
    RESUME = "resume"
    CLEAR = "clear"
    COMPACT = "compact"


class Part(StrEnum):
    """The parts of a context, in order of appearance."""

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
    """Limits on showing memories from other running sessions. The defaults show all of them.

    ``min_importance``: lowest importance (1 to 10) that is shown.
    ``cooldown_seconds``: minimum time between two prompts that show such memories.
    """

    min_importance: int = 1
    most_at_once: int = 1_000
    cooldown_seconds: int = 0
    most_per_session: int = 1_000
    max_age_seconds: int = 31_536_000

    def within(self, limits: SignalLimits) -> SignalLimits:
        """Return the stricter of the two values for each limit."""
        return SignalLimits(
            max(self.min_importance, limits.min_importance),
            min(self.most_at_once, limits.most_at_once),
            max(self.cooldown_seconds, limits.cooldown_seconds),
            min(self.most_per_session, limits.most_per_session),
            min(self.max_age_seconds, limits.max_age_seconds),
        )


@frozen
class ContextRequest:
    """A request for context. Without a session, the answer can repeat earlier context."""

    moment: Annotated[Moment, bounds("At the start of a session, or with a prompt.")] = Moment.START
    occasion: Annotated[Occasion, bounds("The reason why the session starts.")] = Occasion.STARTUP
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
    project: Annotated[str | None, bounds("The project, if it is not the folder's.")] = None


@frozen
class ContextItem:
    """An entry of a context, such as a memory or a turn.

    ``ref``: id of the memory or turn.
    ``score``: relevance from 0 to 1, if it was ranked.
    ``why``: why it was included.
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
    """A memory or turn that was left out of a context, and why."""

    part: Part
    ref: str | None
    why: str
    subject: str | None = None


_MAX_GIVEN_IDS = 500


@frozen
class SessionState:
    """The state of a host's session between hook calls. All times are in epoch milliseconds.

    ``given``: ids of the memories received, latest last.
    ``asked``: latest search text.
    ``heard``: latest prompts.
    ``signals``: number of memories received from other running sessions.
    ``signal_mark``, ``signal_at``: database row and time of the latest of these memories.
    ``turns``: number of prompts since a memory was last stored.
    ``nudges``: number of reminders to store memories.
    ``stored_mark``: last database row checked for stored memories.
    ``started``, ``seen``: times of the start and of the last activity.
    ``ended``: time of the end, or 0 while the session is running.
    ``handed``: whether the session received a handoff.
    ``limited``: received memories whose triggers work only a limited number of times.
    ``after``: sessions that have just ended in the folder; their tool servers can still use their
        ids.
    ``owed``: :class:`Occasion` of a start that got no context; the next prompt gets it instead.
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
    limited: tuple[str, ...] = ()

    def with_given(self, ids: tuple[str, ...]) -> SessionState:
        """Return a copy with these memories added to ``given``."""
        return replace(self, given=tuple(dict.fromkeys((*self.given, *ids)))[-_MAX_GIVEN_IDS:])


@frozen
class ContextBlock:
    """The context for an agent's prompt. ``text`` is empty if nothing is worth showing.

    ``gate``: whether the prompt needs a search.
    ``state``: the session's new state, which the caller must store with
        :func:`nacre.context.hooks.write_state` after delivering the text.
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
    """A hook call by a host.

    ``session``: id of the session as in its transcript, ``<tool>:<the host's id>``.
    ``is_apart``: whether a sub-agent, a scheduled run or a heartbeat made the call; these get no
        context.
    ``budget_tokens``: limit for the context, or None for the setting.
    ``arguments``: arguments of the pending tool call, as JSON with long strings cut.
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
    signals: SignalLimits | None = None
    """Limits from the host's settings. They can only be stricter than the user's."""


@frozen
class HookAnswer:
    """The text that a hook adds to the host's prompt, and the work that it queues.

    ``chores``: names of the queued work, such as writing a handoff.
    ``state``: the session's new state, to be stored only after the text is delivered.
    """

    context: str = ""
    chores: tuple[str, ...] = ()
    state: SessionState | None = None
