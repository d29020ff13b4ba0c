"""Forget in the former versions of documents, which a server keeps as rows. Beside files, git does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from nacre.errors import MemoryInvalid
from nacre.home.home import Home
from nacre.storage.postgres.documents import Documents
from nacre.tombstones.quotes import Quotes
from nacre.tombstones.text_search import Pattern, is_in_path
from nacre.values.memory import Memory
from nacre.vault.document import parse


def remove_for_good(home: Home, path: str) -> None:
    """Remove a document; on a server with all that it ever said."""
    if home.database.is_server:
        _documents(home).forget(path)
    else:
        home.vault.remove(path)


def erase_quoting(home: Home, match: Pattern) -> None:
    """Forget what documents said before, where it says something."""
    if home.database.is_server:
        _documents(home).forget_former(lambda path, data: bool(match.search(_text(data))) or is_in_path(match, path))


def still_saying(home: Home, match: Pattern) -> list[str]:
    """The paths of documents on a server that say something now."""
    if not home.database.is_server:
        return []
    documents = _documents(home)
    return [one.path for one in documents.heads() if match.search(_text(documents.read(one.path) or b""))]


def erase_naming(home: Home, memories: Sequence[Memory]) -> None:
    """Forget what documents said before, where it names memories that are to go or quotes them, as they are or were."""
    if not home.database.is_server or not memories:
        return
    documents = _documents(home)
    ids = {memory.id for memory in memories}
    quotes = Quotes(text for one in (*memories, *_earlier(home, documents, ids)) for text in (one.subject, one.content))

    def tells(text: str) -> bool:
        return any(one in text for one in ids) or quotes.are_in(text)

    documents.forget_former(lambda _, data: tells(_text(data)))
    home.erasing.clear_journal(tells)


def _earlier(home: Home, documents: Documents, ids: set[str]) -> Iterator[Memory]:
    """Memories as they were."""
    for _, path, data in documents.former():
        with suppress(MemoryInvalid):
            memory = parse(_text(data), path, new_id=home.ids, modified=home.now())
            if memory.id in ids:
                yield memory


def _documents(home: Home) -> Documents:
    return Documents(home.database, home.clock)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
