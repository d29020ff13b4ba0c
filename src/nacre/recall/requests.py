"""Request types of recall."""

from __future__ import annotations

from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.request import Request
from nacre.values.recall import EarlierMessage, Filter, RecallQuery

ASPECTS = "all|errors|plans|configs|tools|files|decisions"
ROLES = "all|owner|agent"


@frozen
class TurnQuery(RecallQuery):
    """A search of turns."""

    offset: Annotated[int, bounds("Items to skip.", ge=0)] = 0
    aspect: Annotated[
        str, bounds("Only turns that concern this aspect.", pattern=f"^({ASPECTS})$")
    ] = "all"
    role: Annotated[str, bounds("Only turns by this speaker.", pattern=f"^({ROLES})$")] = "all"


class DeepQuery(Request):
    """A request for context for a question: whole memories of one project.

    ``recent``: the messages before the question, oldest first.
    """

    text: Annotated[str, bounds("The question.")]
    filter: Annotated[Filter, bounds("Restricts the memories.")] = Filter()
    recent: Annotated[
        tuple[EarlierMessage, ...], bounds("The previous messages, the latest last.")
    ] = ()
    here: Annotated[str | None, bounds("The project of the current folder.")] = None
    update: Annotated[bool, bounds("Count the hits as used.")] = True
    session: Annotated[str | None, bounds("The host's session.")] = None
