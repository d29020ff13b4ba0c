"""What the repository's history tells of operations, kept in the database so that it is found quickly.

Also how a commit is acknowledged: whatever history holds is pending no more, also after a crash between the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nacre.git.repository import PastCommit
from nacre.history.commit_message import BEGINNING, RecordedOperation, read_message
from nacre.home.home import Home
from nacre.text.passages import one_line, shorten
from nacre.tombstones.tombstones import Barred, Gate
from nacre.values.operation import FOREIGN, Operation
from nacre.vault.layout import LEDGER, is_memory_file

_ID = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?:(?!---).*\n)*?id:[ \t]*[\"']?([\w-]+)")
_BATCH = 500


def catch_up(home: Home) -> None:
    """Read the commits that are new since the last time. Raises GitUnavailable, RepositoryUnusable."""
    repository = home.repository
    if not repository.exists:
        return
    head = repository.head().commit
    read = home.journal.git_state("read")
    if head is None or head == read:
        return
    is_rewritten = not repository.is_ancestor(read, head)
    commits = list(repository.history(None if is_rewritten else read))
    if is_rewritten:
        with home.database.transaction():
            home.journal.forget_past()
    for start in range(0, len(commits), _BATCH):
        part = commits[start : start + _BATCH]
        told = [(commit, one) for commit in part for one in _told(home, commit)]
        files = _files(home, [(commit, one) for commit, one in told if not _is_known(home, one)])
        with home.database.transaction():
            for commit, one in told:
                _record(home, commit, one, files, Gate(home).refresh())
            home.journal.set_git_state("read", part[-1].id)


def _told(home: Home, commit: PastCommit) -> list[RecordedOperation]:
    """The operations of a commit; one that somebody else made is one, unless it only merges what is told already."""
    message = home.redactor.clean(commit.message)
    found = read_message(message, commit.id)
    if found or not commit.paths or commit.message == BEGINNING:
        return found
    if commit.is_merge and not set(home.repository.changed_by_merge(commit.id)) - {LEDGER}:
        return []
    title = shorten(one_line(message.partition("\n")[0]), 120)
    return [RecordedOperation(Operation(commit.id, commit.at, FOREIGN, title or None, committed=commit.id), None)]


def _is_known(home: Home, told: RecordedOperation) -> bool:
    return home.journal.find(told.operation.id) is not None


def _record(
    home: Home, commit: PastCommit, told: RecordedOperation, files: Mapping[str, bytes], barred: Barred
) -> None:
    """Record an operation that history tells: without words where they are of what is forgotten."""
    if _is_known(home, told):
        home.journal.committed(told.operation.id, commit.id)
        return
    found = {path: files.get(f"{commit.id}:{path}", b"") for path in _paths(commit, told)}
    gone = {path for path, data in found.items() if barred.bars_document(path, data)}
    operation = told.operation
    if gone or any(barred.names_in(data) for data in found.values()):
        operation = replace(operation, subject=None, why=None)
    home.journal.add_past(operation, ((path, _id(data)) for path, data in found.items() if path not in gone))


def _paths(commit: PastCommit, told: RecordedOperation) -> Iterable[str]:
    return (path for path in (commit.paths if told.paths is None else told.paths) if path != LEDGER)


def _files(home: Home, told: Sequence[tuple[PastCommit, RecordedOperation]]) -> dict[str, bytes]:
    """``<commit>:<path>`` → what the file of a memory says; what it said before where it is gone."""
    wanted = [(commit, path) for commit, one in told for path in _paths(commit, one) if is_memory_file(path)]
    found = home.repository.read([f"{commit.id}:{path}" for commit, path in wanted])
    gone = {f"{commit.parent}:{path}": f"{commit.id}:{path}" for commit, path in wanted if commit.parent}
    former = home.repository.read([name for name, present in gone.items() if present not in found])
    return found | {gone[name]: data for name, data in former.items()}


def _id(data: bytes) -> str:
    match = _ID.match(data)
    return match.group(1).decode() if match else ""
