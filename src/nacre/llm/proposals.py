"""Which models there are to choose from: what a server on this machine lists, else what ``proposals.toml`` names."""

from __future__ import annotations

import http.client
import json
import tomllib
from importlib.resources import files
from urllib.parse import urlsplit

from nacre.llm.providers import Provider, is_loopback

_SECONDS = 0.5
_MOST_BYTES = 1_000_000


def proposed(provider: Provider) -> list[str]:
    """Names of models, the one to begin with first; empty where none is known."""
    listed = listed_here(provider)
    if listed is not None:
        return listed
    table = tomllib.loads((files("nacre.llm") / "proposals.toml").read_text("utf-8"))
    return list(table.get(provider.name, []))


def listed_here(provider: Provider) -> list[str] | None:
    """The models that a server on this machine lists; ``None`` where it is elsewhere, or does not answer."""
    address = urlsplit(provider.base_url)
    if provider.api != "chat" or address.scheme != "http" or not address.hostname or not is_loopback(address.hostname):
        return None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=_SECONDS)
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/models")
        answer = json.loads(connection.getresponse().read(_MOST_BYTES))
        return [str(one["id"]) for one in answer["data"]]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        connection.close()
