"""Interfaces of exchangeable components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nacre.values.models import Capabilities, Completion, Prompt


class Embedder(Protocol):
    """A model that turns text into vectors."""

    name: str
    """Model and version. Vectors with different names are not comparable."""

    @property
    def dimensions(self) -> int:
        """Number of components in a vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a (texts, dimensions) matrix with one unit vector per text.

        Raises EmbedderUnavailableError.
        """


@runtime_checkable
class RemoteEmbedder(Protocol):
    """An embedder that can be slow, or treats questions and passages differently."""

    name: str
    step: int
    """Number of turns that one call should embed."""

    @property
    def dimensions(self) -> int:
        """Number of components in a vector, or 0 while unknown."""

    @property
    def tokens(self) -> int:
        """Number of tokens that the provider has counted so far, or 0 if it does not count."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages; see :class:`Embedder`."""

    def within(self, seconds: float, *, question: bool = False) -> Embedder:
        """Return this embedder with a time limit, for questions or passages."""

    def close(self) -> None:
        """Close all connections, including those of embedders returned by ``within``."""


@runtime_checkable
class CountedEmbedder(RemoteEmbedder, Protocol):
    """An embedder whose calls cost money or leave this machine."""

    def counted_by(self, meter: Any) -> Embedder:
        """Return this embedder with a meter that limits and records its calls.

        ``meter`` is a :class:`nacre.llm.embeddings.Meter`.
        """


class LanguageModel(Protocol):
    """A thread-safe model that answers prompts."""

    name: str
    """Name in the form ``provider:model``."""

    capabilities: Capabilities

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt within its time limit.

        Raises ModelUnavailableError, ModelRefusedError, BudgetSpentError.
        """

    def close(self) -> None:
        """Cancel running calls, which raise ModelUnavailableError, and close connections."""
