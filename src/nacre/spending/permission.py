"""Whether the writer may work by now: asked again before every call, as a run may take hours."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from nacre.errors import SettingsInvalid
from nacre.home.home import Home
from nacre.platform.power import is_on_battery
from nacre.settings import Settings
from nacre.spending.models import NONE, name_for
from nacre.values.model_calls import Task

_OF_THE_WRITER = (Task.EXTRACTION, Task.DREAM)


def is_set(home: Home) -> bool:
    """Whether a model is to write in the background."""
    return home.settings.flag("models.background") and name_for(home, Task.EXTRACTION) != NONE


def rests(settings: Settings) -> bool:
    """Whether the writer is paused, or waits for the mains."""
    return settings.flag("writer.paused") or (not settings.flag("writer.on_battery") and is_on_battery())


class Permission:
    """What the owner allows background work by now, whatever the settings were when it began."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._settings = home.settings
        self._seen: tuple[int, ...] | None = None

    @property
    def settings(self) -> Settings:
        """The settings by now. Where their file cannot be read any more, the writer rests."""
        seen = _written(self._settings)
        if seen != self._seen:
            try:
                self._settings = self._settings.read_again()
            except SettingsInvalid:
                return self._settings.having("writer.paused", value=True)
            self._seen = seen
        return self._settings

    def obstacle(self, task: str) -> str | None:
        """Why a task is not to be done for now; ``None`` where nothing stands against it."""
        settings = self.settings
        if task != Task.CHAT and not settings.flag("models.background"):
            return "models do no work in the background any more"
        if task not in _OF_THE_WRITER:
            return None
        if name_for(replace(self._home, settings=settings), Task(task)) != name_for(self._home, Task(task)):
            return "it is not the writer any more"
        return "it is paused, or waits for the mains" if rests(settings) else None


def _written(settings: Settings) -> tuple[int, ...]:
    """What tells one writing of the config file from the next; empty where there is none."""
    with suppress(OSError):
        found = settings.config.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return ()
