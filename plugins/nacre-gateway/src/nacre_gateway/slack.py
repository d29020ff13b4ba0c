"""Slack, through Socket Mode and its Web API."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from typing import Any

from nacre.base.plain import mapping, objects
from nacre.errors import (
    ChannelRefusedError,
    ChannelUnavailableError,
    InvalidSettingsError,
    NacreError,
)
from nacre.values.gateway import Chat, ChatType, Incoming, Limits, Outgoing, Sender
from nacre_gateway.channels import (
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
    moment,
    open_socket,
    text,
)

# ----------------------------------------------------------------------------
# Slack's markup, mrkdwn.


_MARKED = re.compile(r"<([^<>\n]*)>")
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
_FENCE = re.compile(r"^```[\w+#.-]*\n")
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_LINK = re.compile(r"\[([^\]\n]+)\]\((https?://[^\s()]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.M)


def from_mrkdwn(words: str, bot: str) -> str:
    """Convert mrkdwn to plain text, without a mention of the bot at the start."""
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
    """Convert Markdown to mrkdwn that notifies no one and shows the addresses of links."""
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
# Conversion of events to messages.


MAX_CHARACTERS = 40_000
"""Slack's maximum length of a message, in characters."""
_MAX_FILES = 10
_WRITTEN_SUBTYPES = ("", "file_share", "thread_broadcast", "me_message")
"""Subtypes of messages that people write."""


def incoming(channel: str, payload: Fields, bot: str) -> Incoming | None:
    """Convert a Slack event, or return ``None`` if it is not a message from a person.

    Slack reports a mention as two events with one message id. Raises ValueError for a malformed
    event.
    """
    message = mapping(payload, "event")
    if message.get("type") not in ("message", "app_mention"):
        return None
    if (
        text(message, "subtype") not in _WRITTEN_SUBTYPES
        or message.get("bot_id")
        or message.get("user") in (None, bot)
    ):
        return None
    team = text(payload, "team_id")
    raw = text(message, "text", MAX_CHARACTERS)
    files = tuple(
        attachment(file, "name", "mimetype") for file in objects(message, "files")[:_MAX_FILES]
    )
    words = from_mrkdwn(raw, bot)
    if not (words or files):
        return None
    place, ts = identifier(message, "channel"), identifier(message, "ts")
    is_direct = message.get("channel_type") == "im" or (
        "channel_type" not in message and place.startswith("D")
    )
    thread = identifier(message, "thread_ts") if message.get("thread_ts") else ""
    user = identifier(message, "user")
    # User ids are unique only in a workspace, so a guest's id includes the workspace.
    home = text(message, "user_team") or text(message, "team")
    return Incoming(
        id=f"{place}:{ts}",
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
        sent=moment(float(ts)) if ts.replace(".", "", 1).isdecimal() else None,
        attachments=files,
        to_agent=is_direct
        or f"<@{bot}" in raw
        or (bool(bot) and message.get("parent_user_id") == bot),
    )


# ----------------------------------------------------------------------------
# The channel.


ADDRESS = "https://slack.com/api"
_EVENT = "nacre_answer"
"""Name of the metadata in nacre's messages."""
_HELLO_SECONDS = 20.0
"""Maximum wait for Slack's greeting."""
_PING_SECONDS = 15.0
"""Time between pings, and maximum wait for the reply."""
_LOOK_BACK = 3_600
_NAME_SECONDS = 2.0
"""Time limit for looking up a name. Slack waits three seconds for a confirmation."""
_DEFAULT_WAIT = 30.0

_TEMPORARY_ERRORS = frozenset(
    "internal_error fatal_error service_unavailable request_timeout team_added_to_org".split()
)
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
    """The owner's app in a Slack workspace."""

    limits = Limits(characters=4_000, seconds_between=1.0)

    def __init__(self, setup: ChannelSetup) -> None:
        """Prepare the connection. Raises InvalidSettingsError for an invalid token or address."""
        self._channel = setup.name
        self._skipped = SkippedItems(setup.log)
        self._bot = ""
        self._names: dict[str, str] = {}
        self._headers = {}
        for name in ("token", "app_token"):
            token = setup.secrets[name]
            if not (token.isascii() and token.isprintable()):
                raise InvalidSettingsError(f"the {name} of the Slack app has invalid characters")
            self._headers[name] = {"authorization": f"Bearer {token}"}
        self._api = WebApi("Slack", str(setup.options["base_url"]), {"user-agent": "nacre"})

    async def run(self, inbox: Inbox) -> None:
        self._bot = text(await self._call("auth.test"), "user_id")
        address = text(await self._call("apps.connections.open", is_app=True), "url", 2_000)
        socket = await open_socket("Slack", address, _PING_SECONDS)
        is_ready = False
        try:
            while True:
                frame = await self._frame(socket, None if is_ready else _HELLO_SECONDS)
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
                            hint="close some of them; ten are allowed",
                        )
                    return  # Slack will close it, and sends unconfirmed events again
                if envelope := text(frame, "envelope_id"):
                    payload = mapping(frame, "payload")
                    message = self._skipped.parsed(
                        "an event from Slack", incoming, self._channel, payload, self._bot
                    )
                    if message is not None:
                        name = await self._name(message.sender.id)
                        sender = replace(message.sender, name=name)
                        await inbox.receive([replace(message, sender=sender)])
                    await socket.send({"envelope_id": envelope})
        except SocketClosedError:
            if not is_ready:
                raise
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
        """Send a message. A retry first searches for it, because Slack allows duplicates."""
        ts = await self._sent_before(outgoing) if outgoing.attempt > 1 else ""
        if not ts:
            body = {
                "channel": outgoing.chat.id,
                "text": to_mrkdwn(outgoing.text),
                "unfurl_links": False,
                "unfurl_media": False,
                "metadata": {"event_type": _EVENT, "event_payload": {"key": outgoing.key}},
                "thread_ts": outgoing.chat.thread or None,
            }
            ts = text(await self._call("chat.postMessage", body=body), "ts")
        return f"{outgoing.chat.id}:{ts}"

    async def show_typing(self, chat: Chat) -> None:
        """Do nothing, because Slack has no typing indicator for apps."""

    async def close(self) -> None:
        await self._api.close()

    async def _sent_before(self, outgoing: Outgoing) -> str:
        thread = outgoing.chat.thread
        params = {
            "channel": outgoing.chat.id,
            "include_all_metadata": "true",
            "limit": "100",
            "oldest": f"{time.time() - _LOOK_BACK:.6f}",
            **({"ts": thread} if thread else {}),
        }
        method = "conversations.replies" if thread else "conversations.history"
        try:
            history = await self._call(method, "GET", params=params)
        except ChannelRefusedError:
            return ""
        for message in objects(history, "messages"):
            metadata = mapping(message, "metadata")
            if (
                metadata.get("event_type") == _EVENT
                and mapping(metadata, "event_payload").get("key") == outgoing.key
            ):
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
            raise ChannelUnavailableError(
                "Slack limits the rate of requests", retry_after=reply.retry_after or _DEFAULT_WAIT
            )
        if reply.body.get("ok") is True:
            return reply.body
        problem = error or f"status {reply.status}"
        is_other = reply.status < 300 and "ok" not in reply.body
        if error in _TEMPORARY_ERRORS or reply.status >= 500 or is_other:
            raise ChannelUnavailableError(f"Slack cannot answer {method} now ({problem})")
        raise ChannelRefusedError(
            f"Slack refused {method}: {problem}", hint=_hint(error, reply.body, is_app=is_app)
        )

    async def _name(self, user: str) -> str:
        if user not in self._names:
            try:
                request = self._call("users.info", "GET", params={"user": user.rpartition(".")[2]})
                reply = await asyncio.wait_for(request, _NAME_SECONDS)
                self._names[user] = text(mapping(reply, "user", "profile"), "display_name") or text(
                    mapping(reply, "user"), "real_name"
                )
            except ChannelRefusedError:
                self._names[user] = ""
            except (NacreError, TimeoutError):
                return ""
        return self._names[user]


def _hint(error: str, body: Fields, *, is_app: bool) -> str | None:
    if error in _TOKEN_ERRORS:
        return f"copy {'the app-level token (xapp-…)' if is_app else 'the bot token (xoxb-…)'} again from the app's page"  # noqa: E501
    hint, needed = _HINTS.get(error), text(body, "needed")
    return f"{hint}: {needed}" if error == "missing_scope" and needed else hint


KIND = ChannelKind(
    "slack",
    Slack,
    options=(
        Option(
            "token", "bot token, xoxb-…: env:NAME or file:PATH", is_secret=True, is_required=True
        ),
        Option("app_token", "app token for Socket Mode, xapp-…", is_secret=True, is_required=True),
        Option("base_url", "address of Slack's Web API", default=ADDRESS),
    ),
)
