"""The Model Context Protocol as a server with tools, resources and prompts speaks it: what is asked, and in which form.

Revisions up to 2025-11-25 begin with a handshake; since 2026-07-28 each request brings what a handshake said. Tests
hold all of it against the official SDK.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from nacre import __version__
from nacre.mcp.offers import INSTRUCTIONS
from nacre.platform import json_values

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions with a handshake, the latest last."""

ENVELOPES = ("2026-07-28",)
"""The revisions without one."""

ABOUT: Mapping[str, Any] = {"name": "nacre", "title": "nacre, long-term memory", "version": __version__}
CAPABILITIES: Mapping[str, Any] = {
    "prompts": {"listChanged": False}, "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}  # fmt: skip

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
RESOURCE_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION = -32002, -32020, -32022

VERSION = "io.modelcontextprotocol/protocolVersion"
_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_CACHED = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "server/discover",
)


class ProtocolError(Exception):
    """What a request is answered that cannot be done."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def answer(self, number: int | str | None) -> dict[str, Any]:
        """The message that says so."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": number, "error": error}


class _Meta(msgspec.Struct, frozen=True):
    progress_token: int | str | None = msgspec.field(name="progressToken", default=None)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a request."""

    meta: _Meta | None = msgspec.field(name="_meta", default=None)

    @property
    def token(self) -> int | str | None:
        """With what the client wants to be told how far it is."""
        return self.meta.progress_token if self.meta else None


class ListAsked(Asked, frozen=True, kw_only=True):
    """Of a list; all of it is one page."""

    cursor: str | None = None


class CallAsked(Asked, frozen=True, kw_only=True):
    """Of a tool's call."""

    name: str
    arguments: dict[str, Any] | None = None


class ReadAsked(Asked, frozen=True, kw_only=True):
    """Of a resource."""

    uri: str


class PromptAsked(Asked, frozen=True, kw_only=True):
    """Of a prompt."""

    name: str
    arguments: dict[str, str] | None = None


class _Client(msgspec.Struct, frozen=True):
    name: str
    version: str


class Greeting(Asked, frozen=True, kw_only=True):
    """Of a handshake."""

    revision: str = msgspec.field(name="protocolVersion")
    capabilities: dict[str, Any]
    client: _Client = msgspec.field(name="clientInfo")


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    capabilities: dict[str, Any] = msgspec.field(name=_CLIENT_CAPABILITIES)
    client: _Client | None = msgspec.field(name=_CLIENT_INFO, default=None)


_SHARED: dict[str, type[Asked]] = {
    "tools/list": ListAsked, "tools/call": CallAsked, "resources/list": ListAsked, "resources/read": ReadAsked,
    "resources/templates/list": ListAsked, "prompts/list": ListAsked, "prompts/get": PromptAsked,
}  # fmt: skip
WITH_HANDSHAKE: Mapping[str, type[Asked]] = {**_SHARED, "initialize": Greeting, "ping": Asked}
WITH_ENVELOPE: Mapping[str, type[Asked]] = {**_SHARED, "server/discover": Asked}


def parsed(line: bytes) -> dict[str, Any]:
    """A message of JSON-RPC. Raises ProtocolError. Halves of characters become question marks."""
    try:
        told = json.loads(line)
        if b"\\ud" in line.lower():
            told = json.loads(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "this is no JSON") from None
    if not _is_message(told):
        raise WrongMessageError(number_of(told), "this is no message of JSON-RPC 2.0")
    if told.get("id") is not None and number_of(told) is None:
        raise WrongMessageError(None, "an id is a text or a whole number")
    return dict(told)


class WrongMessageError(ProtocolError):
    """JSON that is no message; ``number`` is the one it gives."""

    def __init__(self, number: int | str | None, message: str) -> None:
        super().__init__(INVALID_REQUEST, message)
        self.number = number


def number_of(told: Any) -> int | str | None:
    """The number of a request or an answer."""
    number = told.get("id") if isinstance(told, dict) else None
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _is_message(told: Any) -> bool:
    if not isinstance(told, dict) or told.get("jsonrpc") != "2.0":
        return False
    if "method" in told:
        return isinstance(told["method"], str) and isinstance(told.get("params"), dict | None)
    return "id" in told and ("result" in told or "error" in told)


def has_envelope(params: Mapping[str, Any]) -> bool:
    """Whether a request is one of the revisions without a handshake."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION in meta


def check_envelope(params: Mapping[str, Any], *, is_known: bool = True) -> None:
    """Raise ProtocolError where a request lacks what each has to bring, or is of an unknown revision.

    With ``is_known`` false the revision may be any.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        keys = f"{VERSION!r} and {_CLIENT_CAPABILITIES!r}"
        raise ProtocolError(
            INVALID_PARAMS, f"params._meta must be an object carrying the required {keys} envelope keys"
        )
    missing = [key for key in (VERSION, _CLIENT_CAPABILITIES) if key not in meta]
    if missing:
        raise ProtocolError(
            INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        )
    revision = meta[VERSION]
    if not is_known:
        return
    if not isinstance(revision, str):
        raise ProtocolError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if revision not in ENVELOPES:
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", _served(revision))


def refused_handshake(params: Mapping[str, Any]) -> ProtocolError:
    """What a handshake is answered where the client began without one."""
    message = f"connection is serving the {ENVELOPES[-1]} protocol; the initialize handshake is not accepted"
    return ProtocolError(UNSUPPORTED_VERSION, message, _served(params.get("protocolVersion")))


def _served(revision: Any) -> dict[str, Any]:
    return {"supported": list(ENVELOPES), **({"requested": revision} if isinstance(revision, str) else {})}


def asked_of(method: str, params: Mapping[str, Any], *, with_envelope: bool) -> Asked:
    """The parameters of a request. Raises ProtocolError, also for a method that is not served."""
    known = WITH_ENVELOPE if with_envelope else WITH_HANDSHAKE
    if method not in known:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", method)
    try:
        if with_envelope:
            json_values.convert(params["_meta"], _Envelope)
        return json_values.convert(params, known[method])
    except msgspec.ValidationError:
        raise invalid_params() from None


def invalid_params() -> ProtocolError:
    """What a request is answered whose parameters make no sense, or that comes before the handshake."""
    return ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")


def greeted(asked: Greeting) -> dict[str, Any]:
    """The server's side of a handshake."""
    revision = asked.revision if asked.revision in HANDSHAKES else HANDSHAKES[-1]
    return {
        "protocolVersion": revision, "capabilities": CAPABILITIES, "serverInfo": ABOUT, "instructions": INSTRUCTIONS,
    }  # fmt: skip


def discovered() -> dict[str, Any]:
    """What a client without a handshake may ask first."""
    return {"supportedVersions": list(ENVELOPES), "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}


def enveloped(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result as the revisions without a handshake have it."""
    cache = {"cacheScope": "private", "ttlMs": 0} if method in _CACHED else {}
    return {**result, **cache, "resultType": "complete", "_meta": {_SERVER_INFO: ABOUT}}
