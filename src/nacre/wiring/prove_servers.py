"""Prove that MCP servers start in time, and have nacre's tools."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence

from nacre.hosts.servers import Server
from nacre.settings import Settings
from nacre.values.reports import FAILURE, OK, WARNING, Check
from nacre.values.wiring import LeftAlone, WiringWish
from nacre.wiring.dry_runs import is_own
from nacre.wiring.tool_probe import list_tools
from nacre.wiring.ways import targets_of
from nacre.wiring.written import Written

_TOOLS = frozenset({"memory_search", "memory_get", "memory_store"})
_SLOW_SECONDS = 1.0
"""Hosts send their first request without the tools of a server that takes longer."""


def prove_servers(
    settings: Settings, wish: WiringWish, written: Written, kept: Sequence[LeftAlone]
) -> Iterator[Check]:  # fmt: skip
    """A finding for each server; one of the owner's that runs something else is the owner's matter.

    But not in a project: anybody may have put it there.
    """
    own = {target.path.resolve() for target in targets_of(settings, wish)}
    hint = next((one.hint for one in kept if one.path.resolve() in own), None)
    for server in written.servers:
        if is_own(server.words, wish.project):
            yield _prove(settings, wish, server, hint)
        elif hint is None or wish.project:
            yield Check("tools", FAILURE, f"it runs something else: {shlex.join(server.words)}")


def _prove(settings: Settings, wish: WiringWish, server: Server, hint: str | None) -> Check:
    began = time.monotonic()
    tools, problem = list_tools(settings, server, wish.project or settings.user_home)
    took = time.monotonic() - began
    missing = _TOOLS - set(tools)
    if problem or missing:
        told = problem or f"it has no {', '.join(sorted(missing))}"
        return Check("tools", FAILURE, f"{told}: {shlex.join(server.words)}", hint)
    told = f"{len(tools)} offered after {took * 1000:.0f} ms"
    if took > _SLOW_SECONDS:
        return Check("tools", WARNING, told, "hosts may send their first request without tools that late")
    return Check("tools", OK, told)
