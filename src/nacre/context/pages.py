"""Pages that the owner writes: who agents work for, how the owner wants things done, and what a project is about."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.context.sections import SHARES
from nacre.errors import EditConflict, InvalidInput
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.projects import page_path
from nacre.memories.scan import catch_up
from nacre.platform.ids import bytes_hash
from nacre.projects import pages
from nacre.projects.moving import known_project
from nacre.text.passages import count_tokens
from nacre.values.context import Part
from nacre.values.operation import Intent
from nacre.vault.layout import OWN_PAGES

PAGES = (Part.IDENTITY.value, Part.PROFILE.value, Part.PROJECT.value)
_MOST_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A page: where it lies in the vault, and its text, empty where there is none. Of its ``tokens`` a session that
    starts is told ``told_tokens`` at most, and what the sections before it leave.

    ``etag`` is another one whenever the file is, and empty where there is none. ``text`` is the whole file: a project's
    page begins with its front matter; what is written without one leaves that as it is.
    """

    name: str
    path: str
    text: str = ""
    told_tokens: int = 0
    etag: str = ""

    @property
    def tokens(self) -> int:
        """Of the whole page."""
        return count_tokens(self.text)


def own_page(home: Home, name: str, project: str | None = None) -> OwnPage:
    """A page as it is, without secrets. Raises InvalidInput, NotFound, VaultUnusable."""
    return _as_shown(home, name, _slug(home, name, project))


def write_own_page(
    home: Home, name: str, text: str, project: str | None = None, *, expected: str | None = None
) -> OwnPage:
    """Write a page, without secrets, in the place of what it said; an empty text takes it away, unless a project's.

    ``nacre undo`` brings back what it said. With ``expected``, it is written over the page of that etag alone. Raises
    InvalidInput, NotFound, EditConflict, VaultUnusable, and what writing raises.
    """
    words, slug = home.redactor.clean(text).strip(), _slug(home, name, project)
    if len(words) > _MOST_CHARACTERS:
        raise InvalidInput(f"a page has {_MOST_CHARACTERS:,} characters at most", hint="store memories for the rest")
    if slug and not words:
        raise InvalidInput("the page of a project is not taken away", hint="nacre project merge makes two into one")
    with home.change("page", subject=slug or name) as change:
        path, data = _read(home, name, slug)
        if expected not in (None, _etag(data)):
            raise EditConflict(f"{path} was changed meanwhile", hint="read it again; nothing was written")
        with change.transaction():
            if slug:
                before = pages.page_of(home, slug)
                pages.write(change, pages.edited(home, slug, before, f"{words}\n"), before)
            else:
                _write(change, path, f"{words}\n" if words else None, data)
    return _as_shown(home, name, slug)


def _write(change: Change, path: str, document: str | None, data: bytes | None) -> None:
    base = bytes_hash(data) if data is not None else None
    if document is not None or data is not None:
        change.intend([Intent("write" if document else "remove", path, document, base)])


def _as_shown(home: Home, name: str, slug: str | None) -> OwnPage:
    path, data = _read(home, name, slug)
    text = home.redactor.clean((data or b"").decode("utf-8", errors="replace")).strip()
    told = int(SHARES[Part(name)] * home.settings.whole("context.budget_tokens"))
    return OwnPage(name, path, text, told, _etag(data))


def _slug(home: Home, name: str, project: str | None) -> str | None:
    if name not in PAGES:
        raise InvalidInput(f"there is no page {name!r}", hint=f"one of: {', '.join(PAGES)}")
    if (name == Part.PROJECT) != bool(project):
        raise InvalidInput("the page of a project needs its name, the others have none", hint="nacre project list")
    if not project:
        return None
    catch_up(home)
    return known_project(home, project)


def _etag(data: bytes | None) -> str:
    return "" if data is None else bytes_hash(data).hex()


def _read(home: Home, name: str, slug: str | None) -> tuple[str, bytes | None]:
    """Where a page lies, and what is there."""
    paths = {Part.IDENTITY.value: sorted(OWN_PAGES, reverse=True), Part.PROJECT.value: [page_path(slug or "")]}
    places = paths.get(name, ["profile.md"])
    for path in places:
        if home.vault.exists(path):
            return path, home.vault.read(path)
    return places[0], None
