"""The file of answers that ``nacre eval`` keeps to compare with: it quotes memories."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from nacre.home.home import Home
from nacre.platform import json_text, private_files


def baseline_file(home: Home) -> Path:
    """Where the baseline is."""
    return home.settings.home / "eval-baseline.json"


def forget_in_baseline(home: Home, memory_ids: Collection[str]) -> None:
    """Take forgotten memories out of the kept answers; a file that holds none of them stays as it is."""
    file = baseline_file(home)
    try:
        kept = json_text.parse(file.read_bytes())
        found = [answer["results"] for answer in kept["queries"]]
        left = [[one for one in results if one["id"] not in memory_ids] for results in found]
    except (OSError, ValueError, TypeError, KeyError):
        return
    if left != found:
        for answer, results in zip(kept["queries"], left, strict=True):
            answer["results"] = results
        write_json(file, kept)


def write_json(file: Path, value: object) -> None:
    """Write a value readable by the owner alone: queries and answers tell a lot."""
    private_files.write_file(file, f"{json.dumps(value, ensure_ascii=False, indent=2)}\n")
