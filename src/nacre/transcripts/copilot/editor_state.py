"""VS Code's ``state.vscdb``: chat sessions as they were kept before mid-2024, under one key of a workspace's database.

Since then each session is a file of its own. Cursor's databases may hold some as well, of Copilot used in Cursor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source, Tables
from nacre.transcripts.copilot.chat_session import TOOL, parse_session_object
from nacre.transcripts.databases import Marks, Part, as_bytes, log_of, statement, tables_of
from nacre.transcripts.editors import ENVIRONMENT, folder_of, user_folders
from nacre.transcripts.objects import decode
from nacre.values.session import Session, Turn

SESSIONS = "interactive.sessions"

_CURSORS = frozenset({"Cursor", ".cursor-server"})
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def parse(source: Source) -> Iterator[Session | Turn]:
    """Parse one database; see :class:`~nacre.transcripts.adapter.Adapter`."""
    marks = Marks(source)
    yield from chat_sessions(source, marks)
    marks.save()


def chat_sessions(source: Source, marks: Marks) -> Iterator[Session | Turn]:
    """The chat sessions in an editor's database, as far as they changed."""
    tables = tables_of(source)
    kept = as_bytes(item(tables, SESSIONS))
    raws = decode(_RAWS, kept) if kept else []
    if raws is None:
        source.corrupt()
    folder, label = workspace_of(source.path)
    for raw in raws or ():
        values = decode(_ANY, bytes(raw))
        if not isinstance(values, dict):
            source.corrupt()
        elif marks.is_new(str(values.get("sessionId")), digest(raw)):
            yield from parse_session_object(Part(source), values, cwd=folder, label=label)


def workspace_of(path: Path) -> tuple[str | None, str | None]:
    """The folder that a workspace's database belongs to, or the name of a workspace of several folders."""
    try:
        facts = decode(_ANY, path.with_name("workspace.json").read_bytes())
    except OSError:
        return None, None
    folder, file = (facts.get("folder"), facts.get("workspace")) if isinstance(facts, dict) else (None, None)
    found = folder_of(file) if isinstance(file, str) else None
    label = found.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".code-workspace") if found else None
    return folder_of(folder) if isinstance(folder, str) else None, label


def has_editor_table(tables: Tables) -> bool:
    """Whether a database is an editor's."""
    return {"key", "value"} <= set(tables.columns("ItemTable"))


def item(tables: Tables, key: str) -> object:
    """What an editor keeps under a key, for the few keys that hold sessions."""
    found = tables.all(statement("editor_item"), key=key)
    return found[0][0] if found else None


def item_mark(tables: Tables, key: str) -> tuple[object, ...]:
    """What changes when another value is kept under a key; empty when nothing is."""
    found = tables.all(statement("editor_item_mark"), key=key)
    return tuple(found[0]) if found and found[0][1] else ()


def digest(raw: msgspec.Raw) -> str:
    """What changes when JSON does."""
    return hashlib.blake2b(bytes(raw), digest_size=8).hexdigest()


def _sniff(head: Head) -> bool:
    return head.database is not None and has_editor_table(head.database)


def state_roots(places: Places, *, of_cursor: bool) -> Sequence[Root]:
    """Where editors keep their state: Cursor, or all others."""
    names = ("workspaceStorage/*/state.vscdb", "globalStorage/state.vscdb")
    folders = [folder for folder in user_folders(places) if bool(_CURSORS & set(folder.parts)) is of_cursor]
    return [Root(folder, names) for folder in folders]


def _roots(places: Places) -> Sequence[Root]:
    return state_roots(places, of_cursor=False)


ADAPTER = Adapter(
    tool=TOOL, label="VS Code Copilot Chat", roots=_roots, sniff=_sniff, parse=parse, beside=log_of,
    versions="workspace databases until mid-2024 (from their description)",
    reads=("what was said", "tool calls with outcome", "title", "folder", "model"),
    leaves_out=("thinking", "drafts", "everything else the editor keeps"),
    environment=ENVIRONMENT,
)  # fmt: skip
