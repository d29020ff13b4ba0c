"""Long answers are split within the platform's limits and without loss."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.values.gateway import Limits
from nacre_gateway.conversation import length, split

TEXTS = st.text(st.sampled_from("ab .\n`😀ß"), max_size=400).map(
    lambda text: re.sub("```.*", "```", text)  # the rest of a fence's line is repeated
)


@given(TEXTS, st.integers(10, 60), st.booleans())
def test_every_part_fits_and_no_letter_is_lost(text: str, most: int, utf16: bool) -> None:
    limits = Limits(characters=most, utf16=utf16)
    parts = list(split(text, limits))
    assert all(0 < length(part, limits) <= most for part in parts)
    letters = [character for character in text if character not in " \n`"]
    assert [character for part in parts for character in part if character not in " \n`"] == letters


def test_reopened_code_block_leaves_room_for_its_text() -> None:
    parts = list(split("```\n" + "ab" * 20, Limits(characters=10)))
    assert "".join(parts).replace("`", "").replace("\n", "") == "ab" * 20


def test_text_is_split_between_paragraphs_if_possible() -> None:
    first, second = "the first paragraph of it", "the second paragraph"
    assert list(split(f"{first}\n\n{second}", Limits(characters=40))) == [first, second]


def test_code_block_is_closed_and_reopened_across_parts() -> None:
    code = "\n".join(f"line {number}" for number in range(12))
    parts = list(split(f"See:\n```python\n{code}\n```", Limits(characters=60)))
    assert len(parts) > 1
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert all(part.startswith("```python\n") for part in parts[1:])


@pytest.mark.parametrize("text", ["", "  \n "])
def test_empty_text_has_no_parts(text: str) -> None:
    assert list(split(text, Limits())) == []
