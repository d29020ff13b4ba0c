"""``nacre sessions extract`` shows memories without storing them."""

from __future__ import annotations

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
    output = nacre("sessions", "extract", "-", stdin=transcript.read_text(encoding="utf-8")).out
    assert output == nacre("sessions", "extract", str(transcript)).out
    assert output.startswith("codex:")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "no transcript or session is given"),
        (("{file}", "--model", "nobody:model-1"), 1, "nobody"),
        (("{file}", "--session", "elsewhere"), 3, "contains no session 'elsewhere'"),
        (("--session", "elsewhere"), 3, "there is no session 'elsewhere'"),
    ],
)
def test_unextractable_input_is_reported(
    nacre: Nacre, transcript: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    words = [str(transcript) if argument == "{file}" else argument for argument in arguments]
    assert message in nacre("sessions", "extract", *words, code=code).err


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
        output = nacre("sessions", "extract", str(file), "--model", "fake:m").out
        (session,) = nacre("sessions", "extract", str(file), "--model", "fake:m", "--json").json[
            "sessions"
        ]
    assert f"outdated {trouble}" in output
    assert f"“{mended}”" in output
    (overtaken,) = session["asked"]["overtaken"]
    assert (overtaken["memory"]["content"], overtaken["quote"]) == (trouble, mended)
