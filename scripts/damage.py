#!/usr/bin/env python
"""Damage homes at random, follow nacre's hints, and write the results to a table.

Run by ``make damage``. ``--runs 500`` sets how often each kind of damage is done, ``--kind``
selects one kind, and ``--seed`` repeats a run. Exits with 1 if a command failed unexpectedly, or a
hint did not help.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.trust.damage import KINDS, Result, Stage, environment, try_one  # noqa: E402

TABLE = ROOT / "docs/crash-safety.md"
BEGIN, END = "<!-- table: make damage -->\n", "<!-- end of table -->"
PORTION = 50
_OF_OTHERS = ("NACRE_", "CLAUDE", "CODEX_", "OPENCLAW_", "XDG_", "PI_")


def try_some(kind: str, seed: int, first: int, count: int) -> list[Result]:
    """Run one kind of damage with consecutive numbers."""
    memory = Path("/dev/shm")  # noqa: S108 - a new folder is created there
    folder = Path(
        tempfile.mkdtemp(prefix="nacre-damage-", dir=memory if os.access(memory, os.W_OK) else None)
    )
    for name in [name for name in os.environ if name.startswith(_OF_OTHERS)]:
        del os.environ[name]
    os.environ.update(environment(folder))
    try:
        stage = Stage(folder)
        return [
            try_one(stage, kind, f"{seed} {kind} {number}")
            for number in range(first, first + count)
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def line(kind: str, results: list[Result]) -> str:
    """Return a row of the table."""
    noticed, mended = (
        sum(result.noticed for result in results),
        sum(bool(result.remedies) for result in results),
    )
    findings = sum(bool(result.wrong) for result in results)
    return f"| {kind} | {len(results)} | {noticed} | {mended} | {findings} |"


def write_table(results: list[Result], seed: int) -> None:
    """Replace the table in the document."""
    head = "| damaged part | damages | reported | fixed by the remedy | findings |\n|---|---|---|---|---|\n"
    results_of = {kind: [result for result in results if result.kind == kind] for kind in KINDS}
    body = "".join(f"{line(kind, of_kind)}\n" for kind, of_kind in results_of.items() if of_kind)
    introduction = f"{len(results):,} damages, {datetime.now(UTC):%Y-%m-%d}, seed {seed}.\n\n"
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    text = TABLE.read_text(encoding="utf-8")
    TABLE.write_text(
        pattern.sub(lambda _: f"{BEGIN}\n{introduction}{head}{body}\n{END}", text), encoding="utf-8"
    )


def main() -> int:
    """Run, report and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--no-table", action="store_true")
    options = parser.parse_args()
    kinds = options.kind or list(KINDS)
    results: list[Result] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        starts = [(kind, first) for kind in kinds for first in range(0, options.runs, PORTION)]
        waiting = [
            pool.submit(try_some, kind, options.seed, first, min(PORTION, options.runs - first))
            for kind, first in starts
        ]
        for (kind, first), done in zip(starts, waiting, strict=True):
            new_results = done.result()
            results += new_results
            print(line(f"{kind} from {first}", new_results), flush=True)
            for number, result in enumerate(new_results, first):
                for finding in result.wrong:
                    print(f"    {number}: {result.damage[:200]}: {finding[:1500]}", flush=True)
    if not options.no_table:
        write_table(results, options.seed)
    return int(any(result.wrong for result in results))


if __name__ == "__main__":
    sys.exit(main())
