"""The channel: receives through Socket Mode, sends and fetches over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nacre.errors import ChannelRefused, ChannelUnavailable, NacreError, SettingsInvalid
from nacre.gateway.channels.channel import ChannelKind, ChannelSetup, Inbox, Option
from nacre.gateway.channels.slack.connections import Connections, Timing
from nacre.gateway.channels.slack.messages import incoming
from nacre.gateway.channels.slack.mrkdwn import written
from nacre.gateway.channels.untrusted import LeftOut, mapping, mappings, text
from nacre.gateway.channels.web_api import WebApi, split_address
from nacre.values.gateway.message import Attachment, Chat, Incoming, Limits, Outgoing

ADDRESS = "https://slack.com/api"
_EVENT = "nacre_answer"
"""The name of the metadata of what nacre writes."""
_LOOK_BACK = 3_600
_MOST_NAMES = 1_000
_NAME_SECONDS = 2.0
"""The longest wait for a name: Slack wants each envelope confirmed within three seconds."""
_DEFAULT_WAIT = 30.0

_LATER = frozenset(
    "ratelimited rate_limited internal_error fatal_error service_unavailable request_timeout team_added_to_org".split()
)
"""Errors that pass."""
_SIGN_IN = frozenset(
    "invalid_auth not_authed account_inactive token_revoked token_expired not_allowed_token_type".split()
)
_HINTS = {
    "missing_scope": "add the scope on the app's page OAuth & Permissions, and install the app again",
    "channel_not_found": "invite the app to the channel: /invite @its name",
    "not_in_channel": "invite the app to the channel: /invite @its name",
    "is_archived": "the channel is archived",
}


class Slack:
    """An app of the owner's, in one workspace."""

    limits = Limits(characters=4_000, seconds_between=1.0)

    def __init__(self, setup: ChannelSetup, timing: Timing | None = None) -> None:
        """Raises SettingsInvalid."""
        self._channel = setup.name
        self._left_out = LeftOut(setup.tell)
        self._timing = timing or Timing()
        self._bot = ""
        self._names: dict[str, str] = {}
        self._headers = {name: _sign_in(name, setup.secrets[name]) for name in ("token", "app_token")}
        self._api = WebApi("Slack", str(setup.options["base_url"]), {"user-agent": "nacre"})

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled; see :class:`~nacre.gateway.channels.channel.Channel`."""
        self._bot = text(await self._call("auth.test"), "user_id")

        async def take(envelope: Mapping[str, Any]) -> None:
            message = self._converted(mapping(envelope, "payload"))
            if message is not None:
                name = await self._name(message.sender.id)
                await inbox.receive([replace(message, sender=replace(message.sender, name=name))])

        await Connections(self._address, take, self._left_out, self._timing).hold()

    async def send(self, outgoing: Outgoing) -> str:
        """Send one part. Slack knows no idempotent sends; a part that may have been sent is looked for first."""
        thread = {"thread_ts": outgoing.chat.thread} if outgoing.chat.thread else {}
        ts = await self._sent_before(outgoing) if outgoing.attempt > 1 else ""
        if not ts:
            body = {
                "channel": outgoing.chat.id,
                "text": written(outgoing.text),
                "unfurl_links": False,
                "unfurl_media": False,
                "metadata": {"event_type": _EVENT, "event_payload": {"key": outgoing.key}},
                **thread,
            }
            ts = text(await self._call("chat.postMessage", json=body), "ts")
        return f"{outgoing.chat.id}:{ts}"

    async def show_typing(self, chat: Chat) -> None:
        """Slack has no typing indicator for apps in channels."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Write a file that came with a message. The token goes to Slack alone."""
        found = split_address(attachment.source)
        is_slacks = found.scheme == "https" and f".{found.netloc}".endswith(".slack.com")
        if not is_slacks and found.netloc != self._api.place:
            raise ChannelRefused("the file does not lie with Slack")
        await self._api.download(attachment.source, target, most_bytes, self._headers["token"])

    async def close(self) -> None:
        """Let go of connections."""
        await self._api.close()

    async def _address(self) -> str:
        return text(await self._call("apps.connections.open", is_app=True), "url", 2_000)

    async def _sent_before(self, outgoing: Outgoing) -> str:
        """The time of the message that has the part's key, if it lies among the last."""
        method = "conversations.replies" if outgoing.chat.thread else "conversations.history"
        params = {
            "channel": outgoing.chat.id, "include_all_metadata": "true", "limit": "100",
            "oldest": f"{time.time() - _LOOK_BACK:.6f}",
        }  # fmt: skip
        if outgoing.chat.thread:
            params["ts"] = outgoing.chat.thread
        try:
            found = await self._call(method, "GET", params=params)
        except ChannelRefused:
            return ""
        for message in mappings(found, "messages", 200):
            metadata = mapping(message, "metadata")
            key = mapping(metadata, "event_payload").get("key")
            if metadata.get("event_type") == _EVENT and key == outgoing.key:
                return text(message, "ts")
        return ""

    async def _call(self, method: str, verb: str = "POST", *, is_app: bool = False, **more: Any) -> Mapping[str, Any]:
        """What a method answers. Raises ChannelUnavailable, ChannelRefused."""
        reply = await self._api.ask(
            verb, f"/{method}", headers=self._headers["app_token" if is_app else "token"], **more
        )
        error = text(reply.body, "error")
        if reply.status == 429 or error in ("ratelimited", "rate_limited"):
            wait = _DEFAULT_WAIT if reply.retry_after is None else reply.retry_after
            raise ChannelUnavailable("Slack wants to be asked less often", retry_after=wait)
        if error in _LATER or reply.status >= 500 or (reply.status < 300 and "ok" not in reply.body):
            raise ChannelUnavailable(f"Slack cannot answer {method} now ({error or f'status {reply.status}'})")
        if reply.body.get("ok") is True:
            return reply.body
        raise ChannelRefused(
            f"Slack says to {method}: {error or f'status {reply.status}'}", hint=_hint(error, reply.body, is_app=is_app)
        )

    async def _name(self, user: str) -> str:
        """What a user is called; empty where that is not to be had."""
        if user not in self._names:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            try:
                asked = self._call("users.info", "GET", params={"user": user.rpartition(".")[2]})
                found = mapping(await asyncio.wait_for(asked, _NAME_SECONDS), "user")
                self._names[user] = text(mapping(found, "profile"), "display_name") or text(found, "real_name")
            except ChannelRefused:
                self._names[user] = ""
            except (NacreError, TimeoutError):
                return ""
        return self._names[user]

    def _converted(self, payload: Mapping[str, Any]) -> Incoming | None:
        try:
            return incoming(self._channel, payload, self._bot)
        except ValueError:
            self._left_out.note("an event of Slack's")
            return None


def _sign_in(name: str, token: str) -> dict[str, str]:
    if not (token.isascii() and token.isprintable()):
        raise SettingsInvalid(f"the {name} of the Slack app holds characters that no token has")
    return {"authorization": f"Bearer {token}"}


def _hint(error: str, body: Mapping[str, Any], *, is_app: bool) -> str | None:
    if error in _SIGN_IN:
        return (
            f"copy {'the app-level token (xapp-…)' if is_app else 'the bot token (xoxb-…)'} again from the app's page"
        )
    hint, needed = _HINTS.get(error), text(body, "needed")
    return f"{hint}: {needed}" if error == "missing_scope" and needed else hint


KIND = ChannelKind(
    "slack",
    "Slack",
    Slack,
    options=(
        Option("token", "the bot's token, xoxb-…: env:NAME or file:PATH", is_secret=True, is_required=True),
        Option("app_token", "the app's token for Socket Mode, xapp-…", is_secret=True, is_required=True),
        Option("base_url", "where Slack's Web API is", default=ADDRESS),
    ),
    libraries=("websockets",),
    extra="web",
    identity="the id of a member: U024BE7LH",
)
