"""A model's capabilities follow from its name, and the owner's settings override them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from nacre.errors import ModelRefusedError
from nacre.llm.credentials import Provider, provider_of
from nacre.llm.providers import aliases, describe, full_name, list_proposed
from nacre.settings import load_settings
from nacre.values.models import Capabilities, Price


def capabilities_of(tmp_path: Path, name: str, config: str = "") -> Capabilities:
    (tmp_path / "config.toml").write_text(config, encoding="utf-8")
    return describe(load_settings(tmp_path, {"HOME": str(tmp_path)}), name)[1]


MODEL_NAMES = [f"{provider}:{name}" for provider, names in aliases().items() for name in names]


@pytest.mark.parametrize("alias", MODEL_NAMES)
def test_alias_names_a_model_with_known_window_and_price(tmp_path: Path, alias: str) -> None:
    (tmp_path / "config.toml").touch()
    settings = load_settings(tmp_path, {"HOME": str(tmp_path)})
    requested, described = describe(settings, alias)
    assert requested.name != alias
    assert described.known
    assert described.price
    assert describe(settings, requested.name)[1] == described


def test_proposed_models_match_the_aliases_of_their_families() -> None:
    settings = load_settings(Path("/nowhere"), {"HOME": "/nowhere"})
    for provider in aliases():
        assert set(list_proposed(provider_of(settings, provider))) <= set(
            aliases()[provider].values()
        )


@pytest.mark.parametrize(
    "name", ["claude-cli:sonnet", "ollama:mini", "anthropic:sonnet-4", "openrouter:openai/mini"]
)
def test_other_names_are_not_aliases(name: str) -> None:
    assert full_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "anthropic:claude-opus-4-1",
        "anthropic:claude-opus-4-1-20250805",
        "openrouter:anthropic/claude-opus-4-1",
        "openrouter:anthropic/Claude-Opus-4-1@20250805",
    ],
)
def test_model_names_match_without_provider_and_date(tmp_path: Path, name: str) -> None:
    capabilities = capabilities_of(tmp_path, name)
    assert capabilities.known
    assert (capabilities.window, capabilities.output) == (200_000, 32_000)
    assert capabilities.price == Price(Decimal(15), Decimal(75), Decimal("1.5"), Decimal("18.75"))


@pytest.mark.parametrize(
    "name", ["anthropic:claude-haiku-5-5", "openrouter:anthropic/claude-haiku-5.5"]
)
def test_context_window_ends_below_the_long_prompt_price(tmp_path: Path, name: str) -> None:
    capabilities = capabilities_of(tmp_path, name)
    assert (capabilities.window, capabilities.answers) == (100_000, "schema")
    assert capabilities.price == Price(
        Decimal("0.1"), Decimal("0.5"), Decimal("0.01"), Decimal("0.125")
    )


def test_every_model_proposed_by_setup_has_a_price(tmp_path: Path) -> None:
    names = [
        f"{name}:{model}"
        for name in ("anthropic", "openai", "openrouter")
        for model in list_proposed(known_provider(name))
    ]
    assert len(names) >= 6
    assert [name for name in names if capabilities_of(tmp_path, name).price is None] == []


def known_provider(name: str) -> Provider:
    return provider_of(load_settings("/nowhere", {}), name)


def test_unknown_model_gets_a_small_window_and_no_price(tmp_path: Path) -> None:
    capabilities = capabilities_of(tmp_path, "openrouter:somebody/something-7b")
    assert not capabilities.known
    assert capabilities.price is None
    assert capabilities.window <= 32_000


def test_local_model_costs_nothing(tmp_path: Path) -> None:
    assert capabilities_of(tmp_path, "ollama:qwen3").price == Price()


@pytest.mark.parametrize("pattern", ["ollama:qwen3:14b", "qwen3:14b", "qwen3*", "ollama:*"])
def test_owner_configures_model_capabilities(tmp_path: Path, pattern: str) -> None:
    own = f'[models.capabilities."{pattern}"]\nwindow = 40960\nanswers = "json"\nprice = {{input = 0.5}}\n'
    capabilities = capabilities_of(tmp_path, "ollama:qwen3:14b", own)
    assert (capabilities.window, capabilities.answers, capabilities.known) == (40_960, "json", True)
    assert capabilities.price is not None
    assert capabilities.price.cached == Decimal("0.5")


@pytest.mark.parametrize(
    "own", ["windows = 3", 'window = "wide"', "price = {inputs = 3}", 'answers = "loudly"']
)
def test_invalid_capability_setting_is_named(tmp_path: Path, own: str) -> None:
    with pytest.raises(ModelRefusedError, match=r"models\.capabilities\.m"):
        capabilities_of(tmp_path, "ollama:m", f"[models.capabilities.m]\n{own}\n")


@pytest.mark.parametrize(
    "name", ["claude-cli:opus", "claude-cli:default", "codex-cli:gpt-5.2-codex", "codex-cli:"]
)
def test_agent_commands_enforce_a_schema_for_every_model(tmp_path: Path, name: str) -> None:
    assert capabilities_of(tmp_path, name).answers == "schema"


@pytest.mark.parametrize(
    ("more", "is_free"),
    [
        ("", True),
        ('key = "QUAY_KEY"', False),
        ('api_key = "sk-none"', False),
        ('free = "no"', False),
    ],
)
def test_local_server_without_a_key_is_free(tmp_path: Path, more: str, is_free: bool) -> None:
    config = f'[models.providers.quay]\nbase_url = "http://127.0.0.1:9999/v1"\n{more}\n'
    capabilities = capabilities_of(tmp_path, "quay:somebody/something-7b", config)
    assert capabilities.price == (Price() if is_free else None)
