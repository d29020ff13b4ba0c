#!/usr/bin/env python
"""Damage homes at random, follow what nacre says is to be done, and write what came of it into a table.

``make damage`` runs this. ``--runs 500`` says how many damages there are of each kind, ``--kind`` names one kind,
``--seed`` repeats a run. Ends with 1 where a command failed in a way that nobody foresaw, or a remedy did not help.
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
    """Some damages of a kind, each known by its number."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
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
    """A row of the table."""
    noticed, mended = (
        sum(one.noticed for one in results),
        sum(bool(one.remedies) for one in results),
    )
    findings = sum(bool(one.wrong) for one in results)
    return f"| {kind} | {len(results)} | {noticed} | {mended} | {findings} |"


def write_table(results: list[Result], seed: int) -> None:
    """Put the table where the document has its place."""
    head = "| damaged part | damages | reported | fixed by the remedy | findings |\n|---|---|---|---|---|\n"
    found = {kind: [one for one in results if one.kind == kind] for kind in KINDS}
    body = "".join(f"{line(kind, of_kind)}\n" for kind, of_kind in found.items() if of_kind)
    told = f"{len(results):,} damages, {datetime.now(UTC):%Y-%m-%d}, seed {seed}.\n\n"
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    text = TABLE.read_text(encoding="utf-8")
    TABLE.write_text(
        pattern.sub(lambda _: f"{BEGIN}\n{told}{head}{body}\n{END}", text), encoding="utf-8"
    )


def main() -> int:
    """Run, tell, write the table."""
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
            found = done.result()
            results += found
            print(line(f"{kind} from {first}", found), flush=True)
            for number, one in enumerate(found, first):
                for finding in one.wrong:
                    print(f"    {number}: {one.damage[:200]}: {finding[:1500]}", flush=True)
    if not options.no_table:
        write_table(results, options.seed)
    return int(any(one.wrong for one in results))


if __name__ == "__main__":
    sys.exit(main())
