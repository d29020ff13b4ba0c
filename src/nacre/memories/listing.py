"""Write the listings of the vault: ``MEMORY.md`` at its top, and one in the folder of each project.

They are derived: no recall reads them, no scan takes them for memories, and git passes over them unless the owner
added them (decision 1). They are written with each commit, not with each memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress

from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.platform.ids import bytes_hash
from nacre.values.recall import Filter
from nacre.vault.layout import GIT_FOLDER
from nacre.vault.listing import LISTING, Entry, global_page, is_derived, project_page

_ALL = 2**31


def write_listings(home: Home) -> list[str]:
    """Bring the listings up to date; returns the paths of those that changed.

    A page that a person wrote stays, whatever it is called. Where the setting is off, nacre's own are removed.
    """
    if home.database.unwritable:
        return []
    wanted = _pages(home) if home.settings.flag("vault.listing") else {}
    there = [path for path in home.vault.paths() if path.endswith(f"/{LISTING}")]
    changed, own = [], []
    for path in sorted({*wanted, *there, LISTING}):
        with suppress(NacreError):  # a link, or somebody writes there just now: the next one does it
            present = _present(home, path)
            if present is not None and not is_derived(present):
                continue
            if path in wanted:
                own.append(path)
            if _write(home, path, present, wanted.get(path)):
                changed.append(path)
    if home.settings.flag("git.enabled") and home.vault.exists(GIT_FOLDER):
        with suppress(NacreError):
            home.repository.pass_over(LISTING, own)
    return changed


def _present(home: Home, path: str) -> bytes | None:
    try:
        return home.vault.read(path)
    except FileNotFoundError:
        return None


def _write(home: Home, path: str, present: bytes | None, text: str | None) -> bool:
    """Whether the page was another one."""
    if text is None:
        if present is not None:
            home.vault.remove(path)
        return present is not None
    if present == text.encode("utf-8", "replace"):
        return False
    home.vault.write(path, text, base=None if present is None else bytes_hash(present))
    return True


def _pages(home: Home) -> Mapping[str, str]:
    """Path → text, of every page that there is something to list on."""
    entries: dict[str | None, list[Entry]] = defaultdict(list)
    paths = {one.memory: path for path, one in home.files.seen().items()}
    rows = home.selection.latest_memories(Filter(), limit=_ALL, today=home.today())
    for memory in home.memories.by_rows(rows).values():
        path = paths.get(memory.id, "")
        folder = f"projects/{memory.project}/"
        is_filed = bool(memory.project) and path.startswith(folder)
        if path:
            entries[memory.project if is_filed else None].append(
                Entry(memory, path.removeprefix(folder) if is_filed else path)
            )
    if not entries:
        return {}
    projects = {name: len(found) for name, found in entries.items() if name}
    pages = {f"projects/{name}/{LISTING}": project_page(name, entries[name]) for name in projects}
    return {LISTING: global_page(entries.get(None, []), projects), **pages}
