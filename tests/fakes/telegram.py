"""Telegram's Bot API on loopback, as in https://core.telegram.org/bots/api: long polling, offsets, refusals. ::

with FakeTelegram() as server:
    server.say(chat=5054, user=5054, text="hello")   # [gateway.channels.telegram] token, base_url = server.url
    server.wait_for(lambda: server.sent)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tests.fakes.platform import FakePlatform, Request, Response

TOKEN = "5000:letters-of-the-fake"
_MARKS = {
    "bot_command": re.compile(r"(?<!\S)/\w+(@\w+)?"),
    "mention": re.compile(r"(?<![\w/])@\w+"),
}
_MOST_UPDATES = 100
_MOST_CHARACTERS = 4_096
_SUPERGROUPS = -1_000_000_000_000


class FakeTelegram(FakePlatform):
    """One bot, ``@nacre_bot``. Private chats have the person's number, groups a negative one.

    ``sent`` are the parameters of the bot's messages, ``typing`` those of its actions. ``blocked`` are chats that
    refuse the bot. Tests may set ``has_webhook`` and ``is_reversed`` (updates of a batch arrive last first).
    """

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__()
        self.token = token
        self.bot = {"id": 5000, "is_bot": True, "first_name": "Nacre", "username": "nacre_bot"}
        self.sent: list[Mapping[str, Any]] = []
        self.typing: list[Mapping[str, Any]] = []
        self.blocked: set[int] = set()
        self.files: dict[str, bytes] = {}
        self.has_webhook = False
        self.is_reversed = False
        self.polls = 0
        self._updates: list[Any] = []
        self._all: list[Any] = []
        self._next_update = 700_000
        self._next_message = 0
        self._is_closing = False

    def say(self, chat: int, user: int, text: str = "", **fields: Any) -> int:
        """Post a message; ``fields`` are added to it (``caption``, ``photo``, ``reply_to_message``, …).

        Returns the number of the message.
        """
        with self.changed:
            message = self._message(chat, user, text, fields)
            self._update("message", message)
            return int(message["message_id"])

    def push(self, update: Any) -> None:
        """Deliver any object as an update; it gets a number if it has none."""
        with self.changed:
            if isinstance(update, dict) and "update_id" not in update:
                self._next_update += 1
                update = {"update_id": self._next_update, **update}
            self._updates.append(update)
            self._all.append(update)
            self.changed.notify_all()

    def redeliver(self) -> None:
        """Deliver all updates again, with the same numbers."""
        with self.changed:
            self._updates = list(self._all)
            self.changed.notify_all()

    def file(self, data: bytes, **fields: Any) -> dict[str, Any]:
        """Store a file on the server; returns its description in messages."""
        with self.changed:
            name = f"file-{len(self.files)}"
            self.files[name] = data
            return {"file_id": name, "file_size": len(data), **fields}

    @property
    def unconfirmed(self) -> int:
        """Return the unconfirmed updates."""
        return len(self._updates)

    def answer(self, request: Request) -> Response:
        """Answer a call of the Bot API."""
        place, _, method = request.path.rpartition("/")
        if request.path.startswith(f"/file/bot{self.token}/"):
            data = self.files.get(method)
            return Response(200, data) if data is not None else _refusal(404, "Not Found")
        if place != f"/bot{self.token}":
            return _refusal(401, "Unauthorized")
        answers = {
            "getMe": self._get_me,
            "getUpdates": self._get_updates,
            "sendMessage": self._send_message,
            "sendChatAction": self._send_chat_action,
            "getFile": self._get_file,
        }
        return answers[method](request.body) if method in answers else _refusal(404, "Not Found")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self.changed:
            self._is_closing = True
            self.changed.notify_all()
        super().__exit__(kind, error, trace)

    def _get_me(self, _: Mapping[str, Any]) -> Response:
        return _result({**self.bot, "can_read_all_group_messages": False})

    def _get_updates(self, parameters: Mapping[str, Any]) -> Response:
        """Return unconfirmed updates as soon as there are any. A later poll ends this one."""
        if self.has_webhook:
            conflict = (
                "Conflict: can't use getUpdates method while webhook is active;"
                " use deleteWebhook to delete it first"
            )
            return _refusal(409, conflict)
        self.polls += 1
        own = self.polls
        self._updates = [
            update for update in self._updates if _number(update) >= parameters.get("offset", 0)
        ]
        self.changed.notify_all()
        self.changed.wait_for(
            lambda: self._updates or own != self.polls or self._is_closing,
            parameters.get("timeout", 0),
        )
        if own != self.polls:
            conflict = "terminated by other getUpdates request; make sure that only one bot instance is running"
            return _refusal(409, f"Conflict: {conflict}")
        batch = self._updates[: min(parameters.get("limit", _MOST_UPDATES), _MOST_UPDATES)]
        return _result(batch[::-1] if self.is_reversed else batch)

    def _send_message(self, parameters: Mapping[str, Any]) -> Response:
        chat = parameters["chat_id"]
        if chat in self.blocked:
            return _refusal(403, "Forbidden: bot was blocked by the user")
        text = parameters["text"]
        if not text.strip():
            return _refusal(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > _MOST_CHARACTERS:
            return _refusal(400, "Bad Request: message is too long")
        self.note(self.sent, parameters)
        self._next_message += 1
        return _result(
            {"message_id": self._next_message, "chat": _chat(chat), "from": self.bot, "text": text}
        )

    def _send_chat_action(self, parameters: Mapping[str, Any]) -> Response:
        self.note(self.typing, parameters)
        return _result(True)

    def _get_file(self, parameters: Mapping[str, Any]) -> Response:
        name = parameters["file_id"]
        if name not in self.files:
            return _refusal(
                400, "Bad Request: wrong file_id or the file is temporarily unavailable"
            )
        return _result(
            {"file_id": name, "file_size": len(self.files[name]), "file_path": f"documents/{name}"}
        )

    def _message(
        self, chat: int, user: int, text: str, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        self._next_message += 1
        message: dict[str, Any] = {
            "message_id": self._next_message,
            "from": {"id": user, "is_bot": False, "first_name": f"User {user}"},
            "chat": _chat(chat),
            "date": 1_790_000_000,
        }
        if text:
            message |= {"text": text, "entities": marks(text)}
        if "caption" in fields:
            message["caption_entities"] = marks(fields["caption"])
        return {**message, **fields}

    def _update(self, kind: str, message: Mapping[str, Any]) -> None:
        self.push({kind: message})


def marks(text: str) -> list[dict[str, Any]]:
    """Return the commands and mentions in a text like Telegram, in UTF-16 units."""
    return [
        {"type": kind, "offset": _units(text[: match.start()]), "length": _units(match[0])}
        for kind, pattern in _MARKS.items()
        for match in pattern.finditer(text)
    ]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _number(update: Any) -> int:
    number = update.get("update_id") if isinstance(update, dict) else None
    return number if isinstance(number, int) else 2**31


def _chat(number: int) -> dict[str, Any]:
    if number > 0:
        return {"id": number, "type": "private", "first_name": f"User {number}"}
    return {
        "id": number,
        "type": "supergroup" if number < _SUPERGROUPS else "group",
        "title": "Kitchen",
    }


def _result(value: Any) -> Response:
    return Response(200, {"ok": True, "result": value})


def _refusal(status: int, description: str, **parameters: int) -> Response:
    more = {"parameters": parameters} if parameters else {}
    return Response(status, {"ok": False, "error_code": status, "description": description, **more})
