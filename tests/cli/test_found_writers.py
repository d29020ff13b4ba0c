"""Proposed writers: installed agents and models, their order, their limits, and who pays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nacre.llm.credentials import provider_of
from nacre.llm.failures import absence, key_of_billing
from nacre.settings import load_settings
from tests.cli.conftest import Nacre, Outcome
from tests.fakes.provider import FakeProvider

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-in for a command is a script")

Dialog = Callable[..., Outcome]
Install = Callable[..., Path]

QUIET = {"NO_COLOR": "1", "COLUMNS": "100"}


@pytest.fixture(autouse=True)
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """``install("claude")`` puts a command on PATH, without the agents of this machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def put(name: str, script: str = "#!/bin/sh\nexit 1\n") -> Path:
        program = folder / name
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
        return program

    return put


@pytest.fixture
def ollama() -> Iterator[FakeProvider]:
    """Ollama on this machine, with an embedding model, a cloud model, and a local model."""
    names = ("bge-m3:latest", "gpt-oss:120b-cloud", "qwen3:8b")
    with FakeProvider([{"metal": "mercury"}], repeats=True, models=names) as provider:
        home = Path(os.environ["NACRE_HOME"])
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(
            f'[models.providers.ollama]\nbase_url = "{provider.url}/v1"\n'
        )
        yield provider


def signed_in(user_home: Path, **more: Any) -> None:
    """Create a login of Claude Code."""
    file = user_home / ".claude" / ".credentials.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        json.dumps({"claudeAiOauth": {"accessToken": "sk-ant-oat01-test", **more}}),
        encoding="utf-8",
    )


def words(outcome: Outcome) -> str:
    return " ".join(outcome.out.split())


def proposed(dialog: Dialog, *, says: str = "n") -> str:
    return words(dialog("writer", "set", answers=[("[y/N]", says)], environ=QUIET))


def test_local_server_is_proposed_without_an_agent(
    dialog: Dialog, nacre: Nacre, ollama: FakeProvider
) -> None:
    output = proposed(dialog, says="y")
    assert "Ollama, qwen3:8b can read each session once" in output
    assert "It costs nothing." in output
    assert "Let Ollama, qwen3:8b write memories?" in output
    status = nacre("writer", "--json").json
    assert (status["writer"], status["state"]) == ("ollama:qwen3:8b", "ready")


def test_consent_mentions_local_models_if_the_writer_is_remote(
    dialog: Dialog, install: Install, ollama: FakeProvider, user_home: Path
) -> None:
    assert "may run on your own machine" not in proposed(dialog)
    install("claude")
    signed_in(user_home)
    assert "may run on your own machine" in proposed(dialog)


def test_provider_with_a_key_is_proposed_with_daily_cost(
    dialog: Dialog, nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-a-test")
    nacre("config", "set", "models.daily_budget_usd", "0.25")
    output = proposed(dialog, says="y")
    assert "OpenAI, gpt-6-luna can read each session once" in output
    assert "It never costs more than US$ 0.25 a day, billed to the key in $OPENAI_API_KEY" in output
    assert "Let OpenAI, gpt-6-luna write memories?" in output
    assert nacre("writer", "--json").json["writer"] == "openai:gpt-6-luna"
    assert nacre("config", "show", "models.daily_budget_usd", "--json").json["value"] == 0.25


def test_proposal_order_is_agents_servers_keys_and_lists_alternatives(
    dialog: Dialog,
    install: Install,
    user_home: Path,
    ollama: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-a-test")
    assert "Let Ollama, qwen3:8b" in proposed(dialog)
    install("claude")
    install("gemini")
    assert "Let Ollama, qwen3:8b" in proposed(dialog)  # both are without a login
    signed_in(user_home)
    output = proposed(dialog)
    assert "Let Claude Code, haiku write memories?" in output
    assert (
        "Also available: ollama:qwen3:8b, openai:gpt-6-luna, "
        "gemini-cli:flash (You do not seem to be signed in to Gemini CLI); choose with nacre writer set NAME."
    ) in output


def test_named_writer_is_confirmed_with_its_limit_in_terminals(
    dialog: Dialog, nacre: Nacre, install: Install
) -> None:
    install("opencode")
    output = words(
        dialog("writer", "set", "opencode-cli:", answers=[("[y/N]", "y")], environ=QUIET)
    )
    assert "Let OpenCode, its default model write memories?" in output
    assert nacre("writer", "--json").json["writer"] == "opencode-cli:default"


def test_setup_proposes_writers_and_reports_missing_logins(
    dialog: Dialog, nacre: Nacre, install: Install, ollama: FakeProvider, user_home: Path
) -> None:
    (user_home / ".cursor").mkdir()
    assert nacre("quickstart", "--json").json["found"]["name"] == "ollama:qwen3:8b"
    output = words(
        dialog(
            "init", answers=[("Do this?", "w")], environ={**QUIET, "NACRE_DAEMON_ENABLED": "false"}
        )
    )
    assert "Ollama, qwen3:8b can read each session once" in output
    assert nacre("writer", "--json").json["writer"] == "ollama:qwen3:8b"


def test_quickstart_reports_a_missing_sign_in(nacre: Nacre, install: Install) -> None:
    install("codex")
    output = words(nacre("quickstart"))
    assert "Codex, gpt-6-luna can write other memories after each session" in output
    assert "nacre writer set. You do not seem to be signed in to Codex." in output


def test_expired_login_without_refresh_is_ignored(
    dialog: Dialog, install: Install, user_home: Path
) -> None:
    install("claude")
    over = (datetime.now(UTC) - timedelta(days=2)).timestamp() * 1000
    signed_in(user_home, expiresAt=over)
    assert "You do not seem to be signed in to Claude Code." in proposed(dialog)
    install("codex")
    (user_home / ".codex").mkdir()
    (user_home / ".codex" / "auth.json").write_text(
        '{"tokens": {"access_token": "a-token"}}', encoding="utf-8"
    )
    assert "Let Codex, gpt-6-luna" in proposed(dialog)
    signed_in(user_home, expiresAt=over, refreshToken="another-token")
    assert "Let Claude Code, haiku" in proposed(dialog)


TELLS_ITS_KEYS = """#!/bin/sh
cat >/dev/null
echo "${ANTHROPIC_API_KEY:-none}" >>"$(dirname "$0")/keys"
exit 1
"""


def test_subscription_agent_gets_no_billed_key(
    nacre: Nacre, install: Install, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = install("claude", TELLS_ITS_KEYS).with_name("keys")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-a-test")
    nacre("writer", "models", "--test", "claude-cli:haiku", code=None)
    assert set(keys.read_text().split()) == {"a-key-of-a-test"}
    keys.unlink()
    signed_in(user_home)
    nacre("writer", "models", "--test", "claude-cli:haiku", code=None)
    assert set(keys.read_text().split()) == {"none"}


def test_macos_agent_keeps_its_key_without_login_file(
    user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def proposed_key() -> tuple[str, str]:
        settings = replace(load_settings(), platform="darwin")
        claude = provider_of(settings, "claude-cli")
        return key_of_billing(settings, claude), absence(settings, claude)

    assert proposed_key() == ("", "")  # the keychain may hold a login
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-a-test")
    key, output = proposed_key()
    assert key == "$ANTHROPIC_API_KEY"
    assert "would be billed to the key in $ANTHROPIC_API_KEY" in output
    signed_in(user_home)
    assert proposed_key() == ("", "")


def test_agent_paid_by_key_is_a_priced_writer(
    nacre: Nacre, install: Install, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("claude")
    install("opencode")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-a-test")
    refused = nacre(
        "writer", "set", "opencode-cli:default", "--tokens-per-day", "100000", code=None
    )
    assert refused.code != 0
    assert "OpenCode would bill the key in $ANTHROPIC_API_KEY" in refused.err
    nacre("config", "set", "models.daily_budget_usd", "0")
    stopped = nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "100000", code=2)
    assert "models.daily_budget_usd is 0" in stopped.err
    nacre("config", "set", "models.daily_budget_usd", "0.5")
    nacre("writer", "set", "claude-cli:haiku")
    assert nacre("writer", "--json").json["limit"] is None
    signed_in(user_home)
    assert "--tokens-per-day" in nacre("writer", "set", "claude-cli:haiku", code=2).err


def test_api_key_sign_in_is_billed(nacre: Nacre, install: Install, user_home: Path) -> None:
    install("codex")
    (user_home / ".codex").mkdir()
    (user_home / ".codex" / "auth.json").write_text(
        '{"OPENAI_API_KEY": "another-key"}', encoding="utf-8"
    )
    nacre("writer", "set", "codex-cli:gpt-6-luna")
    assert nacre("writer", "--json").json["limit"] is None
    install("opencode")
    auth_file = user_home / ".local" / "share" / "opencode" / "auth.json"
    auth_file.parent.mkdir(parents=True)
    auth_file.write_text('{"openai": {"type": "api", "key": "another-key"}}', encoding="utf-8")
    refused = nacre("writer", "set", "opencode-cli:default", "--tokens-per-day", "10000", code=None)
    assert f"bill the key in {auth_file}" in " ".join(refused.err.split())
    auth_file.write_text(
        '{"anthropic": {"type": "oauth", "access": "a", "refresh": "b", "expires": 1}}',
        encoding="utf-8",
    )
    nacre("writer", "set", "opencode-cli:default", "--tokens-per-day", "10000")


@pytest.mark.parametrize(
    "ways",
    [
        [
            ("config", "set", "models.background", "true"),
            ("config", "set", "models.default", "ollama:qwen3:8b"),
        ],
        [
            ("config", "set", "models.extraction", "ollama:qwen3:8b"),
            ("config", "set", "models.background", "true"),
        ],
    ],
    ids=["the model by config", "the background by config"],
)
def test_configured_writer_sees_no_earlier_sessions(
    nacre: Nacre, ollama: FakeProvider, transcript: Path, ways: list[tuple[str, ...]]
) -> None:
    for way in ways:
        nacre(*way)
    status = nacre("writer", "--json").json
    assert (status["state"], bool(status["since"])) == ("ready", True)
    before = len(ollama.calls)
    nacre("ingest")
    assert len(ollama.calls) == before
    nacre("config", "set", "writer.since", "2026-01-01T00:00:00Z")
    nacre("config", "set", "models.background", "true")
    assert nacre("writer", "--json").json["since"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("is_set_first", [False, True])
def test_start_date_of_a_writer_persists_until_removal(
    nacre: Nacre, ollama: FakeProvider, is_set_first: bool
) -> None:
    background = ("config", "set", "models.background")
    nacre("config", "set", "models.extraction", "ollama:qwen3:8b")
    if is_set_first:
        nacre(*background, "true")
    nacre("config", "set", "writer.since", "2026-01-01T00:00:00Z")
    nacre(*background, "false")
    nacre(*background, "true")
    assert nacre("writer", "--json").json["since"] == "2026-01-01T00:00:00Z"
    nacre("writer", "set", "none")
    nacre("config", "set", "models.extraction", "ollama:qwen3:8b")
    assert nacre("writer", "--json").json["since"] > "2026-01-01T00:00:00Z"
