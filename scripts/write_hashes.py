"""Write requirements-hashed.txt: the versions that nacre needs to run, with the hashes of their wheels.

The versions come from constraints.txt; the file is for `pip install --require-hashes`. pip reports
the packages for every Python and machine in _PYTHONS and _PLATFORMS from its configured index.
Nothing is installed, and no address is written.
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
    """Return the requirements below "to run" in constraints.txt."""
    part = (_ROOT / "constraints.txt").read_text().partition("# to run\n")[2].partition("\n\n")[0]
    return [Requirement(line) for line in part.splitlines()]


def hashes(python: str) -> dict[str, str]:
    """Return the hashes of the wheels for a Python version, by package. Raises CalledProcessError."""
    here = {"python_version": python, "python_full_version": f"{python}.0"}
    pins = [pin for pin in pinned() if pin.marker is None or pin.marker.evaluate(here)]
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
                *(f"{pin.name}{pin.specifier}" for pin in pins),
            ],
            check=True,
            timeout=_SECONDS,
        )
        entries = json.loads(report.read_text())["install"]
    names = {entry["metadata"]["name"].lower().replace("_", "-"): entry for entry in entries}
    packages = {pin.name: names[pin.name.lower().replace("_", "-")] for pin in pins}
    return {
        name: package["download_info"]["archive_info"]["hashes"]["sha256"]
        for name, package in packages.items()
    }


def main() -> None:
    """Get the hashes for every Python and write the file."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(hashes, _PYTHONS))
    lines = [_HEAD]
    for pin in pinned():
        pin_hashes = sorted({of_python[pin.name] for of_python in results if pin.name in of_python})
        lines.append(
            " \\\n    ".join(
                [str(pin), *(f"--hash=sha256:{known_hash}" for known_hash in pin_hashes)]
            )
            + "\n"
        )
    (_ROOT / "requirements-hashed.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
