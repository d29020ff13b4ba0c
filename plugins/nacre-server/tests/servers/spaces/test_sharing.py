"""One recall over several spaces, and the only way from one into another."""

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
_ASKED = "where is the ferry timetable kept?"


def _store(memory: MemoryHome, content: str = _FACT, **fields: Any) -> str:
    if content == _FACT:
        fields = {"subject": "Timetable", **fields}
    stored = memory.call("store", content=content, **fields)
    return str(stored.memory_id)


def _hits(memory: MemoryHome, text: str = _ASKED, **fields: Any) -> list[tuple[str | None, str]]:
    return [
        (hit.space, hit.memory.content) for hit in memory.call("recall", text=text, **fields).hits
    ]


def test_shared_copy_is_found_and_names_its_owner(team: Server) -> None:
    anna = team.opened("anna")
    memory = _store(anna, tags=["ferry"], importance=8)
    shared = anna.call("share", reference="Timetable", space="ferry-team", scope="personal")
    assert (shared.space, shared.is_new, shared.memory.id) == ("ferry-team", True, memory)
    found = team.opened("ben", reads=("ferry-team",)).call("recall", text=_ASKED).hits[0]
    assert (found.space, found.memory.content, found.memory.importance) == ("ferry-team", _FACT, 8)
    assert found.memory.author == "anna"
    assert {**found.memory.extra["shared"], "on": ""} == {"from": "anna", "by": "anna", "on": ""}


def test_memory_in_both_spaces_is_shown_once_from_the_own(team: Server) -> None:
    anna = team.opened("anna", reads=("ferry-team",))
    _store(anna)
    anna.call("share", reference="Timetable", space="ferry-team", scope="public")
    assert _hits(anna) == [("anna", _FACT)]


def test_hits_of_all_spaces_are_sorted_within_the_limit(team: Server) -> None:
    for space, content in {
        "anna": _FACT,
        "ferry-team": "The timetable of the ferry hangs at the pier.",
    }.items():
        _store(team.opened("anna", space), content, scope="personal")
    reading = team.opened("anna", reads=("ferry-team",))
    found = reading.call("recall", text=_ASKED).hits
    assert {hit.space for hit in found} == {"anna", "ferry-team"}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert len(_hits(reading, limit=1)) == 1
    assert {space for space, _ in _hits(team.opened("anna"))} == {None}


def test_question_never_reads_private_memories_of_another_space(
    team: Server,
) -> None:
    _store(team.opened("anna", "ferry-team"), scope="private")
    assert _hits(team.opened("ben", reads=("ferry-team",))) == []
    assert [space for space, _ in _hits(team.opened("ben", "ferry-team"))] == [None]


def test_unreadable_space_is_reported_and_others_answer(team: Server) -> None:
    eve = team.opened("eve", reads=("ferry-team", "nowhere"))
    _store(eve)
    result = eve.call("recall", text=_ASKED)
    assert [hit.space for hit in result.hits] == ["eve"]
    told = {
        lane.name: (lane.state, lane.note) for lane in result.lanes if lane.name.startswith("space")
    }
    assert told["space ferry-team"] == (
        LaneState.UNAVAILABLE,
        "eve does not belong to the space ferry-team",
    )
    assert told["space nowhere"][0] is LaneState.UNAVAILABLE


def test_removed_member_no_longer_reads_shared_memories(team: Server) -> None:
    anna, ben = team.opened("anna"), team.opened("ben", reads=("ferry-team",))
    _store(anna)
    anna.call("share", reference="Timetable", space="ferry-team", scope="personal")
    assert len(_hits(ben)) == 1
    anna.call("spaces-remove", space="ferry-team", account="ben")
    assert _hits(ben) == []


def test_reading_a_space_does_not_count_usage_there(team: Server) -> None:
    _store(team.opened("anna", "ferry-team"), scope="personal")
    before = _rows(team, "ferry-team")
    ben = team.opened("ben", reads=("ferry-team",))
    assert len(_hits(ben)) == 1
    _store(ben, "Dogs travel free.")  # who writes folds what was used into rows
    assert _rows(team, "ferry-team") == before


def test_context_names_the_space_of_shared_memories(team: Server) -> None:
    anna = team.opened("anna")
    _store(anna)
    anna.call("share", reference="Timetable", space="ferry-team", scope="personal")
    block = team.opened("ben", reads=("ferry-team",)).call(
        "context", moment="prompt", prompt=_ASKED
    )
    assert "space ferry-team, fact" in block.text


def test_private_memory_is_shared_only_with_an_explicit_scope(team: Server) -> None:
    anna = team.opened("anna")
    _store(anna)
    for scope in (None, "private"):
        with pytest.raises(NotAllowedError, match="is private"):
            anna.call("share", reference="Timetable", space="ferry-team", scope=scope)
    assert team.opened("anna", "ferry-team").call("list").total == 0
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
    anna = server.opened("anna")
    anna.call("spaces-create", space="acme", kind="organisation", raising=raising)
    anna.call("spaces-add", space="acme", account="ben", role=role)
    ben = server.opened("ben")
    _store(ben)
    if may:
        assert ben.call("share", reference="Timetable", space="acme", scope="personal").is_new
    else:
        with pytest.raises(NotAllowedError, match=f"ben is a {Role(role)} of acme"):
            ben.call("share", reference="Timetable", space="acme", scope="personal")
    log = [
        (one.account, one.action, one.outcome)
        for one in server.opened("anna", "acme").call("spaces-log", limit=1)
    ]
    assert log == [("ben", "share", "done" if may else "not_allowed")]
    assert server.opened("anna", "acme").call("list").total == may


def test_sharing_with_a_foreign_space_is_refused(team: Server) -> None:
    eve = team.opened("eve")
    _store(eve)
    for space in ("ferry-team", "anna", "nowhere"):
        with pytest.raises(NotAllowedError):
            eve.call("share", reference="Timetable", space=space, scope="public")


def test_sharing_again_updates_the_copy(team: Server) -> None:
    anna = team.opened("anna")
    memory = _store(anna)
    anna.call("share", reference=memory, space="ferry-team", scope="personal")
    anna.call("edit", reference=memory, content="The ferry timetable is kept in tides.json.")
    again = anna.call("share", reference=memory, space="ferry-team", scope="personal")
    assert not again.is_new
    found = team.opened("ben", reads=("ferry-team",))
    assert _hits(found) == [("ferry-team", "The ferry timetable is kept in tides.json.")]


def test_memory_forgotten_or_retired_in_a_space_is_not_reshared(team: Server) -> None:
    anna, space = team.opened("anna"), team.opened("anna", "ferry-team")
    memory, other = _store(anna), _store(anna, "Dogs travel free on the morning boat.")
    for one in (memory, other):
        anna.call("share", reference=one, space="ferry-team", scope="personal")
    space.call("retire", references=[other])
    space.call("forget", memories=[memory])
    with pytest.raises(ConflictError, match="was forgotten there"):
        anna.call("share", reference=memory, space="ferry-team", scope="personal")
    with pytest.raises(ConflictError, match="was retired there"):
        anna.call("share", reference=other, space="ferry-team", scope="personal")
    assert anna.call("list").total == 2


def test_shared_copy_omits_source_and_linked_memories(team: Server) -> None:
    anna = team.opened("anna")
    first, second = _store(anna), _store(anna, "Dogs travel free on the morning boat.")
    anna.call("graph-link", links=[{"source": first, "relation": "related_to", "target": second}])
    anna.call("share", reference=first, space="ferry-team", scope="personal")
    told = _rows(team, "ferry-team")
    assert first in told
    assert first.encode().hex() in told  # a document is bytes
    assert second not in told
    assert second.encode().hex() not in told


def _rows(server: Server, space: str) -> str:
    """Every row of a space."""
    with server.admin as admin:
        return str(dump(admin, space))
