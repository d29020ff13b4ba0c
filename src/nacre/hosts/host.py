"""What a host is to nacre: where it is known by, and the files that a wiring of it touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nacre.hosts.pieces import JsonHook, Piece
from nacre.hosts.places import Places
from nacre.hosts.programs import Programs

SERVER = "nacre"
"""The name of the MCP server, of plugins, and of keys in settings of others."""

READING_TOOLS = ("memory_search", "memory_get")
"""Tools that change nothing."""

FREE_TOOLS = (*READING_TOOLS, "memory_store")
"""Tools that an agent may call without asking: they read, or propose what the owner may keep."""

_IN_SESSION = frozenset({"UserPromptSubmit", "PreToolUse", "Stop"})
"""Events that come often, and hold somebody up: the quick hook is for them. The tools that have them by these names end
what they hand over, which it waits for."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a host is to be wired. ``plain``: by its settings alone, where there would be a plugin.

    ``slot``: the host's place for memory, where it has one, becomes that of nacre. ``tool_hook``: a hook
    runs before each edit and command, too. ``isolates``: the host's own memory is turned off.
    """

    places: Places
    programs: Programs
    plain: bool = False
    slot: bool = False
    tool_hook: bool = False
    isolates: bool = False

    @property
    def project(self) -> Path | None:
        """The folder that is wired; ``None`` for all of the user's."""
        return self.places.project


@dataclass(frozen=True, slots=True)
class Target:
    """A file and what of nacre's goes into it; ``what`` tells it in a word or two."""

    path: Path
    pieces: tuple[Piece, ...]
    what: str


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """A file or folder of a host's own memory, and the source of imports that reads it."""

    source: str
    path: Path


@dataclass(frozen=True, slots=True)
class Host:
    """One agent tool.

    ``programs`` are the names of its commands and ``traces`` the files or folders by which it is recognised.
    ``targets`` says what a wiring touches; ``notes`` what a person has to do or to know afterwards. ``by_user`` and
    ``by_project`` say which scopes it has. ``own_memory`` says where the host keeps a memory of its own that it can be
    told to leave alone; ``None`` where there is none, or no setting for it. ``copies`` are folders in which the host
    keeps copies of nacre's own files, also when nacre is out.
    """

    name: str
    label: str
    programs: tuple[str, ...]
    traces: Callable[[Places], Sequence[Path]]
    targets: Callable[[Way], Sequence[Target]]
    notes: Callable[[Way], Sequence[str]] = lambda _: ()
    by_user: bool = True
    by_project: bool = True
    own_memory: Callable[[Places], Sequence[MemoryPlace]] | None = None
    copies: Callable[[Places], Sequence[Path]] = lambda _: ()


def hook_groups(
    way: Way, host: str, seconds: Mapping[str, int], matchers: Mapping[str, str] | None = None
) -> tuple[JsonHook, ...]:  # fmt: skip
    """Hooks in the shape that Claude Code made common: groups by event, each with a command and a time limit.

    ``matchers`` say of an event which of its occasions are meant, as tools by name.
    """
    known = matchers or {}
    return tuple(
        JsonHook(
            ("hooks", event),
            {
                **({"matcher": known[event]} if event in known else {}),
                "hooks": [{"type": "command", **_entry(way, host, event, limit, is_quick=event in _IN_SESSION)}],
            },
        )
        for event, limit in seconds.items()
    )


def hook_entries(way: Way, host: str, seconds: dict[str, int]) -> tuple[JsonHook, ...]:
    """Hooks as a flat list by event."""
    return tuple(JsonHook(("hooks", event), _entry(way, host, event, limit)) for event, limit in seconds.items())


def _entry(way: Way, host: str, event: str, limit: int, *, is_quick: bool = False) -> dict[str, object]:
    return {"command": way.programs.hook_line(host, event, is_quick=is_quick), "timeout": limit}
