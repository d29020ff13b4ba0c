"""What the cosines of an embedding model mean: all numbers that belong to one model, from ``calibration.toml``."""

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
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from nacre.base import json as json_values
from nacre.base.environment import NO_VECTORS, install_hint, turn_off_telemetry
from nacre.errors import EmbedderUnavailable, RerankerUnavailable
from nacre.llm import minilm

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNKNOWN = "unknown"
_BUNDLED = "minilm-l6-v2-int8"
_BUNDLED_SEES = (0.0563, 0.7256)
"""How the bundled model sees the probes."""

Seen = tuple[float, float]
"""The mean cosine of the probes' questions to passages of others, and to their own."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Cosines of one model.

    A question and a passage: ``unrelated`` is what chance alone gives, ``related`` a plain restatement. Two statements:
    from ``link`` on a link is worth making, from ``same`` on they may say the same. From ``ask`` on a language model is
    asked what the two are to each other, from ``ask_more`` on where much is to be asked. A reply from ``used`` on holds
    a memory; what an agent stored from ``corrected`` on says it anew.

    ``reads_unspaced``: the model reads scripts without spaces. Of one that nobody measured it is taken to be so.
    """

    unrelated: float
    related: float
    link: float
    same: float
    used: float
    corrected: float
    ask: float = 0.72
    ask_more: float = 0.62
    reads_unspaced: bool = True

    def meaning(self, cosine: float) -> float:
        """The cosine of a question and a passage on one scale for all models: ``unrelated`` is 0, ``related`` 1."""
        return (cosine - self.unrelated) / (self.related - self.unrelated)


def is_measured(model: str) -> bool:
    """Whether a model has a table."""
    return model in _tables()


@cache
def probes() -> tuple[tuple[str, str], ...]:
    """Questions, each with a passage that answers it and none of the others."""
    written = tomllib.loads(Path(__file__).with_name("probes.toml").read_text(encoding="utf-8"))
    return tuple((question, passage) for question, passage in written["pairs"])


def seen_by(questions: NDArray[np.float32], passages: NDArray[np.float32]) -> Seen:
    """How a model sees the probes, by their unit vectors."""
    cosines = questions @ passages.T
    own = float(cosines.trace()) / len(cosines)
    others = (float(cosines.sum()) - float(cosines.trace())) / (cosines.size - len(cosines))
    return others, own


@cache
def calibration_of(model: str | None, seen: Seen | None = None) -> Calibration:
    """The calibration of a model by the name of its vectors.

    Of one that nobody measured, by how it sees the probes: the bundled model's numbers, moved to where that model sees
    them. Without that, the table ``unknown``.
    """
    tables = _tables()
    if model in tables:
        return Calibration(**tables[model])
    if seen is None or not -1 < seen[0] < seen[1] < 1:
        return Calibration(**tables[_UNKNOWN])
    cosines = {
        name: value for name, value in tables[_BUNDLED].items() if not isinstance(value, bool)
    }
    moved: dict[str, Any] = {name: _moved(value, seen) for name, value in cosines.items()}
    return Calibration(**moved)


def _moved(cosine: float, seen: Seen) -> float:
    """A cosine of the bundled model as one of a model that sees the probes so; 1 stays 1."""
    (chance, restated), (own_chance, own_restated) = seen, _BUNDLED_SEES
    if cosine <= own_restated:
        return chance + (cosine - own_chance) * (restated - chance) / (own_restated - own_chance)
    return restated + (cosine - own_restated) * (1 - restated) / (1 - own_restated)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = tomllib.loads(
        Path(__file__).with_name("calibration.toml").read_text("utf-8")
    )
    return found


# ----------------------------------------------------------------------------
# WordPiece as BERT's uncased models have it, from their ``tokenizer.json``: the tokens of the library
# ``tokenizers``.
#
# A text is cut at the special tokens that it spells out, made lower case and bare of accents,
# character by character, and
# cut into words and signs. A word becomes the longest pieces of the vocabulary that make it up from
# its start, or the
# unknown token. What becomes of a character is in ``characters.json``, which
# ``scripts/write_characters.py`` wrote: the
# library knows an older Unicode than Python does, and vectors depend on it.


_WORDS = re.compile(r"[^ !-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")
"""In a text whose other signs stand between spaces."""

_MOST_KNOWN_WORDS = 1 << 15
_MOST_KNOWN_CHARACTERS = 1 << 15
_SYLLABLES = range(0xAC00, 0xD7A4)
"""Hangul, whose letters every Unicode knows."""

_BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "lowercase": True,
}


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as tokens, those that frame it included."""

    ids: list[int]

    @property
    def attention_mask(self) -> list[int]:
        """Nothing is padded."""
        return [1] * len(self.ids)

    @property
    def type_ids(self) -> list[int]:
        """One text, not two."""
        return [0] * len(self.ids)


class _Page(msgspec.Struct, frozen=True):
    """What ``characters.json`` holds; characters that it does not name stay as they are.

    Numbers are runs of code points: how many lie between the run before and this one, then how many are in it.
    """

    dropped: list[int]
    space: list[int]
    apart: list[int]
    """Signs and ideographs, which are words by themselves."""

    becomes: dict[str, str]


class _Characters(dict[int, str]):
    """What becomes of each character, as ``str.translate`` asks for it."""

    def __init__(self, page: _Page) -> None:
        super().__init__()
        self._becomes = page.becomes
        kinds = (("", page.dropped), (" ", page.space), (" {} ", page.apart))
        self._runs = sorted((*run, form) for form, numbers in kinds for run in _runs(numbers))
        self._starts = [start for start, *_ in self._runs]
        self.update({code: self._look_up(code) for code in range(128)})

    def __missing__(self, code: int) -> str:
        found = self._look_up(code)
        if len(self) < _MOST_KNOWN_CHARACTERS:
            self[code] = found
        return found

    def _look_up(self, code: int) -> str:
        own = self._becomes.get(chr(code), chr(code))
        if code in _SYLLABLES:
            return unicodedata.normalize("NFD", own)
        if 0 < code < 128 and not own.isalnum() and own.isprintable():
            return own  # the words are cut there anyway
        _, end, form = self._runs[bisect_right(self._starts, code) - 1]
        return form.format(own) if code < end else own


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where each run starts, and where the first code point after it is."""
    places = list(accumulate(numbers))
    return zip(places[::2], places[1::2], strict=True)


class WordPiece:
    """A tokenizer that cuts at so many tokens and never pads. Safe to share between threads."""

    def __init__(self, told: Mapping[str, Any], most: int) -> None:
        """From what ``tokenizer.json`` says, where :func:`is_wordpiece` holds."""
        model = told["model"]
        self._vocabulary: dict[str, int] = model["vocab"]
        self._unknown = self._vocabulary[model["unk_token"]]
        self._prefix: str = model["continuing_subword_prefix"]
        self._longest: int = model["max_input_chars_per_word"]
        self._special: dict[str, int] = {
            token["content"]: token["id"] for token in told["added_tokens"]
        }
        longest_first = sorted(self._special, key=len, reverse=True)
        self._at_special = (
            re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None
        )
        (self._first, self._last), self._most = _frame(told["post_processor"]) or (0, 0), most
        self._characters = _characters()
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> Encoded:
        """The tokens of a text."""
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
        known = self._known
        for match in _WORDS.finditer(text.translate(self._characters)):
            word = match[0]
            ids += known.get(word) or self._cut(word)
            if len(ids) >= room:
                return

    def _cut(self, word: str) -> tuple[int, ...]:
        found = self._pieces(word) if len(word) <= self._longest else (self._unknown,)
        if len(self._known) >= _MOST_KNOWN_WORDS:
            self._known = {}
        self._known[word] = found
        return found

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


def is_wordpiece(told: Any) -> bool:
    """Whether a ``tokenizer.json`` asks for this tokenizer, and nothing that it does not do."""
    try:
        model, normalizer, added = told["model"], told["normalizer"], told["added_tokens"]
        return bool(
            model["type"] == "WordPiece"
            and model["unk_token"] in model["vocab"]
            and isinstance(model["continuing_subword_prefix"], str)
            and isinstance(model["max_input_chars_per_word"], int)
            and {name: normalizer.get(name) for name in _BERT} == _BERT
            and normalizer.get("strip_accents") in (None, True)
            and told["pre_tokenizer"] == {"type": "BertPreTokenizer"}
            and _frame(told["post_processor"]) is not None
            and all(_is_plain(token) for token in added)
        )
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return False


def _is_plain(token: Mapping[str, Any]) -> bool:
    """Whether a token stands for its own words, wherever a text has them."""
    return bool(token["content"]) and not any(
        token[name] for name in ("single_word", "lstrip", "rstrip", "normalized")
    )


def _frame(told: Any) -> tuple[int, int] | None:
    """The tokens before and after a text; ``None`` where it is framed otherwise."""
    if told["type"] == "BertProcessing":
        return told["cls"][1], told["sep"][1]
    if told["type"] != "TemplateProcessing":
        return None
    before, text, after = told["single"]
    around = (before["SpecialToken"], after["SpecialToken"])
    if text != {"Sequence": {"id": "A", "type_id": 0}} or any(one["type_id"] for one in around):
        return None
    first, last = chain.from_iterable(told["special_tokens"][one["id"]]["ids"] for one in around)
    return first, last


@cache
def _characters() -> _Characters:
    page = Path(__file__).with_name("characters.json").read_bytes()
    return _Characters(json_values.parse_json_values(page, _Page))


# ----------------------------------------------------------------------------
# Embedding by an ONNX model in a folder, offline, with ONNX Runtime.
#
# Every text is run on its own. Two reasons: int8 models scale activations over the whole batch, so
# that in a
# batch the vector of a text would depend on its neighbours; and without padding, a batch of one is as
# fast as a
# batch of sixteen on processors, at a fraction of the memory. Texts run side by side in threads
# instead.


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
    vector: Callable[[str], NDArray[np.float32]],
    texts: Sequence[str],
    dimensions: int,
    threads: int,
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
        raise EmbedderUnavailable(
            f"onnxruntime cannot be imported: {error}", hint=NO_VECTORS
        ) from error
    options = runtime.SessionOptions()
    # One thread a run: the threads of ``embed`` work on different texts and never wait for each other.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph was written in its final form, and every length of text would get its own memory plan.
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


def _no_file(path: Path, error: Exception) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"{path.name} in {str(path.parent)!r} cannot be loaded: {error}", hint=_RESTORE
    )


# ----------------------------------------------------------------------------
# A cross-encoder from a local folder, if somebody has one. nacre ships none.


_TOKENS = 256
_HINT = "the folder must hold model.onnx and tokenizer.json of a cross-encoder; or: nacre config set recall.reranker none"  # noqa: E501


class OnnxReranker:
    """Scores pairs of question and text.

    The folder holds ``tokenizer.json`` and ``model.onnx``, a graph with the int64 inputs input_ids, attention_mask and
    perhaps token_type_ids, all (pairs, tokens), whose first output is one logit a pair, or two of which the second
    speaks for the text. Pairs are read up to 256 tokens. Raises RerankerUnavailable.
    """

    name: str

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        try:
            self._tokenizer = load_any_tokenizer(folder / "tokenizer.json", _TOKENS)
            self._session = load_session(folder / "model.onnx")
        except EmbedderUnavailable as error:
            hint = error.hint if isinstance(error.__cause__, ImportError) else _HINT
            raise RerankerUnavailable(f"no reranker: {error.message}", hint=hint) from error
        self._inputs = {found.name for found in self._session.get_inputs()}

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One number a text, the higher the better."""
        return [self._score(question, text) for text in texts]

    def _score(self, question: str, text: str) -> float:
        encoded = self._tokenizer.encode(readable(question), readable(text))
        every = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        inputs = {
            name: np.array([values], np.int64)
            for name, values in every.items()
            if name in self._inputs
        }
        try:
            return float(np.ravel(self._session.run(None, inputs)[0])[-1])
        except Exception as error:  # the errors of onnxruntime have no other common base
            raise RerankerUnavailable(f"{self.name} cannot score: {error}", hint=_HINT) from error


# ----------------------------------------------------------------------------
# An ONNX embedding model in a folder of the owner's, as sentence-transformers exports it or with a
# page of options.


OPTIONS = "nacre-embedding.toml"
_GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
_STEP_TURNS = 128
_TOKENS_FOLDER = 512
_MOST_TOKENS = 8_192
_SAMPLE = 1 << 20
_HINT_FOLDER = f"the folder must hold model.onnx and tokenizer.json; docs/embeddings.md tells what {OPTIONS} may say"
Pooling = Literal["mean", "cls", "last", "none"]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a graph is used. ``none`` is the pooling of a graph whose output is one vector a text already."""

    model: str = ""
    pooling: Pooling | None = None
    tokens: int = 0
    passage: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    graph: Path
    options: Options


def load_folder(folder: Path, threads: int | None = None) -> FolderEmbedder:
    """The model of a folder. Raises EmbedderUnavailable."""
    if not folder.is_absolute():
        raise EmbedderUnavailable(
            f"onnx:{folder} is no whole path", hint="onnx:/path/to/the/folder"
        )
    return FolderEmbedder(folder, threads=threads)


class FolderEmbedder:
    """Turns texts into unit vectors by an ONNX graph in a folder. Safe to share between threads.

    The folder holds ``tokenizer.json`` and ``model.onnx`` (or ``onnx/model.onnx``), a graph with the int64 inputs
    input_ids and perhaps attention_mask, token_type_ids and position_ids, all (texts, tokens). Its output is a vector a
    text, or one a token, which are pooled. How, and what goes before a text, say ``nacre-embedding.toml``, else what
    sentence-transformers wrote; else it is the mean. The name holds a hash of the files: others make other vectors.
    Raises EmbedderUnavailable.
    """

    step = _STEP_TURNS
    tokens = 0

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        found = _found(folder)
        self.name = f"onnx:{folder.name}#{_fingerprint(folder, found)}"
        self._options = found.options
        self._prefix = found.options.passage
        self._threads = threads_for(threads)
        tokens = min(found.options.tokens or _TOKENS_FOLDER, _MOST_TOKENS)
        self._tokenizer = load_tokenizer(folder / "tokenizer.json", tokens)
        self._session = load_session(found.graph, is_final=False)
        self._inputs = {one.name for one in self._session.get_inputs()}
        outputs = self._session.get_outputs()
        self._output = next((one for one in outputs if len(one.shape) == 2), outputs[0])
        self.dimensions = len(self._vector("a"))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text, as rows of a float32 matrix (texts, dimensions). Raises EmbedderUnavailable."""
        return side_by_side(self._vector, texts, self.dimensions, self._threads)

    def within(self, seconds: float, *, question: bool = False) -> FolderEmbedder:  # noqa: ARG002 - it is quick
        """The same model, for questions where they are."""
        other = copy.copy(self)
        other._prefix = self._options.question if question else self._options.passage
        return other

    def close(self) -> None:
        """Nothing is held that others wait for."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        encoded = self._tokenizer.encode(self._prefix + readable(text))
        every = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
            "position_ids": range(len(encoded.ids)),
        }
        inputs = {
            name: np.array([list(values)], np.int64)
            for name, values in every.items()
            if name in self._inputs
        }
        try:
            found = np.asarray(self._session.run([self._output.name], inputs)[0], np.float32)
        except Exception as error:  # the errors of onnxruntime have no other common base
            raise EmbedderUnavailable(
                f"{self.name} cannot embed: {error}", hint=_HINT_FOLDER
            ) from error
        vector = found[0] if found.ndim == 2 else self._pooled(found[0])
        length = float(np.linalg.norm(vector))
        if vector.ndim != 1 or not np.isfinite(length) or length < 1e-12:
            raise EmbedderUnavailable(
                f"{self.name} gave a vector that has no direction", hint=_HINT_FOLDER
            )
        unit: NDArray[np.float32] = vector / length
        return unit

    def _pooled(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """One vector of those of all tokens; none of them is padding."""
        if self._options.pooling == "cls":
            pooled: NDArray[np.float32] = states[0]
        elif self._options.pooling == "last":
            pooled = states[-1]
        else:
            pooled = states.mean(axis=0)
        return pooled


def _found(folder: Path) -> _Found:
    if not folder.is_dir():
        raise EmbedderUnavailable(
            f"there is no folder {str(folder)!r} with an embedding model", hint=_HINT_FOLDER
        )
    options = _options(folder)
    names = (options.model,) if options.model else _GRAPHS
    graph = next((folder / name for name in names if (folder / name).is_file()), None)
    if graph is None:
        raise EmbedderUnavailable(f"{names[0]} is missing in {str(folder)!r}", hint=_HINT_FOLDER)
    return _Found(graph, options)


def _options(folder: Path) -> Options:
    """What ``nacre-embedding.toml`` says, else the files of sentence-transformers."""
    try:
        own = (folder / OPTIONS).read_text(encoding="utf-8")
    except FileNotFoundError:
        return _of_sentence_transformers(folder)
    except (OSError, UnicodeDecodeError) as error:
        raise EmbedderUnavailable(
            f"{OPTIONS} in {str(folder)!r} cannot be read: {error}", hint=_HINT_FOLDER
        ) from error
    try:
        return json_values.convert(tomllib.loads(own), Options)
    except (ValueError, RecursionError) as error:
        raise EmbedderUnavailable(
            f"{OPTIONS} in {str(folder)!r} is wrong: {error}", hint=_HINT_FOLDER
        ) from error


def _of_sentence_transformers(folder: Path) -> Options:
    pooling = _json(folder / "1_Pooling" / "config.json")
    known: tuple[tuple[str, Pooling], ...] = (
        ("pooling_mode_cls_token", "cls"),
        ("pooling_mode_lasttoken", "last"),
        ("pooling_mode_mean_tokens", "mean"),
    )
    found: Pooling | None = next((name for key, name in known if pooling.get(key) is True), None)
    tokens = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    said: Mapping[str, Any] = prompts if isinstance(prompts, dict) else {}
    return Options(
        pooling=found,
        tokens=tokens if isinstance(tokens, int) else 0,
        passage=str(said.get("document") or said.get("passage") or ""),
        question=str(said.get("query") or ""),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _fingerprint(folder: Path, found: _Found) -> str:
    """A hash of the options, the tokenizer and the graph: of a large file its size, beginning, middle and end."""
    digest = hashlib.blake2b(repr(found.options).encode(), digest_size=4)
    beside = sorted(
        found.graph.parent.glob(f"{found.graph.name}?data")
    )  # weights may lie in a file of their own
    for path in (folder / "tokenizer.json", found.graph, *beside):
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                for at in sorted({0, max(0, size // 2 - _SAMPLE // 2), max(0, size - _SAMPLE)}):
                    file.seek(at)
                    digest.update(file.read(_SAMPLE))
        except OSError as error:
            raise EmbedderUnavailable(
                f"{path.name} in {str(folder)!r} cannot be read: {error}", hint=_HINT_FOLDER
            ) from error
        digest.update(str(size).encode())
    return digest.hexdigest()
