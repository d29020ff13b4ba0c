"""What is kept of lines: the same as if every text in them were looked at one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.redact.redactor import Redactor
from nacre.store.packs import Cleaner, Payload
from tests.canary import CORE, FORMS, SECRET

REDACTOR = Redactor(extra_patterns=["Project Heron"])
BYTES = "iVBORw0KGgo" + "Aa0/" * 300

names = st.sampled_from(
    [
        "text",
        "password",
        "api_key",
        "token",
        "pin",
        "codes",
        "data",
        "signature",
        "a\nb",
        "ключ",
        SECRET,
    ]
)
words = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            *FORMS.values(),
            "Tr0ub4dor&3x",
            "hunter22pass",
            "48291377",
            "\x1b[31mred\x1b[0m",
            'say "so"\\',
            "Project Heron",
            "eins\nzwei\tdrei",
            BYTES,
            "see http://example.org/a",
            "x " * 225 + SECRET,
            "\u2028",
            "😀",
        ]
    ),
)
numbers = st.one_of(
    st.integers(), st.integers(1000, 99_999_999), st.floats(allow_nan=False, allow_infinity=False)
)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(words, numbers, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=12,
)
objects = st.one_of(st.dictionaries(names, values, max_size=4), st.lists(values, max_size=4))
written: list[Callable[[Any], str]] = [
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: (
        json.dumps(value, separators=(" ,  ", "\t: ")).replace("/", "\\/").replace("p", "\\u0070")
    ),
    lambda value: json.dumps(value)[:-1],
    lambda value: "  " + json.dumps(value),
]
lines = st.builds(lambda write, value: write(value).encode(), st.sampled_from(written), objects)


def one_by_one(raw: bytes) -> Payload:
    """The rule itself, without any haste."""
    kept = [_line(line) for line in raw.split(b"\n")]
    were = enumerate(zip(raw.split(b"\n"), kept, strict=True))
    return Payload(
        b"\n".join(kept),
        tuple((number, len(old)) for number, (old, new) in were if len(old) != len(new)),
    )


def _line(line: bytes) -> bytes:
    if not line or line.isspace():
        return line
    try:
        value = msgspec.json.decode(line) if line[:1] in (b"{", b"[") else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = None
    if value is None:
        text = line.decode("utf-8", "replace")
        return (
            line
            if REDACTOR.clean(text) == text
            else REDACTOR.clean(text).replace("\n", " ").encode()
        )
    kept = _value(value, "")
    return line if _same(kept, value) else msgspec.json.encode(kept)


def _same(one: Any, other: Any) -> bool:
    return msgspec.json.encode(one) == msgspec.json.encode(other)


def _value(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {REDACTOR.clean(key): _value(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, name) for item in value]
    if isinstance(value, str):
        return _text(value, name)
    is_telling = any(word in name.lower() for word in ("pass", "pin", "token", "key", "code"))
    if isinstance(value, bool) or value is None or not is_telling:
        return value
    paired = f'"{name}": "{value}"'
    return value if REDACTOR.clean(paired) == paired else _inside(REDACTOR.clean(paired), name)


def _text(text: str, name: str) -> str:
    if name != "signature" and text == BYTES:
        return f"[{len(text):,} characters of encoded bytes were left out]"
    paired = f'"{name}": "{text}"'
    if len(text) <= 400 and REDACTOR.clean(paired) != paired:
        return REDACTOR.clean(_inside(REDACTOR.clean(paired), name))
    return REDACTOR.clean(text)


def _inside(paired: str, name: str) -> str:
    before = f'"{name}": "'
    return (
        paired[len(before) : -1]
        if paired.startswith(before) and paired.endswith('"')
        else "[REDACTED:value]"
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(lines, max_size=5), max_size=3))
def test_batch_cleaning_equals_cleaning_each_text_separately(parts: list[list[bytes]]) -> None:
    cleaner = Cleaner(REDACTOR.clean_all)
    for part in parts:
        raw = b"\n".join(part)
        assert cleaner.lines(raw) == one_by_one(raw)


@settings(max_examples=200, deadline=None)
@given(objects, st.sampled_from(sorted(FORMS)), names, st.sampled_from(written[:3]))
def test_planted_secret_is_not_archived(
    value: Any, form: str, name: str, write: Callable[[Any], str]
) -> None:
    raw = write([value, {name: FORMS[form]}, {"list": [name, [FORMS[form]]]}]).encode()
    assert (
        CORE.lower().encode()
        not in Cleaner(REDACTOR.clean_all).lines(raw + b"\n" + raw).text.lower()
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": "%s", "a": "later"}',
        b'{"a": {"b": 1, "b": ["%s"]}, "a": 2}',
        b'{"a": "\xff", "b": "%s"}',
        b'{"a": "b"} {"a": "%s"}',
        b'{"a": %s}',
        b'["a", {"a": ["b", 1, "%s"]}]',
    ],
)
def test_secret_is_removed_from_lines_of_any_format(line: bytes) -> None:
    cleaner = Cleaner(REDACTOR.clean_all)
    cleaner.lines(b'{"a": "later"}')
    assert CORE.encode() not in cleaner.lines(b'{"a": "b"}\n' + line % SECRET.encode()).text


def test_secret_value_under_an_unrelated_key_is_kept() -> None:
    cleaner = Cleaner(REDACTOR.clean_all)
    plain = b'{"word": "48291377"}\n{"words": [48291377, "48291377"]}'
    assert cleaner.lines(plain) == Payload(plain)
    for secret in (
        b'{"password": "48291377"}',
        b'{"password": ["48291377"]}',
        b'{"password": [1, ["48291377"]]}',
    ):
        assert b"48291377" not in cleaner.lines(secret).text
