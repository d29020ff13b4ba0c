"""API keys are found in a fixed order of sources, and unusable keys are reported."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.errors import ModelRefusedError
from nacre.llm.credentials import Credential, credential_for
from nacre.settings import load_settings

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SOON, GONE = NOW.timestamp() + 3600, NOW.timestamp() - 3600
TOKEN = "sk-ant-oat01-" + "t" * 24

Find = Callable[..., Credential | None]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Look up a provider's key in a home with these files, settings and variables."""

    def look(
        provider: str, config: str = "", files: dict[str, Any] | None = None, **environ: str
    ) -> Credential | None:
        home = tmp_path / ".nacre"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config, encoding="utf-8")
        for name, content in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
            )
            path.chmod(0o600)
        settings = load_settings(home, {"HOME": str(tmp_path), **environ})
        return credential_for(settings, provider, clock=lambda: NOW)

    return look


def claude(ends: float = SOON, token: str = TOKEN) -> dict[str, Any]:
    login = {
        "claudeAiOauth": {"accessToken": token, "refreshToken": "r", "expiresAt": int(ends * 1000)}
    }
    return {".claude/.credentials.json": login}


def codex(ends: float = SOON, key: str | None = None) -> dict[str, Any]:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ends}).encode()).decode().rstrip("=")
    return {
        ".codex/auth.json": {
            "OPENAI_API_KEY": key,
            "tokens": {"access_token": f"head.{claims}.sign"},
        }
    }


STORED_KEYS = {
    ".nacre/credentials.toml": '[keys]\nanthropic = "from-the-file-0001"\nmistral = "from-the-file-0002"\n'
}
OWN = '[models.providers.anthropic]\napi_key = "from-the-config-01"\n'


def test_key_sources_are_searched_in_fixed_order(find: Find) -> None:
    environ = {
        "NACRE_ANTHROPIC_API_KEY": "from-nacres-variable",
        "ANTHROPIC_API_KEY": "from-the-usual-one",
    }
    files = STORED_KEYS | claude()
    order = [
        credential.secret
        for credential in (
            find("anthropic", OWN, files, **environ),
            find("anthropic", "", files, **environ),
            find("anthropic", "", files, ANTHROPIC_API_KEY="from-the-usual-one"),
            find("anthropic", "", files),
        )
        if credential
    ]
    of_claude = find("anthropic", "", {".nacre/credentials.toml": ""})
    assert of_claude is not None
    assert [*order, of_claude.secret] == [
        "from-the-config-01",
        "from-nacres-variable",
        "from-the-usual-one",
        "from-the-file-0001",
        TOKEN,
    ]


@pytest.mark.parametrize(
    ("auth", "provider", "secret", "kind"),
    [
        ("anthropic-api-key", "anthropic", "from-the-usual-one", "api-key"),
        ("anthropic-token", "anthropic", "a-long-lived-token", "bearer"),
        ("anthropic-oauth", "anthropic", TOKEN, "bearer"),
        ("openai-api-key", "openai", "of-the-codex-command", "api-key"),
        ("openai-subscription", "openai", "head.", "bearer"),
    ],
)
def test_each_auth_method_uses_its_own_credential(
    find: Find, auth: str, provider: str, secret: str, kind: str
) -> None:
    credential = find(
        provider,
        f'models.auth = "{auth}"',
        claude() | codex(key="of-the-codex-command"),
        ANTHROPIC_API_KEY="from-the-usual-one",
        CLAUDE_CODE_OAUTH_TOKEN="a-long-lived-token",
    )
    assert credential is not None
    assert (credential.secret.startswith(secret), credential.kind) == (True, kind)


def test_stored_oauth_token_is_used_as_a_bearer_token(find: Find) -> None:
    credential = find(
        "anthropic", "", {".nacre/credentials.toml": f'[keys]\nanthropic = "{TOKEN}"\n'}
    )
    assert credential is not None
    assert credential.kind == "bearer"
    assert credential.origin.endswith("credentials.toml")


def test_auth_method_affects_only_its_provider(find: Find) -> None:
    credential = find("mistral", 'models.auth = "anthropic-oauth"', STORED_KEYS)
    assert credential is not None
    assert credential.secret == "from-the-file-0002"


@pytest.mark.parametrize(
    ("provider", "files", "auth", "remedy"),
    [
        ("anthropic", claude(GONE), "anthropic-oauth", "run claude once"),
        ("openai", codex(GONE), "openai-subscription", "run codex once"),
        ("anthropic", claude(GONE), "", "run claude once"),
    ],
)
def test_expired_login_is_reported_with_the_renewal_command(
    find: Find, provider: str, files: dict[str, Any], auth: str, remedy: str
) -> None:
    with pytest.raises(ModelRefusedError, match=r"has expired \(2026-11-20 11:00 UTC\)") as error:
        find(provider, f'models.auth = "{auth}"', files)
    assert remedy in str(error.value.hint)


def test_expired_login_does_not_block_a_key(find: Find) -> None:
    credential = find("openai", "", codex(GONE, key="of-the-codex-command"))
    assert credential is not None
    assert credential.secret == "of-the-codex-command"


@pytest.mark.parametrize(
    "files",
    [
        {".claude/.credentials.json": "not json " + TOKEN},
        {".claude/.credentials.json": "[" * 100_000},
        {".nacre/credentials.toml": f"[keys\nanthropic = {TOKEN}"},
        {".claude/.credentials.json": TOKEN + "x" * 300_000},
    ],
    ids=["words", "deep", "toml", "large"],
)
def test_unreadable_login_file_is_named_without_its_content(
    find: Find, files: dict[str, Any]
) -> None:
    with pytest.raises(ModelRefusedError) as error:
        find("anthropic", "", files)
    message = f"{error.value} {error.value.hint}"
    assert Path(next(iter(files))).name in message
    assert TOKEN not in message


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[]",
        '{"claudeAiOauth": 7}',
        '{"claudeAiOauth": {"accessToken": ""}}',
        '{"claudeAiOauth": {"accessToken": 1}}',
    ],
)
def test_file_without_a_login_yields_no_credential(find: Find, content: str) -> None:
    assert find("anthropic", "", {".claude/.credentials.json": content}) is None


@pytest.mark.parametrize("ends", [1e300, -1e300, float("inf")])
def test_invalid_expiry_time_counts_as_no_expiry(find: Find, ends: float) -> None:
    credential = find("openai", 'models.auth = "openai-subscription"', codex(ends))
    assert credential is not None


def test_tool_homes_follow_their_environment_variables(find: Find, tmp_path: Path) -> None:
    files = {
        f"elsewhere/{Path(name).name}": content for name, content in (claude() | codex()).items()
    }
    there = str(tmp_path / "elsewhere")
    assert find("anthropic", "", files, CLAUDE_CONFIG_DIR=there) is not None
    assert find("openai", "", files, CODEX_HOME=there) is not None
    assert find("openai", "", files) is None


def test_configured_variable_provides_the_key(find: Find) -> None:
    config = '[models.providers.mine]\nbase_url = "https://models.example/v1"\nkey = "THEIR_KEY"\n'
    credential = find("mine", config, THEIR_KEY="of-their-variable-1")
    assert credential is not None
    assert credential.origin == "$THEIR_KEY"


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        ("sk-abcdefghijklmnop", "sk-…mnop"),
        ("eyJhbGciOiJIUzI1", "…UzI1"),
        ("sk-short", "sk-…"),
        ("x", "…"),
    ],
)
def test_credential_shows_at_most_its_last_four_characters(secret: str, expected: str) -> None:
    credential = Credential("api-key", secret, "$SOMEWHERE")
    assert credential.masked == expected
    assert secret not in f"{credential!r} {credential}" or len(secret) == 1


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such file modes")
def test_login_symlink_is_followed_and_pipes_are_skipped(find: Find, tmp_path: Path) -> None:
    find("anthropic", "", {"real/login.json": claude()[".claude/.credentials.json"]})
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").symlink_to(tmp_path / "real" / "login.json")
    assert find("anthropic") is not None
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".claude" / ".credentials.json").unlink()
    (tmp_path / ".claude" / ".credentials.json").symlink_to(tmp_path / "pipe")
    with pytest.raises(ModelRefusedError, match="not a regular file"):
        find("anthropic")
