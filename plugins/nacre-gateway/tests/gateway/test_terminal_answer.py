"""Answers are printed in a terminal."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

from nacre.home.home import open_home
from nacre.settings import load_settings
from nacre_gateway.engine import TerminalChat
from tests.fakes.provider import FakeProvider

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
TALE = "The boat lies at the quay. Its hull is red and its sail hangs out to dry since Friday. "


def test_answer_in_a_terminal_contains_no_secrets(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    with FakeProvider([f"{TALE}\nThe token is {TOKEN}. {TALE}"]) as provider:
        (folder / "config.toml").write_text(provider.config(), encoding="utf-8")
        environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "NACRE_EMBEDDING_MODEL": "none"}
        settings = load_settings(folder, environ)
        home = open_home(settings)
        talk = TerminalChat(settings, lambda: nullcontext(home), is_owner=True)
        with closing(home.database), closing(talk):
            answer = talk.ask("which token is it?")
    assert TOKEN not in answer.text
