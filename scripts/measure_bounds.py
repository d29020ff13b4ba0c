#!/usr/bin/env python3
"""What reading each bomb of the tests costs: seconds and memory, each in a process of its own.

Prints a table in Markdown; ``docs/trust/bounds.md`` has the last one.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

_PLAIN = "kind: fact\nsubject: Tea"


def main() -> None:
    """Measure every bomb, or the one that is named."""
    from tests.app.test_bounds import BOMBS

    if len(sys.argv) > 1:
        print(*_cost(BOMBS[sys.argv[1]][0] if sys.argv[1] in BOMBS else _PLAIN))
        return
    print("| bomb | characters | ms | MB more |\n|---|--:|--:|--:|")
    for name in ["(none)", *BOMBS]:
        size = len(BOMBS[name][0]) if name in BOMBS else len(_PLAIN)
        run = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
        seconds, kilobytes = map(float, run.stdout.split())
        print(f"| {name} | {size:,} | {seconds * 1000:.1f} | {kilobytes / 1024:.1f} |")


def _cost(front: str) -> tuple[float, int]:
    """Seconds, and kilobytes at the highest above what was in use before, of reading one file of the vault."""
    from nacre.errors import MemoryInvalid
    from nacre.vault.document import parse
    from nacre.vault.files import Vault

    def read(vault: Vault, path: str) -> None:
        try:
            parse(vault.read(path).decode(), path, new_id=lambda: "x", modified=datetime.now(UTC))
        except MemoryInvalid:
            return

    with tempfile.TemporaryDirectory() as folder:
        path = "global/fact/bomb.md"
        Path(folder, path).parent.mkdir(parents=True)
        vault = Vault(Path(folder))
        for text in (_PLAIN, front):
            Path(folder, path).write_text(f"---\n{text}\n---\nWords.\n", encoding="utf-8")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start = time.perf_counter()
            read(vault, path)
            seconds = time.perf_counter() - start
        return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


if __name__ == "__main__":
    main()
