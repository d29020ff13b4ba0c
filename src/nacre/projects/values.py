"""Values about projects, and the results of renaming and merging them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nacre.values.memory import Memory


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """A project in a list: how many memories hold in it, its sessions (without those of sub-agents), when something was
    last written or said in it (``None``: never), its other names, and the projects that it depends on."""

    slug: str
    name: str
    memories: int = 0
    sessions: int = 0
    last: datetime | None = None
    aliases: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectDetail:
    """All that is known of a project: what its page says (``page``, without front matter) and lists, which projects
    depend on it (``needed_by``), and its latest memories."""

    project: ProjectLine
    page: str = ""
    remotes: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    latest: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectMergePlan:
    """What a merge would do: how many memories (in any state) and sessions become those of ``into``.

    ``takes`` is what resolves to ``into`` from then on: (``remote``, ``root``, ``label`` or ``alias``, value).
    ``words`` are those of the page of ``project`` that go below those of the page of ``into``. ``evidence`` is what
    speaks for both being one, as far as code can tell.
    """

    project: str
    into: str
    memories: int
    sessions: int
    takes: tuple[tuple[str, str], ...] = ()
    words: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectMoved:
    """What was renamed or merged: ``memories`` (in any state) and ``sessions`` of ``project`` belong to ``into`` now.

    ``retired`` is where its former page lies, if it had one that was put away. ``left`` are files in its folder that
    nacre cannot read as memories: they stay where they are.
    """

    project: str
    into: str
    memories: int
    sessions: int
    operation: str
    retired: str | None = None
    left: tuple[str, ...] = ()
