"""Machines sync memories in both directions, upload sessions, and never upload secrets."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from servers.remote.conftest import Machine, Place, ingest
from tests.canary import CORE, FORMS, SECRET

pytestmark = pytest.mark.usefixtures("user_home")

Machines = Callable[..., Machine]

SESSION = "7f3a1c2d-0000-4000-8000-000000000009"
_FACT = "The ferry timetable is kept in the file tides.csv."


def test_memory_reaches_other_machines_byte_for_byte(machines: Machines) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    laptop("store", _FACT, "--subject", "Ferry timetable")
    assert laptop.sync()["sent"] >= 1
    assert desk.sync()["received"] >= 1
    assert desk.contents() == {_FACT}
    assert desk.documents() == laptop.documents()
    assert laptop.sync()["sent"] == desk.sync()["sent"] == 0


def test_first_sync_sends_existing_data(place: Place, machines: Machines) -> None:
    laptop = machines("laptop", added=False)
    laptop("store", _FACT, "--subject", "Ferry timetable")
    ingest(
        laptop,
        SESSION,
        ("user", "Where is the timetable of the ferry?"),
        ("assistant", "In tides.csv."),
    )
    output = laptop("server", "remote", "add", place.url, "--yes").out
    assert "2 turns" in output
    result = place.ask("search-sessions", text="timetable ferry")
    assert SESSION in str(result)
    assert _FACT in str(place.ask("list"))


def test_edits_of_different_fields_are_merged(machines: Machines) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    laptop("store", _FACT, "--subject", "Ferry timetable")
    laptop.sync()
    desk.sync()
    laptop("edit", "Ferry timetable", "--importance", "9")
    desk("edit", "Ferry timetable", "--tag", "ferry")
    laptop.sync()
    assert desk.sync()["notes"]
    laptop.sync()
    text = laptop.file_of(_FACT).read_text()
    assert "importance: 9" in text
    assert "ferry" in text.partition("\n---\n")[0]
    assert laptop.documents() == desk.documents()


def test_conflicting_texts_of_a_memory_are_both_kept(machines: Machines) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    laptop("store", _FACT, "--subject", "Ferry timetable")
    laptop.sync()
    desk.sync()
    for machine, words in ((laptop, "It is kept in tides.json."), (desk, "It is kept on paper.")):
        file = machine.file_of(_FACT)
        file.write_text(file.read_text().replace(_FACT, words))
    laptop.sync()
    desk.sync()
    laptop.sync()
    assert {"It is kept in tides.json.", "It is kept on paper."} <= laptop.contents()
    assert laptop.contents() == desk.contents()


def test_retired_and_deleted_memories_are_synced_everywhere(machines: Machines) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    for words in (_FACT, "Dogs travel free.", "The harbour office closes at six."):
        laptop("store", words, "--subject", words)
    laptop.sync()
    desk.sync()
    laptop("retire", "Dogs travel free.", "--reason", "no longer")
    laptop.file_of("The harbour office").unlink()
    laptop.sync()
    desk.sync()
    assert desk.contents() == laptop.contents() == {_FACT}


def test_forgotten_content_does_not_return_from_other_machines(
    place: Place, machines: Machines
) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    words = "The spare key of the ferry office lies under the third stone."
    ingest(laptop, SESSION, ("user", words), ("assistant", "Noted, the third stone."))
    laptop("store", words, "--subject", "Spare key")
    laptop.sync()
    desk.sync()
    assert "third stone" in place.texts()
    laptop("forget", "--match", "third stone", "--yes")
    laptop.sync()
    assert "third stone" not in place.texts()
    desk.sync()
    assert "third stone" not in str(desk.documents())
    assert desk.contents() == set()
    for path in (desk.folder / ".nacre").rglob("remote.json"):
        assert "stone" not in path.read_text()
    desk("store", _FACT)
    desk.sync()
    laptop.sync()
    assert "third stone" not in place.texts()


def test_a_machine_works_without_the_server_and_catches_up(
    place: Place, machines: Machines
) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    place.daemon.end()
    laptop("store", _FACT)
    assert laptop("recall", "where is the ferry timetable kept?").out
    failed = laptop("server", "remote", "sync", code=5)
    assert "cannot be reached" in failed.err
    assert "cannot be reached" in laptop("server", "remote").out
    desk("store", "Dogs travel free.")
    place.restart()
    laptop.sync()
    desk.sync()
    laptop.sync()
    assert laptop.contents() == desk.contents() == {_FACT, "Dogs travel free."}
    assert "Not in sync" not in laptop("server", "remote").out


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"private"}))
def test_no_secret_leaves_in_documents_or_turns(
    place: Place, machines: Machines, form: str
) -> None:
    laptop = machines("laptop", added=False)
    laptop("store", _FACT, "--subject", "Ferry timetable")
    file = laptop.file_of(_FACT)
    ingest(
        laptop,
        SESSION,
        ("user", "Where is the timetable of the ferry?"),
        ("assistant", "In tides.csv."),
    )
    file.write_text(file.read_text() + f"\n{FORMS[form]}\n")
    pending = laptop("server", "remote", "add", place.url, "--yes", "--json").json["held"]
    assert [reason for _, reason in pending] == ["seems to contain a secret"]
    assert CORE.lower() not in place.texts().lower()


def test_new_secret_rules_apply_to_turns_being_sent(place: Place, machines: Machines) -> None:
    laptop = machines("laptop", added=False)
    ingest(
        laptop, SESSION, ("user", "The badge of the harbour is hb-4711-x."), ("assistant", "Noted.")
    )
    laptop("config", "set", "redaction.patterns", '["hb-[0-9]+-x"]')
    laptop("server", "remote", "add", place.url, "--yes")
    assert "harbour" in place.texts()
    assert "4711" not in place.texts()


def test_private_memories_and_sessions_are_not_sent_if_configured(
    place: Place, machines: Machines
) -> None:
    laptop, desk = machines("laptop", "--no-private", added=False), machines("desk")
    laptop("store", "My sister pays for the boat.", "--subject", "Boat")
    laptop("store", _FACT, "--subject", "Ferry timetable", "--scope", "personal")
    ingest(
        laptop, SESSION, ("user", "Remember: my sister pays for the boat."), ("assistant", "Noted.")
    )
    laptop("server", "remote", "add", place.url, "--yes", "--no-private")
    desk.sync()
    assert desk.contents() == {_FACT}
    assert "sister" not in place.texts()
    assert "Boat" not in place.texts()
    desk("edit", "Ferry timetable", "--importance", "9")
    desk.sync()
    laptop.sync()
    assert "importance: 9" in laptop.file_of(_FACT).read_text()
    assert "sister" not in place.texts()


def test_turn_sent_repeatedly_is_stored_once(place: Place, machines: Machines) -> None:
    laptop = machines("laptop")
    turns = [("user", f"Question {number} about the ferry.") for number in range(5)]
    ingest(laptop, SESSION, *turns)
    assert laptop.sync()["turns"] == 5
    (laptop.folder / ".nacre/remote.json").unlink()
    assert laptop.sync()["turns"] == 5
    ingest(laptop, SESSION, *turns, ("assistant", "An answer."))
    assert laptop.sync()["turns"] == 1
    with place.rows as rows:
        assert rows.execute("SELECT count(*) FROM nacre.turns").fetchone() == (6,)


def test_turn_of_ten_million_characters_does_not_block_others(
    place: Place, machines: Machines
) -> None:
    laptop = machines("laptop")
    ingest(
        laptop,
        SESSION,
        ("user", "\x01" * 400_000 + "é" * 10_000_000),
        ("assistant", "That is much."),
    )
    assert laptop.sync()["turns"] == 2
    assert "That is much." in place.texts()


def test_all_turns_are_sent_after_an_index_rebuild(place: Place, machines: Machines) -> None:
    laptop = machines("laptop")
    ingest(laptop, SESSION, ("user", "The first question."), ("assistant", "An answer."))
    laptop.sync()
    laptop("admin", "db", "rebuild", "--yes")
    ingest(
        laptop,
        SESSION,
        ("user", "The first question."),
        ("assistant", "An answer."),
        ("user", "The second one."),
    )
    laptop.sync()
    with place.rows as rows:
        assert rows.execute("SELECT count(*) FROM nacre.turns").fetchone() == (3,)


@pytest.mark.parametrize(
    ("space", "account", "role"),
    [("ada", "ada", "member"), ("ada", "ada", "reader"), ("ferry-team", "ada", "owner")],
)
def test_sync_needs_the_owners_key_to_a_personal_space(
    place: Place, machines: Machines, space: str, account: str, role: str
) -> None:
    key = place.ask("keys-create", space=space, account=account, role=role).secret
    laptop = machines("laptop", added=False, NACRE_REMOTE_KEY=key)
    outcome = laptop("server", "remote", "add", place.url, "--yes", code=1)
    assert "personal space" in outcome.err
    laptop("server", "remote", code=3)


def test_revoked_key_stops_sync_with_an_error(place: Place, machines: Machines) -> None:
    laptop = machines("laptop")
    (key,) = place.ask("keys", space="ada")
    place.ask("keys-revoke", space="ada", id=key.id)
    laptop("store", _FACT)
    assert "rejects the key" in laptop("server", "remote", "sync", code=1).err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://ada@db.example.org/nacre", "nacre serve"),
        ("http://memory.example.org", "not safe"),
        ("https://ada:pw@memory.example.org", "must not contain a key"),
        ("memory", "not safe"),
    ],
)
def test_invalid_address_is_refused(machines: Machines, url: str, message: str) -> None:
    assert (
        message
        in machines("laptop", added=False)("server", "remote", "add", url, "--yes", code=2).err
    )


def test_remote_add_requires_confirmation_before_sending(place: Place, machines: Machines) -> None:
    laptop = machines("laptop", added=False)
    laptop("store", _FACT)
    assert "--yes" in laptop("server", "remote", "add", place.url, code=2).err
    assert _FACT not in place.texts()


def test_key_is_stored_separately_and_removed_with_the_remote(
    place: Place, machines: Machines
) -> None:
    laptop = machines("laptop", added=False, NACRE_REMOTE_KEY="")
    laptop("server", "remote", "add", place.url, "--yes", stdin=f"{place.key}\n")
    laptop("store", _FACT)
    assert laptop.sync()["sent"] >= 1
    config = laptop.folder / ".nacre/config.toml"
    assert place.key not in config.read_text()
    laptop("server", "remote", "remove")
    paths = [path for path in (laptop.folder / ".nacre").rglob("*") if path.is_file()]
    assert all(place.key.encode() not in path.read_bytes() for path in paths)
    assert laptop.contents() == {_FACT}
    laptop("server", "remote", "sync", code=3)


def test_agent_cannot_set_its_own_remote_address(place: Place, machines: Machines) -> None:
    laptop = machines("laptop", added=False, CLAUDECODE="1", NACRE_REMOTE_URL=place.url)
    laptop("store", _FACT)
    assert "owner" in laptop("config", "set", "remote.url", place.url, code=1).err
    assert "does not sync with a server" in laptop("server", "remote", "sync", code=3).err
    assert "owner" in laptop("server", "remote", "add", place.url, "--yes", code=1).err


def test_server_paths_inside_git_folder_are_refused(place: Place, machines: Machines) -> None:
    laptop = machines("laptop")
    with place.rows as rows:
        rows.execute(
            "INSERT INTO nacre.document_versions (tenant, path, data, written) VALUES ('ada', %s, %s, 0)",
            (".git/config.md", b"[core]\n\tfsmonitor = evil\n"),
        )
    assert ".git" in laptop("server", "remote", "sync", code=1).err
    assert not (laptop.vault / ".git/config.md").exists()


def test_server_restored_to_an_old_state_receives_lost_data(
    place: Place, machines: Machines
) -> None:
    laptop, desk = machines("laptop"), machines("desk")
    laptop("store", _FACT)
    laptop.sync()
    with place.rows as rows:
        rows.execute("DELETE FROM nacre.documents")
        rows.execute("DELETE FROM nacre.document_versions")
        rows.execute("DELETE FROM nacre.memories")
        rows.execute("DELETE FROM nacre.vault_files")
    laptop.sync()
    desk.sync()
    assert desk.contents() == {_FACT}


def test_sixty_memories_from_three_machines_converge(machines: Machines) -> None:
    them = [machines(name) for name in ("laptop", "desk", "phone")]
    for number, machine in enumerate(them):
        for item in range(20):
            machine(
                "store",
                f"Boat {number}-{item} has {item} seats.",
                "--subject",
                f"Boat {number}-{item}",
            )
    for _ in range(2):
        for machine in them:
            machine.sync()
    assert len(them[0].contents()) == 60
    assert them[0].documents() == them[1].documents() == them[2].documents()


def test_remote_token_is_masked_in_output(place: Place, machines: Machines) -> None:
    output = machines("laptop")("server", "remote", "--json").out
    assert place.key not in output
    assert SECRET not in output
    assert re.search(r'"url": ?"http://127', output)
