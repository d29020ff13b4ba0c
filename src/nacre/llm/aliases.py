"""Short names of models: ``anthropic:sonnet`` is the newest model of that family which ``aliases.toml`` names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def full_name(name: str) -> str:
    """The ``provider:model`` that a name stands for; a name that is no alias stands for itself."""
    provider, _, model = name.partition(":")
    found = aliases().get(provider, {}).get(model)
    return f"{provider}:{found}" if found else name


@cache
def aliases() -> Mapping[str, Mapping[str, str]]:
    """By provider: short names, and the models that they stand for."""
    return tomllib.loads((files("nacre.llm") / "aliases.toml").read_text("utf-8"))
