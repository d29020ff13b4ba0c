"""How hosts are wired from here: this machine's places, and the programs of this very nacre."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nacre import __version__
from nacre.errors import InvalidInput
from nacre.hosts import claude_code, codex
from nacre.hosts.host import Host, Target, Way
from nacre.hosts.places import Places
from nacre.hosts.programs import Programs
from nacre.hosts.registry import HOSTS
from nacre.hosts.terminals import OPENCLAW
from nacre.platform.environment import server_address
from nacre.settings import Settings
from nacre.values.wiring import WiringWish
from nacre.wiring.record import load

_QUICK_HOOK = "nacre-hook.sh"
_PINNED = ("NACRE_CONFIG", "NACRE_DB")
_FOLDERS = (
    "APPDATA", "CLAUDE_CONFIG_DIR", "CLINE_DIR", "CODEX_HOME", "CONTINUE_GLOBAL_DIR", "OPENCLAW_STATE_DIR",
    "XDG_CONFIG_HOME",
)  # fmt: skip
"""Variables by which the owner says where hosts keep their files."""


@dataclass(frozen=True, slots=True)
class FoundHost:
    """A host on this machine: where its program is, and whether it is wired for all of the user's."""

    host: Host
    program: str | None
    is_wired: bool


def host_named(name: str) -> Host:
    """A host by its name. Raises InvalidInput."""
    if name not in HOSTS:
        raise InvalidInput(f"there is no host {name!r}", hint=f"one of: {', '.join(HOSTS)}")
    return HOSTS[name]


def found_hosts(settings: Settings) -> list[FoundHost]:
    """The hosts with a program, or a folder in the user's home or the working folder, in the registry's order."""
    user = places_of(settings)
    places = [user, *(replace(user, user=folder, environ={}) for folder in _working_folders())]
    wired = {wish.host for wish in load(settings.home).wishes if wish.project is None}
    found = []
    for host in HOSTS.values():
        program = next(filter(None, (program_of(settings, name) for name in host.programs)), None)
        if program or any(path.exists() for place in places for path in host.traces(place)):
            found.append(FoundHost(host, program, host.name in wired))
    return found


def _working_folders() -> list[Path]:
    """Return the working folder and its parents up to its repository's top; none if it was deleted."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return []
    above = [here, *here.parents]
    top = next((at for at, folder in enumerate(above) if (folder / ".git").exists()), 0)
    return above[: top + 1]


def way_of(settings: Settings, wish: WiringWish) -> Way:
    """How a host is wired. Raises InvalidInput where it has no such scope."""
    host = host_named(wish.host)
    if wish.project is None and not host.by_user:
        raise InvalidInput(f"{host.name} is wired for a project", hint=f"nacre init --host {host.name} --project .")
    if wish.project is not None and not host.by_project:
        raise InvalidInput(f"{host.label} has no settings of a project", hint=f"nacre init --host {host.name}")
    places = places_of(settings, wish.project)
    return Way(
        places, own_programs(settings), plain=wish.plain, slot=wish.slot, tool_hook=wish.tool_hook,
        isolates=wish.isolates,
    )  # fmt: skip


def settled(settings: Settings, wish: WiringWish) -> WiringWish:
    """A wish as it can be fulfilled, without what is no matter of its host.

    Where Claude Code's program is not found, nobody can install a plugin in it now, and its settings alone do at once
    what the plugin would.
    """
    is_claude = wish.host == claude_code.NAME
    plain = is_claude and (wish.plain or not (wish.project or program_of(settings, "claude")))
    takes_rules = wish.host in (claude_code.NAME, codex.NAME)
    return replace(
        wish, plain=plain, slot=wish.slot and wish.host == OPENCLAW, tool_hook=wish.tool_hook and takes_rules,
        isolates=wish.isolates and has_own_memory(wish),
    )  # fmt: skip


def has_own_memory(wish: WiringWish) -> bool:
    """Whether a host has a memory of its own that its user can turn off; for a project alone nobody can."""
    return not wish.project and host_named(wish.host).own_memory is not None


def init_command(wish: WiringWish, *more: str) -> str:
    """What a person types to have this wiring made, or with ``--uninstall`` taken out."""
    project = ["--project", str(wish.project)] if wish.project else []
    named = {"--plain": wish.plain, "--slot": wish.slot, "--tool-hook": wish.tool_hook}
    forms = [option for option, is_wanted in named.items() if is_wanted and "--uninstall" not in more]
    forms += ["--own-memory", "isolate"] if wish.isolates and "--uninstall" not in more else []
    return shlex.join(["nacre", "init", "--host", wish.host, *project, *forms, *more])


def targets_of(settings: Settings, wish: WiringWish) -> Sequence[Target]:
    """The files that a wiring touches. Raises InvalidInput."""
    return host_named(wish.host).targets(way_of(settings, wish))


def places_of(settings: Settings, project: Path | None = None) -> Places:
    """Where hosts keep their files on this machine."""
    return Places(settings.user_home, settings.home.absolute(), settings.environ, settings.platform, project)


def roots_for(settings: Settings, path: Path, project: Path | None) -> list[Path]:
    """The folders in which a file must really lie: those of the project where it is one of its files."""
    if project and path.is_relative_to(project):
        return [project]
    named = [Path(settings.environ[name]) for name in _FOLDERS if settings.environ.get(name)]
    config = settings.environ.get("OPENCLAW_CONFIG_PATH")
    return [settings.user_home, settings.home, *named, *([Path(config).parent] if config else [])]


def own_programs(settings: Settings) -> Programs:
    """nacre's programs with absolute paths; where only its modules are there, by the interpreter."""
    started = {
        name: _script(settings, name) or (sys.executable, "-P", "-m", module)
        for name, module in (("nacre", "nacre"), ("nacre-hook", "nacre.hooks.process"))
    }
    environ = {name: settings.environ[name] for name in _PINNED if settings.environ.get(name)}
    if server_address(environ):
        del environ["NACRE_DB"]  # an address holds a password, and these are files of hosts
    if modules := settings.environ.get("PYTHONPATH"):
        environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(one) for one in modules.split(os.pathsep) if one)
    usual = settings.user_home / ".nacre"
    home = None if settings.home.absolute() == usual else str(settings.home.absolute())
    quick = _script(settings, _QUICK_HOOK) if settings.platform != "win32" else None
    return Programs(
        started["nacre"], started["nacre-hook"], home, environ, settings.platform, __version__, quick or ()
    )  # fmt: skip


def program_of(settings: Settings, name: str) -> str | None:
    """Where a command is, as the owner's shell would find it."""
    return shutil.which(name, path=settings.environ.get("PATH"))


def _script(settings: Settings, name: str) -> tuple[str, ...] | None:
    """A program of nacre's, beside the one that runs now, else beside the interpreter."""
    suffix = ".exe" if settings.platform == "win32" else ""
    running = Path(sys.argv[0])
    beside = [running.absolute().parent] if running.stem == "nacre" and running.is_file() else []
    found = (folder / (name + suffix) for folder in (*beside, Path(sys.executable).parent))
    return next(((str(path),) for path in found if path.is_file()), None)
