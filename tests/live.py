"""Real models for tests that are marked ``live``: one of each provider whose key is in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from nacre.llm.registry import open_model
from nacre.protocols import LanguageModel
from nacre.settings import load_settings

CHEAP = {
    "anthropic": "claude-haiku-4-5",
    "openai": "gpt-5-mini",
    "gemini": "gemini-2.5-flash",
    "groq": "llama-3.3-70b-versatile",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-small-latest",
}
"""A model of each provider that costs little; ``NACRE_LIVE_MODEL`` names another, and only that is asked then."""

KEYS = {name: f"{name.upper()}_API_KEY" for name in CHEAP}
NAMES = [os.environ["NACRE_LIVE_MODEL"]] if os.environ.get("NACRE_LIVE_MODEL") else [
    f"{name}:{model}" for name, model in CHEAP.items() if os.environ.get(KEYS[name])
]  # fmt: skip
ENVIRON = dict(os.environ)


@pytest.fixture(params=NAMES or ["none"])
def live_model(request: pytest.FixtureRequest) -> Iterator[LanguageModel]:
    """Each of the real models in turn; skipped where there is no key."""
    if request.param == "none":
        pytest.skip(f"no key: set one of {', '.join(KEYS.values())}, or NACRE_LIVE_MODEL=provider:model")
    model = open_model(load_settings(environ={**ENVIRON, "HOME": os.environ["HOME"]}), request.param)
    yield model
    model.close()
