"""``nacre admin benchmark``: copies that count as new, homes as large as wanted, figures of real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nacre.cli.root import cli
from nacre.errors import NotFoundError
from nacre.home.consent import configured_embedder
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.settings import load_settings
from nacre_extras import speed
from nacre_extras.speed import copy_tree, draw_questions, multiply_turns, scatter_vectors


def record(kind: str, number: int, content: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"msg_{number}", "model": "m", "type": "message"}
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "message": message,
        "sessionId": "11111111-2222-4333-8444-555555555555",
        "timestamp": f"2026-01-01T10:00:{number:02}Z",
        "cwd": "/code/acme",
        "version": "2.1.0",
        "isSidechain": False,
        "userType": "external",
    }


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    records = [
        record("user", 0, "Please make the importer skip empty rows of the sheet."),
        record(
            "assistant",
            1,
            [{"type": "text", "text": "The importer now skips rows without any value."}],
        ),
        record("user", 2, "And count the rows that were skipped, please."),
        record(
            "assistant",
            3,
            [{"type": "text", "text": "It prints how many rows were skipped at the end."}],
        ),
    ]
    file = tmp_path / "tree" / "-work-acme" / "11111111-2222-4333-8444-555555555555.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(found) + "\n" for found in records), encoding="utf-8")
    return tmp_path / "tree"


def opened(home: Path, *, model: str = "none") -> Home:
    return open_home(load_settings(home, {"HOME": str(home), "NACRE_EMBEDDING_MODEL": model}))


def read(context: Home, folder: Path) -> None:
    ingest(
        context, IngestOptions(paths=(folder,), extract=False, vectors=False, remember_paths=False)
    )


def test_benchmark_copies_are_not_duplicates(tree: Path, tmp_path: Path) -> None:
    (size,) = (path.stat().st_size for path in tree.rglob("*.jsonl"))
    written = copy_tree(tree, tmp_path / "copies", 1)
    copies = list((tmp_path / "copies").rglob("*.jsonl"))
    assert written >= 1.0
    assert len(copies) >= 1_000_000 // (size + 200)
    context = opened(tmp_path / "home")
    few = tmp_path / "few"
    few.mkdir()
    for copy in copies[:5]:
        (few / f"{copy.parent.parent.name}.jsonl").write_bytes(copy.read_bytes())
    read(context, few)
    assert [row[1:3] for row in context.sessions.counts()] == [(5, 20)]
    context.database.close()


def test_tree_without_transcripts_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no \.jsonl files"):
        copy_tree(tmp_path, tmp_path / "copies", 1)


@pytest.mark.embedding
def test_home_grows_to_the_requested_turns_with_vectors(tree: Path, tmp_path: Path) -> None:
    context = opened(tmp_path / "home", model="minilm")
    read(context, tree)
    assert multiply_turns(context, 30, lambda _: None) == 30
    assert scatter_vectors(context, lambda _: None) == 30
    assert context.vectors.missing() == (0, 0)
    query = configured_embedder(context).embed(["The importer now skips rows without any value."])[
        0
    ]
    near = context.vectors.nearest_turns(query, limit=5)
    assert all(0.85 < found.cosine < 0.99 for found in near)
    assert len({found.cosine for found in near}) == 5
    assert draw_questions(context, 10) == draw_questions(context, 10)
    assert len(draw_questions(context, 10)) == 2
    context.database.close()


@pytest.mark.embedding
@pytest.mark.skipif(not hasattr(__import__("os"), "wait4"), reason="needs wait4")
def test_speed_is_measured_in_separate_processes(
    tree: Path, monkeypatch: pytest.MonkeyPatch, user_home: Path
) -> None:
    monkeypatch.setattr(speed, "_REPETITIONS", 1)
    monkeypatch.setattr(speed, "_MEMORIES", 20)
    arguments = [
        "admin",
        "benchmark",
        "--transcripts",
        str(tree),
        "--megabytes",
        "1",
        "--turns",
        "100",
        "--json",
    ]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["turns"] == found["passages"] == 100
    alone, read_only, learned = found["ingests"]
    assert alone["turns"] == read_only["turns"] == learned["turns"] > 1000
    for ingest_speed in found["ingests"]:
        assert 0 < ingest_speed["searchable_seconds"] <= ingest_speed["seconds"]
        assert ingest_speed["searchable_mb_per_second"] >= ingest_speed["megabytes_per_second"]
    assert 10 < read_only["peak_mb"] < 500  # whatever the size of the process that measures
    assert [latency["name"] for latency in found["recalls"]] == ["lexical", "all lanes"]
    assert [latency["name"] for latency in found["contexts"]] == [
        "session start",
        "session start with its first prompt",
        "prompt",
    ]
    assert found["memories"] >= 20
    assert len(found["starts"]) == 6
    assert list(user_home.iterdir()) == []
