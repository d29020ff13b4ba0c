"""OpenCode before 1.1: ``storage/session/<project>/<session>.json``, with its messages and parts in files of their own.

The oldest versions keep all three below ``storage/session``. An export (``opencode export``) is one file with the same
objects. A session is read anew when its file or a message changed: a message is written again when it is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.objects import decode
from nacre.transcripts.opencode.session import ENVIRONMENT, TOOL, Talk, data_folders, session_of
from nacre.transcripts.whole_json import beside, mapping, objects, shape_of, string
from nacre.values.session import Session, Turn

Said = Iterator[Session | Turn]
Values = Mapping[str, Any]

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_MOST_FLAT = 20_000
_SAFE = re.compile(r"[\w.-]+")


def parse(source: Source) -> Said:
    """Parse one session; see :class:`~nacre.transcripts.adapter.Adapter`."""
    values = decode(_ANY, source.text().encode("utf-8", "replace"))
    if not isinstance(values, dict):
        source.corrupt()  # it may just be written
    elif isinstance(values.get("messages"), list):
        yield from _export(source, values)
    else:
        yield from _session(source, values)


def _export(source: Source, values: Values) -> Said:
    talk = Talk(source, session_of(mapping(values, "info")))
    for message in objects(values, "messages"):
        yield from talk.take(mapping(message, "info"), objects(message, "parts"))
    yield from talk.end()


def _session(source: Source, values: Values) -> Said:
    name = str(values.get("id"))
    folders = _Folders(source.path)
    project = string(folders.project(values), "worktree")
    talk = Talk(source, session_of(values, project=project if project != "/" else None))
    found = [beside(path) for path in folders.messages(name)]
    for _ in range(sum(not isinstance(message, dict) for message in found)):
        source.corrupt()
    for message in sorted((one for one in found if isinstance(one, dict)), key=_order):
        yield from talk.take(message, _parts(source, folders, name, str(message.get("id"))))
    yield from talk.end()


def _parts(source: Source, folders: _Folders, session: str, message: str) -> Iterator[Values]:
    for path in folders.parts(session, message):
        part = beside(path)
        if isinstance(part, dict):
            yield part
        else:
            source.corrupt()


class _Folders:
    """The folders of a session's messages and parts, as its own file's place tells."""

    def __init__(self, path: Path) -> None:
        is_old = path.parent.name == "info"
        self.storage = path.parent.parent if is_old else path.parent.parent.parent
        self._is_old = is_old
        self._flat: dict[str, list[Path]] | None = None

    def project(self, values: Values) -> Values:
        name = string(values, "projectID")
        known = beside(self.storage / "project" / f"{name}.json") if name and _SAFE.fullmatch(name) else None
        return known if isinstance(known, dict) else {}

    def messages(self, session: str) -> list[Path]:
        return _files(self.storage / "message" / session) if _SAFE.fullmatch(session) else []

    def parts(self, session: str, message: str) -> list[Path]:
        if not _SAFE.fullmatch(message):
            return []
        top = self.storage / "part"
        found = _files(top / session / message if self._is_old else top / message)
        return found or self.flat().get(message, [])

    def flat(self) -> dict[str, list[Path]]:
        """Parts that lie in one folder, by their message."""
        if self._flat is None:
            self._flat = {}
            for path in _files(self.storage / "part")[:_MOST_FLAT]:
                part = beside(path)
                if isinstance(part, dict):
                    self._flat.setdefault(str(part.get("messageID")), []).append(path)
        return self._flat


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def _order(message: Values) -> tuple[float, str]:
    created = mapping(message, "time").get("created")
    return (created if isinstance(created, int | float) else 0, str(message.get("id")))


def _messages_of(path: Path) -> Iterator[Path]:
    """The messages of the session in a file, where it lies as OpenCode keeps it."""
    if path.name.endswith(".json") and path.parent.parent.name == "session":
        yield from _Folders(path).messages(path.stem)


def _sniff(head: Head) -> bool:
    shape = shape_of(head)
    if shape is None or shape.is_array:
        return False
    is_export = {"info", "messages"} <= shape.keys and '"sessionID"' in head.text
    return is_export or ({"id", "time", "title"} <= shape.keys and bool({"projectID", "version"} & shape.keys))


def _roots(places: Places) -> Sequence[Root]:
    kept = {"storage/session": "*/*.json", "project": "*/storage/session/info/*.json"}
    return [Root(folder / place, (names,)) for folder in data_folders(places) for place, names in kept.items()]


ADAPTER = Adapter(
    tool=TOOL, label="OpenCode", roots=_roots, sniff=_sniff, parse=parse, beside=_messages_of,
    resume=("opencode", "--session", "{id}"),
    versions="storage of 0.1 to 1.3, exports (from their description)",
    reads=(
        "what was said", "tool calls with outcome", "titles", "folder", "model", "version", "tokens", "summaries",
        "sub-agents", "interruptions", "errors of the model",
    ),
    leaves_out=("thinking", "snapshots and patches", "files", "todos"),
    environment=ENVIRONMENT,
)  # fmt: skip
