"""The Chats page shows conversations in channels, their authors and who may write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from nacre.base.locks import FileLock
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Answer, Chat, Incoming, Pairing, Received, Sender
from nacre_gateway.sessions import Transcripts, answer_line, message_line
from tests.web.driving import PHONE, Dashboard, nacre
from tests.web.story import CHATS, STRANGER, talk
from tests.web.test_memories import ATTACKS, DANGEROUS

pytestmark = pytest.mark.web

KEY = "telegram:4711"


@pytest.fixture
def store(home: Path) -> Iterator[GatewayStore]:
    """The gateway's database, opened as a gateway in another process does."""
    with closing(GatewayStore.open(home)) as gateway_store:
        yield gateway_store


def receive_message(store: GatewayStore, text: str) -> None:
    message = Incoming(text, Chat("telegram", "4711"), Sender("4711", "Otto"), text)
    store.receive("telegram", [(Received(0, KEY, message, datetime.now(UTC), True), "waiting")], {})


@contextmanager
def gateway_lock(lock: Path) -> Iterator[None]:
    """Hold a running gateway's lock."""
    gateway = FileLock(lock)
    assert gateway.acquire()
    yield
    gateway.release()


def test_conversation_list_is_shown_next_to_the_open_conversation(board: Dashboard) -> None:
    page = board.show("/chats")
    expect(page.locator(".chats-row")).to_have_count(len(CHATS))
    expect(page.locator(".chats-row").first).to_contain_text("telegram · 5 messages")
    expect(page.locator(".chats-said.owner").first).to_contain_text("You")
    expect(page.locator(".chats-said.assistant strong")).to_have_text("Saturday")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/chats/*-*")
    expect(page.locator(".chats-head h2")).to_have_text("group -100")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".chats-said.failure")).to_contain_text("the budget of today is spent")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator(".chats-head h2")).to_have_text("group -100")


def test_foreign_messages_are_marked_and_never_run(board: Dashboard) -> None:
    page = board.show("/chats/telegram:-100")
    strange = page.locator(".chats-said.other")
    expect(strange).to_have_count(2)
    expect(strange.first.locator(".origin.outside")).to_contain_text("From outside")
    expect(strange.first).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator("main img")).to_have_count(0)
    expect(
        page.locator(".chats-said.owner .outside, .chats-said.assistant .outside")
    ).to_have_count(0)
    expect(page.locator(".chats-people li").first).to_contain_text(STRANGER)
    assert board.violations() == []


def test_hostile_message_content_has_no_effect(
    board: Dashboard, home: Path, store: GatewayStore
) -> None:
    messages = [(speaker, text) for text in ATTACKS for speaker in ("You", "agent", "owner")]
    name = "<img src=x onerror='window.pwned=1'>"
    talk(
        store, home, Chat("telegram", "66"), name, messages, datetime.now(UTC) - timedelta(hours=2)
    )
    page = board.show("/chats/telegram:66")
    expect(page.locator(".chats-said")).to_have_count(len(messages))
    assert page.locator("main").evaluate(DANGEROUS) == []
    assert page.evaluate("window.pwned") is None
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    imitated = page.locator(".chats-said.other", has_text="You").first
    expect(imitated.locator(".origin.outside > .origin-mark")).to_contain_text("From outside")
    assert (
        page.evaluate(
            "/[\\u202e\\u2066\\u200b\\u001b]/.test(document.body.innerText + document.title)"
        )
        is False
    )


def test_open_conversation_grows_live(board: Dashboard, home: Path, store: GatewayStore) -> None:
    page = board.show(f"/chats/{KEY}")
    receive_message(store, "Is the extractor clean?")
    waiting = page.locator(".chats-said.waiting")
    expect(waiting).to_contain_text("Is the extractor clean?")
    expect(waiting).to_contain_text("waits")
    session, (stored_session,) = store.find_sessions(KEY)[0], store.open_messages(KEY)
    transcripts, now = Transcripts(home), datetime.now(UTC)
    with gateway_lock(home / "gateway" / "gateway.lock"):
        store.take(
            session.id,
            [(stored_session.received.seq, "a")],
            [message_line("a", stored_session.received)],
        )
        transcripts.write_pending(store, session.id)
        expect(page.get_by_text("The agent answers…")).to_be_visible()
        expect(waiting).to_have_count(0)
        expect(page.locator(".chats-said.owner").last).to_contain_text("Is the extractor clean?")
        answer = Answer("Since **Monday**.")
        lines = [answer_line("b", "telegram", answer, now)]
        store.finish(session, [stored_session.received.seq], answer, [], lines, now, messages=2)
        transcripts.write_pending(store, session.id)
        expect(page.locator(".chats-said.assistant strong").last).to_have_text("Monday")
        expect(page.get_by_text("The agent answers…")).to_have_count(0)
        expect(page.locator(".chats-row").first).to_contain_text("7 messages")


def test_the_owner_ends_a_conversation(board: Dashboard, store: GatewayStore) -> None:
    page = board.show(f"/chats/{KEY}")
    page.get_by_role("button", name="End").click()
    page.get_by_role("dialog").get_by_role("button", name="End").click()
    expect(page.locator(".toast", has_text="The conversation ended")).to_be_visible()
    expect(page.locator(".chats-head")).to_contain_text("ended")
    expect(page.get_by_role("button", name="End")).to_have_count(0)
    assert store.open_session(KEY) is None


@pytest.mark.parametrize(
    ("button", "receive_message"), [("Allow", "They may write"), ("Refuse", "Refused")]
)
def test_pairing_request_is_allowed_or_denied(
    board: Dashboard, store: GatewayStore, button: str, receive_message: str
) -> None:
    page = board.show("/chats")
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator(".toast", has_text=receive_message)).to_be_visible()
    expect(page.get_by_role("heading", name="Asks for access")).to_have_count(0)
    pairing = store.pairing("telegram", "77")
    assert bool(pairing and pairing.approved) == (button == "Allow")


def test_owner_identity_button_explains_its_effect_before_confirming(
    board: Dashboard, home: Path
) -> None:
    page = board.show("/chats")
    page.get_by_role("button", name="This is me").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("count as your own words")
    expect(dialog).to_contain_text("K7QM-2XDP")
    dialog.get_by_role("button", name="Cancel").click()
    assert "telegram:77" not in nacre("config", "show", "owner.identities", home=home)
    page.get_by_role("button", name="This is me").click()
    dialog.get_by_role("button", name="Yes, this is me").click()
    expect(page.locator(".toast", has_text="They may write as you")).to_be_visible()
    assert "telegram:77" in nacre("config", "show", "owner.identities", home=home)


def test_admitted_sender_can_be_removed(board: Dashboard, store: GatewayStore) -> None:
    page = board.show("/chats")
    page.locator(".chats-inside summary").click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator(".toast", has_text="Access removed")).to_be_visible()
    assert store.pairing("telegram", "81") is None


def test_new_pairing_request_appears_live(board: Dashboard, store: GatewayStore) -> None:
    page = board.show("/chats")
    store.ask_pairing(Pairing("telegram", "90", "Anna", "AAAA-BBBB", datetime.now(UTC)))
    expect(page.locator(".chats-people").first).to_contain_text("Anna")


def test_phone_shows_the_list_or_the_conversation(boards: Callable[..., Dashboard]) -> None:
    board = boards(viewport=PHONE)
    page = board.show("/chats")
    expect(page.locator(".chats-open")).to_be_hidden()
    page.locator(".chats-row").first.click()
    expect(page.locator(".chats-head h2")).to_have_text("Otto")
    expect(page.locator(".chats-list")).to_be_hidden()
    page.get_by_role("link", name="All conversations").click()
    expect(page.locator(".chats-row").first).to_be_visible()
    assert board.violations() == []


def test_missing_channel_explains_how_to_begin(board: Dashboard, home: Path) -> None:
    (home / "config.toml").unlink()
    for file in (home / "gateway").glob("gateway.db*"):
        file.unlink()
    page = board.show("/chats")
    expect(page.get_by_text("No channel is configured")).to_be_visible()
    expect(page.get_by_text("nacre gateway chat talks with it in a terminal")).to_be_visible()


def test_chat_in_the_session_list_links_to_chats(
    board: Dashboard, home: Path, store: GatewayStore
) -> None:
    session = store.find_sessions(KEY)[0]
    nacre("ingest", home=home)
    page = board.show(f"/sessions/nacre-chat:{session.id}")
    page.get_by_role("link", name="Open the chat").click()
    expect(page.locator(".chats-head h2")).to_have_text("Otto")
