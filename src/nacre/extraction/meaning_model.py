"""The bundled embedding model as extraction's sense of what a statement means.

What extraction knows of meanings was learned with that model; another one may make the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.errors import EmbedderUnavailable
from nacre.extraction.reading.meaning import Affinity, Meaning
from nacre.home.home import BUNDLED, Home
from nacre.platform.lazy import Module
from nacre.spending.embedders import embedder_of

if TYPE_CHECKING:
    from nacre.extraction import prototypes
else:
    prototypes = Module("nacre.extraction.prototypes")


def meaning_of(home: Home) -> Meaning | None:
    """Judges by the bundled embedding model, loaded with the first statement; ``None`` where vectors are off."""
    return None if home.settings.text("embedding.model") == "none" else _ModelMeaning(home)


class _ModelMeaning:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._unavailable = False

    def affinities(self, texts: Sequence[str], language: str) -> Sequence[Affinity] | None:
        if self._unavailable:
            return None
        try:
            embedder = embedder_of(self._home, BUNDLED)
            learned = prototypes.load(language, embedder.name)
            return learned.affinities(texts, embedder.embed(texts)) if learned else None
        except (EmbedderUnavailable, ImportError):
            self._unavailable = True  # the cue tables decide, and the vectors say what is missing
            return None
