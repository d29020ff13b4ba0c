#!/usr/bin/env python3
"""Fuzz the parsers: ``scripts/fuzz.py [--seconds N] [--jobs N] [target …]``.

With atheris (``pip install nacre-memory[fuzz]``), coverage guides the inputs; without it,
hypothesis generates them. Seeds are in ``tests/fuzz/corpus/<target>/``, and the adapters' samples
are used, too. Inputs that fail are saved in ``build/fuzz/<target>/``; inspect them with
``scripts/fuzz.py <target> --show <file>``. The exit code is then 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOUND = ROOT / "build" / "fuzz"
SEEDS = ROOT / "tests" / "fuzz" / "corpus"
SAMPLES = ROOT / "src" / "nacre" / "testing" / "samples"
TOKENS = ROOT / "tests" / "fuzz" / "tokens.dict"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

_LONGEST_INPUT = 8192
_SLOW_SECONDS = 20


def main() -> int:
    """Run the targets in separate processes."""
    arguments = argparse.ArgumentParser(description="Fuzz every parser of nacre.")
    arguments.add_argument("targets", nargs="*", help="targets to fuzz (default: all)")
    arguments.add_argument(
        "--seconds", type=int, default=600, help="CPU time for all targets together"
    )
    arguments.add_argument("--jobs", type=int, default=2, help="parallel targets")
    arguments.add_argument("--show", type=Path, help="run one target on a saved file")
    arguments.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()

    if options.here:
        return _fuzz(options.targets[0], options.seconds)

    from tests.fuzz.targets import TARGETS

    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        arguments.error(
            f"unknown target: {', '.join(sorted(unknown))}; available: {', '.join(TARGETS)}"
        )
    names = options.targets or list(TARGETS)
    if options.show:
        TARGETS[names[0]](options.show.read_bytes())
        return 0
    guided = find_spec("atheris") is not None
    print(
        "guided by coverage (atheris)"
        if guided
        else "atheris is not installed: hypothesis generates the inputs"
    )
    each = max(1, options.seconds // len(names))
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda name: _run(name, each), names))
    return max(results)


def _run(name: str, seconds: int) -> int:
    folder = FOUND / name
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.txt"
    command = [sys.executable, __file__, name, "--here", "--seconds", str(seconds)]
    start = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, check=False, cwd=ROOT
        ).returncode
    state = "passed" if code == 0 else f"BROKEN: {log.relative_to(ROOT)}"
    print(
        f"{name:<12} {time.monotonic() - start:5.0f} s  {_runs(log):>9,} inputs  {state}",
        flush=True,
    )
    return 1 if code else 0


def _runs(log: Path) -> int:
    words = log.read_text(encoding="utf-8", errors="replace").split()
    counts = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("Done", "tried")]
    return int(counts[-1]) if counts and counts[-1].isdigit() else 0


def _fuzz(name: str, seconds: int) -> int:
    return _guided(name, seconds) if find_spec("atheris") else _random(name, seconds)


def _guided(name: str, seconds: int) -> int:
    import atheris

    with atheris.instrument_imports(include=["nacre"], enable_loader_override=False):
        from tests.fuzz.targets import TARGETS
    corpus = FOUND / name / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = [str(folder) for folder in (SEEDS / name, SAMPLES / name) if folder.is_dir()]
    options = [
        sys.argv[0],
        str(corpus),
        *seeds,
        f"-dict={TOKENS}",
        f"-max_total_time={seconds}",
        f"-max_len={_LONGEST_INPUT}",
        f"-timeout={_SLOW_SECONDS}",
        "-rss_limit_mb=2048",
        f"-artifact_prefix={FOUND / name}/",
        "-print_final_stats=1",
    ]
    atheris.Setup(options, TARGETS[name])
    atheris.Fuzz()
    return 0


def _random(name: str, seconds: int) -> int:
    from hypothesis import HealthCheck, given, settings

    from tests.fuzz.inputs import inputs
    from tests.fuzz.targets import TARGETS

    tried = 0
    end = time.monotonic() + seconds

    @settings(
        max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(inputs(name))
    def look(data: bytes) -> None:
        nonlocal tried
        tried += 1
        if time.monotonic() < end:
            TARGETS[name](data)

    while time.monotonic() < end:
        look()
    print(f"tried {tried}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
