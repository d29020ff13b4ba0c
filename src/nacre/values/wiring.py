"""What wiring a host means: what is asked, what would change, what was done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WiringWish:
    """A host to wire, for all of the user's, or for one project.

    ``plain``: by its settings alone, where there would be a plugin. ``slot``: the host's own place
    for memory becomes that of nacre. ``tool_hook``: a hook also runs before each edit and command. ``isolates``: the
    host's own memory is turned off, and what it holds is imported.
    """

    host: str
    project: Path | None = None
    plain: bool = False
    slot: bool = False
    tool_hook: bool = False
    isolates: bool = False

    @property
    def scope(self) -> str:
        """``user`` or ``project``."""
        return "project" if self.project else "user"

    @property
    def place(self) -> tuple[str, str]:
        """What there is one wiring of: a host, in a project or for the user."""
        return self.host, str(self.project or "")


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as it is and as it is to be; ``None`` is no file. ``path`` is where it really lies.

    ``hosts`` are those that it is for; ``what`` tells what goes in or out. ``is_pristine``: nothing of nacre's is in it
    before.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    hosts: tuple[str, ...]
    what: str
    mode: int = 0o600
    is_pristine: bool = True

    @property
    def action(self) -> str:
        """``create``, ``change``, ``remove`` or ``none``."""
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A file that is not touched, or something in it, and why."""

    path: Path
    host: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class HostSetting:
    """A setting of a host's own that nacre changes: where it stands, its keys, and what it was, as JSON; empty where it
    was not there."""

    host: str
    path: Path
    name: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class OwnMemory:
    """How it stands with a host's own memory: ``isolated`` (the host neither loads nor writes it), ``restored`` (it
    does again, as before nacre) or ``conflict`` (somebody turned it on again, and nacre leaves that alone)."""

    host: str
    state: str
    told: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class HostCommand:
    """A command of a host's own that is run, and what for; ``touches`` are files that it may write anew."""

    words: tuple[str, ...]
    what: str
    touches: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class WiringPlan:
    """All that would be done, and what a person has to do afterwards (by host).

    ``kept`` are servers of nacre's name that the owner wrote. ``servers`` are those that are nacre's when it is done:
    the file, and the words that start it. ``set`` and ``given_back`` are settings of hosts that change: those of
    their own memories.
    """

    wishes: tuple[WiringWish, ...]
    changes: tuple[FileChange, ...]
    left_alone: tuple[LeftAlone, ...] = ()
    kept: tuple[LeftAlone, ...] = ()
    servers: tuple[tuple[Path, tuple[str, ...]], ...] = ()
    commands: tuple[HostCommand, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    is_removal: bool = False
    own_memories: tuple[OwnMemory, ...] = ()
    set: tuple[HostSetting, ...] = ()
    given_back: tuple[HostSetting, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether all is as it should be already."""
        return not self.commands and all(change.action == "none" for change in self.changes)


@dataclass(frozen=True, slots=True)
class WiringDone:
    """What was done: the changes, the copies of files as they were before, and what went wrong.

    ``old_copies`` are those of earlier changes that nothing needs any more.
    """

    plan: WiringPlan
    backups: tuple[Path, ...]
    left_alone: tuple[LeftAlone, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    """Commands of hosts that failed, with what they said."""

    old_copies: tuple[Path, ...] = ()
    trusted: bool = False
    """Whether Codex was told to trust the hooks, and does."""
