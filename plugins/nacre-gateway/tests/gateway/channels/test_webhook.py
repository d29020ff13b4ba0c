"""Programs talk to the agent over HTTP: signed, bounded, each message once."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response

from gateway.sites import (
    NOW,
    Routes,
    Site,
    client_of,
    hello,
    listening,
    mac,
    run,
    setup,
    signed,
    webhook,
)
from nacre.errors import (
    ChannelRefusedError,
    ChannelUnavailableError,
    InvalidSettingsError,
    StoreBusyError,
)
from nacre.values.gateway import Chat, ChatType, Incoming, Sender
from nacre_gateway.channels import Channel, ServesHttp, kind_of
from nacre_gateway.webhook import KIND, Webhook

RIGHT = json.dumps(hello()).encode()
HEADER = "Nacre-Signature"


def test_webhook_kind_is_registered_and_serves_http(tmp_path: Path) -> None:
    made = kind_of("webhook").make(setup(tmp_path, []))
    assert isinstance(made, ServesHttp)
    channel: Channel = made
    assert channel.limits.is_idempotent


def test_signed_message_is_stored_unchanged(tmp_path: Path) -> None:
    message = hello(
        chat={"id": "room", "kind": "group", "thread": "t"},
        to_agent=False,
    )

    async def work() -> None:
        async with webhook(tmp_path) as site:
            answer = await site.post(message)
            assert (answer.status_code, answer.json()) == (202, {"accepted": True})
            assert site.inbox.messages[0] == Incoming(
                "m1",
                Chat("hook", "room", ChatType.GROUP, thread="t"),
                Sender("otto", "Otto"),
                "Hello",
                to_agent=False,
            )

    run(work())


def test_message_without_chat_belongs_to_the_senders_chat(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            await site.post(hello())
            assert site.inbox.messages[0].chat == Chat("hook", "otto")

    run(work())


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(HEADER, "")],
        [(HEADER, f"t={NOW},v1={'0' * 64}")],
        [(HEADER, f"t={NOW},v1={mac(NOW, RIGHT, 'another secret, as long')}")],
        [(HEADER, f"t={NOW},v1={mac(NOW, RIGHT + b' ')}")],
        [(HEADER, f"t={NOW + 1},v1={mac(NOW, RIGHT)}")],
        [(HEADER, f"t={NOW - 301},v1={mac(NOW - 301, RIGHT)}")],
        [(HEADER, f"t={NOW + 301},v1={mac(NOW + 301, RIGHT)}")],
        [(HEADER, f"t={NOW},v1={mac(NOW, RIGHT).upper()}")],
        [(HEADER, f"t={NOW},v1={mac(NOW, RIGHT)[:63]}")],
        [(HEADER, f"v1={mac(NOW, RIGHT)},t={NOW}")],
        [(HEADER, f"t=-{NOW},v1={mac(-NOW, RIGHT)}")],
        [(HEADER, signed(RIGHT)[HEADER]), (HEADER, signed(RIGHT)[HEADER])],
        [(HEADER, "t=1" + "0" * 5_000 + ",v1=" + "0" * 64)],
        [(HEADER, "t=\xe9,v1=" + "\xe9" * 64)],
    ],
    ids=(
        "missing empty forged other-secret other-body other-time old future upper short order minus twice long odd"
    ).split(),
)
def test_invalid_signature_is_refused(tmp_path: Path, headers: list[tuple[str, str]]) -> None:
    told: list[str] = []

    async def work() -> None:
        async with webhook(tmp_path, told=told) as site:
            raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
            answers = [
                await site.client.post("/hook", content=RIGHT, headers=raw) for _ in range(2)
            ]
            assert [answer.status_code for answer in answers] == [401, 401]
            assert not site.ids

    run(work())
    assert told == ["the first request was refused with 401 Unauthorized"]


@pytest.mark.parametrize("moment", [NOW - 300, NOW, NOW + 300])
def test_clock_skew_of_five_minutes_is_accepted(tmp_path: Path, moment: int) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            assert (await site.post(hello(), moment)).status_code == 202

    run(work())


def test_replayed_request_has_no_effect_and_gets_no_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            await site.post(hello())
            replayed = await site.post(hello(), Prefer="wait=30")
            assert (replayed.status_code, replayed.json()) == (
                202,
                {"accepted": True, "duplicate": True},
            )
            assert site.ids == ["m1"]
            with pytest.raises(ChannelUnavailableError):
                await site.answer()

    run(work())


def test_replayed_request_from_before_start_gets_no_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            replayed = await site.post(hello(), NOW - 1, Prefer="wait=30")
            assert replayed.status_code == 202

    run(work())


def test_signatures_are_forgotten_only_after_expiry(tmp_path: Path) -> None:
    now = [float(NOW)]

    async def work() -> None:
        async with webhook(tmp_path, clock=lambda: now[0]) as site:
            await site.post(hello(), NOW)
            now[0] += 300
            replayed = await site.post(hello(), NOW, Prefer="wait=30")
            assert replayed.json() == {"accepted": True, "duplicate": True}
            now[0] += 1
            assert (await site.post(hello(), NOW, Prefer="wait=30")).status_code == 401

    run(work())


def test_waiting_client_receives_the_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            asked = asyncio.create_task(site.post(hello(), Prefer="respond-async, wait=30"))
            await site.until_kept("m1")
            assert await site.answer("Hi, Otto") == "k1"
            answer = await asked
            chat = {"id": "otto", "kind": "direct", "thread": ""}
            part = {"key": "k1", "chat": chat, "text": "Hi, Otto", "reply_to": "m1"}
            assert (answer.status_code, answer.json()) == (200, {"parts": [part]})

    run(work())


def test_repeated_request_with_new_signature_receives_the_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            late = await site.post(hello(), Prefer="wait=1")
            assert (late.status_code, late.json()) == (202, {"accepted": True})
            with pytest.raises(ChannelUnavailableError):
                await site.answer()
            asked = asyncio.create_task(site.post(hello(), NOW + 1, Prefer="wait=30"))
            await site.answer_until_heard()
            assert (await asked).json()["parts"][0]["text"] == "Hi"
            assert site.ids == ["m1"]

    run(work())


def test_answer_reaches_only_its_own_chat(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            asked = asyncio.create_task(site.post(hello(), Prefer="wait=30"))
            await site.until_kept("m1")
            with pytest.raises(ChannelUnavailableError):
                await site.answer("for another", chat="anna")
            await site.answer()
            assert (await asked).json()["parts"][0]["text"] == "Hi"

    run(work())


def test_disconnected_client_does_not_consume_the_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            asked = asyncio.create_task(site.post(hello(), Prefer="wait=30"))
            await site.until_kept("m1")
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            await site.client.get("/")  # by now the server heard that it went
            with pytest.raises(ChannelUnavailableError):
                await site.answer()

    run(work())


def test_unheard_answer_is_retried_less_often_after_an_hour(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            for attempt, after in ((1, 15), (240, 15), (241, 300)):
                with pytest.raises(ChannelUnavailableError) as later:
                    await site.answer(attempt=attempt)
                assert later.value.retry_after == after

    run(work())


def test_answers_are_posted_with_signature_and_key(tmp_path: Path) -> None:
    heard: list[tuple[bytes, dict[str, str]]] = []

    async def take(request: Request) -> Response:
        heard.append((await request.body(), dict(request.headers)))
        return Response(status_code=204)

    async def work() -> None:
        async with (
            listening([Routes("/answers", take)]) as address,
            webhook(tmp_path, deliver_to=f"{address}/answers") as site,
        ):
            await site.answer("Grüße")
            await site.answer("Grüße", attempt=2)

    run(work())
    assert len(heard) == 2
    for data, headers in heard:
        assert headers["nacre-signature"] == signed(data)[HEADER]
        assert headers["idempotency-key"] == "k1"
        assert json.loads(data)["text"] == "Grüße"


@pytest.mark.parametrize(
    ("status", "headers", "error", "after"),
    [
        (429, {"retry-after": "7"}, ChannelUnavailableError, 7),
        (503, {"retry-after": "9" * 30}, ChannelUnavailableError, 86_400),
        (500, {"retry-after": "soon"}, ChannelUnavailableError, None),
        (404, {}, ChannelRefusedError, None),
        (302, {"location": "/answers"}, ChannelRefusedError, None),
    ],
)
def test_status_of_answer_receiver_determines_the_error(
    tmp_path: Path,
    status: int,
    headers: dict[str, str],
    error: type[Exception],
    after: float | None,
) -> None:
    async def refuse(_: Request) -> Response:
        return Response(status_code=status, headers=headers)

    async def work() -> None:
        async with (
            listening([Routes("/answers", refuse)]) as address,
            webhook(tmp_path, deliver_to=f"{address}/answers?token=private") as site,
        ):
            with pytest.raises(error) as raised:
                await site.answer()
            assert getattr(raised.value, "retry_after", None) == after
            assert "private" not in f"{raised.value} {raised.value.__cause__}"

    run(work())


def test_unreachable_answer_receiver_is_retried(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path, deliver_to="http://127.0.0.1:1/private") as site:
            with pytest.raises(ChannelUnavailableError) as raised:
                await site.answer()
            assert "private" not in f"{raised.value} {raised.value.__cause__}"

    run(work())


@pytest.mark.parametrize(
    "options",
    [
        {"secret": "short"},
        {"deliver_to": "http://answers.example/"},
        {"deliver_to": "ftp://x"},
        {"deliver_to": "[x"},
    ],
    ids=["secret", "plain", "scheme", "nonsense"],
)
def test_unsafe_settings_are_refused_at_start(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingsError) as raised:
        Webhook(setup(tmp_path, [], **options))
    assert "short" not in str(raised.value).replace("too short", "")


def test_secret_is_never_shown(tmp_path: Path) -> None:
    assert "secret of the tests" not in repr(setup(tmp_path, []))
    assert next(option for option in KIND.options if option.name == "secret").is_secret


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff",
        b'"text"',
        b"[" * 100_000,
        b'{"id":' * 10_000,
        b'{"id": "m1", "text": "\\ud800", "sender": {"id": "o"}}',
        b"1e999",
        b"9" * 100_000,
        *(
            json.dumps(hello(**change)).encode()
            for change in (
                {"id": ""},
                {"id": 1},
                {"id": "a\nb"},
                {"id": "a\n"},
                {"id": "x" * 201},
                {"text": None},
                {"text": "x" * 32_001},
                {"sender": "otto"},
                {"sender": {}},
                {"sender": {"id": "o", "owner": True}},
                {"chat": {"id": "c", "kind": "all"}},
                {"to_agent": 1},
                {"attachments": [{"name": "a", "url": "https://x"}]},
                {"deep": [[[[]]]]},
                {"__proto__": {}},
            )
        ),
    ],
)
def test_invalid_message_is_refused_with_problem_json(tmp_path: Path, body: bytes) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            answer = await site.post(body)
            assert answer.status_code == 400
            assert answer.headers["content-type"] == "application/problem+json"
            assert len(answer.content) < 1_000
            assert not site.ids

    run(work())


@pytest.mark.parametrize("chunked", [False, True])
def test_huge_body_is_not_read_completely(tmp_path: Path, chunked: bool) -> None:
    async def pieces() -> Any:
        while True:
            yield b" " * 65_536

    async def work() -> None:
        async with webhook(tmp_path) as site:
            headers = signed(b"") if chunked else signed(b"") | {"Content-Length": str(10**12)}
            with suppress(
                httpx2.TransportError
            ):  # it may still be writing when the server has enough
                answer = await site.client.post("/hook", content=pieces(), headers=headers)
                assert answer.status_code == 413
            assert (await site.post(b" " * 262_145)).status_code == 413
            assert (await site.post(hello(text="x" * 32_000))).status_code == 202

    run(work())


def test_messages_are_refused_temporarily_while_storing_fails(tmp_path: Path) -> None:
    async def fail() -> None:
        raise StoreBusyError("another process holds it", hint="wait")

    async def work() -> None:
        async with webhook(tmp_path) as site:
            site.inbox.before = fail
            answer = await site.post(hello())
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "15")
            site.inbox.before = None
            assert (await site.post(hello(), NOW + 1)).json() == {"accepted": True}

    run(work())


def test_stopped_channel_accepts_no_messages(tmp_path: Path) -> None:
    async def work() -> None:
        channel = Webhook(setup(tmp_path, []), lambda: NOW)
        async with listening([channel]) as address, client_of(address) as client:
            answer = await client.post("/hook", content=RIGHT, headers=signed(RIGHT))
            assert answer.status_code == 503

    run(work())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
)
NEAR = st.fixed_dictionaries(
    {
        "id": st.text(max_size=4) | JSON,
        "text": st.text() | JSON,
        "sender": st.fixed_dictionaries({"id": JSON}),
    },
    optional={
        "chat": st.fixed_dictionaries(
            {"id": st.text() | JSON}, optional={"kind": JSON, "thread": JSON}
        ),
        "to_agent": JSON,
    },
)
BODIES = st.binary() | (JSON | NEAR).map(lambda made: json.dumps(made).encode())
HEADERS = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f"))


def test_arbitrary_bodies_and_signatures_never_fail_the_server(tmp_path: Path) -> None:
    told: list[str] = []

    async def post(site: Site, body: bytes, is_signed: bool, header: str) -> int:
        headers = signed(body)[HEADER].encode() if is_signed else header.encode("latin-1")
        answer = await site.client.post("/hook", content=body, headers=[(HEADER.encode(), headers)])
        return answer.status_code

    with asyncio.Runner() as runner:
        opened = webhook(tmp_path, told=told)
        site = runner.run(opened.__aenter__())

        @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
        @given(BODIES, st.booleans(), HEADERS)
        def never_fails(body: bytes, is_signed: bool, header: str) -> None:
            status = runner.run(post(site, body, is_signed, header))
            assert status in ((202, 400) if is_signed else (401,))

        never_fails()
        runner.run(opened.__aexit__(None, None, None))
    assert not [line for line in told if "failed" in line]
