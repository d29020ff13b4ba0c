"""``nacre gateway chat`` is a conversation in a terminal with memory and a normal session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Chat, Incoming, Outgoing, Pairing, Received, Sender
from tests.cli.conftest import SOURCE, Nacre, terminal
from tests.fakes.provider import FakeProvider, Reply, Request

__all__ = ["terminal"]
ANSWER = "The harbour crane lifts forty tonnes."


def request_text(request: Request) -> str:
    """Return the text of all requests to a model."""
    return "\n".join(str(message["content"]) for message in request.body["messages"])


@pytest.fixture
def home() -> Path:
    path = Path(os.environ["NACRE_HOME"])
    path.mkdir(parents=True)
    return path


@pytest.fixture
def provider(home: Path) -> Iterator[FakeProvider]:
    with FakeProvider([ANSWER], repeats=True) as running:
        (home / "config.toml").write_text(running.config(), encoding="utf-8")
        yield running


def lines(home: Path) -> list[dict[str, Any]]:
    (transcript,) = (home / "gateway" / "sessions").glob("*.jsonl")
    return [json.loads(line) for line in transcript.read_text(encoding="utf-8").splitlines()]


def test_chat_answers_with_memories_and_conversation_history(
    nacre: Nacre, provider: FakeProvider
) -> None:
    nacre("store", "The harbour crane was built in 1931", "--kind", "fact")
    assert nacre("gateway", "chat", "how much does the crane lift?").out.strip() == ANSWER
    assert (
        nacre("gateway", "chat", "in which year was the harbour crane built?", "--json").json[
            "answer"
        ]["text"]
        == ANSWER
    )
    first, second = map(request_text, provider.calls)
    assert "how much does the crane lift?" in first
    assert "was built in 1931" in second
    assert ANSWER in second
    assert ANSWER not in first


def test_chat_is_searchable_and_attributed_to_the_owner(
    nacre: Nacre, provider: FakeProvider, home: Path
) -> None:
    nacre("gateway", "chat", "our harbour crane may lift forty tonnes, not more")
    (passage,) = nacre("gateway", "search", "harbour crane", "--json").json["passages"]
    assert "forty tonnes" in passage["text"]
    assert [line["message"]["role"] for line in lines(home)[1:]] == ["user", "assistant"]
    assert lines(home)[1]["message"]["owner"] is True


def test_chat_started_by_an_agent_is_not_owned(
    nacre: Nacre, provider: FakeProvider, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("NACRE_OWNER_IDENTITIES", '["terminal:agent"]')
    nacre("gateway", "chat", "we always deploy on Fridays from now on")
    assert "owner" not in lines(home)[1]["message"]
    assert nacre("config", "show", "owner.identities", "--json").json["value"] == []


def test_secret_appears_in_no_file_or_prompt(
    nacre: Nacre, provider: FakeProvider, home: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    nacre("gateway", "chat", f"the token of the crane is {secret}")
    assert secret not in request_text(provider.calls[0])
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert secret.encode() not in everything


def test_new_starts_another_conversation(nacre: Nacre, provider: FakeProvider) -> None:
    before = nacre("gateway", "chat", "remember the number seven", "--json").json["session"]
    after = nacre("gateway", "chat", "--new", "which number was it?", "--json").json["session"]
    assert before != after
    assert "## This conversation so far" not in request_text(provider.calls[1])
    keys = [
        session["closed"] is None
        for session in nacre("gateway", "sessions", "--closed", "--json").json["sessions"]
    ]
    assert keys == [True, False]


def test_terminal_conversation_continues_after_a_failure(terminal: Nacre, home: Path) -> None:
    answers = [ANSWER, Reply(status=400, message="no such model"), "Long enough."]
    typed = "how much does the crane lift?\n\nhow long is the quay?\nand now?\n/new\n/exit\n"
    with FakeProvider(answers, repeats=True) as provider:
        (home / "config.toml").write_text(provider.config(), encoding="utf-8")
        outcome = terminal("gateway", "chat", typed=typed)
        assert outcome.code == 0
        assert "Talk to an agent that remembers." in outcome.out
        assert ANSWER in outcome.out
        assert "No answer: " in outcome.out
        assert "no such model" in outcome.out
        assert "Your message is kept" in outcome.out
        assert "Long enough." in outcome.out
        assert "A new conversation." in outcome.out
        first, _, last = map(request_text, provider.calls)
        assert "how much does the crane lift?" in first
        assert "how long is the quay?" in last
        again = terminal("gateway", "chat", typed="are you there?\n\x04")
        assert again.code == 0
        assert "how much does the crane lift?" not in request_text(provider.calls[-1])
        once = terminal("gateway", "chat", "which crane?")
        assert "Long enough." in once.out


def test_chat_cost_is_counted_without_background_models(
    nacre: Nacre, provider: FakeProvider
) -> None:
    nacre("gateway", "chat", "how much does the crane lift?")
    nacre("config", "set", "models.background", "false")
    outcome = " ".join(nacre("writer", "cost").out.split())
    assert "models.background is off" in outcome
    assert "chat 1 $0.00 1 0" in outcome


def test_concurrent_chats_are_separate_owner_conversations(nacre: Nacre, home: Path) -> None:
    second: list[subprocess.CompletedProcess[str]] = []

    def answer(request: Request) -> str:
        if "the first asks" in request_text(request) and not second:
            command = [
                sys.executable,
                "-m",
                "nacre",
                "gateway",
                "chat",
                "the second asks",
                "--json",
            ]
            environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
            second.append(
                subprocess.run(
                    command, env=environ, capture_output=True, text=True, check=True, timeout=60
                )
            )
        return ANSWER

    with FakeProvider(answer) as provider:
        (home / "config.toml").write_text(provider.config(), encoding="utf-8")
        first = nacre("gateway", "chat", "the first asks", "--json")
        later = nacre("gateway", "chat", "and later", "--json")
        assert "the second asks" not in request_text(provider.calls[-1])
    assert "separate conversation" in second[0].stderr
    assert "separate conversation" not in first.err
    other = json.loads(second[0].stdout)["session"]
    assert first.json["session"] == later.json["session"] != other
    text = (home / f"gateway/sessions/{other}.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(text[1])["message"]["owner"] is True


def test_failed_answer_shows_reason_and_keeps_the_question(nacre: Nacre, home: Path) -> None:
    with FakeProvider(
        [Reply(status=400, message="no such model"), ANSWER], repeats=True
    ) as provider:
        (home / "config.toml").write_text(provider.config(), encoding="utf-8")
        failed = nacre("gateway", "chat", "how long is the quay?", code=None)
        assert failed.code != 0
        assert "no such model" in failed.err
        nacre("gateway", "chat", "are you there?")
        assert "how long is the quay?" in request_text(provider.calls[-1])


def test_chat_reports_a_missing_model_before_it_reads_a_message(nacre: Nacre) -> None:
    for message in ([], ["-"], ["hello there"]):
        failed = nacre("gateway", "chat", *message, code=None)
        assert "no model is set for conversations" in failed.err
        assert "nacre writer set" in failed.err


def test_chat_uses_the_writer_unless_models_chat_is_set(nacre: Nacre, home: Path) -> None:
    with FakeProvider([ANSWER], repeats=True) as provider:
        config = provider.config().replace("default = ", "extraction = ")
        for more, model in (("", "m"), ('chat = "fake:other"', "other")):
            (home / "config.toml").write_text(config.replace("\n\n", f"\n{more}\n", 1))
            nacre("gateway", "chat", "are you there?")
            assert provider.calls[-1].body["model"] == model


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 1),
        (["sessions"], 0),
        (["pair"], 0),
        (["search", "boats"], 0),
        (["show", "telegram:1"], 3),
        (["show", "telegram:1", "--end"], 3),
    ],
)
def test_read_only_commands_create_no_gateway(
    nacre: Nacre, home: Path, words: list[str], code: int
) -> None:
    nacre("gateway", *words, code=code)
    assert not (home / "gateway").exists()


def test_backup_includes_the_conversations(
    nacre: Nacre, provider: FakeProvider, home: Path, tmp_path: Path
) -> None:
    nacre("gateway", "chat", "the crane is yellow")
    nacre("data", "backup", "create", str(tmp_path / "all.zip"))
    names = zipfile.ZipFile(tmp_path / "all.zip").namelist()
    assert "gateway/gateway.db" in names
    assert not [name for name in names if name.startswith("gateway/gateway.db-")]
    nacre("data", "backup", "restore", str(tmp_path / "all.zip"), "--to", str(tmp_path / "other"))
    assert (tmp_path / "other/gateway/gateway.db").is_file()


def test_forgotten_session_is_deleted_from_transcripts(
    nacre: Nacre, provider: FakeProvider, home: Path
) -> None:
    nacre("gateway", "chat", "the crane driver is afraid of heights")
    nacre("gateway", "chat", "and the quay is long")
    nacre("forget", "--match", "afraid of heights", "--yes")
    text = "\n".join(json.dumps(line) for line in lines(home))
    assert "afraid of heights" not in text
    assert "the quay is long" in text
    (session,) = nacre("gateway", "sessions", "--json").json["sessions"]
    nacre("forget", "--session", f"nacre-chat:{session['id']}", "--yes")
    assert not list((home / "gateway" / "sessions").glob("*.jsonl"))


def incoming(number: int, text: str) -> tuple[Received, str]:
    """A message in another conversation, and its result."""
    message = Incoming(f"m{number}", Chat("club", "9"), Sender("7", "Jordan Example"), text)
    return Received(
        0, "club:7", message, datetime(2026, 1, number, tzinfo=UTC)
    ), "heard" if number == 1 else "waiting"


@pytest.mark.parametrize(
    ("how", "remaining"),
    [
        (("--match", "afraid of heights"), ["and the quay is long"]),
        (("--match", "Jordan"), []),
        (("--before", "2026-01-02"), ["afraid of heights, too", "and the quay is long"]),
    ],
)
def test_forget_removes_messages_not_yet_in_a_transcript(
    nacre: Nacre, home: Path, how: tuple[str, str], remaining: list[str]
) -> None:
    messages = ["the driver is afraid of heights", "afraid of heights, too", "and the quay is long"]
    part = Outgoing("p:0", Chat("club", "9"), "Who is afraid of heights?")
    with closing(GatewayStore.open(home)) as store:
        store.receive(
            "club", [incoming(number, text) for number, text in enumerate(messages, 1)], {}
        )
        store.add_part("club:7", part, datetime(2026, 1, 3, tzinfo=UTC))
        store.ask_pairing(
            Pairing("club", "7", "Jordan Example", "K7QM-2XDP", datetime(2026, 1, 1, tzinfo=UTC))
        )
    assert nacre("forget", *how, "--dry-run", "--json").json["held"] >= 1
    assert nacre("forget", *how, "--yes", "--json").json["is_erased"]
    with closing(GatewayStore.open(home)) as store:
        assert [
            message.received.message.text for message in store.open_messages("club:7")
        ] == remaining
        assert (store.next_part("club:7") is None) is (how[1] == "afraid of heights")
    if how[0] == "--match":
        assert how[1].encode() not in (home / "gateway/gateway.db").read_bytes()


def test_forget_removes_messages_before_indexing(
    nacre: Nacre, provider: FakeProvider, home: Path
) -> None:
    nacre("gateway", "chat", "the crane driver is here")
    (transcript,) = (home / "gateway" / "sessions").glob("*.jsonl")
    line = lines(home)[1]
    line["id"], line["message"]["content"] = "later", "she is afraid of heights"
    transcript.write_text(transcript.read_text() + json.dumps(line) + "\n", encoding="utf-8")
    nacre("forget", "--match", "afraid of heights", "--yes")
    assert "afraid of heights" not in transcript.read_text()
    assert "the crane driver" in transcript.read_text()
