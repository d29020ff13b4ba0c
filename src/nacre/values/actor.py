"""Who asks for an operation: through which face, and which agent, where one asks. What is done is the owner's or not by
this, never by what a text says.

An actor holds for what runs within :func:`acting`; elsewhere the settings tell who runs the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum

from nacre.errors import OwnerOnly
from nacre.values.session import Speaker

AN_AGENT = "an agent"
"""The name of an agent that nobody knows by name."""


class Role(StrEnum):
    """What an account may do in a space on a server.

    An owner: everything, and says who belongs to it. A member reads and writes. A service does, too, for programs, and
    raises nothing into other spaces. A reader reads.
    """

    OWNER = "owner"
    MEMBER = "member"
    SERVICE = "service"
    READER = "reader"

    def at_most(self, most: Role | None) -> Role:
        """The lesser of two."""
        ranks = list(Role)
        return self if most is None else ranks[max(ranks.index(self), ranks.index(most))]


class Face(StrEnum):
    """Through what an operation is reached; ``mcp`` are the tools of agents, ``http`` the routes of the daemon."""

    PYTHON = "python"
    DAEMON = "daemon"
    MCP = "mcp"
    HTTP = "http"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Quota:
    """What a space may use; ``None`` is no bound. ``calls`` are requests by key a day (UTC), ``turns`` what it holds in
    all (at least 1), ``usd`` what models may cost a day in the background, in US dollars."""

    calls: int | None = None
    turns: int | None = None
    usd: float | None = None


NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who shows a key: an account, in one space, at most in that role, within the space's quota."""

    account: str
    space: str
    most: Role
    quota: Quota = NO_QUOTA


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. ``agent`` is the agent's tool, as transcripts call it, or ``None`` for the owner; ``bearer`` whose key
    was shown, if one was."""

    face: Face
    agent: str | None = None
    bearer: Bearer | None = None

    @property
    def most(self) -> Role | None:
        """The role beyond which the key does not go."""
        return self.bearer.most if self.bearer else None

    @property
    def is_agent(self) -> bool:
        """Whether it is not the owner."""
        return self.agent is not None

    @property
    def speaker(self) -> Speaker:
        """Whose word it is."""
        return Speaker.AGENT if self.is_agent else Speaker.OWNER

    @property
    def in_words(self) -> str:
        """The face, and the agent if there is one: ``mcp, claude-code``."""
        return f"{self.face.value}, {self.agent}" if self.agent else self.face.value

    def require_owner(self, what: str) -> None:
        """Raises OwnerOnly where an agent asks."""
        if self.agent:
            raise OwnerOnly(
                f"{what} is for the owner alone, and {self.agent} runs this",
                hint="run it in a terminal of your own, outside any agent",
            )


_ACTING: ContextVar[Actor | None] = ContextVar("acting", default=None)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Within it, this is who asks, in this thread."""
    token = _ACTING.set(actor)
    try:
        yield
    finally:
        _ACTING.reset(token)


def acting_now() -> Actor | None:
    """Who asks, where somebody said so."""
    return _ACTING.get()
