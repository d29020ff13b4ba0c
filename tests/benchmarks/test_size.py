"""``python -m benchmarks size`` grows a home from real sessions and searches it at every size."""

from __future__ import annotations

import json
import random
from pathlib import Path

from click.testing import CliRunner

from benchmarks.__main__ import benchmarks
from benchmarks.load.growth import gather, grow, recombined
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.settings import load_settings


def material(folder: Path) -> Path:
    """Two short sessions as generic JSON lines."""
    folder.mkdir()
    for session in ("a", "b"):
        lines = [
            {
                "session_id": session,
                "id": f"{session}{at}",
                "role": "user" if at % 2 == 0 else "assistant",
                "content": f"The importer of {session} skips row {at}. It took {at} seconds. Why so long?",
                "timestamp": f"2026-10-01T10:0{at}:00Z",
            }
            for at in range(4)
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{session}.jsonl").write_text(text, encoding="utf-8")
    return folder


def open_offline_home(home: Path) -> Home:
    return open_home(load_settings(home, {"HOME": str(home), "NACRE_EMBEDDING_MODEL": "none"}))


def test_generated_home_is_reproducible_and_reaches_its_turns(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        context = open_offline_home(tmp_path / name)
        folder = tmp_path / "material"
        ingest(
            context,
            IngestOptions(paths=(folder if folder.exists() else material(folder),), extract=False),
        )
        have = gather(context)
        assert grow(context, have, have.turns, 50, lambda _: None) == 50
        texts.append(
            [text for (text,) in context.database.rows("SELECT text FROM turns ORDER BY row")]
        )
        context.database.close()
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 20, "generated turns differ"


def test_sentences_are_recombined_whole() -> None:
    draw = random.Random(1)  # noqa: S311 - a repeatable draw
    text = "One is here. Two is there. Three is gone.\n"
    texts = {recombined(text, ("Four came. ",), draw) for _ in range(20)}
    assert text in texts
    whole = {"One is here", "Two is there", "Three is gone.", "Four came", "Four came."}
    assert all(set(item.strip().split(". ")) <= whole for item in texts)
    assert any("Four came." in item for item in texts)


def test_existing_folder_is_not_filled(tmp_path: Path) -> None:
    folder = material(tmp_path / "material")
    result = CliRunner().invoke(
        benchmarks,
        ["size", "--transcripts", str(folder), "--turns", "1000", "--folder", str(folder)],
        env={"NACRE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)},
    )
    assert result.exit_code == 2
    assert "already exists" in result.output


def test_a_home_grows_on_a_server(tmp_path: Path, server_url: str) -> None:
    result = CliRunner().invoke(
        benchmarks,
        [
            "size",
            "--transcripts",
            str(material(tmp_path / "material")),
            "--turns",
            "1000",
            "--server",
            server_url,
            "--json",
        ],
        env={"NACRE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)},
    )
    assert result.exit_code == 0, result.output
    (size,) = json.loads(result.stdout)["sizes"]
    assert size["turns"] == 1000
    assert size["passages"] > 0
    assert 0 < size["lexical"]["p50"] <= size["lexical"]["p95"] <= size["lexical"]["p99"]
    assert min(size["text_bytes"], size["vector_bytes"], size["growing_seconds"]) > 0
