"""WordPiece as BERT's uncased models have it, from their ``tokenizer.json``: the tokens of the library ``tokenizers``.

A text is cut at the special tokens that it spells out, made lower case and bare of accents, character by character, and
cut into words and signs. A word becomes the longest pieces of the vocabulary that make it up from its start, or the
unknown token. What becomes of a character is in ``characters.json``, which ``scripts/write_characters.py`` wrote: the
library knows an older Unicode than Python does, and vectors depend on it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import msgspec

from nacre.platform import json_values

_WORDS = re.compile(r"[^ !-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")
"""In a text whose other signs stand between spaces."""

_MOST_KNOWN_WORDS = 1 << 15
_MOST_KNOWN_CHARACTERS = 1 << 15
_SYLLABLES = range(0xAC00, 0xD7A4)
"""Hangul, whose letters every Unicode knows."""

_BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}


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
        self._special: dict[str, int] = {token["content"]: token["id"] for token in told["added_tokens"]}
        longest_first = sorted(self._special, key=len, reverse=True)
        self._at_special = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None
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
                ((end, token) for end in ends if (token := self._vocabulary.get(prefix + word[start:end])) is not None),
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
    return bool(token["content"]) and not any(token[name] for name in ("single_word", "lstrip", "rstrip", "normalized"))


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
    return _Characters(json_values.parse(page, _Page))
