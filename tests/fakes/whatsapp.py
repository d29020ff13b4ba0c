"""WhatsApp's Cloud API on loopback, as https://developers.facebook.com/docs/whatsapp/cloud-api has it. ::

with FakeWhatsApp() as server:
    server.callback = "http://127.0.0.1:7078/whatsapp"      # where the gateway listens
    server.say(user="491700000000", text="hello")           # 200: the gateway keeps it
    server.wait_for(lambda: server.sent)
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from tests.fakes.platform import FakePlatform, Request, Response

TOKEN = "token-of-the-fake"
APP_SECRET = "app-secret-of-the-fake"
VERIFY_TOKEN = "verify-token-of-the-fake"
NUMBER = "106540352242922"
VERSION = "/v25.0"
_SECONDS = 20.0
_MOST_CHARACTERS = 4_096


class FakeWhatsApp(FakePlatform):
    """One business number. ``sent`` are the messages that it sent, ``typing`` the indicators that it showed.

    ``closed`` are people who last wrote more than a day ago. ``callback`` is where messages are delivered.
    """

    def __init__(self, callback: str = "") -> None:
        super().__init__()
        self.callback = callback
        self.sent: list[Mapping[str, Any]] = []
        self.typing: list[Mapping[str, Any]] = []
        self.closed: set[str] = set()
        self.files: dict[str, bytes] = {}
        self.file_host = ""
        self._count = 0

    @property
    def base_url(self) -> str:
        """The option of that name."""
        return self.url + VERSION

    def message(self, user: str, text: str = "", **fields: Any) -> dict[str, Any]:
        """A message as notices have it; ``fields`` are added (``type``, ``image``, ``timestamp``, ``group_id``, …)."""
        self._count += 1
        words = {"type": "text", "text": {"body": text}} if text else {}
        itself = {"from": user, "id": f"wamid.{self._count}", "timestamp": str(int(time.time()))}
        return itself | words | fields

    def notice(
        self,
        messages: Sequence[Any] = (),
        statuses: Sequence[Any] = (),
        number: str = NUMBER,
        **value: Any,
    ) -> dict[str, Any]:
        """What is delivered for some messages."""
        senders = [
            str(message["from"])
            for message in messages
            if isinstance(message, dict) and "from" in message
        ]
        contacts = [
            {"profile": {"name": f"User {user}"}, "wa_id": user} for user in dict.fromkeys(senders)
        ]
        meta = {"display_phone_number": "+49 30 1234", "phone_number_id": number}
        content = {"messaging_product": "whatsapp", "metadata": meta, "contacts": contacts}
        content |= {"messages": list(messages)} if messages else {"statuses": list(statuses)}
        change = {"field": "messages", "value": content | value}
        return {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [change]}]}

    def say(self, user: str, text: str = "", **fields: Any) -> int:
        """Somebody writes; the status with which the gateway answered."""
        return self.deliver(self.notice([self.message(user, text, **fields)]))

    def deliver(self, payload: Any, signature: str | None = None) -> int:
        """Deliver anything, signed with the app's secret or as is said; the status of the answer."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        headers = {b"content-type": b"application/json"}
        if signature != "":
            headers[b"x-hub-signature-256"] = (
                sign(body) if signature is None else signature
            ).encode()
        return httpx2.post(
            self.callback,
            content=body,
            headers=headers,
            timeout=_SECONDS,
            trust_env=False,
            verify=False,
        ).status_code

    def verify(self, **asked: str) -> httpx2.Response:
        """Ask whether the callback URL is the owner's, as Meta does when it is entered."""
        query = {
            "hub.mode": "subscribe",
            "hub.verify_token": VERIFY_TOKEN,
            "hub.challenge": "1158201444",
        }
        changed = query | {f"hub.{key}": value for key, value in asked.items()}
        return httpx2.get(
            self.callback, params=changed, timeout=_SECONDS, trust_env=False, verify=False
        )

    def file(self, data: bytes, **fields: Any) -> dict[str, Any]:
        """A file that lies at Meta, as messages name it."""
        with self.changed:
            name = f"file-{len(self.files)}"
            self.files[name] = data
            return {"id": name, "sha256": "…", **fields}

    def answer(self, request: Request) -> Response:
        """What the Graph API says."""
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return refusal(401, 190, "Invalid OAuth access token.")
        place = request.path.removeprefix(VERSION).strip("/")
        if place == NUMBER and request.method == "GET":
            return Response(200, {"display_phone_number": "+49 30 1234", "id": NUMBER})
        if place == f"{NUMBER}/messages":
            return (
                self._typing(request.body)
                if "typing_indicator" in request.body
                else self._send(request.body)
            )
        if place in self.files:
            url = f"{self.file_host or self.url}/media?mid={place}"
            size = str(len(self.files[place]))
            return Response(
                200, {"url": url, "mime_type": "image/jpeg", "file_size": size, "id": place}
            )
        if request.path == "/media":
            return Response(200, self.files[request.query["mid"]])
        return refusal(400, 100, f"Unsupported request. Object with ID '{place}' does not exist")

    def _send(self, asked: Mapping[str, Any]) -> Response:
        to = asked.get("to") or asked.get("recipient")
        if to in self.closed:
            said = "Message failed to send because more than 24 hours have passed since the customer last replied"
            return refusal(400, 131047, said)
        if len(asked["text"]["body"]) > _MOST_CHARACTERS:
            return refusal(400, 100, "Param text['body'] must be at most 4096 characters long.")
        self.note(self.sent, asked)
        self._count += 1
        contacts = [{"input": to, "wa_id": to}]
        messages = [{"id": f"wamid.{self._count}"}]
        return Response(
            200, {"messaging_product": "whatsapp", "contacts": contacts, "messages": messages}
        )

    def _typing(self, asked: Mapping[str, Any]) -> Response:
        self.note(self.typing, asked)
        return Response(200, {"success": True})


def sign(body: bytes, secret: str = APP_SECRET) -> str:
    """The header by which Meta signs a body."""
    return f"sha256={hmac.new(secret.encode(), body, 'sha256').hexdigest()}"


def refusal(status: int, code: int, said: str) -> Response:
    """An error of the Graph API."""
    error = {
        "message": f"(#{code}) {said}",
        "type": "OAuthException",
        "code": code,
        "error_data": {"details": said},
    }
    return Response(status, {"error": error})
