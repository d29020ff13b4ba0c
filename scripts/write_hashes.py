"""Write requirements-hashed.txt: the versions of constraints.txt that nacre runs with, each with its wheels' hashes.

For `pip install --require-hashes`. pip is asked what it would install, for every Python and machine of _PYTHONS and
_PLATFORMS, from whatever index it is set up with; nothing is installed, and no address is written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.requirements import Requirement

_ROOT = Path(__file__).resolve().parent.parent
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
)
_HEAD = """\
# What nacre needs to run, as constraints.txt has it, with the hashes of the wheels for Python 3.11 to 3.14 on Linux
# (x86-64): pip install --require-hashes -r requirements-hashed.txt. Written by scripts/write_hashes.py.
"""
_AT_ONCE = 2
_SECONDS = 600


def pinned() -> list[Requirement]:
    """What stands below "to run" in constraints.txt."""
    part = (_ROOT / "constraints.txt").read_text().partition("# to run\n")[2].partition("\n\n")[0]
    return [Requirement(line) for line in part.splitlines()]


def hashes(python: str) -> dict[str, str]:
    """Name → hash of the wheel that pip would take there. Raises CalledProcessError."""
    here = {"python_version": python, "python_full_version": f"{python}.0"}
    wanted = [pin for pin in pinned() if pin.marker is None or pin.marker.evaluate(here)]
    machine = [word for platform in _PLATFORMS for word in ("--platform", platform)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--dry-run",
                "--ignore-installed",
                "--no-deps",
                "--only-binary=:all:",
                "--python-version",
                python,
                *machine,
                "--target",
                folder,
                "--report",
                str(report),
                *(f"{pin.name}{pin.specifier}" for pin in wanted),
            ],
            check=True,
            timeout=_SECONDS,
        )
        found = json.loads(report.read_text())["install"]
    names = {one["metadata"]["name"].lower().replace("_", "-"): one for one in found}
    told = {pin.name: names[pin.name.lower().replace("_", "-")] for pin in wanted}
    return {
        name: one["download_info"]["archive_info"]["hashes"]["sha256"] for name, one in told.items()
    }


def main() -> None:
    """Ask for every Python, and write the file."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(hashes, _PYTHONS))
    lines = [_HEAD]
    for pin in pinned():
        known = sorted({of_python[pin.name] for of_python in found if pin.name in of_python})
        lines.append(
            " \\\n    ".join([str(pin), *(f"--hash=sha256:{known_hash}" for known_hash in known)])
            + "\n"
        )
    (_ROOT / "requirements-hashed.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
