"""The first answers of a connection, given while the SDK is still being loaded.

Hosts ask ``initialize`` and ``tools/list`` as they start a server, and leave out, without a word, the tools of one that
is late: after one second some of them. To load the SDK takes half a second of a free core, and several of a busy one.
What these first requests are answered is known beforehand; a test holds it against what the SDK itself answers.
Everything else, also the whole of the protocol without a handshake, waits for the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nacre import __version__
from nacre.mcp import pages
from nacre.mcp.face import Face
from nacre.mcp.offers import INSTRUCTIONS

TITLE = "nacre, long-term memory"
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The protocol revisions with a handshake, the latest last."""

_CAPABILITIES: Mapping[str, Any] = {
    "prompts": {"listChanged": False}, "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}  # fmt: skip
_TITLES_SINCE = "2025-06-18"
_STAND_STILL = ("ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list")


@dataclass
class Opening:
    """What one connection was answered so far; ``greeting`` is the handshake that was answered."""

    face: Face
    greeting: dict[str, Any] | None = None
    _revision: str = field(default=HANDSHAKES[-1])

    def reply(self, message: Any) -> dict[str, Any] | None:
        """The answer to a message, or ``None`` where the SDK is to give it, or none is due."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return None
        number, method = message.get("id"), message.get("method")
        if isinstance(number, bool) or not isinstance(number, int | str) or not isinstance(method, str):
            return None
        params = message.get("params")
        if method == "initialize" and self.greeting is None and _is_greeting(params):
            self.greeting = message
            return _result(number, self._greet(params))
        if self.greeting is None or method not in _STAND_STILL or params:
            return None
        return _result(number, self._known(method))

    def _greet(self, params: Any) -> dict[str, Any]:
        asked = params["protocolVersion"]
        self._revision = asked if asked in HANDSHAKES else HANDSHAKES[-1]
        about: dict[str, Any] = {"name": "nacre", "title": TITLE, "version": __version__}
        return {
            "protocolVersion": self._revision, "capabilities": _CAPABILITIES, "serverInfo": about,
            "instructions": INSTRUCTIONS,
        }  # fmt: skip

    def _known(self, method: str) -> dict[str, Any]:
        if method == "ping":
            return {}
        name, values = {
            "tools/list": ("tools", self.face.tools),
            "resources/list": ("resources", pages.RESOURCES),
            "resources/templates/list": ("resourceTemplates", pages.TEMPLATES),
            "prompts/list": ("prompts", pages.PROMPTS),
        }[method]
        return {name: values}


def _is_greeting(params: Any) -> bool:
    """Whether a handshake is well formed; one that is not is the SDK's to refuse."""
    if not isinstance(params, dict):
        return False
    about = params.get("clientInfo")
    return (
        isinstance(params.get("protocolVersion"), str)
        and isinstance(params.get("capabilities"), dict)
        and isinstance(about, dict)
        and isinstance(about.get("name"), str)
        and isinstance(about.get("version"), str)
    )


def _result(number: int | str, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}
