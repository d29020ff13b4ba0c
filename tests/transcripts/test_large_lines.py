"""Files with a large first record are still recognised, and unreadable lines are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.home.parsing import open_transcript
from nacre.readers.adapter import FileSource, read_head
from nacre.readers.registry import find_adapter
from nacre.testing.conformance import Agent, Owner
from nacre.values.session import Turn
from tests.app import shapes

LINES = [shape for shape, (name, _) in shapes.SHAPES.items() if name.endswith(".jsonl")]
TALK = (Owner("Where do the gulls nest?"), Agent("Under the pier."), Owner("Count them on Sunday."))


def with_large_record(path: Path, shape: str, size: int) -> Path:
    """Write a transcript whose first record starts with ``size`` bytes of unrelated data."""
    transcript = shapes.write(path, shape, TALK)
    first, rest = transcript.read_bytes().split(b"\n", 1)
    transcript.write_bytes(b'{"attached": "' + b"A" * size + b'", ' + first[1:] + b"\n" + rest)
    return transcript


@pytest.mark.parametrize("size", [70_000, 5_000_000])
@pytest.mark.parametrize("shape", LINES)
def test_large_first_record_hides_no_transcript(tmp_path: Path, shape: str, size: int) -> None:
    whole = shapes.write(tmp_path / "small", shape, TALK)
    with open_transcript(whole) as (adapter, source):
        assert adapter
        expected = [item.text for item in adapter.parse(source) if isinstance(item, Turn)]
    with open_transcript(with_large_record(tmp_path / "large", shape, size)) as (
        matched_adapter,
        source,
    ):
        assert matched_adapter is adapter
        assert [
            item.text for item in matched_adapter.parse(source) if isinstance(item, Turn)
        ] == expected


def test_lines_have_correct_offsets_at_any_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.readers.adapter.MAX_LINE_BYTES", 3_000_000)
    lines = [
        b'{"a": 1}',
        b"A" * 2_500_000,
        b"",
        b"B" * 5_000_000,
        b'{"b": 2}',
        b"C" * 1_048_576,
        b"D" * 9_000_000,
    ]
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"\n".join(lines))
    with FileSource(path) as source:
        read_lines = list(source.lines())
        cursor = source.cursor()
    data = path.read_bytes()
    assert [line for _, line in read_lines] == [
        line for line in lines if line and line[:1] not in b"BD"
    ]
    assert all(data[at : at + len(line)] == line for at, line in read_lines)
    assert source.tally.oversized == 2
    assert cursor.offset == data.index(b"D")


def test_large_data_without_messages_is_unrecognised(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes((b'{"x": "' + b"A" * 100_000 + b'"}\n') * 3 + b'{"y": 1}\n' * 30)
    assert find_adapter(read_head(path)) is None
