"""Chat sessions of VS Code Copilot in the database of old."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.stores import START, bubble, conversation, write_state


def session(name: str, *asked: str) -> dict[str, Any]:
    requests = [
        {
            "requestId": f"request_{name}_{number}",
            "timestamp": START + number,
            "message": {"text": text, "parts": []},
            "response": [{"value": f"Answer to {text}", "supportHtml": False}],
            "isCanceled": False,
        }
        for number, text in enumerate(asked)
    ]
    return {
        "version": 3,
        "sessionId": name,
        "creationDate": START,
        "responderUsername": "GitHub Copilot",
        "initialLocation": "panel",
        "requests": requests,
    }


def test_sessions_under_one_key_are_read(look: Any, tmp_path: Path) -> None:
    kept = {
        "interactive.sessions": [
            session("v1", "Why?"),
            session("v2", "How?", "When?"),
            session("v3"),
        ]
    }
    found = look(write_state(tmp_path / "w" / "state.vscdb", kept, folder="file:///code/acme"))
    assert found.tool == "copilot-chat"
    assert found.said("v2") == [
        ("owner", "How?"),
        ("agent", "Answer to How?"),
        ("owner", "When?"),
        ("agent", "Answer to When?"),
    ]
    assert set(found.sessions) == {"v1", "v2"}
    assert found.sessions["v1"].cwd == "/code/acme"


def test_only_changed_sessions_are_reread(look: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    first = look(
        write_state(path, {"interactive.sessions": [session("v1", "Why?"), session("v2", "How?")]})
    )
    path.unlink()
    write_state(
        path, {"interactive.sessions": [session("v1", "Why?"), session("v2", "How?", "When?")]}
    )
    assert set(look(path, first.cursor, "copilot-chat").sessions) == {"v2"}


def test_copilot_sessions_in_cursor_belong_to_copilot(look: Any, tmp_path: Path) -> None:
    items = {"interactive.sessions": [session("v1", "Why?")]}
    found = look(
        write_state(tmp_path / "state.vscdb", items, conversation("c1", [bubble(1, "Hi")]))
    )
    assert {one.tool for one in found.sessions.values()} == {"cursor", "copilot-chat"}


def test_editor_without_chats_is_recognised_and_skipped_later(look: Any, tmp_path: Path) -> None:
    found = look(write_state(tmp_path / "state.vscdb", {"interactive.sessions": b"[]"}))
    assert (found.tool, found.sessions, found.corrupt) == ("copilot-chat", {}, 0)


def test_unreadable_sessions_are_counted(look: Any, tmp_path: Path) -> None:
    assert look(write_state(tmp_path / "a.vscdb", {"interactive.sessions": b"{torn"})).corrupt == 1
    assert (
        look(
            write_state(tmp_path / "b.vscdb", {"interactive.sessions": [3, session("v1", "Why?")]})
        ).corrupt
        == 1
    )
