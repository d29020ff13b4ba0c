"""The Slack channel works with a local fake Socket Mode server and Web API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.channels.scenes import check_retries, play, running, setup_of, until
from nacre.errors import ChannelRefusedError, ChannelUnavailableError, InvalidSettingsError
from nacre.values.gateway import Attachment, Chat, ChatType, Outgoing
from nacre_gateway import slack
from nacre_gateway.slack import KIND, Slack, from_mrkdwn, to_mrkdwn
from tests.fakes.memory_inbox import MemoryInbox
from tests.fakes.slack import APP_TOKEN, BOT, TOKEN, FakeSlack

CODE = "`**a** &lt;b&gt;` and\n```\nx = **y &amp; [a](https://b)\n```"
CHAT = Chat("slack", "D1", account="T1")


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack, "_HELLO_SECONDS", 2.0)
    monkeypatch.setattr(slack, "_PING_SECONDS", 1.0)


@pytest.fixture
def server() -> Iterator[FakeSlack]:
    with FakeSlack() as server:
        yield server


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
def channel(server: FakeSlack, tmp_path: Path, notices: list[str]) -> Slack:
    return channel_of(server, tmp_path, notices)


def channel_of(server: FakeSlack, tmp_path: Path, notices: list[str], **secrets: str) -> Slack:
    tokens = {"token": TOKEN, "app_token": APP_TOKEN} | secrets
    return Slack(setup_of(KIND, tmp_path, tokens, base_url=server.url, notices=notices))


def out(text: str = "an answer", key: str = "k1", **more: Any) -> Outgoing:
    return Outgoing(key, more.pop("chat", CHAT), text, **more)


def test_direct_message_has_sender_time_and_files(channel: Slack, server: FakeSlack) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        server.names["U1"] = "Otto"
        file = {
            "id": "F1",
            "name": "plan.pdf",
            "mimetype": "application/pdf",
            "size": 12,
            "url_private": "https://x",
        }
        async with running(channel, inbox):
            await until(server, lambda: server.opened)
            ts = server.say(
                "D1",
                "U1",
                "a &lt; b &amp;amp; see <https://x.org|x.org>",
                subtype="file_share",
                files=[file],
            )
            await inbox.wait_for(lambda: bool(inbox.messages))
            await until(server, lambda: len(server.confirmed) == 1)
        [message] = inbox.messages
        assert (message.id, message.chat, message.to_agent) == (f"D1:{ts}", CHAT, True)
        assert message.text == "a < b &amp; see https://x.org"
        assert (message.sender.id, message.sender.name) == ("U1", "Otto")
        assert message.sent is not None
        assert message.sent.isoformat() == "2025-11-22T15:06:40.000001+00:00"
        assert message.attachments == (Attachment("plan.pdf", "application/pdf", 12),)

    play(scene())


def test_duplicate_mention_events_yield_a_single_message(channel: Slack, server: FakeSlack) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.opened)
            server.say("C1", "U1", "talk")
            server.say("C1", "U1", f"<@{BOT}> /new")
            server.say("C1", "U1", "and?", thread_ts="1.5", parent_user_id=BOT)
            server.say("C1", "U1", "to another", thread_ts="1.6", parent_user_id="U2")
            server.say("G1", "U1", "in a group")
            await until(server, lambda: len(server.confirmed) == 6)
        assert [
            (message.text, message.to_agent, message.chat.thread) for message in inbox.messages
        ] == [
            ("talk", False, ""),
            ("/new", True, ""),
            ("and?", True, "1.5"),
            ("to another", False, "1.6"),
            ("in a group", False, ""),
        ]
        assert {message.chat.kind for message in inbox.messages} == {ChatType.GROUP}

    play(scene())


def test_messages_not_written_by_people_are_confirmed_and_ignored(
    channel: Slack, server: FakeSlack
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.opened)
            server.say("D1", BOT, "mine", bot_id="B1")
            server.say("D1", BOT, "mine, unmarked")
            server.say("D1", "U8", "a bot's", subtype="bot_message", bot_id="B8")
            server.say("C1", "U1", "joined", subtype="channel_join")
            server.say("D1", "U1", "")
            server.tell({"type": "reaction_added", "user": "U1"})
            server.say("D1", "U1", "a person's")
            await until(server, lambda: len(server.confirmed) == 7)
        assert inbox.texts == ["a person's"]

    play(scene())


def test_guest_of_another_workspace_has_a_distinct_id(channel: Slack, server: FakeSlack) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.opened)
            server.say("C1", "U1", "hello", team="T2")
            server.say("C1", "U1", "hello", user_team="T3")
            server.say("C1", "U1", "hello")
            await inbox.wait_for(lambda: len(inbox.messages) == 3)
        assert [message.sender.id for message in inbox.messages] == ["T2.U1", "T3.U1", "U1"]

    play(scene())


def test_envelope_is_confirmed_only_after_message_is_stored(
    server: FakeSlack, tmp_path: Path, notices: list[str]
) -> None:
    async def scene() -> None:
        inbox, entered = MemoryInbox(), asyncio.Event()

        async def block() -> None:
            entered.set()
            await asyncio.Event().wait()

        inbox.before = block
        async with running(channel_of(server, tmp_path, notices), inbox):
            await until(server, lambda: server.opened)
            server.say("D1", "U1", "hello")
            await entered.wait()
            assert server.confirmed == []
        await until(server, lambda: not server.connections)
        inbox.before = None
        async with running(channel_of(server, tmp_path, notices), inbox):
            await until(server, lambda: server.confirmed)
        assert inbox.texts == ["hello"]

    play(scene())


def test_dropped_connection_is_replaced_without_message_loss(
    channel: Slack, server: FakeSlack
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            for number in range(4):
                await until(server, lambda: server.opened)
                server.say("D1", "U1", f"before {number}")
                await inbox.wait_for(lambda number=number: f"before {number}" in inbox.texts)
                await until(server, lambda: not server.waiting)
                server.drop(None if number % 2 else 1001)
                server.say("D1", "U1", f"after {number}")
                await inbox.wait_for(lambda number=number: f"after {number}" in inbox.texts)
        assert sorted(inbox.texts) == sorted(
            f"{when} {n}" for n in range(4) for when in ("before", "after")
        )

    play(scene())


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
def test_disconnect_request_is_followed_by_another_connection(
    channel: Slack, server: FakeSlack, reason: str
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.opened)
            (old,) = server.opened
            server.disconnect(reason)
            await until(server, lambda: server.opened and server.opened[-1] is not old)
            server.say("D1", "U1", "hello")
            await inbox.wait_for(lambda: bool(inbox.messages))
        assert inbox.texts == ["hello"]

    play(scene())


def test_unresponsive_connection_is_replaced(channel: Slack, server: FakeSlack) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.opened)
            server.freeze()
            server.say("D1", "U1", "hello")
            await inbox.wait_for(lambda: bool(inbox.messages))

    play(scene())


def test_permanent_disconnect_reasons_are_refusals(channel: Slack, server: FakeSlack) -> None:
    async def scene() -> None:
        for reason, error, hint in (
            ("link_disabled", ChannelRefusedError, "Socket Mode"),
            ("too_many_websockets", ChannelUnavailableError, "ten are allowed"),
        ):
            async with running(channel, MemoryInbox()) as task:
                await until(server, lambda: server.opened)
                server.disconnect(reason)
                with pytest.raises(error) as raised:
                    await task
                assert hint in str(raised.value.hint)
            await until(server, lambda: not server.opened)

    play(scene())


def test_failing_connections_make_the_channel_unavailable(
    channel: Slack, server: FakeSlack
) -> None:
    async def scene() -> None:
        server.says_hello = False
        with pytest.raises(ChannelUnavailableError, match="no greeting"):
            await channel.run(MemoryInbox())
        await channel.close()

    play(scene())


@pytest.mark.parametrize(("name", "hint"), [("token", "xoxb"), ("app_token", "xapp")])
def test_wrong_token_is_refused_and_never_shown(
    server: FakeSlack, tmp_path: Path, notices: list[str], name: str, hint: str
) -> None:
    async def scene() -> None:
        channel = channel_of(server, tmp_path, notices, **{name: "wrong-secret"})
        with pytest.raises(ChannelRefusedError) as error:
            await channel.run(MemoryInbox())
        assert hint in str(error.value.hint)
        assert "wrong-secret" not in f"{error.value!r} {error.value.hint} {notices}"
        await channel.close()

    play(scene())


def test_garbage_is_reported_once_and_ignored(
    channel: Slack, server: FakeSlack, notices: list[str]
) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        async with running(channel, inbox):
            await until(server, lambda: server.opened)
            for frame in (
                "{",
                "[]",
                b"\xff",
                "[" * 100_000,
                {"type": 5},
                {"envelope_id": 7},
                {"type": "slash_commands"},
            ):
                server.push(frame)
            for event in (
                None,
                [],
                "x",
                {},
                {"type": "message"},
                {"type": "message", "user": 5, "text": "x"},
            ):
                server.tell(event)
            server.say("../x", "U1", "a channel that is no id")
            server.say("D1", "U1", "x" * 90_000, files=[{"size": -1}] * 100, ts="9" * 60)
            await inbox.wait_for(lambda: bool(inbox.messages))
            await until(server, lambda: len(server.confirmed) == 8)
        assert len(inbox.messages[0].text) == 40_000
        assert (len(inbox.messages[0].attachments), inbox.messages[0].sent) == (10, None)
        assert len(notices) == 1

    play(scene())


def test_answer_mentions_no_user_and_shows_link_addresses(
    channel: Slack, server: FakeSlack
) -> None:
    async def scene() -> None:
        thread = replace(CHAT, id="C1", thread="1.5")
        ts = await channel.send(
            out("**Yes** & <!channel> <@U2>: [here](https://x.org/?a=1&b=2)", chat=thread)
        )
        [message] = server.sent
        assert (
            message["text"]
            == "*Yes* &amp; &lt;!channel&gt; &lt;@U2&gt;: here (https://x.org/?a=1&amp;b=2)"
        )
        assert (message["thread_ts"], message["unfurl_links"], message["unfurl_media"]) == (
            "1.5",
            False,
            False,
        )
        assert ts == f"C1:{message['ts']}"
        await channel.close()

    play(scene())


@pytest.mark.parametrize("thread", ["", "1.5"])
def test_part_that_was_sent_is_not_resent(channel: Slack, server: FakeSlack, thread: str) -> None:
    async def scene() -> None:
        chat = replace(CHAT, thread=thread)
        first = await channel.send(out(chat=chat))
        await channel.send(out(chat=chat, key="k2"))
        assert await channel.send(out(chat=chat, attempt=2)) == first
        assert len(server.sent) == 2
        await channel.send(out(chat=chat, key="k3", attempt=2))
        server.fail_next(200, {"ok": False, "error": "missing_scope"}, path="/conversations")
        await channel.send(out(chat=chat, attempt=2))
        assert len(server.sent) == 4
        await channel.close()

    play(scene())


@pytest.mark.parametrize(
    ("status", "body", "headers", "retry_after"),
    [
        (429, {"ok": False, "error": "ratelimited"}, {"retry-after": "7"}, 7.0),
        (429, b"<html>", {}, 30.0),
        (200, {"ok": False, "error": "ratelimited"}, {"retry-after": "2"}, 2.0),
        (200, {"ok": False, "error": "internal_error"}, {}, None),
        (503, b"<html>", {}, None),
        (200, b"<html>", {}, None),
    ],
)
def test_retryable_failure_reports_retry_time(
    channel: Slack,
    server: FakeSlack,
    status: int,
    body: Any,
    headers: dict[str, str],
    retry_after: float | None,
) -> None:
    server.fail_next(status, body, headers)
    play(check_retries(channel, server, out(), retry_after))
    assert len(server.sent) == 1


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("channel_not_found", "invite"),
        ("is_archived", "archived"),
        ("missing_scope", "chat:write"),
        ("token_revoked", "xoxb"),
        ("msg_too_long", "None"),
        ("an_error_of_tomorrow", "None"),
    ],
)
def test_undeliverable_answer_is_refused(
    channel: Slack, server: FakeSlack, error: str, hint: str
) -> None:
    async def scene() -> None:
        server.fail_next(200, {"ok": False, "error": error, "needed": "chat:write"})
        with pytest.raises(ChannelRefusedError, match=error) as caught:
            await channel.send(out())
        assert hint in str(caught.value.hint)
        await channel.close()

    play(scene())


def test_user_names_are_requested_once_and_are_optional(channel: Slack, server: FakeSlack) -> None:
    async def scene() -> None:
        inbox = MemoryInbox()
        server.names["U2"] = "Ada"
        async with running(channel, inbox):
            await until(server, lambda: server.opened)
            server.say("D1", "U1", "one")
            server.say("D1", "U1", "two")
            server.fail_next(500, path="/users.info")
            server.say("D2", "U2", "three")
            server.say("D2", "U2", "four")
            await inbox.wait_for(lambda: len(inbox.messages) == 4)
            start = len(server.requests)
            server.say("D1", "U1", "five")
            server.say("D2", "U2", "six")
            await inbox.wait_for(lambda: len(inbox.messages) == 6)
            assert len(server.requests) == start
        assert {message.sender.name for message in inbox.messages if message.text == "one"} <= {""}
        assert [message.sender.name for message in inbox.messages][-1] == "Ada"

    play(scene())


@pytest.mark.parametrize(
    ("slack", "people"),
    [
        ("<@UBOT> hello <@U2> and <@U3|otto>", "hello @U2 and @otto"),
        ("<!here> in <#C1|general>, <!subteam^S1|@team>", "@here in #general, @team"),
        ("<https://x.org/a|the plan> <https://x.org>", "the plan (https://x.org/a) https://x.org"),
        ("<mailto:a@x.org|a@x.org> <tel:110|110>", "a@x.org 110"),
        ("&lt;b&gt; &amp;lt;", "<b> &lt;"),
        ("say <@UBOT>", "say @UBOT"),
    ],
)
def test_slack_markup_is_converted_to_readable_text(slack: str, people: str) -> None:
    assert from_mrkdwn(slack, BOT) == people


@pytest.mark.parametrize(
    ("markdown", "slack"),
    [
        ("# The **plan**\n- **one**\n- 2 ** 3 ** 4", "*The plan*\n- *one*\n- 2 ** 3 ** 4"),
        ("`**a** <b>` and\n```python\nx = **y & [a](https://b)\n```", CODE),
        ("[https://x.org](https://x.org) ```open **b**", "https://x.org ```open *b*"),
    ],
)
def test_markdown_is_converted_to_slack_markup(markdown: str, slack: str) -> None:
    assert to_mrkdwn(markdown) == slack


def test_plain_http_is_allowed_only_on_loopback(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError):
        Slack(
            setup_of(
                KIND,
                tmp_path,
                {"token": "x", "app_token": "y"},
                base_url="http://slack.example.org",
            )
        )
