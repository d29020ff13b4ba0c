"""Hosts as people see them: which there are, and what a wiring would change, without others' secrets."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nacre.hosts.registry import HOSTS
from nacre.redact.redactor import Redactor
from nacre.settings import Settings
from nacre.values.wiring import FileChange, HostCommand, LeftAlone, OwnMemory, WiringPlan, WiringWish
from nacre.wiring import answers
from nacre.wiring.record import load
from nacre.wiring.requests import WireRequest
from nacre.wiring.ways import found_hosts

Clean = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class HostState:
    """A host: whether something of it is on this machine (``is_here``), its program, and how it is wired.

    ``by_user``: it can be wired for all of the user's.
    """

    name: str
    label: str
    is_here: bool
    program: str | None
    by_user: bool
    wired: tuple[WiringWish, ...]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that changes; ``action``: ``create``, ``change`` or ``remove``. ``is_own``: it lies in nacre's home.

    ``diff`` are lines that begin with ``+``, ``-`` or a space.
    """

    path: Path
    action: str
    what: str
    is_own: bool
    diff: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WiringPreview:
    """What a wiring would do. ``unchanged`` files are as they should be already; ``notes`` is what a person has to do
    or to know afterwards."""

    files: tuple[ChangedFile, ...]
    unchanged: int
    commands: tuple[HostCommand, ...]
    left_alone: tuple[LeftAlone, ...]
    own_memories: tuple[OwnMemory, ...]
    notes: tuple[str, ...]


def list_hosts(settings: Settings) -> list[HostState]:
    """Every host that nacre knows; first those on this machine."""
    wishes = load(settings.home).wishes
    found = {one.host.name: one for one in found_hosts(settings)}
    states = [
        HostState(
            host.name, host.label, host.name in found, found[host.name].program if host.name in found else None,
            host.by_user, tuple(wish for wish in wishes if wish.host == host.name),
        )
        for host in HOSTS.values()
    ]  # fmt: skip
    return sorted(states, key=lambda one: not (one.is_here or one.wired))


def preview(settings: Settings, request: WireRequest) -> WiringPreview:
    """What configuring hosts would change, as it can be shown. Raises InvalidInput."""
    plan = answers.plan(settings, request)
    clean, home = Redactor(*settings.redaction).clean, settings.home.resolve()
    changed = [one for one in plan.changes if one.action != "none"]
    return WiringPreview(
        tuple(
            ChangedFile(one.path, one.action, one.what, one.path.is_relative_to(home), tuple(diff_of(one, clean)[2:]))
            for one in changed
        ),
        len(plan.changes) - len(changed), plan.commands, plan.left_alone + plan.kept, plan.own_memories, _notes(plan),
    )  # fmt: skip


def diff_of(change: FileChange, clean: Clean) -> list[str]:
    """How a file changes, as diff -u tells it, without the secrets that settings of others may hold."""
    before, after = _lines(change.before, clean), _lines(change.after, clean)
    names = ("before" if change.before is not None else "/dev/null", "after" if after else "/dev/null")
    return list(difflib.unified_diff(before, after, *names, lineterm="", n=2))


def _lines(content: bytes | None, clean: Clean) -> list[str]:
    return [] if content is None else clean(content.decode("utf-8", "replace")).splitlines()


def _notes(plan: WiringPlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for _, note in plan.notes))
