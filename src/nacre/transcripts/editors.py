"""Where editors of the VS Code family keep what their chats and extensions write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from nacre.transcripts.adapter import Places

_EDITORS = (
    "Code", "Code - Insiders", "Code - OSS", "VSCodium", "VSCodium - Insiders", "Cursor", "Windsurf",
)  # fmt: skip
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".vscode-remote", ".cursor-server", ".windsurf-server")
_URI = re.compile(r"[a-z][a-z0-9+.-]*://")
_DRIVE = re.compile(r"/([A-Za-z]:)(?=/|\Z)")


ENVIRONMENT = ("APPDATA", "VSCODE_APPDATA", "VSCODE_PORTABLE", "XDG_CONFIG_HOME")
"""The environment's variables that :func:`user_folders` reads."""


def user_folders(places: Places) -> Iterator[Path]:
    """The ``User`` folder of each editor of the family: installed, portable, and its part on a remote machine."""
    base = _configuration(places)
    yield from (base / editor / "User" for editor in _EDITORS)
    for name in ("VSCODE_APPDATA", "VSCODE_PORTABLE"):
        if folder := places.environ.get(name):
            known = Path(folder).expanduser()
            yield known / "user-data" / "User" if name == "VSCODE_PORTABLE" else known / "Code" / "User"
    yield from (places.home / server / "data" / "User" for server in _SERVERS)


def _configuration(places: Places) -> Path:
    if places.platform == "darwin":
        return places.home / "Library" / "Application Support"
    if places.platform == "win32":
        return Path(places.environ.get("APPDATA") or places.home / "AppData" / "Roaming")
    return Path(places.environ.get("XDG_CONFIG_HOME") or places.home / ".config").expanduser()


def folder_of(uri: str | None) -> str | None:
    """The path in a ``file:`` or ``vscode-remote:`` URI, or a path as it is; ``None`` where there is none."""
    if not uri or not _URI.match(uri):
        return uri or None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc:
        path = f"//{parts.netloc}{path}"
    drive = _DRIVE.match(path)
    path = path[1:] if drive else path
    return path if len(path) < 2 or drive else path.rstrip("/")
