"""Vectors of the current and of a former model, on both engines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nacre.errors import EmbedderUnavailableError
from nacre.store.memories import Memories
from nacre.store.schema import Database
from nacre.store.search import Near, Selection, Vectors
from nacre.store.sessions import Sessions
from nacre.store.sqlite import open_database
from nacre.values.recall import Filter
from nacre.values.session import Flag, Session, Speaker
from tests.storage.conftest import Open
from tests.storage.samples import an_id, memory, put, put_session, retired, turn

_SIZE = 64
_LONG = "Long enough to be embedded: {}"


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _vectors(*seeds: int) -> NDArray[np.float32]:
    vectors = np.stack(
        [np.random.default_rng(seed).standard_normal(_SIZE) for seed in seeds]
    ).astype(np.float32)
    unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _embed_turns(store: Vectors, seeds: Sequence[int]) -> list[int]:
    """Give each queued turn one passage; return the turns' rows."""
    waiting = store.turns_to_embed(99)
    digests = {row: [_digest(text)] for row, text in waiting}
    fresh = {_digest(text): seed for (_, text), seed in zip(waiting, seeds, strict=True)}
    store.add_turn_passages(digests, [*fresh], _vectors(*fresh.values()), through=waiting[-1][0])
    return [row for row, _ in waiting]


def _rounded(hits: list[Near]) -> list[tuple[int, float]]:
    return [(item.row, round(item.cosine, 2)) for item in hits]


def test_turns_worth_a_vector_are_queued_in_order(database: Database) -> None:
    store = Vectors(database)
    texts = (_LONG, "short", _LONG, _LONG, _LONG, "Ü" * 12)
    flags = (Flag.NONE, Flag.NONE, Flag.META, Flag.COMMAND, Flag.NONE, Flag.NONE)
    speakers = (
        Speaker.OWNER,
        Speaker.OWNER,
        Speaker.OWNER,
        Speaker.AGENT,
        Speaker.TOOL,
        Speaker.OWNER,
    )
    row = put_session(
        database,
        "one",
        *(
            turn(f"{at}", texts[at], flags=flags[at], speaker=speakers[at], minutes=at)
            for at in range(6)
        ),
    )
    rows = [item.row for item in Sessions(database).turns_of(row)]
    assert [number for number, _ in store.turns_to_embed(9)] == [rows[0], rows[3], rows[5]]
    assert [number for number, _ in store.turns_after(rows[0], 1)] == [rows[3]]
    put(database, memory(1), memory(2, superseded_by=an_id(1)), memory(3, **retired()))
    assert store.missing() == (3, 2)
    assert store.memory_texts() == [("Subject 1", "Content 1."), ("Subject 2", "Content 2.")]
    assert [subject for _, subject, _ in store.memories_to_embed(1)] == ["Subject 2"]
    assert [subject for _, subject, _ in store.memories_to_embed(9)] == ["Subject 1", "Subject 2"]
    store.begin("m")
    store.pass_over()
    assert store.missing()[0] == 3


def test_missing_vectors_are_rechecked_after_a_write(
    database: Database,
) -> None:
    store = Vectors(database)
    answers = [store.are_missing()]
    put(database, memory(1))
    answers += [store.are_missing(), store.are_missing()]
    store.add_memory_vectors({row: _vectors(row) for row, *_ in store.memories_to_embed(9)})
    answers += [store.are_missing(), store.are_missing()]
    put_session(database, "one", turn("1", _LONG))
    answers += [store.are_missing()]
    _embed_turns(store, [1])
    with database.transaction():
        answers += [store.are_missing()]
        put(database, memory(2))
        answers += [store.are_missing()]
    answers += [store.are_missing()]
    assert answers == [False, True, True, False, False, True, False, True, True]


def test_nearest_turns_are_found_by_their_passages(database: Database) -> None:
    store = Vectors(database)
    store.begin("m", "setting")
    put_session(database, "one", *(turn(f"{at}", _LONG.format(at)) for at in range(3)), project="p")
    put_session(database, "two", turn("3", _LONG.format(0)))
    rows = _embed_turns(store, [1, 2, 3, 1])
    assert (store.count(), store.dimensions(), store.missing()) == (3, _SIZE, (0, 0))
    assert store.size() == 3 * (_SIZE + 8)
    (query,) = _vectors(1)
    assert _rounded(store.nearest_turns(query, limit=2)) == [(rows[0], 1.0), (rows[3], 1.0)]
    admitted = Selection(database).admitted_turns(Filter(exclude_projects=("p",)))
    assert _rounded(store.nearest_turns(query, limit=9, admitted=admitted)) == [(rows[3], 1.0)]
    assert round(store.cosines_of_turns(query, [rows[3], 10**9])[rows[3]], 2) == 1.0
    assert set(store.rows_of_passages([_digest(_LONG.format(0)), b"\0" * 16])) == {
        _digest(_LONG.format(0))
    }
    with pytest.raises(EmbedderUnavailableError):
        store.add_turn_passages(
            {rows[0]: [b"\1" * 16]}, [b"\1" * 16], _vectors(5)[:, :32], through=0
        )
    store.add_turn_passages(
        {10**9: [_digest(_LONG.format(1))]}, [], np.empty((0, _SIZE), np.float32), through=0
    )
    other = Vectors(database)
    other.begin_with(store.passage_cache())
    assert _rounded(other.nearest_turns(query, limit=1)) == [(rows[0], 1.0)]
    assert _rounded(other.of("m").nearest_turns(query, limit=1)) == [(rows[0], 1.0)]
    assert other.of("other").nearest_turns(query, limit=1) == []


def test_turn_added_after_a_deleted_turn_gets_a_vector(database: Database) -> None:
    store = Vectors(database)
    store.begin("m")
    row = put_session(
        database, "one", turn("a", _LONG.format(1)), turn("b", _LONG.format(2)), file="/srv/a"
    )
    _embed_turns(store, [1, 2])
    with database.transaction():
        Sessions(database).retain("claude-code", "/srv/a", {"one": ["a"]})
        Sessions(database).add_turns(
            Session("claude-code", "one"), row, [turn("c", _LONG.format(3))]
        )
    assert [text for _, text in store.turns_to_embed(9)] == [_LONG.format(3)]


def test_nearest_memories_are_found_by_their_best_pieces(database: Database) -> None:
    store = Vectors(database)
    store.begin("m")
    put(database, memory(1), memory(2), memory(3))
    rows = [database.value("find_memory_row", id=an_id(number)) or 0 for number in (1, 2, 3)]
    store.add_memory_vectors(
        {rows[0]: _vectors(1, 2), rows[1]: _vectors(2), rows[2]: _vectors(3), 10**9: _vectors(4)}
    )
    assert (store.count_memories(), store.missing()) == (3, (0, 0))
    cosines = store.memory_cosines(_vectors(2)[0])
    assert [round(cosines[row], 2) for row in rows[:2]] == [1.0, 1.0]
    assert cosines[rows[2]] < 0.9
    assert store.near_memory(rows[0], limit=1)[0].row == rows[1]
    assert [pair[:2] for pair in store.near_pairs(rows, least=0.99)] == [(rows[0], rows[1])]
    with database.transaction():
        Memories(database).delete(an_id(1))
    assert store.count_memories() == 2
    assert store.near_memory(10**9, limit=1) == []


def test_vectors_of_another_model_name_are_dropped_and_rebuilt(
    database: Database,
) -> None:
    store = Vectors(database)
    assert (store.model(), store.setting(), store.dimensions(), store.size()) == (None, None, 0, 0)
    store.begin("one")
    put_session(database, "a", turn("1", _LONG.format(1)))
    _embed_turns(store, [1])
    store.begin("one")
    assert (store.count(), store.setting()) == (1, "minilm")
    store.begin("one", "onnx:/srv/one")
    assert (store.count(), store.setting()) == (1, "onnx:/srv/one")
    store.begin("two")
    assert (store.count(), store.model(), store.nearest_turns(_vectors(1)[0], limit=1)) == (
        0,
        "two",
        [],
    )


def test_vectors_of_the_same_model_are_copied_between_databases(
    database: Database, tmp_path: Path
) -> None:
    former = open_database(tmp_path / "former.db")
    earlier, store = Vectors(former), Vectors(database)
    for item in (earlier, store):
        item.begin("m")
    put_session(former, "a", turn("1", _LONG.format(1)))
    _embed_turns(earlier, [1])
    store.take_over(earlier, [_digest(_LONG.format(1)), b"\2" * 16])
    assert set(store.rows_of_passages([_digest(_LONG.format(1))])) == {_digest(_LONG.format(1))}
    store.begin("n")
    store.take_over(earlier, [_digest(_LONG.format(1))])
    assert store.count() == 0
    former.close()


def test_change_of_the_model_affects_only_its_tenant(tenants: Open) -> None:
    mine, yours = tenants("mine"), tenants("yours")
    for database in (mine, yours):
        Vectors(database).begin("one")
    Vectors(mine).begin("two")
    assert (Vectors(mine).model(), Vectors(yours).model()) == ("two", "one")
