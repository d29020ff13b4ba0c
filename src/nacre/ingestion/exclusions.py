"""Sessions that the owner does not want read: by tool, by project, by the folder in which they took place."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

from nacre.home.home import Home
from nacre.home.projects import resolve_project
from nacre.storage.database import fits_index
from nacre.values.session import Session
from nacre.vault.layout import slugify


class Exclusions:
    """What ``ingest.exclude_tools``, ``ingest.exclude_projects`` and ``ingest.exclude_paths`` say.

    What was read before stays; nothing of an excluded session is stored, and no project is made for it.
    """

    def __init__(self, home: Home) -> None:
        settings = home.settings
        self.tools = frozenset(settings.texts("ingest.exclude_tools"))
        self._home = home
        self._projects = tuple(name.lower() for name in settings.texts("ingest.exclude_projects"))
        self._paths = tuple(_expanded(path, settings.user_home) for path in settings.texts("ingest.exclude_paths"))

    def reason(self, session: Session) -> str | None:
        """Why a session is left out: ``path``, ``project``, or ``id`` where nobody could name it; else ``None``."""
        if not fits_index(session.native_id):
            return "id"
        if session.cwd and self._paths and self._is_below(session.cwd):
            return "path"
        if self._projects and any(self._is_named(name) for name in self._names(session)):
            return "project"
        return None

    def _is_below(self, folder: str) -> bool:
        """Whether a folder, or one around it, matches a pattern."""
        parts = re.split(r"[\\/]", folder.rstrip("\\/"))
        around = ["/".join(parts[:end]) or "/" for end in range(1, len(parts) + 1)]
        return any(fnmatch.fnmatchcase(path, pattern) for path in around for pattern in self._paths)

    def _is_named(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in self._projects)

    def _names(self, session: Session) -> list[str]:
        """What a session's project is called, or would be."""
        known = resolve_project(self._home, session, create=False)
        folder = re.split(r"[\\/]", (session.cwd or "").rstrip("\\/"))[-1]
        found = [known, session.label, folder, slugify(folder) if folder else None]
        return [name for name in found if name]


def _expanded(path: str, home: Path) -> str:
    """A pattern with ``~`` spelt out and slashes as they are compared."""
    if path == "~" or path.startswith(("~/", "~\\")):
        path = f"{home}{path[1:]}"
    return path.replace("\\", "/").rstrip("/") or "/"
