"""Edits by hand appear in the daemon's next answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.app.test_hand_edits import EDITS
from tests.cli.conftest import Nacre
from tests.daemon.conftest import Serving, call_daemon, home


def test_hand_edit_is_in_the_next_answer_for_every_editor(
    nacre: Nacre, serving: Callable[..., Serving]
) -> None:
    nacre("store", "The staging server is called heron0.", "--subject", "Staging server")
    serving()
    (file,) = (home() / "vault/global/fact").glob("*.md")
    assert _contents() == ["The staging server is called heron0."]
    for number, edit in enumerate(EDITS):
        edit(
            file, file.read_text(encoding="utf-8").replace(f"heron{number}.", f"heron{number + 1}.")
        )
        assert _contents() == [f"The staging server is called heron{number + 1}."]


def test_created_and_moved_files_are_in_the_next_answer(
    serving: Callable[..., Serving],
) -> None:
    serving()
    vault = home() / "vault"
    assert _contents() == []
    for name in ("acme", "ledger"):
        (vault / f"projects/{name}/fact").mkdir(parents=True)
        (vault / f"projects/{name}/fact/tea.md").write_text(f"Tea of {name} is at four.")
        assert f"Tea of {name} is at four." in _contents()
    (vault / "projects/acme").rename(vault / "projects/mill")
    assert {(item["project"], item["content"]) for item in _listed()} == {
        ("mill", "Tea of acme is at four."),
        ("ledger", "Tea of ledger is at four."),
    }
    (vault / "projects/ledger/fact/tea.md").unlink()
    assert _contents() == ["Tea of acme is at four."]


def _contents() -> list[str]:
    return [item["content"] for item in _listed()]


def _listed() -> list[dict[str, Any]]:
    memories: list[dict[str, Any]] = call_daemon("list", {"limit": 10})["memories"]
    return memories
