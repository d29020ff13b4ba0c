"""What wiring hosts would change: every file as it is and as it is to be. What is shown is what is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from nacre.hosts.host import Target
from nacre.hosts.pieces import JsonHook
from nacre.settings import Settings
from nacre.values.wiring import WiringPlan, WiringWish
from nacre.wiring.commands import commands_for
from nacre.wiring.drafts import Drafts, dropped, put
from nacre.wiring.record import load
from nacre.wiring.ways import host_named, targets_of, way_of

_TWICE = "It is wired for all of yours as well: in this project its hooks run twice."
_PATHS = "What was written holds paths of this machine: others who share the project's repository need their own."


def plan(settings: Settings, wishes: Sequence[WiringWish]) -> WiringPlan:
    """What wiring these hosts would change. Raises InvalidInput."""
    wired = load(settings.home)
    drafts = Drafts(settings, wired, is_removal=False)
    before = {one.place: one for one in wired.wishes}
    needed = _pieces(settings, wishes)
    for wish in wishes:
        old = before.get(wish.place)
        for target in targets_of(settings, old) if old and old != wish else ():
            drafts.take(wish, _without(target, needed), dropped)
    drafts.restore(wired, {path for path, _ in needed})
    for wish in wishes:
        for target in targets_of(settings, wish):
            drafts.take(wish, target, put)
        drafts.servers.look_beside(wish, drafts.words_at)
    notes = [(wish.host, note) for wish in wishes for note in host_named(wish.host).notes(way_of(settings, wish))]
    shared = next((wish.host for wish in wishes if wish.project), None)
    notes += [(shared, _PATHS)] if shared else []
    notes += [(wish.host, _TWICE) for wish in wishes if _runs_twice(settings, wish, (*wishes, *wired.wishes))]
    commands = [one for wish in wishes for one in commands_for(settings, wish) if drafts.may_run(one)]
    servers = drafts.servers
    return WiringPlan(
        tuple(wishes), drafts.changes(), tuple(drafts.left_alone), tuple(servers.kept), tuple(servers.put),
        tuple(commands), tuple(notes), own_memories=tuple(drafts.own_memories.states(tuple(wishes), is_removal=False)),
        set=tuple(drafts.own_memories.set), given_back=tuple(drafts.own_memories.given_back),
    )  # fmt: skip


def plan_removal(settings: Settings, wishes: Sequence[WiringWish]) -> WiringPlan:
    """What taking these hosts' wiring out would change; files that nothing else changed become what they were.

    What another wiring needs stays. Raises InvalidInput.
    """
    wired = load(settings.home)
    drafts = Drafts(settings, wired, is_removal=True)
    places = {wish.place for wish in wishes}
    needed = _pieces(settings, [wish for wish in wired.wishes if wish.place not in places])
    for wish in wishes:
        for target in _all_forms(settings, wish):
            drafts.take(wish, _without(target, needed), dropped)
    drafts.restore(wired, {path for path, _ in needed})
    commands = [one for wish in wishes for one in commands_for(settings, wish, is_removal=True) if drafts.may_run(one)]
    return WiringPlan(
        tuple(wishes), drafts.changes(), tuple(drafts.left_alone), tuple(drafts.servers.kept), (), tuple(commands),
        is_removal=True, own_memories=tuple(drafts.own_memories.states(tuple(wishes), is_removal=True)),
        given_back=tuple(drafts.own_memories.given_back),
    )  # fmt: skip


def _runs_twice(settings: Settings, wish: WiringWish, all_wishes: Iterable[WiringWish]) -> bool:
    """Whether a project's wiring has hooks, and the host is wired for all of the user's as well."""
    other = any(one.host == wish.host and not one.project for one in all_wishes)
    pieces = (piece for target in targets_of(settings, wish) for piece in target.pieces)
    return bool(wish.project) and other and any(isinstance(piece, JsonHook) for piece in pieces)


def _pieces(settings: Settings, wishes: Iterable[WiringWish]) -> set[tuple[Path, str]]:
    """What these wirings need, by file."""
    return {(one.path, repr(piece)) for wish in wishes for one in targets_of(settings, wish) for piece in one.pieces}


def _without(target: Target, needed: set[tuple[Path, str]]) -> Target:
    return replace(target, pieces=tuple(one for one in target.pieces if (target.path, repr(one)) not in needed))


def _all_forms(settings: Settings, wish: WiringWish) -> Iterable[Target]:
    """The files of a wiring, in whichever form it was made."""
    forms = dict.fromkeys(
        (replace(wish, plain=False, slot=True, tool_hook=True, isolates=True), replace(wish, plain=True))
    )
    return [target for form in forms for target in targets_of(settings, form)]
