"""The seams: what the service layer needs from what can be exchanged. One to four methods each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nacre.values.models import Capabilities, Completion, Prompt


class Embedder(Protocol):
    """Turns texts into vectors."""

    name: str
    """Names model and version: vectors of different names never meet."""

    @property
    def dimensions(self) -> int:
        """Components of a vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text, as rows of a (texts, dimensions) matrix. Raises EmbedderUnavailable."""


@runtime_checkable
class RemoteEmbedder(Protocol):
    """An embedder that reads questions otherwise than passages, or that may take long to answer."""

    name: str
    step: int
    """So many turns at once suit it."""

    @property
    def dimensions(self) -> int:
        """Components of a vector; 0 as long as that is not known."""

    @property
    def tokens(self) -> int:
        """What a provider counted so far; 0 where nobody does."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See :class:`Embedder`; the texts are passages."""

    def within(self, seconds: float, *, question: bool = False) -> Embedder:
        """The same model, which answers within so many seconds or raises; for questions, where they are to be read."""

    def close(self) -> None:
        """Let go of connections, those of what ``within`` gave as well."""


@runtime_checkable
class CountedEmbedder(RemoteEmbedder, Protocol):
    """An embedder whose calls cost something, or leave this machine."""

    def counted_by(self, meter: Any) -> Embedder:
        """The same model, each call of which is told to a meter (:class:`nacre.llm.embeddings.Meter`)."""

    def size_of(self, texts: Sequence[str]) -> int:
        """About how many tokens are sent for some texts, rather too many."""


class Reranker(Protocol):
    """Reads a question and a text together, and says how well the one answers the other."""

    name: str

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """One number a text, the higher the better; only their order and distance count. Raises RerankerUnavailable."""


class LanguageModel(Protocol):
    """Answers prompts. Safe to share between threads. What retries, counts, keeps and records calls wraps another."""

    name: str
    """``provider:model``."""

    capabilities: Capabilities

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt, within its time. Raises ModelUnavailable, ModelRefused, BudgetSpent."""

    def close(self) -> None:
        """Cut off the calls that run, which raise ModelUnavailable, and let go of connections."""
