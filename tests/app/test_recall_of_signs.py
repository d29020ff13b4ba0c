"""Queries consisting of a name with signs, kana of any width or an error number find their text."""

from __future__ import annotations

from tests.app.conftest import World, says

TEXTS = {
    "C++": "The mill controller is written in C++17 with one Lua layer.",
    "C#": "The label printer is a C# console program.",
    "F#": "The tariff model is an F# script.",
    ".NET": "The till needs the .NET runtime.",
    "node.js": "The ferry gateway runs on node.js behind a proxy.",
    "ﾃﾞｰﾀ": "テストデータは倉庫にある。",
    "カタカナ": "ﾌｧｲﾙ名はｶﾀｶﾅで書く。",
    "ＥＲＲ": "The scale prints ERR when the plate is wet.",
    "1067": "The ledger refused the date with error 1067.",
    "-11": "The decoder died with exit code -11.",
    "0x80070005": "The installer stops at 0x80070005 without rights.",
    "E11000": "The store says E11000 for a double slug.",
    "c": "The solver calls the speed of light c in its input.",
}


def test_query_with_signs_finds_its_turn_and_memory(world: World) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    world.transcript(
        "s1", *(says("user", text, uuid=f"u{index}") for index, text in enumerate(TEXTS.values()))
    )
    with world.open() as memory:
        memory.ingest(extract=False, vectors=False)
        for text in TEXTS.values():
            memory.store(text, force=True)
        for query, text in TEXTS.items():
            result = memory.recall(query)
            assert result.hits[0].memory.content == text, query
            assert [hit.turn.text for hit in memory.search_sessions(query).turns] == [text], query
