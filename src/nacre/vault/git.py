"""The git program and the vault's repository.

A repository's configuration is not trusted, because a vault from elsewhere could configure filters,
transports, signers or helpers that run programs. A setting is used only if it is known not to name
a program. Other settings are reset to the user's global configuration. Filters never run, not even
the user's, so that files in git and in the vault are equal.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.base.ids import at_ms
from nacre.base.text import to_bytes, to_text
from nacre.errors import GitUnavailableError, RepositoryBusyError, UnusableRepositoryError

_SAFE_SECTIONS = frozenset(
    {
        "advice",
        "branch",
        "color",
        "extensions",
        "include",
        "includeif",
        "init",
        "log",
        "pull",
        "rebase",
        "status",
        "url",
    }
)
"""Sections without settings that name a program. Git lists settings from included files separately."""

_SAFE_NAMES = (
    "core.repositoryformatversion",
    "merge.conflictstyle",
    "push.default",
    "remote.*.fetch",
    "remote.*.pushurl",
    "remote.*.tagopt",
    "remote.*.url",
    "user.email",
    "user.name",
)
_DRIVERS = ("filter.*", "diff.*.*", "merge.*.*")
_SAFE_VALUE = re.compile(r"true|false|yes|no|on|off|-?[0-9]+[kmg]?", re.IGNORECASE)
"""Matches booleans and numbers, which cannot name a program."""

_REMOTE_URL = re.compile(r"remote\.(.+)\.url")
_FIRST_VALUE_WINS = re.compile(r"remote\..+\.(?:uploadpack|receivepack|vcs)")
"""Settings that name a program and that later values cannot reset, because the first value counts."""


@frozen
class Entry:
    """A setting listed by git, with its scope: ``system``, ``global``, ``local``, ``worktree`` …"""

    scope: str
    name: str
    value: str

    @property
    def is_of_repository(self) -> bool:
        """Whether the repository's own configuration contains the setting."""
        return self.scope in {"local", "worktree"}


def iter_overrides(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Yield names and values that override the repository's unsafe settings.

    They must follow all other settings. An empty value first clears a list, such as credential
    helpers.
    """
    all_entries = list(entries)
    for name in dict.fromkeys(entry.name for entry in all_entries if not _is_safe(entry)):
        owners = [
            entry.value
            for entry in all_entries
            if entry.name == name and not entry.is_of_repository
        ]
        yield name, ""
        if not _is_driver(name):
            yield from ((name, value) for value in owners)


def _is_safe(entry: Entry) -> bool:
    if _is_driver(entry.name):
        return False
    is_known = entry.name.partition(".")[0] in _SAFE_SECTIONS or any(
        fnmatchcase(entry.name, safe_name) for safe_name in _SAFE_NAMES
    )
    return not entry.is_of_repository or is_known or _SAFE_VALUE.fullmatch(entry.value) is not None


def _is_driver(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _DRIVERS)


# -- Running git --------------------------------------------------------------
# Git never asks for input and never uses another repository. Each call has a time limit.


TIMEOUT_SECONDS = 60.0
OLDEST = (2, 31)

_PASSED_VARIABLES = (
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
    f"core.hooksPath={_NULL}",
    "core.quotepath=off",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.attributesFile=",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "color.ui=false",
    "log.showSignature=false",
)
"""Settings for every call. Hooks do not run, because nobody would see their output in the background."""

_SSH_COMMAND = "ssh -oBatchMode=yes -oConnectTimeout=15"
_TRANSPORTS = "file:ssh:https:http"
_LIST_SETTINGS = ("config", "--list", "--includes", "--show-scope", "-z")


_VERSIONS: dict[tuple[str, object], tuple[int, ...]] = {}
"""Versions of git programs, keyed by the program's path and file status."""


class GitFailedError(UnusableRepositoryError):
    """An error reported by git, with its exit code and output."""

    def __init__(self, message: str, *, exit_code: int, output: str) -> None:
        super().__init__(
            message,
            hint="run nacre admin doctor to check the repository; no memory is lost if git fails",
        )
        self.exit_code = exit_code
        self.output = output


class GitProgram:
    """The ``git`` program, run in one repository and never in an enclosing one.

    Only the ``GIT_…`` variables for ssh and configuration files are passed on, because others might
    come from another repository's hook.
    """

    def __init__(self, work_tree: Path, environ: Mapping[str, str]) -> None:
        self.work_tree = work_tree
        self.environ = environ
        self._environ = _environment(environ)
        self._program = shutil.which("git", path=environ.get("PATH"))
        self._settings: tuple[object, list[Entry]] | None = None

    @property
    def git_dir(self) -> Path:
        """The path ``.git``, which is a folder, or a file that refers to one."""
        return self.work_tree / ".git"

    def version(self) -> tuple[int, ...]:
        """Return the version of git. Raises GitUnavailableError if git is missing or too old."""
        path = self._path()
        file_mark = _stamp(Path(path))
        version = _VERSIONS.get((path, file_mark))
        if version is None:
            output = to_text(self._call([path, "--version"], None, 10).stdout)
            match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", output)
            version = tuple(int(part) for part in match.groups(default="0")) if match else (0,)
            _VERSIONS[path, file_mark] = version
        if version < OLDEST:
            raise GitUnavailableError(
                f"git {'.'.join(map(str, version))} is too old",
                hint=f"nacre needs git {'.'.join(map(str, OLDEST))} or newer",
            )
        return version

    def setting(self, name: str) -> str:
        """Return a git setting, or "". ``name`` must have its section and key in lower case.

        Raises UnusableRepositoryError, GitUnavailableError.
        """
        return next(
            (entry.value for entry in reversed(self._entries()) if entry.name == name), ""
        ).strip()

    def remote_urls(self) -> dict[str, str]:
        """Return the URL of each remote. Raises UnusableRepositoryError, GitUnavailableError."""
        matches = ((_REMOTE_URL.fullmatch(entry.name), entry.value) for entry in self._entries())
        return {match[1]: url for match, url in matches if match}

    def configure(self, name: str, value: str) -> None:
        """Change a value in the repository's configuration if it differs."""
        if self.setting(name) != value:
            self.run("config", name, value)

    def own_file(self, name: str) -> Path:
        """Return the path of one of the repository's git files. Raises UnusableRepositoryError."""
        if self.git_dir.is_dir():
            return self.git_dir / name
        return self.work_tree / os.fsdecode(self.run("rev-parse", "--git-path", name).strip())

    def run(
        self, *arguments: str, stdin: bytes | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> bytes:
        """Run a git command and return its output.

        Raises GitFailedError, GitUnavailableError, or RepositoryBusyError if another process holds
        a lock.
        """
        done = self.attempt(*arguments, stdin=stdin, timeout=timeout)
        if done.returncode:
            raise _failure(arguments[0], done.returncode, to_text(done.stderr).strip())
        return done.stdout

    def attempt(
        self, *arguments: str, stdin: bytes | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a git command that may fail.

        Raises UnusableRepositoryError, or GitUnavailableError if git is missing or times out.
        """
        options = [part for setting in _SETTINGS for part in ("-c", setting)]
        entries = self._entries()
        listed = list(iter_overrides(entries))
        names = {f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(listed)}
        values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(listed)}
        environ = {"GIT_CONFIG_COUNT": str(len(listed)), **names, **values}
        owners = {entry.name for entry in entries if not entry.is_of_repository}
        if not (
            self._environ.get("GIT_SSH")
            or self._environ.get("GIT_SSH_COMMAND")
            or "core.sshcommand" in owners
        ):
            environ["GIT_SSH_COMMAND"] = _SSH_COMMAND
        return self._call(
            [*self._repository_arguments(), *options, *arguments], stdin, timeout, environ
        )

    def _repository_arguments(self) -> list[str]:
        return [self._path(), f"--git-dir={self.git_dir}", f"--work-tree={self.work_tree}"]

    def _entries(self) -> list[Entry]:
        # Listing the settings runs no configured program.
        mark = tuple(_stamp(self.git_dir / name) for name in ("config", "config.worktree"))
        if self._settings and self._settings[0] == mark:
            return self._settings[1]
        done = self._call([*self._repository_arguments(), *_LIST_SETTINGS], None, TIMEOUT_SECONDS)
        if done.returncode:
            raise _failure("config", done.returncode, to_text(done.stderr).strip())
        parts = os.fsdecode(done.stdout).split("\0")[:-1]
        pairs = (text.partition("\n") for text in parts[1::2])
        entries = [
            Entry(scope, name, value if has_value else "true")
            for scope, (name, has_value, value) in zip(parts[::2], pairs, strict=True)
        ]
        own_names = (entry.name for entry in entries if entry.is_of_repository)
        if name := next(filter(_FIRST_VALUE_WINS.fullmatch, own_names), ""):
            raise UnusableRepositoryError(
                f"the config of {self.git_dir} makes git run a program: {name}",
                hint=f"git -C {self.work_tree} config --unset-all {name}; set it in git's global configuration",
            )
        is_complete = mark[0] and not any(entry.name.startswith("include") for entry in entries)
        self._settings = (mark, entries) if is_complete else None
        return entries

    def _path(self) -> str:
        if self._program is None:
            raise GitUnavailableError(
                "git is not installed",
                hint="install git to keep the vault's history; everything else works without it",
            )
        return self._program

    def _call(
        self,
        command: list[str],
        stdin: bytes | None,
        timeout: float,
        environ: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.work_tree,
                start_new_session=True,
                umask=_UMASK,
                env={**self._environ, **(environ or {})},
            )
        except OSError as error:
            raise GitUnavailableError(
                f"git cannot be run: {error.strerror}", hint="check that git works: git --version"
            ) from error
        with process:
            try:
                out, stderr = process.communicate(stdin, timeout)
            except subprocess.TimeoutExpired as error:
                _end(process)
                raise GitUnavailableError(
                    f"git did not answer within {timeout:.0f} seconds",
                    hint="try again; nothing was changed",
                ) from error
            except BaseException:
                _end(process)
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, stderr)


def _end(process: subprocess.Popen[bytes]) -> None:
    # Child processes are killed, too, because a hanging transport would keep the pipes open.
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    inherited = {
        name: value
        for name, value in environ.items()
        if not name.startswith("GIT_") or name in _PASSED_VARIABLES
    }
    own = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GCM_INTERACTIVE": "never",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": _TRANSPORTS,
        "LC_ALL": "C",
        "LANGUAGE": "C",
    }
    return {**inherited, **own}


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _failure(command: str, code: int, output: str) -> UnusableRepositoryError | RepositoryBusyError:
    line = next(
        (line for line in output.splitlines() if line.startswith(("fatal:", "error:"))),
        output.splitlines()[0] if output else "",
    )
    if ".lock" in output and ("File exists" in output or "Unable to create" in output):
        path = re.search(r"'([^']+\.lock)'", output)
        return RepositoryBusyError(
            f"another git process holds {path.group(1) if path else 'a lock'}",
            hint=f"wait for it. If no git runs, delete the leftover file: rm {path.group(1)}"
            if path
            else "try again",
        )
    return GitFailedError(
        f"git {command}: {line.partition(': ')[2] or line or f'exit code {code}'}",
        exit_code=code,
        output=output,
    )


# -- Repository: history, versions, commits and index -------------------------


MAIN = "main"
NEXT = "refs/nacre/next"
"""Ref that holds new commits until the branch is moved."""

_IN_PROGRESS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
_TRUE_VALUES = frozenset({"true", "yes", "on", "1"})
_ON_BRANCH = re.compile(rb"ref: (refs/heads/(?!\.invalid)[\x21-\x7e]+)\n")
"""Matches HEAD if refs are stored as files. With reftables, HEAD contains ".invalid"."""

_ID = re.compile(rb"([0-9a-f]{40,64})\n")
_RECENT_COMMITS = 5
_CACHED_TREES = 2
"""Number of commits whose file lists are cached."""

Entries = Mapping[str, tuple[str, str]]
"""The mode and blob id of each file, by path."""

_RECORD, _FIELD = "\x1e", "\x1f"
_FORMAT = f"--format={_RECORD}%H{_FIELD}%P{_FIELD}%at{_FIELD}%B{_FIELD}"


@frozen
class Head:
    """The branch and commit to which HEAD points.

    ``branch`` is ``None`` if HEAD is detached, and ``commit`` before the first commit.
    """

    branch: str | None
    commit: str | None


@frozen
class NewCommit:
    """A commit to create.

    ``changes`` maps paths to new contents, or to ``None`` for deleted files. ``merged`` lists the
    parents other than the first.
    """

    message: str
    at: datetime
    changes: Mapping[str, bytes | None]
    merged: tuple[str, ...] = ()


@frozen
class PastCommit:
    """A commit, with the paths that differ from its first parent."""

    id: str
    parent: str | None
    at: datetime
    message: str
    paths: tuple[str, ...]
    is_merge: bool


class Repository:
    """The git repository in a vault's folder."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self.root = root
        self.git = GitProgram(root, environ)
        self._tree = lru_cache(_CACHED_TREES)(self._read_tree)
        self._descents: set[tuple[str, str]] = set()

    @property
    def exists(self) -> bool:
        """Whether the folder is the top folder of a repository."""
        return os.path.lexists(self.git.git_dir)

    @property
    def is_whole(self) -> bool:
        """Whether the repository was completely created."""
        folder = self.git.git_dir
        return not folder.is_dir() or all(
            (folder / name).exists() for name in ("HEAD", "objects", "refs", "config")
        )

    def create(self) -> None:
        """Create the repository with a branch ``main``. Raises GitUnavailableError."""
        self.git.version()
        self.git.run("init", "--quiet", "--template=", f"--initial-branch={MAIN}", str(self.root))
        self.git.git_dir.chmod(0o700)

    def check(self) -> None:
        """Raise UnusableRepositoryError if nacre cannot commit to the repository."""
        folder = self.git.git_dir
        if folder.is_symlink():
            raise UnusableRepositoryError(
                f"{folder} is a symbolic link", hint="move the repository itself into the vault"
            )
        if hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid():
            raise UnusableRepositoryError(
                f"{folder} belongs to another user",
                hint=f"run nacre as that user, or: chown -R $(whoami) {folder}",
            )
        try:
            self.git.run("rev-parse", "--git-dir")
            is_bare = self.git.setting("core.bare").lower() in _TRUE_VALUES
        except GitFailedError as error:
            raise UnusableRepositoryError(
                f"{folder} is broken: {error.output.splitlines()[0] if error.output else error.message}",
                hint=f"repair it (git -C {self.root} fsck), or move {folder} away, so that a new one is created",
            ) from error
        if is_bare:
            raise UnusableRepositoryError(
                f"{folder} is a bare repository",
                hint=f"if it belongs to the vault, run git -C {self.root} config core.bare false",
            )

    def in_progress(self) -> str | None:
        """Return the name of an unfinished operation, such as a merge or rebase, or ``None``."""
        folder = self.git.own_file("HEAD").parent
        return next((name for file, name in _IN_PROGRESS.items() if (folder / file).exists()), None)

    def head(self) -> Head:
        branch = self._branch()
        return Head(branch.removeprefix("refs/heads/") or None, self.commit_at(branch or "HEAD"))

    def commit_at(self, reference: str) -> str | None:
        """Return the id of the commit that a full reference name denotes, or ``None``."""
        folder = self.git.git_dir
        own, packed = folder / reference, folder / "packed-refs"
        match = None
        with suppress(OSError):
            if own.is_file():
                match = _ID.fullmatch(own.read_bytes())
            elif packed.is_file():
                match = re.search(
                    rb"^([0-9a-f]+) %b$" % re.escape(os.fsencode(reference)),
                    packed.read_bytes(),
                    re.M,
                )
            elif (folder / "refs/heads").is_dir():  # refs are stored as files
                return None
        if match:
            return match[1].decode()
        output = self.git.attempt(
            "rev-parse", "--quiet", "--verify", f"{reference}^{{commit}}"
        ).stdout
        return output.decode().strip() or None

    def _branch(self) -> str:
        try:
            content = (self.git.git_dir / "HEAD").read_bytes()
        except OSError:
            content = b""
        if match := _ON_BRANCH.fullmatch(content):
            return os.fsdecode(match[1])
        return os.fsdecode(self.git.attempt("symbolic-ref", "--quiet", "HEAD").stdout).strip()

    def author(self) -> str:
        """Return the commit author as ``name <address>``. The default is nacre."""
        values = [
            re.sub("[<>\n\0]", "", self.git.setting(name)).strip()
            for name in ("user.name", "user.email")
        ]
        return "{} <{}>".format(*values) if all(values) else "nacre <nacre@localhost>"

    def tree(self, commit: str | None) -> Entries:
        """Return the files in a commit, or ``{}`` for ``None``."""
        return self._tree(commit) if commit else {}

    def _read_tree(self, commit: str) -> Entries:
        entries = _split_records(self.git.run("ls-tree", "-r", "-z", "--full-tree", commit))
        return {path: (mode, blob) for path, (mode, _, blob) in entries}

    def blob_id(self, data: bytes, like: str | None = None) -> str:
        """Return git's id for a file's content, with the hash function of the id ``like``."""
        algorithm = hashlib.sha256 if like and len(like) == 64 else hashlib.sha1
        return algorithm(b"blob %d\0%b" % (len(data), data)).hexdigest()

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return blob contents by name (``<commit>:<path>`` or id). Missing blobs are left out."""
        plain = [name for name in dict.fromkeys(names) if "\n" not in name]
        if not plain:
            return {}
        out = self.git.run(
            "cat-file", "--batch", stdin=b"".join(os.fsencode(name) + b"\n" for name in plain)
        )
        blobs, at = {}, 0
        for name in plain:
            end = out.index(b"\n", at)
            facts = out[at:end].rsplit(b" ", 2)
            at = end + 1
            if facts[-1] in (b"missing", b"ambiguous"):
                continue
            size = int(facts[-1])
            if facts[-2] == b"blob":
                blobs[name] = out[at : at + size]
            at += size + 1
        return blobs

    def history(self, since: str | None = None, until: str = "HEAD") -> Iterator[PastCommit]:
        """Yield the commits after ``since``, parents before their children."""
        span = f"{since}..{until}" if since else until
        out = self.git.run(
            "log",
            "--reverse",
            "--topo-order",
            "--diff-merges=first-parent",
            "--name-only",
            "-z",
            "--no-renames",
            "--root",
            _FORMAT,
            span,
        )
        for record in os.fsdecode(out).split(_RECORD)[1:]:
            commit, parents, at, message, paths = record.split(_FIELD, 4)
            changed = tuple(path for path in paths.replace("\n", "", 1).split("\0") if path)
            above = parents.split()
            first = above[0] if above else None
            yield PastCommit(
                commit, first, at_ms(1000 * int(at)), message.strip(), changed, len(above) > 1
            )

    def list_ignored(self, paths: Sequence[str]) -> set[str]:
        if not paths:
            return set()
        out = self.git.attempt(
            "check-ignore",
            "--no-index",
            "-z",
            "--stdin",
            stdin=b"".join(os.fsencode(path) + b"\0" for path in paths),
        ).stdout
        return set(_parts(out))

    def last_change(self, paths: Sequence[str]) -> str | None:
        """Return the id of the latest commit that changed one of the paths, or ``None``."""
        out = self.git.run(
            "log", "-1", "--format=%H", "HEAD", "--", *(f":(literal){path}" for path in paths[:50])
        )
        return out.decode().strip() or None

    def changed_by_merge(self, commit: str) -> list[str]:
        """Return the paths of files in which a merge commit differs from all its parents."""
        return _parts(
            self.git.run("diff-tree", "-c", "-r", "-z", "--name-only", "--no-commit-id", commit)
        )

    def is_ancestor(self, commit: str | None, of: str | None) -> bool:
        """Return True if ``commit`` is ``None``, equal to ``of`` or its ancestor."""
        if commit is None or commit == of or (commit, of) in self._descents:
            return True
        if of is None or (of, commit) in self._descents:
            return False
        is_below = not self.git.attempt("merge-base", "--is-ancestor", commit, of).returncode
        self._descents |= {(commit, of)} if is_below else set()
        return is_below

    def merge_base(self, commit: str, other: str) -> str | None:
        """Return a best common ancestor of two commits, or ``None``."""
        return self.git.attempt("merge-base", commit, other).stdout.decode().strip() or None

    def new_blobs(self, commit: str, known_commit: str | None) -> dict[str, str]:
        """Return ids and paths of blobs in the history of ``commit`` but not ``known_commit``."""
        excluded = [f"^{known_commit}"] if known_commit else []
        out = self.git.run("rev-list", "--objects", commit, *excluded)
        paths = {}
        for line in out.split(b"\n"):
            blob, _, path = line.partition(b" ")
            if path:
                paths[blob.decode()] = os.fsdecode(path)
        return paths

    def add_commits(self, commits: Sequence[NewCommit], parent: str | None) -> list[str]:
        """Create a chain of commits after ``parent``, and return their ids. No branch moves."""
        stream = b"".join(_import_commands(commits, parent, self.author(), self.tree(parent)))
        output = self.git.run(
            "fast-import",
            "--quiet",
            "--force",
            "--done",
            "--date-format=raw",
            stdin=stream,
            timeout=600,
        )
        new_commits = output.decode().split()
        self._descents |= {(parent, commit) for commit in new_commits if parent}
        return new_commits

    def move_head(self, new: str, old: str | None, reason: str) -> bool:
        """Move HEAD's branch from ``old`` to ``new``. Return False if it is not at ``old``."""
        zero = "0" * len(new)
        return (
            self.git.attempt("update-ref", "-m", reason, "HEAD", new, old or zero).returncode == 0
        )

    def list_staged(self) -> Entries:
        """Return the files in git's index that have no merge conflict."""
        entries = _split_records(self.git.run("ls-files", "--stage", "-z"))
        return {path: (mode, blob) for path, (mode, blob, stage) in entries if stage == "0"}

    def update_index(self, old: str | None, new: str) -> None:
        """Update git's index to the commit ``new``, without losing changes that the user staged.

        Raises RepositoryBusyError.
        """
        after, staged = self.tree(new), self.list_staged()
        differing = {
            path for path in after.keys() | staged.keys() if after.get(path) != staged.get(path)
        }
        stale: set[str] = set()
        for commit in self._recent_heads(old) if differing else ():
            before = self.tree(commit)
            stale |= {path for path in differing if staged.get(path) == before.get(path)}
            if stale == differing:
                break
        zero = ("0", "0" * len(new))
        lines = []
        for path in sorted(stale):
            mode, blob = after.get(path, zero)
            lines.append(b"%s %s\t%s\0" % (mode.encode(), blob.encode(), os.fsencode(path)))
        if lines:
            self.git.run("update-index", "-z", "--index-info", stdin=b"".join(lines))
        self.git.attempt("update-index", "-q", "--refresh")

    def _recent_heads(self, old: str | None) -> Iterator[str | None]:
        # The index can match any of these, because some git clients do not update it.
        yield old
        yield from (
            self.git.attempt("rev-list", "--walk-reflogs", "-n", "20", "HEAD")
            .stdout.decode()
            .split()
        )

    def list_changed(self) -> list[tuple[str, str]]:
        """Return the two-letter status and the path of each file that differs from HEAD."""
        out = self.git.run(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"
        )
        return [(line[:2], line[3:]) for line in _parts(out)]

    def damage(self) -> list[str]:
        """Return git's messages about missing or corrupt objects. Raises GitUnavailableError."""
        done = self.git.attempt("fsck", "--no-dangling", "--no-progress", timeout=300)
        messages = to_text(done.stdout + done.stderr).splitlines()
        return (
            [line for line in messages if line.strip()] or ["fsck failed"]
            if done.returncode
            else []
        )

    def recent_damage(self) -> str:
        """Return git's error message if the latest commits are unreadable, or "".

        Raises GitUnavailableError.
        """
        done = self.git.attempt(
            "log",
            "-p",
            "--no-ext-diff",
            "--no-textconv",
            f"--max-count={_RECENT_COMMITS}",
            f"--output={_NULL}",
            "HEAD",
        )
        has_refs = any(path.is_file() for path in (self.git.git_dir / "refs").rglob("*"))
        if not done.returncode or not has_refs:  # without refs, there is no commit yet
            return ""
        return next(iter(to_text(done.stderr).splitlines()), "git cannot read it")

    def tidy(self) -> None:
        """Pack loose objects if there are many. This is slow and belongs in the background."""
        self.git.attempt(
            "-c",
            "gc.auto=6700",
            "-c",
            "gc.autoDetach=false",
            "gc",
            "--auto",
            "--quiet",
            timeout=300,
        )


def _parts(out: bytes) -> list[str]:
    return [part for part in os.fsdecode(out).split("\0") if part]


def _split_records(out: bytes) -> Iterator[tuple[str, list[str]]]:
    for line in _parts(out):
        facts, _, path = line.partition("\t")
        yield path, facts.split(" ")


def _import_commands(
    commits: Iterable[NewCommit], parent: str | None, author: str, present: Entries
) -> Iterator[bytes]:
    author_line = author.encode()
    yield f"reset {NEXT}\n".encode() + (f"from {parent}\n\n".encode() if parent else b"\n")
    for number, commit in enumerate(commits, 1):
        stamp = b"%d +0000" % int(commit.at.timestamp())
        message = to_bytes(commit.message)
        yield b"commit %s\nmark :%d\nauthor %s %s\ncommitter %s %s\ndata %d\n%s\n" % (
            NEXT.encode(),
            number,
            author_line,
            stamp,
            author_line,
            stamp,
            len(message),
            message,
        )
        yield b"".join(b"merge %s\n" % parent.encode() for parent in commit.merged)
        for path, data in commit.changes.items():
            if data is None:
                yield b"D %s\n" % _quote_path(path)
            else:
                mode = present.get(path, ("100644",))[0]
                yield b"M %s inline %s\ndata %d\n%s\n" % (
                    mode.encode(),
                    _quote_path(path),
                    len(data),
                    data,
                )
        yield b"\nget-mark :%d\n" % number
    yield b"done\n"


def _quote_path(path: str) -> bytes:
    escaped = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
