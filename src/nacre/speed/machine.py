"""What a measurement was taken on."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import nacre


@dataclass(frozen=True, slots=True)
class Machine:
    """Processor, cores, system, Python, and the commit of nacre where it runs from a checkout."""

    processor: str
    cores: int
    system: str
    python: str
    commit: str | None


def describe() -> Machine:
    """The machine this runs on."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        commit=_commit(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _commit() -> str | None:
    folder = Path(nacre.__file__).parent
    try:
        described = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty"],
            capture_output=True, text=True, timeout=10, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None
