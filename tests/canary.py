"""Secrets to plant, and a look whether anything of them stayed: in files, names of files, objects of git."""

from __future__ import annotations

import json
import random
import string
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nacre.store import packs

CORE = "".join(random.Random(7).choices(string.ascii_letters, k=12))  # noqa: S311
"""What every planted secret holds, and nothing else."""

SECRET = "gh" + "p_" + CORE + "7k" + CORE[::-1] + "3Qx9"
PRIVATE = "<private>" + CORE.lower() + "ward</private>"
FORMS = {
    "token": SECRET,
    "url": f"postgres://app:{CORE}9Q@db.example/app",
    "assignment": f"API_TOKEN={CORE}7k{CORE[::-1]}",
    "header": f"Authorization: Bearer {CORE}7k{CORE[::-1]}3Qx9",
    "key": f"-----BEGIN PRIVATE KEY-----\nMIIE{CORE}{CORE[::-1]}\n-----END PRIVATE KEY-----",
    "private": PRIVATE,
}
"""Secrets of several forms, and a block that somebody marked."""

Leaf = tuple[str | int, ...]


def leaves(value: Any, path: Leaf = ()) -> Iterator[Leaf]:
    """Where the texts are in JSON values."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))


def planted(value: Any, path: Leaf, words: str) -> Any:
    """JSON values with words behind one of their texts."""
    if not path:
        return f"{value} {words}"
    first, *rest = path
    if isinstance(value, dict):
        return {
            key: planted(item, tuple(rest), words) if key == first else item
            for key, item in value.items()
        }
    return [
        planted(item, tuple(rest), words) if number == first else item
        for number, item in enumerate(value)
    ]


def shapes_of(records: Sequence[Any]) -> list[tuple[int, Leaf]]:
    """One place for every field of every type of record: the number of the record, and where in it."""
    found: dict[tuple[object, ...], tuple[int, Leaf]] = {}
    for number, record in enumerate(records):
        kind = record.get("type") if isinstance(record, dict) else None
        for leaf in leaves(record):
            found.setdefault(
                (kind, *(part if isinstance(part, str) else 0 for part in leaf)), (number, leaf)
            )
    return list(found.values())


def spoiled(text: str, words: str) -> Iterator[str]:
    """A file with words in one of its fields, once for each: in JSON, JSON lines, or any other text line by line."""
    records = _records(text)
    if records is None:
        lines = text.splitlines(keepends=True)
        words = words.replace("\n", " ")  # a line is what such a format takes apart
        for number, line in enumerate(lines):
            body = line.rstrip("\n")
            yield "".join(
                [*lines[:number], f"{body} {words}{line[len(body) :]}", *lines[number + 1 :]]
            )
        return
    rows, is_whole = records
    for number, leaf in shapes_of(rows):
        changed = [
            planted(item, leaf, words) if at == number else item for at, item in enumerate(rows)
        ]
        yield (
            json.dumps(changed[0])
            if is_whole
            else "".join(json.dumps(item) + "\n" for item in changed)
        )


def _records(text: str) -> tuple[list[Any], bool] | None:
    for rows, is_whole in (([text], True), (text.splitlines(), False)):
        try:
            found = [json.loads(row) for row in rows if row.strip()]
        except ValueError:
            continue
        if found and all(isinstance(item, dict | list) for item in found):
            return found, is_whole
    return None


def is_kept(home: Path, needle: str = CORE, *, outside: Path | None = None) -> list[str]:
    """Where a text is, in any case, in any file of a home, any name of one, any object of its git repository.

    With ``outside``, what lies below that folder does not count.
    """
    wanted = needle.lower().encode()
    paths = [
        path for path in home.rglob("*") if outside is None or outside not in (path, *path.parents)
    ]
    texts = {path: path.read_bytes() + unpacked(path) for path in paths if path.is_file()}
    found = [
        f"{path}: {_around(data, wanted)}" for path, data in texts.items() if wanted in data.lower()
    ]
    found += [str(path) for path in paths if needle.lower() in path.name.lower()]
    if outside is None and (home / "vault" / ".git").exists():
        command = ["git", "-C", str(home / "vault"), "cat-file", "--batch-all-objects", "--batch"]
        objects = subprocess.run(command, capture_output=True, check=True).stdout
        found += ["git"] if wanted in objects.lower() else []
    return found


def unpacked(path: Path) -> bytes:
    """What a pack of the archive holds; nothing for any other file."""
    if path.suffix != packs.SUFFIX or ".git" in path.parts:
        return b""
    pack = packs.load(path)
    return b"".join(payload.text for _, payload in pack.payloads())


def _around(data: bytes, wanted: bytes) -> str:
    at = data.lower().index(wanted)
    return data[max(0, at - 300) : at + 80].decode("utf-8", "replace")
