"""Which models there are to choose from: what a server on this machine lists, else what ``proposals.toml`` names."""

from __future__ import annotations

import http.client
import json
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from nacre.llm.providers import Provider, is_loopback, providers
from nacre.settings import Settings

_SECONDS = 0.5
_MOST_BYTES = 1_000_000


def proposed(provider: Provider) -> list[str]:
    """Names of models, the one to begin with first; empty where none is known."""
    listed = listed_here(provider)
    if listed is not None:
        return listed
    table = tomllib.loads((files("nacre.llm") / "proposals.toml").read_text("utf-8"))
    return list(table.get(provider.name, []))


def servers_here(settings: Settings) -> dict[str, list[str]]:
    """The models of each server on this machine that answers, by its provider. Raises ModelRefused where
    ``models.providers`` is written wrongly.
    """
    able = [one for one in providers(settings).values() if one.api == "chat" and not one.needs_key]
    found = {one.name: listed_here(one) for one in able}
    return {name: models for name, models in found.items() if models is not None}


def listed_here(provider: Provider) -> list[str] | None:
    """The language models that a server on this machine lists; ``None`` where it is elsewhere, or does not answer."""
    address = urlsplit(provider.base_url)
    if provider.api != "chat" or address.scheme != "http" or not address.hostname or not is_loopback(address.hostname):
        return None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=_SECONDS)
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/models")
        answer = json.loads(connection.getresponse().read(_MOST_BYTES))
        return [name for one in answer["data"] if not _makes_vectors(name := str(one["id"]))]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        connection.close()


def _makes_vectors(model: str) -> bool:
    """Whether a model is one for vectors, by its name."""
    bare = model.lower().rpartition("/")[2].partition(":")[0]
    return "embed" in bare or any(fnmatchcase(bare, name) for name in _for_vectors())


@cache
def _for_vectors() -> tuple[str, ...]:
    tables = tomllib.loads((files("nacre.llm") / "embeddings.toml").read_text("utf-8"))["model"]
    return tuple(name for table in tables for name in table["names"])
