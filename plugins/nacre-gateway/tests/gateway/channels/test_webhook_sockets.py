"""Programs talk to the agent over a WebSocket."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from gateway.sites import NOW, auth, hear, hello, run, say, webhook
from nacre.errors import ChannelUnavailableError
from nacre.values.gateway import Chat
from nacre_gateway import webhook as connections

CHAT = {"id": "otto", "kind": "direct", "thread": ""}


async def closed(link: ClientConnection) -> int | None:
    """The code with which the server closes a connection."""
    with suppress(ConnectionClosed):
        async for _ in link:
            pass
    return link.close_code


def message(name: str = "m1", **other: Any) -> dict[str, Any]:
    """A message as a frame."""
    return {"type": "message", **hello(id=name, **other)}


def test_message_is_accepted_and_answered(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site, site.connected() as link:
            await say(link, message())
            assert await hear(link) == {"type": "accepted", "id": "m1", "duplicate": False}
            await site.channel.show_typing(Chat("hook", "otto"))
            assert await hear(link) == {"type": "typing", "chat": CHAT}
            await site.channel.show_piece(Chat("hook", "otto"), "H")
            assert await hear(link) == {"type": "piece", "text": "H", "chat": CHAT}
            sending = asyncio.create_task(site.answer())
            answer = {"type": "answer", "key": "k1", "chat": CHAT, "text": "Hi", "reply_to": "m1"}
            assert await hear(link) == answer
            assert not sending.done()
            await say(link, {"type": "received", "key": "k1"})
            assert await sending == "k1"

    run(work())


def test_unreceived_answer_is_resent_on_the_next_connection(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            async with site.connected() as link:
                await say(link, message())
                await hear(link)
                sending = asyncio.create_task(site.answer())
                await hear(link)
            with pytest.raises(ChannelUnavailableError):
                await sending
            async with site.connected() as link:
                await say(link, message())
                assert await hear(link) == {"type": "accepted", "id": "m1", "duplicate": True}
                sending = asyncio.create_task(site.answer(attempt=2))
                assert (await hear(link))["key"] == "k1"
                await say(link, {"type": "received", "key": "k1"})
                await sending
            assert site.ids == ["m1"]

    run(work())


def test_connection_receives_only_chats_of_its_messages(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site, site.connected() as link, site.connected() as other:
            await say(link, message())
            await hear(link)
            await say(other, message("m2", chat={"id": "otto", "thread": "another"}))
            await hear(other)
            await site.channel.show_typing(Chat("hook", "otto", thread="another"))
            await site.channel.show_typing(Chat("hook", "otto"))
            assert (await hear(link))["chat"]["thread"] == ""
            assert (await hear(other))["chat"]["thread"] == "another"
            with pytest.raises(ChannelUnavailableError):
                await site.answer(chat="anna")

    run(work())


@pytest.mark.parametrize(
    "change",
    [
        {"v1": "0" * 64},
        {"v1": None},
        {"v1": "é" * 64},
        {"t": NOW + 1},
        {"t": 10**30},
        {"t": "now"},
        {"type": "message"},
        {"type": ["auth"]},
        {"more": 1},
    ],
)
def test_wrong_secret_closes_the_connection(tmp_path: Path, change: dict[str, Any]) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site, site.stranger() as (link, nonce):
            await say(link, auth(nonce) | change)
            assert await closed(link) == 1008

    run(work())


@pytest.mark.parametrize("frame", [b"", b"\xff", "[" * 50_000, json.dumps(message())])
def test_first_frame_proves_the_secret(tmp_path: Path, frame: str | bytes) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site, site.stranger() as (link, _):
            await link.send(frame)
            assert await closed(link) == 1008
            assert not site.ids

    run(work())


def test_signature_of_one_connection_is_invalid_on_another(tmp_path: Path) -> None:
    async def work() -> None:
        async with (
            webhook(tmp_path) as site,
            site.stranger() as (link, nonce),
            site.stranger() as (other, _),
        ):
            await say(link, auth(nonce))
            await say(other, auth(nonce))
            assert await hear(link) == {"type": "ready"}
            assert await closed(other) == 1008

    run(work())


@pytest.mark.parametrize("moment", [NOW - 301, NOW + 301])
def test_connection_signature_must_be_recent(tmp_path: Path, moment: int) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site, site.stranger() as (link, nonce):
            await say(link, auth(nonce, moment))
            assert await closed(link) == 1008

    run(work())


def test_invalid_frame_is_reported_and_connection_continues(tmp_path: Path) -> None:
    odd = [
        "",
        b"\xff",
        "{",
        "null",
        "[" * 50_000,
        '{"type": "answer"}',
        '{"type": "received"}',
        json.dumps(auth("x")),
        json.dumps(message(text=1)),
        json.dumps({"type": "received", "key": 7}),
    ]

    async def work() -> None:
        async with webhook(tmp_path) as site, site.connected() as link:
            for frame in odd:
                await link.send(frame)
                told = await hear(link)
                assert (told["type"], told["code"]) == ("error", "invalid_input")
            await say(link, {"type": "received", "key": "never sent"})
            await say(link, message())
            assert (await hear(link))["type"] == "accepted"

    run(work())


def test_oversized_frame_closes_the_connection(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site, site.connected() as link:
            await link.send(" " * 262_145)
            assert await closed(link) == 1009

    run(work())


def test_answers_are_received_while_storing_fails(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site, site.connected() as link:
            await say(link, message())
            await hear(link)
            may_keep = asyncio.Event()
            site.inbox.before = may_keep.wait
            sent = [f"m{number}" for number in range(2, 32)]
            for name in sent:
                await say(link, message(name))
            sending = asyncio.create_task(site.answer())
            refused = []
            while (told := await hear(link))["type"] == "error":
                assert told["code"] == "channel_unavailable"
                refused.append(told["id"])
            assert told["type"] == "answer"
            await say(link, {"type": "received", "key": "k1"})
            assert await sending == "k1"
            may_keep.set()
            accepted: list[str] = []
            while len(accepted) + len(refused) < len(sent):
                told = await hear(link)
                (refused if told["type"] == "error" else accepted).append(told["id"])
            assert site.ids == ["m1", *accepted]
            assert sorted(accepted + refused) == sorted(sent)
            assert refused

    run(work())


def test_unauthenticated_connections_are_closed_for_new_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)

    async def work() -> None:
        async with (
            webhook(tmp_path) as site,
            site.stranger() as (first, _),
            site.stranger() as (_, _),
            site.connected(),
            site.connected(),
            site.stranger() as (last, nonce),
        ):
            assert await closed(first) == 1008
            await say(last, auth(nonce))
            assert await closed(last) == 1013

    run(work())


def test_chats_per_connection_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MAX_CHATS", 1)

    async def work() -> None:
        async with webhook(tmp_path) as site, site.connected() as link:
            await say(link, message())
            assert (await hear(link))["type"] == "accepted"
            await say(link, message("m2", chat={"id": "another"}))
            told = await hear(link)
            assert (told["type"], told["id"]) == ("error", "m2")
            assert site.ids == ["m1"]

    run(work())
