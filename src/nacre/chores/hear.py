"""What a session's agent made of the memories that it looked up: feedback that nobody has to ask for (agenr)."""

from __future__ import annotations

from collections.abc import Iterable

from nacre.home.home import Home
from nacre.memories.usage import fold_usage, session_name
from nacre.retrieval.feedback import feedback
from nacre.values.session import Flag, Speaker, StoredSession, Trust, Turn

_NOT_ITS_WORDS = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN | Flag.INJECTED


def is_to_be_heard(home: Home, session: StoredSession) -> bool:
    """Whether memories were looked up in a session on which no reply was heard since."""
    fold_usage(home)
    return home.session_uses.first_unjudged(session_name(session.session.id)) is not None


def hear_reply(home: Home, session: StoredSession) -> None:
    """Judge the memories that were looked up in a session by what its agent said since; see docs/context.md.

    What the agent stored meanwhile and says one of them anew corrects it. Each use is judged once.
    """
    name = session.session.id
    since = home.session_uses.first_unjudged(session_name(name))
    if since is None:
        return
    said = _words_since(since, (item.turn for item in home.sessions.turns_of(session.row)))
    known = (home.memories.find(one.id) for one in home.memories.known_of(name))
    stored = [one.id for one in known if one and one.speaker is Speaker.AGENT and not one.retired]
    feedback(home, said, session=name, stored=stored)


def _words_since(moment: int, turns: Iterable[Turn]) -> str:
    """What the agent itself said after a time (epoch milliseconds)."""
    own = (turn for turn in turns if turn.speaker is Speaker.AGENT and turn.trust is Trust.TRUSTED)
    return "\n\n".join(
        turn.text
        for turn in own
        if not turn.flags & _NOT_ITS_WORDS and turn.time and turn.time.timestamp() * 1000 >= moment
    )
