"""Slack: Socket Mode and its Web API."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nacre.base.frozen import frozen
from nacre.errors import (
    ChannelRefusedError,
    ChannelUnavailableError,
    InvalidSettingsError,
    NacreError,
)
from nacre.values.gateway import Attachment, Chat, ChatType, Incoming, Limits, Outgoing, Sender
from nacre_gateway.channels import (
    Breaks,
    ChannelKind,
    ChannelSetup,
    Fields,
    Inbox,
    Option,
    SkippedItems,
    Socket,
    SocketClosedError,
    WebApi,
    attachment,
    identifier,
    mapping,
    mappings,
    open_socket,
    text,
)

_MAX_LEAVING = 2
"""Maximum number of old connections that stay open until Slack closes them. Slack allows ten."""


@frozen
class Timing:
    """Times in seconds.

    ``hello``: maximum wait for Slack's greeting. ``ping``: time between pings, and maximum wait for
    an answer. ``pause``: pause after each broken connection. ``steady``: minimum duration of a
    stable connection.
    """

    hello: float = 20.0
    ping: float = 15.0
    pause: float = 1.0
    steady: float = 60.0


async def _end(task: asyncio.Task[bool]) -> None:
    """End a connection and ignore its errors, because it was replaced or is not needed."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# ----------------------------------------------------------------------------
# Slack's markup, mrkdwn.


_MARKED = re.compile(r"<([^<>\n]*)>")
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
_FENCE = re.compile(r"^```[\w+#.-]*\n")
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_LINK = re.compile(r"\[([^\]\n]+)\]\((https?://[^\s()]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.M)


def from_mrkdwn(words: str, bot: str) -> str:
    """Return a text as people see it. Remove a mention of the bot at its start."""
    words = re.sub(rf"^\s*<@{re.escape(bot)}(\|[^<>]*)?>\s*", "", words) if bot else words
    words = _MARKED.sub(lambda match: _readable_mark(match[1]), words)
    return words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _readable_mark(marked: str) -> str:
    target, _, label = marked.partition("|")
    if target.startswith(("@", "#")):
        return f"{target[0]}{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:]}"
    address = target.removeprefix("mailto:").removeprefix("tel:")
    return address if not label or label in address else f"{label} ({address})"


def to_mrkdwn(words: str) -> str:
    """Convert Markdown to mrkdwn without mentions and hidden addresses.

    ``&``, ``<`` and ``>`` are escaped, and links show their address.
    """
    parts = _CODE.split(words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    return "".join(
        _FENCE.sub("```\n", part) if number % 2 else _mrkdwn(part)
        for number, part in enumerate(parts)
    )


def _mrkdwn(words: str) -> str:
    words = _LINK.sub(
        lambda match: f"{match[1]} ({match[2]})" if match[1] != match[2] else match[2], words
    )
    words = _HEADING.sub(lambda match: f"*{match[1].replace('*', '').strip()}*", words)
    return _BOLD.sub(r"*\1*", words)


# ----------------------------------------------------------------------------
# Convert events to messages.


MAX_CHARACTERS = 40_000
"""Slack's maximum length of a message, in characters."""
_MAX_FILES = 10
_WRITTEN_SUBTYPES = ("", "file_share", "thread_broadcast", "me_message")
"""Subtypes of messages that people write."""


def incoming(channel: str, payload: Fields, bot: str) -> Incoming | None:
    """Convert a Slack event. Return ``None`` unless it contains text or files from a person.

    Slack reports a mention as two events with the same message id. An edit gets a separate id.
    Raises ValueError for a malformed event.
    """
    event = mapping(payload, "event")
    if event.get("type") not in ("message", "app_mention"):
        return None
    subtype, message = text(event, "subtype"), event
    if subtype == "message_changed":
        message = mapping(event, "message")
        if not (
            # Slack also reports link previews as changes.
            bool(mapping(message, "edited"))
            and message.get("text") != mapping(event, "previous_message").get("text")
        ):
            return None
        subtype = text(message, "subtype")
    if (
        subtype not in _WRITTEN_SUBTYPES
        or message.get("bot_id")
        or message.get("user") in (None, bot)
    ):
        return None
    team = text(payload, "team_id")
    raw = text(message, "text", MAX_CHARACTERS)
    files = tuple(
        attachment(file, "name", "mimetype", "url_private_download", "url_private")
        for file in mappings(message, "files", _MAX_FILES)
    )
    words = from_mrkdwn(raw, bot)
    if not (words or files):
        return None
    place, ts = identifier(event, "channel"), identifier(message, "ts")
    is_direct = event.get("channel_type") == "im" or (
        "channel_type" not in event and place.startswith("D")
    )
    thread = identifier(message, "thread_ts") if message.get("thread_ts") else ""
    edited = "" if message is event else identifier(mapping(message, "edited"), "ts")
    user = identifier(message, "user")
    # An id is unique only in a workspace, so a guest's id includes their workspace.
    home = text(message, "user_team") or text(message, "team")
    return Incoming(
        id=f"{place}:{ts}:{edited}" if edited else f"{place}:{ts}",
        chat=Chat(
            channel,
            place,
            ChatType.DIRECT if is_direct else ChatType.GROUP,
            team,
            "" if thread == ts else thread,
        ),
        sender=Sender(
            user if not home or home == team else f"{identifier({'team': home}, 'team')}.{user}"
        ),
        text=words,
        sent=_parse_time(edited or ts),
        attachments=files,
        edits=f"{place}:{ts}" if edited else "",
        to_agent=is_direct
        or f"<@{bot}" in raw
        or (bool(bot) and message.get("parent_user_id") == bot),
    )


def time_of(message: str) -> str:
    """Return Slack's identifier of a message, which is its time in the channel."""
    return message.split(":")[1]


def _parse_time(ts: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(ts), UTC)
    except (ValueError, OverflowError, OSError):
        return None


# ----------------------------------------------------------------------------
# The channel, which receives through Socket Mode, and sends and fetches over HTTP


ADDRESS = "https://slack.com/api"
_EVENT = "nacre_answer"
"""Name of the metadata in nacre's messages."""
_LOOK_BACK = 3_600
_MAX_NAMES = 1_000
_NAME_SECONDS = 2.0
"""Time limit for looking up a name, in seconds. Slack waits three seconds for a confirmation."""
_DEFAULT_WAIT = 30.0

_TEMPORARY_ERRORS = frozenset(
    "ratelimited rate_limited internal_error fatal_error service_unavailable request_timeout team_added_to_org".split()
)
"""Errors that are temporary."""
_TOKEN_ERRORS = frozenset(
    "invalid_auth not_authed account_inactive token_revoked token_expired not_allowed_token_type".split()
)
_HINTS = {
    "missing_scope": "add the scope on the app's page OAuth & Permissions, and install the app again",
    "channel_not_found": "invite the app to the channel: /invite @its name",
    "not_in_channel": "invite the app to the channel: /invite @its name",
    "is_archived": "the channel is archived",
}


class Slack:
    """The owner's app in one workspace."""

    limits = Limits(characters=4_000, seconds_between=1.0)

    def __init__(self, setup: ChannelSetup, timing: Timing | None = None) -> None:
        """Raises InvalidSettingsError."""
        self._channel = setup.name
        self._skipped = SkippedItems(setup.log)
        self._timing = timing or Timing()
        self._bot = ""
        self._names: dict[str, str] = {}
        self._headers = {
            name: _authorization(name, setup.secrets[name]) for name in ("token", "app_token")
        }
        self._api = WebApi("Slack", str(setup.options["base_url"]), {"user-agent": "nacre"})

    async def run(self, inbox: Inbox) -> None:
        """Receive messages until cancelled.

        Before Slack closes a connection, a second connection is opened. See
        :class:`~nacre_gateway.channels.Channel`.
        """
        self._bot = text(await self._call("auth.test"), "user_id")
        breaks = Breaks("Slack", self._timing.pause, self._timing.steady)
        old: list[asyncio.Task[bool]] = []
        try:
            while True:
                leaving = asyncio.Event()
                began = asyncio.get_running_loop().time()
                old.append(asyncio.create_task(self._listen(inbox, leaving)))
                waiting = asyncio.create_task(leaving.wait())
                try:
                    await asyncio.wait({old[-1], waiting}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waiting.cancel()
                was_useful = old[-1].done() and old.pop().result()
                await breaks.ended(asyncio.get_running_loop().time() - began, was_useful=was_useful)
                while len(old) > _MAX_LEAVING:
                    await _end(old.pop(0))
        finally:
            for task in old:
                await _end(task)

    async def _listen(self, inbox: Inbox, leaving: asyncio.Event) -> bool:
        """Handle the messages of a connection until it ends. Return True if there were any.

        ``leaving`` is set when the next connection is needed.
        """
        socket = await open_socket("Slack", await self._address(), self._timing.ping)
        is_ready = was_useful = False
        try:
            while True:
                frame = await self._frame(socket, None if is_ready else self._timing.hello)
                is_ready = True
                if frame.get("type") == "disconnect":
                    reason = text(frame, "reason")
                    if reason == "link_disabled":
                        raise ChannelRefusedError(
                            "Socket Mode is turned off",
                            hint="turn it on on the app's Socket Mode page",
                        )
                    if reason == "too_many_websockets":
                        raise ChannelUnavailableError(
                            "this Slack app has too many connections",
                            hint="close some; ten are allowed",
                        )
                    leaving.set()
                elif envelope := text(frame, "envelope_id"):
                    payload = mapping(frame, "payload")
                    message = self._skipped.parsed(
                        "an event from Slack", incoming, self._channel, payload, self._bot
                    )
                    if message is not None:
                        name = await self._name(message.sender.id)
                        sender = replace(message.sender, name=name)
                        await inbox.receive([replace(message, sender=sender)])
                    await socket.send({"envelope_id": envelope})
                    was_useful = True
        except SocketClosedError:
            if not is_ready:
                raise
            return was_useful
        finally:
            await socket.close()

    async def _frame(self, socket: Socket, seconds: float | None) -> Fields:
        try:
            return await asyncio.wait_for(socket.receive(), seconds)
        except ValueError:
            self._skipped.note("a frame from Slack")
            return {}
        except TimeoutError:
            raise ChannelUnavailableError("Slack sent no greeting") from None

    async def send(self, outgoing: Outgoing) -> str:
        """Send one part. Sending is not idempotent in Slack, so search first for a part that might have been sent."""
        thread = {"thread_ts": outgoing.chat.thread} if outgoing.chat.thread else {}
        ts = await self._sent_before(outgoing) if outgoing.attempt > 1 else ""
        if not ts:
            body = {
                "channel": outgoing.chat.id,
                "text": to_mrkdwn(outgoing.text),
                "unfurl_links": False,
                "unfurl_media": False,
                "metadata": {"event_type": _EVENT, "event_payload": {"key": outgoing.key}},
                **thread,
            }
            ts = text(await self._call("chat.postMessage", json=body), "ts")
        return f"{outgoing.chat.id}:{ts}"

    async def show_typing(self, chat: Chat) -> None:
        """Do nothing. Slack has no typing indicator for apps in channels."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Download a message's file. The token is sent only to Slack."""
        self._api.require_own(attachment.source, "Slack", "slack.com")
        await self._api.download(attachment.source, target, most_bytes, self._headers["token"])

    async def close(self) -> None:
        await self._api.close()

    async def _address(self) -> str:
        return text(await self._call("apps.connections.open", is_app=True), "url", 2_000)

    async def _sent_before(self, outgoing: Outgoing) -> str:
        """Return the Slack time of a recent message with the part's key, or "" if there is none."""
        method = "conversations.replies" if outgoing.chat.thread else "conversations.history"
        params = {
            "channel": outgoing.chat.id,
            "include_all_metadata": "true",
            "limit": "100",
            "oldest": f"{time.time() - _LOOK_BACK:.6f}",
        }
        if outgoing.chat.thread:
            params["ts"] = outgoing.chat.thread
        try:
            history = await self._call(method, "GET", params=params)
        except ChannelRefusedError:
            return ""
        for message in mappings(history, "messages", 200):
            metadata = mapping(message, "metadata")
            key = mapping(metadata, "event_payload").get("key")
            if metadata.get("event_type") == _EVENT and key == outgoing.key:
                return text(message, "ts")
        return ""

    async def _call(
        self, method: str, verb: str = "POST", *, is_app: bool = False, **more: Any
    ) -> Fields:
        reply = await self._api.ask(
            verb, f"/{method}", headers=self._headers["app_token" if is_app else "token"], **more
        )
        error = text(reply.body, "error")
        if reply.status == 429 or error in ("ratelimited", "rate_limited"):
            wait = _DEFAULT_WAIT if reply.retry_after is None else reply.retry_after
            raise ChannelUnavailableError("Slack limits the rate of requests", retry_after=wait)
        if (
            error in _TEMPORARY_ERRORS
            or reply.status >= 500
            or (reply.status < 300 and "ok" not in reply.body)
        ):
            raise ChannelUnavailableError(
                f"Slack cannot answer {method} now ({error or f'status {reply.status}'})"
            )
        if reply.body.get("ok") is True:
            return reply.body
        raise ChannelRefusedError(
            f"Slack refused {method}: {error or f'status {reply.status}'}",
            hint=_hint(error, reply.body, is_app=is_app),
        )

    async def _name(self, user: str) -> str:
        if user not in self._names:
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            try:
                request = self._call("users.info", "GET", params={"user": user.rpartition(".")[2]})
                profile = mapping(await asyncio.wait_for(request, _NAME_SECONDS), "user")
                self._names[user] = text(mapping(profile, "profile"), "display_name") or text(
                    profile, "real_name"
                )
            except ChannelRefusedError:
                self._names[user] = ""
            except (NacreError, TimeoutError):
                return ""
        return self._names[user]


def _authorization(name: str, token: str) -> dict[str, str]:
    if not (token.isascii() and token.isprintable()):
        raise InvalidSettingsError(f"the {name} of the Slack app has invalid characters")
    return {"authorization": f"Bearer {token}"}


def _hint(error: str, body: Fields, *, is_app: bool) -> str | None:
    if error in _TOKEN_ERRORS:
        return f"copy {'the app-level token (xapp-…)' if is_app else 'the bot token (xoxb-…)'} again from the app's page"  # noqa: E501
    hint, needed = _HINTS.get(error), text(body, "needed")
    return f"{hint}: {needed}" if error == "missing_scope" and needed else hint


KIND = ChannelKind(
    "slack",
    "Slack",
    Slack,
    options=(
        Option(
            "token", "bot token, xoxb-…: env:NAME or file:PATH", is_secret=True, is_required=True
        ),
        Option("app_token", "app token for Socket Mode, xapp-…", is_secret=True, is_required=True),
        Option("base_url", "address of Slack's Web API", default=ADDRESS),
    ),
    libraries=("websockets",),
    extra="web",
    identity="a member's id: U024BE7LH",
)
