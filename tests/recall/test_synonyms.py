"""Words that stand for each other, and prompts in other languages."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from nacre.base.text import words
from nacre.recall.question import SAME_SHARE, reading, synonyms_of


def test_every_synonym_line_has_all_columns_and_indexed_forms() -> None:
    table = tomllib.loads(
        files("nacre.recall").joinpath("synonyms.toml").read_text(encoding="utf-8")
    )
    for line in table["same"].strip().splitlines():
        columns = [
            [form.replace("_", " ") for form in column.split()] for column in line.split("|")
        ]
        assert len(columns) == 6, line
        assert all(columns), line
        assert all(" ".join(words(form)) == form for column in columns[:-1] for form in column), (
            line
        )
        assert len(set(columns[0])) == len(columns[0]), line


def test_word_has_synonyms_with_the_same_meaning() -> None:
    assert synonyms_of("open a PR").forms["pr"]["pull request"] == SAME_SHARE


def test_words_of_a_term_are_recognised() -> None:
    assert synonyms_of("two pull requests, and a request").terms.keys() == {"pull", "requests"}


@pytest.mark.parametrize(
    ("prompt", "english"),
    [
        ("Welche Schriftart haben wir für den Titel?", "font headline"),
        ("¿Qué hay que hacer antes de la migración?", "before migration"),
        ("Quelle base de données avons-nous ?", "database data"),
        ("提交之前要做什么？", "commit before"),
        ("was there an alert?", None),
        ("die Brücke", None),
        ("ok", None),
    ],
)
def test_foreign_prompt_is_translated_word_by_word(prompt: str, english: str | None) -> None:
    read = reading(prompt)
    assert (read.english if read else None) == english


def test_terms_starting_with_two_letter_words_are_found() -> None:
    assert "deploy" in synonyms_of("when do we go live?").forms["go"]
    assert reading("was ist noch zu tun bis morgen?") is not None
    assert "todo" in synonyms_of("was ist noch zu tun bis morgen?", foreign=True).forms["zu"]
