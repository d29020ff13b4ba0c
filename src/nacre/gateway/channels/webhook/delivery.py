"""Answers that are posted to a URL of the owner's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from nacre.errors import ChannelRefused, ChannelUnavailable, SettingsInvalid
from nacre.gateway.channels.webhook.signatures import HEADER, Signatures
from nacre.llm.providers import is_loopback

_SECONDS = 10.0
_AGAIN = frozenset({408, 409, 425, 429})
_MOST_AFTER = 3_600


class Delivery:
    """Posts answers, each with its key, so that one that comes twice can be told."""

    def __init__(self, where: str, url: str, signatures: Signatures) -> None:
        """``where``: the setting's table. Raises SettingsInvalid for a URL that is not encrypted."""
        try:
            address = urlsplit(url)
            host = address.hostname or ""
        except ValueError:
            host = ""
        if not host or not (address.scheme == "https" or (address.scheme == "http" and is_loopback(host))):
            raise SettingsInvalid(f"{where}.deliver_to is no https URL", hint="http is for this machine alone")
        self._url = url
        self._signatures = signatures
        self._client = httpx2.AsyncClient(
            timeout=_SECONDS, trust_env=not is_loopback(host), headers={"user-agent": "nacre"}
        )  # fmt: skip

    async def post(self, answer: Mapping[str, Any]) -> None:
        """Post one. What the URL is stays unsaid: it may hold a token. Raises ChannelUnavailable, ChannelRefused."""
        body = json.dumps(answer).encode()
        headers = {
            "content-type": "application/json", "idempotency-key": answer["key"], HEADER: self._signatures.header(body),
        }  # fmt: skip
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                status, after = response.status_code, response.headers.get("retry-after", "")
        except httpx2.HTTPError as error:
            told = f"deliver_to cannot be reached: {type(error).__name__}"
            raise ChannelUnavailable(told, hint="is it running?") from None
        if status in _AGAIN or status >= 500:
            seconds = float(min(int(after), _MOST_AFTER)) if after.isascii() and after.isdigit() else None
            raise ChannelUnavailable(f"deliver_to says {status}", hint="is it in order?", retry_after=seconds)
        if not 200 <= status < 300:
            raise ChannelRefused(f"deliver_to says {status}", hint="check gateway.channels.<name>.deliver_to")

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()
