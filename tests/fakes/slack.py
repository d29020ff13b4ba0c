"""Slack on loopback: Socket Mode and the Web API, according to their public documentation. ::

with FakeSlack() as server:
    channel = Slack(setup(server))              # its base_url is server.url
    server.say("D1", "U1", "hello")             # channel, user, text
    server.wait_for(lambda: server.sent)        # the app's messages
    server.drop()                               # cut the connections; unconfirmed envelopes are sent again
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection

from tests.fakes.platform import FakePlatform, Request, Response

BOT, TEAM = "UBOT", "T1"
TOKEN, APP_TOKEN = "xoxb-bot-token", "xapp-app-token"


class FakeSlack(FakePlatform):
    """``sent`` are the app's messages; ``confirmed`` its confirmed envelopes; ``opened`` the connections after hello,
    ``pings`` whether pings were requested; ``names`` the users' names."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []
        self.confirmed: list[str] = []
        self.opened: list[ServerConnection] = []
        self.files: dict[str, bytes] = {}
        self.names: dict[str, str] = {}
        self.says_hello = True
        self.waiting: dict[str, dict[str, Any]] = {}
        """Unconfirmed envelopes, which every new connection receives again."""
        self._tickets: set[str] = set()
        self._times = count(1)
        self._numbers = count(1)

    def say(self, channel: str, user: str, text: str, **more: Any) -> str:
        """Post a message and return its time, which identifies it in the channel. ``more`` are fields of the event. A
        message in a channel (C…) that mentions the app is sent as two events, as in Slack."""
        with self.changed:
            ts = f"1763824000.{next(self._times):06}"
            kind = {"D": "im", "G": "mpim"}.get(channel[:1], "channel")
            event = {
                "type": "message",
                "channel": channel,
                "user": user,
                "text": text,
                "ts": ts,
                "channel_type": kind,
            }
            event |= {"team": TEAM, "event_ts": ts, **more}
            if f"<@{BOT}>" in text and kind != "im":
                mention = {key: value for key, value in event.items() if key != "channel_type"}
                self.tell(mention | {"type": "app_mention"})
            self.tell(event)
            return ts

    def tell(self, event: Any) -> str:
        """Send an event in an envelope to one of the connections; return the envelope's id."""
        with self.changed:
            envelope = f"envelope-{next(self._numbers)}"
            payload = {
                "type": "event_callback",
                "team_id": TEAM,
                "event_id": f"Ev{envelope}",
                "event": event,
            }
            frame = {
                "type": "events_api",
                "envelope_id": envelope,
                "payload": payload,
                "retry_attempt": 0,
            }
            self.waiting[envelope] = frame
            if self.opened:
                self._send(self.opened[-1], frame)
            return envelope

    def push(self, frame: Any) -> None:
        """Send a frame to every connection: an object as JSON, text and bytes unchanged."""
        with self.changed:
            for connection in self.opened:
                self._send(connection, frame)

    def disconnect(self, reason: str) -> None:
        """Announce to every connection that it will be closed."""
        self.push({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}})

    def freeze(self) -> None:
        """Ignore the open connections, even their pings: they are dead but appear open."""
        with self.changed:
            for connection in self.connections:
                connection.protocol.receive_data = lambda data: None  # type: ignore[method-assign]
            self.opened.clear()

    def converse(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        ticket = connection.request.path.partition("ticket=")[2]
        with suppress(ConnectionClosed), self.changed:
            assert ticket in self._tickets, "each address is valid for one connection"
            self._tickets.discard(ticket)
            if self.says_hello:
                self._send(connection, {"type": "hello", "num_connections": len(self.connections)})
                self.note(self.opened, connection)
            for frame in list(self.waiting.values()):
                self._send(connection, frame | {"retry_attempt": 1, "retry_reason": "timeout"})
        with suppress(ConnectionClosed):
            try:
                for raw in connection:
                    self._confirm(json.loads(raw)["envelope_id"])
            finally:
                with self.changed:
                    if connection in self.opened:
                        self.opened.remove(connection)

    def _confirm(self, envelope: str) -> None:
        with self.changed:
            self.waiting.pop(envelope, None)
            self.note(self.confirmed, envelope)

    @staticmethod
    def _send(connection: ServerConnection, frame: Any) -> None:
        with suppress(ConnectionClosed):
            connection.send(json.dumps(frame) if isinstance(frame, dict) else frame)

    def answer(self, request: Request) -> Response:
        is_app = request.path == "/apps.connections.open"
        if request.headers.get("authorization") != f"Bearer {APP_TOKEN if is_app else TOKEN}":
            return Response(200, {"ok": False, "error": "invalid_auth"})
        if name := request.path.removeprefix("/files/") * request.path.startswith("/files/"):
            if name in self.files:
                return Response(200, self.files[name])
            return Response(302, b"", {"location": "https://slack.com/signin"})
        if is_app:
            ticket = f"t{next(self._numbers)}"
            self._tickets.add(ticket)
            return Response(200, {"ok": True, "url": f"{self.socket_url}/link/?ticket={ticket}"})
        return Response(200, self._method(request.path.removeprefix("/"), request))

    def _method(self, method: str, request: Request) -> Mapping[str, Any]:
        if method == "auth.test":
            return {"ok": True, "user_id": BOT, "bot_id": "B1", "team_id": TEAM}
        if method == "users.info":
            user = request.query["user"]
            if user not in self.names:
                return {"ok": False, "error": "user_not_found"}
            return {
                "ok": True,
                "user": {
                    "id": user,
                    "real_name": self.names[user],
                    "profile": {"display_name": ""},
                },
            }
        if method == "chat.postMessage":
            if not request.body.get("text"):
                return {"ok": False, "error": "no_text"}
            ts = f"1763825000.{next(self._times):06}"
            self.note(self.sent, {**request.body, "ts": ts, "user": BOT, "bot_id": "B1"})
            return {"ok": True, "channel": request.body["channel"], "ts": ts}
        if method in ("conversations.history", "conversations.replies"):
            messages = [item for item in self.sent if item["channel"] == request.query["channel"]]
            thread = request.query.get("ts")
            messages = [item for item in messages if item.get("thread_ts") == thread]
            return {
                "ok": True,
                "messages": messages if thread else messages[::-1],
                "has_more": False,
            }
        return {"ok": False, "error": "unknown_method"}
