"""Without the optional packages, everything but the vector lane works, and recall names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.app.conftest import World, says

SOURCE = str(Path(__file__).parents[2] / "src")
BLOCKED = (
    "import sys\n"
    "for name in ('numpy', 'onnxruntime', 'tokenizers'): sys.modules[name] = None\n"
    "from nacre.cli.root import cli\n"
    "cli.main(sys.argv[1:])"
)


def nacre(
    world: World, *arguments: str, program: tuple[str, ...] = ("-c", BLOCKED)
) -> dict[str, object]:
    environ = {"HOME": str(world.user_home), "PYTHONPATH": SOURCE, "PATH": os.environ["PATH"]}
    process = subprocess.run(
        [sys.executable, *program, *arguments, "--json"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    answer: dict[str, object] = json.loads(process.stdout)
    return answer


def test_memory_works_without_onnxruntime_and_names_the_missing_lane(
    world: World,
) -> None:
    world.transcript(
        "s1",
        says("user", "Remember that the mill is closed on the first Monday of a month.", uuid="u1"),
    )
    report = nacre(world, "ingest")
    assert report["turns"] == 1
    assert "no vectors" in str(report["vectors_note"])
    nacre(world, "store", "The miller is on holiday in August.")
    result = nacre(world, "recall", "when is the mill closed?")
    assert "first Monday" in str(result["hits"])
    assert "numpy is not installed" in str(result["lanes"])
    lanes = {lane["name"]: lane["state"] for lane in result["lanes"]}  # type: ignore[attr-defined]
    assert lanes["lexical"] == "ran"
    assert lanes["vector"] in ("unavailable", "partial")
    assert nacre(world, "search", "mill")["turns"]


def test_large_import_without_vectors_detects_duplicates(world: World) -> None:
    folder = world.user_home / ".claude" / "projects" / "-code-mill" / "memory"
    folder.mkdir(parents=True)
    for number in range(120):
        front = f"---\nname: shelf-{number}\ndescription: Shelf {number}\ntype: project\n---\n"
        (folder / f"shelf-{number}.md").write_text(
            f"{front}Shelf {number} of the mill holds sack {number * 7}.\n"
        )
    assert nacre(world, "data", "import", str(folder), "--trust")["added"] == 120
    assert nacre(world, "data", "import", str(folder), "--trust")["added"] == 0
