"""What a repository's own configuration may say when nacre runs git in it.

Whoever brings a vault along, or can write into it, could name programs there: filters, transports, signers, helpers. So
a setting of the repository counts where it is known to name none; any other is set back to what the owner configured
for all repositories. Filters never run, whoever configured them: git's own files would hold something else than the
vault's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

_SECTIONS = frozenset({
    "advice", "branch", "color", "extensions", "include", "includeif", "init", "log", "pull", "rebase", "status", "url",
})  # fmt: skip
"""No setting of these names a program; what an include brings is listed by its own name."""

_NAMES = (
    "core.repositoryformatversion", "merge.conflictstyle", "push.default", "remote.*.fetch", "remote.*.pushurl",
    "remote.*.tagopt", "remote.*.url", "user.email", "user.name",
)  # fmt: skip
_DRIVERS = ("filter.*", "diff.*.*", "merge.*.*")
_PLAIN = re.compile(r"true|false|yes|no|on|off|-?[0-9]+[kmg]?", re.IGNORECASE)
"""What starts no program: a truth value or a number."""

_FIRST_COUNTS = ("remote.*.uploadpack", "remote.*.receivepack", "remote.*.vcs")
"""Of these git heeds the first that is said, so that nothing said later sets them back."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting as git lists it; ``scope`` is where it is from: ``system``, ``global``, ``local``, ``worktree`` …"""

    scope: str
    name: str
    value: str

    @property
    def is_of_repository(self) -> bool:
        """Whether the repository says it, not its owner."""
        return self.scope in {"local", "worktree"}


def read_entries(listed: str) -> list[Entry]:
    """The settings of ``git config --list --show-scope -z``."""
    parts = listed.split("\0")[:-1]
    return [Entry(scope, *_pair(told)) for scope, told in zip(parts[::2], parts[1::2], strict=True)]


def unusable(entries: Iterable[Entry]) -> str | None:
    """The name of a setting of the repository that names a program and cannot be set back."""
    said = (entry.name for entry in entries if entry.is_of_repository)
    return next((name for name in said if any(fnmatchcase(name, pattern) for pattern in _FIRST_COUNTS)), None)


def set_back(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """The settings, name and value, that undo what the repository must not say, to be set after all others.

    A name is emptied first, which ends a list such as that of credential helpers, and then holds the owner's values.
    """
    all_entries = list(entries)
    for name in dict.fromkeys(entry.name for entry in all_entries if not _may_say(entry)):
        owners = [entry.value for entry in all_entries if entry.name == name and not entry.is_of_repository]
        yield name, ""
        if not _is_driver(name):
            yield from ((name, value) for value in owners)


def _pair(told: str) -> tuple[str, str]:
    name, is_set, value = told.partition("\n")
    return name, value if is_set else "true"


def _may_say(entry: Entry) -> bool:
    if _is_driver(entry.name):
        return False
    is_known = entry.name.partition(".")[0] in _SECTIONS or any(fnmatchcase(entry.name, known) for known in _NAMES)
    return not entry.is_of_repository or is_known or _PLAIN.fullmatch(entry.value) is not None


def _is_driver(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _DRIVERS)
