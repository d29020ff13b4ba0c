"""The Discord channel works with a local fake gateway and HTTP API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.channels.scenes import check_retries, play, running, setup_of, until
from nacre.errors import ChannelRefusedError, ChannelUnavailableError, InvalidSettingsError
from nacre.values.gateway import Attachment, Chat, ChatType, Outgoing
from nacre_gateway import discord
from nacre_gateway.discord import KIND, MAX_CHATS, Discord
from tests.fakes.discord import BOT, TOKEN, FakeDiscord
from tests.fakes.memory_inbox import MemoryInbox

CHAT = Chat("discord", "300")


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord, "_HELLO_SECONDS", 2.0)
    monkeypatch.setattr(discord, "_PAUSE_SECONDS", 0.01)


@pytest.fixture
def server() -> Iterator[FakeDiscord]:
    with FakeDiscord() as server:
        yield server


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
def channel(server: FakeDiscord, tmp_path: Path, notices: list[str]) -> Discord:
    return channel_of(server, tmp_path, notices)


def channel_of(
    server: FakeDiscord, tmp_path: Path, notices: list[str], token: str = TOKEN
) -> Discord:
    return Discord(setup_of(KIND, tmp_path, {"token": token}, base_url=server.url, notices=notices))


def out(text: str = "an answer", key: str = "k1", **more: Any) -> Outgoing:
    return Outgoing(key, CHAT, text, **more)


def test_direct_message_has_sender_time_and_files(channel: Discord, server: FakeDiscord) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            file = {
                "id": "1",
                "filename": "plan.pdf",
                "content_type": "application/pdf",
                "size": 12,
                "url": "https://x",
            }
            author = {"id": "5054", "username": "otto", "global_name": "Otto"}
            message = server.say(
                "300",
                "5054",
                "hello <@77>",
                author=author,
                attachments=[file],
                mentions=[{"id": "77", "username": "ada"}],
            )
            await inbox.wait_for(lambda: bool(inbox.messages))
        [incoming] = inbox.messages
        assert (incoming.id, incoming.chat, incoming.text, incoming.to_agent) == (
            message,
            CHAT,
            "hello @ada",
            True,
        )
        assert (incoming.sender.id, incoming.sender.name) == ("5054", "Otto")
        assert incoming.sent is not None
        assert incoming.sent.isoformat() == "2026-11-22T15:00:00+00:00"
        assert incoming.attachments == (Attachment("plan.pdf", "application/pdf", 12),)

    play(scene())


def test_only_mentions_and_replies_address_agent_on_servers(
    channel: Discord, server: FakeDiscord
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            me = [{"id": BOT, "username": "nacre"}]
            server.say("400", "5", "talk", guild="70")
            server.say("400", "5", f"<@{BOT}> /new", guild="70", mentions=me)
            server.say(
                "400", "5", "and?", guild="70", type=19, referenced_message={"author": {"id": BOT}}
            )
            server.say(
                "400", "5", "yes", guild="70", type=19, referenced_message={"author": {"id": "6"}}
            )
            server.say("500", "5", "in a group of friends", channel_type=3)
            await inbox.wait_for(lambda: len(inbox.messages) == 5)
        assert [(message.text, message.to_agent) for message in inbox.messages] == [
            ("talk", False),
            ("/new", True),
            ("and?", True),
            ("yes", False),
            ("in a group of friends", False),
        ]
        assert inbox.messages[0].chat == Chat("discord", "400", ChatType.GROUP, account="70")
        assert inbox.messages[4].chat.kind is ChatType.GROUP

    play(scene())


def test_messages_not_written_by_people_are_ignored(channel: Discord, server: FakeDiscord) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            server.say("300", BOT, "mine", author={"id": BOT, "bot": True})
            server.say("300", BOT, "mine, unmarked", author={"id": BOT})
            server.say("300", "8", "a bot's", author={"id": "8", "bot": True})
            server.say("300", "9", "a webhook's", webhook_id="9")
            server.say("300", "5", "joined", type=7)
            server.say("300", "5", "")
            await channel.send(out())
            server.say("300", "5", "a person's")
            await inbox.wait_for(lambda: bool(inbox.messages))
        assert inbox.texts == ["a person's"]

    play(scene())


def test_dropped_connection_is_resumed_without_message_loss(
    channel: Discord, server: FakeDiscord
) -> None:
    async def scene() -> None:
        server.heartbeat_seconds = 0.5
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            for number in range(8):
                server.say("300", "5", f"before {number}")
                await inbox.wait_for(lambda number=number: f"before {number}" in inbox.texts)
                server.drop(None if number % 2 else 4000)
                server.say("300", "5", f"after {number}")
                await inbox.wait_for(lambda number=number: f"after {number}" in inbox.texts)
        assert inbox.texts == [
            f"{when} {number}" for number in range(8) for when in ("before", "after")
        ]
        assert len(server.identified) == 1
        assert server.late_beats == 0

    play(scene())


def test_session_outlives_the_process(
    server: FakeDiscord, tmp_path: Path, notices: list[str]
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel_of(server, tmp_path, notices), inbox):
            await until(server, lambda: server.identified)
            server.say("300", "5", "one")
            await inbox.wait_for(lambda: "one" in inbox.texts)
        await until(server, lambda: not server.connections)
        server.say("300", "5", "while it was away")
        server.say("300", BOT, "mine", author={"id": BOT})
        async with running(channel_of(server, tmp_path, notices), inbox):
            await inbox.wait_for(lambda: len(inbox.messages) == 2)
        assert inbox.texts == ["one", "while it was away"]
        assert server.identified == ["session-1"]
        assert server.resumed == [("session-1", 2)], "resumed from the last saved event"

    play(scene())


def test_unstored_message_arrives_again_in_the_next_process(
    server: FakeDiscord, tmp_path: Path, notices: list[str]
) -> None:
    async def scene() -> None:
        inbox, entered = MemoryInbox(), asyncio.Event()
        async with running(channel_of(server, tmp_path, notices), inbox):
            await until(server, lambda: server.identified)
            server.say("300", "5", "stored")
            await inbox.wait_for(lambda: "stored" in inbox.texts)

            async def block() -> None:
                entered.set()
                await asyncio.Event().wait()

            inbox.before = block
            server.say("300", "5", "on its way")
            await entered.wait()
        inbox.before = None
        async with running(channel_of(server, tmp_path, notices), inbox):
            await inbox.wait_for(lambda: "on its way" in inbox.texts)
        assert inbox.texts == ["stored", "on its way"]

    play(scene())


def test_messages_missed_beyond_a_resume_are_fetched_in_order(
    channel: Discord, server: FakeDiscord
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            server.say("300", "5", "direct")
            server.say("400", "5", "in a server", guild="70")
            server.say("gone", "5", "in a channel that is deleted", guild="70")
            await inbox.wait_for(lambda: len(inbox.messages) == 3)
            with server.changed:
                server.forget_sessions()
                for number in range(250):
                    server.say("300", "5", f"missed {number}", is_live=False)
                server.say("400", "6", "missed, too", is_live=False)
                server.fail_next(404, {"code": 10003}, path="/channels/gone/")
                server.fail_next(429, {"retry_after": 0.01}, path="/channels/300/", times=2)
            await until(server, lambda: len(server.identified) == 2)
            server.say("300", "5", "live")
            await inbox.wait_for(lambda: {"live", "missed, too"} <= set(inbox.texts))
            await inbox.wait_for(lambda: "gone" not in inbox.kept["chats"])
        assert [text for text in inbox.texts if text.startswith("missed ")] == [
            f"missed {n}" for n in range(250)
        ]
        assert inbox.texts.count("live") == 1
        missed = next(message for message in inbox.messages if message.text == "missed, too")
        assert missed.chat == Chat("discord", "400", ChatType.GROUP, account="70")
        assert set(json.loads(inbox.kept["chats"])) == {"300", "400"}

    play(scene())


def test_messages_fetched_per_chat_are_bounded_and_reported(
    channel: Discord, server: FakeDiscord, notices: list[str]
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            server.say("300", "5", "first")
            await inbox.wait_for(lambda: bool(inbox.messages))
            with server.changed:
                server.forget_sessions()
                for number in range(5_010):
                    server.say("300", "5", f"missed {number}", is_live=False)
            await inbox.wait_for(lambda: len(inbox.messages) == 5_001)
            await until(server, lambda: len(server.identified) == 2)
            server.say("300", "5", "live")
            await inbox.wait_for(lambda: "live" in inbox.texts)
        assert inbox.texts == ["first", *(f"missed {number}" for number in range(5_000)), "live"]
        assert any("more than 5000 messages" in line for line in notices)

    play(scene())


def test_new_session_is_saved_after_missed_messages_are_fetched(
    server: FakeDiscord, tmp_path: Path, notices: list[str]
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        channel = channel_of(server, tmp_path, notices)
        async with running(channel, inbox) as task:
            await until(server, lambda: server.identified)
            server.say("300", "5", "first")
            await inbox.wait_for(lambda: "first" in inbox.texts)
            with server.changed:
                server.forget_sessions()
                server.say("300", "5", "missed", is_live=False)
                server.fail_next(500, path="/channels/300/")
            with pytest.raises(ChannelUnavailableError):
                await task
        async with running(channel_of(server, tmp_path, notices), inbox):
            await inbox.wait_for(lambda: "missed" in inbox.texts)
        assert len(server.identified) == 3

    play(scene())


def test_heartbeats_name_last_event_and_are_sent_on_request(
    channel: Discord, server: FakeDiscord
) -> None:
    async def scene() -> None:
        server.heartbeat_seconds = 0.1
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            server.say("300", "5", "hello")
            await inbox.wait_for(lambda: bool(inbox.messages))
            await until(server, lambda: len(server.beats) > 3 and server.beats[-1] == 2)
        server.heartbeat_seconds = 60.0
        server.beats.clear()
        async with running(channel, MemoryInbox()):
            await until(server, lambda: len(server.identified) == 2)
            server.push({"op": 1, "d": None})
            server.push({"op": 1, "d": None})
            await until(server, lambda: len(server.beats) >= 2)

    play(scene())


def test_unresponsive_connection_is_replaced(
    channel: Discord, server: FakeDiscord, notices: list[str]
) -> None:
    async def scene() -> None:
        server.heartbeat_seconds = 0.1
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            server.is_deaf = True
            await until(server, lambda: server.resumed)
            server.is_deaf = False
            server.say("300", "5", "hello")
            await inbox.wait_for(lambda: bool(inbox.messages))
        assert len(server.identified) == 1
        assert any("stopped responding" in line for line in notices)

    play(scene())


def test_slow_inbox_does_not_drop_connection(channel: Discord, server: FakeDiscord) -> None:
    async def scene() -> None:
        server.heartbeat_seconds = 0.4
        inbox, beats = MemoryInbox(), [0]

        async def slow() -> None:
            count = beats[0] + 2
            await until(server, lambda: len(server.beats) >= count)
            beats[0] = len(server.beats)

        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            inbox.before = slow
            for number in range(3):
                server.say("300", "5", f"{number}")
            await inbox.wait_for(lambda: len(inbox.messages) == 3)
        assert (inbox.texts, server.resumed) == (["0", "1", "2"], [])

    play(scene())


def test_discord_reconnect_requests_are_followed(channel: Discord, server: FakeDiscord) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            server.push({"op": 7, "d": None})
            await until(server, lambda: len(server.resumed) == 1)
            server.push({"op": 9, "d": True})
            await until(server, lambda: len(server.resumed) == 2)
            server.push({"op": 9, "d": False})
            await until(server, lambda: len(server.identified) == 2)
            server.drop(4009)
            await until(server, lambda: len(server.identified) == 3)

    play(scene())


@pytest.mark.parametrize(
    ("code", "hint"), [(4004, "token"), (4013, "update nacre"), (4014, "Message Content Intent")]
)
def test_permanent_close_codes_are_refusals(
    channel: Discord, server: FakeDiscord, code: int, hint: str
) -> None:
    async def scene() -> None:
        server.close_at_identify = code
        with pytest.raises(ChannelRefusedError) as error:
            await channel.run(MemoryInbox())
        assert hint in str(error.value.hint)
        assert TOKEN not in repr(error.value)
        await channel.close()

    play(scene())


def test_wrong_token_is_refused_and_never_shown(
    server: FakeDiscord, tmp_path: Path, notices: list[str]
) -> None:
    async def scene() -> None:
        channel = channel_of(server, tmp_path, notices, token="wrong-secret")
        with pytest.raises(ChannelRefusedError) as error:
            await channel.run(MemoryInbox())
        with pytest.raises(ChannelRefusedError):
            await channel.send(out())
        assert "token" in str(error.value.hint)
        assert "wrong-secret" not in f"{error.value!r} {error.value.__cause__!r} {notices}"
        await channel.close()

    play(scene())


def test_failing_connections_make_the_channel_unavailable(
    channel: Discord, server: FakeDiscord
) -> None:
    async def scene() -> None:
        server.close_at_identify = 4000
        with pytest.raises(ChannelUnavailableError, match="4000"):
            await channel.run(MemoryInbox())
        for url in ("ws://gateway.example.org", "wss://[", "", "http://x"):
            server.fail_next(200, {"url": url}, path="/gateway/bot")
            with pytest.raises(ChannelUnavailableError, match="not encrypted"):
                await channel.run(MemoryInbox())
        server.starts_left = 0
        with pytest.raises(ChannelUnavailableError) as error:
            await channel.run(MemoryInbox())
        assert error.value.retry_after == 3_600
        await channel.close()

    play(scene())


def test_dead_resume_address_is_not_retried_forever(channel: Discord, server: FakeDiscord) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            server.say("300", "5", "one")
            await inbox.wait_for(lambda: bool(inbox.messages))
        state = json.loads(inbox.kept["session"])
        inbox.kept["session"] = json.dumps(state | {"url": "ws://127.0.0.1:9"})
        with pytest.raises(ChannelUnavailableError):
            await channel.run(inbox)
        async with running(channel, inbox):
            await until(server, lambda: server.resumed)

    play(scene())


def test_garbage_is_reported_once_and_ignored(
    channel: Discord, server: FakeDiscord, notices: list[str]
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            for frame in (
                "{",
                "[]",
                "null",
                b"\xff\x00",
                '"\\ud800"',
                "[" * 100_000,
                {"op": 99},
                {"op": "x", "d": 5},
            ):
                server.push(frame)
            for data in (None, [], "x", {}, {"author": 5}, {"author": {"id": 5}, "id": "1"}):
                server.dispatch("MESSAGE_CREATE", data)
                server.push({"op": 0, "t": "MESSAGE_CREATE", "d": data})
                server.push({"op": 0, "s": -1, "t": ["?"], "d": data})
            server.say("../../x", "5", "a channel that is no id")
            server.say(
                "300",
                "5",
                "x" * 50_000,
                attachments=[{"size": -1}] * 100,
                mentions="none",
                timestamp=5,
            )
            await inbox.wait_for(lambda: bool(inbox.messages))
        assert len(inbox.messages[0].text) == 10_000
        assert (len(inbox.messages[0].attachments), inbox.messages[0].sent) == (10, None)
        assert (len(server.identified), server.resumed) == (1, [])
        assert len(notices) == 1
        assert channel.skipped.count > 10

    play(scene())


def test_repeated_and_disordered_events_yield_single_messages(
    channel: Discord, server: FakeDiscord
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            for number in range(4):
                server.say("300", "5", f"{number}")
            server.repeat([3, 1, 4, 2, 1])
            server.say("301", "5", "end")
            await inbox.wait_for(lambda: "end" in inbox.texts)
            last = server.history["300"][-1]["id"]
        assert inbox.texts == ["0", "1", "2", "3", "end"]
        assert json.loads(inbox.kept["chats"])["300"][1] == last

    play(scene())


def test_remembered_chats_are_bounded(channel: Discord, server: FakeDiscord) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.identified)
            for number in range(MAX_CHATS + 10):
                server.say(f"{number + 1000}", "5", "hello")
            await inbox.wait_for(lambda: len(inbox.messages) == MAX_CHATS + 10)
        chats = json.loads(inbox.kept["chats"])
        assert list(chats) == [f"{number + 1010}" for number in range(MAX_CHATS)]

    play(scene())


def test_answer_sends_no_pings_and_appears_once(channel: Discord, server: FakeDiscord) -> None:
    async def scene() -> None:
        first = await channel.send(out("@everyone <@5> look: https://example.org/?leak"))
        again = await channel.send(
            replace(out("@everyone <@5> look: https://example.org/?leak"), attempt=2)
        )
        other = await channel.send(out("another", key="k2"))
        assert first == again != other
        assert [item["content"] for item in server.sent] == [
            "@everyone <@5> look: https://example.org/?leak",
            "another",
        ]
        assert all(
            item["allowed_mentions"] == {"parse": []} and item["flags"] == 4 for item in server.sent
        )
        await channel.show_typing(CHAT)
        assert server.typing == ["300"]
        await channel.close()

    play(scene())


@pytest.mark.parametrize(
    ("status", "body", "headers", "retry_after"),
    [
        (429, {"retry_after": 1.5, "global": False}, {"retry-after": "9"}, 1.5),
        (429, b"<html>", {"retry-after": "7"}, 7.0),
        (429, {"retry_after": "soon"}, {}, 5.0),
        (502, b"<html>", {}, None),
    ],
)
def test_retryable_failure_reports_retry_time(
    channel: Discord,
    server: FakeDiscord,
    status: int,
    body: Any,
    headers: dict[str, str],
    retry_after: float | None,
) -> None:
    server.fail_next(status, body, headers)
    play(check_retries(channel, server, out(), retry_after))
    assert len(server.sent) == 1


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (403, 50007, "direct messages"),
        (403, 50013, "send messages"),
        (404, 10003, "None"),
        (400, 50035, "None"),
    ],
)
def test_undeliverable_answer_is_refused(
    channel: Discord, server: FakeDiscord, status: int, code: int, hint: str
) -> None:
    async def scene() -> None:
        server.fail_next(status, {"code": code, "message": "no"})
        with pytest.raises(ChannelRefusedError, match=str(code)) as error:
            await channel.send(out())
        assert hint in str(error.value.hint)
        await channel.close()

    play(scene())


def test_plain_http_is_allowed_only_on_loopback(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError):
        Discord(setup_of(KIND, tmp_path, {"token": TOKEN}, base_url="http://discord.example.org"))
