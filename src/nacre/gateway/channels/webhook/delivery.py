"""Answers that are posted to a URL of the owner's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from nacre.errors import ChannelRefused, ChannelUnavailable, SettingsInvalid
from nacre.gateway.channels.web_api import WebApi
from nacre.gateway.channels.webhook.signatures import HEADER, Signatures

_SECONDS = 10.0
_AGAIN = frozenset({408, 409, 425, 429})


class Delivery:
    """Posts answers, each with its key, so that one that comes twice can be told."""

    def __init__(self, url: str, signatures: Signatures) -> None:
        """Raises SettingsInvalid for a URL that is not encrypted."""
        try:
            address = urlsplit(url)
            self._api = WebApi("deliver_to", f"{address.scheme}://{address.netloc}", {"user-agent": "nacre"})
        except ValueError as error:
            raise SettingsInvalid("deliver_to is no URL", hint="https://host/path") from error
        self._path = address._replace(scheme="", netloc="", fragment="").geturl()
        self._signatures = signatures

    async def post(self, answer: Mapping[str, Any]) -> None:
        """Post one. What the URL is stays unsaid: it may hold a token. Raises ChannelUnavailable, ChannelRefused."""
        body = json.dumps(answer).encode()
        headers = {
            "content-type": "application/json", "idempotency-key": answer["key"], HEADER: self._signatures.header(body),
        }  # fmt: skip
        reply = await self._api.ask("POST", self._path, content=body, headers=headers, seconds=_SECONDS)
        if reply.status in _AGAIN or reply.status >= 500:
            told = f"deliver_to says {reply.status}"
            raise ChannelUnavailable(told, hint="is it in order?", retry_after=reply.retry_after)
        if not 200 <= reply.status < 300:
            raise ChannelRefused(f"deliver_to says {reply.status}", hint="check the channel's option deliver_to")

    async def close(self) -> None:
        """Let go of connections."""
        await self._api.close()
