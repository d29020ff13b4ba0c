"""What is installed by its hashes is what constraints.txt names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pins(text: str) -> list[str]:
    return [line.removesuffix(" \\") for line in text.splitlines() if re.match(r"[A-Za-z]", line)]


def test_requirement_files_match_and_every_version_has_a_hash() -> None:
    hashed = (ROOT / "requirements-hashed.txt").read_text()
    to_run = (ROOT / "constraints.txt").read_text().partition("# to run\n")[2].partition("\n\n")[0]
    assert pins(hashed) == pins(to_run)
    assert len(
        re.findall(r"^[A-Za-z].* \\\n    --hash=sha256:[0-9a-f]{64}", hashed, re.MULTILINE)
    ) == len(pins(hashed))


def test_hashed_requirements_name_no_index() -> None:
    assert not re.search(
        r"://|--(extra-)?index|--find-links|^-[if]", (ROOT / "requirements-hashed.txt").read_text()
    )
