"""Very long words, paths and names are stored in files and on a server without errors."""

from __future__ import annotations

import random
import string
from pathlib import Path
from typing import Any

import pytest

from nacre.api import open_memory
from tests.cli.conftest import said, write_transcript

_random = random.Random(24)  # noqa: S311 - not for cryptography


def _random_word(length: int) -> str:
    """Return a random, incompressible word."""
    return "".join(_random.choices(string.ascii_letters + string.digits, k=length))


@pytest.fixture(params=["file", "server"], autouse=True)
def engine(
    request: pytest.FixtureRequest, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run each test with a home in files and a home on a server."""
    if request.param == "server":
        monkeypatch.setenv("NACRE_DB", request.getfixturevalue("server_url"))
        monkeypatch.setenv("NACRE_STORAGE_TENANT", request.getfixturevalue("tenant"))


def _tool_call(number: int, name: str, **arguments: str) -> dict[str, Any]:
    record = said("assistant", "", number)
    record["message"]["content"] = [
        {"type": "tool_use", "id": f"call{number}", "name": name, "input": arguments}
    ]
    return record


def test_session_with_very_long_words_paths_and_names_is_read(user_home: Path) -> None:
    records = [
        said("user", f"The ferry timetable is in {_random_word(9_000)} now.", 0),
        said(
            "assistant",
            f"I read {_random_word(3_000)}.{_random_word(3_000)}() of {_random_word(60)}/{_random_word(4_000)}.py.",
            1,
        ),
        _tool_call(
            2, "Edit", file_path=f"/code/{_random_word(3_500)}/x.py", old_string="a", new_string="b"
        ),
        _tool_call(3, "Read", file_path=f"/code/ferry/{_random_word(4_000)}"),
        _tool_call(4, _random_word(4_000), command=f"ls {_random_word(4_000)}"),
        said("user", "The harbour office closes at six.", 5, cwd=f"/code/{_random_word(3_900)}"),
    ]
    for record in records:
        record["gitBranch"] = _random_word(3_000)
    records[1]["uuid"] = _random_word(4_000)
    write_transcript(
        user_home / ".claude/projects/-code-ferry/7f3a1c2d-0000-4000-8000-000000000001.jsonl",
        records,
    )
    with open_memory() as memory:
        assert memory.call("ingest").turns == len(records)
        result = memory.call("search-sessions", text="harbour office closes")
        assert "harbour office" in str(result)
        assert memory.call("recall", text=f"{_random_word(5_000)} harbour office")


def test_very_long_session_id_does_not_block_other_sessions(user_home: Path) -> None:
    folder = user_home / ".claude/projects/-code-ferry"
    write_transcript(
        folder / "a.jsonl", [said("user", "The first.", 0, session=_random_word(4_000))]
    )
    write_transcript(folder / "b.jsonl", [said("user", "The harbour office closes at six.", 0)])
    with open_memory() as memory:
        memory.call("ingest")
        assert "harbour office" in str(memory.call("search-sessions", text="harbour office closes"))


def test_memory_with_very_long_names_is_stored(user_home: Path) -> None:
    with open_memory() as memory:
        memory.call(
            "store",
            content=f"The code is {_random_word(6_000)}.",
            subject=_random_word(3_000),
            tags=[_random_word(3_000)],
        )
        memory.call(
            "store",
            content=f"See [[{_random_word(3_000)}]] and `{_random_word(3_000)}` of the harbour.",
        )
        assert memory.call("list").total == 2
        assert "harbour" in str(memory.call("recall", text="harbour"))
