"""The bundled embedding model, all-MiniLM-L6-v2 in int8: ``model.onnx`` and ``tokenizer.json``.

``scripts/build_minilm.py`` writes both files. NOTICE names the source of the weights. The files are package data,
loaded by ``nacre.llm.local_model.load_minilm``.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

MODEL_NAME = "minilm-l6-v2-int8"
"""Name of the model. It changes when a new build produces different vectors."""

MAX_TOKENS = 256
"""Maximum number of tokens in a text, including [CLS] and [SEP]."""

SHA256 = {
    "model.onnx": "cbfc76ac8282158be7563c345b5b41b185a3e9a57cb3a76eea1fdd65a209afe4",
    "tokenizer.json": "5fd1c882abbd30517dced455a2c9768945ec726b96727927e4959348d9de550b",
}


@cache
def vocabulary() -> dict[str, int]:
    """Return the model's whole-word tokens with their ranks, which are low for frequent words."""
    tokenizer = json.loads((files(__package__) / "tokenizer.json").read_text(encoding="utf-8"))
    ranks: dict[str, int] = tokenizer["model"]["vocab"]
    return ranks
