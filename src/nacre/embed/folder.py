"""An ONNX embedding model in a folder of the owner's, as sentence-transformers exports it or with a page of options."""

from __future__ import annotations

import copy
import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from nacre.embed.onnx import load_session, load_tokenizer, readable, side_by_side, threads_for
from nacre.errors import EmbedderUnavailable
from nacre.platform import json_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPTIONS = "nacre-embedding.toml"
_GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
_STEP_TURNS = 128
_TOKENS = 512
_MOST_TOKENS = 8_192
_SAMPLE = 1 << 20
_HINT = f"the folder must hold model.onnx and tokenizer.json; docs/embeddings.md tells what {OPTIONS} may say"
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
        raise EmbedderUnavailable(f"onnx:{folder} is no whole path", hint="onnx:/path/to/the/folder")
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
        tokens = min(found.options.tokens or _TOKENS, _MOST_TOKENS)
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
            "input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids,
            "position_ids": range(len(encoded.ids)),
        }  # fmt: skip
        inputs = {name: np.array([list(values)], np.int64) for name, values in every.items() if name in self._inputs}
        try:
            found = np.asarray(self._session.run([self._output.name], inputs)[0], np.float32)
        except Exception as error:  # the errors of onnxruntime have no other common base
            raise EmbedderUnavailable(f"{self.name} cannot embed: {error}", hint=_HINT) from error
        vector = found[0] if found.ndim == 2 else self._pooled(found[0])
        length = float(np.linalg.norm(vector))
        if vector.ndim != 1 or not np.isfinite(length) or length < 1e-12:
            raise EmbedderUnavailable(f"{self.name} gave a vector that has no direction", hint=_HINT)
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
        raise EmbedderUnavailable(f"there is no folder {str(folder)!r} with an embedding model", hint=_HINT)
    options = _options(folder)
    names = (options.model,) if options.model else _GRAPHS
    graph = next((folder / name for name in names if (folder / name).is_file()), None)
    if graph is None:
        raise EmbedderUnavailable(f"{names[0]} is missing in {str(folder)!r}", hint=_HINT)
    return _Found(graph, options)


def _options(folder: Path) -> Options:
    """What ``nacre-embedding.toml`` says, else the files of sentence-transformers."""
    try:
        own = (folder / OPTIONS).read_text(encoding="utf-8")
    except FileNotFoundError:
        return _of_sentence_transformers(folder)
    except (OSError, UnicodeDecodeError) as error:
        raise EmbedderUnavailable(f"{OPTIONS} in {str(folder)!r} cannot be read: {error}", hint=_HINT) from error
    try:
        return json_values.convert(tomllib.loads(own), Options)
    except (ValueError, RecursionError) as error:
        raise EmbedderUnavailable(f"{OPTIONS} in {str(folder)!r} is wrong: {error}", hint=_HINT) from error


def _of_sentence_transformers(folder: Path) -> Options:
    pooling = _json(folder / "1_Pooling" / "config.json")
    known: tuple[tuple[str, Pooling], ...] = (
        ("pooling_mode_cls_token", "cls"), ("pooling_mode_lasttoken", "last"), ("pooling_mode_mean_tokens", "mean"),
    )  # fmt: skip
    found: Pooling | None = next((name for key, name in known if pooling.get(key) is True), None)
    tokens = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    said: Mapping[str, Any] = prompts if isinstance(prompts, dict) else {}
    return Options(
        pooling=found, tokens=tokens if isinstance(tokens, int) else 0,
        passage=str(said.get("document") or said.get("passage") or ""), question=str(said.get("query") or ""),
    )  # fmt: skip


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _fingerprint(folder: Path, found: _Found) -> str:
    """A hash of the options, the tokenizer and the graph: of a large file its size, beginning, middle and end."""
    digest = hashlib.blake2b(repr(found.options).encode(), digest_size=4)
    beside = sorted(found.graph.parent.glob(f"{found.graph.name}?data"))  # weights may lie in a file of their own
    for path in (folder / "tokenizer.json", found.graph, *beside):
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                for at in sorted({0, max(0, size // 2 - _SAMPLE // 2), max(0, size - _SAMPLE)}):
                    file.seek(at)
                    digest.update(file.read(_SAMPLE))
        except OSError as error:
            raise EmbedderUnavailable(f"{path.name} in {str(folder)!r} cannot be read: {error}", hint=_HINT) from error
        digest.update(str(size).encode())
    return digest.hexdigest()
