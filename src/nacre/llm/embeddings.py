"""Providers' embedding models: request formats and the client."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from nacre.errors import (
    EmbedderUnavailableError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    PromptTooLongError,
)
from nacre.llm import failures
from nacre.llm.api import body_of, plain_client, post
from nacre.llm.credentials import credential_for, provider_of
from nacre.llm.failures import Calls, CallTarget
from nacre.llm.providers import Traits, own_price, traits_of
from nacre.settings import Settings
from nacre.values.models import Place

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Vector(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Usage(msgspec.Struct):
    total_tokens: int = 0


class _Vectors(msgspec.Struct):
    data: list[_Vector]
    usage: _Usage | None = None


Request = tuple[str, dict[str, Any], dict[str, str]]
"""A request's path, body and authentication headers."""


class OpenAI:
    """The embeddings API of OpenAI and compatible servers."""

    most = 200
    """Maximum number of texts per call."""

    answer: type[msgspec.Struct] = _Vectors
    """Type of the response body."""

    def base(self, url: str) -> str:
        """Return the base address for embeddings, given the provider's address."""
        return url

    def request(
        self, target: CallTarget, texts: Sequence[str], dimensions: int, *, is_question: bool
    ) -> Request:
        """Build a request. It omits ``dimensions`` if it is 0, because some servers reject it."""
        body: dict[str, Any] = {
            "model": target.model,
            "input": list(texts),
            **self.options(is_question=is_question),
        }
        if dimensions:
            body[self.size] = dimensions
        key = target.credential
        return "/embeddings", body, {"authorization": f"Bearer {key.secret}"} if key else {}

    size = "dimensions"

    def options(self, *, is_question: bool) -> dict[str, Any]:  # noqa: ARG002 - for Voyage
        """Return the provider's additional request fields."""
        return {"encoding_format": "float"}

    def vectors_in(self, answer: Any) -> tuple[list[list[float]], int]:
        """Return the vectors in the order of the texts, and the number of tokens, 0 if unknown."""
        vectors = sorted(answer.data, key=lambda vector: vector.index or 0)
        used = answer.usage.total_tokens if answer.usage else 0
        return [vector.embedding for vector in vectors], used


class Voyage(OpenAI):
    """Voyage AI's embeddings API, which distinguishes questions from passages."""

    size = "output_dimension"

    def options(self, *, is_question: bool) -> dict[str, Any]:
        return {"truncation": True, "input_type": "query" if is_question else "document"}


class _Values(msgspec.Struct):
    values: list[float]


class _Embeddings(msgspec.Struct):
    embeddings: list[_Values]


class Gemini(OpenAI):
    """Gemini's ``batchEmbedContents`` API, which distinguishes questions from passages."""

    most = 100
    answer: type[msgspec.Struct] = _Embeddings

    def base(self, url: str) -> str:
        """Return the address of Gemini's own API, given its OpenAI-compatible address."""
        return url.rstrip("/").removesuffix("/openai")

    def request(
        self, target: CallTarget, texts: Sequence[str], dimensions: int, *, is_question: bool
    ) -> Request:
        """Build a request."""
        purpose = "RETRIEVAL_QUERY" if is_question else "RETRIEVAL_DOCUMENT"
        more: dict[str, Any] = {"outputDimensionality": dimensions} if dimensions else {}
        name = f"models/{target.model}"
        requests = [
            {"model": name, "content": {"parts": [{"text": text}]}, "taskType": purpose, **more}
            for text in texts
        ]
        key = {"x-goog-api-key": target.credential.secret} if target.credential else {}
        return f"/{name}:batchEmbedContents", {"requests": requests}, key

    def vectors_in(self, answer: Any) -> tuple[list[list[float]], int]:
        """Return the vectors in the order of the texts, and 0 for the unknown number of tokens."""
        return [embedding.values for embedding in answer.embeddings], 0


_WIRES: dict[str, OpenAI] = {"voyage": Voyage(), "gemini": Gemini()}


# -- Embeddings by a provider ----------------------------------------------------------------------


AT_ONCE = 3
"""Number of concurrent calls."""

STEP_TURNS = 600
"""Number of turns to embed in one step, so that an interruption loses only a few batches."""

BATCH_TOKENS = 60_000
"""Number of tokens per call, well below every provider's limit."""

_BYTES_PER_TOKEN = 3
"""Estimated bytes per token, on the low side. English tokens have about four, Chinese tokens three."""

_MAX_TRIES = 5

_DIMENSIONS = re.compile(r"(.+)@(\d+)")
_CHOOSE_ANOTHER_HINT = "choose another model: nacre writer embedding provider:model"


def open_embedder(settings: Settings, name: str) -> RemoteEmbedder:
    """Open the embedding model ``provider:model`` or ``provider:model@dimensions``. Sends nothing.

    Raises EmbedderUnavailableError if the provider is unknown or its key is missing.
    """
    try:
        target, traits = _describe(settings, name)
        if target.provider.needs_key and target.credential is None:
            raise failures.no_key(target)
        return RemoteEmbedder(target, traits, settings.number("models.timeout_seconds"))
    except ModelRefusedError as error:
        raise _unavailable(error) from error


def place_at(settings: Settings, name: str) -> Place:
    """Return the host and the price of the embedding model ``provider:model``. No key is needed."""
    try:
        target, traits = _describe(settings, name)
        own = own_price(settings, target.provider, target.model)
    except ModelRefusedError as error:
        raise _unavailable(error) from error
    provider = target.provider
    is_local = provider.is_here and not provider.needs_key
    listed = Decimal(0) if provider.free else traits.price
    price = next(
        (amount for amount in (own, listed) if amount is not None), Decimal(0) if is_local else None
    )
    return Place(target.host, provider.is_here, is_local, price, _vectors_of(target, traits))


def _vectors_of(target: CallTarget, traits: Traits) -> str:
    return f"{target.name}@{traits.dimensions}" if traits.dimensions else target.name


@dataclass
class Usage:
    """The number of tokens in a call, estimated until the provider reports it."""

    tokens: int


class Meter(Protocol):
    """A thread-safe object that limits and records calls."""

    def check(self, tokens: int, *, is_question: bool) -> None:
        """Raise EmbedderHeldError if the limit does not allow sending this many tokens."""

    def count(self, tokens: int, *, is_question: bool) -> AbstractContextManager[Usage]:
        """Record a call. Raises EmbedderUnavailableError if the limit does not allow it."""


@dataclass
class _Shared:
    dimensions: int
    tokens: int = 0
    calls: Calls = field(default_factory=Calls)
    lock: Lock = field(default_factory=Lock)


def tokens_of(text: str) -> int:
    """Estimate the number of tokens in a text, erring on the high side."""
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1


def _describe(settings: Settings, name: str) -> tuple[CallTarget, Traits]:
    provider_name, _, model = name.partition(":")
    provider = provider_of(settings, provider_name)
    if provider.api not in ("openai", "chat", "embeddings"):
        raise ModelRefusedError(
            f"{provider.label} has no embedding models", hint=_CHOOSE_ANOTHER_HINT
        )
    sized = _DIMENSIONS.fullmatch(model)
    model = sized[1] if sized else model
    traits = traits_of(model)
    if sized:
        traits = replace(traits, dimensions=int(sized[2]))
    credential = credential_for(settings, provider_name)
    return CallTarget(provider, model, credential, traits.window), traits


class RemoteEmbedder:
    """A provider's embedding model, which returns unit vectors. It is thread-safe.

    Texts longer than the model's window are cut. ``seconds`` limits each call, including up to four
    retries after temporary failures.
    """

    step = STEP_TURNS

    def __init__(self, target: CallTarget, traits: Traits, seconds: float) -> None:
        self.name = _vectors_of(target, traits)
        self._traits = traits
        self._target = target
        self._seconds = seconds
        self._tries = _MAX_TRIES
        self._is_question = False
        self._shared = _Shared(traits.dimensions)
        self._meter: Meter | None = None
        self._wire = _WIRES.get(target.provider.name) or OpenAI()
        self._url = self._wire.base(target.provider.base_url).rstrip("/")
        self._client = plain_client(target)

    @property
    def dimensions(self) -> int:
        """Number of components in a vector, which can be 0 before the first call."""
        return self._shared.dimensions

    @property
    def tokens(self) -> int:
        """Number of tokens used so far, as reported by the provider."""
        return self._shared.tokens

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a float32 matrix with the unit vector of each text as a row.

        Raises EmbedderUnavailableError if a call fails.
        """
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        prepared = [self._prepared(text) for text in texts]
        if self._meter:
            self._meter.check(sum(map(tokens_of, prepared)), is_question=self._is_question)
        batches = list(self._batches(prepared))
        try:
            parts = [self._batch(batches[0])] if len(batches) == 1 else self._side_by_side(batches)
            return np.concatenate(parts)
        except (ModelUnavailableError, ModelRefusedError) as error:
            raise _unavailable(error) from error

    def within(self, seconds: float, *, question: bool = False) -> RemoteEmbedder:
        """Return a copy that gives up after one attempt of at most ``seconds``.

        With ``question``, the copy embeds texts as questions.
        """
        copied = copy.copy(self)
        copied._seconds = seconds
        copied._tries = 1
        copied._is_question = question
        return copied

    def counted_by(self, meter: Meter) -> RemoteEmbedder:
        """Return a copy whose calls are limited and recorded by ``meter``."""
        other = copy.copy(self)
        other._meter = meter
        return other

    def close(self) -> None:
        """Cancel all calls and close the connections."""
        self._shared.calls.close()
        self._client.close()

    def _prepared(self, text: str) -> str:
        traits = self._traits
        prefix = traits.question if self._is_question else traits.passage
        raw = f"{prefix}{text}".encode("utf-8", "replace")[: traits.window * _BYTES_PER_TOKEN]
        return (
            raw.decode("utf-8", "ignore").strip() or "."
        )  # some models refuse a text without letters

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            tokens = tokens_of(text)
            if batch and (len(batch) == self._wire.most or size + tokens > BATCH_TOKENS):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += tokens
        yield batch

    def _side_by_side(self, batches: Sequence[list[str]]) -> list[NDArray[np.float32]]:
        pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nacre-embed")
        try:
            futures = [pool.submit(self._batch, batch) for batch in batches]
            for future in as_completed(futures):
                future.result()  # raises the first failure
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._shared.calls.close()  # the running calls are no longer needed
            self._shared.calls = Calls()
            raise
        finally:
            pool.shutdown(wait=False)

    def _batch(self, texts: list[str]) -> NDArray[np.float32]:
        try:
            return self._unit(self._again(texts), len(texts))
        except PromptTooLongError:
            if len(texts) > 1:
                half = len(texts) // 2
                return np.concatenate([self._batch(texts[:half]), self._batch(texts[half:])])
            if len(texts[0]) < 2:
                raise
            return self._batch([texts[0][: len(texts[0]) // 2]])

    def _again(self, texts: list[str]) -> list[list[float]]:
        calls, end = self._shared.calls, time.monotonic() + self._seconds
        number = 1
        while True:
            try:
                return self._ask(calls, texts, end - time.monotonic())
            except ModelUnavailableError as error:
                wait = 2.0**number if error.after_seconds is None else error.after_seconds
                is_last = number == self._tries or not error.retry
                if is_last or time.monotonic() + wait >= end or calls.closed.wait(wait):
                    raise
            number += 1

    def _ask(self, calls: Calls, texts: list[str], seconds: float) -> list[list[float]]:
        path, body, headers = self._wire.request(
            self._target, texts, self._traits.dimensions, is_question=self._is_question
        )
        sent = sum(tokens_of(text) for text in texts)
        meter = self._meter
        with (
            meter.count(sent, is_question=self._is_question) if meter else nullcontext(Usage(sent))
        ) as usage:
            response = post(
                calls, self._target, self._client, f"{self._url}{path}", body, headers, seconds
            )
            vectors, used = self._wire.vectors_in(
                body_of(self._target, response, self._wire.answer)
            )
            usage.tokens = used or sent
        with self._shared.lock:
            self._shared.tokens += usage.tokens
        return vectors

    def _unit(self, rows: list[list[float]], count: int) -> NDArray[np.float32]:
        sizes = {len(vector) for vector in rows}
        if len(rows) != count or len(sizes) != 1 or sizes == {0}:
            raise self._unusable(
                f"returned {len(rows)} vectors for {count} texts, of {len(sizes)} sizes"
            )
        size = sizes.pop()
        if self.dimensions not in (0, size):
            raise self._unusable(f"returned {size} dimensions instead of {self.dimensions}")
        with np.errstate(all="ignore"):  # values too large for a float are rejected below
            vectors = np.array(rows, np.float32)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or (lengths < 1e-12).any():
            raise self._unusable("returned a zero vector")
        self._shared.dimensions = size
        unit: NDArray[np.float32] = vectors / lengths
        return unit

    def _unusable(self, problem: str) -> ModelUnavailableError:
        return ModelUnavailableError(
            f"{self._target.name} {problem}", hint=_CHOOSE_ANOTHER_HINT, retry=False
        )


def _unavailable(error: NacreError) -> EmbedderUnavailableError:
    hint = (error.hint or "").replace(failures.ANOTHER, _CHOOSE_ANOTHER_HINT)
    return EmbedderUnavailableError(error.message, hint=hint or None)
