"""The channel: receives through the gateway, sends and fetches over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from nacre import __version__
from nacre.errors import ChannelRefused, ChannelUnavailable, NacreError, SettingsInvalid
from nacre.gateway.channels.channel import ChannelKind, ChannelSetup, Inbox, Option
from nacre.gateway.channels.discord.gateway import Gateway, Timing
from nacre.gateway.channels.discord.messages import incoming, plain_id
from nacre.gateway.channels.discord.records import Records
from nacre.gateway.channels.socket import Breaks
from nacre.gateway.channels.untrusted import LeftOut, mapping, number, text
from nacre.gateway.channels.web_api import Reply, WebApi, split_address
from nacre.values.gateway.message import Attachment, Chat, Incoming, Limits, Outgoing

ADDRESS = "https://discord.com/api/v10"
_FILES = ("cdn.discordapp.com", "media.discordapp.net")
_NO_EMBEDS = 1 << 2
"""A link in an answer is not looked up by Discord: its address may tell what only the conversation knows."""
_NONCE = 25
"""The longest nonce that Discord takes."""
_PAGE, _MOST_PAGES = 100, 50
_MOST_WAIT = 60.0
_MOST_OWN = 1_000
_DEFAULT_WAIT = 5.0


class Discord:
    """A bot of the owner's. Discord makes one of two messages with one nonce for a few minutes: ``is_idempotent`` holds
    so long. A part that is sent again later appears twice, unless the gateway told of the first meanwhile."""

    limits = Limits(characters=2_000, seconds_between=1.0, typing_seconds=10.0, is_idempotent=True)

    def __init__(self, setup: ChannelSetup, timing: Timing | None = None) -> None:
        """Raises SettingsInvalid."""
        self.name = setup.name
        self._token = setup.secrets["token"]
        self.tell = setup.tell
        self._timing = timing or Timing()
        agent = f"DiscordBot (nacre, {__version__})"
        headers = {"authorization": f"Bot {self._token}", "user-agent": agent}
        if not (self._token.isascii() and self._token.isprintable()):
            raise SettingsInvalid("the token of the Discord bot holds characters that no token has")
        self._api = WebApi("Discord", str(setup.options["base_url"]), headers)
        self.left_out = LeftOut(setup.tell)
        self._own: dict[str, str] = {}

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled; see :class:`~nacre.gateway.channels.channel.Channel`."""
        records = Records(inbox)
        intake = _Intake(self, records)
        gateway = Gateway(
            self._token, records, intake.take, intake.catch_up, self.tell, self.left_out, self._timing
        )  # fmt: skip
        breaks = Breaks("Discord", self._timing.pause, self._timing.steady)
        while True:
            began, kept = _now(), intake.kept
            try:
                await gateway.connect(await self._address(records))
            except ChannelUnavailable:
                if records.url and not gateway.is_ready:  # the session may be resumed, if not there
                    await records.begin(records.session, "", records.bot, records.seq)
                raise
            await breaks.ended(_now() - began, was_useful=intake.kept > kept)

    async def send(self, outgoing: Outgoing) -> str:
        """Send one part; nobody is notified by what stands in it, and no link in it is looked up."""
        nonce = sha256(outgoing.key.encode()).hexdigest()[:_NONCE]
        if outgoing.attempt > 1 and nonce in self._own:
            return self._own[nonce]
        body: dict[str, Any] = {
            "content": outgoing.text,
            "nonce": nonce,
            "enforce_nonce": True,
            "allowed_mentions": {"parse": []},
            "flags": _NO_EMBEDS,
        }
        if outgoing.reply_to:
            body["message_reference"] = {"message_id": plain_id(outgoing.reply_to), "fail_if_not_exists": False}
        reply = await self.ask("POST", f"/channels/{outgoing.chat.id}/messages", json=body)
        return text(reply.body, "id")

    async def show_typing(self, chat: Chat) -> None:
        """Show that an answer is being written, for ten seconds."""
        with suppress(NacreError):
            await self.ask("POST", f"/channels/{chat.id}/typing")

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Write a file that came with a message; its address holds for about a day."""
        found = split_address(attachment.source)
        is_discords = found.scheme == "https" and found.netloc in _FILES
        if not is_discords and found.netloc != self._api.place:
            raise ChannelRefused("the file does not lie with Discord")
        await self._api.download(attachment.source, target, most_bytes, {})

    async def close(self) -> None:
        """Let go of connections."""
        await self._api.close()

    async def _address(self, records: Records) -> str:
        """Where to connect: to the session that is resumed, else where Discord says."""
        url = records.url if records.session else ""
        if not url:
            found = (await self.ask("GET", "/gateway/bot")).body
            url, starts = text(found, "url", 500), mapping(found, "session_start_limit")
            if starts.get("remaining") == 0:
                wait = (number(starts, "reset_after") or 0) / 1000
                raise ChannelUnavailable("Discord allows no more connections of this bot today", retry_after=wait)
        return f"{url.rstrip('/')}/?v=10&encoding=json"

    async def ask(self, method: str, path: str, **more: Any) -> Reply:
        """The answer to a request that Discord granted. Raises ChannelUnavailable, ChannelRefused."""
        reply = await self._api.ask(method, path, **more)
        if reply.status < 300:
            return reply
        if reply.status == 429:
            raise ChannelUnavailable("Discord wants to be asked less often", retry_after=_wait(reply))
        if reply.status >= 500:
            raise ChannelUnavailable(f"Discord cannot answer now (status {reply.status})")
        code = reply.body.get("code")
        said = f"Discord says: {text(reply.body, 'message') or 'no'} (status {reply.status}, code {code})"
        raise ChannelRefused(said, hint=_HINTS.get(code if isinstance(code, int) else reply.status))

    def note_own(self, message: Mapping[str, Any]) -> None:
        """Remember that a message of the bot's appeared, which its nonce tells."""
        nonce = text(message, "nonce", _NONCE)
        if nonce:
            self._own[nonce] = text(message, "id")
            if len(self._own) > _MOST_OWN:
                del self._own[next(iter(self._own))]


_HINTS = {
    401: "copy the bot's token again from the Bot page of the developer portal",
    0: "copy the bot's token again from the Bot page of the developer portal",
    50001: "invite the bot to the server, and let it view the channel",
    50007: "this person takes no direct messages from the bot: they share no server, or turned them off",
    50013: "let the bot send messages in this channel",
}
"""By Discord's code, else by the status."""


class _Intake:
    """What becomes of events: messages on disk."""

    def __init__(self, channel: Discord, records: Records) -> None:
        self._channel = channel
        self._records = records
        self.kept = 0

    async def take(self, data: Mapping[str, Any], seq: int) -> None:
        if mapping(data, "author").get("id") == self._records.bot:
            self._channel.note_own(data)
        message = self._converted(data)
        await self._records.keep([message] if message else [], seq)
        self.kept += message is not None

    async def catch_up(self) -> None:
        """Fetch what was written in known chats while no session could be resumed."""
        for chat, guild in list(self._records.chats.items()):
            try:
                await self._fetch(chat, guild)
            except ChannelRefused:
                await self._records.forget(chat)

    async def _fetch(self, chat: str, guild: str) -> None:
        after = self._records.last(chat)
        for _ in range(_MOST_PAGES if after else 0):
            found = await self._page(chat, after)
            rows = sorted(found, key=lambda one: (len(text(one, "id")), text(one, "id")))
            if not rows:
                return
            messages = (self._converted({**row, "channel_id": chat, "guild_id": guild}) for row in rows)
            await self._records.keep([message for message in messages if message])
            after = text(rows[-1], "id")
            if len(rows) < _PAGE:
                return
        if after:
            missed = _PAGE * _MOST_PAGES
            self._channel.tell(f"over {missed} messages were missed in a chat of Discord: those after them are lost")

    async def _page(self, chat: str, after: str) -> tuple[Mapping[str, Any], ...]:
        while True:
            try:
                reply = await self._channel.ask(
                    "GET", f"/channels/{chat}/messages", params={"after": after, "limit": str(_PAGE)}
                )
            except ChannelUnavailable as error:
                if error.retry_after is None or error.retry_after > _MOST_WAIT:
                    raise
                await asyncio.sleep(error.retry_after)
            else:
                return reply.rows

    def _converted(self, data: Mapping[str, Any]) -> Incoming | None:
        try:
            return incoming(self._channel.name, data, self._records.bot)
        except ValueError:
            self._channel.left_out.note("a message of Discord's")
            return None


def _wait(reply: Reply) -> float:
    """Seconds that Discord asks to wait: in the answer, or where a proxy of theirs answered, in a header."""
    said = number(reply.body, "retry_after")
    if said is None:
        said = reply.retry_after
    if said is None:
        with suppress(ValueError):
            said = float(reply.headers.get("x-ratelimit-reset-after", ""))
    return _DEFAULT_WAIT if said is None else said


def _now() -> float:
    return asyncio.get_running_loop().time()


KIND = ChannelKind(
    "discord",
    "Discord",
    Discord,
    options=(
        Option("token", "the bot's token: env:NAME or file:PATH", is_secret=True, is_required=True),
        Option("base_url", "where Discord's HTTP interface is", default=ADDRESS),
    ),
    libraries=("websockets",),
    extra="web",
    identity="the number of a user: 80351110224678912",
)
