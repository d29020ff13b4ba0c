"""Reads: how the work went: what the owner asked for, what the agent did and reported, how the owner went on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nacre.extraction.reading.cues import Language
from nacre.extraction.reading.speech import Utterance, is_content
from nacre.values.session import Action, Flag, Speaker, ToolCall, Trust, Turn

_EDITED = re.compile(
    r"\bapply_patch\b|\bsed -i|\bcat >|\btee\b|(?<!2)>\s*(?!/dev/null)\S+\s*<<|<<\s?\S+\s*>\s*(?!/dev/null)"
    r"|\.write(?:_text|_bytes|lines)?\(|\bwriteFile(?:Sync)?\(",
    re.IGNORECASE,
)


def is_own(turn: Turn) -> bool:
    """Whether a turn is the agent's own words, and none from outside."""
    return turn.speaker is Speaker.AGENT and turn.trust is Trust.TRUSTED and is_content(turn)


def calls(turns: Sequence[Turn], begin: int, end: int) -> list[ToolCall]:
    """The tool calls of a part of the session, without those of sub-agents."""
    return [call for turn in turns[begin:end] if not turn.flags & Flag.SIDECHAIN for call in turn.tool_calls]


def changed(turns: Sequence[Turn], begin: int, end: int) -> bool:
    """Whether a call in a part of the session changed a file."""
    return any(changes(call) for call in calls(turns, begin, end))


def changes(call: ToolCall) -> bool:
    """Whether a call changed a file."""
    is_edit = call.action is Action.EDIT or (call.action is Action.RUN and bool(_EDITED.search(call.input)))
    return call.outcome == "ok" and is_edit


def objects(utterance: Utterance, language: Language) -> bool:
    """Whether the owner says that it is not so, or not yet."""
    cues = language.concluded
    return any(
        cues.objection.search(language.trim(one.text)) or cues.objection.match(one.text)
        for one in utterance.statements[:2]
    )
