"""nacre writer setup and keys: by options, on a terminal, with and without a keyring, a network, a home."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest

from tests.cli.conftest import Nacre, Outcome
from tests.fakes.provider import FakeProvider, Reply
from tests.keyrings import ForgetfulKeyring, MemoryKeyring, TalkativeKeyring

KEY = "sk-ant-api03-" + "k" * 20 + "tail"
TOKEN = "sk-ant-oat01-" + "t" * 20 + "tail"
READY = {"metal": "mercury"}


@pytest.fixture
def home() -> Path:
    return Path(os.environ["NACRE_HOME"])


@pytest.fixture
def anthropic(home: Path) -> Iterator[FakeProvider]:
    """Anthropic is the fake provider, which is ready whenever it is asked."""
    with FakeProvider([READY], repeats=True) as provider:
        home.mkdir(mode=0o700)
        config = f'[models.providers.anthropic]\nbase_url = "{provider.url}"\n'
        (home / "config.toml").write_text(config, encoding="utf-8")
        yield provider


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    memory = MemoryKeyring()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


def kept(home: Path) -> str:
    path = home / "credentials.toml"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_setup_options_check_the_model_and_store_the_key_separately(
    nacre: Nacre, anthropic: FakeProvider, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", KEY)
    done = nacre(
        "writer",
        "setup",
        "--provider",
        "anthropic",
        "--auth",
        "anthropic-api-key",
        "--key-env",
        "GIVEN",
        "--model",
        "claude-haiku-5-5",
        "--embedding",
        "none",
        "--background",
        "--daily-budget",
        "0.5",
        "--yes",
        "--json",
    )
    assert [call.key for call in anthropic.calls] == [KEY]
    record = done.json
    assert record["model"] == "anthropic:claude-haiku-5-5"
    assert (record["auth"], record["background"], record["daily_budget_usd"]) == (
        "anthropic-api-key",
        True,
        0.5,
    )
    assert record["credential"] == {"kept": str(home / "credentials.toml"), "masked": "sk-…tail"}
    assert record["test"]["outcome"] == "answered"
    assert stat.S_IMODE((home / "credentials.toml").stat().st_mode) == 0o600
    assert KEY in kept(home)
    assert KEY not in (home / "config.toml").read_text(encoding="utf-8")
    assert KEY not in done.out


def test_keyring_stores_the_key_exclusively(
    nacre: Nacre, anthropic: FakeProvider, home: Path, ring: MemoryKeyring
) -> None:
    nacre(
        "writer",
        "setup",
        "--auth",
        "anthropic-api-key",
        "--key-stdin",
        "--model",
        "claude-haiku-5-5",
        stdin=f"{KEY}\n",
    )
    assert ring.kept == {("nacre", "anthropic"): KEY}
    assert not (home / "credentials.toml").exists()
    way = next(
        way
        for way in nacre("writer", "keys", "--json").json["ways"]
        if way["method"] == "anthropic-api-key"
    )
    assert (way["origin"], way["masked"], way["is_used"]) == ("keyring", "sk-…tail", True)
    assert nacre("writer", "keys", "anthropic", "--remove", "--json").json["removed"] == ["keyring"]
    assert ring.kept == {}


@pytest.mark.parametrize("broken", [ForgetfulKeyring, TalkativeKeyring])
def test_key_is_stored_in_the_file_if_the_keyring_fails(
    nacre: Nacre,
    anthropic: FakeProvider,
    home: Path,
    ring: MemoryKeyring,
    broken: type[MemoryKeyring],
) -> None:
    keyring.set_keyring(broken())
    done = nacre(
        "writer",
        "setup",
        "--auth",
        "anthropic-api-key",
        "--key-stdin",
        "--model",
        "claude-haiku-5-5",
        stdin=KEY,
    )
    assert KEY in kept(home)
    assert KEY not in done.out + done.err


def test_repeated_setup_changes_only_requested_settings(
    nacre: Nacre, anthropic: FakeProvider, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", KEY)
    nacre(
        "writer",
        "setup",
        "--auth",
        "anthropic-api-key",
        "--key-env",
        "GIVEN",
        "--model",
        "claude-haiku-5-5",
    )
    asked = len(anthropic.calls)
    only = nacre("writer", "setup", "--background", "--daily-budget", "2", "--json").json
    assert list(only["changed"]) == [
        "models.background",
        "models.daily_budget_usd",
        "writer.since",
    ]
    assert len(anthropic.calls) == asked
    model = nacre("writer", "setup", "--model", "claude-sonnet-5-5", "--json").json
    assert model["changed"] == {"models.default": "anthropic:claude-sonnet-5-5"}
    assert (model["background"], model["daily_budget_usd"]) == (True, 2)
    assert nacre("writer", "setup", "--model", "claude-sonnet-5-5", "--json").json["changed"] == {}
    assert KEY in kept(home)


def test_none_removes_models_of_all_tasks_and_keeps_the_key(
    nacre: Nacre, anthropic: FakeProvider, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", KEY)
    nacre(
        "writer",
        "setup",
        "--auth",
        "anthropic-api-key",
        "--key-env",
        "GIVEN",
        "--model",
        "claude-haiku-5-5",
        "--background",
    )
    nacre("config", "set", "models.extraction", "anthropic:claude-opus-5-5")
    done = nacre("writer", "setup", "--none", "--json").json
    assert (done["model"], done["background"]) == ("none", False)
    assert nacre("config", "show", "models.extraction", "--json").json["value"] == ""
    assert KEY in kept(home)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(status=401, message="invalid x-api-key"), "does not accept"),
        (Reply(status=404, message="model: claude-haiku-5-5"), "has no model"),
        (Reply(status=402, message="no credit"), "no credit left"),
    ],
)
def test_refused_credentials_are_reported_and_nothing_is_written(
    nacre: Nacre, home: Path, reply: Reply, message: str
) -> None:
    with FakeProvider([reply], repeats=True) as provider:
        config = f'[models.providers.anthropic]\nbase_url = "{provider.url}"\n'
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(config, encoding="utf-8")
        arguments = (
            "writer",
            "setup",
            "--auth",
            "anthropic-api-key",
            "--key-stdin",
            "--model",
            "claude-haiku-5-5",
        )
        failed = nacre(*arguments, stdin=KEY, code=1)
        assert message in failed.err
        assert "nothing was changed" in failed.err
        assert "NACRE_ANTHROPIC" not in failed.err
        assert KEY not in failed.err
        assert (home / "config.toml").read_text(encoding="utf-8") == config
        assert kept(home) == ""
        assert nacre(*arguments, "--no-test", stdin=KEY).code == 0
    assert KEY in kept(home)


def test_setup_without_network_writes_untested_settings(nacre: Nacre, home: Path) -> None:
    with FakeProvider() as gone:
        url = f"{gone.url}/v1"
    done = nacre("writer", "setup", "--provider", "mine", "--base-url", url, "--model", "m")
    assert "not tested" in done.out
    assert nacre("config", "show", "models.default").out == "mine:m\n"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(fault="html"), "web page"),
        (Reply(status=404, message="no page is here"), "does not have this address"),
    ],
    ids=["a web page", "nothing there"],
)
def test_address_of_another_service_is_not_written(
    nacre: Nacre, home: Path, reply: Reply, told: str
) -> None:
    with FakeProvider([reply], repeats=True) as provider:
        arguments = (
            "writer",
            "setup",
            "--provider",
            "mine",
            "--base-url",
            f"{provider.url}/v1",
            "--model",
            "m",
            "--yes",
        )
        failed = nacre(*arguments, code=1)
        assert told in failed.err
        assert "nothing was changed" in failed.err
        assert "--base-url" in failed.err
        assert not (home / "config.toml").exists()
        nacre(*arguments, "--no-test")
    assert nacre("config", "show", "models.default").out == "mine:m\n"


def test_own_server_is_set_up_by_address_and_key(nacre: Nacre, home: Path) -> None:
    with FakeProvider([READY], repeats=True) as provider:
        nacre(
            "writer",
            "setup",
            "--provider",
            "mine",
            "--base-url",
            f"{provider.url}/v1",
            "--key-stdin",
            "--model",
            "qwen3:8b",
            stdin="no-shape-of-a-key-42",
        )
        assert provider.calls[0].key == "no-shape-of-a-key-42"
        assert provider.calls[0].body["model"] == "qwen3:8b"
        again = nacre("writer", "setup", "--model", "other", "--json").json
        assert provider.calls[1].key == "no-shape-of-a-key-42"
    assert again["model"] == "mine:other"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), ["--provider", "--model", "--key-env", "--none"]),
        (("--provider", "anthropic"), ["--key-env VAR or --key-stdin", "--model NAME"]),
        (("--auth", "openai-api-key", "--model", "gpt-6-luna"), ["--key-env VAR or --key-stdin"]),
        (("--model", "gpt-6-luna"), ["--provider"]),
        (("--provider", "anthropic", "--key-env", "NOT_SET"), ["no key in $NOT_SET"]),
        (
            ("--provider", "anthropic", "--key-env", "gsk_0123456789abcdef"),
            ["the variable of --key-env"],
        ),
        (("--none", "--model", "x"), ["--none"]),
        (("--auth", "by-magic"), ["anthropic-token"]),
    ],
)
def test_setup_in_a_pipe_names_missing_options(
    process: Nacre, home: Path, arguments: tuple[str, ...], named: list[str]
) -> None:
    failed = process("writer", "setup", *arguments, code=2, stdin=subprocess.DEVNULL)
    for name in named:
        assert name in failed.err
    assert "gsk_" not in failed.err
    assert not home.exists() or not (home / "config.toml").exists()


def test_missing_login_is_reported_with_sign_in_steps(nacre: Nacre) -> None:
    failed = nacre(
        "writer", "setup", "--auth", "anthropic-oauth", "--model", "claude-haiku-5-5", code=1
    )
    assert ".credentials.json" in failed.err
    assert "run claude and sign in" in failed.err


@pytest.mark.parametrize(
    ("auth", "secret"), [("anthropic-api-key", TOKEN), ("anthropic-token", KEY)]
)
def test_key_of_another_auth_method_is_refused(
    nacre: Nacre, home: Path, auth: str, secret: str
) -> None:
    failed = nacre(
        "writer",
        "setup",
        "--auth",
        auth,
        "--key-stdin",
        "--model",
        "claude-haiku-5-5",
        stdin=secret,
        code=1,
    )
    assert f"not a valid credential for {auth}" in failed.err
    assert secret not in failed.err
    assert not (home / "credentials.toml").exists()


def test_variable_overriding_the_stored_key_is_reported(
    nacre: Nacre, anthropic: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-an-older-one-0000")
    done = nacre(
        "writer",
        "setup",
        "--auth",
        "anthropic-api-key",
        "--key-stdin",
        "--model",
        "claude-haiku-5-5",
        stdin=KEY,
    )
    assert "$ANTHROPIC_API_KEY has another key" in done.err


def test_setting_is_written_despite_an_unreadable_database(nacre: Nacre, home: Path) -> None:
    nacre("ingest")
    nacre("config", "set", "models.default", "foo:bar")
    nacre("writer", "setup", "--embedding", "none", "--no-test")
    nacre("config", "unset", "models.default")
    (database,) = home.glob("*.db")
    database.write_bytes(b"no database " * 999)
    done = nacre("writer", "setup", "--daily-budget", "3")
    assert "changed  models.daily_budget_usd" in done.out
    assert f"{database} is not a nacre database" in " ".join(done.err.split())


def test_none_cannot_be_combined_with_a_writer(nacre: Nacre) -> None:
    assert (
        "--none" in nacre("writer", "setup", "--none", "--writer", "claude-cli:haiku", code=2).err
    )


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is read-only for root")
def test_read_only_home_is_reported(nacre: Nacre, anthropic: FakeProvider, home: Path) -> None:
    nacre("admin", "doctor")
    home.chmod(0o500)
    try:
        failed = nacre(
            "writer", "setup", "--provider", "ollama", "--model", "m", "--no-test", code=5
        )
        assert "cannot write" in failed.err
        assert nacre("writer", "keys").code == 0
    finally:
        home.chmod(0o700)


Dialog = Callable[..., Outcome]


def test_terminal_setup_asks_for_everything_and_hides_the_key(
    dialog_process: Dialog, nacre: Nacre, anthropic: FakeProvider, home: Path
) -> None:
    shown = dialog_process(
        "writer",
        "setup",
        answers=[
            ("Number", "1"),
            ("API key", KEY),
            ("Model [1]", "2"),
            ("background? [", "y"),
            ("dollars [", "0.25"),
        ],
    )
    assert shown.code == 0, shown.out
    assert KEY not in shown.out
    assert "answered" in shown.out
    assert "at most US$ 0.25 a day" in shown.out
    assert KEY in kept(home)
    assert [call.key for call in anthropic.calls] == [KEY]
    assert nacre("config", "show", "models.default").out == "anthropic:claude-sonnet-5-5\n"


def test_terminal_setup_asks_only_for_missing_options(
    dialog: Dialog, anthropic: FakeProvider, home: Path
) -> None:
    shown = dialog(
        "writer",
        "setup",
        "--auth",
        "anthropic-api-key",
        answers=[("API key", KEY), ("Model [1]", "claude-other")],
    )
    assert shown.code == 0, shown.out
    assert anthropic.calls[0].body["model"] == "claude-other"


def test_refused_setting_needs_the_owners_consent_in_terminals(dialog: Dialog, home: Path) -> None:
    with FakeProvider([Reply(status=401, message="no")], repeats=True) as provider:
        home.mkdir(mode=0o700)
        config = f'[models.providers.anthropic]\nbase_url = "{provider.url}"\n'
        (home / "config.toml").write_text(config, encoding="utf-8")
        shown = dialog(
            "writer",
            "setup",
            "--auth",
            "anthropic-api-key",
            "--model",
            "m",
            answers=[("API key", KEY), ("anyway?", "n")],
        )
    assert shown.code == 1
    assert "Nothing was changed." in shown.out
    assert kept(home) == ""


def test_choices_wrap_in_narrow_terminals_without_being_cut(
    dialog: Dialog,
) -> None:
    shown = dialog(
        "writer", "setup", answers=[("Number", "8")], environ={"COLUMNS": "60", "NO_COLOR": "1"}
    ).out
    choices = shown.partition("How should nacre reach a model?")[2].partition("Number")[0]
    assert "(OpenRouter, Gemini, Groq, your own server …)" in " ".join(choices.split())
    assert max(map(len, choices.splitlines())) <= 60


def test_dialog_can_be_cancelled_without_changes(dialog: Dialog, home: Path) -> None:
    shown = dialog("writer", "setup", answers=[("Number", "8")], environ={"NO_COLOR": "1"})
    assert shown.code == 0, shown.out
    assert ["changed", "nothing"] in [line.split() for line in shown.out.splitlines()]


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
    told = nacre("writer", "keys").out
    for words in (
        "has expired",
        "run claude once",
        "sk-…tail from $OPENAI_API_KEY",
        "sk-…last",
        "644",
    ):
        assert words in " ".join(told.split()), told
    assert TOKEN not in told
    assert not Path(os.environ["NACRE_HOME"]).exists()


def test_removing_a_key_clears_config_and_keeps_foreign_entries(
    nacre: Nacre, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nacre("config", "set", "models.providers", '{openai = {api_key = "sk-proj-0123456789abcdef"}}')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-" + "p" * 24 + "tail")
    done = nacre("writer", "keys", "openai", "--remove", "--json").json
    assert done == {
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
    said = nacre("config", "set", key, value)
    shown = [
        said,
        nacre("config", "show", key),
        nacre("config", "show"),
        nacre("config", "show", "--json"),
    ]
    shown.append(nacre("config", "show", key, "--json"))
    for one in shown:
        assert "no-shape-of-a-key" not in one.out + one.err
        assert "0123456789abcdef" not in one.out + one.err
    assert "use nacre writer keys" in said.err


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
    nacre(
        "writer",
        "setup",
        "--auth",
        "anthropic-api-key",
        "--key-stdin",
        "--model",
        "claude-haiku-5-5",
        stdin=KEY,
    )
    done = nacre("data", "backup", "create", str(tmp_path / "all.zip"))
    assert "credentials.toml was left out" in done.out
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
    nacre(
        "writer",
        "setup",
        "--auth",
        "anthropic-api-key",
        "--key-stdin",
        "--model",
        "claude-haiku-5-5",
        stdin=KEY,
    )
    other = "sk-ant-api03-" + "n" * 20 + "tail"
    done = nacre("writer", "keys", "anthropic", "--json", stdin=f"{other}\n").json
    assert done == {
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
    shown = dialog_process(
        "writer",
        "keys",
        "openai",
        answers=[("Key for openai", "sk-proj-" + "p" * 20 + "tail")],
    )
    assert shown.code == 0, shown.out
    assert "pppp" not in shown.out
    assert "sk-…tail" in shown.out
    assert "pppp" in kept(home)
