"""What belongs to projects: how much of it there is, and sessions that follow a project which has another name now."""

from __future__ import annotations

from datetime import datetime

from nacre.platform.ids import from_ms
from nacre.storage.database import Database

Counted = dict[str, tuple[int, datetime | None]]
"""By project: how many, and when the last was."""


class ProjectContents:
    """Reads what belongs to projects, and writes to which one sessions belong."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sessions(self) -> Counted:
        """The sessions of each project, without those of sub-agents and schedulers."""
        return {slug: (count, from_ms(last)) for slug, count, last in self._db.all("count_sessions_by_project")}

    def memories(self) -> Counted:
        """The memories that hold in each project."""
        return {slug: (count, from_ms(last)) for slug, count, last in self._db.all("count_memories_by_project")}

    def memory_ids(self, project: str, limit: int) -> list[str]:
        """The memories of a project in any state, so many at most."""
        return [one for (one,) in self._db.all("list_memories_of_project", project=project, limit=limit)]

    def names_met(self) -> list[tuple[str, str]]:
        """What projects of sessions were called when these were met, and are called now."""
        return [(met, now) for met, now in self._db.all("list_names_met")]

    def move_sessions(self, met: str, project: str, into: str) -> None:
        """Sessions of a project that was called ``met`` when they were met belong to another one."""
        self._db.run("move_sessions", met=met, project=project, into=into)

    def folders(self, project: str) -> list[str | None]:
        """The folders of sessions that were met as a project's."""
        return [folder for (folder,) in self._db.all("list_folders_of_sessions", project=project)]

    def move_sessions_of_folder(self, folder: str | None, project: str, into: str) -> None:
        """Sessions in a folder that were met as a project's belong to another one."""
        self._db.run("move_sessions_of_folder", folder=folder, project=project, into=into)
