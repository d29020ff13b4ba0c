"""What a look at the home finds that changed, whoever changed it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nacre.home.home import Home, open_home
from nacre.serve.events import MAX_WATCHED_SESSIONS, MOST_IDS, Bus, Look
from nacre.settings import load_settings
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Answer, Chat, Incoming, Outgoing, Pairing, Received, Sender
from nacre.values.models import DOLLAR, Call, Tokens
from nacre.values.review import Reason
from tests.cli.conftest import Nacre, nacre, said, transcript, write_transcript  # noqa: F401 - fixtures
from tests.web.story import talk

Heard = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def home() -> Iterator[Home]:
    opened = open_home(load_settings())
    yield opened
    opened.close()


@pytest.fixture
def heard(home: Home) -> Iterator[Heard]:
    """``heard("memory")`` are the events of a kind since the last call; without kinds all of them."""
    watched = open_home(load_settings())
    bus = Bus(watched.clock)
    look, listener = Look(watched, bus), bus.listen(lambda: None)
    listener.take()

    def since(*kinds: str) -> list[dict[str, Any]]:
        look.look()
        found = [json.loads(event) for event in listener.take()]
        return [item for item in found if not kinds or item["kind"] in kinds]

    yield since
    look.close()
    watched.close()


def changes(events: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return sorted((event["change"], event["ids"]) for event in events)


def store(nacre: Nacre, content: str) -> str:  # noqa: F811 - the fixture
    found: str = nacre("store", content, "--json").json["memory_id"]
    return found


def test_unchanged_home_emits_no_events(nacre: Nacre, heard: Heard) -> None:  # noqa: F811
    store(nacre, "The mill stands on the left bank of the river")
    assert heard("memory")
    nacre("list")
    assert heard() == []


def test_memory_life_cycle_emits_events_per_operation(nacre: Nacre, heard: Heard) -> None:  # noqa: F811
    memory = store(nacre, "The mill stands on the left bank of the river")
    stored = heard("memory", "operation")
    assert [item["name"] for item in stored if item["kind"] == "operation"] == ["store"]
    assert changes(stored[1:]) == [("stored", [memory])]
    assert stored[1]["operation"] == stored[0]["id"]
    nacre("edit", memory, "--importance", "9")
    assert changes(heard("memory")) == [("changed", [memory])]
    nacre("retire", memory)
    assert changes(heard("memory")) == [("retired", [memory])]
    nacre("undo", "--yes")
    assert changes(heard("memory")) == [("restored", [memory])]
    nacre("forget", "--memory", memory, "--yes")
    assert changes(heard("memory")) == [("removed", [memory])]


def test_replaced_memory_is_reported_as_retired(nacre: Nacre, heard: Heard) -> None:  # noqa: F811
    old = store(nacre, "Billing listens on port 8181")
    heard()
    new = store(nacre, "Billing listens on port 8282 now")
    assert changes(heard("memory")) == [("retired", [old]), ("stored", [new])]


def test_hand_edit_is_reported_after_nacre_reads_the_file(
    nacre: Nacre,  # noqa: F811
    heard: Heard,
    home: Home,
) -> None:
    memory = store(nacre, "The ferry leaves at nine")
    heard()
    file = next(
        path
        for path in home.settings.vault.rglob("*.md")
        if memory in path.read_text(encoding="utf-8")
    )
    file.write_text(file.read_text(encoding="utf-8").replace("at nine", "at ten"), encoding="utf-8")
    assert heard() == []
    nacre("recall", "when does the ferry leave?")
    assert changes(heard("memory")) == [("changed", [memory])]


def test_growing_sessions_are_reported(nacre: Nacre, heard: Heard, transcript: Path) -> None:  # noqa: F811
    nacre("ingest")
    first = heard("session", "candidate", "memory")
    session = next(item for item in first if item["kind"] == "session")
    assert (session["id"], session["tool"], session["turns"]) == (
        f"claude-code:{transcript.stem}",
        "claude-code",
        6,
    )
    assert any(item["kind"] == "memory" for item in first)
    with transcript.open("a", encoding="utf-8") as file:
        file.write(json.dumps(said("user", "And the ferry?", 30)) + "\n")
    nacre("ingest")
    assert [item["turns"] for item in heard("session")] == [7]


def test_many_simultaneous_changes_form_few_events(
    nacre: Nacre,  # noqa: F811
    heard: Heard,
    user_home: Path,
) -> None:
    folder = user_home / ".claude" / "projects" / "-code-mill"
    for number in range(MAX_WATCHED_SESSIONS + 5):
        name = f"{number:08x}-0000-4000-8000-000000000001"
        write_transcript(
            folder / f"{name}.jsonl", [said("user", f"Sluice {number} is shut", 1, session=name)]
        )
    nacre("ingest")
    sessions = heard("session")
    assert len(sessions) == MAX_WATCHED_SESSIONS + 1
    assert sessions[-1]["id"] is None
    notes = Path(os.environ["NACRE_HOME"]) / "vault" / "global" / "fact"
    notes.mkdir(parents=True, exist_ok=True)
    for number in range(MOST_IDS + 50):
        (notes / f"n{number}.md").write_text(
            f"# Basin {number}\n\nBasin {number} holds {number} tons.\n"
        )
    nacre("recall", "basin")
    stored = heard("memory")
    assert [item["total"] for item in stored] == [MOST_IDS + 50]
    assert len(stored[0]["ids"]) == MOST_IDS


def test_new_and_dismissed_reviews_are_reported(
    nacre: Nacre,  # noqa: F811
    heard: Heard,
    home: Home,
) -> None:
    memory = store(nacre, "The kiln takes 40 kilos")
    heard()
    home.reviews.add(memory, Reason.MANUAL, "is that so?", 0, once=False)
    assert [item["ids"] for item in heard("doubt")] == [[memory]]
    home.reviews.dismiss(memory, 1)
    assert [item["ids"] for item in heard("doubt")] == [[memory]]
    assert heard("doubt") == []


def test_model_costs_are_reported_by_task(heard: Heard, home: Home) -> None:
    at = home.clock()
    day = at.astimezone().date()
    call = Call("c1", at, day, "extraction", "acme:small", True, Tokens(10, 5), DOLLAR // 100)
    home.spending.add(call)
    assert [(item["task"], item["usd"], item["today_usd"]) for item in heard("cost")] == [
        ("extraction", 0.01, 0.01)
    ]
    home.spending.add(Call("c2", at, day, "dream", "acme:small", True, Tokens(10, 5), DOLLAR // 50))
    assert [(item["task"], item["usd"], item["today_usd"]) for item in heard("cost")] == [
        ("dream", 0.02, 0.03)
    ]
    assert heard("cost") == []


KEY = "telegram:4711"


def chats(heard: Heard) -> int:
    return len(heard("chat"))


def test_conversation_is_reported_from_first_message_to_end(home: Home, heard: Heard) -> None:
    assert heard("chat") == []
    folder, chat = home.settings.home, Chat("telegram", "4711")
    assert not (folder / "gateway").exists()
    with closing(GatewayStore.open(folder)) as store:
        session = talk(
            store, folder, chat, "Otto", [("owner", "Is the sluice shut?")], home.clock()
        )
        assert chats(heard) == 1
        message = Incoming("m1", chat, Sender("4711"), "And the lock?")
        store.receive("telegram", [(Received(0, KEY, message, home.clock(), True), "waiting")], {})
        assert chats(heard) == 1
        (kept,) = store.open_messages(KEY)
        store.take(session, [(kept.received.seq, "line")], [])
        assert chats(heard) == 1
        found = store.find_sessions(session)[0]
        store.finish(found, [kept.received.seq], Answer("Yes."), [], [], home.clock(), messages=2)
        assert chats(heard) == 1
        store.note_indexed(session, 3)
        assert chats(heard) == 0
        store.close_session(session, home.clock())
        assert chats(heard) == 1


def test_pairing_requests_and_undeliverable_messages_are_reported(home: Home, heard: Heard) -> None:
    at, folder = home.clock(), home.settings.home
    with closing(GatewayStore.open(folder)) as store:
        asking = Pairing("telegram", "77", "Ines", "K7QM-2XDP", at)
        store.ask_pairing(asking)
        assert chats(heard) == 1
        store.approve(asking, at)
        assert chats(heard) == 1
        store.add_part(KEY, Outgoing("p1", Chat("telegram", "4711"), "Yes."), at)
        assert chats(heard) == 0
        part = store.next_part(KEY)
        assert part
        store.finish_part(part.seq, None, "the bot was blocked")
        assert chats(heard) == 1


def test_damaged_gateway_database_does_not_block_other_events(
    nacre: Nacre,  # noqa: F811
    heard: Heard,
    home: Home,
) -> None:
    file = home.settings.home / "gateway" / "gateway.db"
    GatewayStore.open(home.settings.home).close()
    assert heard("chat") == []
    file.unlink()
    file.write_bytes(b"no database at all" * 400)
    store(nacre, "The mill stands on the left bank of the river")
    assert [item["change"] for item in heard("memory")] == ["stored"]
