"""The Telegram channel works with a local fake Bot API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.errors import ChannelRefusedError, ChannelUnavailableError, InvalidSettingsError
from nacre.values.gateway import Attachment, Chat, ChatType, Incoming, Outgoing
from nacre_gateway.channels import ChannelSetup, WebApi
from nacre_gateway.telegram import KIND, Bot, Telegram, incoming
from tests.fakes.memory_inbox import MemoryInbox
from tests.fakes.telegram import TOKEN, FakeTelegram

OTTO = 5054
KITCHEN = -700
SECONDS = 20.0


class Scene:
    """A server, a channel that receives from it, and the channel's inbox."""

    def __init__(self, server: FakeTelegram, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.inbox = MemoryInbox()
        self.notices: list[str] = []

    def channel(self, **options: Any) -> Telegram:
        values = (
            {option.name: option.default for option in KIND.options}
            | {"base_url": self.server.url}
            | options
        )
        token = values.pop("token", None) or TOKEN
        return Telegram(ChannelSetup("telegram", values, {"token": token}, self.notices.append))

    def during(self, work: Callable[[Telegram], Awaitable[None]], **options: Any) -> None:
        """Run ``work`` while the channel receives, and raise the channel's errors."""
        asyncio.run(asyncio.wait_for(self._during(work, **options), SECONDS))

    async def _during(self, work: Callable[[Telegram], Awaitable[None]], **options: Any) -> None:
        self.inbox = self.inbox.again()
        channel = self.channel(**options)
        running = asyncio.create_task(channel.run(self.inbox))
        working = asyncio.ensure_future(work(channel))
        try:
            done, _ = await asyncio.wait((running, working), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            running.cancel()
            working.cancel()
            await asyncio.gather(running, working, return_exceptions=True)
            await channel.close()

    def receive(self, count: int, **options: Any) -> list[Incoming]:
        """Receive until ``count`` messages are stored and confirmed to Telegram."""

        async def until_confirmed(_: Telegram) -> None:
            await self.inbox.wait_for(lambda: len(self.inbox.messages) >= count)
            await asyncio.to_thread(self.server.wait_for, lambda: not self.server.unconfirmed)

        self.during(until_confirmed, **options)
        return self.inbox.messages

    def fails(self, kind: type[Exception], **options: Any) -> Any:
        """Return the error that ends the channel."""
        with pytest.raises(kind) as caught:
            self.during(lambda _: asyncio.Event().wait(), **options)  # type: ignore[arg-type, return-value]
        return caught.value

    def call(self, work: Callable[[Telegram], Awaitable[Any]], **options: Any) -> Any:
        """Run ``work`` with a channel that receives nothing."""

        async def use() -> Any:
            channel = self.channel(**options)
            try:
                return await work(channel)
            finally:
                await channel.close()

        return asyncio.run(asyncio.wait_for(use(), SECONDS))

    def request_bodies(self, method: str) -> list[Any]:
        """Return the bodies of the bot's requests to a method."""
        return [
            request.body for request in self.server.requests if request.path.endswith(f"/{method}")
        ]

    def send(
        self, text: str = "yes", chat: Chat | None = None, reply_to: str = "", **options: Any
    ) -> str:
        outgoing = Outgoing("k1", chat or Chat("telegram", str(OTTO)), text, reply_to)
        return str(self.call(lambda channel: channel.send(outgoing), **options))


@pytest.fixture
def scene(tmp_path: Path) -> Any:
    with FakeTelegram() as server:
        yield Scene(server, tmp_path)


# messages from people


def test_message_has_sender_chat_and_time(scene: Scene) -> None:
    number = scene.server.say(OTTO, OTTO, "Where did I leave the keys?")
    (message,) = scene.receive(1)
    assert message.text == "Where did I leave the keys?"
    assert (message.sender.id, message.sender.name) == ("5054", "User 5054")
    assert message.chat == Chat("telegram", "5054", ChatType.DIRECT)
    assert message.id == f"5000/5054/{number}"
    assert message.sent == datetime.fromtimestamp(1_790_000_000, UTC)
    assert message.to_agent


@pytest.mark.parametrize(
    ("text", "is_to_agent", "expected"),
    [
        ("@nacre_bot what is for dinner?", True, "what is for dinner?"),
        ("😀😀 ask @Nacre_Bot about it", True, "😀😀 ask @Nacre_Bot about it"),
        ("/new@nacre_bot", True, "/new"),
        ("@nacre_bot: /reset", True, "/reset"),
        ("@nacre_bot", True, "@nacre_bot"),
        ("/new", False, "/new"),
        ("/new@other_bot", False, "/new@other_bot"),
        ("ask @nacre_bot_two", False, "ask @nacre_bot_two"),
        ("what is for dinner?", False, "what is for dinner?"),
    ],
)
def test_group_message_addresses_the_agent_when_mentioned(
    scene: Scene, text: str, is_to_agent: bool, expected: str
) -> None:
    scene.server.say(KITCHEN, OTTO, text)
    (message,) = scene.receive(1)
    assert message.chat == Chat("telegram", "-700", ChatType.GROUP)
    assert (message.to_agent, message.text) == (is_to_agent, expected)


def test_group_reply_is_for_the_agent_only_if_addressed(scene: Scene) -> None:
    own = {"message_id": 3, "from": scene.server.bot}
    foreign_message = {"message_id": 4, "from": {"id": 77, "is_bot": False}}
    scene.server.say(KITCHEN, OTTO, "and tomorrow?", reply_to_message=own)
    scene.server.say(KITCHEN, OTTO, "nice", reply_to_message=foreign_message)
    assert [message.to_agent for message in scene.receive(2)] == [True, False]


def test_user_without_username_is_mentioned_by_id(scene: Scene) -> None:
    entity = {
        "type": "text_mention",
        "offset": 0,
        "length": 5,
        "user": {"id": 5000, "is_bot": True},
    }
    scene.server.say(KITCHEN, OTTO, "Nacre, dinner?", entities=[entity])
    assert scene.receive(1)[0].to_agent


def test_topic_becomes_a_thread_and_ordinary_reply_does_not(scene: Scene) -> None:
    scene.server.say(KITCHEN, OTTO, "here", message_thread_id=12, is_topic_message=True)
    scene.server.say(KITCHEN, OTTO, "there", message_thread_id=9)
    assert [message.chat.thread for message in scene.receive(2)] == ["12", ""]


def test_files_have_name_type_size_and_caption_text(scene: Scene) -> None:
    server = scene.server
    small, large = server.file(b"s", width=90), server.file(b"large", width=900)
    plan = server.file(b"%PDF", file_name="../plan.pdf", mime_type="a/pdf")
    server.say(OTTO, OTTO, caption="the plan", document=plan)
    server.say(OTTO, OTTO, photo=[large, small])
    server.say(OTTO, OTTO, voice=server.file(b"OggS"))
    document, photo, voice = scene.receive(3)
    assert (document.text, document.attachments) == (
        "the plan",
        (Attachment("plan.pdf", "a/pdf", 4),),
    )
    assert photo.attachments == (Attachment("photo.jpg", "image/jpeg", 5),)
    assert voice.attachments == (Attachment("voice.ogg", "audio/ogg", 4),)


def test_animation_is_a_single_file_and_sticker_is_its_emoji(scene: Scene) -> None:
    file = scene.server.file(b"GIF", file_name="cat.gif")
    scene.server.say(OTTO, OTTO, animation=file, document=file)
    scene.server.say(OTTO, OTTO, sticker={"file_id": "s", "emoji": "👍"})
    cat, thumb = scene.receive(2)
    assert [attachment.name for attachment in cat.attachments] == ["cat.gif"]
    assert thumb.text == "👍"


def test_service_messages_and_bot_messages_are_ignored(scene: Scene) -> None:
    scene.server.say(KITCHEN, OTTO, new_chat_members=[{"id": 9}])
    scene.server.say(KITCHEN, 9, "I am a bot", **{"from": {"id": 9, "is_bot": True}})
    scene.server.push({"my_chat_member": {}})
    scene.server.say(KITCHEN, OTTO, "hello")
    assert [message.text for message in scene.receive(1)] == ["hello"]
    assert scene.notices == []


def test_message_in_a_groups_name_has_the_group_as_sender(scene: Scene) -> None:
    scene.server.say(
        KITCHEN, 1087968824, "all of you", sender_chat={"id": KITCHEN, "title": "Kitchen"}
    )
    (message,) = scene.receive(1)
    assert (message.sender.id, message.sender.name) == ("-700", "Kitchen")


# nothing is lost or repeated


def test_update_is_confirmed_only_after_storing(scene: Scene) -> None:
    scene.server.say(OTTO, OTTO, "keep me")
    started = asyncio.Event()

    async def never() -> None:
        started.set()
        await asyncio.Event().wait()

    async def until_started(_: Telegram) -> None:
        await started.wait()

    scene.inbox.before = never
    scene.during(until_started)
    assert scene.server.unconfirmed == 1
    scene.inbox.before = None
    assert [message.text for message in scene.receive(1)] == ["keep me"]


def test_channel_resumes_after_the_last_update_on_restart(scene: Scene) -> None:
    scene.server.say(OTTO, OTTO, "one")
    scene.receive(1)
    scene.server.redeliver()
    scene.server.say(OTTO, OTTO, "two")
    assert [message.text for message in scene.receive(2)] == ["one", "two"]


def test_repeated_and_reordered_updates_are_stored_once_in_order(scene: Scene) -> None:
    scene.server.is_reversed = True
    for number in range(250):
        scene.server.say(OTTO, OTTO, str(number))
    scene.receive(250)
    scene.inbox.kept.clear()
    scene.server.redeliver()
    scene.server.say(OTTO, OTTO, "250")
    assert [int(message.text) for message in scene.receive(251)] == list(range(251))


def test_restarted_update_numbers_lose_no_message(scene: Scene) -> None:
    scene.server.say(OTTO, OTTO, "before the holidays")
    scene.receive(1)
    scene.server._next_update = 40
    scene.server.say(OTTO, OTTO, "after the holidays")
    scene.receive(2)
    assert scene.inbox.texts == ["before the holidays", "after the holidays"]


def test_another_bot_starts_at_its_own_updates(scene: Scene) -> None:
    scene.server.say(OTTO, OTTO, "to the first")
    scene.receive(1)
    with FakeTelegram("6000:letters") as second:
        scene.server = second
        second._next_update = 3
        second.say(OTTO, OTTO, "to the second")
        scene.receive(2, token="6000:letters")
    assert scene.inbox.texts == ["to the first", "to the second"]


@pytest.mark.parametrize(
    "update",
    [
        {"message": "hello"},
        {"message": {"message_id": "x", "chat": {"id": 1}}},
        {"message": {"message_id": 1, "chat": [], "text": "t"}},
        {"message": {"message_id": 1, "chat": {"id": 1, "type": "private"}, "text": "t"}},
        {
            "message": {
                "message_id": 1,
                "chat": {"id": 10**400, "type": "private"},
                "from": {"id": 1},
                "text": "t",
            }
        },
        "not an object",
        {"update_id": "x"},
    ],
)
def test_malformed_update_is_skipped_and_reported_once(scene: Scene, update: Any) -> None:
    scene.server.push(update)
    scene.server.push(update)
    scene.server.say(OTTO, OTTO, "and on it goes")

    async def until_saved(_: Telegram) -> None:
        await scene.inbox.wait_for(lambda: bool(scene.inbox.messages))

    scene.during(until_saved)
    assert scene.inbox.texts == ["and on it goes"]
    assert len(scene.notices) == 1


def test_malformed_fields_do_not_discard_the_message(scene: Scene) -> None:
    scene.server.say(
        OTTO,
        OTTO,
        "x" * 30_000,
        entities=[{"type": 3, "offset": -1, "length": "9"}, 7, None],
        photo={"file_id": 1},
        document={
            "file_id": "d",
            "file_name": "a\x00/b\\c" * 100,
            "file_size": "many",
            "mime_type": 4,
        },
        sticker=3,
        message_thread_id=True,
        date="soon",
        reply_to_message=[1],
    )
    (message,) = scene.receive(1)
    assert len(message.text) == 20_000
    assert message.sent is None
    (file,) = message.attachments
    assert (file.size, file.media_type, len(file.name)) == (None, "", 120)
    assert not set(file.name) & set("\0/\\")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = "text caption entities from sender_chat reply_to_message document photo voice sticker date migrate_to_chat_id"
KINDS = st.sampled_from(["private", "group", "channel"])
CHATS = st.fixed_dictionaries({"id": st.integers(-9, 9), "type": KINDS | JSON})
MESSAGES = st.builds(
    lambda head, rest: {**rest, **head},
    st.fixed_dictionaries({"message_id": st.integers(0, 9), "chat": CHATS | JSON}),
    st.dictionaries(
        st.sampled_from(FIELDS.split()),
        JSON | st.just([{"type": "mention", "offset": 0, "length": 1}]),
    ),
)


@given(
    st.dictionaries(st.sampled_from(["message", "edited_message", "update_id"]), MESSAGES | JSON)
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_parsing_accepts_arbitrary_updates(update: dict[str, Any]) -> None:
    with suppress(ValueError):
        message = incoming(update, "telegram", Bot("5000", "nacre_bot"))
        assert message is None or (message.id and message.sender.id)


# disturbances


@pytest.mark.parametrize(
    "fault",
    [
        {"is_cut": True},
        {"status": 500},
        {"status": 502, "body": b"<html>"},
        {"status": 404, "body": b"<html>a proxy"},
    ],
)
def test_failed_poll_loses_no_message(scene: Scene, fault: dict[str, Any]) -> None:
    scene.server.fail_next(path="getUpdates", **fault)
    scene.server.say(OTTO, OTTO, "through it all")
    scene.fails(ChannelUnavailableError)
    assert [message.text for message in scene.receive(1)] == ["through it all"]


def test_unreachable_server_is_unavailable(scene: Scene) -> None:
    scene.fails(ChannelUnavailableError, base_url="http://127.0.0.1:1")


def test_answer_without_list_is_unavailable(scene: Scene) -> None:
    scene.server.fail_next(200, {"ok": True, "result": {"a": 1}}, path="getUpdates")
    assert "not a list" in scene.fails(ChannelUnavailableError).message


def test_too_many_requests_error_reports_retry_time(scene: Scene) -> None:
    refusal = {
        "ok": False,
        "error_code": 429,
        "description": "Too Many Requests",
        "parameters": {"retry_after": 17},
    }
    scene.server.fail_next(429, refusal, path="getUpdates")
    assert scene.fails(ChannelUnavailableError).retry_after == 17
    scene.server.fail_next(429, refusal, path="sendMessage")
    with pytest.raises(ChannelUnavailableError) as caught:
        scene.send()
    assert caught.value.retry_after == 17


def test_second_program_with_the_same_token_is_reported(scene: Scene) -> None:
    async def poll_in_parallel(_: Telegram) -> None:
        await asyncio.to_thread(scene.server.wait_for, lambda: scene.server.polls)
        other = WebApi("Telegram", scene.server.url, {})
        await other.ask("POST", f"/bot{TOKEN}/getUpdates", body={"timeout": 0})
        await other.close()
        await asyncio.Event().wait()

    with pytest.raises(ChannelUnavailableError, match="another program") as caught:
        scene.during(poll_in_parallel)
    assert caught.value.hint


def test_blocking_webhook_is_reported_with_the_removal_command(scene: Scene) -> None:
    scene.server.has_webhook = True
    error = scene.fails(ChannelUnavailableError)
    assert "webhook" in error.message
    assert "deleteWebhook" in error.hint


def test_wrong_token_is_refused(scene: Scene) -> None:
    error = scene.fails(ChannelRefusedError, token="5000:wrong")
    assert "token" in error.message
    assert "gateway.channels.telegram.token" in error.hint


def test_errors_and_logs_never_contain_the_token(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    echo = {"ok": False, "error_code": 400, "description": f"Bad Request: /bot{TOKEN}/sendMessage"}
    errors = [scene.fails(ChannelUnavailableError, base_url="http://127.0.0.1:1")]
    for fault in (
        {"status": 400, "body": echo},
        {"status": 500},
        {"is_cut": True},
        {"status": 418, "body": b"x"},
    ):
        scene.server.fail_next(path="sendMessage", **fault)  # type: ignore[arg-type]
        with pytest.raises((ChannelRefusedError, ChannelUnavailableError)) as caught:
            scene.send()
        errors.append(caught.value)
    scene.send()
    text = (
        repr([(error, error.hint, error.__cause__) for error in errors])
        + repr(scene.channel())
        + caplog.text
    )
    assert "letters-of-the-fake" not in text


# answers


def test_answer_is_sent_as_plain_text_without_previews(scene: Scene) -> None:
    body = scene.send("see <b>https://example.org</b> *now*")
    assert body == "5000/5054/1"
    assert scene.server.sent == [
        {
            "chat_id": 5054,
            "text": "see <b>https://example.org</b> *now*",
            "link_preview_options": {"is_disabled": True},
        }
    ]


def test_answer_in_a_group_topic_replies_in_that_topic(scene: Scene) -> None:
    chat = Chat("telegram", "-700", ChatType.GROUP, thread="12")
    scene.send(chat=chat, reply_to="5000/-700/31")
    (message,) = scene.server.sent
    assert message["message_thread_id"] == 12
    assert message["reply_parameters"] == {"message_id": 31, "allow_sending_without_reply": True}


def test_emoji_text_within_limits_is_accepted(scene: Scene) -> None:
    limits = scene.channel().limits
    assert (limits.characters, limits.utf16) == (4_096, True)
    scene.send("😀" * 2_048)
    with pytest.raises(ChannelRefusedError, match="too long"):
        scene.send("😀" * 2_049)


def test_answer_to_a_blocking_user_is_refused(scene: Scene) -> None:
    scene.server.blocked.add(OTTO)
    with pytest.raises(ChannelRefusedError, match="blocked"):
        scene.send()


def test_typing_is_shown(scene: Scene) -> None:
    chat = Chat("telegram", "-700", ChatType.GROUP, thread="12")
    scene.call(lambda channel: channel.show_typing(chat))
    assert scene.server.typing == [{"chat_id": -700, "action": "typing", "message_thread_id": 12}]


# settings


@pytest.mark.parametrize(
    "place", ["http://telegram.example", "ftp://127.0.0.1", "telegram", "http://[", ""]
)
def test_bot_api_url_must_be_https_or_loopback(scene: Scene, place: str) -> None:
    with pytest.raises(InvalidSettingsError):
        scene.channel(base_url=place)


def test_answering_every_group_message_warns_about_privacy_mode(scene: Scene) -> None:
    scene.server.say(OTTO, OTTO, "hello")
    scene.receive(1, groups="all")
    assert "/setprivacy" in scene.notices[0]
