"""Passages of earlier conversations that fit a question."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.errors import NotFound, QueryInvalid
from nacre.home.home import Home
from nacre.sessions.chat_search import search
from nacre.sessions.requests import ChatSearchRequest
from nacre.text.passages import count_tokens, shorten
from nacre.transcripts.tools.nacre_chat import TOOL

_QUERY_CHARACTERS = 2_000


def passages_for(
    home: Home, question: str, *, limit: int, budget_tokens: int, key: str | None, leave_out: str
) -> Sequence[str]:  # fmt: skip
    """Those that fit best, within a budget: of one conversation's earlier sessions (``key``), or of all conversations;
    without those of the session that goes on (``leave_out``), whose end is shown anyway."""
    if not limit or not question.strip():
        return ()
    request = ChatSearchRequest(
        query=shorten(question, _QUERY_CHARACTERS), limit=limit, session=key, leave_out=f"{TOOL}:{leave_out}"
    )
    try:
        found = [one for one in search(home, request).passages if key in (None, one.key)]
    except (NotFound, QueryInvalid):  # nothing of this conversation was made searchable yet, or there is no word in it
        return ()
    fitting: list[str] = []
    for one in found:
        tokens = count_tokens(one.text)
        if tokens <= budget_tokens:
            fitting.append(one.text)
            budget_tokens -= tokens
    return fitting
