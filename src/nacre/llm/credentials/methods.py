"""The ways in which nacre signs in, from ``methods.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

API_KEY, BEARER = "api-key", "bearer"


@dataclass(frozen=True, slots=True)
class Method:
    """One way to sign in; what its fields mean is at the head of ``methods.toml``."""

    name: str
    provider: str
    label: str
    kind: str
    variables: tuple[str, ...] = ()
    login: str = ""
    begins: str = ""
    through: str = ""
    renew: str = ""


@cache
def methods() -> dict[str, Method]:
    """Every method by its name."""
    tables = tomllib.loads((files(__package__) / "methods.toml").read_text(encoding="utf-8"))
    return {
        name: Method(name=name, **{**table, "variables": tuple(table.get("variables", ()))})
        for name, table in tables.items()
    }


def method_of(provider: str, secret: str) -> Method | None:
    """How a secret that somebody gave nacre signs in, by what it begins with; ``None`` where there is one way only."""
    own = [method for method in methods().values() if method.provider == provider]
    marked = [method for method in own if method.begins and secret.startswith(method.begins)]
    return next(iter([*marked, *(method for method in own if method.kind == API_KEY)]), None)
