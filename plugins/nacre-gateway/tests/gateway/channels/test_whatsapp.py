"""WhatsApp, against its Cloud API on loopback, with deliveries over real HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.base.ids import Clock, utc_now
from nacre.errors import (
    ChannelRefusedError,
    ChannelUnavailableError,
    InvalidSettingsError,
    StoreBusyError,
)
from nacre.values.gateway import Attachment, Chat, ChatType, Outgoing
from nacre_gateway.channels import ChannelSetup, ServesHttp, SkippedItems
from nacre_gateway.listener import Listener
from nacre_gateway.whatsapp import KIND, Number, WhatsApp, parse_delivery
from tests.fakes.memory_inbox import MemoryInbox
from tests.fakes.whatsapp import (
    APP_SECRET,
    NUMBER,
    TOKEN,
    VERIFY_TOKEN,
    FakeWhatsApp,
    refusal,
    sign,
)

OTTO = "491700000000"
HIDDEN = "DE.13491208655302741918"
SECONDS = 20.0


class Scene:
    """A platform, a channel whose routes are served, and the inbox that it fills."""

    def __init__(self, server: FakeWhatsApp, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.inbox = MemoryInbox()
        self.told: list[str] = []

    def channel(self, clock: Clock = utc_now, **options: Any) -> WhatsApp:
        values = {option.name: option.default for option in KIND.options}
        values |= {"base_url": self.server.base_url, "phone_number_id": NUMBER} | options
        secrets = {
            "token": values.get("token") or TOKEN,
            "app_secret": APP_SECRET,
            "verify_token": VERIFY_TOKEN,
        }
        return WhatsApp(
            ChannelSetup("whatsapp", values, secrets, self.folder, self.told.append), clock
        )

    def during(self, work: Callable[[], Any], *, receives: bool = True, **options: Any) -> Any:
        """Do something in a thread while the channel is served, and receives; what it returned."""
        return asyncio.run(asyncio.wait_for(self._during(work, receives, **options), SECONDS))

    async def _during(self, work: Callable[[], Any], receives: bool, **options: Any) -> Any:
        self.inbox = self.inbox.again()
        channel = self.channel(**options)
        listener = Listener("127.0.0.1:0", {"whatsapp": channel})
        self.server.callback = f"{listener.open()}/whatsapp"
        serving = asyncio.create_task(listener.run())
        running = asyncio.create_task(channel.run(self.inbox)) if receives else None
        try:
            while running and channel._inbox is None and not running.done():
                await asyncio.sleep(0)
            return await asyncio.to_thread(work)
        finally:
            for task in filter(None, (running, serving)):
                task.cancel()
            await asyncio.gather(*filter(None, (running, serving)), return_exceptions=True)
            await channel.close()

    def call(self, work: Callable[[WhatsApp], Awaitable[Any]], **options: Any) -> Any:
        """Use a channel that receives nothing."""

        async def use() -> Any:
            channel = self.channel(**options)
            try:
                return await work(channel)
            finally:
                await channel.close()

        return asyncio.run(asyncio.wait_for(use(), SECONDS))

    def send(
        self, text: str = "yes", chat: Chat | None = None, reply_to: str = "", **options: Any
    ) -> str:
        outgoing = Outgoing("k1", chat or Chat("whatsapp", OTTO), text, reply_to)
        return str(self.call(lambda channel: channel.send(outgoing), **options))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with FakeWhatsApp() as server:
        yield Scene(server, tmp_path)


# the callback URL


def test_callback_url_answers_challenge_only_with_verify_token(scene: Scene) -> None:
    def ask() -> list[tuple[int, str]]:
        wrong = ({"verify_token": "guess"}, {"verify_token": ""}, {"mode": "unsubscribe"})
        answers = [scene.server.verify(), *(scene.server.verify(**one) for one in wrong)]
        return [(answer.status_code, answer.text) for answer in answers]

    assert scene.during(ask) == [(200, "1158201444"), (403, ""), (403, ""), (403, "")]


def test_channel_serves_http(scene: Scene) -> None:
    assert isinstance(scene.channel(), ServesHttp)


@pytest.mark.parametrize("signature", ["", "sha256=", "sha256=0", "sha1=ab", "é"])
def test_delivery_without_valid_app_signature_is_refused(scene: Scene, signature: str) -> None:
    payload = scene.server.notice([scene.server.message(OTTO, "let me in")])
    body = json.dumps(payload).encode()

    def deliver() -> list[int]:
        forged = sign(body, "another secret")
        changed = sign(body.replace(b"let me in", b"let me out"))
        return [scene.server.deliver(body, one) for one in (signature, forged, changed)]

    assert scene.during(deliver) == [401, 401, 401]
    assert scene.inbox.messages == []


def test_oversized_body_is_not_read(scene: Scene) -> None:
    assert scene.during(lambda: scene.server.deliver(b" " * (3 * 1024 * 1024 + 1))) == 413


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"object": "\\ud800"}', b"\xff"]
)
def test_signed_invalid_body_is_acknowledged_and_reported(scene: Scene, body: bytes) -> None:
    assert scene.during(lambda: scene.server.deliver(body)) == 200
    assert len(scene.told) == 1


# what people write


def test_message_has_sender_chat_and_time(scene: Scene) -> None:
    at = int(time.time()) - 60
    scene.during(lambda: scene.server.say(OTTO, "Where did I leave the keys?", timestamp=str(at)))
    (message,) = scene.inbox.messages
    assert message.text == "Where did I leave the keys?"
    assert (message.sender.id, message.sender.name) == (OTTO, f"User {OTTO}")
    assert message.chat == Chat("whatsapp", OTTO, ChatType.DIRECT)
    assert message.id == "wamid.1"
    assert message.sent == datetime.fromtimestamp(at, UTC)


def test_files_have_name_and_type_and_caption_text(scene: Scene) -> None:
    server = scene.server
    photo = server.file(b"jpg", mime_type="image/jpeg", caption="the garden")
    plan = server.file(b"pdf", mime_type="application/pdf", filename="../plan.pdf")
    voice = server.file(b"ogg", mime_type="audio/ogg; codecs=opus", voice=True)
    sent = [("image", photo), ("document", plan), ("audio", voice)]
    scene.during(lambda: [server.say(OTTO, type=kind, **{kind: file}) for kind, file in sent])
    garden, document, said = scene.inbox.messages
    assert (garden.text, garden.attachments) == (
        "the garden",
        (Attachment("photo.jpg", "image/jpeg", None, "file-0"),),
    )
    assert document.attachments == (Attachment("plan.pdf", "application/pdf", None, "file-1"),)
    assert said.attachments == (Attachment("audio.ogg", "audio/ogg", None, "file-2"),)


def test_selected_option_becomes_the_text(scene: Scene) -> None:
    chosen = [
        {"type": "button", "button": {"text": "Yes", "payload": "y"}},
        {
            "type": "interactive",
            "interactive": {"type": "button_reply", "button_reply": {"id": "1", "title": "No"}},
        },
        {
            "type": "interactive",
            "interactive": {"type": "list_reply", "list_reply": {"id": "2", "title": "Later"}},
        },
        {
            "type": "location",
            "location": {"latitude": 52.5163, "longitude": 13.3777, "name": "Gate"},
        },
    ]
    scene.during(lambda: [scene.server.say(OTTO, **one) for one in chosen])
    assert scene.inbox.texts == ["Yes", "No", "Later", "Gate, 52.51630, 13.37770"]


def test_reactions_statuses_and_system_messages_are_ignored(scene: Scene) -> None:
    server = scene.server
    reaction = {"type": "reaction", "reaction": {"message_id": "wamid.1", "emoji": "👍"}}
    unsupported = {"type": "unsupported", "errors": [{"code": 131051}]}
    system = {"type": "system", "system": {"body": "changed number"}}
    read_status = {"id": "wamid.9", "status": "read", "timestamp": "1", "recipient_id": OTTO}

    def deliver() -> set[int]:
        answers = {server.say(OTTO, **one) for one in (reaction, unsupported, system)}
        return answers | {server.deliver(server.notice(statuses=[read_status]))}

    assert scene.during(deliver) == {200}
    assert (scene.inbox.messages, scene.told) == ([], [])


def test_failed_delivery_status_is_reported_once(scene: Scene) -> None:
    error = {
        "code": 131026,
        "title": "Message undeliverable",
        "error_data": {"details": "not on WhatsApp"},
    }
    status = {"id": "wamid.9", "status": "failed", "errors": [error]}
    scene.during(lambda: scene.server.deliver(scene.server.notice(statuses=[status, status])))
    assert scene.told == ["WhatsApp did not deliver an answer: not on WhatsApp (131026)"]


def test_messages_for_another_number_are_ignored(scene: Scene) -> None:
    payload = scene.server.notice([scene.server.message(OTTO, "for the shop")], number="77")
    assert scene.during(lambda: scene.server.deliver(payload)) == 200
    assert scene.inbox.messages == []


def test_sender_with_hidden_number_is_identified_by_business_id(scene: Scene) -> None:
    message = scene.server.message("", "hello", from_user_id=HIDDEN)
    del message["from"]
    contacts = [{"profile": {"name": "Otto"}, "user_id": HIDDEN}]
    scene.during(lambda: scene.server.deliver(scene.server.notice([message], contacts=contacts)))
    (kept,) = scene.inbox.messages
    assert (kept.sender.id, kept.sender.name, kept.chat.id) == (HIDDEN, "Otto", HIDDEN)
    scene.send(chat=kept.chat)
    (sent,) = scene.server.sent
    assert sent["recipient"] == HIDDEN
    assert "to" not in sent


@pytest.mark.parametrize(
    ("text", "fields", "is_to_agent"),
    [
        ("what is for dinner?", {}, False),
        ("@49301234 what is for dinner?", {}, True),
        ("and tomorrow?", {"context": {"from": "49301234", "id": "wamid.3"}}, True),
        ("nice", {"context": {"from": OTTO, "id": "wamid.3"}}, False),
    ],
)
def test_group_message_has_a_group_chat(
    scene: Scene, text: str, fields: dict[str, Any], is_to_agent: bool
) -> None:
    scene.during(lambda: scene.server.say(OTTO, text, group_id="Y2FwaV9ncm91cA", **fields))
    (message,) = scene.inbox.messages
    assert message.chat == Chat("whatsapp", "Y2FwaV9ncm91cA", ChatType.GROUP)
    assert (message.sender.id, message.to_agent) == (OTTO, is_to_agent)
    scene.send(chat=message.chat, reply_to=message.id)
    (sent,) = scene.server.sent
    assert (sent["recipient_type"], sent["to"]) == ("group", "Y2FwaV9ncm91cA")
    assert sent["context"] == {"message_id": message.id}


# nothing is lost, nothing comes twice


def test_delivery_is_confirmed_only_after_storing(scene: Scene) -> None:
    async def busy() -> None:
        raise StoreBusyError

    payload = scene.server.notice([scene.server.message(OTTO, "keep me")])
    scene.inbox.before = busy
    assert scene.during(lambda: scene.server.deliver(payload)) == 503
    scene.inbox.before = None
    assert scene.during(lambda: [scene.server.deliver(payload), scene.server.deliver(payload)]) == [
        200,
        200,
    ]
    assert scene.inbox.texts == ["keep me"]


def test_full_inbox_makes_meta_deliver_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("nacre_gateway.whatsapp._RECEIVE_SECONDS", 0.01)
    scene.inbox.before = wait
    assert scene.during(lambda: scene.server.say(OTTO, "later")) == 503


def test_before_the_gateway_receives_a_delivery_is_not_confirmed(scene: Scene) -> None:
    assert scene.during(lambda: scene.server.say(OTTO, "early"), receives=False) == 503


def test_batch_is_stored_in_written_order(scene: Scene) -> None:
    now = int(time.time())
    messages = [
        scene.server.message(OTTO, str(number), timestamp=str(now - 99 + number))
        for number in range(50)
    ]
    payload = scene.server.notice(messages[25:][::-1])
    payload["entry"] += scene.server.notice(messages[:25])["entry"]
    scene.during(lambda: scene.server.deliver(payload))
    assert scene.inbox.texts == [str(number) for number in range(50)]


def test_replayed_delivery_does_nothing_even_without_stored_ids(
    scene: Scene,
) -> None:
    payload = scene.server.notice([scene.server.message(OTTO, "open the door")])
    scene.during(lambda: scene.server.deliver(payload))
    scene.inbox = MemoryInbox()
    late = lambda: utc_now() + timedelta(hours=24, minutes=1)  # noqa: E731
    assert scene.during(lambda: scene.server.deliver(payload), clock=late) == 200
    assert scene.inbox.messages == []
    assert "older than a day" in scene.told[0]


@pytest.mark.parametrize(
    "message",
    [
        7,
        {"from": OTTO, "type": "text", "text": {"body": "no id"}, "timestamp": "1790000000"},
        {"from": OTTO, "id": "a", "type": "text", "text": {"body": "no time"}},
        {"id": "a", "type": "text", "text": {"body": "nobody"}, "timestamp": "1790000000"},
        {
            "from": ["x"],
            "id": {"a": 1},
            "type": "text",
            "text": {"body": "no texts"},
            "timestamp": True,
        },
    ],
)
def test_malformed_message_is_skipped_and_others_are_stored(scene: Scene, message: Any) -> None:
    payload = scene.server.notice([message, scene.server.message(OTTO, "and on it goes")])
    assert scene.during(lambda: scene.server.deliver(payload)) == 200
    assert scene.inbox.texts == ["and on it goes"]
    assert len(scene.told) == (message != 7)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = (
    "from",
    "id",
    "timestamp",
    "type",
    "text",
    "image",
    "interactive",
    "location",
    "context",
    "group_id",
)
MESSAGES = st.dictionaries(
    st.sampled_from(FIELDS), JSON | st.sampled_from(["1790000000", "text", "image", "location"])
)
VALUES = st.fixed_dictionaries(
    {
        "metadata": JSON | st.just({"phone_number_id": NUMBER}),
        "messages": JSON | st.lists(MESSAGES, max_size=3),
    },
    optional={
        "contacts": JSON,
        "statuses": JSON | st.lists(st.fixed_dictionaries({"status": st.just("failed")})),
    },
)


@given(st.lists(VALUES | JSON, max_size=3), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_parsing_accepts_arbitrary_signed_payloads(values: list[Any], is_deep: bool) -> None:
    changes = [{"field": "messages", "value": value} for value in values] if is_deep else values
    payload = {"object": "whatsapp_business_account", "entry": [{"changes": changes}]}
    notice = parse_delivery(payload, "whatsapp", Number(NUMBER), SkippedItems(lambda _: None))
    assert all(message.id and message.sender.id and message.sent for message in notice.messages)


# answers


def test_answer_is_sent_as_text_without_preview(scene: Scene) -> None:
    assert scene.send("see https://example.org", reply_to="wamid.7") == "wamid.1"
    assert scene.server.sent == [
        {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": OTTO,
            "type": "text",
            "text": {"body": "see https://example.org", "preview_url": False},
        }
    ]


def test_text_within_the_limits_is_accepted(scene: Scene) -> None:
    limits = scene.channel().limits
    scene.send("x" * limits.characters)
    with pytest.raises(ChannelRefusedError, match="4096"):
        scene.send("x" * (limits.characters + 1))


def test_answer_after_24_hours_is_refused_with_reason(scene: Scene) -> None:
    scene.server.closed.add(OTTO)
    with pytest.raises(ChannelRefusedError, match="131047") as caught:
        scene.send()
    assert "24 hours" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("status", "code", "kind", "wait"),
    [
        (429, 130429, ChannelUnavailableError, 9.0),
        (400, 131056, ChannelUnavailableError, 6.0),
        (400, 80007, ChannelUnavailableError, 9.0),
        (500, 131000, ChannelUnavailableError, 9.0),
        (503, 2, ChannelUnavailableError, 9.0),
        (500, 999, ChannelUnavailableError, None),
        (401, 190, ChannelRefusedError, None),
        (403, 200, ChannelRefusedError, None),
        (400, 100, ChannelRefusedError, None),
        (400, 131030, ChannelRefusedError, None),
    ],
)
def test_meta_error_code_decides_between_retry_and_refusal(
    scene: Scene, status: int, code: int, kind: type[Exception], wait: float | None
) -> None:
    scene.server.fail_next(status, refusal(status, code, "Something").body, {"retry-after": "9"})
    with pytest.raises(kind, match=str(code)) as caught:
        scene.send()
    assert getattr(caught.value, "retry_after", None) == wait


@pytest.mark.parametrize(
    "fault",
    [
        {"is_cut": True},
        {"status": 502, "body": b"<html>"},
        {"status": 404, "body": b"<html>"},
        {"status": 200},
    ],
)
def test_possibly_undelivered_answer_is_retried(scene: Scene, fault: dict[str, Any]) -> None:
    scene.server.fail_next(**fault)
    with pytest.raises(ChannelUnavailableError):
        scene.send()


def test_wrong_token_stops_the_channel_with_a_hint(scene: Scene) -> None:
    with pytest.raises(ChannelRefusedError, match="token") as caught:
        scene.call(lambda channel: channel.run(scene.inbox), token="expired")
    assert "system user" in (caught.value.hint or "")


def test_errors_never_contain_secrets(scene: Scene) -> None:
    scene.server.fail_next(400, refusal(400, 100, f"Bearer {TOKEN}").body)
    with pytest.raises(ChannelRefusedError) as caught:
        scene.send()
    said = (
        repr((caught.value, caught.value.hint))
        + repr(scene.channel())
        + repr(scene.channel().__dict__["_setup"])
    )
    assert not [secret for secret in (TOKEN, APP_SECRET, VERIFY_TOKEN) if secret in said]


def test_typing_marks_the_last_chat_message_as_read(scene: Scene) -> None:
    async def show(channel: WhatsApp) -> None:
        await channel.show_typing(Chat("whatsapp", OTTO))
        channel._last[OTTO] = "wamid.7"
        await channel.show_typing(Chat("whatsapp", OTTO))

    scene.call(show)
    assert scene.server.typing == [
        {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": "wamid.7",
            "typing_indicator": {"type": "text"},
        }
    ]


# files


def test_file_is_fetched_through_its_media_url(scene: Scene, tmp_path: Path) -> None:
    file = Attachment("photo.jpg", source=scene.server.file(b"\xff\xd8jpg")["id"])
    scene.call(lambda channel: channel.fetch(file, tmp_path / "photo.jpg", 5))
    assert (tmp_path / "photo.jpg").read_bytes() == b"\xff\xd8jpg"
    with pytest.raises(ChannelRefusedError, match="larger"):
        scene.call(lambda channel: channel.fetch(file, tmp_path / "again.jpg", 4))
    assert not (tmp_path / "again.jpg").exists()


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("https://evil.example", "is not on Meta's"),
        ("http://lookaside.fbsbx.com", "is not on Meta's"),
        ("https://fbsbx.com.evil.example", "is not on Meta's"),
        ("http://[", "malformed"),
    ],
)
def test_token_is_not_sent_to_other_hosts(
    scene: Scene, tmp_path: Path, host: str, problem: str
) -> None:
    scene.server.file_host = host
    file = Attachment("photo.jpg", source=scene.server.file(b"jpg")["id"])
    with pytest.raises(ChannelRefusedError, match=problem):
        scene.call(lambda channel: channel.fetch(file, tmp_path / "photo.jpg", 5))


def test_file_with_an_expired_url_can_be_fetched_again(scene: Scene, tmp_path: Path) -> None:
    file = Attachment("photo.jpg", source=scene.server.file(b"jpg")["id"])
    scene.server.fail_next(404, path="/media")
    with pytest.raises(ChannelRefusedError):
        scene.call(lambda channel: channel.fetch(file, tmp_path / "photo.jpg", 5))
    scene.call(lambda channel: channel.fetch(file, tmp_path / "photo.jpg", 5))
    assert (tmp_path / "photo.jpg").exists()


def test_graph_api_url_must_be_https_or_loopback(scene: Scene) -> None:
    with pytest.raises(InvalidSettingsError):
        scene.channel(base_url="http://graph.example/v25.0")
