"""The message of a commit: for people who read ``git log``, and for nacre, which reads its operations back from it.

::

    2 operations: retire, store

    - retire: Lunch is at noon
      why: the canteen closed
      by: command line
      path: global/fact/lunch.md
      path: retired/global/fact/lunch.md
    - store: Lunch is at one
      path: global/fact/lunch-2.md

    Nacre-Operation: 0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81
    Nacre-Operation: 0198f3c2-8a00-7c3e-9b1e-5f0c2a4d6e82
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from nacre.platform.ids import at_ms
from nacre.text.passages import shorten
from nacre.values.operation import Operation

Clean = Callable[[str], str]

BEGINNING = "Begin the history of the vault"
"""The message of the first commit, which holds no operation."""

MOST_PATHS = 20
"""An operation on more files, or on :func:`unnamed` ones, has a commit to itself, which need not name them."""

_SUBJECT_CHARACTERS = 72
_TRAILER = "Nacre-Operation"
_TRAILERS = re.compile(rf"^{_TRAILER}: (\S+)\s*$", re.MULTILINE)
_ITEM = re.compile(r"^- (\S+?): ?(.*)$")


@dataclass(frozen=True, slots=True)
class RecordedOperation:
    """An operation as a message tells it; ``paths`` is ``None`` when all that the commit changed is its own."""

    operation: Operation
    paths: tuple[str, ...] | None


def unnamed(path: str, clean: Clean) -> bool:
    """Whether a message cannot tell the name of a file: it holds what looks like a secret, or an end of a line."""
    return "\n" in path or clean(path) != path


def write_message(told: Sequence[tuple[Operation, Sequence[str]]], clean: Clean) -> str:
    """The message of a commit that holds operations, each with the files it changed.

    ``clean`` takes secrets out of a text: in words that came from elsewhere, too.
    """
    lines = [clean(_title([operation for operation, _ in told])), ""]
    for operation, paths in told:
        lines.append(f"- {operation.action}: {clean(operation.subject or '')}".rstrip())
        lines += [f"  {name}: {clean(text)}" for name, text in (("why", operation.why), ("by", operation.by)) if text]
        if len(paths) <= MOST_PATHS and not any(unnamed(path, clean) for path in paths):
            lines += [f"  path: {path}" for path in paths]
        else:
            lines.append(f"  {len(paths)} files")
    return "\n".join([*lines, "", *(f"{_TRAILER}: {operation.id}" for operation, _ in told)]) + "\n"


def read_message(message: str, commit: str) -> list[RecordedOperation]:
    """The operations that a message tells; empty for a commit that nacre did not make."""
    ids = _TRAILERS.findall(message)
    items: list[list[str]] = []
    for line in message.splitlines()[1:]:
        if _ITEM.match(line):
            items.append([line])
        elif line.startswith("  ") and items:
            items[-1].append(line.strip())
    items += [[] for _ in ids[len(items) :]]
    return [_told(op, item, commit, is_alone=len(ids) == 1) for op, item in zip(ids, items, strict=False)]


def _told(op: str, item: Sequence[str], commit: str, *, is_alone: bool) -> RecordedOperation:
    match = _ITEM.match(item[0]) if item else None
    action, subject = match.groups() if match else ("commit", "")
    facts = [line.partition(": ") for line in item[1:]]
    why, by = (next((value for name, _, value in facts if name == wanted), None) for wanted in ("why", "by"))
    paths = tuple(value for name, _, value in facts if name == "path")
    return RecordedOperation(
        Operation(op, time_of(op), action, subject or None, why, by, commit), None if is_alone else paths
    )


def time_of(op: str) -> datetime:
    """Return the time of an operation from its UUIDv7, in milliseconds; 1970 for an id without a time."""
    try:
        return at_ms(int(op.replace("-", "")[:12], 16))
    except (ValueError, OverflowError, OSError):
        return at_ms(0)


def _title(operations: Sequence[Operation]) -> str:
    if len(operations) == 1:
        only = operations[0]
        return shorten(f"{only.action}: {only.subject}" if only.subject else only.action, _SUBJECT_CHARACTERS)
    counted = Counter(operation.action for operation in operations)
    names = (f"{count} {action}" if count > 1 else action for action, count in sorted(counted.items()))
    return shorten(f"{len(operations)} operations: {', '.join(names)}", _SUBJECT_CHARACTERS)
