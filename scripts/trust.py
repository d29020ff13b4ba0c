#!/usr/bin/env python
"""Interrupt nacre at every point in every scenario and at random times, and write the results to a table.

Run by ``make trust``. ``--kills 1000`` sets the number of random kills, ``--programs 10`` the
number of processes killed in each scenario of commands, ``--errors 500`` the number of system
errors in a scenario. ``--every 5`` kills only at each fifth point, and ``--scenario`` selects a
scenario. Exits with 1 if anything was lost, duplicated or left incomplete.
"""

from __future__ import annotations

import argparse
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.trust.client import Client, errors, kills, serving  # noqa: E402
from tests.trust.scenarios import SCENARIOS  # noqa: E402

TABLE = ROOT / "docs/crash-safety.md"
BEGIN, END = "<!-- table: make trust -->\n", "<!-- end of table -->"
FAULTS = ("kill", "random kill", "kill of a program", "ENOSPC", "EROFS", "EIO", "EACCES")
DEEP_EVERY, GIT_EVERY = 3, 15
"""Every home is opened and compared.

In each third run, the commands are repeated and the database is rebuilt. In each fifteenth, a vault
without a history first gets its first commit.
"""

STARTING = 0.3
"""Share of a program's run time that it needs to start."""


@dataclass
class Row:
    """The results for one kind of fault in one scenario."""

    scenario: str
    fault: str
    points: int = 0
    reached: int = 0
    refused: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, run: dict[str, Any], at: str) -> None:
        self.points += 1
        self.reached += bool(run["killed"] or run["failed"])
        self.refused += bool(run["failed"])
        self.findings += [f"{at}: {finding}" for finding in run["wrong"]]

    def line(self) -> str:
        doubled = sum("doubled" in finding or "twice" in finding for finding in self.findings)
        lost = len(self.findings) - doubled
        outcome = (
            "goes on"
            if "kill" in self.fault
            else f"{self.refused} refused with a hint, the rest done; goes on"
        )
        return (
            f"| {self.scenario} | {self.fault} | {self.points} | {lost} | {doubled} | {outcome} |"
        )


def try_all(
    client: Client, scenario: str, options: argparse.Namespace, kills_wanted: int
) -> list[Row]:
    """Return the results for every kind of fault in a scenario."""
    rows = {fault: Row(scenario, fault) for fault in FAULTS}
    events, seconds = client.events(scenario)
    for number, fault in enumerate(
        [*kills(events)[:: options.every], *errors(events, options.errors)]
    ):
        at = f"{fault} at {events[fault['at']]}"
        name = "kill" if fault["what"] in ("before", "half", "after") else fault["what"]
        rows[name].add(client.run(scenario, fault, **_depth(number)), at)
    times = random.Random(f"{options.seed} {scenario}")  # noqa: S311 - a run can be repeated
    for number in range(kills_wanted):
        delay = times.uniform(0, seconds * 1.1)
        run = client.run(scenario, delay=delay, **_depth(number))
        rows["random kill"].add(run, f"{delay:.4f} s")
    if all(not callable(step.run) for step in SCENARIOS[scenario].steps):
        whole = client.time(scenario)
        for _ in range(options.programs):
            delay = times.uniform(whole * STARTING, whole * 1.05)
            run = client.run(scenario, delay=delay, as_program=True)
            rows["kill of a program"].add(run, f"{delay:.4f} s")
    return list(rows.values())


def _depth(number: int) -> dict[str, bool]:
    return {"deep": number % DEEP_EVERY == 0, "git": number % GIT_EVERY == 0}


def write_table(rows: list[Row], options: argparse.Namespace) -> None:
    """Replace the table in the document."""
    findings = sum(len(row.findings) for row in rows)
    sums = {fault: sum(row.points for row in rows if row.fault == fault) for fault in FAULTS}
    part = f", killed at each {options.every}th point" if options.every > 1 else ""
    introduction = (
        f"{sum(sums.values()):,} faults ({', '.join(f'{count:,} {name}' for name, count in sums.items())}), "
        f"{findings} findings. "
        f"Commit {options.commit}, {datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, seed {options.seed}{part}.\n\n"
    )
    counts = Counter[tuple[str, bool]]()
    for row in rows:
        counts[row.scenario, row.fault in FAULTS[:3]] += row.points
    scenarios = ", ".join(
        f"{name} {counts[name, True]}+{counts[name, False]}"
        for name in dict.fromkeys(row.scenario for row in rows)
    )
    body = textwrap.fill(f"Kills+errors by scenario: {scenarios}.", 120)
    text = TABLE.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    TABLE.write_text(
        pattern.sub(lambda _: f"{BEGIN}\n{introduction}{body}\n\n{END}", text), encoding="utf-8"
    )


def main() -> int:
    """Run, report and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--errors", type=int, default=160)
    parser.add_argument("--programs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", choices=SCENARIOS, action="append")
    parser.add_argument("--no-table", action="store_true")
    options = parser.parse_args()
    options.commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    chosen = options.scenario or list(SCENARIOS)
    share = -(-options.kills // len(chosen))
    print(f"seed {options.seed}, {share * len(chosen)} random kills")
    memory = Path("/dev/shm")  # noqa: S108 - a new folder is created there
    sandbox = Path(tempfile.mkdtemp(prefix="nacre-trust-", dir=memory if memory.is_dir() else None))

    done: dict[str, list[Row]] = {}

    def work(scenario: str) -> None:
        folder = sandbox / scenario.replace(" ", "-")
        folder.mkdir()
        with serving(folder) as client:
            rows = try_all(client, scenario, options, share)
        for row in rows:
            print(row.line(), flush=True)
            for finding in row.findings[:5]:
                print(f"    {finding[:600]}", flush=True)
        done[scenario] = rows
        if not options.no_table:  # written after each scenario, in case the run is stopped
            write_table([row for name in SCENARIOS if name in done for row in done[name]], options)

    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(work, chosen))
    finally:
        shutil.rmtree(sandbox, ignore_errors=True)
    return int(any(row.findings for rows in done.values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
