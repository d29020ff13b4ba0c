"""Questions to nacre on a server, over HTTP with a key."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from nacre.errors import InvalidInput, NacreError, NotAllowed, RemoteRefused, RemoteUnreachable, Unavailable
from nacre.llm.credentials import key_file, keyrings
from nacre.llm.providers import is_loopback
from nacre.platform import json_text, json_values
from nacre.settings import Settings

T = TypeVar("T")

KEY = "NACRE_REMOTE_KEY"
_KEPT_AS = "nacre-remote"
_SECONDS = 300.0
"""A server that many machines bring a lot to at once may take so long."""
_CONNECT_SECONDS = 10.0
_MOST_ANSWER = 32 << 20


class Connection:
    """Asks one server, in the name of whom a key is. Raises RemoteUnreachable, RemoteRefused, NotAllowed."""

    def __init__(self, url: str, key: str) -> None:
        here = is_loopback(urlsplit(url).hostname or "")
        self._client = httpx2.Client(
            base_url=url.rstrip("/"), trust_env=not here, follow_redirects=False,
            headers={"authorization": f"Bearer {key}", "user-agent": "nacre", "content-type": "application/json"},
            timeout=httpx2.Timeout(_SECONDS, connect=_CONNECT_SECONDS),
        )  # fmt: skip

    def ask(self, operation: str, request: Any, answer: type[T]) -> T:
        """What the server answers."""
        try:
            with self._client.stream("POST", f"/api/v1/{operation}", content=json_values.encode(request)) as response:
                data = bytearray()
                for piece in response.iter_bytes():
                    data += piece
                    if len(data) > _MOST_ANSWER:
                        raise RemoteRefused("the server's answer is too large to be one of nacre's")
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise RemoteUnreachable(
                f"the server cannot be reached ({type(error).__name__})",
                hint="nothing is lost: what is new goes there when it answers again",
            ) from None
        if response.status_code != 200:
            raise _refusal(response.status_code, bytes(data))
        try:
            found: T = json_values.decode(bytes(data), answer)
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise RemoteRefused(
                "the server answers what nacre does not understand", hint="is it as new as this one?"
            ) from None
        return found

    def close(self) -> None:
        """End all connections."""
        self._client.close()


def check_url(url: str) -> str:
    """An address as it is kept. Raises InvalidInput unless it is encrypted, or on this machine, and holds no login."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        raise InvalidInput(f"{url!r} is no address", hint="https://memory.example.org") from None
    if parts.scheme in ("postgresql", "postgres"):
        raise InvalidInput(
            "that is a database: a machine keeps in step with nacre serve, by a key",
            hint="work with the database itself by nacre move --to, or name the address of nacre serve --http",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput("the address is the server's alone", hint="the key is asked for, and kept apart")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise InvalidInput(f"{url!r} is not safe to send memories to", hint="https, or http on this machine")
    return url.strip().rstrip("/")


def key_for(settings: Settings) -> str:
    """The key that was kept, or that the environment names. Raises Unavailable."""
    found = settings.environ.get(KEY, "").strip() or _in_keyring() or key_file.read(settings).get(_KEPT_AS, "")
    if not found:
        raise Unavailable("the key to the server is not here any more", hint=f"nacre remote add URL, or set {KEY}")
    return found


def keep_key(settings: Settings, secret: str) -> None:
    """Keep a key in the system's keyring, else in credentials.toml. Raises Unavailable, CredentialsUnusable."""
    try:
        keyrings.keep(_KEPT_AS, secret)
    except Unavailable:
        key_file.keep(settings, _KEPT_AS, secret)
    else:
        key_file.drop(settings, _KEPT_AS)


def drop_key(settings: Settings) -> None:
    """Forget it."""
    with suppress(Unavailable):
        keyrings.drop(_KEPT_AS)
    key_file.drop(settings, _KEPT_AS)


def _in_keyring() -> str:
    try:
        return "" if keyrings.why_not() else keyrings.read(_KEPT_AS) or ""
    except Unavailable:
        return ""


def _refusal(status: int, body: bytes) -> NacreError:
    said = _problem(body)
    message = str(said.get("detail") or said.get("title") or f"status {status}")[:500]
    hint = str(said.get("hint") or "")[:500]
    if status == 401:
        return NotAllowed("the server does not take the key", hint="make another: nacre keys create; nacre remote add")
    if status in (403, 404, HTTPStatus.INSUFFICIENT_STORAGE):
        return NotAllowed(f"the server says: {message}", hint=hint)
    if status in (429, 503) or status >= 500:
        return RemoteUnreachable(f"the server cannot answer now: {message}", hint=hint or "it is tried again later")
    return RemoteRefused(f"the server says: {message}", hint=hint)


def _problem(body: bytes) -> Mapping[str, Any]:
    try:
        found = json_text.parse(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
