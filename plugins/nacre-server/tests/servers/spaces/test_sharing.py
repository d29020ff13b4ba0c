"""Recall reads several spaces, and sharing is the only way to copy between them."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.api import MemoryHome
from nacre.errors import ConflictError, NotAllowedError
from nacre.values.memory import Role
from nacre.values.recall import LaneState
from servers.spaces.conftest import Server
from tests.storage.filled import dump

_FACT = "The ferry timetable is kept in the file tides.csv."
_QUESTION = "where is the ferry timetable kept?"


def _store(memory: MemoryHome, content: str = _FACT, **fields: Any) -> str:
    if content == _FACT:
        fields = {"subject": "Timetable", **fields}
    outcome = memory.call("store", content=content, **fields)
    return str(outcome.memory_id)


def _hits(memory: MemoryHome, text: str = _QUESTION, **fields: Any) -> list[tuple[str | None, str]]:
    return [
        (hit.space, hit.memory.content) for hit in memory.call("recall", text=text, **fields).hits
    ]


def test_shared_copy_is_found_and_names_its_owner(team: Server) -> None:
    anna = team.open_space("anna")
    memory = _store(anna, tags=["ferry"], importance=8)
    shared = anna.call("share", reference="Timetable", space="ferry-team", scope="personal")
    assert (shared.space, shared.is_new, shared.memory.id) == ("ferry-team", True, memory)
    hit = team.open_space("ben", reads=("ferry-team",)).call("recall", text=_QUESTION).hits[0]
    assert (hit.space, hit.memory.content, hit.memory.importance) == (
        "ferry-team",
        _FACT,
        8,
    )
    assert hit.memory.author == "anna"
    assert {**hit.memory.extra["shared"], "on": ""} == {"from": "anna", "by": "anna", "on": ""}


def test_memory_in_both_spaces_is_shown_once_from_the_own(team: Server) -> None:
    anna = team.open_space("anna", reads=("ferry-team",))
    _store(anna)
    anna.call("share", reference="Timetable", space="ferry-team", scope="public")
    assert _hits(anna) == [("anna", _FACT)]


def test_hits_of_all_spaces_are_sorted_within_the_limit(team: Server) -> None:
    for space, content in {
        "anna": _FACT,
        "ferry-team": "The timetable of the ferry hangs at the pier.",
    }.items():
        _store(team.open_space("anna", space), content, scope="personal")
    reading = team.open_space("anna", reads=("ferry-team",))
    hits = reading.call("recall", text=_QUESTION).hits
    assert {hit.space for hit in hits} == {"anna", "ferry-team"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(_hits(reading, limit=1)) == 1
    assert {space for space, _ in _hits(team.open_space("anna"))} == {None}


def test_question_never_reads_private_memories_of_another_space(
    team: Server,
) -> None:
    _store(team.open_space("anna", "ferry-team"), scope="private")
    assert _hits(team.open_space("ben", reads=("ferry-team",))) == []
    assert [space for space, _ in _hits(team.open_space("ben", "ferry-team"))] == [None]


def test_unreadable_space_is_reported_and_others_answer(team: Server) -> None:
    eve = team.open_space("eve", reads=("ferry-team", "nowhere"))
    _store(eve)
    result = eve.call("recall", text=_QUESTION)
    assert [hit.space for hit in result.hits] == ["eve"]
    lanes = {
        lane.name: (lane.state, lane.note) for lane in result.lanes if lane.name.startswith("space")
    }
    assert lanes["space ferry-team"] == (
        LaneState.UNAVAILABLE,
        "eve does not belong to the space ferry-team",
    )
    assert lanes["space nowhere"][0] is LaneState.UNAVAILABLE


def test_removed_member_no_longer_reads_shared_memories(team: Server) -> None:
    anna, ben = team.open_space("anna"), team.open_space("ben", reads=("ferry-team",))
    _store(anna)
    anna.call("share", reference="Timetable", space="ferry-team", scope="personal")
    assert len(_hits(ben)) == 1
    anna.call("spaces-remove", space="ferry-team", account="ben")
    assert _hits(ben) == []


def test_reading_a_space_does_not_count_usage_there(team: Server) -> None:
    _store(team.open_space("anna", "ferry-team"), scope="personal")
    before = _rows(team, "ferry-team")
    ben = team.open_space("ben", reads=("ferry-team",))
    assert len(_hits(ben)) == 1
    _store(ben, "Dogs travel free.")  # a write also saves the recorded usage
    assert _rows(team, "ferry-team") == before


def test_context_names_the_space_of_shared_memories(team: Server) -> None:
    anna = team.open_space("anna")
    _store(anna)
    anna.call("share", reference="Timetable", space="ferry-team", scope="personal")
    block = team.open_space("ben", reads=("ferry-team",)).call(
        "context", moment="prompt", prompt=_QUESTION
    )
    assert "space ferry-team, fact" in block.text


def test_private_memory_is_shared_only_with_an_explicit_scope(team: Server) -> None:
    anna = team.open_space("anna")
    _store(anna)
    for scope in (None, "private"):
        with pytest.raises(NotAllowedError, match="is private"):
            anna.call("share", reference="Timetable", space="ferry-team", scope=scope)
    assert team.open_space("anna", "ferry-team").call("list").total == 0
    assert (
        anna.call("share", reference="Timetable", space="ferry-team", scope="personal").memory.scope
        == "personal"
    )
    assert anna.call("get", reference="Timetable").scope == "private"


@pytest.mark.parametrize(
    ("raising", "role", "may"),
    [
        ("members", "owner", True),
        ("members", "member", True),
        ("members", "service", False),
        ("members", "reader", False),
        ("owners", "owner", True),
        ("owners", "member", False),
        ("owners", "service", False),
        ("owners", "reader", False),
    ],
)
def test_raising_rule_of_the_space_decides_sharing_permission(
    server: Server, raising: str, role: str, may: bool
) -> None:
    anna = server.open_space("anna")
    anna.call("spaces-create", space="acme", kind="organisation", raising=raising)
    anna.call("spaces-add", space="acme", account="ben", role=role)
    ben = server.open_space("ben")
    _store(ben)
    if may:
        assert ben.call("share", reference="Timetable", space="acme", scope="personal").is_new
    else:
        with pytest.raises(NotAllowedError, match=f"ben is a {Role(role)} of acme"):
            ben.call("share", reference="Timetable", space="acme", scope="personal")
    log = [
        (item.account, item.action, item.outcome)
        for item in server.open_space("anna", "acme").call("spaces-log", limit=1)
    ]
    assert log == [("ben", "share", "done" if may else "not_allowed")]
    assert server.open_space("anna", "acme").call("list").total == may


def test_sharing_with_a_foreign_space_is_refused(team: Server) -> None:
    eve = team.open_space("eve")
    _store(eve)
    for space in ("ferry-team", "anna", "nowhere"):
        with pytest.raises(NotAllowedError):
            eve.call("share", reference="Timetable", space=space, scope="public")


def test_sharing_again_updates_the_copy(team: Server) -> None:
    anna = team.open_space("anna")
    memory = _store(anna)
    anna.call("share", reference=memory, space="ferry-team", scope="personal")
    anna.call("edit", reference=memory, content="The ferry timetable is kept in tides.json.")
    again = anna.call("share", reference=memory, space="ferry-team", scope="personal")
    assert not again.is_new
    ben = team.open_space("ben", reads=("ferry-team",))
    assert _hits(ben) == [("ferry-team", "The ferry timetable is kept in tides.json.")]


def test_memory_forgotten_or_retired_in_a_space_is_not_reshared(team: Server) -> None:
    anna, space = team.open_space("anna"), team.open_space("anna", "ferry-team")
    memory, other = _store(anna), _store(anna, "Dogs travel free on the morning boat.")
    for item in (memory, other):
        anna.call("share", reference=item, space="ferry-team", scope="personal")
    space.call("retire", references=[other])
    space.call("forget", memories=[memory])
    with pytest.raises(ConflictError, match="was forgotten in"):
        anna.call("share", reference=memory, space="ferry-team", scope="personal")
    with pytest.raises(ConflictError, match="was retired in"):
        anna.call("share", reference=other, space="ferry-team", scope="personal")
    assert anna.call("list").total == 2


def test_shared_copy_omits_source_and_linked_memories(team: Server) -> None:
    anna = team.open_space("anna")
    first, second = _store(anna), _store(anna, "Dogs travel free on the morning boat.")
    anna.call("graph-link", links=[{"source": first, "relation": "related_to", "target": second}])
    anna.call("share", reference=first, space="ferry-team", scope="personal")
    rows = _rows(team, "ferry-team")
    assert first in rows
    assert first.encode().hex() in rows  # a document is bytes
    assert second not in rows
    assert second.encode().hex() not in rows


def _rows(server: Server, space: str) -> str:
    with server.admin as admin:
        return str(dump(admin, space))
