"""How providers are asked for vectors, a format each."""

from __future__ import annotations

import copy
import re
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from nacre.errors import (
    EmbedderUnavailable,
    ModelRefused,
    ModelUnavailable,
    NacreError,
    PromptTooLong,
)
from nacre.llm import failures
from nacre.llm.api import body_of, plain_client, post
from nacre.llm.credentials import credential_for, provider_of
from nacre.llm.failures import Calls, CallTarget
from nacre.llm.providers import own_price
from nacre.settings import Settings
from nacre.values.models import Call

if TYPE_CHECKING:
    from numpy.typing import NDArray


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

    def request(
        self, asked: CallTarget, wanted: Wanted
    ) -> tuple[str, dict[str, Any], dict[str, str]]:
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

    def request(
        self, asked: CallTarget, wanted: Wanted
    ) -> tuple[str, dict[str, Any], dict[str, str]]:
        """Dimensions are named only where some were asked for: not every server knows the word."""
        body: dict[str, Any] = {
            "model": asked.model,
            "input": list(wanted.texts),
            "encoding_format": "float",
        }
        if wanted.dimensions:
            body["dimensions"] = wanted.dimensions
        return "/embeddings", body, _bearer(asked)

    def given(self, answer: _Vectors) -> Given:
        """Vectors by their index, where one is told."""
        found = sorted(answer.data, key=lambda one: one.index or 0)
        return Given(
            [one.embedding for one in found], answer.usage.total_tokens if answer.usage else 0
        )


class Voyage(OpenAI):
    """Voyage AI's ``POST /embeddings``, which is told what a text is for."""

    def request(
        self, asked: CallTarget, wanted: Wanted
    ) -> tuple[str, dict[str, Any], dict[str, str]]:
        """As OpenAI's, with names of its own."""
        body: dict[str, Any] = {
            "model": asked.model,
            "input": list(wanted.texts),
            "truncation": True,
            "input_type": "query" if wanted.is_question else "document",
        }
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

    def request(
        self, asked: CallTarget, wanted: Wanted
    ) -> tuple[str, dict[str, Any], dict[str, str]]:
        """A request for each text."""
        purpose = "RETRIEVAL_QUERY" if wanted.is_question else "RETRIEVAL_DOCUMENT"
        more: dict[str, Any] = (
            {"outputDimensionality": wanted.dimensions} if wanted.dimensions else {}
        )
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


# ----------------------------------------------------------------------------
# Vectors by the embedding models of providers and of every server that is compatible with OpenAI's.


AT_ONCE = 3
"""So many calls run side by side (seed facts 1.1)."""

STEP_TURNS = 600
"""What an interruption may lose: a few batches."""

BATCH_TOKENS = 60_000
"""Of one call, well below what any provider takes."""

_BYTES_A_TOKEN = 3
_TRIES = 5
"""Rather too few: four characters of English make a token, and one of Chinese, whose three bytes they are."""

_DIMENSIONS = re.compile(r"(.+)@(\d+)")
_ANOTHER = "choose another model: nacre embed switch provider:model"


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of an embedding model (``embeddings.toml``)."""

    dimensions: int = 0
    window: int = 512
    price: Decimal | None = None
    passage: str = ""
    question: str = ""


def traits_of(model: str) -> Traits:
    """What is known of a model by its name; little of one that is not listed."""
    bare = model.lower().rpartition("/")[2].partition(":")[0]
    for names, traits in _listed():
        if any(fnmatchcase(bare, name) for name in names):
            return traits
    return Traits()


@cache
def _listed() -> list[tuple[list[str], Traits]]:
    tables = tomllib.loads(
        (files("nacre.llm") / "embeddings.toml").read_text("utf-8"), parse_float=Decimal
    )["model"]
    return [(table.pop("names"), Traits(**table)) for table in tables]


def open_embedder(settings: Settings, name: str) -> RemoteEmbedder:
    """The embedding model ``provider:model`` or ``provider:model@dimensions``. Nothing is sent yet.

    Raises EmbedderUnavailable where the provider is unknown, its library is missing, or there is no key.
    """
    try:
        asked, dimensions = _describe(settings, name)
        if asked.provider.needs_key and asked.credential is None:
            raise failures.no_key(asked)
        return RemoteEmbedder(asked, dimensions, seconds=settings.number("models.timeout_seconds"))
    except ModelRefused as error:
        raise _unavailable(error) from error


@dataclass(frozen=True, slots=True)
class Destination:
    """Where texts go for their vectors, and what a million tokens cost; ``None`` where that is not known.

    ``model`` is the name that their vectors have. ``is_local``: nothing says that they go on from this machine.
    """

    model: str
    host: str
    is_here: bool
    is_local: bool
    price: Decimal | None


def destination(settings: Settings, name: str) -> Destination:
    """Where the texts go that ``provider:model`` embeds; needs no key and no library. Raises EmbedderUnavailable."""
    try:
        asked, dimensions = _describe(settings, name)
        told = own_price(settings, asked.provider, asked.model)
    except ModelRefused as error:
        raise _unavailable(error) from error
    is_local = asked.is_here and not asked.provider.needs_key
    listed = Decimal(0) if asked.provider.free else traits_of(asked.model).price
    price = next(
        (one for one in (told, listed) if one is not None), Decimal(0) if is_local else None
    )
    return Destination(_vectors_of(asked, dimensions), asked.host, asked.is_here, is_local, price)


def _vectors_of(asked: CallTarget, dimensions: int) -> str:
    return f"{asked.name}@{dimensions}" if dimensions else asked.name


class Meter(Protocol):
    """Hears of each call before and after it is made. Calls come from threads."""

    def begin(self, tokens: int) -> Call:
        """A call with about so many tokens. Raises EmbedderUnavailable where it is not to be made."""

    def end(self, call: Call, tokens: int, seconds: float) -> None:
        """It was answered, for so many tokens."""

    def fail(self, call: Call, tokens: int, seconds: float) -> None:
        """It was not; so many tokens may be charged all the same."""


@dataclass
class _Shared:
    """What a model and those that ``within`` and ``counted_by`` give of it have in common."""

    dimensions: int
    tokens: int = 0
    calls: Calls = field(default_factory=Calls)
    lock: Lock = field(default_factory=Lock)


def tokens_of(text: str) -> int:
    """About how many tokens a text has, rather too many."""
    return len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN + 1


def _describe(settings: Settings, name: str) -> tuple[CallTarget, int]:
    provider_name, _, model = name.partition(":")
    provider = provider_of(settings, provider_name)
    if provider.api not in ("openai", "chat", "embeddings"):
        raise ModelRefused(f"{provider.label} has no embedding models", hint=_ANOTHER)
    if sized := _DIMENSIONS.fullmatch(model):
        model, size = sized[1], int(sized[2])
    else:
        size = traits_of(model).dimensions
    return CallTarget(
        provider, model, credential_for(settings, provider_name), traits_of(model).window
    ), size


class RemoteEmbedder:
    """Turns texts into unit vectors by calls to a provider. Safe to share between threads.

    Texts go in batches (200 at most, less where a provider takes less), three at a time; each is cut to the model's
    window. A call that fails for now is made again, up to five times within ``seconds``. ``dimensions`` is 0 until the
    first answer where the model decides on it. ``tokens`` counts what was used, as told by the provider.
    Raises ModelRefused where httpx2 is missing.
    """

    step = STEP_TURNS

    def __init__(self, asked: CallTarget, dimensions: int = 0, *, seconds: float = 120.0) -> None:
        self.name = _vectors_of(asked, dimensions)
        self.host = asked.host
        self.is_here = asked.is_here
        self.traits = traits_of(asked.model)
        self._asked = asked
        self._wanted_dimensions = dimensions
        self._seconds = seconds
        self._tries = _TRIES
        self._is_question = False
        self._shared = _Shared(dimensions)
        self._meter: Meter | None = None
        self._wire = wire_of(asked.provider.name)
        self._url = self._wire.base(asked.provider.base_url).rstrip("/")
        self._client = plain_client(asked)

    @property
    def dimensions(self) -> int:
        """Components of a vector; 0 as long as that is not known."""
        return self._shared.dimensions

    @property
    def tokens(self) -> int:
        """What was used so far."""
        return self._shared.tokens

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text, as rows of a float32 matrix (texts, dimensions). Raises EmbedderUnavailable."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        batches = list(self._batches([self._prepared(text) for text in texts]))
        try:
            found = [self._batch(batches[0])] if len(batches) == 1 else self._side_by_side(batches)
            return np.concatenate(found)
        except (ModelUnavailable, ModelRefused) as error:
            raise _unavailable(error) from error

    def within(self, seconds: float, *, question: bool = False) -> RemoteEmbedder:
        """The same model, asked once, which answers within so many seconds or raises; for questions, where they are."""
        other = copy.copy(self)
        other._seconds = seconds
        other._tries = 1
        other._is_question = question
        return other

    def counted_by(self, meter: Meter) -> RemoteEmbedder:
        """The same model, each call of which is told to a meter."""
        other = copy.copy(self)
        other._meter = meter
        return other

    def size_of(self, texts: Sequence[str]) -> int:
        """About how many tokens are sent for some texts, rather too many."""
        return sum(tokens_of(self._prepared(text)) for text in texts)

    def close(self) -> None:
        """Cut off the calls that run, and let go of connections."""
        self._shared.calls.close()
        self._client.close()

    def _prepared(self, text: str) -> str:
        """A text as it is sent: with what the model wants before it, whole characters, not longer than its window."""
        prefix = self.traits.question if self._is_question else self.traits.passage
        raw = f"{prefix}{text}".encode("utf-8", "replace")[: self.traits.window * _BYTES_A_TOKEN]
        return raw.decode("utf-8", "ignore").strip() or "."  # some refuse a text without letters

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
        failed = Event()

        def unless_failed(batch: list[str]) -> NDArray[np.float32]:
            if failed.is_set():  # seen here at once, by whoever waits for the first of them later
                raise CancelledError
            try:
                return self._batch(batch)
            except BaseException:
                failed.set()
                raise

        try:
            return list(pool.map(unless_failed, batches))
        except BaseException:
            self._shared.calls.close()  # what still runs is of no use
            self._shared.calls = Calls()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _batch(self, texts: list[str]) -> NDArray[np.float32]:
        """The vectors of one batch; texts that are too long for the model together or alone are made less."""
        try:
            return self._unit(self._again(texts), len(texts))
        except PromptTooLong:
            if len(texts) > 1:
                half = len(texts) // 2
                return np.concatenate([self._batch(texts[:half]), self._batch(texts[half:])])
            if len(texts[0]) < 2:
                raise
            return self._batch([texts[0][: len(texts[0]) // 2]])

    def _again(self, texts: list[str]) -> Given:
        calls, end = self._shared.calls, time.monotonic() + self._seconds
        for number in range(1, self._tries + 1):
            try:
                return self._ask(calls, texts, end - time.monotonic())
            except ModelUnavailable as error:
                wait = 2.0**number if error.after_seconds is None else error.after_seconds
                is_last = number == self._tries or not error.retry
                if is_last or time.monotonic() + wait >= end or calls.closed.wait(wait):
                    raise
        raise AssertionError("the last try returns or raises")

    def _ask(self, calls: Calls, texts: list[str], seconds: float) -> Given:
        wanted = Wanted(texts, self._wanted_dimensions, self._is_question)
        path, body, headers = self._wire.request(self._asked, wanted)
        sent = sum(tokens_of(text) for text in texts)
        call, began = self._meter.begin(sent) if self._meter else None, time.monotonic()
        try:
            response = post(
                calls, self._asked, self._client, f"{self._url}{path}", body, headers, seconds
            )
            given = self._wire.given(body_of(self._asked, response, self._wire.answer))
        except NacreError as error:
            if self._meter and call:
                may_cost = isinstance(error, ModelUnavailable) and error.may_cost
                self._meter.fail(call, sent if may_cost else 0, time.monotonic() - began)
            raise
        used = given.tokens or sent
        if self._meter and call:
            self._meter.end(call, used, time.monotonic() - began)
        with self._shared.lock:
            self._shared.tokens += used
        return given

    def _unit(self, given: Given, count: int) -> NDArray[np.float32]:
        """The vectors as unit rows. Raises ModelUnavailable for what cannot be used."""
        sizes = {len(vector) for vector in given.vectors}
        if len(given.vectors) != count or len(sizes) != 1 or sizes == {0}:
            raise self._unusable(
                f"gave {len(given.vectors)} vectors for {count} texts, of {len(sizes)} sizes"
            )
        size = sizes.pop()
        if self.dimensions not in (0, size):
            raise self._unusable(
                f"gave vectors of {size} numbers, where {self.dimensions} were asked for"
            )
        with np.errstate(all="ignore"):  # what is too large for a float is refused below
            vectors = np.array(given.vectors, np.float32)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or (lengths < 1e-12).any():
            raise self._unusable("gave a vector that has no direction")
        self._shared.dimensions = size
        unit: NDArray[np.float32] = vectors / lengths
        return unit

    def _unusable(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(f"{self._asked.name} {what}", hint=_ANOTHER, retry=False)


def _unavailable(error: NacreError) -> EmbedderUnavailable:
    hint = (error.hint or "").replace(failures.ANOTHER, _ANOTHER)
    return EmbedderUnavailable(error.message, hint=hint or None)
