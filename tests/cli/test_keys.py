"""``nacre writer keys`` in a pipe, on a terminal, and with and without a home."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre, Outcome
from tests.fakes.provider import FakeProvider

KEY = "sk-ant-api03-" + "k" * 20 + "tail"
TOKEN = "sk-ant-oat01-" + "t" * 20 + "tail"
READY = {"metal": "mercury"}
MODEL = "anthropic:claude-haiku-5-5"


@pytest.fixture
def home() -> Path:
    return Path(os.environ["NACRE_HOME"])


@pytest.fixture
def anthropic(home: Path) -> Iterator[FakeProvider]:
    """Anthropic is the fake provider, which is always ready."""
    with FakeProvider([READY], repeats=True) as provider:
        home.mkdir(mode=0o700)
        config = f'[models.providers.anthropic]\nbase_url = "{provider.url}"\n'
        (home / "config.toml").write_text(config, encoding="utf-8")
        yield provider


def stored_key(home: Path) -> str:
    path = home / "credentials.toml"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_key_is_stored_separately_and_used(
    nacre: Nacre, anthropic: FakeProvider, home: Path
) -> None:
    outcome = nacre("writer", "keys", "anthropic", "--json", stdin=f"{KEY}\n")
    assert outcome.json["masked"] == "sk-…tail"
    nacre("writer", "models", "--test", MODEL)
    assert [call.key for call in anthropic.calls] == [KEY]
    assert stat.S_IMODE((home / "credentials.toml").stat().st_mode) == 0o600
    assert KEY in stored_key(home)
    assert KEY not in (home / "config.toml").read_text(encoding="utf-8")
    assert KEY not in outcome.out


def test_own_server_is_configured_by_address_and_key(nacre: Nacre) -> None:
    with FakeProvider([READY], repeats=True) as provider:
        table = f'{{mine = {{base_url = "{provider.url}/v1", key = "MINE_KEY"}}}}'
        nacre("config", "set", "models.providers", table)
        nacre("writer", "keys", "mine", stdin="no-shape-of-a-key-42")
        nacre("writer", "models", "--test", "mine:qwen3:8b")
        assert provider.calls[0].key == "no-shape-of-a-key-42"
        assert provider.calls[0].body["model"] == "qwen3:8b"


@pytest.mark.parametrize(
    ("auth", "secret"), [("anthropic-api-key", TOKEN), ("anthropic-token", KEY)]
)
def test_key_of_another_auth_method_is_refused(
    nacre: Nacre, home: Path, auth: str, secret: str
) -> None:
    nacre("config", "set", "models.auth", auth)
    failed = nacre("writer", "keys", "anthropic", stdin=secret, code=1)
    assert f"not for the selected method {auth}" in failed.err
    assert "nacre config set models.auth" in failed.err
    assert secret not in failed.err
    assert not (home / "credentials.toml").exists()


def test_stored_key_is_shown_with_its_origin_and_removed(
    nacre: Nacre, anthropic: FakeProvider, home: Path
) -> None:
    nacre("writer", "keys", "anthropic", stdin=f"{KEY}\n")
    nacre("config", "set", "models.default", MODEL)
    file = str(home / "credentials.toml")
    way = next(
        way
        for way in nacre("writer", "keys", "--json").json["ways"]
        if way["method"] == "anthropic-api-key"
    )
    assert (way["origin"], way["masked"], way["is_used"]) == (file, "sk-…tail", True)
    assert nacre("writer", "keys", "anthropic", "--remove", "--json").json["removed"] == [file]
    assert KEY not in stored_key(home)


Dialog = Callable[..., Outcome]


def test_status_shows_every_auth_method_and_credential_location(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = user_home / ".claude" / ".credentials.json"
    login.parent.mkdir()
    login.write_text(
        json.dumps({"claudeAiOauth": {"accessToken": TOKEN, "expiresAt": 1_000_000_000_000}})
    )
    login.chmod(0o644)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-" + "p" * 24 + "tail")
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-v1-" + "r" * 24 + "last")
    ways = {
        way["method"] or way["provider"]: way
        for way in nacre("writer", "keys", "--json").json["ways"]
    }
    states = {name: way["state"] for name, way in ways.items() if way["state"] != "missing"}
    assert states == {
        "anthropic-oauth": "expired",
        "openai-api-key": "found",
        "openrouter": "found",
    }
    assert ways["anthropic-oauth"]["expires"] == "2001-09-09T01:46:40Z"
    assert "can be read by others (644)" in ways["anthropic-oauth"]["warning"]
    output = nacre("writer", "keys").out
    for words in (
        "has expired",
        "run claude once",
        "sk-…tail from $OPENAI_API_KEY",
        "sk-…last",
        "644",
    ):
        assert words in " ".join(output.split()), output
    assert TOKEN not in output
    assert not Path(os.environ["NACRE_HOME"]).exists()


def test_removing_a_key_clears_config_and_keeps_foreign_entries(
    nacre: Nacre, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("config", "set", "models.providers", '{openai = {api_key = "sk-proj-0123456789abcdef"}}')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-" + "p" * 24 + "tail")
    answer = nacre("writer", "keys", "openai", "--remove", "--json").json
    assert answer == {
        "provider": "openai",
        "removed": [str(home / "config.toml")],
        "left": ["$OPENAI_API_KEY"],
    }
    assert "0123456789abcdef" not in (home / "config.toml").read_text(encoding="utf-8")
    assert nacre("writer", "keys", "openai", "--remove", code=3).code == 3
    assert nacre("writer", "keys", "nobody", "--remove", code=1).code == 1


SHOWN: list[tuple[str, Any]] = [
    (
        "models.providers",
        '{mine = {base_url = "https://models.example/v1", api_key = "no-shape-of-a-key-42"}}',
    ),
    (
        "models.providers",
        '{mine = {base_url = "https://models.example/v1", key = "no-shape-of-a-key-42"}}',
    ),
    (
        "storage.account",
        "https://me:gh" + "p_0123456789abcdefghijklmnopqrstuvwxyz@git.example/vault.git",
    ),
    (
        "redaction.allow",
        '["sk-ant-api03-0123456789abcdefghij", "gh' + 'p_0123456789abcdefghijklmnopqrstuvwxyz"]',
    ),
]


@pytest.mark.parametrize(
    ("key", "value"), SHOWN[:3], ids=["key", "key under the wrong name", "address"]
)
def test_settings_are_shown_without_keys(nacre: Nacre, key: str, value: str) -> None:
    outcome = nacre("config", "set", key, value)
    outcomes = [
        outcome,
        nacre("config", "show", key),
        nacre("config", "show"),
        nacre("config", "show", "--json"),
    ]
    outcomes.append(nacre("config", "show", key, "--json"))
    for item in outcomes:
        assert "no-shape-of-a-key" not in item.out + item.err
        assert "0123456789abcdef" not in item.out + item.err
    assert "use nacre writer keys" in outcome.err


def test_malformed_provider_setting_error_hides_its_key(nacre: Nacre) -> None:
    for value in (
        '{mine = {base_url = 7, api_key = "no-shape-of-a-key-42"}}',
        '{mine = "no-shape-of-a-key-42',
    ):
        failed = nacre("config", "set", "models.providers", value, code=2)
        assert "no-shape-of-a-key" not in failed.err


def test_backup_excludes_keys_with_a_notice(
    nacre: Nacre, anthropic: FakeProvider, home: Path, tmp_path: Path
) -> None:
    nacre("writer", "keys", "anthropic", stdin=KEY)
    nacre("config", "set", "models.default", MODEL)
    outcome = nacre("data", "backup", "create", str(tmp_path / "all.zip"))
    assert "credentials.toml was left out" in outcome.out
    nacre("data", "backup", "restore", str(tmp_path / "all.zip"), "--to", str(tmp_path / "back"))
    assert not any(
        KEY.encode() in path.read_bytes()
        for path in (tmp_path / "back").rglob("*")
        if path.is_file()
    )


def test_doctor_reports_missing_or_misplaced_keys(nacre: Nacre, home: Path) -> None:
    assert "credentials" not in nacre("admin", "doctor").out
    nacre("config", "set", "models.default", "anthropic:claude-haiku-5-5")
    assert "no key for anthropic found" in nacre("admin", "doctor").out
    nacre(
        "config",
        "set",
        "models.providers",
        '{anthropic = {api_key = "sk-ant-api03-0123456789abcdef"}}',
    )
    assert "the key of anthropic is written in" in nacre("admin", "doctor").out


def test_new_key_replaces_a_wrong_key_and_keeps_models(
    nacre: Nacre, anthropic: FakeProvider, home: Path
) -> None:
    nacre("config", "set", "models.auth", "anthropic-api-key")
    nacre("writer", "keys", "anthropic", stdin=KEY)
    nacre("config", "set", "models.default", MODEL)
    nacre("writer", "models", "--test")
    other = "sk-ant-api03-" + "n" * 20 + "tail"
    answer = nacre("writer", "keys", "anthropic", "--json", stdin=f"{other}\n").json
    assert answer == {
        "provider": "anthropic",
        "kept": str(home / "credentials.toml"),
        "masked": "sk-…tail",
    }
    nacre("writer", "models", "--test")
    assert [call.key for call in anthropic.calls] == [KEY, other]
    assert nacre("config", "show", "models.default").out == "anthropic:claude-haiku-5-5\n"
    assert TOKEN not in nacre("writer", "keys", "anthropic", stdin=TOKEN, code=1).err
    assert "no key in standard input" in nacre("writer", "keys", "anthropic", stdin="", code=2).err
    assert nacre("writer", "keys", "ollama", stdin=KEY, code=1).code == 1


def test_new_key_replaces_the_config_and_reports_overriding_variables(
    nacre: Nacre, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("config", "set", "models.providers", '{openai = {api_key = "sk-proj-0123456789abcdef"}}')
    assert nacre("writer", "keys", "openai", stdin="sk-proj-" + "p" * 24).err == ""
    assert "0123456789abcdef" not in (home / "config.toml").read_text(encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-" + "q" * 24)
    assert (
        "$OPENAI_API_KEY has a different key"
        in nacre("writer", "keys", "openai", stdin="sk-proj-" + "r" * 24).err
    )


def test_replacement_key_is_typed_without_echo(dialog_process: Dialog, home: Path) -> None:
    outcome = dialog_process(
        "writer",
        "keys",
        "openai",
        answers=[("Key for openai", "sk-proj-" + "p" * 20 + "tail")],
    )
    assert outcome.code == 0, outcome.out
    assert "pppp" not in outcome.out
    assert "sk-…tail" in outcome.out
    assert "pppp" in stored_key(home)
