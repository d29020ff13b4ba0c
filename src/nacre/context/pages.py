"""The owner's own pages at the top of the vault: who agents work for, and how the owner wants things done."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.context.sections import SHARES
from nacre.errors import InvalidInput
from nacre.home.home import Home
from nacre.platform.ids import bytes_hash
from nacre.text.passages import count_tokens
from nacre.values.context import Part
from nacre.values.operation import Intent
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


def own_page(home: Home, name: str) -> OwnPage:
    """A page as it is, without secrets. Raises InvalidInput, VaultUnusable."""
    path, data = _read(home, name)
    text = home.redactor.clean((data or b"").decode("utf-8", errors="replace")).strip()
    return OwnPage(name, path, text, int(SHARES[Part(name)] * home.settings.whole("context.budget_tokens")))


def write_own_page(home: Home, name: str, text: str) -> OwnPage:
    """Write a page, without secrets, in the place of what it said; an empty text takes it away.

    ``nacre undo`` brings back what it said. Raises InvalidInput, VaultUnusable, and what writing raises.
    """
    words = home.redactor.clean(text).strip()
    if len(words) > _MOST_CHARACTERS:
        raise InvalidInput(f"a page has {_MOST_CHARACTERS:,} characters at most", hint="store memories for the rest")
    with home.change("page", subject=name) as change:
        path, data = _read(home, name)
        document = f"{words}\n" if words else None
        base = bytes_hash(data) if data is not None else None
        if document is None and data is None:
            return own_page(home, name)
        with change.transaction():
            change.intend([Intent("write" if document else "remove", path, document, base)])
    return own_page(home, name)


def _read(home: Home, name: str) -> tuple[str, bytes | None]:
    """Where a page lies, and what is there."""
    if name not in PAGES:
        raise InvalidInput(f"there is no page {name!r}", hint=f"one of: {', '.join(PAGES)}")
    paths = sorted(OWN_PAGES, reverse=True) if name == Part.IDENTITY else ["profile.md"]
    for path in paths:
        if home.vault.exists(path):
            return path, home.vault.read(path)
    return paths[0], None
