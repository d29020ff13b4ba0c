"""Expressions that are not looked for where they cannot be: they find what plain expressions find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from nacre.extraction.reading.cues import languages
from nacre.extraction.reading.patterns import Pattern, needs_of

STATEMENTS = (
    "From now on we always deploy on Fridays, never on Mondays.",
    "Remember that the staging cluster is rebuilt every Sunday night at 02:00.",
    "i prefer tabs over spaces, and don't use emojis in commit messages please",
    "No, that is wrong: the retry was never reset, so the queue kept growing.",
    "What should the timeout be, 30 or 60 seconds?",
    "The team in Lisbon owns the billing service; ask Inês.",
    "TODO: rotate the keys before the release",
    "ok",
    "记住，以后所有接口都必须返回 JSON。",
    "我们决定用 PostgreSQL 而不是 MySQL",
    "K\u0130LL the s\u0131lent ser\u0131es, \u017ftop u\u017fing \u212aafka from now on",
    "",
)


def patterns(value: object) -> Iterator[Pattern]:
    if isinstance(value, Pattern):
        yield value
    elif is_dataclass(value):
        for one in fields(value):
            yield from patterns(getattr(value, one.name))
    elif isinstance(value, dict | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from patterns(item)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_cue_is_found_where_its_expression_finds_it(statement: str) -> None:
    for pattern in patterns(languages()):
        plain = re.compile(pattern.pattern, re.IGNORECASE)
        for text in (statement, statement.upper(), f"Well, {statement} {statement.lower()}"):
            found, expected = pattern.search(text), plain.search(text)
            assert (found and found.span()) == (expected and expected.span()), pattern.pattern


def test_nearly_every_cue_needs_something() -> None:
    found = [bool(needs_of(pattern.pattern)) for pattern in patterns(languages())]
    assert sum(found) > 0.9 * len(found)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (r"colou?r", "COLOR"),
        (r"(?:we|they) (?:use|run)s?\b", "so they run it"),
        (r"^(?!never).*always", "we always do"),
        (r"(?:a|b)*c", "c"),
        (r"[kK]eep", "\u212aeep"),
        (r"s+o", "\u017f\u017fo"),
        (r"(?=stop)\w+", "stop"),
        (r"x{2,3}y", "xxy"),
        (r"don['’]t|do not", "don’t"),
        (r"\d+ files", "12 files"),
        (r"(abc|abd)e", "ABDE"),
        (r"straße|ГОД", "год"),
        (r"(a)?(?(1)bc|de)", "de"),
    ],
)
def test_an_expression_is_found_however_it_is_built(expression: str, text: str) -> None:
    assert re.search(expression, text, re.IGNORECASE)
    assert Pattern(expression).search(text)


@pytest.mark.parametrize("name", ["search", "match"])
def test_what_is_no_expression_says_so(name: str) -> None:
    with pytest.raises(re.error):
        getattr(Pattern("(open"), name)("text")
    with pytest.raises(AttributeError):
        Pattern("a").nothing  # noqa: B018
