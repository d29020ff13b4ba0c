"""Answers to questions about code."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nacre.values.memory import Memory


@dataclass(frozen=True, slots=True)
class CodeReport:
    """What reading a repository did. ``unchanged`` files were read before; ``skipped`` hold no code that can be read:
    too long, binary, minified; ``failed`` broke the parser; ``left_out`` were too many, or time was up."""

    project: str
    root: str
    files: int
    read: int
    unchanged: int
    removed: int
    skipped: int
    failed: tuple[str, ...]
    left_out: int
    symbols: int
    edges: int
    languages: dict[str, int]
    by_git: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class CodeNode:
    """A symbol, or a file, whose ``name`` is empty. ``line`` is where it is defined."""

    id: str
    project: str
    path: str
    name: str
    kind: str
    line: int


@dataclass(frozen=True, slots=True)
class CodeLink:
    """What is connected with the symbol that was asked about: ``line`` is where it says so, in its own file; ``via``
    is the node between them, where there is one, and ``depth`` the steps."""

    rel: str
    node: CodeNode
    line: int
    depth: int = 1
    via: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class CodeMemory:
    """A memory that names code: ``names`` are the names as it writes them, ``nodes`` the ids that these mean."""

    memory: Memory
    names: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """What was found. Where the name means several things, nothing was looked for: they are the ``choices``."""

    asked: str
    nodes: tuple[CodeNode, ...] = ()
    choices: tuple[CodeNode, ...] = ()
    links: tuple[CodeLink, ...] = ()
    memories: tuple[CodeMemory, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True)
class ForgottenCode:
    """The result of forgetting the code of a project; ``was_there`` says whether any was stored."""

    project: str
    was_there: bool


@dataclass(frozen=True, slots=True)
class StaleFile:
    """A file that a memory names and that was changed since. ``is_gone``: it is not in the working tree any more."""

    path: str
    edits: int
    sessions: int
    last: datetime
    is_gone: bool = False

    def __str__(self) -> str:
        """Edits, sessions and last change in words."""
        times = "once" if self.edits == 1 else f"{self.edits:,} times"
        return f"{self.path} is gone" if self.is_gone else f"{self.path} changed {times} since"


@dataclass(frozen=True, slots=True)
class StaleMemory:
    """A memory that may be out of date, and how sure that is (0 to 1). ``symbols`` are the names of code in it, and
    ``missing`` those that the files do not hold any more."""

    memory: Memory
    confidence: float
    files: tuple[StaleFile, ...]
    sessions: int
    lag_days: float
    symbols: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    is_checked: bool = False

    @property
    def why(self) -> str:
        """The reason in words, with at most three files and five names."""
        files = "; ".join(map(str, self.files[:3]))
        return f"{files}; not there any more: {', '.join(self.missing[:5])}" if self.missing else files


@dataclass(frozen=True, slots=True)
class Staleness:
    """Memories that may be out of date, the surest first, of how many that name files."""

    memories: tuple[StaleMemory, ...]
    looked_at: int
    total: int
