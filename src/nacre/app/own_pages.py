"""The owner's own pages at the top of the vault: who agents work for, and how the owner wants things done."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.app.context import Context
from nacre.app.operating import intend, operating
from nacre.app.writing import apply_intents
from nacre.errors import InvalidInput
from nacre.model.context import Part
from nacre.recall.context.sections import SHARES
from nacre.storage.vault_index import Intent
from nacre.text import count_tokens
from nacre.vault.files import file_hash
from nacre.vault.layout import OWN_PAGES

PAGES = (Part.IDENTITY.value, Part.PROFILE.value)
_MOST_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A page: where it lies in the vault, and its text, empty where there is none. Of its ``tokens`` a session that
    starts is told ``told_tokens`` at most, and what the sections before it leave."""

    name: str
    path: str
    text: str = ""
    told_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Of the whole page."""
        return count_tokens(self.text)


def own_page(context: Context, name: str) -> OwnPage:
    """A page as it is, without secrets. Raises InvalidInput, VaultUnusable."""
    path, data = _read(context, name)
    text = context.redactor.clean((data or b"").decode("utf-8", errors="replace")).strip()
    return OwnPage(name, path, text, int(SHARES[Part(name)] * context.settings["context.budget_tokens"]))


def write_own_page(context: Context, name: str, text: str) -> OwnPage:
    """Write a page, without secrets, in the place of what it said; an empty text takes it away.

    ``nacre undo`` brings back what it said. Raises InvalidInput, VaultUnusable, and what writing raises.
    """
    words = context.redactor.clean(text).strip()
    if len(words) > _MOST_CHARACTERS:
        raise InvalidInput(f"a page has {_MOST_CHARACTERS:,} characters at most", hint="store memories for the rest")
    with context.vault_lock:
        path, data = _read(context, name)
        document = f"{words}\n" if words else None
        base = file_hash(data) if data is not None else None
        if document is None and data is None:
            return own_page(context, name)
        with context.database.transaction(), operating(context, "page", subject=name):
            intend(context, [Intent("write" if document else "remove", path, document, base)])
        apply_intents(context)
    return own_page(context, name)


def _read(context: Context, name: str) -> tuple[str, bytes | None]:
    """Where a page lies, and what is there."""
    if name not in PAGES:
        raise InvalidInput(f"there is no page {name!r}", hint=f"one of: {', '.join(PAGES)}")
    paths = sorted(OWN_PAGES, reverse=True) if name == Part.IDENTITY else ["profile.md"]
    for path in paths:
        if context.vault.exists(path):
            return path, context.vault.read(path)
    return paths[0], None
