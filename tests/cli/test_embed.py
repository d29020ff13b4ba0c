"""Choosing an embedding model, and switching to another, with ``nacre writer embedding``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Nacre
from tests.fakes.provider import FakeProvider, Reply

pytestmark = pytest.mark.embedding
MODEL = "openai:text-embedding-3-small"
KEY = "sk-harbour-0123456789abcdef"


@pytest.fixture
def provider(user_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """OpenAI on loopback, with a key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    folder = user_home / ".nacre"
    folder.mkdir(mode=0o700)
    with FakeProvider() as provider:
        config = f'[models]\ntimeout_seconds = 2\n[models.providers.openai]\nbase_url = "{provider.url}/v1"\n'
        (folder / "config.toml").write_text(config, encoding="utf-8")
        yield provider


@pytest.fixture
def filled(provider: FakeProvider, nacre: Nacre) -> FakeProvider:
    nacre("store", "The harbour cranes are painted every second spring.")
    nacre("store", "The ferry office closes at noon on Sundays.")
    nacre("ingest")
    assert not provider.requests
    return provider


def test_status_shows_the_local_model_and_no_requests(nacre: Nacre, filled: FakeProvider) -> None:
    assert "texts stay on this machine" in nacre("writer", "embedding").out
    record = nacre("writer", "embedding", "--json").json
    assert record["wanted"] == "minilm"
    assert record["place"]["host"] == ""
    assert record["in_use"]["memories"] == 2
    assert not filled.requests


def test_provider_receives_nothing_before_consent(nacre: Nacre, filled: FakeProvider) -> None:
    errors = nacre("config", "set", "embedding.model", MODEL).err
    assert "sends no text to 127.0.0.1" in errors
    assert "nacre writer embedding --resume" in errors
    nacre("store", "The lighthouse keeper has a new lamp.")
    assert "without your consent" in nacre("ingest", "--json").json["vectors_note"]
    lanes = nacre("recall", "when is the ferry office open?", "--json").json["lanes"]
    assert {"name": "vector", "state": "ran", "note": None} in lanes
    standing = nacre("writer", "embedding", "--json").json
    assert (standing["held_by"], standing["in_use"]["setting"]) == ("no yes", "minilm")
    assert standing["in_use"]["memories"] == 3
    assert any(
        "without your consent" in check["detail"]
        for check in nacre("admin", "doctor", "--json").json["checks"]
    )
    nacre("admin", "doctor", code=None)
    assert not filled.requests


def test_new_home_uses_the_bundled_model_until_consent(
    nacre: Nacre, provider: FakeProvider
) -> None:
    assert "without your consent" in nacre("config", "set", "embedding.model", MODEL).err
    nacre("store", "The harbour cranes are painted every second spring.")
    nacre("ingest")
    standing = nacre("writer", "embedding", "--json").json
    assert (standing["wanted"], standing["in_use"]["setting"]) == (MODEL, "minilm")
    assert not provider.requests
    refused = nacre("writer", "embedding", "--resume", "--json", code=2).error["message"]
    assert "--yes" in refused
    assert "questions" in refused
    assert not provider.requests
    nacre("writer", "embedding", "--resume", "--yes")
    assert nacre("writer", "embedding", "--json").json["in_use"]["setting"] == MODEL
    request_count = len(provider.requests)
    nacre("store", "The lighthouse keeper has a new lamp.")
    assert len(provider.requests) == request_count + 1, "later texts are sent without a question"


def test_consent_is_per_host_and_can_be_withdrawn(nacre: Nacre, filled: FakeProvider) -> None:
    nacre("writer", "embedding", MODEL, "--yes")
    nacre("config", "set", "embedding.sends_to", "[]")
    request_count = len(filled.requests)
    nacre("store", "The lighthouse keeper has a new lamp.")
    nacre("ingest")
    lane = nacre("recall", "ferry office noon", "--json").json["lanes"][1]
    assert (lane["state"], "without your consent" in lane["note"]) == ("unavailable", True)
    assert len(filled.requests) == request_count
    nacre("writer", "embedding", "--resume", code=2)
    nacre("writer", "embedding", "minilm")
    assert nacre("recall", "ferry office noon", "--json").json["lanes"][1]["state"] == "ran"
    nacre("writer", "embedding", MODEL, code=2)
    assert [request.body["input"] for request in filled.requests[request_count:]] == [
        ["Does this model answer?"]
    ]


def test_another_model_of_a_consented_host_is_announced(nacre: Nacre, filled: FakeProvider) -> None:
    nacre("writer", "embedding", MODEL, "--yes")
    assert "within the budget" in nacre("config", "set", "embedding.model", f"{MODEL}@256").err
    nacre("ingest")
    assert nacre("writer", "embedding", "--json").json["in_use"]["dimensions"] == 256


def test_estimate_needs_no_key(
    nacre: Nacre, filled: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    record = nacre("writer", "embedding", MODEL, "--estimate", "--json").json
    assert (record["texts"], record["model"], record["asks"]) == (2, f"{MODEL}@1024", True)
    assert record["left"] == 1_000_000
    nacre("writer", "embedding", MODEL, "--yes", code=5)
    nacre("config", "set", "embedding.model", MODEL)
    assert nacre("writer", "embedding", "--resume", "--estimate", "--json").json["texts"] == 2


def test_automatic_vectors_respect_the_budget(nacre: Nacre, filled: FakeProvider) -> None:
    """Each memory has about 30 tokens; a million tokens cost two cents."""
    nacre("writer", "embedding", MODEL, "--yes")
    nacre("config", "set", "models.daily_budget_usd", "0.000003")
    for number in range(12):
        nacre(
            "store",
            f"Crane number {number} is painted in the colour of the harbour master's old umbrella.",
        )
    request_count = len(filled.requests)
    note = nacre("ingest", "--json").json["vectors_note"]
    assert "vectors can spend <$0.0001 a day" in note
    assert "models.daily_budget_usd" in note
    assert len(filled.requests) == request_count
    standing = nacre("writer", "embedding", "--json").json
    assert standing["held_by"] == "budget"
    assert 0 < standing["in_use"]["waiting"] < 12
    record = nacre("writer", "cost", "--json").json
    assert 0 < record["budget"]["spent"] <= 3
    assert [task["task"] for task in record["tasks"]] == ["embedding"]
    assert nacre("recall", "umbrella", "--mode", "lexical", "--json").json["hits"]
    nacre("writer", "embedding", "--resume")
    assert nacre("writer", "embedding", "--json").json["in_use"]["waiting"] == 0
    assert len(filled.requests) > request_count, "an explicit request is fulfilled"


def test_questions_are_counted_and_respect_the_budget(nacre: Nacre, filled: FakeProvider) -> None:
    nacre("writer", "embedding", MODEL, "--yes")
    nacre("writer", "cost")
    nacre("config", "set", "models.daily_budget_usd", "0.000002")
    request_count = len(filled.requests)
    for _ in range(2):
        lanes = nacre("recall", "when is the ferry office open?", "--json").json["lanes"]
        assert lanes[1]["state"] == "ran"
        nacre("writer", "cost")  # which includes the recorded calls
    lane = nacre("recall", "when is the ferry office open?", "--json").json["lanes"][1]
    assert lane["state"] == "unavailable"
    assert "a day in the background" in lane["note"]
    assert len(filled.requests) == request_count + 2


def test_model_of_unknown_price_embeds_only_on_request(
    nacre: Nacre, filled: FakeProvider, user_home: Path
) -> None:
    config = user_home / ".nacre" / "config.toml"
    text = config.read_text(encoding="utf-8")
    text += f'[models.providers.boats]\nbase_url = "{filled.url}/v1"\nkey = "OPENAI_API_KEY"\n'
    config.write_text(text, encoding="utf-8")
    nacre("writer", "embedding", "boats:oar", "--yes")
    request_count = len(filled.requests)
    nacre("store", "The lighthouse keeper has a new lamp.")
    assert "the price of boats:oar is unknown" in nacre("ingest", "--json").json["vectors_note"]
    assert len(filled.requests) == request_count
    nacre("config", "set", "models.capabilities", '{"boats:oar" = {price = {input = 0.01}}}')
    nacre("ingest")
    assert nacre("writer", "embedding", "--json").json["in_use"]["waiting"] == 0


def test_first_vectors_of_an_unmeasured_model_wait_for_ingest(
    nacre: Nacre, provider: FakeProvider, user_home: Path
) -> None:
    config = user_home / ".nacre" / "config.toml"
    text = config.read_text(encoding="utf-8")
    text += f'[models.providers.boats]\nbase_url = "{provider.url}/v1"\nkey = "OPENAI_API_KEY"\n'
    text += '[models.capabilities]\n"boats:oar" = {price = {input = 0.01}}\n'
    text += (
        f'[embedding]\nmodel = "boats:oar"\nsends_to = ["{provider.url.removeprefix("http://")}"]\n'
    )
    config.write_text(text, encoding="utf-8")
    nacre("store", "The harbour cranes are painted every second spring.")
    assert not provider.requests
    nacre("ingest")
    nacre("store", "The ferry office closes at noon on Sundays.")
    standing = nacre("writer", "embedding", "--json").json["in_use"]
    assert (standing["setting"], standing["memories"], standing["waiting"]) == ("boats:oar", 2, 0)


def test_estimate_sends_and_changes_nothing(nacre: Nacre, filled: FakeProvider) -> None:
    record = nacre("writer", "embedding", MODEL, "--estimate", "--json").json
    assert record["texts"] == 2
    assert 0 < float(record["cost"]) < 0.001
    assert nacre("writer", "embedding", "--json").json["wanted"] == "minilm"
    assert not filled.requests


def test_model_can_be_switched_and_switched_back(nacre: Nacre, filled: FakeProvider) -> None:
    assert "is in use" in nacre("writer", "embedding", MODEL, "--yes").out
    record = nacre("writer", "embedding", "--json").json
    assert (
        record["in_use"]["setting"],
        record["in_use"]["dimensions"],
        record["in_use"]["waiting"],
    ) == (
        MODEL,
        1024,
        0,
    )
    request_count = len(filled.requests)
    lanes = nacre("recall", "when is the ferry office open?", "--json").json["lanes"]
    assert {"name": "vector", "state": "ran", "note": None} in lanes
    assert len(filled.requests) == request_count + 1
    assert "minilm is in use" in nacre("writer", "embedding", "minilm").out
    nacre("recall", "when is the ferry office open?")
    assert len(filled.requests) == request_count + 1


def test_ledger_lists_vectors_sent_to_a_provider_only(nacre: Nacre, filled: FakeProvider) -> None:
    assert nacre("writer", "cost", "--json").json["tasks"] == []
    nacre("writer", "embedding", MODEL, "--yes")
    (line,) = nacre("writer", "cost", "--json").json["tasks"]
    assert line["task"] == "embedding"
    assert line["tokens"] > 0
    assert line["cost"] > 0


def test_texts_are_sent_only_after_consent(
    nacre: Nacre, filled: FakeProvider, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system resolves ``127.1`` to this machine, but nacre treats it as a remote host."""
    config = user_home / ".nacre" / "config.toml"
    away = filled.url.replace("127.0.0.1", "127.1")
    text = config.read_text(encoding="utf-8").replace(filled.url, away) + 'plain_http = "yes"\n'
    config.write_text(text, encoding="utf-8")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    refused = nacre("writer", "embedding", MODEL, "--json", code=2).error["message"]
    assert "2 texts" in refused
    assert "127.1" in refused
    assert "--yes" in refused
    assert [request.body["input"] for request in filled.requests] == [["Does this model answer?"]]
    assert nacre("writer", "embedding", "--json").json["wanted"] == "minilm"
    nacre("writer", "embedding", MODEL, "--yes")
    assert nacre("writer", "embedding", "--json").json["in_use"]["setting"] == MODEL


def test_unresponsive_model_is_reported_before_any_change(
    nacre: Nacre, filled: FakeProvider
) -> None:
    filled.embedding_faults += [Reply(status=401, message="no")]
    error = nacre("writer", "embedding", MODEL, "--json", code=5).error
    assert "does not accept the API key in $OPENAI_API_KEY" in error["message"]
    assert KEY not in error["message"]
    assert nacre("writer", "embedding", "--json").json["wanted"] == "minilm"


def test_unavailable_provider_does_not_delay_recall_and_is_named(
    nacre: Nacre, filled: FakeProvider
) -> None:
    nacre("writer", "embedding", MODEL, "--yes")
    filled.embedding_faults += [Reply(fault="hang")]
    answer = nacre("recall", "ferry office noon", "--json").json
    assert answer["hits"]
    assert "did not answer within 2 seconds" in answer["lanes"][1]["note"]


def test_texts_without_vectors_wait_for_the_provider(nacre: Nacre, filled: FakeProvider) -> None:
    nacre("writer", "embedding", MODEL, "--yes")
    filled.embedding_faults += [Reply(status=401)] * 2
    nacre("store", "The lighthouse keeper has a new lamp.")
    assert nacre("writer", "embedding", "--json").json["in_use"]["waiting"] == 1
    assert "no vectors" in nacre("ingest", "--json").json["vectors_note"]
    assert nacre("recall", "lighthouse lamp", "--mode", "lexical", "--json").json["hits"]
    resumed = nacre("writer", "embedding", "--resume", "--json").json
    assert (resumed["setting"], resumed["made"], resumed["left"], resumed["note"]) == (
        MODEL,
        1,
        0,
        None,
    )
    assert resumed["tokens"] > 0


def test_secret_in_a_question_is_not_sent(nacre: Nacre, filled: FakeProvider) -> None:
    nacre("writer", "embedding", MODEL, "--yes")
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    nacre("recall", f"which service uses {secret[:40]}?")
    text = filled.requests[-1].body["input"][0]
    assert "service" in text
    assert secret[:40].lower() not in text.lower()


def test_invalid_embedding_request_is_refused_with_a_hint(
    nacre: Nacre, provider: FakeProvider
) -> None:
    nacre("writer", "embedding", MODEL, "--resume", code=2)
    nacre("writer", "embedding", "--estimate", code=2)
    assert nacre("writer", "embedding", "none", "--json", code=2).error["hint"]
    assert nacre("writer", "embedding", "something", "--json", code=2).error["hint"]
    assert nacre("config", "set", "embedding.model", "something", "--json", code=2).error["hint"]
    assert not provider.requests
