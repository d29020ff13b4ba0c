"""A machine with nothing but what nacre cannot do without: all but the vector lane works, and says so."""

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
    "for name in ('numpy', 'onnxruntime', 'tokenizers', 'tantivy'): sys.modules[name] = None\n"
    "from nacre.cli.root import cli\n"
    "cli.main(sys.argv[1:])"
)


def nacre(world: World, *arguments: str, program: tuple[str, ...] = ("-c", BLOCKED)) -> dict[str, object]:
    environ = {
        "HOME": str(world.user_home), "PYTHONPATH": SOURCE, "PATH": os.environ["PATH"], "NACRE_INDEX_FRESH_TURNS": "5",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, *program, *arguments, "--json"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_ingest_store_and_recall_work_without_onnxruntime_and_name_the_lane_that_cannot_run(world: World) -> None:
    world.transcript("s1", says("user", "Remember that the mill is closed on the first Monday of a month.", uuid="u1"))
    report = nacre(world, "ingest")
    assert report["turns"] == 1
    assert "no vectors" in str(report["vectors"])
    nacre(world, "store", "The miller is on holiday in August.")
    result = nacre(world, "recall", "when is the mill closed?")
    assert "first Monday" in str(result["hits"])
    assert "numpy is not installed" in str(result["lanes"])
    lanes = {lane["name"]: lane["state"] for lane in result["lanes"]}  # type: ignore[attr-defined]
    assert lanes["lexical"] == "ran"
    assert lanes["vector"] in ("unavailable", "partial")
    assert nacre(world, "sessions", "search", "mill")["hits"]


def test_many_memories_at_once_are_compared_by_their_words(world: World) -> None:
    folder = world.user_home / ".claude" / "projects" / "-code-mill" / "memory"
    folder.mkdir(parents=True)
    for number in range(120):
        front = f"---\nname: shelf-{number}\ndescription: Shelf {number}\ntype: project\n---\n"
        (folder / f"shelf-{number}.md").write_text(f"{front}Shelf {number} of the mill holds sack {number * 7}.\n")
    assert nacre(world, "import", str(folder), "--trust")["added"] == 120
    assert nacre(world, "import", str(folder), "--trust")["added"] == 0


def test_the_text_of_a_home_that_was_made_with_all_is_searched_after_the_next_ingest(world: World) -> None:
    said = [
        says("user", f"The sluice of pond {number} is open on market days.", uuid=f"u{number}") for number in range(9)
    ]
    world.transcript("s1", *said)
    nacre(world, "ingest", program=("-m", "nacre"))
    folder = world.user_home / ".nacre" / "index"
    assert list(folder.iterdir())
    assert "partial" in str(nacre(world, "sessions", "search", "sluice")["lanes"])
    nacre(world, "ingest")
    assert len(nacre(world, "sessions", "search", "sluice", "--limit", "9")["hits"]) == 9  # type: ignore[arg-type]
    assert not list(folder.iterdir())
