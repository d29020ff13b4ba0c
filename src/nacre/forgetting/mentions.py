"""Take a text out of what stays: names of files, reasons of links."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from nacre.errors import EditConflict
from nacre.forgetting.scrub_vault import rename
from nacre.home.change import Change
from nacre.tombstones.text_search import Pattern, is_in_path
from nacre.tombstones.version_erasure import remove_for_good


def clear_reasons(change: Change, match: Pattern) -> None:
    """Links lose reasons that say a text."""
    home = change.home
    for memory in home.memories.in_any_state(sorted(home.memories.all_ids())):
        links = tuple(replace(link, reason=None) if match.search(link.reason or "") else link for link in memory.links)
        if links != memory.links:
            with suppress(EditConflict):  # somebody edits it just now: the report names the file
                change.set_links(replace(memory, links=links))


def rename_files(change: Change, match: Pattern) -> None:
    """A file is named after what its memory was first called: where only the name says a text, it gets another one."""
    home = change.home
    found = []
    for path, file in home.files.seen().items():
        memory = home.memories.find(file.memory) if is_in_path(match, path) else None
        if memory and not match.search(memory.subject):
            found.append((file, memory))
    for path in rename(change, found):
        remove_for_good(home, path)
