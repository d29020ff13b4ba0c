"""Transcripts contain each line exactly once after a crash at any point."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from nacre.store.gateway import GatewayStore, Line
from nacre_gateway.sessions import Transcripts

LINES = [
    Line(f"line-{number}", json.dumps({"id": f"line-{number}", "text": "🦪" * 100_000}))
    for number in range(3)
]
WHOLE = "".join(f"{line.text}\n" for line in LINES).encode()


@pytest.mark.parametrize(
    "cut", [0, 1, 300_000, len(WHOLE) // 3, len(WHOLE) // 2, len(WHOLE) - 1, len(WHOLE)]
)
def test_partially_written_long_lines_appear_once(tmp_path: Path, cut: int) -> None:
    transcripts = Transcripts(tmp_path)
    transcripts.folder.mkdir(parents=True)
    first = b'{"id": "line-before"}\n'
    transcripts.path("talk").write_bytes(first + WHOLE[:cut])
    with closing(GatewayStore.open(tmp_path)) as store:
        store.add_lines("talk", LINES)
        transcripts.write_pending(store, "talk")
        assert not store.pending_sessions()
    assert transcripts.path("talk").read_bytes() == first + WHOLE
