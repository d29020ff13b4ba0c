"""Commands of hosts' own that a wiring needs: Claude Code installs plugins by itself, and is told to do it now."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

from nacre.hosts import claude_code
from nacre.hosts.host import SERVER, Way
from nacre.platform import json_text
from nacre.settings import Settings
from nacre.values.wiring import HostCommand, WiringWish
from nacre.wiring.ways import program_of, way_of

_SECONDS = 60.0
_SAID = 300


def commands_for(settings: Settings, wish: WiringWish, *, is_removal: bool = False) -> Iterator[HostCommand]:
    """What is to be run for a host, where its program is there; else it does the same by its settings, later."""
    if wish.host != claude_code.NAME or wish.project:
        return
    program = program_of(settings, "claude")
    way = way_of(settings, wish)
    if program is None:
        return
    installed = installed_version(way)
    touches = (claude_code.settings_folder(way.places) / "settings.json",)
    if is_removal or wish.plain:
        if installed:
            yield HostCommand((program, "plugin", "uninstall", claude_code.PLUGIN), "uninstall the plugin", touches)
            yield HostCommand((program, "plugin", "marketplace", "remove", SERVER), "forget where it is", touches)
        return
    wanted = claude_code.version_of(claude_code.plugin_files(way))
    if installed == wanted:
        return
    if installed:
        yield HostCommand((program, "plugin", "marketplace", "update", SERVER), "look at the plugin again", touches)
        yield HostCommand((program, "plugin", "update", claude_code.PLUGIN), "take the new plugin", touches)
        return
    folder = str(claude_code.marketplace(way.places))
    yield HostCommand((program, "plugin", "marketplace", "add", folder), "tell where the plugin is", touches)
    yield HostCommand((program, "plugin", "install", claude_code.PLUGIN), "install the plugin", touches)


def installed_version(way: Way) -> str | None:
    """The version of nacre's plugin that Claude Code has."""
    path = claude_code.settings_folder(way.places) / "plugins" / "installed_plugins.json"
    try:
        found: Any = json_text.parse(path.read_bytes())
        entries = found["plugins"].get(claude_code.PLUGIN)
        one = entries[0] if isinstance(entries, list) else entries
        return str(one["version"]) if one else None
    except (OSError, ValueError, KeyError, AttributeError, TypeError, IndexError):
        return None


def run_command(settings: Settings, command: HostCommand) -> str | None:
    """Run it; returns what went wrong."""
    try:
        done = subprocess.run(
            command.words, env=dict(settings.environ), cwd=settings.user_home, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not end within {_SECONDS:.0f} seconds"
    except OSError as error:
        return f"it cannot be run: {error.strerror}"
    if done.returncode:
        return " ".join((done.stderr or done.stdout).split())[:_SAID] or f"it ended with {done.returncode}"
    return None
