"""An ONNX model in a folder of the owner's, with the bundled model's files in it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from nacre.errors import EmbedderUnavailableError
from nacre.llm import minilm
from nacre.llm.local_model import load_folder, load_minilm, load_tokenizer

BUNDLED = Path(minilm.__file__).parent
TEXTS = ["The crane was painted.", "The ferry leaves at nine.", "港口的起重机"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "onnx").mkdir()
    (tmp_path / "tokenizer.json").symlink_to(BUNDLED / "tokenizer.json")
    (tmp_path / "onnx" / "model.onnx").symlink_to(BUNDLED / "model.onnx")
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 256}', encoding="utf-8")
    return tmp_path


def test_folder_with_the_bundled_files_yields_equal_vectors(folder: Path) -> None:
    embedder = load_folder(folder)
    found = embedder.embed(TEXTS)
    assert embedder.dimensions == 384
    assert np.abs(found - load_minilm().embed(TEXTS)).max() < 0.02
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_model_name_changes_with_the_folder_settings(folder: Path) -> None:
    before = load_folder(folder).name
    assert load_folder(folder).name == before
    (folder / "nacre-embedding.toml").write_text('passage = "passage: "\n', encoding="utf-8")
    assert load_folder(folder).name != before


def test_questions_and_passages_get_their_prefixes(folder: Path) -> None:
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: ", "passage": "passage: "}}), encoding="utf-8"
    )
    (text, *_), bare = TEXTS, load_minilm()
    embedder = load_folder(folder)
    for found, whole in (
        (embedder, f"passage: {text}"),
        (embedder.within(1, question=True), f"query: {text}"),
    ):
        assert float(found.embed([text])[0] @ bare.embed([whole])[0]) > 0.99


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_graph_with_token_vectors_is_pooled(tmp_path: Path, pooling: str) -> None:
    shutil.copy(BUNDLED / "tokenizer.json", tmp_path / "tokenizer.json")
    (tmp_path / "model.onnx").write_bytes(graph_of_token_states())
    (tmp_path / "nacre-embedding.toml").write_text(f'pooling = "{pooling}"\n', encoding="utf-8")
    text = "a crane by the sea"
    ids = np.array(load_tokenizer(tmp_path / "tokenizer.json", 512).encode(text).ids, np.float32)
    states = np.stack([ids, np.ones_like(ids)], axis=1)
    expected = {"mean": states.mean(axis=0), "cls": states[0], "last": states[-1]}[pooling]
    assert np.allclose(
        load_folder(tmp_path).embed([text])[0], expected / np.linalg.norm(expected), atol=1e-5
    )


def graph_of_token_states() -> bytes:
    """An ONNX graph, in the bytes of its protocol buffer: the state of a token is its id, and one."""
    nodes = (
        node("Cast", ["input_ids"], ["floats"], to=1)
        + node("Div", ["floats", "floats"], ["ones"])
        + node("Unsqueeze", ["floats", "axis"], ["left"])
        + node("Unsqueeze", ["ones", "axis"], ["right"])
        + node("Concat", ["left", "right"], ["last_hidden_state"], axis=2)
    )
    axis = field(1, 1) + field(2, 7) + field(7, number(2)) + field(8, b"axis")
    graph = nodes + field(2, b"states") + field(5, axis)
    graph += field(11, value("input_ids", 7, b"texts", b"tokens"))
    graph += field(12, value("last_hidden_state", 1, b"texts", b"tokens", b"two"))
    return field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 13))


def node(kind: str, inputs: list[str], outputs: list[str], **attributes: int) -> bytes:
    whole = b"".join(field(1, one.encode()) for one in inputs) + b"".join(
        field(2, one.encode()) for one in outputs
    )
    whole += field(4, kind.encode())
    for name, one in attributes.items():
        whole += field(5, field(1, name.encode()) + field(3, one) + field(20, 2))
    return field(1, whole)


def value(name: str, kind: int, *axes: bytes) -> bytes:
    shape = b"".join(field(1, field(2, axis)) for axis in axes)
    return field(1, name.encode()) + field(2, field(1, field(1, kind) + field(2, shape)))


def field(tag: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return number(tag << 3) + number(content)
    return number(tag << 3 | 2) + number(len(content)) + content


def number(whole: int) -> bytes:
    found = bytearray()
    while whole >= 0x80:
        found.append(whole & 0x7F | 0x80)
        whole >>= 7
    return bytes([*found, whole])


def test_invalid_folder_is_reported_with_a_hint(tmp_path: Path, folder: Path) -> None:
    (folder / "nacre-embedding.toml").write_text('pooling = "guess"\n', encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    for wrong, told in (
        (folder, "nacre-embedding.toml"),
        (empty, "model.onnx"),
        (tmp_path / "no", "no folder"),
        (Path("here"), "absolute"),
    ):
        with pytest.raises(EmbedderUnavailableError, match=told) as caught:
            load_folder(wrong)
        assert caught.value.hint
