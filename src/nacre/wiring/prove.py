"""Prove each wiring by a dry call of exactly what is written in the host's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

from nacre.settings import Settings
from nacre.values.reports import FAILURE, OK, WARNING, Check
from nacre.values.wiring import WiringPlan, WiringWish
from nacre.wiring import own_memory
from nacre.wiring.plan import plan
from nacre.wiring.prove_hooks import prove_hooks
from nacre.wiring.prove_plugins import prove_plugins
from nacre.wiring.prove_servers import prove_servers
from nacre.wiring.prove_versions import prove_versions
from nacre.wiring.record import Wired, load
from nacre.wiring.versions import daemon_of_another, written_by_another
from nacre.wiring.warm_daemon import warmed
from nacre.wiring.ways import found_hosts, init_command
from nacre.wiring.written import written

_MOST_NAMED = 3
_DIFFERS = {"create": "is missing", "change": "is not as it should be"}


def prove_hosts(settings: Settings) -> list[Check]:
    """A finding for each wired host, and a word on those that are here and not wired."""
    wired = load(settings.home)
    wishes = wired.wishes
    checks = list(daemon_of_another(settings))
    with warmed(settings) if wishes else nullcontext():
        names = _names(wishes)
        checks += [check for wish in wishes for check in _prove(settings, wired, wish, names[wish.place])]
    hosts = dict.fromkeys(wish.host for wish in wishes)
    checks += prove_versions(settings, hosts)
    idle = [one.host.name for one in found_hosts(settings) if one.host.name not in hosts]
    if idle:
        hint = f"nacre init --host {','.join(idle)}"
        checks.append(Check("not wired", OK if wishes else WARNING, ", ".join(idle), hint))
    return checks or [Check("hosts", OK, "no tool of an agent was found on this machine", "nacre init --host NAME")]


def hosts_in_a_line(settings: Settings) -> list[Check]:
    """Whether what was wired still stands in the files; nothing is run for it. None where nothing is wired."""
    wired = load(settings.home)
    if not wired.wishes:
        return []
    broken = dict.fromkeys(wish.host for wish in wired.wishes if _differences(plan(settings, [wish])))
    if broken and (another := written_by_another(settings, wired)):
        return [Check("hosts", WARNING, f"{', '.join(broken)}: {another}", "nacre init fits them to this one")]
    if broken:
        return [Check("hosts", WARNING, f"the wiring of {', '.join(broken)} changed", "nacre doctor hosts")]
    again = [wish.host for wish in wired.wishes if _is_on_again(settings, wish)]
    if again:
        return [
            Check("hosts", WARNING, f"the own memory of {', '.join(again)} was turned on again", "nacre doctor hosts")
        ]
    names = ", ".join(dict.fromkeys(wish.host for wish in wired.wishes))
    return [Check("hosts", OK, f"{names}; nacre doctor hosts proves them")]


def _names(wishes: Sequence[WiringWish]) -> dict[tuple[str, str], str]:
    """What wirings are called: a project by its folder's name, unless another one has that, too."""
    alike = Counter((wish.host, wish.project.name) for wish in wishes if wish.project)
    return {
        wish.place: wish.host if wish.project is None
        else f"{wish.host} in {wish.project.name if alike[wish.host, wish.project.name] == 1 else wish.project}"
        for wish in wishes
    }  # fmt: skip


def _prove(settings: Settings, wired: Wired, wish: WiringWish, name: str) -> Iterator[Check]:
    if wish.project and not wish.project.is_dir():
        told = f"there is no folder {wish.project} any more"
        yield Check(name, WARNING, told, init_command(wish, "--uninstall"))
        return
    mend = init_command(wish)
    for check in _findings(settings, wired, wish):
        hint = check.hint or (mend if check.state != OK else None)
        yield replace(check, name=f"{name} {check.name}".strip(), hint=hint)


def _findings(settings: Settings, wired: Wired, wish: WiringWish) -> Iterator[Check]:
    wanted = plan(settings, [wish])
    another = written_by_another(settings, wired)
    files = list(_prove_files(wanted, another))
    yield from files
    for one in wanted.own_memories:
        state = WARNING if one.state == own_memory.CONFLICT else OK
        yield Check("own memory", state, f"{one.state}: {one.told}", one.hint or None)
    found = written(settings, wish)
    yield from (Check("server", WARNING, f"{one.path}: {one.reason}", one.hint) for one in wanted.kept)
    yield from prove_hooks(settings, wish, found)
    yield from prove_servers(settings, wish, found, wanted.kept)
    plugins = [] if wanted.left_alone else list(prove_plugins(settings, wish, is_of_another=bool(another)))
    yield from plugins
    if not (found.hooks or found.servers or plugins or files):
        yield Check("", FAILURE, "nothing of nacre is in its files")


def _prove_files(wanted: WiringPlan, another: str) -> Iterator[Check]:
    """Whether the files are as they should be: those of another nacre are not broken for that."""
    for one in wanted.left_alone:
        yield Check("files", FAILURE, f"{one.path}: {one.reason}", one.hint)
    differs = [one for one in wanted.changes if one.action in _DIFFERS]
    if another and differs:
        told = f"{len(differs)} file{'s' if differs[1:] else ''} would be otherwise"
        yield Check("files", WARNING, f"{another}; {told}")
    elif differs:
        named = [f"{one.path} {_DIFFERS[one.action]}" for one in differs[:_MOST_NAMED]]
        more = [f"{len(differs) - _MOST_NAMED} more"] if len(differs) > _MOST_NAMED else []
        yield Check("files", FAILURE, "; ".join([*named, *more]))


def _is_on_again(settings: Settings, wish: WiringWish) -> bool:
    """Whether somebody turned on a host's own memory that nacre had turned off."""
    return wish.isolates and any(one.state == own_memory.CONFLICT for one in plan(settings, [wish]).own_memories)


def _differences(wanted: WiringPlan) -> bool:
    """Whether something of the files is not as it should be."""
    return bool(wanted.left_alone) or any(one.action in _DIFFERS for one in wanted.changes)
