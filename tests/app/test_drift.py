"""The doctor reports format changes: unknown records and a sudden lack of owner messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nacre.care.health import is_sudden
from tests.cli.conftest import Nacre, nacre, said, write_transcript  # noqa: F401


def session(
    home: Path, number: int, roles: Sequence[str], version: str = "2.1.0", **more: Any
) -> Path:
    name = f"{number:08d}-0000-4000-8000-000000000000"
    records = [
        said(
            role,
            f"Word {place} of session {number}",
            place,
            session=name,
            day=f"2026-10-{number:02d}",
        )
        | more
        for place, role in enumerate(roles)
    ]
    folder = home / ".claude" / "projects" / "-code-mill"
    return write_transcript(
        folder / f"{name}.jsonl", [record | {"version": version} for record in records]
    )


@pytest.fixture
def formats(nacre: Nacre) -> Callable[[], list[str]]:  # noqa: F811
    def check_formats() -> list[str]:
        nacre("ingest", "--no-extract", code=None)
        checks = nacre("admin", "doctor", "--json", code=None).json["checks"]
        return [check["detail"] for check in checks if check["name"].startswith("format")]

    return check_formats


def test_sudden_lack_of_owner_messages_is_reported_with_the_version(
    user_home: Path, formats: Any
) -> None:
    for number in range(1, 11):
        session(user_home, number, ("user", "assistant"))
    assert formats() == []
    for number in range(11, 15):
        session(user_home, number, ("assistant", "assistant"), "3.0.0")
    assert formats() == [
        "the last 4 sessions of claude-code 3.0.0 contain none of your messages; 10 of 10 before did",
    ]


def test_sub_agent_sessions_do_not_count_as_missing_owner_messages(
    user_home: Path, formats: Any
) -> None:
    for number in range(1, 11):
        session(user_home, number, ("user", "assistant"))
    for number in range(11, 20):
        agent = {"agentId": f"a{number}"} if number % 2 else {}
        session(user_home, number, ("user", "assistant"), isSidechain=True, **agent)
    assert formats() == []


def test_tool_with_few_owner_messages_is_not_reported() -> None:
    assert not is_sudden(silent=6, before=40, spoke=8)
    assert not is_sudden(silent=80, before=0, spoke=0)
    assert is_sudden(silent=5, before=50, spoke=40)
    assert not is_sudden(silent=3, before=50, spoke=50)


def test_unknown_records_of_a_growing_file_are_counted_once(user_home: Path, formats: Any) -> None:
    path = session(user_home, 1, ("user", "assistant"), "2.9.0")
    odd = json.dumps({"type": "hologram", "sessionId": "x"}) + "\n"
    for _ in range(3):
        with path.open("a") as file:
            file.write(odd)
        assert formats()
    assert formats() == ["unknown records in claude-code 2.9.0: hologram (3)"]


def test_unknown_records_are_counted_by_version_without_their_text(
    user_home: Path, formats: Any
) -> None:
    for number, version in ((1, "2.9.0"), (2, "2.9.0"), (3, "3.0.0")):
        path = session(user_home, number, ("user", "assistant"), version, gravity="the moon is wet")
        with path.open("a") as file:
            file.write(json.dumps({"type": "the moon is dry", "sessionId": "x"}) + "\n")
            file.write(json.dumps({"type": "hologram", "sessionId": "x"}) + "\n")
    assert formats() == [
        "unknown records in claude-code 2.9.0: field gravity (4), other (2), hologram (2)",
        "unknown records in claude-code 3.0.0: field gravity (2), other (1), hologram (1)",
    ]
