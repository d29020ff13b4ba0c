"""``nacre sessions extract``: what would be learned, without learning it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.dataset import DATA
from tests.app.conftest import World, says
from tests.cli.conftest import Nacre
from tests.fakes.provider import FakeProvider

SESSION = "d10-release-freeze"


@pytest.fixture
def transcript() -> Path:
    return next((DATA / "extraction").glob(f"{SESSION}__*.jsonl"))


def test_rules_show_learnable_memories_without_a_model(nacre: Nacre, transcript: Path) -> None:
    answer = nacre("sessions", "extract", str(transcript), "--json").json
    (session,) = answer["sessions"]
    assert session["asked"] is None
    assert {candidate["held"] for candidate in session["candidates"]} == {None}
    assert nacre("list", "--json").json["memories"] == []
    assert (
        "Nothing was stored; no language model is set: nacre config set models.default."
        in nacre("sessions", "extract", str(transcript)).out
    )


def test_transcript_is_read_from_standard_input(nacre: Nacre, transcript: Path) -> None:
    shown = nacre("sessions", "extract", "-", stdin=transcript.read_text(encoding="utf-8")).out
    assert shown == nacre("sessions", "extract", str(transcript)).out
    assert shown.startswith("codex:")


def test_json_answer_can_be_imported(nacre: Nacre, transcript: Path, tmp_path: Path) -> None:
    answer, file = (
        nacre("sessions", "extract", str(transcript), "--json").out,
        tmp_path / "found.json",
    )
    (session,) = json.loads(answer)["sessions"]
    assert nacre("data", "import", "-", "--trust", "--json", stdin=answer).json["added"] == 2
    stored = nacre("list", "--json").json["memories"]
    fields = (
        "kind",
        "subject",
        "content",
        "importance",
        "expiry",
        "tags",
        "speaker",
        "trust",
        "confidence",
    )
    proposed = [candidate for candidate in session["candidates"] if not candidate["held"]]
    assert sorted([memory[name] for name in fields] for memory in stored) == sorted(
        [candidate[name] for name in fields] for candidate in proposed
    )
    assert {memory["created"] for memory in stored} == {session["session"]["started"]}
    file.write_text(answer, encoding="utf-8")
    assert nacre("data", "import", str(file), "--json").json["known"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((), 2, "nothing to extract from"),
        (("{file}", "--model", "nobody:model-1"), 1, "nobody"),
        (("{file}", "--session", "elsewhere"), 3, "contains no session 'elsewhere'"),
        (("--session", "elsewhere"), 3, "there is no session 'elsewhere'"),
    ],
)
def test_unextractable_input_is_reported(
    nacre: Nacre, transcript: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    words = [str(transcript) if one == "{file}" else one for one in arguments]
    assert told in nacre("sessions", "extract", *words, code=code).err


def test_overtaken_memories_are_shown_with_quotes(nacre: Nacre, user_home: Path) -> None:
    trouble, mended = (
        "The ferry timetable fails on holidays.",
        "The ferry timetable knows the holidays now.",
    )
    later = (datetime.now(UTC) + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    ask = says(
        "user", "Please look at the ferry timetable: it fails on holidays.", uuid="u-1", at=later
    )
    file = World(user_home).transcript(
        "ferry", ask, says("assistant", mended, uuid="u-2", at=later)
    )
    over = {"known": 1, "quote": mended}
    verdict = {"number": 1, "support": mended, "finding": "holds", "wrong": []}
    replies = [{"memories": [], "over": [over]}, {"verdicts": [verdict]}] * 2
    with FakeProvider(replies) as provider:
        nacre("store", trouble, "--kind", "lesson")
        (user_home / ".nacre" / "config.toml").write_text(provider.config(), encoding="utf-8")
        shown = nacre("sessions", "extract", str(file), "--model", "fake:m").out
        (session,) = nacre("sessions", "extract", str(file), "--model", "fake:m", "--json").json[
            "sessions"
        ]
    assert f"outdated {trouble}" in shown
    assert f"“{mended}”" in shown
    (overtaken,) = session["asked"]["overtaken"]
    assert (overtaken["memory"]["content"], overtaken["quote"]) == (trouble, mended)
