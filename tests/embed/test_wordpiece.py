"""The tokens of the bundled model, made without the library that other tokenizers need."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from nacre.llm import minilm
from nacre.llm.local_model import WordPiece

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
    assert own.encode(text) == SAMPLES[text]


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
    assert [own.encode(text) for text in texts] == [
        item.ids for item in library.encode_batch(texts)
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
    assert [own.encode(text) for text in texts] == [
        item.ids for item in library.encode_batch(texts)
    ]


@pytest.mark.parametrize("most", [2, 3, 4, 17])
def test_text_is_truncated_like_the_library(most: int) -> None:
    library = Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))
    library.enable_truncation(most)
    own = WordPiece(TOLD, most)
    for text in ("unbelievable words and [SEP] signs!", "", "one", "two words"):
        assert own.encode(text) == library.encode(text).ids
