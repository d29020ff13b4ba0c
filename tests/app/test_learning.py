"""What an ingest learns: from whom, and with what model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nacre.home.home import open_home
from nacre.ingestion.ingest import IngestOptions, ingest
from tests.app.conftest import World, says

RULE = "single quotes in all the templates"


def learned(world: World, path: Path) -> list[str]:
    """The contents of the memories of an ingest, with the embedding model of the settings."""
    context = open_home(world.settings(), clock=world.clock)
    try:
        report = ingest(context, IngestOptions(paths=(path,), vectors=False))
        found = [context.memories.find(memory) for memory in report.memories]
        return [memory.content for memory in found if memory]
    finally:
        context.database.close()


@pytest.mark.embedding
def test_the_bundled_model_tells_a_rule_that_no_cue_speaks_for(world: World) -> None:
    path = world.transcript("s1", says("user", RULE, uuid="u1"), says("user", "fix the footer first", uuid="u2"))

    assert learned(world, path) == ["Single quotes in all the templates"]


def test_without_the_model_the_cues_alone_decide(world: World) -> None:
    path = world.transcript(
        "s1", says("user", RULE, uuid="u1"), says("user", "Never log card numbers, not even masked ones.", uuid="u2")
    )
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"

    assert learned(world, path) == ["Never log card numbers, not even masked ones."]


def test_a_session_that_began_with_a_heartbeat_is_the_owners_once_they_speak(world: World, tmp_path: Path) -> None:
    lines = [
        {"type": "session", "version": 3, "id": "h1", "timestamp": "2026-11-18T09:00:00.000Z", "cwd": "/code/shop"},
        _said("m1", "user", "Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK."),
        _said("m2", "assistant", "HEARTBEAT_OK"),
        _said("m3", "user", "Never send a parcel without the slip of the customs office."),
    ]
    path = tmp_path / "h1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:3]), encoding="utf-8")
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    assert learned(world, path) == []

    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    assert learned(world, path) == ["Never send a parcel without the slip of the customs office."]


def _said(entry: str, role: str, text: str) -> dict[str, object]:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return {
        "type": "message", "id": entry, "parentId": None, "timestamp": "2026-11-18T09:00:01.000Z", "message": message,
    }  # fmt: skip
