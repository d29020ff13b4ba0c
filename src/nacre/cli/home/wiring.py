"""Wirings of hosts, for people: what would change, as a diff, and what was done."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.cli.formats import count
from nacre.cli.home.init_daemon import DaemonMet
from nacre.cli.paper import Paper, Part, Span, bold, dim
from nacre.hosts import codex, registry
from nacre.wiring import preview as wiring_preview

if TYPE_CHECKING:
    from nacre.portability.host_memories import Captured
    from nacre.values.wiring import FileChange, HostCommand, LeftAlone, OwnMemory, WiringDone, WiringPlan

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_OUTLINED = {"create": "write", "change": "change", "remove": "remove"}
Clean = Callable[[str], str]
_LONGEST_LINE = 300
_NEW_LINES = 12
"""Of a file that is all new, so many lines are shown."""
_DONE = {"create": "wrote", "change": "changed", "remove": "removed", "none": "unchanged"}
_TO_DO = {"create": "would write", "change": "would change", "remove": "would remove", "none": "unchanged"}


@dataclass(frozen=True, slots=True)
class Shown:
    """How paths are told: those of the user from ``~`` on; and texts: without secrets."""

    user: Path
    home: Path
    clean: Clean

    def is_own(self, path: Path) -> bool:
        """Whether a file lies in nacre's home."""
        return path.is_relative_to(self.home)

    def short(self, path: Path) -> str:
        """A path as people write it."""
        return f"~/{path.relative_to(self.user)}" if path.is_relative_to(self.user) else str(path)

    def words(self, command: HostCommand) -> str:
        """A command as people type it."""
        first, *rest = command.words
        return shlex.join([Path(first).stem, *rest])


def render_plan(paper: Paper, plan: WiringPlan, places: Shown, *, is_whole: bool = False) -> None:
    """What would be done; ``is_whole``: to the last line, nacre's own files too."""
    for change in plan.changes:
        if change.action != "none" and (is_whole or not places.is_own(change.path)):
            labels = ", ".join(registry.HOSTS[host].label for host in change.hosts)
            paper.line(bold(f"{_TO_DO[change.action]} {places.short(change.path)}"), dim(f"  {labels}: {change.what}"))
            for line in _shown(change, places.clean, is_whole=is_whole):
                paper.verbatim("  " + line, _STYLES.get(line[:1], "dim"))
    if not is_whole:
        _own_files(paper, plan, places, _TO_DO)
    for command in plan.commands:
        paper.line(bold("would run "), places.words(command), dim(f"  {command.what}"), hang=2)
    _own_memories(paper, plan.own_memories)
    same = sum(change.action == "none" for change in plan.changes)
    if same:
        paper.line(dim(f"{count(same, 'file')} as {'it' if same == 1 else 'they'} should be already"))
    _left(paper, plan.left_alone, places)
    _left(paper, plan.kept, places, "kept      ")


def render_outline(paper: Paper, plan: WiringPlan, places: Shown) -> None:
    """What would be done, a line a file."""
    rows: list[tuple[str, str, Part]] = []
    for change in plan.changes:
        if change.action != "none" and not places.is_own(change.path):
            labels = ", ".join(registry.HOSTS[host].label for host in change.hosts)
            rows.append((_OUTLINED[change.action], places.short(change.path), dim(f"{labels}: {change.what}")))
    rows += [
        (_OUTLINED[action], where, dim(f"{label}: {what}, {count(number, 'file')}"))
        for action, where, label, what, number in _own(plan, places)
    ]
    rows += [("run", places.words(command), dim(command.what)) for command in plan.commands]
    for verb, path, what in rows:
        paper.line(bold(f"{verb:<7}"), path, "  ", what, hang=7)
    _own_memories(paper, plan.own_memories)
    _left(paper, plan.left_alone, places)
    _left(paper, plan.kept, places, "kept      ")


def render_done(
    paper: Paper, done: WiringDone, places: Shown, daemon: DaemonMet | None = None, captured: Sequence[Captured] = ()
) -> None:
    """What was done, what became of the daemon, and what is left to do."""
    plan = done.plan
    left = {one.path for one in done.left_alone}
    for change in plan.changes:
        if change.action != "none" and change.path not in left and not places.is_own(change.path):
            verb = Span(f"{_DONE[change.action]:<8}", "green")
            paper.line(verb, f" {places.short(change.path)}", dim(f"  {change.what}"))
    _own_files(paper, plan, places, _DONE)
    if done.trusted:
        paper.line(Span(f"{'trusted':<8}", "green"), " the hooks, by Codex")
    elif plan.is_nothing and not plan.left_alone:
        paper.line("Nothing to do: ", "none of it is there." if plan.is_removal else "everything is in place.")
    _own_memories(paper, plan.own_memories)
    _captured(paper, captured, places)
    _copies(paper, done, places)
    for command, said in done.failed:
        paper.line(Span("failed", "bold red"), f" {command}: {said}", hang=2)
    _left(paper, (*plan.left_alone, *done.left_alone), places)
    _left(paper, plan.kept, places, "kept      ")
    if daemon:
        paper.line(daemon.told, hang=2)
    if plan.is_removal:
        paper.line(dim(f"Your memories stay in {places.short(places.home)}."))
        return
    for host, note in plan.notes:
        if not plan.is_nothing or host == codex.NAME:  # which is told as long as the hooks are not trusted
            paper.line(bold(registry.HOSTS[host].label), f": {note}", hang=2)
    works = "tells what works" if plan.left_alone else "proves that it works"
    paper.line(dim(f"nacre doctor hosts {works}; nacre init --uninstall takes it out again."))


def _own_memories(paper: Paper, found: Sequence[OwnMemory]) -> None:
    """How it stands with the hosts' own memories."""
    for one in found:
        style = "yellow" if one.hint else "green"
        told = f" own memory of {registry.HOSTS[one.host].label}: {one.told}{f' ({one.hint})' if one.hint else ''}"
        paper.line(Span(f"{one.state:<8}", style), told, hang=2)


def _captured(paper: Paper, captured: Sequence[Captured], places: Shown) -> None:
    """What was imported of them, a line a host, and how agents are told it unasked."""
    for host in dict.fromkeys(one.host for one in captured):
        own = [one for one in captured if one.host == host]
        added, updated = sum(one.added for one in own), sum(one.updated for one in own)
        if added or updated:
            above = places.short(Path(os.path.commonpath([one.path for one in own])))
            changed = f", {updated} changed" if updated else ""
            hint = dim(f"  found when searched; nacre import {above} --trust has agents told unasked")
            paper.line(
                Span("imported", "green"), f" {count(added, 'memory', 'memories')} of {above}{changed}", hint, hang=2
            )
        for one in own:
            if one.problem:
                paper.line(Span("left alone", "yellow"), f" {places.short(one.path)}: {one.problem}", hang=2)


def _copies(paper: Paper, done: WiringDone, places: Shown) -> None:
    """Where files are as they were: before what was done now, and before nacre came."""
    for path in done.backups:
        paper.line(dim(f"as it was: {places.short(path)}"))
    for path in done.old_copies:
        paper.line(dim(f"as it was before nacre: {places.short(path)}"))


def _own_files(paper: Paper, plan: WiringPlan, places: Shown, verbs: Mapping[str, str]) -> None:
    """Files in nacre's own folder, a line a host and action."""
    for action, where, label, what, number in _own(plan, places):
        paper.line(bold(f"{verbs[action]:<8}"), f" {count(number, 'file')} in {where}", dim(f"  {label}: {what}"))


def _own(plan: WiringPlan, places: Shown) -> Iterator[tuple[str, str, str, str, int]]:
    """Of the files in nacre's own folder: what is done, where, for which host, what they are, how many."""
    counted: Counter[tuple[str, str, str]] = Counter(
        (change.action, change.hosts[0], change.what)
        for change in plan.changes
        if change.action != "none" and places.is_own(change.path)
    )
    for (action, host, what), number in counted.items():
        yield action, places.short(places.home / "hosts" / host), registry.HOSTS[host].label, what, number


def _shown(change: FileChange, clean: Clean, *, is_whole: bool) -> Iterator[str]:
    lines = [_cut(line) for line in wiring_preview.diff_of(change, clean)[2:]]
    if change.action == "change" or is_whole:
        yield from lines
        return
    if change.action == "remove":
        return
    yield from lines[1 : _NEW_LINES + 1]
    if len(lines) > _NEW_LINES + 1:
        yield f"  … and {len(lines) - _NEW_LINES - 1} lines more"


def _cut(line: str) -> str:
    """A line as far as it is worth reading: some settings are all in one."""
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


def _left(paper: Paper, left: Sequence[LeftAlone], places: Shown, label: str = "left alone") -> None:
    for one in left:
        told = f" {places.short(one.path)}: {one.reason} ({one.hint})"
        paper.line(Span(label, "yellow"), told, hang=2)
