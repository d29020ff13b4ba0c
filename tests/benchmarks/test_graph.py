"""``python -m benchmarks graph`` tells how long links take in a large home."""

from __future__ import annotations

from pathlib import Path

from benchmarks.load.graph import measure_graph


def test_home_with_links_and_code_is_generated_and_measured(tmp_path: Path) -> None:
    result = measure_graph(tmp_path, memories=1200, links=1500, files=8, notify=lambda _: None)
    assert (result.memories, result.symbols) == (1200, 8 * 40)
    assert result.links == 1500 + 2 * 1000
    assert {"traverse, depth 2", "central"} < {one.name for one in result.operations}
