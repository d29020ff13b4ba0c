"""What hosts tell nacre through their hooks, whichever host it is, and what they are told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nacre.values.context import Occasion, SessionState, SignalLimits


class HookEvent(StrEnum):
    """What happens in a host. Hosts have other names for these; :mod:`nacre.hooks.shapes` knows them."""

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
