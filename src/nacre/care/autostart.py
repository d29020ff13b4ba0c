"""The daemon as a system service: a systemd user unit, a launchd agent, or a Windows task."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from nacre.base import files as private_files
from nacre.base.environment import server_address
from nacre.base.frozen import frozen
from nacre.base.link import ask_to_stop, environment_of, program, start_process
from nacre.base.text import read_resource
from nacre.errors import ConflictError, NotFoundError, UnavailableError
from nacre.home.parsing import roots_of
from nacre.readers.adapter import Places
from nacre.readers.registry import adapters
from nacre.settings import Settings

LABEL = "nacre.serve"
UNIT = "nacre.service"
TASK = "nacre"

_COMMAND_TIMEOUT_SECONDS = 60.0
_UNINSTALLED_HINT = "nacre serve start runs it in the background until the next reboot"

Command = tuple[str, ...]


def systemd_unit(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return a systemd user unit that runs a command with the given environment variables."""
    lines = "\n".join(
        f"Environment={_quote_for_systemd(f'{name}={value}')}" for name, value in environ.items()
    )
    program = " ".join(_quote_for_systemd(word).replace("$", "$$") for word in words)
    return _fill_template("nacre.service", {"PROGRAM": program, "ENVIRONMENT": lines})


def launchd_plist(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return a launchd property list that runs a command with the given environment variables."""
    program = "\n".join(f"    <string>{escape(word)}</string>" for word in words)
    pairs = "\n".join(
        f"    <key>{escape(name)}</key>\n    <string>{escape(value)}</string>"
        for name, value in environ.items()
    )
    return _fill_template("nacre.plist", {"LABEL": LABEL, "PROGRAM": program, "ENVIRONMENT": pairs})


def windows_task(words: Sequence[str]) -> str:
    """Return the XML of a Windows task that runs a command for the logged-on user."""
    arguments = subprocess.list2cmdline(list(words[1:]))
    return _fill_template(
        "nacre.xml", {"COMMAND": escape(words[0]), "ARGUMENTS": escape(arguments)}
    )


def _quote_for_systemd(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("%", "%%")
    return f'"{escaped}"'


def _fill_template(name: str, places: Mapping[str, str]) -> str:
    text = read_resource(__file__, f"units/{name}")
    return re.sub(r"@([A-Z]+)@", lambda match: places[match[1]], text)


@frozen
class Installation:
    """The system service that runs a home's daemon.

    ``form``: ``systemd``, ``launchd`` or ``task``.
    ``text``: function that returns the content of the service's file.
    ``home``: text in the file by which the home is recognised.
    """

    form: str
    path: Path
    text: Callable[[], str]
    install: tuple[Command, ...]
    start: tuple[Command, ...]
    remove: tuple[Command, ...]
    home: str
    encoding: str = "utf-8"

    @property
    def is_installed(self) -> bool:
        """Whether the service's file exists and belongs to this home."""
        with suppress(OSError):
            return self.home in self.path.read_text(self.encoding, errors="replace")
        return False


def installation(settings: Settings) -> Installation:
    """Return the service that runs a home's daemon on this operating system."""
    words = [*program(), "serve"]
    if settings.platform == "win32":
        return _task(settings, words)
    return (_launchd if settings.platform == "darwin" else _systemd)(settings, words)


def pinned(settings: Settings) -> dict[str, str]:
    """Return the environment variables that a service needs to find the home and the tools.

    Others are left out, because they can contain secrets.
    """
    environ, requested = environment_of(settings.home, settings.environ), _Requested()
    for adapter in adapters().values():
        roots_of(adapter, Places(settings.home, requested, settings.platform))
    names = {
        "NACRE_HOME",
        "NACRE_CONFIG",
        "NACRE_DB",
        "OPENCLAW_CONFIG_PATH",
        "PATH",
        "PYTHONPATH",
        *requested,
    }
    return {name: environ[name] for name in sorted(names) if environ.get(name)}


class _Requested(dict[str, str]):
    """An empty environment that records which variables were requested."""

    def get(self, name: str, default: Any = None) -> Any:
        self[name] = ""
        return default


def install(settings: Settings) -> Installation:
    """Install the service so that it starts now and at every login.

    Raises ConflictError if another home's service is installed, or UnavailableError.
    """
    if server_address(settings.environ):
        problem = "NACRE_DB cannot be passed to a service: it can contain a password"
        raise UnavailableError(
            problem, hint="nacre config set storage.url postgresql://login@server:5432/database"
        )
    service = installation(settings)
    _require(settings, service)
    if service.is_installed:
        _run(settings, service.remove, is_strict=False)
    elif service.path.exists():
        raise ConflictError(
            f"{service.path} runs the daemon of another home",
            hint="uninstall it there: NACRE_HOME=FOLDER nacre serve uninstall",
        )
    stop(settings)
    private_files.make_folder(service.path.parent)
    private_files.write_file(service.path, service.text().encode(service.encoding))
    _run(settings, service.install)
    return service


def uninstall(settings: Settings) -> Installation:
    """Stop and remove the service. Raises NotFoundError if it is missing, or UnavailableError."""
    service = installation(settings)
    if not service.is_installed:
        raise NotFoundError(
            "the daemon is not installed", hint="nacre serve stop stops a running daemon"
        )
    _run(settings, service.remove, is_strict=False)
    stop(settings)
    service.path.unlink(missing_ok=True)
    if service.form == "systemd":
        _run(settings, (("systemctl", "--user", "daemon-reload"),), is_strict=False)
    return service


def start(settings: Settings) -> subprocess.Popen[bytes] | None:
    """Start the installed service or, without one, a process that outlives the terminal.

    Raises UnavailableError if the daemon does not start.
    """
    service = installation(settings)
    if service.is_installed:
        with suppress(UnavailableError):
            _require(settings, service)
            _run(settings, service.start)
            return None
    try:
        return start_process(settings.home, settings.environ, "serve")
    except OSError as error:
        raise UnavailableError(
            f"cannot start a process: {error.strerror}", hint="check for free memory"
        ) from error


def _systemd(settings: Settings, words: Sequence[str]) -> Installation:
    folder = Path(settings.environ.get("XDG_CONFIG_HOME") or settings.user_home / ".config")
    control = ("systemctl", "--user")
    return Installation(
        "systemd",
        folder / "systemd" / "user" / UNIT,
        lambda: systemd_unit(words, pinned(settings)),
        install=((*control, "daemon-reload"), (*control, "enable", "--now", UNIT)),
        start=((*control, "start", UNIT),),
        remove=((*control, "disable", "--now", UNIT),),
        home=_quote_for_systemd(f"NACRE_HOME={settings.home}"),
    )


def _launchd(settings: Settings, words: Sequence[str]) -> Installation:
    path = settings.user_home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    domain = f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"
    return Installation(
        "launchd",
        path,
        lambda: launchd_plist(words, pinned(settings)),
        install=(("launchctl", "bootstrap", domain, str(path)),),
        start=(("launchctl", "kickstart", f"{domain}/{LABEL}"),),
        remove=(("launchctl", "bootout", f"{domain}/{LABEL}"),),
        home=f"<string>{escape(str(settings.home))}</string>",
    )


def _task(settings: Settings, words: Sequence[str]) -> Installation:
    path = settings.home / "nacre-task.xml"
    quiet = [str(Path(words[0]).with_name("pythonw.exe")), *words[1:]]
    return Installation(
        "task",
        path,
        lambda: windows_task(quiet),
        install=(
            ("schtasks", "/Create", "/F", "/TN", TASK, "/XML", str(path)),
            ("schtasks", "/Run", "/TN", TASK),
        ),
        start=(("schtasks", "/Run", "/TN", TASK),),
        remove=(("schtasks", "/End", "/TN", TASK), ("schtasks", "/Delete", "/F", "/TN", TASK)),
        home="",  # the file is in the home
        encoding="utf-16",
    )


def stop(settings: Settings) -> None:
    """Stop the daemon. Raises UnavailableError if it does not stop."""
    if not ask_to_stop(settings.home):
        raise UnavailableError("the daemon did not stop", hint="kill the nacre serve process")


def _require(settings: Settings, service: Installation) -> None:
    name = service.install[0][0]
    if shutil.which(name, path=settings.environ.get("PATH")) is None:
        raise UnavailableError(f"{name} is not available here", hint=_UNINSTALLED_HINT)
    if (
        service.form == "systemd"
        and _code(settings, ("systemctl", "--user", "show-environment")).returncode
    ):
        raise UnavailableError("no systemd user session is available", hint=_UNINSTALLED_HINT)


def _run(settings: Settings, commands: Sequence[Command], *, is_strict: bool = True) -> None:
    for command in commands:
        result = _code(settings, command)
        if result.returncode and is_strict:
            output = " ".join((result.stderr or result.stdout).split())[:300]
            raise UnavailableError(
                f"{' '.join(command)} failed with {result.returncode}: {output}",
                hint=_UNINSTALLED_HINT,
            )


def _code(settings: Settings, command: Command) -> subprocess.CompletedProcess[str]:
    program_path = shutil.which(command[0], path=settings.environ.get("PATH")) or command[0]
    try:
        return subprocess.run(
            [program_path, *command[1:]],
            env=dict(settings.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(
            f"cannot run {command[0]}: {error}", hint=_UNINSTALLED_HINT
        ) from error
