"""Rewrite every version that a repository keeps: export, filter, import beside it, verify, and only then take over."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from nacre.errors import RepositoryUnusable
from nacre.git.repository import Repository

SECONDS = 3600.0
_BESIDE = ".rewrite-"
_DATA = re.compile(rb"^data (\d+)$")

_MARK = re.compile(rb"^mark :(\d+)$")
_FILE = re.compile(rb"^M (\d+) :(\d+) (.*)$")

Clean = Callable[[bytes], bytes]
Rename = Callable[[str, bytes], str]


def rewrite_history(repository: Repository, clean: Clean, rename: Rename, *, dry_run: bool = False) -> int:
    """Put all contents and messages of all branches and tags through ``clean``; returns how many commits there are.

    ``rename`` is asked what a file with contents that changed is called now.

    The new history is built in a repository beside the old one and looked at: as many commits, the same files, nothing
    left to clean. Then references move to it, and what the old ones held is deleted: nothing of it can be found in the
    repository afterwards. A crash before that leaves the old history, one after it is finished by the next call.

    Raises RepositoryUnusable: detached, in the middle of a merge, or the new history is not what it should be.
    """
    git = repository.git
    git.version()
    repository.check()
    head = repository.head()
    if head.commit is None:
        return 0
    if head.branch is None or repository.in_progress():
        raise RepositoryUnusable(
            "history cannot be rewritten now", hint=f"finish what was begun in {repository.root}: git status"
        )
    commits = _count(repository)
    stream = git.run(
        "fast-export", "--all", "--signed-tags=strip", "--tag-of-filtered-object=rewrite", "--reencode=no",
        "--full-tree", timeout=SECONDS,
    )  # fmt: skip
    filtered = b"".join(_filtered(stream, clean, rename))
    if dry_run:
        return commits
    for left in repository.root.parent.glob(f"{_BESIDE}*"):
        _remove(left)  # of a rewriting that was cut short
    if filtered != stream:
        _take_over(repository, filtered, commits)
    repository.git.run("read-tree", "HEAD")  # also where a crash came before it: what git's index names is never pruned
    _forget_old(repository)
    return commits


def _filtered(stream: bytes, clean: Clean, rename: Rename) -> Iterator[bytes]:
    """The stream with every block of data cleaned, and files called otherwise where that asks for it."""
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
        mark = found[1] if (found := _MARK.match(line)) else mark
        yield (_named(line, changed, rename) if line.startswith(b"M ") else line) + b"\n"


def _named(line: bytes, changed: dict[bytes, bytes], rename: Rename) -> bytes:
    file = _FILE.match(line)
    if file is None or file[2] not in changed or file[3].startswith(b'"'):
        return line
    path = rename(os.fsdecode(file[3]), changed[file[2]])
    return b"M %b :%b %b" % (file[1], file[2], os.fsencode(path))


def _take_over(repository: Repository, stream: bytes, commits: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix=_BESIDE, dir=repository.root.parent))
    try:
        beside = Repository(folder, repository.git.environ)
        beside.create()
        beside.git.run("fast-import", "--quiet", "--force", stdin=stream, timeout=SECONDS)
        _verify(repository, beside, commits)
        repository.git.run(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok", "--force",
            str(beside.git.git_dir), "+refs/*:refs/*", timeout=SECONDS,
        )  # fmt: skip
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a repository of ours, as far as that can be done: what stays goes with the next rewriting.

    It is tried twice, as another program may have had a file open.
    """
    if os.name == "nt":  # which removes nothing that is marked as read-only, as git marks its objects
        for parent, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    os.chmod(os.path.join(parent, name), stat.S_IWRITE)
    for _ in range(2):
        shutil.rmtree(folder, ignore_errors=True)


def _verify(repository: Repository, beside: Repository, commits: int) -> None:
    """Compare the new history with the old one. Raises RepositoryUnusable; nothing was changed then."""
    branch = repository.head().branch
    beside.git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    beside.git.run("fsck", "--no-dangling", timeout=SECONDS)
    is_whole = _count(beside) == commits and _names(beside) == _names(repository)
    trees = [one.tree(one.head().commit) for one in (repository, beside)]
    if not is_whole or len(trees[0]) != len(trees[1]):
        raise RepositoryUnusable(
            "the rewritten history is not whole, so the old one stays", hint="nacre doctor looks at the repository"
        )


def _forget_old(repository: Repository) -> None:
    """Delete what no reference reaches: reflogs first, which reach everything there ever was."""
    git = repository.git
    for name in ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD"):
        (git.git_dir / name).unlink(missing_ok=True)
    git.run("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all", timeout=SECONDS)
    git.run("repack", "-a", "-d", "-q", timeout=SECONDS)
    git.run("prune", "--expire=now", timeout=SECONDS)


def _count(repository: Repository) -> int:
    return int(repository.git.run("rev-list", "--count", "--all").strip() or 0)


def _names(repository: Repository) -> list[bytes]:
    return sorted(repository.git.run("for-each-ref", "--format=%(refname)").split())
