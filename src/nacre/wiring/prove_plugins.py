"""Prove plugins: that the host has the one that is meant for it, and that what it was told is true."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from nacre.hosts import claude_code
from nacre.hosts.terminals import PLUGIN_TOLD
from nacre.settings import Settings
from nacre.values.reports import FAILURE, OK, WARNING, Check
from nacre.values.wiring import WiringWish
from nacre.wiring.commands import installed_version
from nacre.wiring.dry_runs import SAMPLE, run_hook
from nacre.wiring.ways import program_of, targets_of, way_of
from nacre.wiring.written import json_in, text_of


def prove_plugins(settings: Settings, wish: WiringWish, *, is_of_another: bool) -> Iterator[Check]:
    """A finding where a host has a plugin; one that another nacre wrote is not broken for that."""
    yield from _prove_installed(settings, wish, is_of_another=is_of_another)
    yield from _prove_program(settings, wish)


def _prove_installed(settings: Settings, wish: WiringWish, *, is_of_another: bool) -> Iterator[Check]:
    """Whether Claude Code has the plugin that is meant for it."""
    way = way_of(settings, wish)
    if wish.host != claude_code.NAME or not claude_code.is_plugin(way):
        return
    wanted = claude_code.version_of(claude_code.plugin_files(way))
    found = installed_version(way)
    if found == wanted:
        yield Check("plugin", OK, f"version {found} is installed")
    elif found:
        state = WARNING if is_of_another else FAILURE
        yield Check("plugin", state, f"Claude Code has version {found}, not {wanted}")
    elif program_of(settings, "claude"):
        yield Check("plugin", FAILURE, "Claude Code has not installed it")
    else:
        yield Check("plugin", WARNING, "Claude Code installs it at its next start", "start claude once")


def _prove_program(settings: Settings, wish: WiringWish) -> Iterator[Check]:
    """A plugin that is a program itself: whether what it was told of nacre's programs is true."""
    told = next((one.path for one in targets_of(settings, wish) if one.path.name == PLUGIN_TOLD), None)
    held = json_in(text_of(told)) if told else None
    if not isinstance(held, dict) or not isinstance(held.get("hook"), list):
        return
    environ = held.get("env") if isinstance(held.get("env"), dict) else {}
    home = ["--home", str(held["home"])] if held.get("home") else []
    words = ["/usr/bin/env", *(f"{key}={value}" for key, value in (environ or {}).items())] if environ else []
    words += [*map(str, held["hook"]), *home, wish.host, "session-start"]
    began = time.monotonic()
    given = {**SAMPLE, "cwd": str(settings.home)}
    problem = run_hook(settings, shlex.join(words), given, wish.project, says_json=False)
    took = (time.monotonic() - began) * 1000
    state = FAILURE if problem else OK
    yield Check("plugin", state, problem or f"version {held.get('version')}; nacre answers it in {took:.0f} ms")
