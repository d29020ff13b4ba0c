"""Sessions that the owner does not want read: by tool, by project, by the folder in which they took place."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from pathlib import Path

from nacre.home.home import Home
from nacre.home.projects import resolve_project
from nacre.settings import Settings
from nacre.storage.database import fits_index
from nacre.values.session import Session, StoredSession
from nacre.vault.layout import slugify


class Exclusions:
    """What ``ingest.exclude``, ``ingest.exclude_tools``, ``ingest.exclude_projects`` and ``ingest.exclude_paths`` say.

    What was read before stays, and is shown to nobody elsewhere; nothing of an excluded session is stored, and no
    project is made for it.
    """

    def __init__(self, settings: Settings) -> None:
        self.tools = frozenset(settings.texts("ingest.exclude_tools"))
        self._files = settings.texts("ingest.exclude")
        self._projects = tuple(name.lower() for name in settings.texts("ingest.exclude_projects"))
        self._paths = tuple(_expanded(path, settings.user_home) for path in settings.texts("ingest.exclude_paths"))

    def reason(self, home: Home, session: Session) -> str | None:
        """Why a session is not stored: ``path``, ``project``, or ``id`` where nobody could name it; else ``None``."""
        if not fits_index(session.native_id):
            return "id"
        return self._reason(session, lambda: resolve_project(home, session, create=False))

    def leave_out(self, stored: StoredSession) -> bool:
        """Whether a session that was read before would not be read any more."""
        session, file = stored.session, stored.file
        if session.tool in self.tools or (file and any(fnmatch.fnmatch(file, one) for one in self._files)):
            return True
        return self._reason(session, lambda: stored.project) is not None

    def name(self, project: str) -> bool:
        """Whether a project is one whose sessions are not read."""
        return any(fnmatch.fnmatchcase(project.lower(), pattern) for pattern in self._projects)

    def _reason(self, session: Session, project: Callable[[], str | None]) -> str | None:
        if session.cwd and self._paths and self._is_below(session.cwd):
            return "path"
        if self._projects and any(map(self.name, _names(session, project()))):
            return "project"
        return None

    def _is_below(self, folder: str) -> bool:
        """Whether a folder, or one around it, matches a pattern."""
        parts = re.split(r"[\\/]", folder.rstrip("\\/"))
        around = ["/".join(parts[:end]) or "/" for end in range(1, len(parts) + 1)]
        return any(fnmatch.fnmatchcase(path, pattern) for path in around for pattern in self._paths)


def _names(session: Session, project: str | None) -> list[str]:
    """What a session's project is called, or would be."""
    folder = re.split(r"[\\/]", (session.cwd or "").rstrip("\\/"))[-1]
    found = [project, session.label, folder, slugify(folder) if folder else None]
    return [name for name in found if name]


def _expanded(path: str, home: Path) -> str:
    """A pattern with ``~`` spelt out and slashes as they are compared."""
    if path == "~" or path.startswith(("~/", "~\\")):
        path = f"{home}{path[1:]}"
    return path.replace("\\", "/").rstrip("/") or "/"
