"""The embedding models of a home, each of which is sent texts only as far as the owner allows."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.protocols import CountedEmbedder, Embedder
from nacre.spending import embedding_consent


def configured_embedder(home: Home) -> Embedder:
    """The embedding model that the settings name, loaded on first use. Raises EmbedderUnavailable."""
    return embedder_of(home, home.settings.text("embedding.model"))


def embedder_in_use(home: Home) -> Embedder:
    """The model that made the vectors in use, else the configured one. Raises EmbedderUnavailable."""
    return embedder_of(home, home.vectors.setting() or home.settings.text("embedding.model"))


def embedder_of(home: Home, name: str) -> Embedder:
    """The embedding model of a name, as the settings have it. Raises EmbedderUnavailable."""
    embedder = home.loaded_embedder(name)
    if not isinstance(embedder, CountedEmbedder):
        return embedder

    return embedding_consent.Guarded(home, name, embedder)
