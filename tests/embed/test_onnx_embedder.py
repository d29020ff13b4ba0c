"""The bundled embedding model, as everything else in nacre uses it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nacre.errors import EmbedderUnavailableError
from nacre.llm import minilm
from nacre.llm.local_model import OnnxEmbedder, load_minilm

FOLDER = Path(minilm.__file__).parent

# Two texts and the cosine that the float32 model gives them.
PAIRS = [
    ("We deploy every Friday afternoon.", "Releases go out on Fridays after lunch.", 0.520),
    (
        "The database ran out of connections.",
        "Postgres refused new clients because the pool was exhausted.",
        0.401,
    ),
    ("Alice moved to Lisbon in March.", "Where does Alice live now?", 0.690),
    ("I prefer tabs over spaces.", "Indent with tabs, please.", 0.653),
    ("The cache is invalidated by a webhook.", "My sister bakes bread on Sundays.", 0.116),
    ("Use Python 3.12 for the worker.", "The whales swim north in spring.", -0.046),
    (
        "The login test is flaky on Windows.",
        "Dinner is at eight in the Italian restaurant.",
        -0.037,
    ),
]
MIXED = [
    "one",
    "two words",
    "a much longer sentence about the weather in the mountains " * 6,
    "",
    "x" * 500,
    "three",
]


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return load_minilm(threads=2)


def test_bundled_files_match_the_recorded_hashes():
    found = {
        name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in minilm.SHA256
    }
    assert found == minilm.SHA256


def test_hashes_are_in_the_notice():
    notice = Path(__file__).parents[2].joinpath("NOTICE").read_text(encoding="utf-8")
    assert all(digest in notice for digest in minilm.SHA256.values())


def test_embedder_has_a_name_and_dimensions(embedder: OnnxEmbedder):
    assert (embedder.name, embedder.dimensions) == (minilm.MODEL_NAME, 384)


def test_every_text_becomes_a_unit_row(embedder: OnnxEmbedder):
    vectors = embedder.embed(MIXED)
    assert vectors.shape == (len(MIXED), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_empty_input_yields_no_rows(embedder: OnnxEmbedder):
    vectors = embedder.embed([])
    assert vectors.shape == (0, 384)
    assert vectors.dtype == np.float32


@pytest.mark.parametrize(("left", "right", "expected"), PAIRS)
def test_similarities_match_the_float32_model(
    embedder: OnnxEmbedder, left: str, right: str, expected: float
):
    vectors = embedder.embed([left, right])
    assert float(vectors[0] @ vectors[1]) == pytest.approx(expected, abs=0.03)


def test_similar_sentences_are_closer_than_unrelated_sentences(embedder: OnnxEmbedder):
    left, right = (
        embedder.embed([pair[0] for pair in PAIRS]),
        embedder.embed([pair[1] for pair in PAIRS]),
    )
    found = np.sum(left * right, axis=1)
    assert found[:4].min() > found[4:].max() + 0.2


def test_rows_follow_the_order_of_the_texts(embedder: OnnxEmbedder):
    alone = np.concatenate([embedder.embed([text]) for text in MIXED])
    assert np.array_equal(embedder.embed(MIXED), alone)


def test_vector_is_independent_of_the_batch(embedder: OnnxEmbedder):
    company = [f"{number} {text}" for number in range(5) for text in MIXED]
    assert np.array_equal(
        embedder.embed([*company, "The answer is 42."])[-1:], embedder.embed(["The answer is 42."])
    )


def test_thread_count_does_not_change_vectors(embedder: OnnxEmbedder):
    assert np.array_equal(load_minilm(threads=1).embed(MIXED), embedder.embed(MIXED))


def test_long_text_is_truncated_at_the_model_limit(embedder: OnnxEmbedder):
    # One token each: the limit counts the two that frame a text.
    fits = ["word"] * (minilm.MAX_TOKENS - 2)
    vectors = embedder.embed(
        [" ".join(fits), " ".join([*fits, "another", "ending"]), " ".join(fits[:-1])]
    )
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.array_equal(vectors[0], vectors[2])


def test_huge_text_is_embedded(embedder: OnnxEmbedder):
    assert embedder.embed(["lorem ipsum " * 500_000]).shape == (1, 384)


@pytest.mark.parametrize(
    "text", ["\ud800", "broken \udcff here", "\udfff\ud800", "nul \x00 and \ufffe", "😀" * 400]
)
def test_unusual_characters_do_not_crash_the_embedder(embedder: OnnxEmbedder, text: str):
    assert np.isfinite(embedder.embed([text])).all()


def test_missing_folder_is_reported_with_a_hint(tmp_path: Path):
    with pytest.raises(EmbedderUnavailableError, match=r"tokenizer\.json") as caught:
        OnnxEmbedder(tmp_path / "nowhere", name="nothing")
    assert "reinstall nacre" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_damaged_file_is_reported_with_a_hint(tmp_path: Path, name: str):
    for file in minilm.SHA256:
        shutil.copy(FOLDER / file, tmp_path / file)
    tmp_path.joinpath(name).write_bytes(b"not a model")
    with pytest.raises(EmbedderUnavailableError, match=name) as caught:
        OnnxEmbedder(tmp_path, name="damaged")
    assert caught.value.hint


def test_missing_library_is_reported_with_a_hint(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderUnavailableError, match="onnxruntime") as caught:
        load_minilm()
    assert "nacre-memory[vectors]" in (caught.value.hint or "")


def test_bundled_model_needs_no_tokenizer_library():
    loaded = _modules_after(
        "from nacre.llm.local_model import load_minilm; load_minilm().embed(['a', 'b'])"
    )
    assert loaded.isdisjoint({"tokenizers", "huggingface_hub"})


def test_importing_the_module_loads_no_runtime():
    assert _modules_after("import nacre.llm.local_model").isdisjoint({"onnxruntime", "tokenizers"})


def test_runtime_library_writes_no_device_record(tmp_path):
    code = "from nacre.llm.local_model import load_minilm; load_minilm().embed(['a text'])"
    environ = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)
    assert not list(tmp_path.iterdir())


def test_embedding_needs_no_network_library():
    loaded = _modules_after(
        "from nacre.llm.local_model import load_minilm; load_minilm().embed(['a', 'b'])"
    )
    assert loaded.isdisjoint(
        {"huggingface_hub", "httpx", "httpx2", "requests", "urllib3", "http.client"}
    )


def _modules_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded once it has run the code."""
    program = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return set(result.stdout.split())
