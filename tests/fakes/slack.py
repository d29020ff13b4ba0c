"""Slack on loopback: Socket Mode and the Web API, as their public documentation describes them. ::

with FakeSlack() as server:
    channel = Slack(setup(server))              # its base_url is server.url
    server.say("D1", "U1", "hello")             # channel, user, text
    server.wait_for(lambda: server.sent)        # what the app wrote
    server.drop()                               # cut the connections; what was not confirmed comes again
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
    """``sent`` holds the messages that the app wrote; ``confirmed`` the envelopes that it confirmed; ``opened`` the
    connections that said hello, ``pings`` whether it was asked. ``names`` are users' names."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []
        self.confirmed: list[str] = []
        self.opened: list[ServerConnection] = []
        self.files: dict[str, bytes] = {}
        self.names: dict[str, str] = {}
        self.says_hello = True
        self.farewell = ""
        """A reason with which each new connection is told at once that it will be closed."""
        self.waiting: dict[str, dict[str, Any]] = {}
        """Envelopes that were not confirmed: every new connection hears them again."""
        self._tickets: set[str] = set()
        self._times = count(1)
        self._numbers = count(1)

    def say(self, channel: str, user: str, text: str, **more: Any) -> str:
        """Somebody writes a message; its time, which is its name in the channel. ``more`` are fields of the event. In
        a channel (C…) that mentions the app, the message comes as two events, as Slack does it."""
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

    def edit(self, channel: str, ts: str, user: str, text: str, before: str = "") -> None:
        """Somebody changes a message."""
        edited = {"user": user, "ts": f"1763824999.{next(self._times):06}"}
        message = {
            "type": "message",
            "user": user,
            "text": text,
            "ts": ts,
            "team": TEAM,
            "edited": edited,
        }
        previous = {"type": "message", "user": user, "text": before, "ts": ts}
        self.tell(
            {
                "type": "message",
                "subtype": "message_changed",
                "channel": channel,
                "channel_type": "im",
                "hidden": True,
                "ts": edited["ts"],
                "message": message,
                "previous_message": previous,
            }
        )

    def tell(self, event: Any) -> str:
        """Send an event in an envelope to one of the connections; the envelope's id."""
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
        """Send a frame to every connection: an object as JSON, text and bytes as they are."""
        with self.changed:
            for connection in self.opened:
                self._send(connection, frame)

    def disconnect(self, reason: str) -> None:
        """Tell every connection that it will be closed."""
        self.push({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}})

    def freeze(self) -> None:
        """Take nothing more from the connections that are open, not even pings: they are dead, and look alive."""
        with self.changed:
            for connection in self.connections:
                connection.protocol.receive_data = lambda data: None  # type: ignore[method-assign]
            self.opened.clear()

    def converse(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        ticket = connection.request.path.partition("ticket=")[2]
        with suppress(ConnectionClosed), self.changed:
            assert ticket in self._tickets, "each address is for one connection"
            self._tickets.discard(ticket)
            if self.says_hello:
                self._send(connection, {"type": "hello", "num_connections": len(self.connections)})
                self.note(self.opened, connection)
            if self.farewell:
                self._send(connection, {"type": "disconnect", "reason": self.farewell})
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
            found = [one for one in self.sent if one["channel"] == request.query["channel"]]
            thread = request.query.get("ts")
            found = [one for one in found if one.get("thread_ts") == thread]
            return {"ok": True, "messages": found if thread else found[::-1], "has_more": False}
        return {"ok": False, "error": "unknown_method"}
