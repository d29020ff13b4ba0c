"""Discord on loopback: its gateway and its HTTP interface, according to their public documentation. ::

with FakeDiscord() as server:
    channel = Discord(setup(server))            # its base_url is server.url
    server.say("300", "5054", "hello")          # channel, user, text
    server.wait_for(lambda: server.sent)        # the bot's messages
    server.drop()                               # cut the connection; its session can be resumed
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection

from tests.fakes.platform import FakePlatform, Request, Response

BOT = "900"
TOKEN = "discord-bot-token"
INTENTS = 1 << 9 | 1 << 12 | 1 << 15


@dataclass
class Session:
    """One session of the gateway: its numbered events, and its current connection."""

    id: str
    events: list[tuple[int, str, Any]] = field(default_factory=list)
    connection: ServerConnection | None = None


class FakeDiscord(FakePlatform):
    """``sent`` are the bot's messages, ``typing`` the channels with its typing indicator, ``identified`` and
    ``resumed`` the new and resumed sessions, ``beats`` the numbers in its heartbeats."""

    def __init__(self, heartbeat_seconds: float = 60.0) -> None:
        super().__init__()
        self.heartbeat_seconds = heartbeat_seconds
        self.sent: list[dict[str, Any]] = []
        self.typing: list[str] = []
        self.identified: list[str] = []
        self.resumed: list[tuple[str, int]] = []
        self.beats: list[int | None] = []
        self.late_beats = 0
        self.files: dict[str, bytes] = {}
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.sessions: dict[str, Session] = {}
        self.starts_left = 1_000
        self.close_at_identify = 0
        """A close code that refuses every new session."""
        self.is_deaf = False
        """True to leave heartbeats unanswered."""
        self._ids = count(1_000_000_001)
        self._numbers = count(1)
        self._nonces: dict[str, dict[str, Any]] = {}

    def say(
        self,
        channel: str,
        user: str,
        text: str,
        *,
        guild: str = "",
        is_live: bool = True,
        **more: Any,
    ) -> str:
        """Post a message and return its id. ``more`` are further fields. The gateway dispatches it only if
        ``is_live``."""
        with self.changed:
            message = {
                "id": str(next(self._ids)),
                "channel_id": channel,
                "type": 0,
                "content": text,
                "author": {"id": user, "username": f"user{user}", "global_name": None},
                "mentions": [],
                "attachments": [],
                "timestamp": "2026-11-22T15:00:00.000000+00:00",
                "edited_timestamp": None,
                **more,
            }
            self.history.setdefault(channel, []).append(message)
            if is_live:
                self.dispatch(
                    "MESSAGE_CREATE", {**message, **({"guild_id": guild} if guild else {})}
                )
            return str(message["id"])

    def dispatch(self, name: str, data: Any) -> None:
        """Send an event to all sessions; disconnected ones receive it when resumed."""
        with self.changed:
            for session in self.sessions.values():
                session.events.append((next(self._numbers), name, data))
                if session.connection is not None:
                    self._send(session.connection, *session.events[-1])

    def repeat(self, numbers: Iterable[int] | None = None) -> None:
        """Repeat events to all connections in the order of ``numbers``, or all events."""
        with self.changed:
            for session in self.sessions.values():
                positions = range(len(session.events)) if numbers is None else numbers
                for number in positions:
                    if session.connection is not None:
                        self._send(session.connection, *session.events[number])

    def forget_sessions(self) -> None:
        """End all connections; no session can be resumed."""
        with self.changed:
            self.sessions.clear()
        self.drop()

    def forget_nonces(self) -> None:
        """Forget the nonces, as after some minutes: a message that is sent again becomes a new message."""
        with self.changed:
            self._nonces.clear()

    def push(self, frame: str | bytes | Mapping[str, Any]) -> None:
        """Send a frame to every connection: an object as JSON, text and bytes unchanged."""
        with self.changed:
            for connection in self.connections:
                with suppress(ConnectionClosed):  # a connection that was just replaced
                    connection.send(json.dumps(frame) if isinstance(frame, dict) else frame)

    def converse(self, connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            interval = int(self.heartbeat_seconds * 1000)
            connection.send(json.dumps({"op": 10, "d": {"heartbeat_interval": interval}}))
            last_beat = time.monotonic()
            try:
                for frame in connection:
                    last_beat = self._take(connection, json.loads(frame), last_beat)
            finally:
                self._leave(connection)

    def _take(
        self, connection: ServerConnection, frame: Mapping[str, Any], last_beat: float
    ) -> float:
        op, data = frame["op"], frame["d"]
        if op == 1:
            with self.changed:
                self.late_beats += time.monotonic() - last_beat > max(
                    self.heartbeat_seconds * 20, 2
                )
            self.note(self.beats, data)
            if not self.is_deaf:
                connection.send(json.dumps({"op": 11, "d": None}))
            return time.monotonic()
        if op == 2:
            self._identify(connection, data)
        elif op == 6:
            self._resume(connection, data)
        return last_beat

    def _identify(self, connection: ServerConnection, data: Mapping[str, Any]) -> None:
        code = self.close_at_identify or (
            4004 if data["token"] != TOKEN else 4014 if data["intents"] != INTENTS else 0
        )
        if code:
            connection.close(code)
            return
        with self.changed:
            session = Session(f"session-{len(self.identified) + 1}", connection=connection)
            self.sessions = {session.id: session}
            ready = {
                "v": 10,
                "user": {"id": BOT, "bot": True},
                "session_id": session.id,
                "resume_gateway_url": self.socket_url,
            }
            session.events.append((next(self._numbers), "READY", ready))
            self._send(connection, *session.events[-1])
            self.note(self.identified, session.id)

    def _resume(self, connection: ServerConnection, data: Mapping[str, Any]) -> None:
        with self.changed:
            session = self.sessions.get(data["session_id"])
            if session is None or data["token"] != TOKEN:
                connection.send(json.dumps({"op": 9, "d": False}))
                return
            self.note(self.resumed, (session.id, data["seq"]))
            for event in session.events:
                if event[0] > data["seq"]:
                    self._send(connection, *event)
            session.connection = connection
            session.events.append((next(self._numbers), "RESUMED", {}))
            self._send(connection, *session.events[-1])

    def _leave(self, connection: ServerConnection) -> None:
        with self.changed:
            for session in list(self.sessions.values()):
                if session.connection is connection:
                    session.connection = None
                    if connection.close_code in (1000, 1001):
                        del self.sessions[session.id]

    @staticmethod
    def _send(connection: ServerConnection, number: int, name: str, data: Any) -> None:
        with suppress(ConnectionClosed):
            connection.send(json.dumps({"op": 0, "s": number, "t": name, "d": data}))

    def answer(self, request: Request) -> Response:
        if name := request.path.removeprefix("/attachments/") * request.path.startswith(
            "/attachments/"
        ):
            return Response(200, self.files[name]) if name in self.files else Response(404, {})
        if request.headers.get("authorization") != f"Bot {TOKEN}":
            return Response(401, {"message": "401: Unauthorized", "code": 0})
        if request.path == "/gateway/bot":
            limit = {
                "total": 1_000,
                "remaining": self.starts_left,
                "reset_after": 3_600_000,
                "max_concurrency": 1,
            }
            return Response(
                200, {"url": self.socket_url, "shards": 1, "session_start_limit": limit}
            )
        _, _, channel, what = request.path.split("/")
        if what == "typing":
            self.note(self.typing, channel)
            return Response(204, b"")
        return (
            self._messages(channel, request)
            if request.method == "GET"
            else self._create(channel, request.body)
        )

    def _messages(self, channel: str, request: Request) -> Response:
        """Return the messages after an id, oldest ones first in line, sorted newest first."""
        after, limit = int(request.query["after"]), int(request.query["limit"])
        newer = [message for message in self.history.get(channel, []) if int(message["id"]) > after]
        return Response(200, newer[:limit][::-1])

    def _create(self, channel: str, body: Mapping[str, Any]) -> Response:
        if not 0 < len(body["content"]) <= 2_000:
            return Response(400, {"code": 50035, "message": "Invalid Form Body"})
        nonce = f"{channel}/{body.get('nonce')}"
        assert len(body["nonce"]) <= 25
        if body.get("enforce_nonce") and nonce in self._nonces:
            return Response(200, self._nonces[nonce])
        message = {
            "id": str(next(self._ids)),
            "channel_id": channel,
            "type": 0,
            "author": {"id": BOT, "bot": True},
            **body,
        }
        self._nonces[nonce] = message
        self.note(self.sent, message)
        self.history.setdefault(channel, []).append(message)
        self.dispatch("MESSAGE_CREATE", message)
        return Response(200, message)
