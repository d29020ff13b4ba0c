"""The one door through which a module is loaded only when somebody wants what is in it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def load(target: str) -> Any:
    """What ``package.module:name`` names. Its module is imported the first time. Raises ImportError, AttributeError."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
