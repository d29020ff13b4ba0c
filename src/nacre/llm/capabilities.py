"""What a model can do and costs: ``capabilities.toml``, and ``models.capabilities`` before it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from nacre.errors import ModelRefused
from nacre.llm.providers import COMMANDS, Provider
from nacre.platform import json_values
from nacre.settings import Settings
from nacre.values.model_calls import Capabilities, Price

_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)(?:-v\d+(?::\d+)?)?$")
_OWNER = re.compile(r"^(?:[a-z]{2}\.)?anthropic\.")
_FIXED = (*COMMANDS, "mcp-sampling")
"""Formats that hold every model to a schema in the same way."""
_THINKING_TOKENS = 8_192
"""Models that think spend the allowance of their answer on it; without room for that it would be cut off."""


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    window: int | None = None
    output: int | None = None
    answers: Literal["schema", "tool", "json", "text"] | None = None
    caches: bool | None = None
    price: dict[str, float] | None = None


def capabilities_of(settings: Settings, provider: Provider, model: str) -> Capabilities:
    """What ``provider:model`` can do. Unknown models get small defaults and ``known`` is false.

    Tables of ``models.capabilities`` are named by ``provider:model``, by a model, or by a pattern of either. Raises
    ModelRefused for one that says what there is not.
    """
    able = _listed(bare_name(model)) or Capabilities(answers=provider.answers or "json")
    if provider.api in _FIXED:
        able = replace(able, answers=provider.answers)
    if provider.free:
        able = replace(able, price=Price())
    return _as_told(settings, provider, model, able)


def own_price(settings: Settings, provider: Provider, model: str) -> Decimal | None:
    """What the owner says a million tokens cost that ``provider:model`` reads, if they do. Raises ModelRefused."""
    price = _as_told(settings, provider, model, Capabilities()).price
    return price.input if price else None


def _as_told(settings: Settings, provider: Provider, model: str, able: Capabilities) -> Capabilities:
    own: Mapping[str, Mapping[str, Any]] = settings["models.capabilities"]
    for pattern, table in own.items():
        if _matches(pattern, (f"{provider.name}:{model}", model, bare_name(model))):
            able = _changed(able, pattern, table)
    return replace(able, thinking=_thinking(provider))


def _thinking(provider: Provider) -> int:
    return _THINKING_TOKENS if provider.api == "openai" else 0


def bare_name(model: str) -> str:
    """A model's name without its provider and date: ``claude-sonnet-4`` of ``anthropic/claude-sonnet-4-20250514``."""
    name = model.lower().rpartition("/")[2]
    return _DATE.sub("", _OWNER.sub("", name))


@cache
def _tables() -> Sequence[tuple[tuple[str, ...], Capabilities]]:
    text = (files("nacre.llm") / "capabilities.toml").read_text("utf-8")
    tables = tomllib.loads(text, parse_float=Decimal)["model"]
    found = []
    for table in tables:
        names, price = table.pop("names"), table.pop("price", None)
        found.append((tuple(names), Capabilities(**table, price=Price(**price) if price else None, known=True)))
    return found


def _listed(name: str) -> Capabilities | None:
    return next((able for names, able in _tables() if _matches_any(names, name)), None)


def _matches_any(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _matches(pattern: str, names: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _changed(able: Capabilities, pattern: str, table: Mapping[str, Any]) -> Capabilities:
    where = f"models.capabilities.{pattern}"
    try:
        own = json_values.convert(dict(table), _Own)
        price = _priced(own.price) if own.price else able.price
    except (msgspec.ValidationError, TypeError) as error:
        hint = "keys: window, output, answers, caches, price = {input, output, cached, written}"
        raise ModelRefused(f"{where} cannot be read: {error}", hint=hint) from error
    plain: dict[str, Any] = {
        name: value
        for name in ("window", "output", "answers", "caches")
        if (value := getattr(own, name)) is not None
    }  # fmt: skip
    return replace(able, **plain, price=price, known=able.known or own.window is not None)


def _priced(told: Mapping[str, float]) -> Price:
    """What the cache holds costs as much as the rest, unless that is told. Raises TypeError for other names."""
    prices = {name: Decimal(str(value)) for name, value in told.items()}
    whole = prices.get("input", Decimal(0))
    return Price(**{"cached": whole, "written": whole, **prices})
