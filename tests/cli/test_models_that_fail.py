"""After any provider failure, extract and ingest report one line and the rules learn."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.conftest import World, says
from tests.cli.conftest import Nacre
from tests.fakes.provider import FakeProvider, Reply

KEY = "sk-boat-0123456789abcdefghij"
SAID = (
    "Let's decide: the ferry timetable is stored in SQLite, not in YAML files, because two clerks edit it at once.",
    "I always want the tests run before a commit.",
)
SINCE = '[writer]\nsince = "2026-01-01T00:00:00Z"\n'
ABLE = '[models.capabilities."fake:m"]\noutput = 4000\nprice = {input = 1.0, output = 5.0}\n'
FAILURES = [
    (
        Reply(status=401, message="invalid_api_key"),
        "does not accept the API key in $BOAT_KEY",
        "export BOAT_KEY=",
    ),
    (
        Reply(status=403, message="This key was revoked."),
        "does not let the API key in $BOAT_KEY",
        "allow the model",
    ),
    (
        Reply(status=429, message="no", code="insufficient_quota"),
        "has no credit left",
        "add credit",
    ),
    (Reply(status=404, message="no such model"), "has no model m", "check its name"),
    (Reply(fault="html"), "sent a web page", "base_url"),
    (Reply("I would rather not."), "it is not JSON", "choose another model"),
    (Reply(fault="truncated", headers={"retry-after-ms": "1"}), "was cut off", "later"),
    (Reply(fault="hang"), "did not answer within 1 seconds", "proxy"),
]


@pytest.fixture
def transcript(user_home: Path) -> Path:
    lines = [says("user", text, uuid=f"u{number}") for number, text in enumerate(SAID)]
    return World(user_home).transcript("harbour", *lines, folder="-code-harbour")


def configure(
    provider: FakeProvider, user_home: Path, more: str = "background = true\ntimeout_seconds = 1\n"
) -> None:
    home = user_home / ".nacre"
    home.mkdir(mode=0o700, exist_ok=True)
    config = provider.config(more=more).replace("base_url", 'key = "BOAT_KEY"\nbase_url')
    (home / "config.toml").write_text(config + SINCE + ABLE, encoding="utf-8")


def stored(nacre: Nacre) -> list[str]:
    return sorted(memory["content"] for memory in nacre("list", "--json").json["memories"])


@pytest.mark.parametrize(
    ("reply", "message", "remedy"),
    FAILURES,
    ids=["wrong key", "revoked", "no credit", "unknown", "html", "no schema", "half", "hangs"],
)
def test_failing_model_prints_a_single_line_and_rules_continue(
    nacre: Nacre,
    user_home: Path,
    transcript: Path,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    message: str,
    remedy: str,
) -> None:
    monkeypatch.setenv("BOAT_KEY", KEY)
    with FakeProvider([reply], repeats=True) as provider:
        configure(provider, user_home)
        outcome = nacre("sessions", "extract", str(transcript))
        (warning,) = [line for line in outcome.err.splitlines() if line.startswith("warning: ")]
        for words in ("fake", "m", message, remedy, "1 part extracted by rules"):
            assert words in warning
        assert all(text in " ".join(outcome.out.split()) for text in SAID)
        assert stored(nacre) == []
        result = nacre("ingest")
        output = " ".join(result.out.split())
        assert message in output
        assert remedy in output
        assert "used rules for 1 of 1 part" in output
        assert KEY not in outcome.err + outcome.out + result.out + result.err
    assert stored(nacre) == sorted(SAID)
    nacre("ingest")
    assert stored(nacre) == sorted(SAID), "no memory is duplicated"


def test_session_longer_than_any_window_is_read_in_parts(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOAT_KEY", KEY)
    turns = [
        says("user", f"Pier {n}: the ropes are frayed. " * 60, uuid=f"u{n}") for n in range(90)
    ]
    World(user_home).transcript(
        "harbour", *turns, says("user", SAID[1], uuid="last"), folder="-code-harbour"
    )
    with FakeProvider([{"memories": []}], repeats=True) as provider:
        configure(provider, user_home, "background = true\n")
        answer = nacre("ingest", "--json").json
        assert len(provider.calls) > 5
        assert (
            max(len(call.body["messages"][-1]["content"]) for call in provider.calls) < 32_000 * 4
        )
    assert answer["problems"] == []
