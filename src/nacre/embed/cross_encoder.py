"""A cross-encoder from a local folder, if somebody has one. nacre ships none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nacre.embed.onnx import load_any_tokenizer, load_session, readable
from nacre.errors import EmbedderUnavailable, RerankerUnavailable

_TOKENS = 256
_HINT = (
    "the folder must hold model.onnx and tokenizer.json of a cross-encoder; or: nacre config set recall.reranker none"
)


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
            "input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids,
        }  # fmt: skip
        inputs = {name: np.array([values], np.int64) for name, values in every.items() if name in self._inputs}
        try:
            return float(np.ravel(self._session.run(None, inputs)[0])[-1])
        except Exception as error:  # the errors of onnxruntime have no other common base
            raise RerankerUnavailable(f"{self.name} cannot score: {error}", hint=_HINT) from error
