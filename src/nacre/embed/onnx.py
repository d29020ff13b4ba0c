"""Embedding by an ONNX model in a folder, offline, with ONNX Runtime.

Every text is run on its own. Two reasons: int8 models scale activations over the whole batch, so that in a
batch the vector of a text would depend on its neighbours; and without padding, a batch of one is as fast as a
batch of sixteen on processors, at a fraction of the memory. Texts run side by side in threads instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nacre.embed import minilm
from nacre.embed.wordpiece import WordPiece, is_wordpiece
from nacre.errors import EmbedderUnavailable
from nacre.platform.distribution import NO_VECTORS, install_hint
from nacre.platform.environment import turn_off_telemetry

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_CHARACTERS = 16_384  # far beyond 256 tokens: bounds the tokenizer's work on huge texts
_MOST_THREADS = 4
_RESTORE = (
    "The folder must hold model.onnx and tokenizer.json. If they are nacre's own, reinstall nacre; "
    "the lexical mode needs no model."
)


class OnnxEmbedder:
    """Turns texts into unit vectors. Safe to share between threads.

    The folder holds ``tokenizer.json`` and ``model.onnx``, a graph with the int64 inputs input_ids and
    attention_mask, both (texts, tokens), whose first output is unit vectors, float32 (texts, dimensions).
    At most ``threads`` texts run at once: by default as many as there are processors, up to four.

    Raises EmbedderUnavailable if the libraries or the files cannot be loaded.
    """

    name: str
    dimensions: int

    def __init__(self, folder: Path, *, name: str, threads: int | None = None) -> None:
        self.name = name
        self._threads = threads_for(threads)
        self._tokenizer = load_tokenizer(folder / "tokenizer.json", minilm.MAX_TOKENS)
        self._session = load_session(folder / "model.onnx")
        self.dimensions = self._session.get_outputs()[0].shape[-1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text, as rows of a float32 matrix (texts, dimensions).

        Texts are read up to 256 tokens. A text has the same vector whatever else is embedded with it.
        """
        return side_by_side(self._vector, texts, self.dimensions, self._threads)

    def _vector(self, text: str) -> NDArray[np.float32]:
        tokens = np.array([self._tokenizer.encode(readable(text)).ids], np.int64)
        inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        vector: NDArray[np.float32] = self._session.run(None, inputs)[0][0]
        return vector


def load_minilm(threads: int | None = None) -> OnnxEmbedder:
    """The bundled model. Raises EmbedderUnavailable."""
    return OnnxEmbedder(Path(minilm.__file__).parent, name=minilm.MODEL_NAME, threads=threads)


def threads_for(threads: int | None) -> int:
    """So many texts are embedded at once."""
    return threads or min(_MOST_THREADS, os.cpu_count() or 1)


def side_by_side(
    vector: Callable[[str], NDArray[np.float32]], texts: Sequence[str], dimensions: int, threads: int
) -> NDArray[np.float32]:
    """The vectors of texts as rows, each text run on its own, some at a time."""
    vectors = np.empty((len(texts), dimensions), np.float32)

    def fill(rows: Iterable[int]) -> None:
        for row in rows:
            vectors[row] = vector(texts[row])

    workers = min(threads, len(texts))
    if workers <= 1:
        fill(range(len(texts)))
        return vectors
    with ThreadPoolExecutor(workers, thread_name_prefix="nacre-embed") as pool:
        list(pool.map(fill, [range(first, len(texts), workers) for first in range(workers)]))
    return vectors


def readable(text: str) -> str:
    """The part of a text that can matter, with lone surrogates replaced: the tokenizer refuses them."""
    return text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


# onnxruntime and tokenizers are imported inside functions, against the house rule: they are extras, and slow to load.


def load_tokenizer(path: Path, tokens: int) -> WordPiece | Any:
    """A tokenizer that cuts at so many tokens and never pads: nacre's own where it does what the file asks for.

    Raises EmbedderUnavailable.
    """
    try:
        told = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _no_file(path, error) from error
    return WordPiece(told, tokens) if is_wordpiece(told) else load_any_tokenizer(path, tokens)


def load_any_tokenizer(path: Path, tokens: int) -> Any:
    """The same, of any kind and for pairs of texts, by the library. Raises EmbedderUnavailable."""
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra, and 30 ms
    except ImportError as error:
        raise EmbedderUnavailable(
            f"the tokenizer in {str(path.parent)!r} needs a library that is not installed: tokenizers",
            hint=install_hint("tokenizers"),
        ) from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # what tokenizers raises, for missing and bad files alike
        raise _no_file(path, error) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(tokens)
    return tokenizer


def load_session(path: Path, *, is_final: bool = True) -> Any:
    """A model that runs on one thread. A graph that is not final is simplified first. Raises EmbedderUnavailable."""
    turn_off_telemetry()
    try:
        import onnxruntime as runtime  # noqa: PLC0415 - an extra, and 120 ms
    except ImportError as error:
        raise EmbedderUnavailable(f"onnxruntime cannot be imported: {error}", hint=NO_VECTORS) from error
    options = runtime.SessionOptions()
    # One thread a run: the threads of ``embed`` work on different texts and never wait for each other.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph was written in its final form, and every length of text would get its own memory plan.
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_DISABLE_ALL if is_final else levels.ORT_ENABLE_EXTENDED
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the errors of onnxruntime have no other common base
        raise _no_file(path, error) from error


def _no_file(path: Path, error: Exception) -> EmbedderUnavailable:
    return EmbedderUnavailable(f"{path.name} in {str(path.parent)!r} cannot be loaded: {error}", hint=_RESTORE)
