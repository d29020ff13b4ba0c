"""An MCP server as hosts' settings name it: how it is started, and with what."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_YAML = re.compile(r"^    (command|args|env): (.+)$", re.MULTILINE)
"""Continue's file is nacre's own, with values as JSON has them."""


@dataclass(frozen=True, slots=True)
class Server:
    """``words`` start it; there are none where it is reached in another way, or nobody can tell."""

    words: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


def server_of(value: Any) -> Server | None:
    """The server that a value of settings describes; ``None`` where there is no value."""
    if value is None:
        return None
    first = value.get("command") if isinstance(value, dict) else None
    if not first:
        return Server(())
    given = value.get("args")
    words = first if isinstance(first, list) else [first, *(given if isinstance(given, list) else ())]
    environ = value.get("env") or value.get("environment")
    named = environ if isinstance(environ, dict) else {}
    return Server(tuple(map(str, words)), {str(name): str(one) for name, one in named.items()})


def server_in_yaml(text: str) -> Server | None:
    """The server of a file in YAML that holds one alone, in the layout that nacre gives it."""
    if not text.strip():
        return None
    try:
        return server_of({key: json.loads(value) for key, value in _YAML.findall(text)})
    except ValueError:
        return Server(())
