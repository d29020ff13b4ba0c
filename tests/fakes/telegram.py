"""Telegram's Bot API on loopback, as https://core.telegram.org/bots/api has it: long polling, offsets, refusals. ::

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
    """One bot, ``@nacre_bot``. Chats of people have their number, groups a negative one.

    ``sent`` are the parameters of each message that the bot sent, ``typing`` of each action. ``blocked`` are chats that
    refuse it. ``has_webhook`` and ``is_reversed`` are what a test may set: updates of a batch come last first.
    """

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__()
        self.token = token
        self.bot = {"id": 5000, "is_bot": True, "first_name": "Nacre", "username": "nacre_bot"}
        self.sent: list[Mapping[str, Any]] = []
        self.typing: list[Mapping[str, Any]] = []
        self.blocked: set[int] = set()
        self.moved: dict[int, int] = {}
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
        """Somebody writes; ``fields`` are added to the message (``caption``, ``photo``, ``reply_to_message``, …).

        The number of the message.
        """
        with self.changed:
            message = self._message(chat, user, text, fields)
            self._update("message", message)
            return int(message["message_id"])

    def edit(self, chat: int, user: int, message: int, text: str) -> None:
        """Somebody changes a message."""
        with self.changed:
            changed = self._message(
                chat, user, text, {"message_id": message, "edit_date": 1_790_000_100}
            )
            self._update("edited_message", changed)

    def push(self, update: Any) -> None:
        """Deliver anything as an update; an object without a number gets one."""
        with self.changed:
            if isinstance(update, dict) and "update_id" not in update:
                self._next_update += 1
                update = {"update_id": self._next_update, **update}
            self._updates.append(update)
            self._all.append(update)
            self.changed.notify_all()

    def redeliver(self) -> None:
        """Deliver everything again, with the same numbers."""
        with self.changed:
            self._updates = list(self._all)
            self.changed.notify_all()

    def move(self, chat: int, target: int, user: int = 5054) -> None:
        """A group becomes a supergroup: both tell, and the old one refuses messages."""
        self.moved[chat] = target
        self.say(chat, user, migrate_to_chat_id=target)
        self.say(target, user, migrate_from_chat_id=chat)

    def file(self, data: bytes, **fields: Any) -> dict[str, Any]:
        """A file that lies at Telegram, as messages name it."""
        with self.changed:
            name = f"file-{len(self.files)}"
            self.files[name] = data
            return {"file_id": name, "file_size": len(data), **fields}

    @property
    def unconfirmed(self) -> int:
        """Updates that Telegram still keeps."""
        return len(self._updates)

    def answer(self, request: Request) -> Response:
        """What the Bot API says."""
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

    def _get_updates(self, asked: Mapping[str, Any]) -> Response:
        """What was not confirmed, as soon as there is something. A later poll ends this one."""
        if self.has_webhook:
            said = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it first"
            return _refusal(409, said)
        self.polls += 1
        own = self.polls
        self._updates = [one for one in self._updates if _number(one) >= asked.get("offset", 0)]
        self.changed.notify_all()
        self.changed.wait_for(
            lambda: self._updates or own != self.polls or self._is_closing, asked.get("timeout", 0)
        )
        if own != self.polls:
            said = "terminated by other getUpdates request; make sure that only one bot instance is running"
            return _refusal(409, f"Conflict: {said}")
        batch = self._updates[: min(asked.get("limit", _MOST_UPDATES), _MOST_UPDATES)]
        return _result(batch[::-1] if self.is_reversed else batch)

    def _send_message(self, asked: Mapping[str, Any]) -> Response:
        chat = asked["chat_id"]
        if chat in self.blocked:
            return _refusal(403, "Forbidden: bot was blocked by the user")
        if chat in self.moved:
            said = "Bad Request: group chat was upgraded to a supergroup chat"
            return _refusal(400, said, migrate_to_chat_id=self.moved[chat])
        text = asked["text"]
        if not text.strip():
            return _refusal(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > _MOST_CHARACTERS:
            return _refusal(400, "Bad Request: message is too long")
        self.note(self.sent, asked)
        self._next_message += 1
        return _result(
            {"message_id": self._next_message, "chat": _chat(chat), "from": self.bot, "text": text}
        )

    def _send_chat_action(self, asked: Mapping[str, Any]) -> Response:
        self.note(self.typing, asked)
        return _result(True)

    def _get_file(self, asked: Mapping[str, Any]) -> Response:
        name = asked["file_id"]
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
    """Commands and mentions in a text, as Telegram marks them: in UTF-16 units."""
    return [
        {"type": kind, "offset": _units(text[: found.start()]), "length": _units(found[0])}
        for kind, pattern in _MARKS.items()
        for found in pattern.finditer(text)
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


def _refusal(status: int, said: str, **parameters: int) -> Response:
    more = {"parameters": parameters} if parameters else {}
    return Response(status, {"ok": False, "error_code": status, "description": said, **more})
