"""How providers are asked for vectors, a format each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from nacre.llm.failures import CallTarget


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one call is to give. ``dimensions`` is 0 where the model decides."""

    texts: Sequence[str]
    dimensions: int
    is_question: bool


@dataclass(frozen=True, slots=True)
class Given:
    """Vectors in the order of the texts, and the tokens that they took, where the provider tells."""

    vectors: list[list[float]]
    tokens: int = 0


class Wire(Protocol):
    """One format."""

    most: int
    """So many texts a call takes."""

    answer: type[msgspec.Struct]
    """What it answers."""

    def base(self, url: str) -> str:
        """Where embeddings are, by the address of the provider."""

    def request(self, asked: CallTarget, wanted: Wanted) -> tuple[str, dict[str, Any], dict[str, str]]:
        """Path, body, and the headers that sign in."""

    def given(self, answer: Any) -> Given:
        """What came."""


class _Vector(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Usage(msgspec.Struct):
    total_tokens: int = 0


class _Vectors(msgspec.Struct):
    data: list[_Vector]
    usage: _Usage | None = None


class OpenAI:
    """``POST /embeddings``, as OpenAI and all that are compatible with it have it."""

    most = 200
    answer: type[msgspec.Struct] = _Vectors

    def base(self, url: str) -> str:
        """The address itself."""
        return url

    def request(self, asked: CallTarget, wanted: Wanted) -> tuple[str, dict[str, Any], dict[str, str]]:
        """Dimensions are named only where some were asked for: not every server knows the word."""
        body: dict[str, Any] = {"model": asked.model, "input": list(wanted.texts), "encoding_format": "float"}
        if wanted.dimensions:
            body["dimensions"] = wanted.dimensions
        return "/embeddings", body, _bearer(asked)

    def given(self, answer: _Vectors) -> Given:
        """Vectors by their index, where one is told."""
        found = sorted(answer.data, key=lambda one: one.index or 0)
        return Given([one.embedding for one in found], answer.usage.total_tokens if answer.usage else 0)


class Voyage(OpenAI):
    """Voyage AI's ``POST /embeddings``, which is told what a text is for."""

    def request(self, asked: CallTarget, wanted: Wanted) -> tuple[str, dict[str, Any], dict[str, str]]:
        """As OpenAI's, with names of its own."""
        body: dict[str, Any] = {
            "model": asked.model, "input": list(wanted.texts), "truncation": True,
            "input_type": "query" if wanted.is_question else "document",
        }  # fmt: skip
        if wanted.dimensions:
            body["output_dimension"] = wanted.dimensions
        return "/embeddings", body, _bearer(asked)


class _Values(msgspec.Struct):
    values: list[float]


class _Embeddings(msgspec.Struct):
    embeddings: list[_Values]


class Gemini:
    """Gemini's ``batchEmbedContents``, which is told what a text is for; its compatible endpoint is not."""

    most = 100
    answer: type[msgspec.Struct] = _Embeddings

    def base(self, url: str) -> str:
        """Beside the compatible endpoint."""
        return url.rstrip("/").removesuffix("/openai")

    def request(self, asked: CallTarget, wanted: Wanted) -> tuple[str, dict[str, Any], dict[str, str]]:
        """A request for each text."""
        purpose = "RETRIEVAL_QUERY" if wanted.is_question else "RETRIEVAL_DOCUMENT"
        more: dict[str, Any] = {"outputDimensionality": wanted.dimensions} if wanted.dimensions else {}
        name = f"models/{asked.model}"
        requests = [
            {"model": name, "content": {"parts": [{"text": text}]}, "taskType": purpose, **more}
            for text in wanted.texts
        ]
        key = {"x-goog-api-key": asked.credential.secret} if asked.credential else {}
        return f"/{name}:batchEmbedContents", {"requests": requests}, key

    def given(self, answer: _Embeddings) -> Given:
        """In the order of the requests."""
        return Given([one.values for one in answer.embeddings])


def _bearer(asked: CallTarget) -> dict[str, str]:
    return {"authorization": f"Bearer {asked.credential.secret}"} if asked.credential else {}


def wire_of(provider: str) -> Wire:
    """The format of a provider, by its name."""
    return _WIRES.get(provider, _OPENAI)


_OPENAI: Wire = OpenAI()
_WIRES: dict[str, Wire] = {"voyage": Voyage(), "gemini": Gemini()}
