"""The options of ``nacre mcp``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Nacre, nacre, terminal

__all__ = ["nacre", "terminal"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--http", "nonsense"], "is no port"),
        (["--http", "0.0.0.0:8765"], "a token is needed"),
        (["--http", "memory.example:8765"], "a token is needed"),
        (["--tools", "some"], "core"),
        (["--token-file", "no-such-file"], "does not exist"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_word_on_what_does(arguments: list[str], says: str, nacre: Nacre) -> None:
    assert says in nacre("mcp", *arguments, code=2).err


def test_a_token_without_http_is_refused(nacre: Nacre, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("x\n", encoding="utf-8")
    assert "--http" in nacre("mcp", "--token-file", str(token), code=2).err


def test_an_empty_token_opens_nothing(nacre: Nacre, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("\n", encoding="utf-8")
    assert "empty" in nacre("mcp", "--http", "8765", "--token-file", str(token), code=2).err


def test_a_person_who_starts_it_is_told_what_it_waits_for(terminal: Nacre) -> None:
    assert "Ctrl-D ends this" in terminal("mcp", typed="\x04").out
