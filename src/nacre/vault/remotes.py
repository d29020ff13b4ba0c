"""The vault's git remotes, and functions that change past commits."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.base.text import to_text
from nacre.errors import (
    GitUnavailableError,
    InvalidInputError,
    NacreError,
    RemoteMovedError,
    RemoteRefusedError,
    RemoteUnreachableError,
    UnusableRepositoryError,
)
from nacre.vault.git import GitFailedError, Repository

FETCHED = "refs/nacre/fetched"
SYNCED = "refs/nacre/synced"
"""Prefix of a ref to the last commit known to exist both here and on the remote."""

_URL = re.compile(r"(file|ssh|https|http)://\S+|[\w.-]+@?[\w.-]*:(?!//)\S+")
_PASSWORD = re.compile(r"^[a-z]+://[^/@]*:[^/@]*@|^https?://[^/@:]{20,}@")
_REFUSALS: tuple[tuple[str, type[NacreError], str, str], ...] = (
    (
        r"could not resolve host|couldn't resolve host|network is unreachable|connection (refused|timed out|reset)"
        r"|no route to host|failed to connect|operation timed out|could not connect",
        RemoteUnreachableError,
        "the remote cannot be reached",
        "nothing is lost; sync again when the network is back",
    ),
    (
        r"host key verification failed",
        RemoteRefusedError,
        "ssh does not know the remote's host key",
        "connect once and accept it: ssh <host>",
    ),
    (
        r"authentication failed|could not read (username|password)|terminal prompts disabled|permission denied \("
        r"|returned error: 40[13]|access denied|invalid credentials",
        RemoteRefusedError,
        "the remote does not accept the credentials",
        "check your ssh key (ssh -T <host>) or git's credential helper",
    ),
    (
        r"does not appear to be a git repository|repository .*not found|returned error: 404|does not exist"
        r"|no such file or directory|not a git repository",
        RemoteRefusedError,
        "there is no repository at the remote",
        "create it (git init --bare), or choose another: nacre sync --remote URL",
    ),
    (
        r"no space left on device|disk quota exceeded|out of disk space",
        RemoteUnreachableError,
        "the disk is full",
        "free some space here or at the remote, then sync again; nothing was lost",
    ),
    (
        r"transport '.*' not allowed",
        RemoteRefusedError,
        "nacre does not support this kind of address",
        "give an ssh or https address, or a path: nacre sync --remote URL",
    ),
)
_PUSH_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (
        r"hook declined",
        "a hook of the remote declined",
        "its message is above; ask whoever manages the remote",
    ),
    (
        r"branch is currently checked out",
        "the remote has its branch checked out",
        "use a bare repository: git init --bare",
    ),
    (
        r"read-only|insufficient permission|unable to create temporary|permission denied|unpacker error"
        r"|deny updating|protected branch|not allowed",
        "you do not have permission to write to the remote",
        "check your permissions, and that its disk is writable",
    ),
)


@frozen
class Remote:
    """A git remote. Calls end within ``timeout`` seconds and never ask for input."""

    repository: Repository
    name: str
    timeout: float

    def url(self) -> str | None:
        """Return the remote's URL, or ``None`` if the remote does not exist."""
        return self.repository.git.setting(f"remote.{self.name}.url") or None

    def set_url(self, url: str) -> None:
        """Create the remote or change its URL."""
        git = self.repository.git
        if self.last_synced():
            git.attempt("update-ref", "-d", f"{SYNCED}/{self.name}")
        git.configure(f"remote.{self.name}.url", url)
        git.configure(f"remote.{self.name}.fetch", f"+refs/heads/*:refs/remotes/{self.name}/*")

    def branch(self, local: str) -> str:
        """Return the remote branch that matches a local branch.

        This is the configured branch, else one with the same name, else the default branch. Raises
        RemoteUnreachableError, or RemoteRefusedError if there are only other branches.
        """
        if merge := self.tracked_branch(local):
            return merge
        listing = self._call("ls-remote", "--symref", "--heads", self.name, "HEAD", "refs/heads/*")
        heads = re.findall(r"\trefs/heads/(\S+)$", listing, re.MULTILINE)
        own = re.search(r"^ref: refs/heads/(\S+)\tHEAD$", listing, re.MULTILINE)
        candidates = [local, own.group(1) if own else "", *(heads if len(heads) == 1 else ())]
        branch = next((name for name in candidates if name in heads), None)
        if branch is None and heads:
            raise RemoteRefusedError(
                f"the remote has several branches, but no {local!r}: {', '.join(sorted(heads)[:5])}",
                hint=f"choose one: git -C {self.repository.root} branch --set-upstream-to={self.name}/<branch>",
            )
        return branch or local

    def tracked_branch(self, local: str) -> str:
        """Return the remote branch that a local branch is configured to track, or ""."""
        git = self.repository.git
        merge = (
            git.setting(f"branch.{local}.merge")
            if git.setting(f"branch.{local}.remote") == self.name
            else ""
        )
        return merge.removeprefix("refs/heads/") if merge.startswith("refs/heads/") else ""

    def follow(self, local: str, branch: str) -> None:
        """Configure a local branch to track a remote branch, as other git clients expect."""
        git = self.repository.git
        git.configure(f"branch.{local}.remote", self.name)
        git.configure(f"branch.{local}.merge", f"refs/heads/{branch}")

    def fetch(self, branch: str) -> str | None:
        """Fetch a branch, and return its commit, or ``None`` if the branch does not exist."""
        try:
            self._call(
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--refmap=",
                "--no-recurse-submodules",
                self.name,
                f"+refs/heads/{branch}:{FETCHED}",
            )
        except GitFailedError as error:
            if "couldn't find remote ref" in error.output:
                return None
            raise
        return self.repository.commit_at(FETCHED)

    def push(self, commit: str, branch: str) -> None:
        """Push a commit to a branch, but never overwrite other commits.

        Raises RemoteMovedError if the remote branch has changed.
        """
        try:
            self._call(
                "push", "--porcelain", "--no-verify", self.name, f"{commit}:refs/heads/{branch}"
            )
        except GitFailedError as error:
            raise _push_refusal(error) from error
        self.remember(commit, branch)

    def remember(self, commit: str, branch: str) -> None:
        """Record that this commit is now both here and on the remote."""
        names = (f"{SYNCED}/{self.name}", f"refs/remotes/{self.name}/{branch}")
        moved = [
            f"update {name} {commit}\n"
            for name in names
            if self.repository.commit_at(name) != commit
        ]
        if moved:
            self.repository.git.run("update-ref", "--stdin", stdin="".join(moved).encode())

    def last_synced(self) -> str | None:
        """Return the last commit that was both here and on the remote, or ``None``."""
        return self.repository.commit_at(f"{SYNCED}/{self.name}")

    def _call(self, *arguments: str) -> str:
        options = [
            "-c",
            "http.lowSpeedLimit=1",
            "-c",
            f"http.lowSpeedTime={max(5, int(self.timeout))}",
        ]
        try:
            done = self.repository.git.run(*options, *arguments, timeout=self.timeout)
        except GitFailedError as error:
            raise _meaning(error) from error
        except GitUnavailableError as error:
            raise RemoteUnreachableError(
                f"the remote did not answer within {self.timeout:.0f} seconds",
                hint="nothing is lost; sync again later, or with a longer --timeout",
            ) from error
        return to_text(done)


def check_url(text: str, folder: Path) -> str:
    """Return a valid remote URL or absolute path. Raises InvalidInputError."""
    if _PASSWORD.match(text):
        raise InvalidInputError(
            "the address contains a password",
            hint="use an ssh key or git's credential helper instead",
        )
    if _URL.fullmatch(text):
        return text
    if "::" in text or "://" in text or text.startswith("-"):
        raise InvalidInputError(
            f"{text!r} is not an ssh or https address",
            hint="give an ssh or https address, or a path",
        )
    path = Path(os.path.expanduser(text))
    path = Path(os.path.normpath(folder / path))
    if not path.is_dir():
        raise InvalidInputError(
            f"{text!r} is neither a remote of the vault, an address, nor a folder",
            hint=f"create a repository: git init --bare {path}",
        )
    return str(path)


def _meaning(error: GitFailedError) -> NacreError:
    output = error.output
    if (
        "couldn't find remote ref" in output
        or "[rejected]" in output
        or "[remote rejected]" in output
    ):
        return error
    for pattern, kind, message, hint in _REFUSALS:
        if re.search(pattern, output, re.IGNORECASE):
            return kind(f"{message} ({_line(output)})", hint=hint)
    return error


def _push_refusal(error: GitFailedError) -> NacreError:
    output = error.output
    if re.search(
        r"\(fetch first\)|\(non-fast-forward\)|\(stale info\)|cannot lock ref|failed to update ref",
        output,
    ):
        return RemoteMovedError("the remote has changed in the meantime")
    remote = " ".join(
        line.removeprefix("remote:").strip()
        for line in output.splitlines()
        if line.startswith("remote:")
    )
    for pattern, message, hint in _PUSH_REFUSALS:
        if re.search(pattern, output, re.IGNORECASE):
            return RemoteRefusedError(f"{message}{f': {remote}' if remote else ''}", hint=hint)
    return RemoteRefusedError(
        f"the remote refused: {remote or _line(output)}", hint="nothing is lost; see git's message"
    )


def _line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    best = next(
        (line for line in lines if line.startswith(("fatal:", "error:", "ssh:", "remote:"))), ""
    )
    return (best or (lines[0] if lines else "no message")).strip()[:200]


# -- Changing past commits -------------------------------------------------------------------------
# The history is exported, filtered and imported into a new repository. After a check, it replaces
# the old one.


SECONDS = 3600.0
_FOLDER_PREFIX = ".rewrite-"
_DATA = re.compile(rb"^data (\d+)$")

_MARK = re.compile(rb"^mark :(\d+)$")
_FILE = re.compile(rb"^M (\d+) :(\d+) (.*)$")

Clean = Callable[[bytes], bytes]
Rename = Callable[[str, bytes], str]


def rewrite_history(
    repository: Repository, clean: Clean, rename: Rename, *, dry_run: bool = False
) -> int:
    """Apply ``clean`` to all files and commit messages, and return the number of commits.

    All branches and tags are rewritten, and old objects are permanently deleted. ``rename`` returns
    a changed file's new path. If a crash interrupts the rewrite after the refs moved, the next call
    completes it; otherwise the old history stays.

    Raises UnusableRepositoryError if HEAD is detached, a merge is unfinished, or the new history is
    incomplete.
    """
    git = repository.git
    git.version()
    repository.check()
    head = repository.head()
    if head.commit is None:
        return 0
    if head.branch is None or repository.in_progress():
        raise UnusableRepositoryError(
            "history cannot be rewritten now",
            hint=f"finish the operation in progress in {repository.root}: git status",
        )
    commits = _count(repository)
    stream = git.run(
        "fast-export",
        "--all",
        "--signed-tags=strip",
        "--tag-of-filtered-object=rewrite",
        "--reencode=no",
        "--full-tree",
        timeout=SECONDS,
    )
    filtered = b"".join(_filter_stream(stream, clean, rename))
    if dry_run:
        return commits
    for folder in repository.root.parent.glob(f"{_FOLDER_PREFIX}*"):
        _remove(folder)  # left by an interrupted rewrite
    if filtered != stream:
        _take_over(repository, filtered, commits)
    # Git never prunes objects that are in its index. This also completes an earlier run that
    # crashed.
    repository.git.run("read-tree", "HEAD")
    for name in ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD"):
        (git.git_dir / name).unlink(missing_ok=True)
    git.run(
        "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all", timeout=SECONDS
    )
    git.run("repack", "-a", "-d", "-q", timeout=SECONDS)
    git.run("prune", "--expire=now", timeout=SECONDS)
    return commits


def _filter_stream(stream: bytes, clean: Clean, rename: Rename) -> Iterator[bytes]:
    changed: dict[bytes, bytes] = {}
    at, mark = 0, b""
    while at < len(stream):
        end = stream.find(b"\n", at)
        end = len(stream) if end < 0 else end
        line = stream[at:end]
        at = end + 1
        if block := _DATA.match(line):
            data = stream[at : at + int(block[1])]
            at += len(data)
            cleaned = clean(data)
            if cleaned != data and mark:
                changed[mark] = cleaned
            mark = b""
            yield b"data %d\n%b" % (len(cleaned), cleaned)
            continue
        mark = match[1] if (match := _MARK.match(line)) else mark
        yield (_rename_in_line(line, changed, rename) if line.startswith(b"M ") else line) + b"\n"


def _rename_in_line(line: bytes, changed: dict[bytes, bytes], rename: Rename) -> bytes:
    file = _FILE.match(line)
    if file is None or file[2] not in changed or file[3].startswith(b'"'):
        return line
    path = rename(os.fsdecode(file[3]), changed[file[2]])
    return b"M %b :%b %b" % (file[1], file[2], os.fsencode(path))


def _take_over(repository: Repository, stream: bytes, commits: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=repository.root.parent))
    try:
        copy = Repository(folder, repository.git.environ)
        copy.create()
        copy.git.run("fast-import", "--quiet", "--force", stdin=stream, timeout=SECONDS)
        branch = repository.head().branch
        copy.git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        copy.git.run("fsck", "--no-dangling", timeout=SECONDS)
        is_whole = _count(copy) == commits and _names(copy) == _names(repository)
        trees = [item.tree(item.head().commit) for item in (repository, copy)]
        if not is_whole or len(trees[0]) != len(trees[1]):
            raise UnusableRepositoryError(
                "the rewritten history is incomplete, so the old one stays",
                hint="nacre admin doctor checks the repository",
            )
        repository.git.run(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--update-head-ok",
            "--force",
            str(copy.git.git_dir),
            "+refs/*:refs/*",
            timeout=SECONDS,
        )
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Delete a folder in two attempts, because other programs might have files open."""
    # Windows cannot delete read-only files, and git makes its objects read-only.
    if os.name == "nt":
        for parent, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    os.chmod(os.path.join(parent, name), stat.S_IWRITE)
    for _ in range(2):
        shutil.rmtree(folder, ignore_errors=True)


def _count(repository: Repository) -> int:
    return int(repository.git.run("rev-list", "--count", "--all").strip() or 0)


def _names(repository: Repository) -> list[bytes]:
    return sorted(repository.git.run("for-each-ref", "--format=%(refname)").split())
