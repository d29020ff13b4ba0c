"""Where hosts keep their files, on each system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """Whose machine it is. ``home`` is nacre's own; ``project`` the folder that is wired, ``None`` for the user."""

    user: Path
    home: Path
    environ: Mapping[str, str]
    platform: str
    project: Path | None = None

    def folder(self, variable: str, usual: str) -> Path:
        """The folder that a variable names, else the usual one under the user's."""
        return Path(self.environ.get(variable) or self.user / usual)

    @property
    def config(self) -> Path:
        """Where programs keep their settings."""
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData/Roaming")
        if self.platform == "darwin":
            return self.user / "Library" / "Application Support"
        return self.xdg_config

    @property
    def xdg_config(self) -> Path:
        """The same for programs that keep to one rule on all systems."""
        return self.folder("XDG_CONFIG_HOME", ".config")

    @property
    def editor(self) -> Path:
        """Where VS Code keeps what is the user's: the one that is there, else the usual one."""
        names = ("Code", "Code - Insiders", "VSCodium")
        found = (self.config / name / "User" for name in names)
        return next((path for path in found if path.is_dir()), self.config / "Code" / "User")

    def extension(self, name: str) -> Path:
        """Where an extension of VS Code, or of an editor made from it, keeps its files."""
        editors = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
        found = (self.config / editor / "User" / "globalStorage" / name for editor in editors)
        return next((path for path in found if path.is_dir()), self.editor / "globalStorage" / name)
