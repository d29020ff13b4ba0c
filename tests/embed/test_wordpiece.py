"""The tokens of the bundled model, made without the library that other tokenizers need."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from nacre.errors import EmbedderUnavailableError
from nacre.llm import minilm
from nacre.llm.local_model import WordPiece, is_wordpiece, load_folder, load_tokenizer

BUNDLED = Path(minilm.__file__).parent
TOLD = json.loads((BUNDLED / "tokenizer.json").read_text(encoding="utf-8"))

SAMPLES: dict[str, list[int]] = json.loads(
    Path(__file__).with_name("tokens.json").read_text(encoding="utf-8")
)
"""Texts, each with the tokens that the library ``tokenizers`` 0.23.3 made of it."""


@pytest.fixture(scope="module")
def own() -> WordPiece:
    return WordPiece(TOLD, minilm.MAX_TOKENS)


@pytest.fixture(scope="module")
def library() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(minilm.MAX_TOKENS)
    return tokenizer


@pytest.mark.parametrize("text", SAMPLES, ids=lambda text: ascii(text[:20]))
def test_text_has_the_recorded_tokens(own: WordPiece, text: str) -> None:
    assert own.encode(text).ids == SAMPLES[text]


def test_every_character_kind_is_tokenised_like_the_library(
    own: WordPiece, library: Tokenizer
) -> None:
    codes = [
        *range(0x3100),
        *range(0x3100, 0xD800, 61),
        *range(0xE000, sys.maxunicode, 331),
        *range(0xF900, 0x10000),
    ]
    texts = [f"a{chr(code)}b {chr(code)} the{chr(code)}" for code in codes]
    assert [own.encode(text).ids for text in texts] == [
        one.ids for one in library.encode_batch(texts)
    ]


def test_random_mixtures_are_tokenised_like_the_library(own: WordPiece, library: Tokenizer) -> None:
    chance = random.Random(7)  # noqa: S311 - the same mixtures every time
    parts = [
        *"abcxyz .,_-/\t\n\x00\u200b\u0301éßİΣςк中한",
        "[CLS]",
        "[MASK",
        "]",
        "##ing",
        "token",
        " ",
        " the ",
    ]
    texts = ["".join(chance.choices(parts, k=chance.randint(0, 400))) for _ in range(2_000)]
    assert [own.encode(text).ids for text in texts] == [
        one.ids for one in library.encode_batch(texts)
    ]


@pytest.mark.parametrize("most", [2, 3, 4, 17])
def test_text_is_truncated_like_the_library(most: int) -> None:
    library = Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))
    library.enable_truncation(most)
    own = WordPiece(TOLD, most)
    for text in ("unbelievable words and [SEP] signs!", "", "one", "two words"):
        assert own.encode(text).ids == library.encode(text).ids


@pytest.mark.parametrize(
    "change",
    [
        {"model": {**TOLD["model"], "type": "BPE"}},
        {"normalizer": None},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"normalizer": {**TOLD["normalizer"], "lowercase": False}},
        {"post_processor": None},
        {"added_tokens": None},
        {"normalizer": {**TOLD["normalizer"], "strip_accents": False}},
        {"model": {"type": "WordPiece"}},
        {"added_tokens": [{**TOLD["added_tokens"][0], "lstrip": True}]},
        {"post_processor": {"type": "ByteLevel"}},
    ],
)
def test_unsupported_tokenizers_are_left_to_the_library(change: dict[str, Any]) -> None:
    assert is_wordpiece(TOLD)
    assert not is_wordpiece({**TOLD, **change})


def test_older_model_frame_is_truncated_alike(tmp_path: Path) -> None:
    told = {
        **TOLD,
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(told), encoding="utf-8")
    found = load_tokenizer(tmp_path / "tokenizer.json", 16)
    assert isinstance(found, WordPiece)
    assert (
        found.encode("a crane").ids
        == Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("a crane").ids
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose texts are cut by bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(
        models.BPE(vocab={sign: number for number, sign in enumerate(alphabet)}, merges=[])
    )
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor, tokenizer.decoder = processors.ByteLevel(), decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "model.onnx").symlink_to(BUNDLED / "model.onnx")
    return tmp_path


def test_folder_with_another_tokenizer_works_with_the_library(folder: Path) -> None:
    assert load_folder(folder).embed(["a crane"]).shape == (1, 384)


def test_folder_with_another_tokenizer_names_the_missing_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(EmbedderUnavailableError, match="tokenizers") as caught:
        load_folder(folder)
    assert caught.value.hint == "pip install 'nacre-memory[tokenizers]'"
