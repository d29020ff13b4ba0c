"""A memory that is renamed keeps the names by which others link it, as aliases in its front matter."""

from __future__ import annotations

from dataclasses import replace

from nacre.home.home import Home
from nacre.storage.names import ALIASES
from nacre.text.wikilinks import aliases_in, called
from nacre.values.memory import Memory


def with_former_names(home: Home, memory: Memory, path: str) -> Memory:
    """A memory as it is to be written at a path, with those of its names as aliases that others still use."""
    aliases = aliases_in(memory.extra.get(ALIASES))
    former = home.memories.names.lost(memory.id, called(memory.subject, path, aliases))
    lost = [name for name in former if home.redactor.clean(name) == name]
    return replace(memory, extra={**memory.extra, ALIASES: [*aliases, *lost]}) if lost else memory
