"""Threads of the daemon write a session's state at the same time."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nacre.base import link


def test_threads_that_write_one_file_leave_it_complete(tmp_path: Path) -> None:
    path = tmp_path / "run" / "state.json"
    text = "x" * 20_000

    def write(number: int) -> object:
        link.write_json(tmp_path, str(path), {"number": number, "text": text})
        return json.loads(path.read_text())["text"]

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(write, range(400))) == {text}
    assert list(path.parent.iterdir()) == [path]
