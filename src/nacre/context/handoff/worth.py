"""Whether a session leaves anything that the next one should know."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.extraction.extractor import extract
from nacre.extraction.reading.course import changes
from nacre.extraction.reading.speech import Utterance
from nacre.sessions.summary.checks import is_check
from nacre.sessions.summary.ending import outcome
from nacre.sessions.summary.open_ends import open_ends
from nacre.sessions.summary.topics import asks_for_work
from nacre.sessions.summary.work import does
from nacre.values.session import Action, Session, ToolCall, Turn
from nacre.values.summary import Ending


def has_something(
    session: Session, turns: Sequence[Turn], spoken: Sequence[Utterance], telling: Sequence[Utterance]
) -> bool:
    """Whether something was asked to be done, changed, left open or decided; not where the owner only had something
    looked up, and was told. ``telling`` are those of the owner's messages that are no nods.
    """
    return (
        any(map(_is_work, telling))
        or any(_works(call) for turn in turns for call in turn.tool_calls)
        or _is_open(turns, spoken)
        or bool(extract(session, turns))
    )


def _is_work(utterance: Utterance) -> bool:
    """Whether a message says more than a question, a nod, or what is to be looked at."""
    return any(asks_for_work(one.text) for one in utterance.statements)


def _works(call: ToolCall) -> bool:
    """Whether a call changed a file, made something, or did more than look and check."""
    if call.outcome != "ok":
        return False
    return changes(call) or bool(call.made) or (call.action is Action.RUN and does(call) and not is_check(call))


def _is_open(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> bool:
    ended = outcome(turns, spoken)
    return ended.ending in (Ending.STOPPED, Ending.FAILED) or bool(open_ends(turns, spoken, ended))
