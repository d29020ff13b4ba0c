"""Memories read in documents (Markdown, text) that were changed since."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.home.home import Home
from nacre.text.passages import words
from nacre.text.stems import stem
from nacre.transcripts import registry
from nacre.values.memory import Memory


def unsaid(home: Home) -> Iterator[str]:
    """The ids of active memories whose document lost the passage they were read in, and holds their words no more."""
    tools = [one.tool for one in registry.adapters() if one.guesses]
    found = home.reviews.unfounded(tools)
    for memory in home.memories.rows_of(found).values():
        if not _is_said(home, memory):
            yield memory.id


def _is_said(home: Home, memory: Memory) -> bool:
    """Whether every word of a memory stands in its document as it is now."""
    said: set[str] = set()
    for session in home.sessions.find(memory.source.session or ""):
        for item in home.sessions.turns_of(session.row):
            said.update(map(stem, words(item.turn.text)))
    return said.issuperset(map(stem, words(memory.content)))
