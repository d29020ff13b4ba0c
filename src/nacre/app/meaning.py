"""The bundled embedding model as extraction's sense of what a statement means.

What extraction knows of meanings was learned with that model; another one may make the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from nacre.app.context import BUNDLED, Context
from nacre.errors import EmbedderUnavailable
from nacre.extract.meaning import Affinity, Meaning


def meaning_of(context: Context) -> Meaning | None:
    """Judges by the bundled embedding model, loaded with the first statement; ``None`` where vectors are off."""
    return None if context.settings["embedding.model"] == "none" else _ModelMeaning(context)


class _ModelMeaning:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._unavailable = False

    def affinities(self, texts: Sequence[str], language: str) -> Sequence[Affinity] | None:
        if self._unavailable:
            return None
        try:
            from nacre.extract.prototypes import load  # numpy takes 100 ms, which only this needs

            embedder = self._context.embedder_of(BUNDLED)
            learned = load(language, embedder.name)
            return learned.affinities(texts, embedder.embed(texts)) if learned else None
        except (EmbedderUnavailable, ImportError):
            self._unavailable = True  # the cue tables decide, and the vectors say what is missing
            return None
