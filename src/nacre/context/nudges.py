"""Nudges: an agent that has stored nothing for eight turns is reminded that it can, three times a session at most.

Where the owner wants it, Claude Code is also asked for proposals: once a session, as a turn ends.
"""

from __future__ import annotations

from dataclasses import replace

from nacre.home.home import Home
from nacre.values.context import SessionState

TURNS = 8
MOST = 3
"""Both: seed facts 1.8."""

TEXT = (
    "Nothing of this session was stored lately. If something was decided, learned or asked for that later sessions "
    "need, store it with memory_store; if not, go on."
)

PROPOSE = (
    "Before you stop: if up to five things were settled, learned or asked for in this session that later sessions need "
    "and that are not stored yet, store them now with one call of memory_store, each with its quote, the person's own "
    "words copied from their message. None is a good answer. Then say in one short line what you stored, no more."
)

_ASKED = frozenset({"claude-code"})
"""Hosts that take something for the agent as a turn ends, and have it go on."""

_WITH_TOOLS = frozenset({"claude-code", "codex", "cursor", "gemini-cli", "opencode", "openclaw"})
"""Tools that are given nacre's tools together with its hooks (``nacre init``)."""


def counted(home: Home, state: SessionState, session: str | None, project: str | None) -> SessionState:
    """The state after one more prompt: prompts are counted anew when the session, or an agent there, stored something.

    Where nobody can be reminded, nothing is counted.
    """
    if session and is_asked_for_proposals(home, session.partition(":")[0]) and state.prompts >= 0:
        state = replace(state, prompts=state.prompts + 1)
    if not session or session.partition(":")[0] not in _WITH_TOOLS or not home.settings.flag("context.nudges"):
        return state
    last = home.memories.last_row()
    if state.stored_mark < 0:
        return replace(state, turns=1, stored_mark=last)
    if last != state.stored_mark and home.memories.has_stored(state.stored_mark, (session, *state.after), project):
        return replace(state, turns=0, stored_mark=last)
    return replace(state, turns=state.turns + 1)


def is_due(state: SessionState) -> bool:
    """Whether the agent is to be reminded with this prompt."""
    return state.turns >= TURNS and state.nudges < MOST


def nudged(state: SessionState) -> SessionState:
    """The state after a reminder: the next one is eight turns away."""
    return replace(state, turns=0, nudges=state.nudges + 1)


def is_asked_for_proposals(home: Home, host: str) -> bool:
    """Whether the agents of a host are to be asked for proposals."""
    return host in _ASKED and home.settings.whole("context.proposals_after") > 0


def is_to_propose(home: Home, state: SessionState) -> bool:
    """Whether the agent is to be asked for proposals as this turn ends."""
    return state.prompts >= home.settings.whole("context.proposals_after")


def asked_to_propose(state: SessionState) -> SessionState:
    """The state after that: it is asked once."""
    return replace(state, prompts=-1)
