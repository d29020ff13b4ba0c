#!/usr/bin/env python
"""Let nacre watch a day of many agents, squeezed into a minute, and look whether anything was missed or doubled.

``--sessions 100`` transcripts are written in small pieces, as the tools do; files are renamed, cut, copied and deleted.
Halfway the watcher is killed and started again, and ``nacre ingest`` runs beside it. ``--pause 0.05`` is the time
between two pieces. Ends with 1 where what the home holds is not what a fresh one reads from the same files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.app.day import Day, differences, held, roots  # noqa: E402

_QUIET_SECONDS = 6.0


def main() -> int:
    """Run the day; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--polling", action="store_true")
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="nacre-day-"))
    try:
        return _live(wanted, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _live(wanted: argparse.Namespace, folder: Path) -> int:
    home, attic, fresh = folder / "home", folder / "attic", folder / "fresh"
    home.mkdir()
    attic.mkdir()
    day = Day(home, attic, wanted.seed, wanted.sessions)
    watch = ["watch", *(["--polling"] if wanted.polling else [])]
    watchers = [_start(home, *watch)]

    def crash() -> None:
        watchers[-1].kill()
        watchers[-1].wait()
        watchers.append(_start(home, *watch))

    def beside() -> None:
        _start(home, "ingest", "--no-vectors")

    started = time.monotonic()
    day.live(wanted.pause, {0.3: beside, 0.5: crash, 0.8: beside})
    print(f"{day.total} pieces of {day.sessions} sessions in {time.monotonic() - started:.0f} s", Counter(day.notes))
    database = home / ".nacre" / "nacre.db"
    seconds = _until_quiet(database)
    print(f"{sum(map(len, held(database).values()))} turns; the last came {seconds:.1f} s after the end")
    process = watchers[-1]
    print(_memory(process.pid))
    process.send_signal(signal.SIGTERM)
    code = process.wait(timeout=120)
    day.bring_back()
    _start(home, "ingest", "--no-vectors", "--no-extract", nacre_home=fresh).wait()
    told = differences(held(database), held(fresh / "nacre.db"))
    print("\n".join(told) or "nothing missed, nothing doubled")
    return 1 if told or code else 0


def _start(home: Path, *words: str, nacre_home: Path | None = None) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "CODEX", "OPENCLAW"))}
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    own = {
        "HOME": str(home), "NACRE_HOME": str(nacre_home or home / ".nacre"), "NACRE_INGEST_ROOTS": roots(home),
        "NACRE_GIT_BACKGROUND": "false", "PYTHONPATH": path,
    }  # fmt: skip
    return subprocess.Popen([sys.executable, "-m", "nacre", *words], env=kept | own, stdout=subprocess.DEVNULL)


def _until_quiet(database: Path) -> float:
    """Wait until nothing comes any more; returns when the last came."""
    began = changed = time.monotonic()
    before = -1
    while time.monotonic() - changed < _QUIET_SECONDS:
        now = sum(map(len, held(database).values()))
        if now != before:
            before, changed = now, time.monotonic()
        time.sleep(0.1)
    return changed - began


def _memory(pid: int) -> str:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""
    return ", ".join(" ".join(line.split()) for line in lines if line.startswith(("VmRSS", "VmHWM")))


if __name__ == "__main__":
    sys.exit(main())
