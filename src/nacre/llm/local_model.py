"""Embedding and reranking models that run on this machine."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from nacre.base import json as json_values
from nacre.base.environment import NO_VECTORS, install_hint, turn_off_telemetry
from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.errors import EmbedderUnavailableError, RerankerUnavailableError
from nacre.llm import minilm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Module("numpy")


# -- WordPiece tokenizer ---------------------------------------------------------------------------
# It produces the same tokens as the library ``tokenizers`` for BERT's uncased models, from their ``tokenizer.json``. A
# text is split at literal special tokens, lowercased, stripped of accents, and split into words and symbols. Each word
# is replaced by the longest vocabulary pieces from its start, or by the unknown token. The library uses an older
# Unicode version, whose properties of characters are in ``characters.json`` (see ``scripts/write_characters.py``).


_WORDS = re.compile(r"[^ !-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")
"""Matches a word or an ASCII symbol. Other symbols are already surrounded by spaces."""

_MAX_CACHED_WORDS = 1 << 15
_MAX_CACHED_CHARACTERS = 1 << 15
_SYLLABLES = range(0xAC00, 0xD7A4)
"""Hangul syllables. All Unicode versions decompose them in the same way."""

_BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "lowercase": True,
}


@frozen
class Encoded:
    """The tokens of a text, including the special tokens before and after it."""

    ids: list[int]

    @property
    def attention_mask(self) -> list[int]:
        """The attention mask, which contains only ones because nothing is padded."""
        return [1] * len(self.ids)

    @property
    def type_ids(self) -> list[int]:
        """The token types, which are all zero because there is only one text."""
        return [0] * len(self.ids)


class _Page(msgspec.Struct, frozen=True):
    """The character table in ``characters.json``. Characters outside the table stay unchanged.

    Each list contains ranges of code points. A range is stored as the distance from the end of the
    previous range, and the length of the range.
    """

    dropped: list[int]
    space: list[int]
    apart: list[int]
    """Symbols and ideographs. Each is a word."""

    becomes: dict[str, str]


class _Characters(dict[int, str]):
    """The replacement for each character, for ``str.translate``."""

    def __init__(self, page: _Page) -> None:
        super().__init__()
        self._becomes = page.becomes
        kinds = (("", page.dropped), (" ", page.space), (" {} ", page.apart))
        self._runs = sorted((*run, form) for form, numbers in kinds for run in _runs(numbers))
        self._starts = [start for start, *_ in self._runs]
        self.update({code: self._look_up(code) for code in range(128)})

    def __missing__(self, code: int) -> str:
        form = self._look_up(code)
        if len(self) < _MAX_CACHED_CHARACTERS:
            self[code] = form
        return form

    def _look_up(self, code: int) -> str:
        own = self._becomes.get(chr(code), chr(code))
        if code in _SYLLABLES:
            return unicodedata.normalize("NFD", own)
        if 0 < code < 128 and not own.isalnum() and own.isprintable():
            return own  # words are always split here
        _, end, form = self._runs[bisect_right(self._starts, code) - 1]
        return form.format(own) if code < end else own


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and end (exclusive) of each run."""
    places = list(accumulate(numbers))
    return zip(places[::2], places[1::2], strict=True)


class WordPiece:
    """A tokenizer that truncates and does not pad. Thread-safe."""

    def __init__(self, config: Mapping[str, Any], max_tokens: int) -> None:
        """Build the tokenizer from a ``tokenizer.json`` that :func:`is_wordpiece` accepts."""
        model = config["model"]
        self._vocabulary: dict[str, int] = model["vocab"]
        self._unknown = self._vocabulary[model["unk_token"]]
        self._prefix: str = model["continuing_subword_prefix"]
        self._longest: int = model["max_input_chars_per_word"]
        self._special: dict[str, int] = {
            token["content"]: token["id"] for token in config["added_tokens"]
        }
        longest_first = sorted(self._special, key=len, reverse=True)
        self._at_special = (
            re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None
        )
        (self._first, self._last), self._most = (
            _frame(config["post_processor"]) or (0, 0),
            max_tokens,
        )
        self._characters = _characters()
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> Encoded:
        """Return the tokens for a text."""
        ids = [self._first]
        room = self._most - 1
        for part in self._at_special.split(text) if self._at_special else (text,):
            if len(ids) >= room:
                break
            if part in self._special:
                ids.append(self._special[part])
            else:
                self._add(part, ids, room)
        del ids[room:]
        ids.append(self._last)
        return Encoded(ids)

    def _add(self, text: str, ids: list[int], room: int) -> None:
        cache = self._known
        for match in _WORDS.finditer(text.translate(self._characters)):
            word = match[0]
            ids += cache.get(word) or self._cut(word)
            if len(ids) >= room:
                return

    def _cut(self, word: str) -> tuple[int, ...]:
        tokens = self._pieces(word) if len(word) <= self._longest else (self._unknown,)
        if len(self._known) >= _MAX_CACHED_WORDS:
            self._known = {}
        self._known[word] = tokens
        return tokens

    def _pieces(self, word: str) -> tuple[int, ...]:
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = self._prefix if start else ""
            ends = range(len(word), start, -1)
            end, token = next(
                (
                    (end, token)
                    for end in ends
                    if (token := self._vocabulary.get(prefix + word[start:end])) is not None
                ),
                (0, 0),
            )
            if not end:
                return (self._unknown,)
            ids.append(token)
            start = end
        return tuple(ids)


def is_wordpiece(config: Any) -> bool:
    """Return True if :class:`WordPiece` supports everything in a ``tokenizer.json``."""
    try:
        model, normalizer, added = config["model"], config["normalizer"], config["added_tokens"]
        return bool(
            model["type"] == "WordPiece"
            and model["unk_token"] in model["vocab"]
            and isinstance(model["continuing_subword_prefix"], str)
            and isinstance(model["max_input_chars_per_word"], int)
            and {name: normalizer.get(name) for name in _BERT} == _BERT
            and normalizer.get("strip_accents") in (None, True)
            and config["pre_tokenizer"] == {"type": "BertPreTokenizer"}
            and _frame(config["post_processor"]) is not None
            and all(_is_plain(token) for token in added)
        )
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return False


def _is_plain(token: Mapping[str, Any]) -> bool:
    """Return True if a special token is recognised wherever its exact text occurs."""
    return bool(token["content"]) and not any(
        token[name] for name in ("single_word", "lstrip", "rstrip", "normalized")
    )


def _frame(processor: Any) -> tuple[int, int] | None:
    """Return the ids of the tokens that enclose a text, or ``None`` for an unsupported format."""
    if processor["type"] == "BertProcessing":
        return processor["cls"][1], processor["sep"][1]
    if processor["type"] != "TemplateProcessing":
        return None
    before, text, after = processor["single"]
    around = (before["SpecialToken"], after["SpecialToken"])
    if text != {"Sequence": {"id": "A", "type_id": 0}} or any(token["type_id"] for token in around):
        return None
    first, last = chain.from_iterable(
        processor["special_tokens"][token["id"]]["ids"] for token in around
    )
    return first, last


@cache
def _characters() -> _Characters:
    page = Path(__file__).with_name("characters.json").read_bytes()
    return _Characters(json_values.parse_json_tree(page, _Page))


# -- ONNX embedding models -------------------------------------------------------------------------
# Each text is run separately, in parallel threads. An int8 model scales activations over a batch, so a text's vector
# would depend on the other texts in the batch. Without padding, single texts are as fast on a CPU as batches of
# sixteen, and need a fraction of the memory.


_MAX_CHARACTERS = 16_384  # far beyond 256 tokens; limits the tokenizer's work on huge texts
_MAX_THREADS = 4
_RESTORE_HINT = (
    "The folder must hold model.onnx and tokenizer.json. If they are nacre's own, reinstall nacre; "
    "the lexical mode needs no model."
)


class OnnxEmbedder:
    """An ONNX model that computes unit vectors. Thread-safe.

    The folder contains ``tokenizer.json`` and ``model.onnx``. The graph has two inputs, input_ids
    and attention_mask, which are int64 arrays of the shape (texts, tokens). The first output
    contains unit vectors, as a float32 array of the shape (texts, dimensions). Up to ``threads``
    texts are processed in parallel. The default is the number of processors, up to four. Raises
    EmbedderUnavailableError if the libraries or the files cannot be loaded.
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
        """Return one unit vector per text, as rows of a float32 matrix (texts, dimensions).

        Texts are truncated to 256 tokens. A text's vector does not depend on the other texts.
        """
        return side_by_side(self._vector, texts, self.dimensions, self._threads)

    def _vector(self, text: str) -> NDArray[np.float32]:
        tokens = np.array([self._tokenizer.encode(readable(text)).ids], np.int64)
        inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        vector: NDArray[np.float32] = self._session.run(None, inputs)[0][0]
        return vector


def load_minilm(threads: int | None = None) -> OnnxEmbedder:
    """Load the bundled model. Raises EmbedderUnavailableError."""
    return OnnxEmbedder(Path(minilm.__file__).parent, name=minilm.MODEL_NAME, threads=threads)


def threads_for(threads: int | None) -> int:
    """Return how many texts to embed in parallel."""
    return threads or min(_MAX_THREADS, os.cpu_count() or 1)


def side_by_side(
    vector: Callable[[str], NDArray[np.float32]],
    texts: Sequence[str],
    dimensions: int,
    threads: int,
) -> NDArray[np.float32]:
    """Return texts' vectors as rows. Each text is run separately, in parallel threads."""
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
    """Return the start of a text without lone surrogates, which tokenizers reject."""
    return text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


# onnxruntime and tokenizers are imported inside functions, because they are optional and slow to load.


def load_tokenizer(path: Path, tokens: int) -> WordPiece | Any:
    """Load a tokenizer that truncates texts and adds no padding.

    nacre's own tokenizer is used if it supports the file. Raises EmbedderUnavailableError.
    """
    try:
        config = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _no_file(path, error) from error
    return WordPiece(config, tokens) if is_wordpiece(config) else load_any_tokenizer(path, tokens)


def load_any_tokenizer(path: Path, tokens: int) -> Any:
    """Load a tokenizer of any kind, also for pairs of texts, with the library ``tokenizers``.

    Raises EmbedderUnavailableError.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra, and 30 ms
    except ImportError as error:
        raise EmbedderUnavailableError(
            f"the tokenizer in {str(path.parent)!r} needs the library tokenizers, which is not installed",
            hint=install_hint("tokenizers"),
        ) from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain exceptions for missing and bad files
        raise _no_file(path, error) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(tokens)
    return tokenizer


def load_session(path: Path, *, is_final: bool = True) -> Any:
    """Load an ONNX graph. Each run of the graph uses one thread.

    The graph is optimized unless ``is_final`` says that this was already done. Raises
    EmbedderUnavailableError.
    """
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
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_DISABLE_ALL if is_final else levels.ORT_ENABLE_EXTENDED
    )
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


# -- Reranking by a cross-encoder ------------------------------------------------------------------
# nacre includes no cross-encoder. The user provides a folder with one.


_RERANKER_TOKENS = 256
_RERANKER_HINT = "the folder must hold model.onnx and tokenizer.json of a cross-encoder; or: nacre config set recall.reranker none"  # noqa: E501


class OnnxReranker:
    """A reranker that scores pairs of a question and a text.

    The folder contains ``tokenizer.json`` and ``model.onnx``. The graph has the inputs input_ids,
    attention_mask and optionally token_type_ids. All inputs are int64 arrays of the shape (pairs,
    tokens). The first output contains one or two logits per pair. The last logit is the score.
    Pairs are truncated to 256 tokens. Raises RerankerUnavailableError.
    """

    name: str

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        try:
            self._tokenizer = load_any_tokenizer(folder / "tokenizer.json", _RERANKER_TOKENS)
            self._session = load_session(folder / "model.onnx")
        except EmbedderUnavailableError as error:
            hint = error.hint if isinstance(error.__cause__, ImportError) else _RERANKER_HINT
            raise RerankerUnavailableError(f"no reranker: {error.message}", hint=hint) from error
        self._inputs = {tensor.name for tensor in self._session.get_inputs()}

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text. Higher is better."""
        return [self._score(question, text) for text in texts]

    def _score(self, question: str, text: str) -> float:
        encoded = self._tokenizer.encode(readable(question), readable(text))
        inputs = _inputs_of(encoded, self._inputs)
        try:
            return float(np.ravel(self._session.run(None, inputs)[0])[-1])
        except Exception as error:  # the errors of onnxruntime have no other common base
            raise RerankerUnavailableError(
                f"{self.name} cannot score: {error}", hint=_RERANKER_HINT
            ) from error


def _inputs_of(encoded: Any, names: set[str]) -> dict[str, NDArray[np.int64]]:
    every = {
        "input_ids": encoded.ids,
        "attention_mask": encoded.attention_mask,
        "token_type_ids": encoded.type_ids,
        "position_ids": range(len(encoded.ids)),
    }
    return {
        name: np.array([list(values)], np.int64) for name, values in every.items() if name in names
    }


# -- Embedding models in a folder ------------------------------------------------------------------
# The folder was exported by sentence-transformers or has an options file.


OPTIONS = "nacre-embedding.toml"
_GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
_STEP_TURNS = 128
_DEFAULT_TOKENS = 512
_MAX_TOKENS = 8_192
_SAMPLE_BYTES = 1 << 20
_EMBEDDER_HINT = (
    f"the folder must hold model.onnx and tokenizer.json; docs/embeddings.md describes {OPTIONS}"
)
Pooling = Literal["mean", "cls", "last", "none"]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options for computing vectors with an ONNX graph.

    If ``pooling`` is ``none``, the graph itself outputs one vector per text.
    """

    model: str = ""
    pooling: Pooling | None = None
    tokens: int = 0
    passage: str = ""
    question: str = ""


def load_folder(folder: Path) -> FolderEmbedder:
    """Load the model in a folder. Raises EmbedderUnavailableError."""
    if not folder.is_absolute():
        raise EmbedderUnavailableError(f"onnx:{folder} is not an absolute path", hint="onnx:/path")
    return FolderEmbedder(folder)


class FolderEmbedder:
    """An embedder that computes unit vectors with an ONNX graph in a folder. Thread-safe.

    The folder contains ``tokenizer.json`` and ``model.onnx`` (or ``onnx/model.onnx``). The graph
    has the input input_ids and optionally attention_mask, token_type_ids and position_ids. All
    inputs are int64 arrays of the shape (texts, tokens). The graph outputs one vector per text or
    one vector per token. The vectors of tokens are pooled, by default to their mean. Pooling and
    prefixes are set in ``nacre-embedding.toml``, or in the files of sentence-transformers. The name
    includes a hash of the files, because different files produce different vectors. Raises
    EmbedderUnavailableError.
    """

    step = _STEP_TURNS
    tokens = 0

    def __init__(self, folder: Path) -> None:
        graph, options = _found(folder)
        self.name = f"onnx:{folder.name}#{_fingerprint(folder, graph, options)}"
        self._options = options
        self._prefix = options.passage
        self._threads = threads_for(None)
        tokens = min(options.tokens or _DEFAULT_TOKENS, _MAX_TOKENS)
        self._tokenizer = load_tokenizer(folder / "tokenizer.json", tokens)
        self._session = load_session(graph, is_final=False)
        self._inputs = {tensor.name for tensor in self._session.get_inputs()}
        outputs = self._session.get_outputs()
        self._output = next((tensor for tensor in outputs if len(tensor.shape) == 2), outputs[0])
        self.dimensions = len(self._vector("a"))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, as rows of a float32 matrix (texts, dimensions).

        Raises EmbedderUnavailableError.
        """
        return side_by_side(self._vector, texts, self.dimensions, self._threads)

    def within(self, seconds: float, *, question: bool = False) -> FolderEmbedder:  # noqa: ARG002 - it is fast
        """Return a copy of this embedder that adds the prefix for questions or passages."""
        copied = copy.copy(self)
        copied._prefix = self._options.question if question else self._options.passage
        return copied

    def close(self) -> None:
        """Do nothing."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        encoded = self._tokenizer.encode(self._prefix + readable(text))
        inputs = _inputs_of(encoded, self._inputs)
        try:
            output = np.asarray(self._session.run([self._output.name], inputs)[0], np.float32)
        except Exception as error:  # the errors of onnxruntime have no other common base
            raise EmbedderUnavailableError(
                f"{self.name} cannot embed: {error}", hint=_EMBEDDER_HINT
            ) from error
        vector = output[0] if output.ndim == 2 else self._pooled(output[0])
        length = float(np.linalg.norm(vector))
        if vector.ndim != 1 or not np.isfinite(length) or length < 1e-12:
            raise EmbedderUnavailableError(
                f"{self.name} returned a zero vector", hint=_EMBEDDER_HINT
            )
        unit: NDArray[np.float32] = vector / length
        return unit

    def _pooled(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        if self._options.pooling == "cls":
            pooled: NDArray[np.float32] = states[0]
        elif self._options.pooling == "last":
            pooled = states[-1]
        else:
            pooled = states.mean(axis=0)
        return pooled


def _found(folder: Path) -> tuple[Path, Options]:
    if not folder.is_dir():
        raise EmbedderUnavailableError(
            f"there is no folder {str(folder)!r} with an embedding model", hint=_EMBEDDER_HINT
        )
    options = _options(folder)
    names = (options.model,) if options.model else _GRAPHS
    graph = next((folder / name for name in names if (folder / name).is_file()), None)
    if graph is None:
        raise EmbedderUnavailableError(
            f"there is no {names[0]} in {str(folder)!r}", hint=_EMBEDDER_HINT
        )
    return graph, options


def _options(folder: Path) -> Options:
    try:
        own = (folder / OPTIONS).read_text(encoding="utf-8")
    except FileNotFoundError:
        return _of_sentence_transformers(folder)
    except (OSError, UnicodeDecodeError) as error:
        raise EmbedderUnavailableError(
            f"{OPTIONS} in {str(folder)!r} cannot be read: {error}", hint=_EMBEDDER_HINT
        ) from error
    try:
        return json_values.convert(tomllib.loads(own), Options)
    except (ValueError, RecursionError) as error:
        raise EmbedderUnavailableError(
            f"{OPTIONS} in {str(folder)!r} is invalid: {error}", hint=_EMBEDDER_HINT
        ) from error


def _of_sentence_transformers(folder: Path) -> Options:
    pooling = _json(folder / "1_Pooling" / "config.json")
    poolings: tuple[tuple[str, Pooling], ...] = (
        ("pooling_mode_cls_token", "cls"),
        ("pooling_mode_lasttoken", "last"),
        ("pooling_mode_mean_tokens", "mean"),
    )
    pooling_name: Pooling | None = next(
        (name for key, name in poolings if pooling.get(key) is True), None
    )
    tokens = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    prefixes: Mapping[str, Any] = prompts if isinstance(prompts, dict) else {}
    return Options(
        pooling=pooling_name,
        tokens=tokens if isinstance(tokens, int) else 0,
        passage=str(prefixes.get("document") or prefixes.get("passage") or ""),
        question=str(prefixes.get("query") or ""),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _fingerprint(folder: Path, graph: Path, options: Options) -> str:
    """Return a hash of the options, the tokenizer and the graph.

    Of large files, only the size, start, middle and end are hashed.
    """
    digest = hashlib.blake2b(repr(options).encode(), digest_size=4)
    weights = sorted(graph.parent.glob(f"{graph.name}?data"))  # weights can be in a separate file
    for path in (folder / "tokenizer.json", graph, *weights):
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                for at in sorted(
                    {0, max(0, size // 2 - _SAMPLE_BYTES // 2), max(0, size - _SAMPLE_BYTES)}
                ):
                    file.seek(at)
                    digest.update(file.read(_SAMPLE_BYTES))
        except OSError as error:
            raise EmbedderUnavailableError(
                f"{path.name} in {str(folder)!r} cannot be read: {error}", hint=_EMBEDDER_HINT
            ) from error
        digest.update(str(size).encode())
    return digest.hexdigest()
