"""Embedding models that run on this machine."""

from __future__ import annotations

import os
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nacre.base import json as json_values
from nacre.base.environment import NO_VECTORS, turn_off_telemetry
from nacre.base.lazy import Module
from nacre.errors import EmbedderUnavailableError
from nacre.llm import minilm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Module("numpy")


# -- WordPiece tokenizer ---------------------------------------------------------------------------
# It produces the same tokens as the library ``tokenizers`` for the bundled model, from its ``tokenizer.json``. A text
# is split at literal special tokens, lowercased, stripped of accents, and split into words and symbols. Each word is
# replaced by the longest vocabulary pieces from its start, or by the unknown token. The library uses an older Unicode
# version, whose classes of characters are in ``characters.json`` (see ``scripts/write_characters.py``).


_WORDS = re.compile(r"[^ !-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")
"""Matches a word or an ASCII symbol. Other symbols are already surrounded by spaces."""

_MAX_CACHED_WORDS = 1 << 15


class _Page(msgspec.Struct, frozen=True):
    """The classes of characters in ``characters.json``, each as a list of ranges of code points.

    A range is stored as its distance from the end of the previous range, and its length.
    """

    dropped: list[int]
    """Accents and control characters."""
    space: list[int]
    apart: list[int]
    """Symbols and ideographs. Each is a word."""


class _Characters(dict[int, str]):
    def __init__(self, page: _Page) -> None:
        super().__init__()
        kinds = (("", page.dropped), (" ", page.space), (" {} ", page.apart))
        self._runs = sorted((*run, form) for form, numbers in kinds for run in _runs(numbers))
        self._starts = [start for start, *_ in self._runs]

    def __missing__(self, code: int) -> str:
        letters = unicodedata.normalize("NFD", chr(code))
        bare = "".join(letter for letter in letters if self._form(ord(letter)))
        self[code] = self._form(code).format(bare.lower())
        return self[code]

    def _form(self, code: int) -> str:
        _, end, form = self._runs[bisect_right(self._starts, code) - 1]
        return form if code < end else "{}"


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    places = list(accumulate(numbers))
    return zip(places[::2], places[1::2], strict=True)


class WordPiece:
    """A thread-safe tokenizer that truncates texts and does not pad them."""

    def __init__(self, config: Mapping[str, Any], max_tokens: int) -> None:
        """Build the tokenizer from the ``tokenizer.json`` of an uncased BERT model."""
        model = config["model"]
        self._vocabulary: dict[str, int] = model["vocab"]
        self._unknown = self._vocabulary[model["unk_token"]]
        self._prefix: str = model["continuing_subword_prefix"]
        self._longest: int = model["max_input_chars_per_word"]
        self._special: dict[str, int] = {
            token["content"]: token["id"] for token in config["added_tokens"]
        }
        self._at_special = re.compile(f"({'|'.join(map(re.escape, self._special))})")
        self._first, self._last = self._special["[CLS]"], self._special["[SEP]"]
        self._most = max_tokens
        self._characters = _characters()
        self._cached: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, including the special tokens around it."""
        return [self._first, *islice(self._tokens(text), self._most - 2), self._last]

    def _tokens(self, text: str) -> Iterator[int]:
        for part in self._at_special.split(text):
            if part in self._special:
                yield self._special[part]
                continue
            for match in _WORDS.finditer(part.translate(self._characters)):
                yield from self._cached.get(match[0]) or self._cut(match[0])

    def _cut(self, word: str) -> tuple[int, ...]:
        tokens = self._pieces(word) if len(word) <= self._longest else (self._unknown,)
        if len(self._cached) >= _MAX_CACHED_WORDS:
            self._cached = {}
        self._cached[word] = tokens
        return tokens

    def _pieces(self, word: str) -> tuple[int, ...]:
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = self._prefix if start else ""
            for end in range(len(word), start, -1):
                if (token := self._vocabulary.get(prefix + word[start:end])) is not None:
                    ids.append(token)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(ids)


@cache
def _characters() -> _Characters:
    page = Path(__file__).with_name("characters.json").read_bytes()
    return _Characters(json_values.decode(page, _Page))


# -- ONNX embedding models -------------------------------------------------------------------------
# Each text is run separately, in parallel threads. An int8 model scales activations over a batch, so a text's vector
# would depend on the other texts in the batch. Without padding, single texts are as fast on a CPU as batches of
# sixteen, and need a fraction of the memory.


_MAX_CHARACTERS = 16_384  # far beyond 256 tokens; limits the tokenizer's work on huge texts
_MAX_THREADS = 4
_RESTORE_HINT = "reinstall nacre; the lexical mode needs no model"


class OnnxEmbedder:
    """An ONNX model that computes unit vectors. It is thread-safe.

    The folder contains ``tokenizer.json`` and ``model.onnx``, whose inputs ``input_ids`` and
    ``attention_mask`` are int64 arrays (texts, tokens), and whose first output is a float32 array
    (texts, dimensions) of unit vectors. Raises EmbedderUnavailableError if the model cannot be
    loaded.
    """

    def __init__(self, folder: Path, *, name: str, threads: int | None = None) -> None:
        self.name = name
        self._threads = threads or min(_MAX_THREADS, os.cpu_count() or 1)
        path = folder / "tokenizer.json"
        try:
            config = msgspec.json.decode(path.read_bytes())
        except (OSError, ValueError) as error:
            raise _no_file(path, error) from error
        self._tokenizer = WordPiece(config, minilm.MAX_TOKENS)
        self._session = _load_session(folder / "model.onnx")
        self.dimensions = self._session.get_outputs()[0].shape[-1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a float32 matrix with the unit vector of each text as a row. Texts are truncated
        to 256 tokens.
        """
        vectors = np.empty((len(texts), self.dimensions), np.float32)

        def fill(rows: Iterable[int]) -> None:
            for row in rows:
                vectors[row] = self._vector(texts[row])

        workers = min(self._threads, len(texts))
        if workers <= 1:
            fill(range(len(texts)))
            return vectors
        with ThreadPoolExecutor(workers, thread_name_prefix="nacre-embed") as pool:
            list(pool.map(fill, [range(first, len(texts), workers) for first in range(workers)]))
        return vectors

    def _vector(self, text: str) -> NDArray[np.float32]:
        tokens = np.array([self._tokenizer.encode(_readable(text))], np.int64)
        inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        vector: NDArray[np.float32] = self._session.run(None, inputs)[0][0]
        return vector


def load_minilm(threads: int | None = None) -> OnnxEmbedder:
    """Load the bundled model. Raises EmbedderUnavailableError if that fails."""
    return OnnxEmbedder(Path(minilm.__file__).parent, name=minilm.MODEL_NAME, threads=threads)


def _readable(text: str) -> str:
    """Return the start of a text without lone surrogates, which tokenizers reject."""
    return text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _load_session(path: Path) -> Any:
    turn_off_telemetry()
    try:
        import onnxruntime as runtime  # noqa: PLC0415 - an extra, and 120 ms
    except ImportError as error:
        raise EmbedderUnavailableError(
            f"onnxruntime cannot be imported: {error}", hint=NO_VECTORS
        ) from error
    options = runtime.SessionOptions()
    # Each run uses one thread, so that the threads of ``embed`` do not wait for each other.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph is already optimized, and every text length would get its own memory plan.
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the errors of onnxruntime have no other common base
        raise _no_file(path, error) from error


def _no_file(path: Path, error: Exception) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        f"{path.name} in {str(path.parent)!r} cannot be loaded: {error}", hint=_RESTORE_HINT
    )
