"""Run the ``git`` program so that it never asks, never waits without end, and never meets another repository."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from nacre.errors import GitUnavailable, RepositoryBusy, RepositoryUnusable
from nacre.git.repository_settings import Entry, read_entries, set_back, unusable

TIMEOUT_SECONDS = 60.0
OLDEST = (2, 31)

_KEPT = (
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
_NULL = "/dev/null"
_UMASK = 0o077 if os.name == "posix" else -1
_SETTINGS = (
    f"core.hooksPath={_NULL}", "core.quotepath=off", "core.fsmonitor=false", "core.autocrlf=false",
    "core.safecrlf=false", "core.attributesFile=", "commit.gpgSign=false", "push.gpgSign=false", "gc.auto=0",
    "maintenance.auto=false", "color.ui=false", "log.showSignature=false",
)  # fmt: skip
"""Of every call. Hooks do not run: nacre commits in the background, where nobody would see what they say or wait."""

_SSH = "ssh -oBatchMode=yes -oConnectTimeout=15"
_TRANSPORTS = "file:ssh:https:http"
_LIST = ("config", "--list", "--includes", "--show-scope", "-z")


_VERSIONS: dict[tuple[str, object], tuple[int, ...]] = {}
"""Versions of git programs, by their path and the file's own marks: no home's, but the machine's."""


class GitFailed(RepositoryUnusable):
    """The git program said no; ``code`` is its exit code, ``said`` its words."""

    def __init__(self, message: str, *, exit_code: int, said: str) -> None:
        super().__init__(message, hint="nacre doctor looks at the repository; memories are safe without it")
        self.exit_code = exit_code
        self.said = said


class GitProgram:
    """``git`` on one repository, named outright: what lies around it is never found in its stead.

    ``environ`` is what the settings saw; of its ``GIT_…`` variables only those on ssh and configuration files pass, so
    that nacre may be called from a hook of another repository.
    """

    def __init__(self, work_tree: Path, environ: Mapping[str, str]) -> None:
        self.work_tree = work_tree
        self.environ = environ
        self._environ = _environment(environ)
        self._program = shutil.which("git", path=environ.get("PATH"))
        self._seen: tuple[object, list[Entry]] | None = None

    @property
    def git_dir(self) -> Path:
        """The repository's own folder, or the file that points to it."""
        return self.work_tree / ".git"

    def version(self) -> tuple[int, ...]:
        """The program's version. Raises GitUnavailable where there is none, or one that is too old."""
        path = self._path()
        seen = _stamp(Path(path))
        found = _VERSIONS.get((path, seen))
        if found is None:
            said = self._call([path, "--version"], None, 10).stdout.decode("utf-8", "replace")
            match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", said)
            found = tuple(int(part) for part in match.groups(default="0")) if match else (0,)
            _VERSIONS[path, seen] = found
        if found < OLDEST:
            raise GitUnavailable(
                f"git {'.'.join(map(str, found))} is too old",
                hint=f"nacre needs git {'.'.join(map(str, OLDEST))} or newer",
            )
        return found

    def setting(self, name: str) -> str:
        """What is configured, by its name in lower case but for its middle part; empty where nothing is.

        Raises RepositoryUnusable, GitUnavailable.
        """
        return next((entry.value for entry in reversed(self._entries()) if entry.name == name), "").strip()

    def configure(self, name: str, value: str) -> None:
        """Set what is not so yet in the repository's configuration."""
        if self.setting(name) != value:
            self.run("config", name, value)

    def own_file(self, name: str) -> Path:
        """A file of the repository itself, wherever that lies. Raises RepositoryUnusable, GitUnavailable."""
        if self.git_dir.is_dir():
            return self.git_dir / name
        return self.work_tree / os.fsdecode(self.run("rev-parse", "--git-path", name).strip())

    def run(self, *arguments: str, stdin: bytes | None = None, timeout: float = TIMEOUT_SECONDS) -> bytes:
        """Run a command of git and return what it wrote. Raises GitFailed, RepositoryBusy, GitUnavailable."""
        done = self.attempt(*arguments, stdin=stdin, timeout=timeout)
        if done.returncode:
            raise _failure(arguments[0], done.returncode, done.stderr.decode("utf-8", "replace").strip())
        return done.stdout

    def attempt(
        self, *arguments: str, stdin: bytes | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command of git whose exit code is an answer. Raises RepositoryUnusable, GitUnavailable."""
        options = [part for setting in _SETTINGS for part in ("-c", setting)]
        entries = self._entries()
        environ = _as_environ(set_back(entries))
        owners = {entry.name for entry in entries if not entry.is_of_repository}
        if not (self._environ.get("GIT_SSH") or self._environ.get("GIT_SSH_COMMAND") or "core.sshcommand" in owners):
            environ["GIT_SSH_COMMAND"] = _SSH
        return self._call([*self._here(), *options, *arguments], stdin, timeout, environ)

    def _here(self) -> list[str]:
        return [self._path(), f"--git-dir={self.git_dir}", f"--work-tree={self.work_tree}"]

    def _entries(self) -> list[Entry]:
        """What is configured. To list it runs nothing; a list is used again while the repository's files are as they
        were."""
        mark = _mark(self.git_dir)
        if self._seen and self._seen[0] == mark:
            return self._seen[1]
        done = self._call([*self._here(), *_LIST], None, TIMEOUT_SECONDS)
        if done.returncode:
            raise _failure("config", done.returncode, done.stderr.decode("utf-8", "replace").strip())
        entries = read_entries(os.fsdecode(done.stdout))
        if name := unusable(entries):
            raise RepositoryUnusable(
                f"{self.git_dir} says which program git is to start: {name}",
                hint=f"git -C {self.work_tree} config --unset-all {name}; what you want said belongs in git's"
                " global settings",
            )
        is_whole = mark is not None and not any(entry.name.startswith("include") for entry in entries)
        self._seen = (mark, entries) if is_whole else None
        return entries

    def _path(self) -> str:
        if self._program is None:
            raise GitUnavailable(
                "git is not installed", hint="install git to keep the vault's history; all else works without"
            )
        return self._program

    def _call(
        self, command: list[str], stdin: bytes | None, timeout: float, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, cwd=self.work_tree, start_new_session=True,
                umask=_UMASK, env={**self._environ, **(environ or {})},
            )  # fmt: skip
        except OSError as error:
            raise GitUnavailable(
                f"git cannot be run: {error.strerror}", hint="check that git works: git --version"
            ) from error
        with process:
            try:
                out, said = process.communicate(stdin, timeout)
            except subprocess.TimeoutExpired as error:
                _end(process)
                raise GitUnavailable(
                    f"git did not answer within {timeout:.0f} seconds", hint="try again; nothing was changed"
                ) from error
            except BaseException:
                _end(process)
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, said)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started: a transport that hangs would hold the pipes open."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_") or name in _KEPT}
    own = {
        "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "GCM_INTERACTIVE": "never",
        "GIT_PAGER": "cat", "GIT_EDITOR": "true",
        "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": _TRANSPORTS, "LC_ALL": "C",
        "LANGUAGE": "C",
    }  # fmt: skip
    return {**kept, **own}


def _as_environ(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Settings as git takes them whatever their names hold."""
    listed = list(settings)
    names = {f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(listed)}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(listed)}
    return {"GIT_CONFIG_COUNT": str(len(listed)), **names, **values}


def _mark(git_dir: Path) -> object:
    """What changes with the configuration of a repository; nothing where that lies elsewhere."""
    try:
        return _stamp(git_dir / "config"), _stamp(git_dir / "config.worktree")
    except OSError:
        return None


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes with a file; nothing where there is none."""
    try:
        seen = path.stat()
    except FileNotFoundError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _failure(command: str, code: int, said: str) -> RepositoryUnusable | RepositoryBusy:
    line = next(
        (line for line in said.splitlines() if line.startswith(("fatal:", "error:"))),
        said.splitlines()[0] if said else "",
    )
    if ".lock" in said and ("File exists" in said or "Unable to create" in said):
        path = re.search(r"'([^']+\.lock)'", said)
        return RepositoryBusy(
            f"another git holds {path.group(1) if path else 'a lock'}",
            hint=f"wait for it; if none runs, a crash left the file: rm {path.group(1)}" if path else "try again",
        )
    return GitFailed(
        f"git {command}: {line.partition(': ')[2] or line or f'exit code {code}'}", exit_code=code, said=said
    )
