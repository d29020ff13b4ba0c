"""``python -m benchmarks code`` measures how fast code is read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("it counts processor time as Unix does", allow_module_level=True)

from benchmarks.load.code import measure_code


def test_generated_code_is_read_and_queried(tmp_path: Path) -> None:
    result = measure_code(
        tmp_path, root=None, files=16, symbols=16, memories=4, notify=lambda _: None
    )
    assert result.files == 16
    assert result.symbols == 16 * 16
    assert result.edges > result.symbols
    assert all(question.count > 10 for question in result.questions.values())
