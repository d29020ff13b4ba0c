"""The tools of agents that show a key to a space."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nacre.catalogue import CATALOGUE
from nacre.mcp.calling import HomeCalls
from nacre.platform import json_values
from nacre.values.actor import acting_now

if TYPE_CHECKING:
    from nacre.home.home import ModelLoader
    from nacre.web.served import Run


class _Waiting:
    """Whoever waits for a tool; it ends with its time."""

    def has_left(self) -> bool:
        """Nobody tells."""
        return False

    def agent(self) -> str | None:
        """The key says who it is."""
        return None


class KeyCalls(HomeCalls):
    """Calls in the space whose key the request shows, else about the home."""

    def __init__(self, home: Path, run: Run) -> None:
        super().__init__(home)
        self._run_by_key = run

    def __call__(self, operation: str, request: Any, *, load_model: ModelLoader | None = None) -> Any:
        """The operation's result. Raises NacreError."""
        actor = acting_now()
        if actor is None or actor.bearer is None:
            return super().__call__(operation, request, load_model=load_model)
        asked = msgspec.json.encode(json_values.to_plain(request))
        answer = self._run_by_key(operation, asked, actor, _Waiting())
        return json_values.from_plain(msgspec.json.decode(answer), CATALOGUE[operation].result)
