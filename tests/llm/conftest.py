"""Homes whose models are served by the fake provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nacre.llm.providers import open_model
from nacre.protocols import LanguageModel
from nacre.settings import load_settings
from nacre.values.models import Prompt
from nacre.values.session import Task

SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
PROMPT = Prompt(
    Task.TEST, "You name parts of boats.", "Which part?", SCHEMA, shared="A long list.", name="part"
)

for _module in ("stage", "scenarios"):
    pytest.register_assert_rewrite(f"tests.llm.{_module}")

Open = Callable[..., LanguageModel]


@pytest.fixture
def open_fake_model(tmp_path: Path) -> Iterator[Open]:
    """``open_fake_model(…)`` opens a configured model and closes it at the end of the test."""
    models: list[LanguageModel] = []

    def open_configured(
        name: str, config: str, environ: dict[str, str] | None = None
    ) -> LanguageModel:
        (tmp_path / "config.toml").write_text(config, encoding="utf-8")
        models.append(
            open_model(load_settings(tmp_path, {"HOME": str(tmp_path), **(environ or {})}), name)
        )
        return models[-1]

    yield open_configured
    for model in models:
        model.close()
