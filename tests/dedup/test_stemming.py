"""Forms of one word are one word, and words that only look like forms stay apart."""

from __future__ import annotations

import pytest

from nacre.base.text import singular, stem


@pytest.mark.parametrize(
    "forms",
    [
        "meet meets meeting meetings",
        "plan plans planned planning",
        "cache caches cached caching",
        "policy policies",
        "fly flies",
        "study studies studied studying",
        "address addresses addressed",
        "call calls called calling",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize("word", ["status", "class", "analysis", "bus", "v18s", "py3"])
def test_apparent_plurals_are_not_stemmed(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize(
    ("plural", "one"),
    [("minutes", "minute"), ("retries", "retry"), ("gbs", "gb"), ("ms", "ms"), ("is", "is")],
)
def test_units_are_converted_to_the_singular(plural: str, one: str) -> None:
    assert singular(plural) == one
